"""Writing and reading files so that what stands under a final name is whole, and what is read is bounded."""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flappybird.errors import EpisodeError, FlappyError, show
from flappybird.system.signals import held


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path` to write to; it takes the final name when the block ends, and goes when it fails."""
    path = Path(path)
    if path.is_dir():
        raise FlappyError(f"{path}: is a folder; name a file")
    if not path.parent.is_dir():
        raise FlappyError(f"{path}: there is no folder {path.parent}")
    temporary = None
    try:
        with held():
            handle, name = tempfile.mkstemp(prefix=f".{path.stem[:40]}-", suffix=path.suffix, dir=path.parent)
            os.close(handle)
            temporary = Path(name)
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        # The name that people know; where none is told, as of a full disk, too.
        ours = temporary is None or error.filename in (None, os.fspath(temporary))
        if error.errno is not None and ours and error.filename2 is None:
            error.filename = os.fspath(path)
        raise
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


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
        with open(path, "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise EpisodeError(f"{path}: {error.strerror or error}") from None
    if len(data) > limit:
        raise EpisodeError(f"{path}: larger than {limit / 1e6:g} MB, the most that is read")
    return data


def parse_json(data: bytes | str, name: str, constants: bool = False) -> Any:
    """Return the JSON value in `data`. Raises EpisodeError, beginning with `name`, where it is none.

    NaN and infinity are no JSON; with `constants` they are read all the same, since others write them.
    """
    try:
        if constants:
            return json.loads(data)
        return json.loads(data, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError:
        raise EpisodeError(f"{name}: nested too deeply") from None
    except ValueError as error:
        raise EpisodeError(f"{name}: not JSON: {show(str(error), 120)}") from None


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{show(digits, 20)} is larger than any number that is read")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")
