"""Writing and reading files so that what stands under a final name is whole, and what is read is bounded."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from flappybird.errors import EpisodeError, FlappyError, show
from flappybird.system.signals import held

LONGEST_WHOLE = 30
"""Digits of a whole number that is read as one; a longer one is no number that anything here can have."""


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path to write to; what stands there takes the name `path` when the block ends, and goes when it fails.

    Only a regular file is ever replaced, and keeps its mode and, as far as this process may, its owner. A symbolic link keeps
    pointing: what it points to is replaced. A pipe, a terminal or another character device is written to when the block ends.

    Raises:
        FlappyError: `path` is a folder, in no folder, a socket, a disk, or a pipe that nobody reads.
    """
    path = Path(path)
    if path.is_dir():
        raise FlappyError(f"{path}: is a folder; name a file")
    before = _status(path)
    streamed = before is not None and (not stat.S_ISREG(before.st_mode) or _is_ours(before))
    target = path if streamed else Path(os.path.realpath(path))
    if streamed:
        _check_stream(path, before)
    elif not target.parent.is_dir():
        raise FlappyError(f"{path}: there is no folder {target.parent if path.is_symlink() else path.parent}")
    temporary = None
    try:
        with held():
            folder = None if streamed else target.parent
            handle, name = tempfile.mkstemp(prefix=f".{path.stem[:40]}-", suffix=path.suffix, dir=folder)
            os.close(handle)
            temporary = Path(name)
        yield temporary
        if streamed:
            _pour(temporary, path)
        else:
            _take_mode(temporary, before)
            temporary.replace(target)
    except OSError as error:
        # The name that people know; the error names none where the disk is full.
        ours = temporary is None or error.filename in (None, os.fspath(temporary))
        if error.errno is not None and ours and error.filename2 is None:
            error.filename = os.fspath(path)
        raise
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _status(path: Path) -> os.stat_result | None:
    """Return what stands under `path`, links followed; None where nothing does."""
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _is_ours(status: os.stat_result) -> bool:
    """Whether a file is what this process prints to, as `/dev/stdout` is where the shell sent it to a file."""
    for number in (1, 2):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(number), status):
                return True
    return False


def _check_stream(path: Path, status: os.stat_result | None) -> None:
    """Raise FlappyError where `path` is neither a pipe nor a device of characters, which are written to like files."""
    mode = status.st_mode if status else 0
    for what, kind in ((stat.S_ISSOCK, "a socket"), (stat.S_ISBLK, "a block device")):
        if what(mode):
            raise FlappyError(f"{path}: is {kind}; name a file")


def _pour(source: Path, stream: Path) -> None:
    """Write what is in `source` to the pipe or device `stream`. Raises FlappyError where nobody reads the pipe."""
    try:
        # To a pipe without a reader, opening would wait for ever.
        handle = os.open(stream, os.O_WRONLY | os.O_APPEND | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise FlappyError(f"{stream}: is a pipe that nobody reads") from None
        raise
    with open(source, "rb") as file, open(handle, "wb") as out:
        os.set_blocking(handle, True)
        shutil.copyfileobj(file, out)


def _take_mode(temporary: Path, before: os.stat_result | None) -> None:
    """Give a new file the mode and owner of the one that it replaces, or those that any new file has."""
    if before is None:
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        return
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):  # not root: the file is its writer's then, as after an editor
            os.chown(temporary, before.st_uid, before.st_gid)
    temporary.chmod(stat.S_IMODE(before.st_mode))


def write_text(path: Path, text: str) -> None:
    """Write `text` under `path`, whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` under `path`, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def read_json(path: Path, limit: int) -> Any:
    """Return the JSON value in the file `path`.

    Raises:
        EpisodeError: the file is missing, unreadable, larger than `limit` bytes, or no JSON; NaN and infinity are no JSON.
    """
    return parse_json(read_bytes(path, limit), str(path))


def read_bytes(path: Path, limit: int) -> bytes:
    """Return what is in the file `path`. Raises EpisodeError where it cannot be read or is larger than `limit` bytes."""
    try:
        with open_to_read(path) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise EpisodeError(f"{path}: {error.strerror or error}") from None
    if len(data) > limit:
        raise EpisodeError(f"{path}: larger than {limit / 1e6:g} MB, the most that is read")
    return data


def open_to_read(path: Path) -> BinaryIO:
    """Open `path` for reading bytes, without waiting for somebody to write to it where it is a pipe."""

    def opener(name: str, flags: int) -> int:
        handle = os.open(name, flags | getattr(os, "O_NONBLOCK", 0))
        if hasattr(os, "O_NONBLOCK"):
            os.set_blocking(handle, True)
        return handle

    return open(path, "rb", opener=opener)


def parse_json(data: bytes | str, name: str, constants: bool = False) -> Any:
    """Return the JSON value in `data`. Raises EpisodeError, beginning with `name`, where it is none.

    NaN and infinity are no JSON; with `constants` they are read all the same, since others write them, and a number of more
    digits than anything has is read as infinity.
    """
    try:
        if constants:
            return json.loads(data, parse_int=_whole)
        return json.loads(data, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise EpisodeError(f"{name}: nested too deeply") from None
    except ValueError as error:
        raise EpisodeError(f"{name}: not JSON: {show(str(error), 120)}") from None


def _whole(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_WHOLE else math.copysign(math.inf, -1.0 if digits.startswith("-") else 1.0)


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{show(digits, 20)} is larger than any number that is read")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")
