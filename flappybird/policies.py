"""The built-in players: an observation in, an action and a short true thought out.

A policy sees what a model sees, the observation and the rules of the world, and nothing else: neither the seed nor pipes
that are not on screen. It keeps nothing from one turn to the next, so any number of games can share it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from math import gcd
from typing import NamedTuple

from flappybird.config import FlappyConfig
from flappybird.course import Course, Physics
from flappybird.errors import ConfigError, unknown_name
from flappybird.game import FlappyGame, State
from flappybird.observation import Observation
from flappybird.solver import Survival, affordable, remembered
from flappybird.units import to_text

FAR = 300
"""Ticks that the planner looks ahead at the most."""

MAX_WORK, MAX_BITS = 4_000_000_000, 160_000_000
"""What the planner spends on one search at the most, see `solver.affordable`: about a tenth of a second, and 20 MB."""

MOST_SEARCHES = 4
"""The most searches for one plan: on what is seen now, from when a new pipe is due, and where pipes leave the screen."""

REMEMBERED = 32_000_000
"""How much memory searches may take from one turn to the next; bytes. At the card's defaults one takes 4 kB."""


class Decision(NamedTuple):
    """What a policy does in the next tick, and why."""

    tap: bool
    thought: str

    def reply(self) -> str:
        """Return the decision in the environment's reply format."""
        return write_reply((self.tap,), self.thought)


def write_reply(taps: tuple[bool, ...], thought: str) -> str:
    """Return a reply in the environment's format; a plan of several ticks is listed tick by tick."""
    if len(taps) == 1:
        listed = "TAP" if taps[0] else ""
    else:
        listed = ", ".join("TAP" if tap else "NOOP" for tap in taps)
    return f"<THINK>{thought}</THINK>\n<ACTIONS>[{listed}]</ACTIONS>"


Policy = Callable[[Observation], Decision]
"""A player: reads an observation of the world it was made for and decides the next tick."""


def make_policy(name: str, config: FlappyConfig, seed: int | None = None) -> Policy:
    """Return the policy `name` for the world `config`.

    Args:
        name: one of `POLICIES`.
        config: the rules that the policy plays by.
        seed: makes `random` repeatable; ignored by the others, which always are.

    Raises:
        ConfigError: there is no such policy.
    """
    if name not in POLICIES:
        raise ConfigError(unknown_name(name, POLICIES, "a policy"))
    return POLICIES[name](config, seed)


def plan(policy: Policy, seen: Observation, config: FlappyConfig, ticks: int) -> tuple[tuple[bool, ...], str]:
    """Return what `policy` would do in the next `ticks` ticks as far as can be seen now, and its thought of the first."""
    first = policy(seen)
    taps = [first.tap]
    if isinstance(policy, Explained):
        return policy.taps(seen, first.tap, ticks), first.thought
    while len(taps) < ticks:
        seen = imagine(seen, taps[-1], config)
        taps.append(policy(seen).tap)
    return tuple(taps), first.thought


# --- the players --------------------------------------------------------------------------------------------------

TAP_CHANCE = 0.15
"""How often `random` taps. Of all fixed chances this one stays aloft longest at the card's defaults: 18 ticks on average."""

FLAP_AHEAD = 8
"""How many ticks ahead `heuristic` imagines its one flap: about the ticks that a pipe takes to pass at the card's defaults."""


def noop(config: FlappyConfig, seed: int | None = None) -> Policy:
    """Never taps."""
    return lambda seen: Decision(False, f"Doing nothing: {_after(seen, False, Physics.of(config))}.")


def chance(config: FlappyConfig, seed: int | None = None) -> Policy:
    """Taps by chance. With a seed, the same observation always gets the same answer."""
    fresh = random.SystemRandom()

    def decide(seen: Observation) -> Decision:
        dice = fresh if seed is None else random.Random(f"{seed}/{seen}")
        tap = dice.random() < TAP_CHANCE
        return Decision(tap, f"By chance {'a tap' if tap else 'no tap'}: {_after(seen, tap, Physics.of(config))}.")

    return decide


def heuristic(config: FlappyConfig, seed: int | None = None) -> Policy:
    """Waits while one later flap still carries the bird on, and flaps when now is the last good moment."""
    return Explained(config, flap_late)


def planner(config: FlappyConfig, seed: int | None = None) -> Policy:
    """Exact search: never does what cannot be survived on the pipes in sight, as long as anything can."""
    return Explained(config, search)


class Choice(NamedTuple):
    """What to do in the next tick, and the reason without the numbers."""

    tap: bool
    why: str


def flap_late(sight: Sight, state: State) -> Choice:
    """The heuristic's choice: the latest flap within `FLAP_AHEAD` ticks that keeps the bird in the air longest."""
    physics, (tick, y, velocity) = sight.physics, state
    bands = sight.bands(tick + 1, tick + FLAP_AHEAD)

    falls = [(y, velocity)]  # the bird after 0, 1, … ticks of waiting, for as long as it lives
    for low, high in bands:
        velocity += physics.gravity
        y += velocity
        if not low <= y <= high:
            break
        falls.append((y, velocity))
    else:
        return Choice(False, f"a flap can wait {FLAP_AHEAD} ticks, so hold")

    best, flap_in = -1, 0
    for wait in reversed(range(len(falls))):
        y, velocity = falls[wait][0], physics.jump
        life = wait
        for low, high in bands[wait:]:
            y += velocity
            if not low <= y <= high:
                break
            velocity += physics.gravity
            life += 1
        if life > best:
            best, flap_in = life, wait
        if life == FLAP_AHEAD:
            break
    if flap_in == 0:
        return Choice(True, "a later flap would be too late or too high, so now")
    return Choice(False, f"a flap can wait {flap_in} tick{'s' * (flap_in > 1)}, so hold")


def search(sight: Sight, state: State, survival: Survival | None = None) -> Choice:
    """The planner's choice; `survival` is `sight.survival(state)` where that is known already."""
    survival = survival or sight.survival(state)
    if survival is None:
        return Choice(flap_late(sight, state).tap, "this world is too fine to search, so as long as it goes")
    hold, tap = survival.keeps(state, False), survival.keeps(state, True)
    if hold and tap:
        # Both live: stay near the middle of the next gap, from where any later one is within reach.
        low = sight.aim - _hop(sight.physics) // 2
        rise = state.y + state.velocity + sight.physics.gravity < low
        return Choice(rise, "both ways live, " + ("rise to the middle" if rise else "hold the middle"))
    if hold or tap:
        return Choice(tap, f"only {'a tap' if tap else 'holding'} lives past the pipes in sight")
    return Choice(flap_late(sight, state).tap, "nothing lives past the pipes in sight, so as long as it goes")


CHOICES: dict[str, Callable[[Sight, State], Choice]] = {"heuristic": flap_late, "planner": search}
"""How those policies choose that know what they do, by name."""


class Explained:
    """A policy that makes these choices and gives the numbers with the reason."""

    def __init__(self, config: FlappyConfig, choose: Callable[[Sight, State], Choice]) -> None:
        self.config, self.physics, self.choose = config, Physics.of(config), choose

    def __call__(self, seen: Observation) -> Decision:
        """Decide the next tick."""
        sight = Sight.of(seen, self.physics)
        tap, why = self.choose(sight, State(seen.tick, seen.y, seen.velocity))
        return Decision(tap, f"{_aim(seen, sight)} {_after(seen, tap, self.physics)}: {why}.")

    def taps(self, seen: Observation, first: bool, ticks: int) -> tuple[bool, ...]:
        """Return what it does in `ticks` ticks, `first` in the first of them; it searches `MOST_SEARCHES` times at the most."""
        taps, until = [first], seen.tick + ticks - 1
        known: Sight | None = None
        survival: Survival | None = None
        searches = 0
        while len(taps) < ticks:
            seen = imagine(seen, taps[-1], self.config)
            sight, state = Sight.of(seen, self.physics, until), State(seen.tick, seen.y, seen.velocity)
            if self.choose is search and not (known and known.holds(sight)):
                survival = sight.survival(state) if searches < MOST_SEARCHES else None
                known, searches = sight, searches + 1
            taps.append((search(sight, state, survival) if survival else flap_late(sight, state)).tap)
        return tuple(taps)


POLICIES: dict[str, Callable[[FlappyConfig, int | None], Policy]] = {
    "noop": noop,
    "random": chance,
    "heuristic": heuristic,
    "planner": planner,
}
"""The built-in policies by name, weakest first."""


def play(name: str, config: FlappyConfig, seed: int, max_ticks: int, dice: int | None = None) -> FlappyGame:
    """Play the whole game `seed` by the policy `name` and return it, ended: the same decisions, without the words.

    Args:
        name: one of `POLICIES`.
        config: the world.
        seed: the course.
        max_ticks: the tick limit.
        dice: the seed of the policy itself, see `make_policy`.
    """
    game = FlappyGame(config, seed, max_ticks=max_ticks)
    if name not in CHOICES:
        policy = make_policy(name, config, dice)
        while game.outcome is None:
            game.step(policy(game.observation()).tap)
        return game

    sight, known_until = Sight.at(game.course, 0)
    planning = name == "planner"
    survival = sight.survival(game.state) if planning else None
    while game.outcome is None:
        if game.tick >= known_until:
            before = sight
            sight, known_until = Sight.at(game.course, game.tick)
            if planning and not before.holds(sight):
                survival = sight.survival(game.state)
        choice = search(sight, game.state, survival) if planning else flap_late(sight, game.state)
        game.step(choice.tap)
    return game


# --- what they see ------------------------------------------------------------------------------------------------


class Sight(NamedTuple):
    """What the pipes on screen say about the ticks to come."""

    physics: Physics
    ahead: tuple[tuple[int, int, int], ...]
    """(tick of appearance, gap y, gap height) of the pipes on screen that are not passed yet, next one first; units."""
    last: int
    """The last tick that no pipe yet unseen can touch."""
    since: int
    """The tick from which on all this can have been seen: the same pipes, and none of them passed."""

    @classmethod
    def of(cls, seen: Observation, physics: Physics, until: int = 0) -> Sight:
        """Return what `seen` shows, under the rules of `physics`; `until` is the last tick of the plan that it is imagined in."""
        # An observation may be made up: no pipe can stand where none has appeared yet.
        pipes = [((physics.world_w - x) // physics.speed, gap_y) for x, gap_y in seen.pipes if x <= physics.world_w]
        coming = [(age, gap_y) for age, gap_y in pipes if age < physics.pass_age]
        ahead = []
        for index, (age, gap_y) in enumerate(coming):
            height = seen.gap_height if index == 0 else physics.gap_height(seen.score + index)
            ahead.append((seen.tick - age, gap_y, height))
        newest = seen.tick - min(pipes)[0] if pipes else None
        return cls._from(physics, seen.tick, tuple(ahead), newest, seen.score, max(seen.tick, until))

    @classmethod
    def at(cls, course: Course, tick: int) -> tuple[Sight, int]:
        """Return what a living bird sees of `course` at `tick`, and the tick up to which it sees nothing else."""
        physics, score, newest = course.physics, course.passed(tick), course.physics.newest(tick)
        ahead = tuple((physics.spawn_tick(number), *course.gap(number)) for number in range(score, newest + 1))
        appeared = physics.spawn_tick(newest)
        on_screen = newest >= 0 and tick - appeared <= physics.last_age
        sight = cls._from(physics, tick, ahead, appeared if on_screen else None, score, tick)
        changes = (physics.spawn_tick(newest + 1), physics.spawn_tick(score) + physics.pass_age)
        return sight, min(changes) if on_screen and appeared + physics.last_age >= min(changes) else tick + 1

    @classmethod
    def _from(
        cls, physics: Physics, tick: int, ahead: tuple[tuple[int, int, int], ...], newest: int | None, score: int, until: int
    ) -> Sight:
        # The next pipe cannot appear before the interval is over; where it could have by now, not before all that is imagined is.
        due = newest + physics.interval if newest is not None else physics.first_spawn
        appears = due if due > tick else until + 1
        last = min(appears + physics.enter_age - 1, (ahead[0][0] if ahead else until) + physics.pass_age + FAR)
        if ahead:
            # Since the newest of the pipes appeared and the one before the next was passed.
            passed = ahead[0][0] - physics.interval + physics.pass_age if score else 0
            since = max(passed, ahead[-1][0])
        else:
            since = tick if score else 0
        return cls(physics, ahead, max(last, tick + 1), min(since, tick))

    def holds(self, later: Sight) -> bool:
        """Whether `later` says nothing new of the ticks to come: at the most, pipes were passed since."""
        passed = len(self.ahead) - len(later.ahead)
        return self.last == later.last and passed >= 0 and self.ahead[passed:] == later.ahead

    def bands(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return where a living bird can be at the ticks `first` to `last`, as far as is known: (low, high) in units."""
        physics = self.physics
        bands = [(physics.low, physics.high)] * (last + 1 - first)
        for appeared, gap_y, height in self.ahead:
            low, high = gap_y - height // 2 + physics.radius, gap_y + height // 2 - physics.radius
            enters, leaves = appeared + physics.enter_age, appeared + physics.leave_age
            for tick in range(max(first, enters), min(last, leaves) + 1):
                lower, upper = bands[tick - first]
                bands[tick - first] = max(low, lower), min(high, upper)
        return bands

    @property
    def aim(self) -> int:
        """The y to fly for: the middle of the next gap, or of the world where none is in sight."""
        return self.ahead[0][1] if self.ahead else 0

    def survival(self, state: State) -> Survival | None:
        """Return the states that survive all ticks that are known, for a bird in `state`; None if that is too much work."""
        # The ys and velocities of a real game lie on the grid of jump and gravity; those of a made-up one may not.
        step = gcd(self.physics.jump, self.physics.gravity)
        grid = 0 if state.y % step == 0 and state.velocity % step == 0 else gcd(state.y, state.velocity)
        # One solution serves all ticks that see the same.
        first, ticks = self.since + 1, self.last - self.since
        if affordable(self.physics, ticks, grid, most=MAX_WORK, bits=MAX_BITS):
            return _survival(self, first, grid)
        return None


@remembered(REMEMBERED)
def _survival(sight: Sight, first: int, grid: int) -> Survival:
    return Survival(sight.physics, sight.bands(first, sight.last), first, grid)


def _hop(physics: Physics) -> int:
    """How far one flap carries up before the bird falls again; units."""
    rises = range(physics.jump, 0, physics.gravity)
    return sum(rises[:FAR])


def imagine(seen: Observation, tap: bool, config: FlappyConfig) -> Observation:
    """Return `seen` one tick later, as far as can be seen now: no new pipe, and no crash."""
    physics = Physics.of(config)
    velocity = physics.jump if tap else seen.velocity + physics.gravity
    pipes = tuple((x - physics.speed, gap_y) for x, gap_y in seen.pipes)
    reach = physics.width + 2 * physics.radius
    passed = sum(2 * (physics.bird_x - x) <= reach < 2 * (physics.bird_x - x + physics.speed) for x, _ in seen.pipes)
    score = seen.score + passed
    return seen._replace(
        tick=seen.tick + 1,
        y=seen.y + velocity,
        velocity=velocity,
        pipes=tuple((x, gap_y) for x, gap_y in pipes if 2 * x + physics.width >= 0),
        score=score,
        gap_height=physics.gap_height(score) if passed else seen.gap_height,
    )


def _after(seen: Observation, tap: bool, physics: Physics) -> str:
    velocity = physics.jump if tap else seen.velocity + physics.gravity
    return f"{'TAP' if tap else 'no TAP'}: velY {to_text(velocity)}, birdY {to_text(seen.y)}->{to_text(seen.y + velocity)}"


def _aim(seen: Observation, sight: Sight) -> str:
    if not sight.ahead:
        return "No pipe ahead."
    _, gap_y, height = sight.ahead[0]
    return f"Gap {to_text(gap_y - height // 2)} to {to_text(gap_y + height // 2)}."
