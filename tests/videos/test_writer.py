import os
import signal
import struct
import subprocess
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from flappybird.errors import ConfigError, FlappyError
from flappybird.system.command import guarded
from flappybird.world.units import UNITS
from render.clip import Clip, Timing
from render.colors import ALARM, BODY, FLAT, PIPE, SKY
from render.frames import Track
from render.moment import Overlay
from render.scene import Frame
from tests.samples import flown, replied
from videos.palette import COLORS, Palette, pack, unpack
from videos.writer import GIF_FPS, QUALITIES, boxes, check_target, playable, write, write_gif

SIZE = (320, 240)


def clip(last: int = 40, fps: float = 30, overlay: Overlay = Overlay(thought=False), start: int = 100) -> Clip:
    return Clip([Track(flown("planner", 3, 200))], SIZE, Timing(fps, start=start, stop=start + last), overlay)


def pictures(path: Path) -> tuple[dict[str, object], list[Frame]]:
    """What a decoder makes of a video."""
    reader = imageio_ffmpeg.read_frames(str(path), pix_fmt="rgb24")
    meta = next(reader)
    width, height = meta["source_size"]
    return meta, [np.frombuffer(data, np.uint8).reshape(height, width, 3) for data in reader]


def gif_pictures(path: Path) -> tuple[list[int], list[Frame]]:
    """Delays in ms, and the pictures as a viewer shows them."""
    delays, shown = [], []
    with Image.open(path) as gif:
        for index in range(gif.n_frames):
            gif.seek(index)
            delays.append(gif.info["duration"])
            shown.append(np.asarray(gif.convert("RGB")))
    return delays, shown


def test_an_mp4_shows_what_was_drawn(tmp_path: Path) -> None:
    drawn = clip()
    written = write(tmp_path / "x.mp4", drawn.frames(), SIZE, drawn.fps)
    meta, shown = pictures(tmp_path / "x.mp4")
    assert (written.frames, written.seconds, written.size) == (40, pytest.approx(40 / 30), SIZE)
    assert len(shown) == 40
    assert meta["source_size"] == SIZE
    assert meta["codec"] == "h264"
    assert str(meta["pix_fmt"]).startswith("yuv420p(tv, smpte170m")  # what the colours mean is told
    for expected, seen in zip(drawn.frames(), shown, strict=True):
        assert np.abs(expected.astype(int) - seen).mean() < 4
    track = drawn.tracks[0]
    scene, last = track.scene(SIZE, drawn.overlay), 140
    view, course = scene.view, track.course
    bird = shown[-1][view.y(track.state(last).y), view.x(course.physics.bird_x)].astype(int)
    assert np.abs(bird - BODY).max() < 90
    pipe = next(pipe for pipe in course.visible(last) if view.x(pipe.x) > SIZE[0] // 2)
    inside = shown[-1][view.y(pipe.gap_y + pipe.gap_height // 2 + 2 * UNITS), view.x(pipe.x)].astype(int)
    assert min(np.abs(inside - shade).max() for _, shade in PIPE) < 30
    air = shown[-1][view.y(pipe.gap_y), view.x(pipe.x)].astype(int)
    assert all(low - 40 <= value <= high + 40 for value, low, high in zip(air, *map(np.array, SKY), strict=True))


@pytest.mark.parametrize("start", [0, 100])
def test_a_gif_shows_what_was_drawn(tmp_path: Path, start: int) -> None:
    drawn = clip(start=start)
    write(tmp_path / "x.gif", drawn.frames(), SIZE, drawn.fps, drawn.samples())
    _, shown = gif_pictures(tmp_path / "x.gif")
    assert len(shown) == 40
    for expected, seen in zip(drawn.frames(), shown, strict=True):
        off = np.abs(expected.astype(int) - seen).max(axis=2)
        assert off.max() < 90  # a blend at an edge
        assert (off > 8).mean() < 0.002


@pytest.mark.parametrize(("fps", "ticks"), [(30, 40), (25, 40), (50, 20), (12.5, 60), (7, 31)])
def test_the_delays_of_a_gif_add_up(tmp_path: Path, fps: float, ticks: int) -> None:
    drawn = clip(ticks, fps)
    written = write(tmp_path / "x.gif", drawn.frames(), SIZE, drawn.fps)
    delays, _ = gif_pictures(tmp_path / "x.gif")
    assert sum(delays) == 10 * round(100 * written.frames / drawn.fps)
    assert min(delays) >= 20


def test_pictures_that_stand_still_take_no_room(tmp_path: Path) -> None:
    one = np.zeros((40, 60, 3), np.uint8)
    two = one.copy()
    two[3, 5] = 255
    write_gif(tmp_path / "x.gif", [one] * 10 + [two] * 25_000, (60, 40), Fraction(20), [two])
    delays, shown = gif_pictures(tmp_path / "x.gif")
    assert sum(delays) == 25_010 * 50
    assert np.array_equal(shown[0], one)
    assert all(np.array_equal(picture, two) for picture in shown[1:])
    assert (tmp_path / "x.gif").stat().st_size < 2_000


@given(st.integers(0, 2**32 - 1), st.integers(2, 12), st.integers(2, 9), st.integers(1, 20))
@settings(max_examples=25, deadline=None)
def test_a_gif_of_few_colours_is_exact(
    tmp_path_factory: pytest.TempPathFactory, seed: int, width: int, height: int, count: int
) -> None:
    dice = np.random.default_rng(seed)
    frames = [(dice.integers(0, 4, (height, width, 3)) * 85).astype(np.uint8) for _ in range(count)]
    path = tmp_path_factory.mktemp("gif") / "x.gif"
    write_gif(path, frames, (width, height), Fraction(10), frames)
    delays, shown = gif_pictures(path)
    assert sum(delays) == 100 * count
    # Pictures equal to the one before are not stored again.
    distinct = [frame for index, frame in enumerate(frames) if not index or not np.array_equal(frame, frames[index - 1])]
    assert all(np.array_equal(a, b) for a, b in zip(distinct, shown, strict=True))


def test_a_palette_has_the_flat_colours_of_the_scene_though_the_samples_have_none_of_them() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (40, 40, 3)).astype(np.uint8)
    colors = Palette([noise]).colors
    assert len(colors) <= COLORS
    assert {*FLAT} <= {tuple(color) for color in colors.tolist()}


def test_the_mark_of_a_malformed_turn_is_red_in_a_gif_too(tmp_path: Path) -> None:
    # One turn of many, which no sample shows.
    track = Track(replied(*["<ACTIONS>[TAP]</ACTIONS>", *["<ACTIONS>[]</ACTIONS>"] * 3] * 2, "what?", "<ACTIONS>[]</ACTIONS>"))
    drawn = Clip([track], SIZE, Timing(25, stop=8))
    frames = list(drawn.frames())
    write(tmp_path / "x.gif", frames, SIZE, drawn.fps, frames[:1])
    _, shown = gif_pictures(tmp_path / "x.gif")
    red = (frames[-1] == ALARM).all(axis=2)
    assert red.sum() > 100
    assert (shown[-1][red] == ALARM).all()


def wrapper(folder: Path, monkeypatch: pytest.MonkeyPatch, first: str) -> Path:
    """An ffmpeg that does `first`, in the shell, and is then the real one."""
    path = folder / "ffmpeg"
    path.write_text(f'#!/bin/sh\n{first}\nexec "{imageio_ffmpeg.get_ffmpeg_exe()}" "$@"\n')
    path.chmod(0o755)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(path))
    return path


def children() -> list[str]:
    """The processes of ours that still run, or that nobody has waited for."""
    listed = subprocess.run(["ps", "-ewwo", "ppid,stat,args"], capture_output=True, text=True).stdout
    return [line for line in listed.splitlines() if line.split()[0] == str(os.getpid()) and "ps -ewwo" not in line]


@pytest.mark.usefixtures("signals_of_a_new_process")
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_B06_a_signal_while_the_encoder_starts_leaves_neither_it_nor_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: signal.Signals
) -> None:
    (tmp_path / "out").mkdir()
    wrapper(tmp_path, monkeypatch, f"kill -{which.value} $PPID")
    drawn, before = clip(), children()
    assert guarded(lambda: write(tmp_path / "out" / "x.mp4", drawn.frames(), SIZE, drawn.fps).frames) == 128 + which
    assert children() == before
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.usefixtures("signals_of_a_new_process")
@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("picture", [0, 1, 30])
def test_B06_a_signal_while_a_picture_is_drawn_leaves_neither_an_encoder_nor_a_file(
    tmp_path: Path, which: signal.Signals, picture: int
) -> None:
    def stream() -> Iterator[Frame]:
        for number, frame in enumerate(clip().frames()):
            if number == picture:
                signal.raise_signal(which)
            yield frame

    before = children()
    assert guarded(lambda: write(tmp_path / "x.mp4", stream(), SIZE, Fraction(30)).frames) == 128 + which
    assert children() == before
    assert list(tmp_path.iterdir()) == []


@given(st.integers(1, 2_000), st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_a_palette_gives_every_colour_its_nearest(count: int, seed: int) -> None:
    colors = np.random.default_rng(seed).integers(0, 256, (1, count, 3)).astype(np.uint8)
    palette = Palette([colors])
    assert len(palette.colors) <= COLORS
    assert len(palette.table()) == 768
    found = palette.index(pack(colors[0]))
    assert found.min() >= 1
    if len(np.unique(pack(colors))) <= COLORS:
        assert np.array_equal(palette.colors[found.astype(int) - 1], colors[0])
    assert np.array_equal(unpack(pack(colors[0])), colors[0])


def test_C07_a_fourth_channel_is_laid_on_black(tmp_path: Path) -> None:
    clear = np.zeros((64, 64, 4), np.uint8)
    clear[..., 0] = 255
    clear[:, 32:, 3] = 255
    for name in ("x.mp4", "x.png"):
        write(tmp_path / name, [clear], (64, 64), Fraction(30))
    _, shown = pictures(tmp_path / "x.mp4")
    for picture in (shown[0], np.asarray(Image.open(tmp_path / "x.png"))):
        assert picture[:, :24].max() < 30
        assert picture[:, 40:, 0].min() > 200
    assert playable(tmp_path / "x.mp4")


def test_frames_are_streamed_and_not_kept(tmp_path: Path) -> None:
    alive = 0
    most = 0

    class Counted(np.ndarray):
        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def stream() -> Iterator[Frame]:
        nonlocal alive, most
        for number in range(60):
            frame = np.full((64, 64, 3), number, np.uint8).view(Counted)
            alive += 1
            most = max(most, alive)
            yield frame

    for name in ("x.mp4", "x.gif", "x.png", "f-%d.png"):
        write(tmp_path / name, stream(), (64, 64), Fraction(30))
    assert most < 10


@pytest.mark.parametrize("name", ["x.mp4", "x.gif", "x.png"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError, FlappyError])
def test_C06_a_failure_half_way_leaves_what_was_there(tmp_path: Path, name: str, error: type[BaseException]) -> None:
    (tmp_path / name).write_bytes(b"an older file")

    def broken() -> Iterator[Frame]:
        yield np.zeros((64, 64, 3), np.uint8)
        raise error("half-way")

    with pytest.raises(error):
        write(tmp_path / name, broken(), (64, 64), Fraction(30))
    assert (tmp_path / name).read_bytes() == b"an older file"
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["x.mp4", "x.gif", "x.png"])
def test_C06_no_pictures_make_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(FlappyError):
        write(tmp_path / name, [], (64, 64), Fraction(30))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("ffmpeg", "options", "reason"),
    [
        ("", ["-vcodec", "no_such_codec"], "Unknown encoder 'no_such_codec'"),
        ("", ["-no_such_option", "1"], "no_such_option"),
        ("echo loud >&2; exit 1", [], "it said nothing"),
        ("cat >/dev/null; exit 0", [], "it said nothing"),
    ],
)
def test_an_encoder_that_gives_up_is_reported_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ffmpeg: str, options: list[str], reason: str
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "out").mkdir()
    wrapper(tmp_path, monkeypatch, ffmpeg)
    monkeypatch.setitem(QUALITIES, "fast", options)
    before, environment = children(), dict(os.environ)
    with pytest.raises(FlappyError, match="ffmpeg gave up: ") as caught:
        write(tmp_path / "out" / "x.mp4", [np.zeros((64, 64, 3), np.uint8)] * 500, (64, 64), Fraction(30))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert children() == before
    assert dict(os.environ) == environment
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ffmpeg", "out"]
    assert not list((tmp_path / "out").iterdir())


def test_a_note_is_kept_in_the_file(tmp_path: Path) -> None:
    drawn = clip(5, fps=25)
    for name in ("x.mp4", "x.gif", "x.png"):
        write(tmp_path / name, drawn.frames(), SIZE, drawn.fps, note="abc0123")
        assert b"abc0123" in (tmp_path / name).read_bytes()
    delays, shown = gif_pictures(tmp_path / "x.gif")
    assert len(shown) == len(delays) == 4


def test_a_gif_faster_than_browsers_play_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"at most {GIF_FPS}"):
        write(tmp_path / "x.gif", [np.zeros((64, 64, 3), np.uint8)], (64, 64), Fraction(60))


def test_targets_are_checked_before_anything_is_drawn(tmp_path: Path) -> None:
    (tmp_path / "folder.mp4").mkdir()
    for name, said in (("x.webm", "unknown extension"), ("no/x.mp4", "there is no folder"), ("folder.mp4", "is a folder")):
        with pytest.raises(FlappyError, match=said):
            check_target(tmp_path / name)


def test_the_boxes_of_a_cut_file_end_in_a_question(tmp_path: Path) -> None:
    path = tmp_path / "x.mp4"
    path.write_bytes(struct.pack(">I4s", 8, b"ftyp") + struct.pack(">I4s", 100, b"moov"))
    assert boxes(path) == ["ftyp", "?"]
    assert not playable(path)
