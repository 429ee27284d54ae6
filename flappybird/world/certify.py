"""Which courses can be flown at all: the solver's question, asked of thousands of courses at once.

`solver.Survival` goes backwards over one course and answers for any state. Here the birds go forwards from tick 0, all
that can be alive at a time as sets of bits, one set per ticks since the last TAP, on arrays over the courses.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course, Physics

Sets = NDArray[np.uint64]
"""Sets of ys, (words, courses): bit b of word w is the grid step 64 w + b above the lowest y of a living bird."""


def impassable(config: FlappyConfig, seeds: Sequence[int], ticks: int = 300) -> list[int]:
    """Return those of `seeds` on whose course no sequence of actions lives to tick `ticks`; exact."""
    physics = Physics.of(config)
    grid = gcd(physics.jump, physics.gravity)
    base = -(-physics.low // grid)
    words = (physics.high // grid - base) // 64 + 1
    courses = [Course(config, seed) for seed in seeds]

    velocities = _falls(physics)
    flying: list[Sets] = []  # the ys of birds that have tapped, by ticks since the last TAP
    fallen, velocity = 0, 0  # the bird that never has
    waiting = np.ones(len(courses), bool)  # on which courses it lives
    until = 0
    for tick in range(1, ticks + 1):
        if tick >= until:
            bands = [course.band(tick) for course in courses]
            low, high = np.array([band.low for band in bands]), np.array([band.high for band in bands])
            alive = _between(-(-low // grid) - base, high // grid - base, words)
            until = min((band.until for band in bands), default=ticks)

        jump = physics.jump // grid
        tapping = _shifted(np.bitwise_or.reduce(flying), jump) if flying else np.zeros((words, len(courses)), np.uint64)
        at = fallen // grid - base + jump
        if 0 <= at < 64 * words:
            tapping[at // 64] |= waiting.astype(np.uint64) << np.uint64(at % 64)
        falling = [_shifted(ys, speed // grid) for ys, speed in zip(flying, velocities[1:], strict=False)]
        flying = [ys & alive for ys in (tapping, *falling)]
        velocity += physics.gravity
        fallen += velocity
        waiting &= (low <= fallen) & (fallen <= high)

    lives = waiting
    for ys in flying:
        lives = lives | ys.any(axis=0)
    return [seed for seed, lived in zip(seeds, lives.tolist(), strict=True) if not lived]


def _falls(physics: Physics) -> list[int]:
    """Velocities 0, 1, … ticks after a TAP, up to where a bird has fallen through the whole world."""
    velocities, y, top = [physics.jump], 0, 0
    while top - y <= physics.high - physics.low:
        velocities.append(velocities[-1] + physics.gravity)
        y += velocities[-1]
        top = max(top, y)
    return velocities


def _between(first: NDArray[Any], last: NDArray[Any], words: int) -> Sets:
    """The sets of all steps from `first` to `last`, one per course."""
    every = np.uint64(2**64 - 1)
    sets = np.zeros((words, len(first)), np.uint64)
    for word in range(words):
        low, high = np.maximum(first - 64 * word, 0), np.minimum(last - 64 * word, 63)
        some = low <= high
        sets[word, some] = (every << low[some].astype(np.uint64)) & (every >> (63 - high[some]).astype(np.uint64))
    return sets


def _shifted(sets: Sets, by: int) -> Sets:
    """The sets, each moved `by` grid steps up; what leaves at either end is gone."""
    words, bits = divmod(abs(by), 64)
    moved = np.zeros_like(sets)
    size = len(sets)
    if words >= size:
        return moved
    up = by >= 0
    whole, target = (sets[: size - words], moved[words:]) if up else (sets[words:], moved[: size - words])
    if not bits:
        target[:] = whole
    elif up:
        np.left_shift(whole, np.uint64(bits), out=target)
        target[1:] |= whole[:-1] >> np.uint64(64 - bits)
    else:
        np.right_shift(whole, np.uint64(bits), out=target)
        target[:-1] |= whole[1:] << np.uint64(64 - bits)
    return moved
