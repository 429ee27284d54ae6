import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from render.scene import Frame
from videos.pixels import Planes, changed, groups


def noise(dice: np.random.Generator, height: int, width: int) -> Frame:
    return dice.integers(0, 256, (height, width, 3)).astype(np.uint8)


def planes(frame: Frame) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Y, U and V of a picture by the book (ITU-R BT.601): Kr = 0.299, Kb = 0.114, 219 and 224 steps."""
    red, green, blue = (frame[..., channel] / 255 for channel in range(3))
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    u, v = (blue - luma) / 1.772, (red - luma) / 1.402
    height, width = luma.shape
    u, v = (plane.reshape(height // 2, 2, width // 2, 2).mean(axis=(1, 3)) for plane in (u, v))
    return 16 + 219 * luma, 128 + 224 * u, 128 + 224 * v


@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 9), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_planes_are_those_of_the_last_picture_by_the_book(seed: int, half_height: int, half_width: int, count: int) -> None:
    dice = np.random.default_rng(seed)
    height, width = 2 * half_height, 2 * half_width
    made, frame = Planes((width, height)), noise(dice, height, width)
    for _ in range(count):
        frame = frame.copy()
        top, left = dice.integers(0, height), dice.integers(0, width)
        frame[top : top + 3, left : left + 3] = dice.integers(0, 256, 3)
        made.show(frame)
    y, u, v = planes(frame)
    for part, exact in zip(np.split(made.data, [y.size, y.size + u.size]), (y, u, v), strict=True):
        assert np.abs(part - exact.reshape(-1)).max() < 0.51


def test_black_white_and_grey_have_no_colour() -> None:
    for value, luma in ((0, 16), (255, 235), (128, 126)):
        made = Planes((4, 2))
        made.show(np.full((2, 4, 3), value, np.uint8))
        assert made.data.tolist() == [luma] * 8 + [128] * 4


@pytest.mark.parametrize("group", [1, 2, 4])
def test_what_changed_is_found_group_by_group(group: int) -> None:
    before = noise(np.random.default_rng(1), 3, 8)
    frame = before.copy()
    frame[1, 6, 2] ^= 1
    frame[2, 0, 0] ^= 128
    expected = [(1, 6 // group), (2, 0)]
    assert [tuple(map(int, place)) for place in zip(*np.nonzero(changed(frame, before, group)), strict=True)] == expected
    assert groups(frame, group).take([0]).tobytes() == frame[0, :group].tobytes()
