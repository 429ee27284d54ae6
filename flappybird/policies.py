"""The built-in players: an observation in, an action and a short true thought out.

A policy sees what a model sees, the observation and the rules of the world, and nothing else: neither the seed nor pipes
that are not on screen. It keeps nothing from one turn to the next, so any number of games can share it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from flappybird.config import FlappyConfig
from flappybird.course import Physics, gap_height
from flappybird.errors import ConfigError, unknown_name
from flappybird.game import State
from flappybird.observation import Observation
from flappybird.solver import Survival
from flappybird.units import to_text

FAR = 300
"""Ticks that the planner looks ahead at the most."""


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
    first = decision = policy(seen)
    taps = [decision.tap]
    while len(taps) < ticks:
        seen = imagine(seen, taps[-1], config)
        decision = policy(seen)
        taps.append(decision.tap)
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
    physics = Physics.of(config)

    def decide(seen: Observation) -> Decision:
        sight = Sight.of(seen, config)
        best, flap_in = -1, 0
        state = State(seen.tick, seen.y, seen.velocity)
        for wait in range(FLAP_AHEAD):
            life = wait + sight.life(State(state.tick + 1, state.y + physics.jump, physics.jump), FLAP_AHEAD - wait)
            if life >= best:
                best, flap_in = life, wait
            velocity = state.velocity + physics.gravity
            state = State(state.tick + 1, state.y + velocity, velocity)
            if not sight.inside(state.tick, state.y):
                break
        else:
            flap_in = FLAP_AHEAD
        tap = flap_in == 0
        why = "a later flap would be too late or too high, so now" if tap else f"a flap can wait {flap_in} ticks, so hold"
        return Decision(tap, f"{_aim(seen, sight)} {_after(seen, tap, physics)}: {why}.")

    return decide


def planner(config: FlappyConfig, seed: int | None = None) -> Policy:
    """Exact search: never does what cannot be survived on the pipes in sight, as long as anything can."""
    physics, rule = Physics.of(config), heuristic(config)

    def decide(seen: Observation) -> Decision:
        sight = Sight.of(seen, config)
        survival = sight.survival(seen)
        state = State(seen.tick, seen.y, seen.velocity)
        hold, tap = survival.keeps(state, False), survival.keeps(state, True)
        if hold and tap:
            # Both live: stay near the middle of the next gap, from where any later one is within reach.
            low = sight.aim(seen) - _hop(physics) // 2
            choice = seen.y + seen.velocity + physics.gravity < low
            why = "both ways live, " + ("rise to the middle" if choice else "hold the middle")
        elif hold or tap:
            choice, why = tap, f"only {'a tap' if tap else 'holding'} lives past the pipes in sight"
        else:
            choice, why = rule(seen).tap, "nothing lives past the pipes in sight, so as long as it goes"
        return Decision(choice, f"{_aim(seen, sight)} {_after(seen, choice, physics)}: {why}.")

    return decide


POLICIES: dict[str, Callable[[FlappyConfig, int | None], Policy]] = {
    "noop": noop,
    "random": chance,
    "heuristic": heuristic,
    "planner": planner,
}
"""The built-in policies by name, weakest first."""


# --- what they see ------------------------------------------------------------------------------------------------


class Sight(NamedTuple):
    """What the pipes on screen say about the ticks to come."""

    physics: Physics
    ahead: tuple[tuple[int, int, int], ...]
    """(tick of appearance, gap y, gap height) of the pipes on screen that are not passed yet, next one first; units."""
    last: int
    """The last tick that no pipe yet unseen can touch."""

    @classmethod
    def of(cls, seen: Observation, config: FlappyConfig) -> Sight:
        """Return what `seen` shows, under the rules of `config`."""
        physics = Physics.of(config)
        ages = [(physics.world_w - x) // physics.speed for x, _ in seen.pipes]
        coming = [(age, gap_y) for age, (_, gap_y) in zip(ages, seen.pipes, strict=True) if age < physics.pass_age]
        ahead = []
        for index, (age, gap_y) in enumerate(coming):
            height = seen.gap_height if index == 0 else gap_height(config, seen.score + index)
            ahead.append((seen.tick - age, gap_y, height))
        newest = seen.tick - min(ages) if ages else None
        # The next pipe cannot appear before the interval is over; before the first one, not before the next tick.
        appears = max(seen.tick + 1, newest + physics.interval) if newest is not None else max(seen.tick + 1, physics.first_spawn)
        last = min(appears + physics.enter_age - 1, (ahead[0][0] if ahead else seen.tick) + physics.pass_age + FAR)
        return cls(physics, tuple(ahead), max(last, seen.tick + 1))

    def band(self, tick: int) -> tuple[int, int]:
        """Return where a living bird can be at `tick`, as far as is known: (low, high) in units."""
        low, high = self.physics.low, self.physics.high
        for appeared, gap_y, height in self.ahead:
            if self.physics.enter_age <= tick - appeared <= self.physics.leave_age:
                low = max(low, gap_y - height // 2 + self.physics.radius)
                high = min(high, gap_y + height // 2 - self.physics.radius)
        return low, high

    def inside(self, tick: int, y: int) -> bool:
        """Whether a bird at `y` is alive at `tick`, as far as is known."""
        low, high = self.band(tick)
        return low <= y <= high

    def life(self, state: State, ticks: int) -> int:
        """Return how many of the next `ticks` states of a bird that no longer taps are alive, from `state` on."""
        tick, y, velocity = state
        for lived in range(ticks):
            if not self.inside(tick, y):
                return lived
            tick, velocity = tick + 1, velocity + self.physics.gravity
            y += velocity
        return ticks

    def aim(self, seen: Observation) -> int:
        """Return the y to fly for: the middle of the next gap, or of the world where none is in sight."""
        return self.ahead[0][1] if self.ahead else 0

    def survival(self, seen: Observation) -> Survival:
        """Return the states that survive all ticks that are known."""
        grid = seen.y | seen.velocity  # ys and velocities of a real game lie on the grid of jump and gravity anyway
        step = grid and _grid(seen.y, seen.velocity, self.physics)
        return _survival(self, min(seen.tick + 1, self._known_since(seen.tick)), step)

    def _known_since(self, tick: int) -> int:
        if not self.ahead:
            return 1 if tick < self.physics.first_spawn else tick + 1
        # The same pipes are in sight, and none of them passed, at least since the newest of them appeared and
        # the one before the next was passed: one solution serves all those ticks.
        before = self.ahead[0][0] - self.physics.interval
        passed = before + self.physics.pass_age if before >= self.physics.first_spawn else 0
        return max(passed, self.ahead[-1][0]) + 1


@lru_cache(maxsize=2048)
def _survival(sight: Sight, first: int, grid: int) -> Survival:
    return Survival(sight.physics, [sight.band(tick) for tick in range(first, sight.last + 1)], first, grid)


def _grid(y: int, velocity: int, physics: Physics) -> int:
    from math import gcd

    step = gcd(physics.jump, physics.gravity)
    return 0 if y % step == 0 and velocity % step == 0 else gcd(y, velocity)


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
        gap_height=gap_height(config, score) if passed else seen.gap_height,
    )


def _after(seen: Observation, tap: bool, physics: Physics) -> str:
    velocity = physics.jump if tap else seen.velocity + physics.gravity
    return f"{'TAP' if tap else 'no TAP'}: velY {to_text(velocity)}, birdY {to_text(seen.y)}->{to_text(seen.y + velocity)}"


def _aim(seen: Observation, sight: Sight) -> str:
    if not sight.ahead:
        return "No pipe ahead."
    _, gap_y, height = sight.ahead[0]
    return f"Gap {to_text(gap_y - height // 2)} to {to_text(gap_y + height // 2)}."
