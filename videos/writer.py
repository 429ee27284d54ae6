"""Pictures → a file: MP4, GIF or PNG, streamed and whole.

One picture is in memory at a time, whatever the length. A file takes its final name when it is finished; until then, and if
anything goes wrong, what stood there before stands there still.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterable, Iterator
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flappybird.errors import ConfigError, FlappyError, MissingPart, show
from flappybird.system.files import replacing
from flappybird.system.install import missing
from flappybird.system.signals import held
from render.frames import TICKS_PER_SECOND
from render.layout import Size
from render.scene import Frame

if TYPE_CHECKING:
    from videos.layers import Layer

PACKAGES = {"imageio_ffmpeg": "imageio-ffmpeg", "PIL": "pillow"}
"""Packages by the module that they bring, where the names differ."""

SUFFIXES = (".mp4", ".gif", ".png")

QUALITIES = {
    "fast": ["-preset", "ultrafast", "-crf", "26", "-x264-params", "cabac=1:bframes=2:b-adapt=0:8x8dct=1:partitions=p8x8,i4x4"],
    "small": ["-preset", "slow", "-crf", "25"],
}
"""What `--quality` can ask of MP4: quick to write, or half the size in three times the time."""

_SD = "range=tv:colorspace=smpte170m:color_primaries=smpte170m:color_trc=smpte170m"
BT601 = ["-vf", f"scale=out_color_matrix=smpte170m:out_range=tv,format=yuv420p,setparams={_SD}"]
"""How brightness and colour are told apart. Players that do not find it in the file guess by the size of the picture."""

SMALL = 1_000_000
"""Pixels up to which one thread encodes: of small pictures more only get in each other's way."""

FPS: dict[str, float] = {".mp4": TICKS_PER_SECOND, ".gif": 25, ".png": TICKS_PER_SECOND}
"""Pictures per second where nobody asks for others: one for each tick; for GIF, whose delays are whole 1/100 s, the next lower
rate at which all of them are alike."""

GIF_FPS = 50
"""The most pictures per second of a GIF: browsers slow down delays below 2/100 s."""


class Written(NamedTuple):
    """What was written."""

    path: Path
    frames: int
    seconds: float
    size: Size

    def __str__(self) -> str:
        pictures = "1 picture" if self.frames == 1 else f"{self.frames} pictures, {self.seconds:.2f} s"
        return f"{self.path}: {pictures}, {self.size[0]}x{self.size[1]}"

    def facts(self) -> dict[str, Any]:
        """Return the same as plain JSON values."""
        return {
            "path": str(self.path),
            "frames": self.frames,
            "seconds": self.seconds,
            "width": self.size[0],
            "height": self.size[1],
            "bytes": self.path.stat().st_size if self.path.exists() else None,
        }


def check_target(path: Path) -> str:
    """Return the kind of file that `path` asks for, one of `SUFFIXES`, having made sure that it can be written.

    Raises:
        ConfigError: its extension is none of them.
        MissingPart: it takes a part that is not installed.
        FlappyError: its folder is missing or cannot be written to.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ConfigError(f"{path}: unknown extension {show(path.suffix)}, must be one of {', '.join(SUFFIXES)}")
    if suffix == ".mp4":
        _ffmpeg()
    else:
        _need("PIL", suffix[1:].upper())
    if not path.parent.is_dir():
        raise FlappyError(f"{path}: there is no folder {path.parent}")
    if path.is_dir():
        raise FlappyError(f"{path}: is a folder")
    if not os.access(path.parent, os.W_OK):
        raise FlappyError(f"{path}: the folder {path.parent} cannot be written to")
    return suffix


def check_quality(quality: str) -> None:
    """Raise ConfigError where `quality` is none of `QUALITIES`."""
    if quality not in QUALITIES:
        raise ConfigError(f"quality = {show(quality)}: must be one of {', '.join(QUALITIES)}")


def choose_fps(asked: float | None, suffix: str) -> float:
    """Return the pictures per second of a file of this kind; if more are asked for than are played, say so on stderr."""
    if asked is None:
        return FPS[suffix]
    if suffix == ".gif" and asked > GIF_FPS:
        print(f"flappybird: --fps {asked:g} lowered to {GIF_FPS}, the most that browsers play of a GIF", file=sys.stderr)
        return GIF_FPS
    return asked


def write(
    path: Path,
    frames: Iterable[Frame],
    size: Size,
    fps: Fraction,
    samples: Iterable[Frame] = (),
    quality: str = "fast",
    note: str = "",
) -> Written:
    """Write `frames` to `path`; its extension says as what.

    Args:
        path: `.mp4`, `.gif` or `.png`. A PNG holds the last picture; with a number in its name, such as `frame-%04d.png`, there
            is one for each, counted from 0.
        frames: the pictures, (height, width, 3) uint8, each an array of its own; one with a fourth channel is flattened on black.
        size: width and height of each.
        fps: pictures per second.
        samples: some of the pictures, from which a GIF takes its colours; the first one if not given.
        quality: one of `QUALITIES`, for MP4.
        note: a comment that is kept in the file; letters and digits, at most 255.

    Raises:
        ConfigError: the extension is unknown, or a GIF is to hold more than `GIF_FPS` pictures per second.
        MissingPart, FlappyError: see `check_target`; or the file could not be written.
    """
    suffix = check_target(path)
    frames = (flat(frame) for frame in frames)
    if suffix == ".mp4":
        count = write_mp4(path, frames, size, fps, quality, note)
    elif suffix == ".gif":
        count = write_gif(path, frames, size, fps, samples, note)
    else:
        count = write_png(path, frames, note)
    return Written(path, count, float(count / fps), size)


def flat(frame: Frame) -> Frame:
    """Return `frame` without its fourth channel, if it has one: laid on black."""
    if frame.shape[2] == 3:
        return frame
    return (frame[..., :3].astype(np.uint16) * frame[..., 3:] // 255).astype(np.uint8)


# --- MP4 ----------------------------------------------------------------------------------------------------------


def write_mp4(path: Path, frames: Iterable[Frame], size: Size, fps: Fraction, quality: str = "fast", note: str = "") -> int:
    """Write H.264 that every browser plays (yuv420p, index first) and return the number of pictures.

    imageio starts the encoder and feeds it. Ctrl-C and SIGTERM strike between two pictures only, while imageio waits for the
    next one: in the middle of its work they would leave an encoder that nobody waits for.
    """
    check_quality(quality)
    _ffmpeg()
    import imageio.v2

    parameters = [*QUALITIES[quality], *BT601, "-metadata", f"comment={note}", "-movflags", "+faststart"]
    if size[0] * size[1] <= SMALL:
        parameters += ["-threads", "1"]
    count = 0
    with replacing(path) as temporary, tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ffmpeg.log"
        encoder = imageio.v2.get_writer(
            temporary,
            format="FFMPEG",
            mode="I",
            fps=fps,
            codec="libx264",
            pixelformat="yuv420p",
            macro_block_size=2,  # sizes are even, and stay as they are
            ffmpeg_log_level="quiet",  # what it complains of goes to the log
            output_params=parameters,
        )
        try:
            for frame in frames:
                with held(), _logging_to(log):
                    encoder.append_data(frame)
                count += 1
        except OSError:  # the encoder is gone; imageio's message holds its whole command line
            raise _gave_up(path, log) from None
        finally:
            with held():
                encoder.close()
        if not count:
            raise FlappyError(f"{path}: no pictures to write")
        if not playable(temporary):
            raise _gave_up(path, log)
    return count


@contextlib.contextmanager
def _logging_to(log: Path) -> Iterator[None]:
    """Let an ffmpeg that is started in the block write its errors to `log`: imageio gives it our own stderr."""
    before = os.environ.get("FFREPORT")
    # In that variable a backslash takes the meaning from the sign after it.
    name = re.sub(r"([\\:'%])", r"\\\1", str(log))
    os.environ["FFREPORT"] = f"file={name}:level=16"
    try:
        yield
    finally:
        if before is None:
            del os.environ["FFREPORT"]
        else:
            os.environ["FFREPORT"] = before


def _gave_up(path: Path, log: Path) -> FlappyError:
    said = log.read_text("utf-8", "replace") if log.exists() else ""
    # After the command line, the first complaint is the cause, and the others follow from it.
    complaint = next(iter(said.partition("Command line:\n")[2].splitlines()[1:]), "")
    reason = re.sub(r"^(\[[^]]*\] *)+", "", complaint)
    return FlappyError(f"{path}: ffmpeg gave up: {show(reason, 200) if reason else 'it said nothing'}")


def boxes(path: Path) -> list[str]:
    """Return the names of the outermost boxes of an MP4 file, in order; what is cut off ends the list with `?`."""
    found: list[str] = []
    end = path.stat().st_size
    with open(path, "rb") as file:
        at = 0
        while at + 8 <= end:
            file.seek(at)
            length, name = struct.unpack(">I4s", file.read(8))
            if length == 1:
                length = struct.unpack(">Q", file.read(8))[0]
            elif length == 0:
                length = end - at
            if length < 8 or at + length > end:
                return [*found, "?"]
            found.append(name.decode("latin-1"))
            at += length
    return found


def playable(path: Path) -> bool:
    """Whether an MP4 file is whole and plays while it loads: its index is there, before the pictures."""
    found = boxes(path)
    return {"ftyp", "moov", "mdat"} <= set(found) and "?" not in found and found.index("moov") < found.index("mdat")


def _need(module: str, kind: str, hint: str = "") -> None:
    """Raise MissingPart where `module`, or imageio, is not installed."""
    for name in ("imageio", module):
        try:
            import_module(name)
        except ImportError:
            raise missing(f"{kind} needs {PACKAGES.get(name, name)}{hint}", "videos") from None


def _ffmpeg() -> None:
    """Make sure that there is an ffmpeg: what imageio-ffmpeg brings, or what IMAGEIO_FFMPEG_EXE names. Raises MissingPart."""
    _need("imageio_ffmpeg", "MP4", ", or write a .gif")
    import imageio_ffmpeg

    asked = os.environ.get("IMAGEIO_FFMPEG_EXE")
    try:
        program: str | None = shutil.which(imageio_ffmpeg.get_ffmpeg_exe())
    except RuntimeError:
        program = None
    if program:
        return
    if asked:
        raise MissingPart(f"no ffmpeg at IMAGEIO_FFMPEG_EXE={asked}, and MP4 needs one: correct or unset it, or write a .gif")
    raise MissingPart(
        "imageio-ffmpeg brings no ffmpeg for this platform: install ffmpeg or set IMAGEIO_FFMPEG_EXE, or write a .gif"
    )


# --- GIF ----------------------------------------------------------------------------------------------------------


def write_gif(
    path: Path, frames: Iterable[Frame], size: Size, fps: Fraction, samples: Iterable[Frame] = (), note: str = ""
) -> int:
    """Write a GIF that loops for ever: one palette, only what changes, the total time exact to 1/100 s.

    A picture like the one before is not stored again: that one stays on for longer. Delays are whole 1/100 s, so those of moving
    pictures are equal where `fps` divides 100.

    Returns:
        The number of pictures.
    """
    if fps > GIF_FPS:
        raise ConfigError(f"fps = {float(fps):g}: a GIF plays at most {GIF_FPS} pictures per second")
    _need("PIL", "GIF")
    from videos.layers import Layers, stored
    from videos.palette import Palette

    stream = iter(frames)
    first = next(stream, None)
    if first is None:
        raise FlappyError(f"{path}: no pictures to write")
    palette = Palette([*samples] or [first])
    layers = Layers(palette)
    count = 0
    with replacing(path) as temporary, open(temporary, "wb") as file:
        file.write(b"GIF89a" + struct.pack("<HHBBB", *size, 0xF7, 0, 0) + palette.table())
        file.write(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")  # for ever
        if note:
            file.write(b"\x21\xfe" + struct.pack("B", len(note)) + note.encode("ascii") + b"\x00")
        waiting: Layer | None = None
        since = 0  # 1/100 s at which the waiting picture appeared
        for frame in itertools.chain([first], stream):
            layer = layers.next(frame)
            if layer is not None:
                now = round(100 * count / fps)
                if waiting is not None:
                    file.write(stored(waiting, now - since))
                since, waiting = now, layer
            count += 1
        assert waiting is not None
        file.write(stored(waiting, max(round(100 * count / fps) - since, 2)))
        file.write(b"\x3b")
    return count


# --- PNG ----------------------------------------------------------------------------------------------------------


_NUMBERED = re.compile(r"%0?\d{0,2}d")


def numbered(path: Path) -> bool:
    """Whether `path` names a sequence, such as `frame-%04d.png`."""
    return bool(_NUMBERED.search(path.name))


def write_png(path: Path, frames: Iterable[Frame], note: str = "") -> int:
    """Write the last picture, or each under its number where the name holds one; return how many."""
    import imageio.v3
    from PIL.PngImagePlugin import PngInfo

    facts = PngInfo()
    facts.add_text("Comment", note)

    def put(path: Path, frame: Frame) -> None:
        with replacing(path) as temporary:
            imageio.v3.imwrite(temporary, frame, extension=".png", pnginfo=facts)

    number = _NUMBERED.search(path.name)
    last, count = None, 0
    for count, last in enumerate(frames, start=1):
        if number is not None:
            name = f"{path.name[: number.start()]}{number[0] % (count - 1)}{path.name[number.end() :]}"
            put(path.with_name(name), last)
    if last is None:
        raise FlappyError(f"{path}: no pictures to write")
    if number is not None:
        return count
    put(path, last)
    return 1
