from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from render.clip import Clip, Timing
from render.frames import Track
from render.moment import Overlay
from render.scene import Frame
from tests.samples import flown
from videos.layers import Layers
from videos.palette import Indices, Palette
from videos.writer import write, write_gif

SIZE = (320, 240)


def seen(frames: list[Frame], palette: Palette) -> tuple[list[Indices], list[bool]]:
    """What a viewer shows of the layers of pictures, and which of them stay."""
    layers, stands, shown, stay = Layers(palette), np.zeros(frames[0].shape[:2], np.uint8), [], []
    for frame in frames:
        layer = layers.next(frame)
        if layer is not None:
            picture = stands.copy()
            (x, y), (height, width) = layer.at, layer.part.shape
            place = picture[y : y + height, x : x + width]
            place[layer.part > 0] = layer.part[layer.part > 0]
            if layer.stays:
                stands = picture
            stay.append(layer.stays)
        shown.append(picture)
    return shown, stay


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 9), st.booleans(), st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_layers_one_over_the_other_are_the_pictures(seed: int, width: int, height: int, drifts: bool, count: int) -> None:
    dice = np.random.default_rng(seed)
    frame = (dice.integers(0, 3, (height, width, 3)) * 120).astype(np.uint8)
    frames = []
    for _ in range(count):
        frame = np.roll(frame, 1, axis=1) if drifts else frame.copy()
        frame[dice.integers(0, height), dice.integers(0, width)] = dice.integers(0, 3, 3) * 120
        frames.append(frame)
    palette = Palette(frames)
    shown, _ = seen(frames, palette)
    for expected, picture in zip(frames, shown, strict=True):
        assert np.array_equal(palette.colors[picture.astype(int) - 1], expected)


def flight(start: int, pictures: int = 60) -> Clip:
    timing = Timing(25, start=start, stop=start + pictures * 30 // 25)
    return Clip([Track(flown("planner", 3, 200))], SIZE, timing, Overlay(thought=False))


@pytest.mark.parametrize("kept", [True, False])
def test_a_ground_is_kept_for_as_long_as_it_pays(kept: bool) -> None:
    dice = np.random.default_rng(1)
    ground = (dice.integers(0, 6, (60, 90, 3)) * 50).astype(np.uint8)
    frames = [ground]
    for number in range(1, 40):
        frame = ground.copy() if kept else frames[-1].copy()  # something small moves over it; or it is painted over bit by bit
        frame[20:30, 2 * number : 2 * number + 8] = 255
        frames.append(frame)
    shown, stay = seen(frames, palette := Palette(frames))
    assert stay[0]
    assert not any(stay[1:]) if kept else all(stay[-20:])
    assert all(
        np.array_equal(palette.colors[picture.astype(int) - 1], frame) for picture, frame in zip(shown, frames, strict=True)
    )


@pytest.mark.parametrize("start", [0, 80])
def test_a_gif_is_far_smaller_than_its_pictures_one_by_one(tmp_path: Path, start: int) -> None:
    clip = flight(start)
    frames = list(clip.frames())
    write(tmp_path / "x.gif", frames, SIZE, clip.fps, clip.samples())
    alone = 0
    for frame in frames[::10]:
        write_gif(tmp_path / "one.gif", [frame], SIZE, Fraction(25), clip.samples())
        alone += 10 * (tmp_path / "one.gif").stat().st_size
    assert (tmp_path / "x.gif").stat().st_size < 0.6 * alone
