"""The built-in players: an observation in, an action and a short true thought out.

A policy sees what a model sees, the observation and the rules of the world, and nothing else: neither the seed nor pipes
that are not on screen. It keeps nothing from one turn to the next, so any number of games can share it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from flappybird.errors import ConfigError, unknown_name
from flappybird.players.sight import FAR, Sight, imagine
from flappybird.protocol.reply import write_reply
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Physics
from flappybird.world.game import State, move
from flappybird.world.observation import Observation
from flappybird.world.solver import Survival
from flappybird.world.units import to_text

MOST_SEARCHES = 4
"""The most searches for one plan: on what is seen now, from when a new pipe is due, and where pipes leave the screen."""


class Decision(NamedTuple):
    """What a policy does in the next tick, and why."""

    tap: bool
    thought: str

    def reply(self) -> str:
        """Return the decision in the environment's reply format."""
        return write_reply((self.tap,), self.thought)


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
        y, velocity = move(y, velocity, False, physics.jump, physics.gravity)
        if not low <= y <= high:
            break
        falls.append((y, velocity))
    else:
        return Choice(False, f"a flap can wait {FLAP_AHEAD} ticks, so hold")

    best, flap_in = -1, 0
    for wait in reversed(range(len(falls))):
        (y, velocity), tap = falls[wait], True
        life = wait
        for low, high in bands[wait:]:
            y, velocity = move(y, velocity, tap, physics.jump, physics.gravity)
            if not low <= y <= high:
                break
            tap = False
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
        rise = state.then(False, sight.physics).y < low
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


# --- what they see ------------------------------------------------------------------------------------------------


def _hop(physics: Physics) -> int:
    """How far one flap carries up before the bird falls again; units."""
    rises = range(physics.jump, 0, physics.gravity)
    return sum(rises[:FAR])


def _after(seen: Observation, tap: bool, physics: Physics) -> str:
    y, velocity = move(seen.y, seen.velocity, tap, physics.jump, physics.gravity)
    return f"{'TAP' if tap else 'no TAP'}: velY {to_text(velocity)}, birdY {to_text(seen.y)}->{to_text(y)}"


def _aim(seen: Observation, sight: Sight) -> str:
    if not sight.ahead:
        return "No pipe ahead."
    _, gap_y, height = sight.ahead[0]
    return f"Gap {to_text(gap_y - height // 2)} to {to_text(gap_y + height // 2)}."
