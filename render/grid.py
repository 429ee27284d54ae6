"""Several episodes side by side in one picture, in step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from flappybird.errors import ConfigError
from render.colors import FAINT, PAPER
from render.frames import Pace, Track
from render.layout import DEFAULT_SIZE, Box, Size, View, check_size
from render.lettering import clean, measure, shorten, write
from render.moment import Overlay
from render.scene import Frame
from render.sdl import pygame


def grid_frames(tracks: Sequence[Track], pace: Pace, size: Size = DEFAULT_SIZE, overlay: Overlay = Overlay()) -> Iterator[Frame]:
    """Yield pictures of several episodes side by side, in step, each frozen where it ended: (height, width, 3), uint8.

    Raises:
        ConfigError: there are too many episodes: their cells are too small at this size.
    """
    width, height = check_size(size)
    cells = arrange(tracks, size, overlay)
    scenes = [track.scene(cells[0][2:], overlay) for track in tracks]

    page: Frame = np.empty((height, width, 3), np.uint8)
    page[:] = PAPER
    surface = pygame.image.frombuffer(page, size, "RGB")
    for track, (x, y, wide, _) in zip(tracks, cells, strict=True):
        letters = _title(size) * 2 // 3
        text = shorten(clean(f"{track.name}, seed {track.course.seed}"), letters, wide)
        surface.blit(write(text, letters, FAINT), (x + (wide - measure(text, letters)) // 2, y - _title(size) * 7 // 8))

    def stream() -> Iterator[Frame]:
        done: set[int] = set()
        for tick in pace.ticks:
            for index, (track, scene, (x, y, wide, high)) in enumerate(zip(tracks, scenes, cells, strict=True)):
                if index not in done:
                    scene.paint(track.moment(tick))
                    page[y : y + high, x : x + wide] = scene.pixels
                    if tick >= track.last:
                        done.add(index)
            yield page.copy()

    return stream()


def _title(size: Size) -> int:
    """Height in pixels of the line above a cell."""
    return max(min(size[1] // 24, 28), 12)


def arrange(tracks: Sequence[Track], size: Size, overlay: Overlay = Overlay()) -> list[Box]:
    """Return where each episode is drawn: as large as can be, with gutters, a last row that is not full in the middle.

    Raises:
        ConfigError: the cells are too small at this size.
    """
    (width, height), count, title = size, len(tracks), _title(size)
    gutter = max(min(size) // 50, 4)
    problem: ConfigError | None = None
    best: tuple[tuple[float, int], int, Size] | None = None
    for columns in range(1, count + 1):
        rows = math.ceil(count / columns)
        cell = (width - gutter * (columns + 1)) // columns // 2 * 2, ((height - gutter) // rows - title - gutter // 2) // 2 * 2
        try:
            check_size(cell, f"cell of {count} episodes in size {width}x{height}")
        except ConfigError as error:
            problem = problem if columns * columns > 2 * count else error  # that of cells as square as can be
            continue
        views = [View.of(track.course.config, cell, overlay.thought or overlay.hud, overlay.thought) for track in tracks]
        worth = min(view.scale for view in views), columns * rows - count
        if best is None or (worth[0], -worth[1]) > (best[0][0], -best[0][1]):
            best = worth, columns, cell
    if best is None:
        assert problem is not None
        raise problem
    _, columns, cell = best
    rows = math.ceil(count / columns)
    places = []
    for index in range(count):
        row, column = divmod(index, columns)
        here = min(columns, count - row * columns)  # episodes in this row
        left = (width - here * cell[0] - (here - 1) * gutter) // 2
        tall = title + cell[1]
        top = (height - rows * tall - (rows - 1) * gutter // 2) // 2
        places.append((left + column * (cell[0] + gutter), top + row * (tall + gutter // 2) + title, *cell))
    return places
