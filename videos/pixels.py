"""Pixels on their way into a file: which of them changed, and their brightness and colour apart, as H.264 stores them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from render.scene import Frame, Size

Mask = npt.NDArray[np.bool_]

LUMA = 0.256788, 0.504129, 0.097906
BLUE = -0.148223, -0.290993, 0.439216
RED = 0.439216, -0.367788, -0.071427
"""What red, green and blue add to brightness (Y), to blue (U) and to red (V): ITU-R BT.601, limited range."""


def changed(frame: Frame, before: Frame, group: int) -> Mask:
    """Return which groups of pixels of two pictures differ.

    Args:
        frame, before: the pictures, (height, width, 3) uint8.
        group: so many pixels side by side are looked at together: 1, 2, 4 or 8, and a divisor of the width.

    Returns:
        (height, width / group), bool.
    """
    height, width = frame.shape[:2]
    differs = (frame != before).reshape(height, width * 3).view(f"u{group}").reshape(height, width // group, 3)
    mask: Mask = (differs[..., 0] | differs[..., 1] | differs[..., 2]) != 0
    return mask


def groups(frame: Frame, group: int) -> npt.NDArray[np.void]:
    """Return a picture as a row of groups of pixels, three bytes for each pixel."""
    return frame.reshape(len(frame), -1).view(f"V{3 * group}").reshape(-1)


class Planes:
    """Pictures as yuv420p: a value of brightness for each pixel, two of colour for each square of four.

    Only what has changed since the picture before is worked out anew.

    Args:
        size: width and height, both even.
    """

    def __init__(self, size: Size) -> None:
        width, height = size
        self.data = np.empty(width * height * 3 // 2, np.uint8)
        """The planes of the last picture shown, one after the other, Y, U, V, as an encoder reads them."""
        self._y = self.data[: width * height].view(np.uint16)  # two pixels side by side in one
        self._u, self._v = self.data[width * height :].reshape(2, -1)
        self._shape = height, width // 2
        self._shown: Frame | None = None
        # From the twelve values of a square, row by row, to its four of brightness and its two of colour.
        self._matrix = np.zeros((12, 6), np.float32)
        for pixel in range(4):
            self._matrix[3 * pixel : 3 * pixel + 3, pixel] = LUMA
            self._matrix[3 * pixel : 3 * pixel + 3, 4] = np.array(BLUE) / 4
            self._matrix[3 * pixel : 3 * pixel + 3, 5] = np.array(RED) / 4
        self._zero = np.array([16.5] * 4 + [128.5] * 2, np.float32)

    def show(self, frame: Frame) -> None:
        """Make `data` the planes of `frame`, (height, width, 3) uint8, contiguous."""
        height, half = self._shape
        if self._shown is None:
            squares = np.arange(height // 2 * half)
        else:
            mask = changed(frame, self._shown, 2)
            squares = np.flatnonzero(mask[0::2] | mask[1::2])
        self._shown = frame
        pairs = groups(frame, 2)
        top = squares + squares // half * half
        bottom = top + half
        colors = np.empty((len(squares), 2), "V6")
        colors[:, 0], colors[:, 1] = pairs.take(top), pairs.take(bottom)
        values = (colors.view(np.uint8).astype(np.float32) @ self._matrix + self._zero).astype(np.uint8)
        self._y[top], self._y[bottom] = np.ascontiguousarray(values[:, :4]).view(np.uint16).T
        self._u[squares], self._v[squares] = values[:, 4], values[:, 5]
