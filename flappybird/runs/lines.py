"""Files of JSON lines, read one line at a time from any byte on: memory does not grow with the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from flappybird.episodes.episode import MAX_BYTES
from flappybird.errors import EpisodeError
from flappybird.runs.run import MAX_ROWS, Piece
from flappybird.system.files import open_to_read, parse_json


def json_lines(path: Path, start: int = 0) -> Iterator[Piece]:
    """Yield the lines of `path` from the byte `start` on, which is where a line begins; empty ones are left out.

    Raises:
        EpisodeError: the file cannot be read, or a line is larger than `MAX_BYTES`.
    """
    try:
        with open_to_read(path) as file:
            file.seek(start)
            offset = start
            for number in range(1, MAX_ROWS + 1):
                line = file.readline(MAX_BYTES + 1)
                if not line:
                    return
                if len(line) > MAX_BYTES:
                    # The lines before an offset were not counted.
                    where = f"line {number}" if start == 0 else f"the line at byte {offset}"
                    raise EpisodeError(f"{path}: {where} is larger than {MAX_BYTES / 1e6:g} MB, the most that is read")
                if line.strip():
                    yield _piece(offset, line, f"line {number}")
                offset += len(line)
    except OSError as error:
        raise EpisodeError(f"{path}: {error.strerror or error}") from None


def _piece(offset: int, line: bytes, name: str) -> Piece:
    try:
        value = parse_json(line, name, constants=True)
    except EpisodeError as error:
        return Piece(offset, None, str(error))
    return Piece(offset, value) if isinstance(value, dict) else Piece(offset, None, f"{name}: no JSON object")
