"""What both environments take and show: the world, the space of observations, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from flappybird.episodes.arguments import world_of
from flappybird.errors import ConfigError, show, unknown_name
from flappybird.world.config import FlappyConfig
from flappybird.world.course import MAX_TICK, Course, Physics
from flappybird.world.game import State
from flappybird.world.units import UNITS

Observed = Literal["numbers", "pixels"]


def make_config(
    difficulty: str | None = None,
    config: FlappyConfig | Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> FlappyConfig:
    """Return the world that a door's arguments stand for: `config`, or the level `difficulty`, under `overrides`.

    Raises:
        ConfigError: both are given, there is no such level, or the result is not a legal config.
    """
    return FlappyConfig.of(world_of(difficulty, config), overrides)


def number_space(config: FlappyConfig) -> spaces.Box:
    """Return the space of observations as numbers, see `batch.FEATURES`; it also holds the last one, after a crash."""
    physics = Physics.of(config)
    speed = top_speed(physics)
    away, behind = physics.world_w - physics.bird_x, (physics.width + 2 * physics.radius) // 2 + physics.speed
    tallest = max(physics.easy_height, physics.base_height)
    low = [-physics.high - speed, -speed, *[-behind, -physics.high, 0] * 2]
    high = [physics.high + speed, speed, *[away, physics.high, tallest] * 2]
    return spaces.Box(np.array(low, np.float32) / UNITS, np.array(high, np.float32) / UNITS, dtype=np.float32)


def top_speed(physics: Physics) -> int:
    """Return a speed (units per tick) that no bird exceeds, up or down, not even in its crash."""
    fallen = 0  # ticks in which a bird at rest can fall through the whole world
    while -physics.gravity * fallen * (fallen + 1) // 2 <= 2 * physics.high:
        fallen += 1
    return max(physics.jump, -physics.gravity * (fallen + 1))


def check_observed(observe: object) -> None:
    if observe not in ("numbers", "pixels"):
        raise ConfigError(f"observe: {unknown_name(observe, ('numbers', 'pixels'), 'a kind of observation')}")


def check_options(options: Any, name: str) -> None:
    for key in options or {}:
        if key != name:
            raise ConfigError(f"options: {unknown_name(key, (name,), 'an option of this reset')}")


def checked_size(size: Any) -> tuple[int, int]:
    try:
        width, height = map(index, size)
    except (TypeError, ValueError):
        width = height = 0
    if width < 1 or height < 1 or bool in map(type, size):
        raise ConfigError(f"size = {show(size)}: must be width and height in pixels, such as (576, 480)")
    return width, height


def checked_state(course: Course, state: Any, max_turns: int | None) -> State:
    """Return `state`. Raises ConfigError where no living bird of this course can be in it."""
    try:
        tick, y, velocity = map(index, state)
    except (TypeError, ValueError):
        raise ConfigError(f"state = {show(state)}: must be a game.State: tick, y and velocity, whole numbers of units") from None
    last, speed = MAX_TICK if max_turns is None else max_turns - 1, top_speed(course.physics)
    if not 0 <= tick <= last:
        raise ConfigError(f"state: tick = {tick}: must be from 0 to {last}, before the tick limit")
    low, high, _ = course.band(tick)
    if not low <= y <= high:
        raise ConfigError(
            f"state: y = {y}: must be from {low} to {high} units at tick {tick} of course {course.seed}, or it is a crash"
        )
    if abs(velocity) > speed:
        raise ConfigError(
            f"state: velocity = {velocity}: must be from {-speed} to {speed} units per tick, the fastest of this world"
        )
    return State(tick, y, velocity)
