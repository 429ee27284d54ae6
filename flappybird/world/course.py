"""The course of one seed: pipe number i, the same whatever happened before it was asked for.

A pipe is a number and an age; where it stands follows from its age, and its gap from (seed, number). Nothing moves
and nothing accumulates, so every engine that reads this timetable sees the same pipes at the same tick.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from flappybird.world.config import FlappyConfig
from flappybird.world.seeds import check_seed
from flappybird.world.units import HUNDREDTH, to_units

MAX_TICK = 2**40
"""No course is asked for ticks past this."""

KEPT_GAPS = 256
"""Gaps that a course keeps: those on screen are asked for at every tick."""

_MASK = 2**64 - 1
_GOLDEN = 0x9E3779B97F4A7C15


def mix64(number: int) -> int:
    """Return 64 well-mixed bits of `number`: the output function of SplitMix64.

    Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.
    """
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    number = (number ^ number >> 27) * 0x94D049BB133111EB & _MASK
    return number ^ number >> 31


def course_key(seed: int) -> int:
    """Return what the gaps of the course `seed` are drawn from."""
    return mix64(seed + _GOLDEN & _MASK)


def draw(key: int, number: int, choices: int) -> int:
    """Return a number from 0 to `choices` - 1, each as likely: the draw of pipe `number` of the course with this key.

    Every engine draws here; one whose numbers have 64 bits passes all three as unsigned ones. Hence no `number + 1`: a signed
    1 would turn the sum into a fraction.
    """
    bits = mix64(key + number * _GOLDEN + _GOLDEN & _MASK) >> 32
    return bits * choices >> 32


class Gap(NamedTuple):
    """The opening of a pipe, in units: its centre and its height."""

    y: int
    height: int


class Pipe(NamedTuple):
    """A pipe on screen, in units: its number (from 0), the x of its centre, the y of its gap's centre, its gap's height."""

    number: int
    x: int
    gap_y: int
    gap_height: int


class Band(NamedTuple):
    """Where a living bird's centre can be: `low` ≤ y ≤ `high` (units), from the tick asked for until before tick `until`."""

    low: int
    high: int
    until: int


class Physics(NamedTuple):
    """A config in units and ticks. Ages are ticks since a pipe appeared."""

    low: int
    """Lowest y of a living bird outside pipes."""
    high: int
    """Highest y of a living bird outside pipes."""
    jump: int
    gravity: int
    world_w: int
    bird_x: int
    radius: int
    width: int
    speed: int
    first_spawn: int
    interval: int
    enter_age: int
    """Age at which a pipe first touches the bird's x range."""
    leave_age: int
    """Age at which it touches it for the last time."""
    pass_age: int
    """Age at which its right edge first is left of the bird's left edge."""
    last_age: int
    """Age at which it is on screen for the last time: its right edge is not yet left of x = 0."""
    gap_choices: int
    """The number of gap centres to draw from, 0.01 apart, the middle one at y = 0."""
    easy_height: int
    base_height: int
    easy_pipes: int
    ramp_pipes: int

    @staticmethod
    @lru_cache(maxsize=256)
    def of(config: FlappyConfig) -> Physics:
        """Return the physics of `config`."""
        world_w, world_h, bird_x = to_units(config.world_w), to_units(config.world_h), to_units(config.bird_x)
        radius, width, speed = to_units(config.bird_radius), to_units(config.pipe_width), to_units(config.pipe_speed)
        # In half units, so that half a width or height is whole. A pipe of age a has its centre at world_w - a*speed.
        way, reach, step = 2 * (world_w - bird_x), width + 2 * radius, 2 * speed
        high = (world_h - 2 * radius - 1) // 2  # the bounds kill at equality
        return Physics(
            low=-high,
            high=high,
            jump=to_units(config.jump_impulse),
            gravity=to_units(config.gravity),
            world_w=world_w,
            bird_x=bird_x,
            radius=radius,
            width=width,
            speed=speed,
            first_spawn=config.first_spawn_interval,
            interval=config.pipe_spawn_interval,
            enter_age=(way - reach) // step + 1,  # the first with x - bird_x < reach/2
            leave_age=-(-(way + reach) // step) - 1,  # the last with bird_x - x < reach/2
            pass_age=(way + reach) // step + 1,  # the first with bird_x - x > reach/2
            last_age=(2 * world_w + width) // step,  # the last with x + width/2 >= 0
            gap_choices=2 * (to_units(config.gap_center_offset) // HUNDREDTH) + 1,
            easy_height=to_units(config.easy_gap_height),
            base_height=to_units(config.base_gap_height),
            easy_pipes=config.easy_mode_pipes,
            ramp_pipes=config.ramp_pipes,
        )

    def spawn_tick(self, number: int) -> int:
        """Return the tick in which pipe `number` appears."""
        return self.first_spawn + number * self.interval

    def enter_tick(self, number: int) -> int:
        """Return the first tick in which pipe `number` touches the bird's x range."""
        return self.first_spawn + number * self.interval + self.enter_age

    def leave_tick(self, number: int) -> int:
        """Return the first tick in which it no longer does."""
        return self.first_spawn + number * self.interval + self.leave_age + 1

    def passed(self, x: int) -> bool:
        """Whether a pipe whose centre is at `x` has been passed: its right edge is left of the bird's left edge."""
        return 2 * (self.bird_x - x) > self.width + 2 * self.radius

    def newest(self, tick: int, age: int = 0) -> int:
        """Return the number of the newest pipe that is at least `age` ticks old at `tick`, -1 where there is none."""
        number = (tick - age - self.first_spawn) // self.interval
        return number if number > -1 else -1  # not max(): this is asked at every change of a band

    def gap_y(self, drawn: int) -> int:
        """Return the gap's centre (units) that a draw stands for."""
        return (drawn - self.gap_choices // 2) * HUNDREDTH

    def gap_height(self, number: int) -> int:
        """Return the gap height (units) of pipe `number`: easy, linear over the ramp, then base; rounded to 0.01, halves up."""
        done = min(number - self.easy_pipes, self.ramp_pipes)
        if done < 0:
            return self.easy_height
        if done == self.ramp_pipes:
            return self.base_height
        change = (self.base_height - self.easy_height) // HUNDREDTH
        rise = (2 * change * done + self.ramp_pipes) // (2 * self.ramp_pipes)
        return self.easy_height + rise * HUNDREDTH


class Course:
    """All pipes of one seed under one config.

    Args:
        config: the world.
        seed: whole number from 0 to `MAX_SEED`.

    Raises:
        ConfigError: the seed is no such number.
    """

    __slots__ = ("_gaps", "_key", "config", "physics", "seed")

    def __init__(self, config: FlappyConfig, seed: int) -> None:
        self.config = config
        self.seed = check_seed(seed)
        self.physics = Physics.of(config)
        self._key = course_key(self.seed)
        self._gaps: dict[int, Gap] = {}

    def __repr__(self) -> str:
        return f"Course(seed={self.seed}, config={self.config.changed()})"

    def gap(self, number: int) -> Gap:
        """Return the gap of pipe `number`: the centre drawn from (seed, number), the height from the ramp."""
        gap = self._gaps.get(number)
        if gap is None:
            physics = self.physics
            gap = Gap(physics.gap_y(draw(self._key, number, physics.gap_choices)), physics.gap_height(number))
            if len(self._gaps) >= KEPT_GAPS:
                self._gaps.clear()
            self._gaps[number] = gap
        return gap

    def pipe(self, number: int, tick: int) -> Pipe:
        """Return pipe `number` as it stands at `tick`."""
        age = tick - self.physics.spawn_tick(number)
        return Pipe(number, self.physics.world_w - age * self.physics.speed, *self.gap(number))

    def visible(self, tick: int) -> list[Pipe]:
        """Return the pipes on screen at `tick`, left to right, passed ones too."""
        physics = self.physics
        numbers = range(physics.newest(tick, physics.last_age + 1) + 1, physics.newest(tick) + 1)
        x = physics.world_w - (tick - physics.spawn_tick(numbers.start)) * physics.speed
        apart = physics.interval * physics.speed
        return [Pipe(number, x + index * apart, *self.gap(number)) for index, number in enumerate(numbers)]

    def passed(self, tick: int) -> int:
        """Return how many pipes a bird that lives at `tick` has passed; also the number of the next pipe."""
        return self.physics.newest(tick, self.physics.pass_age) + 1

    def touching(self, tick: int) -> range:
        """Return the numbers of the pipes that are in the bird's x range at `tick`."""
        physics = self.physics
        oldest = physics.newest(tick, physics.leave_age + 1) + 1
        return range(oldest, physics.newest(tick, physics.enter_age) + 1)

    def band(self, tick: int) -> Band:
        """Return where the bird can live at `tick`: inside the gaps it is passing, off floor and ceiling."""
        # Asked every few ticks of every game: compares instead of calling min and max, and makes no Gap.
        physics = self.physics
        low, high = physics.low, physics.high
        touching = self.touching(tick)
        for number in touching:
            middle = physics.gap_y(draw(self._key, number, physics.gap_choices))
            room = physics.gap_height(number) // 2 - physics.radius
            if middle - room > low:
                low = middle - room
            if middle + room < high:
                high = middle + room
        enters, leaves = physics.enter_tick(touching.stop), physics.leave_tick(touching.start)
        return Band(low, high, enters if enters < leaves else leaves)


def gap_height(config: FlappyConfig, number: int) -> int:
    """Return the gap height (units) of pipe `number` under `config`."""
    return Physics.of(config).gap_height(number)
