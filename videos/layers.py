"""Pictures → the layers of a GIF: what each of them shows over what stands there already.

A clip that begins with the game has a ground: what moves is drawn over the first picture and taken away again before the next
one, as a GIF can ask for ("restore to previous"). Nobody has to paint the sky anew behind a pipe that has passed, and the rows of
a pipe stay alike from top to bottom, which is what the compression of a GIF lives on. Where that does not pay, as in a clip that
begins among pipes, each picture is drawn over the one before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from PIL import GifImagePlugin, Image

from render.scene import Frame
from videos.palette import Indices, Palette, pack
from videos.pixels import Mask, changed, groups

FIRST_LOOK = 8
"""After so many pictures, and twice as many, and so on, it is looked at whether the ground still pays."""

CLEARLY, LATER = 0.7, 0.87
"""The ground is given up where a layer over the picture before has less than this share of the size of one over the ground: at
the first look, when little may have come into view, and at later ones."""

LONGEST_GAP = 64
"""What stands still between two things that move is drawn anew, if it is no longer than this and has their colour."""


class Layer(NamedTuple):
    """What is laid over what stands there to make a picture."""

    part: Indices
    """Palette indices, (height, width), contiguous; 0, `CLEAR`, where nothing is laid."""
    at: tuple[int, int]
    """Column and row of its upper left corner."""
    stays: bool
    """Whether it is there for the next picture; if not, it is taken away again before."""


class Layers:
    """The layers of pictures that follow each other.

    Args:
        palette: their colours.
    """

    def __init__(self, palette: Palette) -> None:
        self._palette = palette
        self._shown: Frame | None = None
        self._now: Indices = np.empty((0, 0), np.uint8)
        self._ground: Indices | None = None
        self._group = 1
        self._count = 0

    def next(self, frame: Frame) -> Layer | None:
        """Return the layer of the next picture, (height, width, 3) uint8; None if it looks like the one before."""
        if self._shown is None:
            self._shown = frame
            self._group = next(group for group in (4, 2, 1) if frame.shape[1] % group == 0)
            self._now = self._palette.index(pack(frame))
            self._ground = self._now.copy()
            return Layer(self._ground, (0, 0), stays=True)
        moved = changed(frame, self._shown, self._group)
        where = np.flatnonzero(moved)
        if not len(where):
            return None
        self._shown = frame
        self._count += 1
        before = self._now if self._ground is None or self._looks() else None
        if before is not None:
            self._now = before.copy()
        colors = groups(frame, self._group).take(where).view(np.uint8).reshape(-1, 3)
        self._now.reshape(-1).view(f"u{self._group}")[where] = self._palette.index(pack(colors)).view(f"u{self._group}")
        over_before = None if before is None else _cut(_joined(self._now, self._now != before), stays=True)
        if self._ground is None:
            return over_before
        over_ground = _cut(self._now * (self._now != self._ground), stays=False)
        enough = CLEARLY if self._count == FIRST_LOOK else LATER
        if over_before is not None and _size(over_before) < enough * _size(over_ground):
            self._ground = None
            # The last layer is taken away again, so this one still has to be laid over the ground; but it stays.
            return over_ground._replace(stays=True)
        return over_ground

    def _looks(self) -> bool:
        return self._count >= FIRST_LOOK and self._count & (self._count - 1) == 0


def _joined(now: Indices, moved: Mask) -> Indices:
    """Return `now` where it has `moved`, and in short gaps between that go on with the same colour: two runs less for each."""
    starts = np.ones(now.shape, bool)
    starts[:, 1:] = (now[:, 1:] != now[:, :-1]) | (moved[:, 1:] != moved[:, :-1])
    at = np.flatnonzero(starts)
    lengths = np.diff(at, append=now.size)
    color, new, first = now.reshape(-1)[at], moved.reshape(-1)[at], at % now.shape[1] == 0
    gap = ~new
    gap[1:] &= new[:-1] & ~first[1:]
    gap[:-1] &= new[1:] & ~first[1:]
    gap[[0, -1]] = False
    same = np.zeros(len(at), bool)
    same[1:] = color[1:] == color[:-1]
    same[:-1] |= same[1:]
    drawn = new | (gap & same & (lengths <= LONGEST_GAP))
    return now * drawn.repeat(lengths).reshape(now.shape)


def _cut(layer: Indices, stays: bool) -> Layer:
    """Return the layer without its clear margins; at least one pixel."""
    rows, columns = np.flatnonzero(layer.any(axis=1)), np.flatnonzero(layer.any(axis=0))
    if not len(rows):
        return Layer(np.zeros((1, 1), np.uint8), (0, 0), stays)
    part = layer[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    return Layer(np.ascontiguousarray(part), (int(columns[0]), int(rows[0])), stays)


def _size(layer: Layer) -> int:
    """How many bytes a GIF takes to hold it."""
    return sum(map(len, GifImagePlugin.getdata(Image.fromarray(layer.part))))
