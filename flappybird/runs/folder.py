"""Episode files: one, or a folder of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from flappybird.episodes.episode import load
from flappybird.errors import EpisodeError
from flappybird.runs.run import Piece, Row, Run
from flappybird.world.game import Reason


class Episodes:
    """Reads episode files."""

    def __init__(self, path: Path, files: list[Path]) -> None:
        self.path, self.files = path, files

    @classmethod
    def of(cls, path: Path) -> Self | None:
        if path.is_file() and path.suffix == ".json":
            return cls(path, [path])
        files = episode_files(path)
        return cls(path, files) if files else None

    def head(self) -> Run:
        return Run(self.path, "episodes", "unknown", [], asked=len(self.files))

    def pieces(self, start: int = 0) -> Iterator[Piece]:
        return (Piece(number, {}) for number in range(start, len(self.files)))

    def rows(self, piece: Piece) -> list[Row]:
        """Return the row of one file. Raises EpisodeError where it is the only one and no episode."""
        file = self.files[piece.offset]
        try:
            episode = load(file)
        except EpisodeError as fault:
            if len(self.files) == 1:
                raise
            return [Row(0, None, problem=str(fault), offset=piece.offset)]
        ending = episode.outcome
        claims = {name: float(getattr(ending, name)) for name in ("reward", "pipes_passed", "survival_score", "format")}
        error = ending.error or "error" if ending.reason is Reason.ERROR else None
        return [Row(0, episode, error=error, claims=claims, example=episode.seed, offset=piece.offset)]


def episode_files(folder: Path) -> list[Path]:
    """Return the episode files in `folder`, in the order of the numbers in their names."""
    if not folder.is_dir():
        return []
    # Regular files: reading a pipe would wait for ever. Names with a dot are what `files.replacing` writes to.
    found = [file for file in folder.glob("*.json") if not file.name.startswith(".") and file.is_file()]
    return sorted(found, key=_by_number)


def _by_number(file: Path) -> list[tuple[int, int, str]]:
    parts = re.split(r"(\d+)", file.name)
    return [(len(part.lstrip("0")), 0, part.lstrip("0")) if index % 2 else (0, 0, part) for index, part in enumerate(parts)]
