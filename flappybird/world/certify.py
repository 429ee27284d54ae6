"""Which courses can be flown at all: the solver's question, asked of thousands of courses at once.

`solver.Survival` goes backwards over one course and answers for any state. Here the birds go forwards from tick 0: for
each velocity that a living bird can have, the set of its ys. The sets of many courses lie side by side in one whole
number, so that a tick of all of them costs a few shifts.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course, Physics
from flappybird.world.game import move

_BITS = 2**18
"""About how long the numbers are: 32 kB stay in a processor's cache."""


def impassable(config: FlappyConfig, seeds: Sequence[int], ticks: int = 300) -> list[int]:
    """Return those of `seeds` on whose course no sequence of actions lives to tick `ticks`; exact."""
    lanes = _Lanes(Physics.of(config))
    many = max(_BITS // lanes.width, 1)
    blocked: list[int] = []
    for first in range(0, len(seeds), many):
        some = seeds[first : first + many]
        lived = lanes.lived([Course(config, seed) for seed in some], ticks)
        blocked += [seed for seed, alive in zip(some, lived, strict=True) if not alive]
    return blocked


class _Lanes:
    """Sets of ys, one per course, in one whole number: bit i of a lane is the grid step i above the lowest living bird's y."""

    def __init__(self, physics: Physics) -> None:
        self._jump, self._gravity = physics.jump, physics.gravity
        self._grid = gcd(physics.jump, physics.gravity)
        self._base = -(-physics.low // self._grid)
        self._heights = physics.high // self._grid - self._base + 1
        y, velocity = 0, physics.gravity  # no living bird is faster than one that has fallen through the whole world
        while y >= physics.low - physics.high:
            y, velocity = move(y, velocity, False, physics.jump, physics.gravity)
        # Above its ys a lane has room for one move, so that no bird lands in the next lane.
        room = min(max(physics.jump, -velocity) // self._grid, self._heights)
        self._bytes = -(-(self._heights + room) // 8)
        self.width = 8 * self._bytes
        """Bits of a lane."""

    def lived(self, courses: Sequence[Course], ticks: int) -> list[bool]:
        """Return for each course whether some bird on it is alive at tick `ticks`."""
        flying = {0: self._joined([(0, 0)] * len(courses))}  # the ys of living birds, by velocity
        alive, until = 0, 0
        for tick in range(1, ticks + 1):
            if tick >= until:  # bands change at the same ticks on all courses
                bands = [course.band(tick) for course in courses]
                alive, until = self._joined([(low, high) for low, high, _ in bands]), bands[0].until
            then: dict[int, int] = {}
            every = 0
            for velocity, ys in flying.items():
                every |= ys
                way, faster = move(0, velocity, False, self._jump, self._gravity)
                then[faster] = self._moved(ys, way // self._grid) & alive
            then[self._jump] = then.get(self._jump, 0) | self._moved(every, self._jump // self._grid) & alive
            flying = {velocity: ys for velocity, ys in then.items() if ys}
        some = 0
        for ys in flying.values():
            some |= ys
        size = self._bytes
        lanes = some.to_bytes(size * len(courses), "little")
        return [any(lanes[at : at + size]) for at in range(0, len(lanes), size)]

    def _joined(self, bands: Sequence[tuple[int, int]]) -> int:
        """The sets of all ys from `low` to `high` (units), one per course."""
        lanes = []
        for low, high in bands:
            first, last = -(-low // self._grid) - self._base, high // self._grid - self._base
            lanes.append(((1 << last + 1) - (1 << first) if first <= last else 0).to_bytes(self._bytes, "little"))
        return int.from_bytes(b"".join(lanes), "little")

    def _moved(self, ys: int, by: int) -> int:
        """The sets, each moved `by` grid steps up; what leaves a lane must be masked."""
        if abs(by) > self._heights:
            return 0
        return ys << by if by >= 0 else ys >> -by
