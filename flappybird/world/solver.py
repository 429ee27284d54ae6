"""Which states can still be survived: exact, on whole numbers, backwards over a course that is known.

A state is a tick, a y and a velocity. After a TAP the velocity is always the jump impulse, and then falls by gravity, so
a bird that has tapped is described by its y and the ticks since: for each such age the survivable ys are one set of
bits, and going back one tick is a shift. A bird that has not tapped yet flies along one line, and is survivable if some
tick along it can be answered by a TAP that is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from math import gcd

from flappybird.errors import TooMuchWork
from flappybird.world.course import Course, Physics
from flappybird.world.game import State, move

MAX_WORK = 8_000_000_000
"""The most set bits that a solution may go through: ys × ticks since a TAP × ticks. About a quarter of a second."""

MAX_FALL = 10_000
"""No bird falls longer than this before it has crossed the whole world: 1,000 high at a gravity of 0.0001."""

MAX_BITS = 800_000_000
"""The most set bits that a solution may keep: ys × ticks; 100 MB."""

NO_ROOM = -1
"""The room of a state in which nothing can save the bird."""


class Survival:
    """The survivable states of a course between two ticks.

    Args:
        physics: the world.
        bands: (low, high) in units for the ticks `first`, `first` + 1, …: where a living bird can be.
        first: the tick of the first band.
        grid: greatest common divisor of every y and velocity that will be asked for beside those a bird
            reaches from the start; units. 0 for none.

    Surviving means to be alive at the last tick for which there is a band.

    Raises:
        TooMuchWork: the world is too fine, or the ticks too many (`MAX_WORK`, `MAX_BITS`).
    """

    def __init__(self, physics: Physics, bands: Sequence[tuple[int, int]], first: int = 1, grid: int = 0) -> None:
        self.physics = physics
        self.first = first
        self.last = first + len(bands) - 1
        self._bands = bands
        self._grid = gcd(physics.jump, physics.gravity, grid)
        if not affordable(physics, len(bands), grid):
            ys = (physics.high - physics.low) // self._grid + 1
            raise TooMuchWork(f"an exact search over {len(bands)} ticks of {ys} heights each is too much work")
        # Bit i of a set stands for y = (i + base) * grid.
        self._base = -(-physics.low // self._grid)
        self._tapped = self._solve()
        self.size = sum(map(sys.getsizeof, self._tapped)) + sys.getsizeof(bands) + 8 * len(bands)
        """About how much memory this takes; bytes."""

    @classmethod
    def of(cls, course: Course, last: int) -> Survival:
        """Return the survivable states of `course` from its beginning to tick `last`. Raises TooMuchWork, see `Survival`."""
        return cls(course.physics, bands(course, 1, last))

    def _set(self, low: int, high: int) -> int:
        """The set of all ys from `low` to `high`."""
        first = max(-(-low // self._grid) - self._base, 0)
        last = high // self._grid - self._base
        return ((1 << last + 1) - 1) >> first << first if last >= first else 0

    def _solve(self) -> list[int]:
        """Return, for each tick from `first`, the survivable ys of a bird that has tapped in that tick."""
        velocities = [velocity // self._grid for velocity in _falls(self.physics, len(self._bands))]
        jump = velocities[0]
        tapped: list[int] = []
        alive: list[int] = []  # survivable ys at the tick after, by ticks since the TAP
        for low, high in reversed(self._bands):
            band = self._set(low, high)
            if not tapped:
                alive = [band] * len(velocities)
            else:
                tap = alive[0] >> jump
                fall = [after >> v if v >= 0 else after << -v for after, v in zip(alive[1:], velocities[1:], strict=True)]
                alive = [band & (tap | moved) for moved in fall] + [band & tap]
            tapped.append(alive[0])
        tapped.reverse()
        return tapped

    def survives(self, state: State) -> bool:
        """Whether a bird that is alive in `state` can live to the last tick. Ys and velocities must lie on the grid."""
        tick, y, velocity = state
        jump, gravity = self.physics.jump, self.physics.gravity
        while tick < self.last:
            tick += 1
            if self.lands(tick, y + jump):
                return True
            y, velocity = move(y, velocity, False, jump, gravity)
            if not self.inside(tick, y):
                return False
        return True

    def lands(self, tick: int, y: int) -> bool:
        """Whether a bird that is at `y` at `tick`, having tapped in it, is alive and can live on to the last tick."""
        index = y // self._grid - self._base
        return index >= 0 and bool(self._tapped[tick - self.first] >> index & 1)

    def inside(self, tick: int, y: int) -> bool:
        """Whether a bird at `y` is alive at `tick`."""
        low, high = self._bands[tick - self.first]
        return low <= y <= high

    def room(self, state: State) -> int:
        """Return how far above and below `state` a bird as fast could be, and still live to the last tick; units.

        The smaller of the two ways to where nothing could save it; `NO_ROOM` where nothing can save it in `state` itself.
        """
        alive = self._alive(state.tick, state.velocity)
        index = state.y // self._grid - self._base
        if index < 0 or not alive >> index & 1:
            return NO_ROOM
        higher, lower = alive >> index, ~alive & ((1 << index) - 1)
        above = (~higher & (higher + 1)).bit_length() - 2
        return min(above, index - lower.bit_length()) * self._grid

    def _alive(self, tick: int, velocity: int) -> int:
        """Return the survivable ys of a bird that is this fast at `tick`, as a set."""
        physics, grid = self.physics, self._grid
        low, high = self._bands[tick - self.first] if tick >= self.first else (physics.low, physics.high)
        falling, fallen, alive = self._set(low, high), 0, 0
        for after in range(tick + 1 - self.first, len(self._bands)):
            alive |= falling & _moved(self._tapped[after], (fallen + physics.jump) // grid)
            velocity += physics.gravity
            fallen += velocity
            falling &= _moved(self._set(*self._bands[after]), fallen // grid)
            if not falling:
                return alive
        return alive | falling

    def after(self, state: State, tap: bool) -> State | None:
        """Return the state that follows `state`, None where the bird dies. The tick must be before the last."""
        then = state.then(tap, self.physics)
        return then if self.inside(then.tick, then.y) else None

    def keeps(self, state: State, tap: bool) -> bool:
        """Whether the bird can still live to the last tick after this action in `state`."""
        then = self.after(state, tap)
        return then is not None and self.survives(then)


def _moved(ys: int, by: int) -> int:
    """Return the set of ys from which moving up `by` steps of the grid leads into the set `ys`."""
    return ys >> by if by >= 0 else ys << -by


def work(physics: Physics, ticks: int, grid: int = 0) -> tuple[int, int]:
    """Return the set bits that a `Survival` of `ticks` ticks goes through, and those that it keeps; `grid` as there."""
    ys = (physics.high - physics.low) // gcd(physics.jump, physics.gravity, grid) + 1
    return ys * ticks * len(_falls(physics, min(ticks, MAX_FALL))), ys * ticks


def affordable(physics: Physics, ticks: int, grid: int = 0, *, most: int = MAX_WORK, bits: int = MAX_BITS) -> bool:
    """Whether a `Survival` of `ticks` ticks goes through no more than `most` and keeps no more than `bits`."""
    through, kept = work(physics, ticks, grid)
    return through <= most and kept <= bits


@lru_cache(maxsize=32)  # up to 400 kB each
def _falls(physics: Physics, ticks: int) -> list[int]:
    """Velocities 0, 1, … ticks after a TAP, up to where a bird has crossed the whole world or the ticks end."""
    y, velocity = top, _ = move(0, 0, True, physics.jump, physics.gravity)
    velocities = [velocity]
    while top - y <= physics.high - physics.low and len(velocities) <= ticks:
        y, velocity = move(y, velocity, False, physics.jump, physics.gravity)
        velocities.append(velocity)
        top = max(top, y)
    return velocities


def bands(course: Course, first: int, last: int) -> list[tuple[int, int]]:
    """Return where a living bird can be at the ticks `first` to `last` of `course`: (low, high) in units."""
    found: list[tuple[int, int]] = []
    tick = first
    while tick <= last:
        low, high, until = course.band(tick)
        found += [(low, high)] * (min(until, last + 1) - tick)
        tick = until
    return found


def passable(course: Course, last: int) -> bool:
    """Whether some sequence of actions lives on `course` to tick `last`. Raises TooMuchWork, see `Survival`."""
    return Survival.of(course, last).survives(State())
