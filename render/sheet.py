"""Whole episodes on one sheet: a strip for each, its path through the pipes as one long picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flappybird.errors import ConfigError
from flappybird.world.units import UNITS, to_units
from render.colors import ALARM, BODY, FAINT, GRASS, INK, PAPER, PIPE, PIPE_EDGE, SAID, SKY, SOIL
from render.frames import Track
from render.lettering import clean, line_height, shorten, write
from render.scene import Frame
from render.sdl import pygame

WIDEST = 8_000
"""Pixels that a strip is wide at most: of a longer episode, time is squeezed."""

MOST = 400
"""More strips do not go on one sheet."""

TITLE = 14
"""Size of the letters above a strip."""


def sheet(tracks: Sequence[Track], names: Sequence[str] = (), height: int = 120) -> Frame:
    """Return one strip per episode, all to one scale: uint8, (height, width, 3).

    Args:
        tracks: the episodes.
        names: what is written above each; the player if not given.
        height: of a strip, in pixels.

    Raises:
        ConfigError: there are none, or too many.
    """
    if not 1 <= len(tracks) <= MOST:
        raise ConfigError(f"a sheet of {len(tracks)} episodes: must be from 1 to {MOST}")
    # Pixels per tick and per unit of height; the aspect is the world's unless an episode is too long for it.
    per_tick = min(
        min(height / track.course.config.world_h * track.course.physics.speed / UNITS for track in tracks),
        *[WIDEST / max(track.last, 1) for track in tracks],
    )
    widths = [max(round(track.last * per_tick) + height // 2, height) for track in tracks]
    row, width = height + line_height(TITLE) + 10, max(*widths, 320)
    pixels: Frame = np.empty((row * len(tracks) + 10, width + 20, 3), np.uint8)
    pixels[:] = PAPER
    page = pygame.image.frombuffer(pixels, (width + 20, len(pixels)), "RGB")
    for index, track in enumerate(tracks):
        y = 6 + index * row
        name = clean(names[index]) if index < len(names) else f"{clean(track.name)}, seed {track.course.seed}"
        title = f"{name}: {track.score(track.last)} pipes. {track.outcome.caption}"
        page.blit(write(shorten(title, TITLE, width), TITLE, SAID), (10, y))
        page.blit(_strip(track, widths[index], height, per_tick), (10, y + line_height(TITLE) + 2))
    return pixels


def _strip(track: Track, width: int, height: int, per_tick: float) -> Any:
    """One episode, drawn twice as large and shrunk: the bird flies to the right, past pipes that stand still."""
    many = 2
    physics, foot = track.course.physics, max(height // 16, 2) * many
    high = height * many - foot
    big = pygame.Surface((width * many, height * many), 0, 24)
    big.fill(SKY[1])
    big.fill(SKY[0], (0, 0, width * many, max(high // 60, 1)))
    scale = high / to_units(track.course.config.world_h)

    def x(tick: float) -> float:
        return tick * per_tick * many

    def y(units: float) -> float:
        return high / 2 - units * scale

    # A pipe stands where the bird meets its centre; its width is what the bird needs to pass it.
    half = physics.width / physics.speed / 2
    number = 0
    while True:
        middle = physics.spawn_tick(number) + (physics.world_w - physics.bird_x) / physics.speed
        if x(middle - half) > width * many:
            break
        gap = track.course.gap(number)
        left, wide = round(x(middle - half)), max(round(x(2 * half)), 2)
        for top, bottom in ((0.0, y(gap.y + gap.height / 2)), (y(gap.y - gap.height / 2), float(high))):
            rect = pygame.Rect(left, round(top), wide, round(bottom) - round(top))
            pygame.draw.rect(big, PIPE[1][1], rect)
            pygame.draw.rect(big, PIPE_EDGE, rect, many)
        number += 1
    big.fill(GRASS[0], (0, high, width * many, foot))
    big.fill(SOIL[0], (0, high + foot // 3, width * many, foot))

    path = [(x(tick), y(track.state(tick).y)) for tick in range(track.last + 1)]
    if len(path) > 1:
        pygame.draw.lines(big, INK, False, path, 4 * many)
        pygame.draw.lines(big, BODY, False, path, 2 * many)
    for tick in track.invalid_ticks():
        pygame.draw.circle(big, ALARM, path[tick], 2 * many)
    crashed = track.outcome.reason.crashed
    pygame.draw.circle(big, INK, path[-1], 5 * many)
    pygame.draw.circle(big, ALARM if crashed else BODY, path[-1], 4 * many)
    for at in range(0, track.last + 1, 50):
        big.fill(FAINT, (round(x(at)), high, many, foot))
    return pygame.transform.smoothscale(big, (width, height))
