"""What the pipes on screen say about the ticks to come."""

from __future__ import annotations

from math import gcd
from typing import NamedTuple

from flappybird.system.memory import remembered
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course, Physics
from flappybird.world.game import State, move
from flappybird.world.observation import Observation
from flappybird.world.solver import Survival, affordable

FAR = 300
"""Ticks that the planner looks ahead at the most."""

MAX_WORK, MAX_BITS = 4_000_000_000, 160_000_000
"""What the planner spends on one search at the most, see `solver.affordable`: about a tenth of a second, and 20 MB."""

REMEMBERED = 32_000_000
"""How much memory searches may take from one turn to the next; bytes. At the card's defaults one takes 4 kB."""


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
        pipes = [((physics.world_w - x) // physics.speed, x, gap_y) for x, gap_y in seen.pipes if x <= physics.world_w]
        ahead = []
        for index, (age, _, gap_y) in enumerate(pipe for pipe in pipes if not physics.passed(pipe[1])):
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


def imagine(seen: Observation, tap: bool, config: FlappyConfig) -> Observation:
    """Return `seen` one tick later, as far as can be seen now: no new pipe, and no crash."""
    physics = Physics.of(config)
    y, velocity = move(seen.y, seen.velocity, tap, physics.jump, physics.gravity)
    pipes = tuple((x - physics.speed, gap_y) for x, gap_y in seen.pipes)
    passed = sum(physics.passed(x - physics.speed) and not physics.passed(x) for x, _ in seen.pipes)
    score = seen.score + passed
    return seen._replace(
        tick=seen.tick + 1,
        y=y,
        velocity=velocity,
        pipes=tuple((x, gap_y) for x, gap_y in pipes if 2 * x + physics.width >= 0),
        score=score,
        gap_height=physics.gap_height(score) if passed else seen.gap_height,
    )
