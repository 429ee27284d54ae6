"""Pictures → the layers of a GIF: what each of them shows over what stands there already.

A clip that begins with the game has a ground: what moves is drawn over the first picture and taken away again before the next
one, as a GIF can ask for ("restore to previous"). Nobody has to paint the sky anew behind a pipe that has passed, and the rows of
a pipe stay alike from top to bottom, which is what the compression of a GIF lives on. Where that does not pay, as in a clip that
begins among pipes, each picture is drawn over the one before.
"""

from __future__ import annotations

import struct
from io import BytesIO
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from PIL import Image

from render.scene import Frame
from videos.palette import CLEAR, Indices, Keys, Palette, pack

Mask = npt.NDArray[np.bool_]

FIRST_LOOK = 8
"""Whether the ground still pays is looked at after this many pictures, after twice as many, and so on."""

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
        self._shown: Keys | None = None
        self._now: Indices = np.empty((0, 0), np.uint8)
        self._ground: Indices | None = None
        self._count = 0

    def next(self, frame: Frame) -> Layer | None:
        """Return the layer of the next picture, (height, width, 3) uint8; None if it looks like the one before."""
        keys, before = pack(frame), self._now
        if self._shown is None:
            self._shown = keys
            self._now = self._ground = self._palette.index(keys)
            return Layer(self._now, (0, 0), stays=True)
        where = np.flatnonzero(keys != self._shown)
        if not len(where):
            return None
        self._shown = keys
        self._count += 1
        self._now = before.copy()
        self._now.reshape(-1)[where] = self._palette.index(keys.reshape(-1)[where])
        if self._ground is None:
            return self._over(before)
        over_ground = _cut(self._now * (self._now != self._ground), stays=False)
        if self._looks():
            enough = CLEARLY if self._count == FIRST_LOOK else LATER
            if _size(self._over(before)) < enough * _size(over_ground):
                self._ground = None
                # The last layer is taken away again, so this one still has to be laid over the ground; but it stays.
                return over_ground._replace(stays=True)
        return over_ground

    def _over(self, before: Indices) -> Layer:
        return _cut(_joined(self._now, self._now != before), stays=True)

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
    return len(_compressed(layer.part))


LONGEST = 60_000
"""Hundredths of a second that one layer stays on; a delay is a 16-bit number, and what stands for longer is laid again."""


def stored(layer: Layer, hundredths: int) -> bytes:
    """Return the blocks of a GIF that show `layer` for so long (1/100 s)."""
    disposal = 1 if layer.stays else 3
    (height, width), data = layer.part.shape, _compressed(layer.part)
    blocks = b""
    while hundredths > 0:
        delay = min(hundredths, LONGEST)
        hundredths -= delay
        blocks += b"\x21\xf9\x04" + struct.pack("<BHBB", disposal << 2 | 1, delay, CLEAR, 0)
        blocks += b"\x2c" + struct.pack("<HHHHB", *layer.at, width, height, 0) + data
    return blocks


def _compressed(part: Indices) -> bytes:
    """Return palette indices, (height, width) uint8, as a GIF stores them: taken out of a GIF that Pillow writes of them."""
    file = BytesIO()
    Image.fromarray(part).save(file, "GIF", optimize=False, interlace=False)
    data = file.getvalue()

    def table(flags: int) -> int:
        """Bytes of the colour table that `flags` announce."""
        return 3 << (flags & 7) + 1 if flags & 0x80 else 0

    at = 13 + table(data[10])
    while data[at] == 0x21:  # an extension: its blocks, each with its length, up to one of none
        at += 2
        while data[at]:
            at += 1 + data[at]
        at += 1
    at += 10 + table(data[at + 9])
    return data[at:-1]
