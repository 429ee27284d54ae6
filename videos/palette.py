"""The colours of a GIF, chosen once for the whole clip from samples of its scene.

A GIF holds 255 colours and a clear one. The scene's flat colours are kept as they are; blends at edges go to what is nearest.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from PIL import Image

from render.colors import FLAT
from render.scene import Frame

Indices = npt.NDArray[np.uint8]
Keys = npt.NDArray[np.uint32]

CLEAR = 0
"""The index that shows what was there before."""
COLORS = 255
KEPT = 190
"""Colours that are kept exactly: the scene's flat colours, whether or not the samples show them, and the most frequent ones."""


class Palette:
    """Up to 255 colours, and for every other one the nearest of them.

    Args:
        samples: pictures in which the clip's colours occur.
    """

    def __init__(self, samples: Iterable[Frame]) -> None:
        keys = _by_frequency(samples)
        if len(keys) > COLORS:
            flat = pack(np.array(FLAT, np.uint8))
            keys = np.concatenate([flat, keys[~np.isin(keys, flat)]])
            rest = Image.fromarray(unpack(keys[KEPT:])[None])
            blends = rest.quantize(COLORS - KEPT, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).getpalette() or []
            colors = np.concatenate([unpack(keys[:KEPT]), np.array(blends, np.uint8).reshape(-1, 3)[: COLORS - KEPT]])
        else:
            colors = unpack(keys)
        self.colors = colors
        """uint8, (n, 3); colour i has index i + 1."""
        # Index by packed colour, 0 where it was not asked for yet; of its 16 MB only the pages in use exist.
        self._index: Indices = np.zeros(1 << 24, np.uint8)
        self._index[pack(colors)] = np.arange(1, len(colors) + 1)

    def index(self, keys: Keys) -> Indices:
        """Return the index of the colour nearest to each of `keys`, see `pack`."""
        found = self._index[keys]
        unknown = found == 0
        if unknown.any():
            new = np.unique(keys[unknown])
            wanted = unpack(new).astype(np.int32)
            far = ((wanted[:, None] - self.colors[None].astype(np.int32)) ** 2 * np.array([3, 6, 2])).sum(axis=2)
            self._index[new] = far.argmin(axis=1) + 1
            found[unknown] = self._index[keys[unknown]]
        return found

    def table(self) -> bytes:
        """Return the colour table as a GIF holds it: 256 entries, the clear one first."""
        return bytes(3) + self.colors.tobytes() + bytes(3 * (COLORS - len(self.colors)))


def _by_frequency(samples: Iterable[Frame]) -> Keys:
    """Return the colours of pictures, see `pack`, the most frequent one first."""
    colors, lengths = [], []
    for sample in samples:
        keys = pack(sample).ravel()
        # Sorting all pixels would take long: a run of one colour counts as one, with its length.
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        colors.append(keys[starts])
        lengths.append(np.diff(starts, append=len(keys)))
    found, where = np.unique(np.concatenate(colors), return_inverse=True)
    counts = np.bincount(where, np.concatenate(lengths))
    ordered: Keys = found[np.argsort(-counts, kind="stable")]
    return ordered


def pack(colors: Frame) -> Keys:
    """Return a whole number for each colour: (…, 3) uint8 to (…) uint32."""
    wide = colors.astype(np.uint32)
    packed: Keys = wide[..., 0] | wide[..., 1] << np.uint32(8) | wide[..., 2] << np.uint32(16)
    return packed


def unpack(keys: Keys) -> Frame:
    """Return the colours that packed numbers stand for: uint8, (n, 3)."""
    return np.ascontiguousarray(keys.astype("<u4")[:, None].view(np.uint8)[:, :3])
