"""Pictures → a file: MP4, GIF or PNG, streamed and whole.

One picture is in memory at a time, whatever the length. A file takes its final name when it is finished; until then, and if
anything goes wrong, what stood there before stands there still.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flappybird.errors import ConfigError, FlappyError, MissingPart, show
from flappybird.system.files import replacing
from flappybird.system.signals import held
from render.frames import TICKS_PER_SECOND
from render.scene import Frame, Size
from videos.pixels import Planes

if TYPE_CHECKING:
    from videos.layers import Layer

SUFFIXES = (".mp4", ".gif", ".png")

QUALITIES = {
    "fast": ["-preset", "ultrafast", "-crf", "26", "-x264-params", "cabac=1:bframes=2:b-adapt=0:8x8dct=1:partitions=p8x8,i4x4"],
    "small": ["-preset", "slow", "-crf", "25"],
}
"""What `--quality` can ask of MP4: quick to write, or half the size in three times the time."""

BT601 = "setparams=range=tv:colorspace=smpte170m:color_primaries=smpte170m:color_trc=smpte170m"
"""What the numbers of `Planes` mean: players that are not told guess by the size of the picture."""

PIPE = 1 << 20
"""Bytes that may wait for the encoder, where the system lets us choose: two pictures or so, and neither waits for the other."""

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
    elif suffix == ".gif":
        _pillow()
    else:
        _imageio()
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
    path: Path, frames: Iterable[Frame], size: Size, fps: Fraction, samples: Iterable[Frame] = (), quality: str = "fast"
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

    Raises:
        ConfigError: the extension is unknown, or a GIF is to hold more than `GIF_FPS` pictures per second.
        MissingPart, FlappyError: see `check_target`; or the file could not be written.
    """
    suffix = check_target(path)
    frames = (flat(frame) for frame in frames)
    if suffix == ".mp4":
        count = write_mp4(path, frames, size, fps, quality)
    elif suffix == ".gif":
        count = write_gif(path, frames, size, fps, samples)
    else:
        count = write_png(path, frames)
    return Written(path, count, float(count / fps), size)


def flat(frame: Frame) -> Frame:
    """Return `frame` without its fourth channel, if it has one: laid on black."""
    if frame.shape[2] == 3:
        return frame
    return (frame[..., :3].astype(np.uint16) * frame[..., 3:] // 255).astype(np.uint8)


# --- MP4 ----------------------------------------------------------------------------------------------------------


def write_mp4(path: Path, frames: Iterable[Frame], size: Size, fps: Fraction, quality: str = "fast") -> int:
    """Write H.264 that every browser plays (yuv420p, index first) and return the number of pictures."""
    check_quality(quality)
    command = [_ffmpeg(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "yuv420p"]
    command += ["-s", f"{size[0]}x{size[1]}", "-r", str(fps), "-i", "-", "-an", "-vf", BT601, "-c:v", "libx264"]
    command += [*QUALITIES[quality], "-movflags", "+faststart"]
    if size[0] * size[1] <= SMALL:
        command += ["-threads", "1"]
    planes, count = Planes(size), 0
    with replacing(path) as temporary, tempfile.TemporaryFile() as complaints:
        # Run by us and not by imageio's generator, which leaves an encoder that is stopped unreaped, its complaints unread.
        encoder: subprocess.Popen[bytes] | None = None
        try:
            with held():  # or an encoder that is started while a signal comes would be nobody's
                encoder = subprocess.Popen(
                    [*command, os.path.abspath(temporary)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=complaints,
                    start_new_session=True,  # Ctrl-C is for us to handle
                )
            assert encoder.stdin is not None
            _widen(encoder.stdin)
            with contextlib.suppress(BrokenPipeError):  # it gave up: its return code says so
                for frame in frames:
                    count += 1
                    planes.show(np.ascontiguousarray(frame))
                    encoder.stdin.write(planes.data.data)
            with contextlib.suppress(BrokenPipeError):
                encoder.stdin.close()
            encoder.wait()
        except BaseException:
            if encoder is not None and encoder.stdin is not None:
                encoder.kill()
                with contextlib.suppress(BrokenPipeError):
                    encoder.stdin.close()
                encoder.wait()
            raise
        if not count:
            raise FlappyError(f"{path}: no pictures to write")
        if encoder.returncode or not playable(temporary):
            complaints.seek(0)
            said = complaints.read(10_000).decode("utf-8", "replace").strip().splitlines() or ["it said nothing"]
            raise FlappyError(f"{path}: ffmpeg gave up: {show(said[-1], 200)}")
    return count


def _widen(pipe: IO[bytes]) -> None:
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE)


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


def _ffmpeg() -> str:
    """Return the path of the ffmpeg that imageio brings, or that IMAGEIO_FFMPEG_EXE names."""
    try:
        import imageio_ffmpeg
    except ImportError:
        raise MissingPart(
            "imageio-ffmpeg is not installed, and MP4 needs it: pip install 'flappybird[videos]', or write a .gif"
        ) from None
    asked = os.environ.get("IMAGEIO_FFMPEG_EXE")
    try:
        program: str | None = shutil.which(imageio_ffmpeg.get_ffmpeg_exe())
    except RuntimeError:
        program = None
    if program:
        return program
    if asked:
        raise MissingPart(f"no ffmpeg at IMAGEIO_FFMPEG_EXE={asked}, and MP4 needs one: correct or unset it, or write a .gif")
    raise MissingPart(
        "imageio-ffmpeg brings no ffmpeg for this platform: install ffmpeg or set IMAGEIO_FFMPEG_EXE, or write a .gif"
    )


# --- GIF ----------------------------------------------------------------------------------------------------------


def write_gif(path: Path, frames: Iterable[Frame], size: Size, fps: Fraction, samples: Iterable[Frame] = ()) -> int:
    """Write a GIF that loops: one palette, only what changes, the total time exact to 1/100 s. Return the number of pictures."""
    if fps > GIF_FPS:
        raise ConfigError(f"fps = {float(fps):g}: a GIF plays at most {GIF_FPS} pictures per second")
    _pillow()
    from videos.layers import Layers
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
        waiting: Layer | None = None
        since = 0  # 1/100 s at which the waiting picture appeared
        for frame in _chain(first, stream):
            layer = layers.next(frame)
            if layer is not None:
                now = round(100 * count / fps)
                if waiting is not None:
                    _put(file, waiting, now - since)
                since, waiting = now, layer
            count += 1
        assert waiting is not None
        _put(file, waiting, max(round(100 * count / fps) - since, 2))
        file.write(b"\x3b")
    return count


def _put(file: Any, layer: Layer, hundredths: int) -> None:
    image, gif = _pillow()
    part = image.fromarray(layer.part)
    disposal = 1 if layer.stays else 3
    # A delay is a 16-bit number: a picture that stands still for longer is shown again.
    while hundredths > 65_535:
        file.writelines(gif.getdata(part, layer.at, duration=600_000, disposal=disposal, transparency=0))
        hundredths -= 60_000
    file.writelines(gif.getdata(part, layer.at, duration=10 * hundredths, disposal=disposal, transparency=0))


def _chain(first: Frame, rest: Iterator[Frame]) -> Iterator[Frame]:
    yield first
    yield from rest


def _pillow() -> tuple[Any, Any]:
    try:
        from PIL import GifImagePlugin, Image
    except ImportError:
        raise MissingPart("pillow is not installed, and GIF needs it: pip install 'flappybird[videos]'") from None
    return Image, GifImagePlugin


# --- PNG ----------------------------------------------------------------------------------------------------------


def _imageio() -> Any:
    try:
        import imageio.v3
    except ImportError:
        raise MissingPart("imageio is not installed, and PNG needs it: pip install 'flappybird[videos]'") from None
    return imageio.v3


_NUMBERED = re.compile(r"%0?\d{0,2}d")


def numbered(path: Path) -> bool:
    """Whether `path` names a sequence, such as `frame-%04d.png`."""
    return bool(_NUMBERED.search(path.name))


def write_png(path: Path, frames: Iterable[Frame]) -> int:
    """Write the last picture, or each under its number where the name holds one; return how many."""
    imageio = _imageio()
    last, count = None, 0
    for count, frame in enumerate(frames, start=1):
        last = frame
        if numbered(path):
            number = _NUMBERED.search(path.name)
            assert number is not None
            name = f"{path.name[: number.start()]}{number[0] % (count - 1)}{path.name[number.end() :]}"
            with replacing(path.with_name(name)) as temporary:
                imageio.imwrite(temporary, frame, extension=".png")
    if last is None:
        raise FlappyError(f"{path}: no pictures to write")
    if numbered(path):
        return count
    with replacing(path) as temporary:
        imageio.imwrite(temporary, last, extension=".png")
    return 1
