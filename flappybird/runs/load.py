"""A path → a run: what is there is recognised, and read by the reader of its format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from flappybird.episodes.episode import FORMAT, Episode
from flappybird.errors import EpisodeError
from flappybird.runs.folder import Episodes, episode_files
from flappybird.runs.results import FILE as RESULTS
from flappybird.runs.results import Results
from flappybird.runs.run import Piece, Reader, Row, Run, filled
from flappybird.runs.traces import FILE as TRACES
from flappybird.runs.traces import Traces

READERS: tuple[type[Reader], ...] = (Results, Traces, Episodes)
"""The formats that are read, asked in this order."""

DEEPEST = 6
"""How many folders down a run is looked for when a path is none."""
MOST_FOLDERS = 5_000
"""How many folders are looked into for it."""


class OpenRun:
    """A run whose rows are read one at a time, from any of them on: memory does not grow with it.

    Rows come in the order in which they were saved, with the `offset` of the piece that each was read from; indices and
    rollouts are counted only by `load_run`, which sees all of them.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    @property
    def head(self) -> Run:
        """The run without its rows."""
        return self._reader.head()

    def pieces(self, start: int = 0) -> Iterator[Piece]:
        """Yield the lines or files of the run from the offset `start` on. Raises EpisodeError where one cannot be read."""
        return self._reader.pieces(start)

    def rows_of(self, piece: Piece) -> list[Row]:
        """Return the rollouts of one piece; none where it is damaged."""
        return self._reader.rows(piece)

    def rows_at(self, offset: int) -> list[Row]:
        """Return the rollouts that were read at `offset` before."""
        return self.rows_of(next(self.pieces(offset)))

    def __iter__(self) -> Iterator[Row]:
        for piece in self.pieces():
            yield from self.rows_of(piece)


def open_run(path: str | Path) -> OpenRun:
    """Return the run at `path`: an episode file, a folder of them, or what `vf-eval` (or v1's `eval`, `replay`, `gepa`) saved.

    Raises:
        EpisodeError: there is nothing to read, or it is no run.
    """
    path = Path(path)
    for reader in READERS:
        if found := reader.of(path):
            return OpenRun(found)
    if not os.path.lexists(path):
        raise EpisodeError(f"{path}: no such file or folder")
    below = list(_below(path))
    hint = " (results.jsonl, traces.jsonl)"
    if below:
        more = f" and {len(below) - 1} more" if len(below) > 1 else ""
        hint = f"; below it is one: {below[0]}{more}"
    raise EpisodeError(f"{path}: neither an episode file, nor a folder of them, nor a saved evaluation{hint}")


def load_run(path: str | Path) -> Run:
    """Return the run at `path` with all its rows, those of one example side by side. Raises as `open_run` does."""
    opened = open_run(path)
    rows: list[Row] = []
    damaged = 0
    for piece in opened.pieces():
        damaged += piece.problem is not None
        rows += opened.rows_of(piece)
    run = filled(opened.head, rows, damaged)
    if run.kind == "episodes":
        names = sorted({row.episode.player.name for row in rows if row.episode})
        return Run(**{**vars(run), "model": ", ".join(names) or "unknown"})
    return run


def load_runs(paths: Iterable[str], say: Callable[[str], None]) -> list[Run]:
    """Return the runs at `paths` that have rows; one of several that has none yet, since it was interrupted, is named by `say`.

    Raises:
        EpisodeError: one is no run, or none has a row.
    """
    listed = list(paths)
    if len(listed) == 1:
        return [load_run(listed[0])]
    found = []
    for path in listed:
        run = None if is_empty(path) else load_run(path)
        if run is None or not run.rows:
            say(f"{path}: left out: no rollout was finished")
        else:
            found.append(run)
    if not found:
        raise EpisodeError(f"none of {len(listed)} paths has a finished rollout")
    return found


def is_empty(path: str | Path) -> bool:
    """Whether `path` is what an evaluation leaves that was interrupted before its first rollout: a folder without any run."""
    path = Path(path)
    if not path.is_dir() or any(reader.of(path) for reader in READERS if reader is not Episodes):
        return False
    names = {entry.name for entry in path.iterdir()}
    return not names or (
        bool(names & {"metadata.json", "configs", "config.toml"})
        and not names
        - {
            "metadata.json",
            "configs",
            "config.toml",
            "logs",
        }
    )


def load_episode_at(where: str) -> Episode:
    """Return the episode that `where` names: an episode file, or `RUN:N` for row N of a run.

    Raises:
        EpisodeError: there is none.
    """
    path, colon, digits = where.rpartition(":")
    if not colon or not (digits.isascii() and digits.isdecimal()) or Path(where).exists():
        rows = load_run(where).rows
        if len(rows) != 1:
            raise EpisodeError(f"{where}: has {len(rows)} episodes; name one as {where}:N, N from 0")
        row = rows[0]
    else:
        rows = load_run(path).rows
        if len(digits) > 12 or int(digits) >= len(rows):
            have = "1 episode, N must be 0" if len(rows) == 1 else f"{len(rows)} episodes, N must be from 0 to {len(rows) - 1}"
            raise EpisodeError(f"{where}: {path} has {have if rows else 'no episode'}")
        row = rows[int(digits)]
    if row.episode is None:
        raise EpisodeError(f"{where}: {row.problem}")
    return row.episode


def _below(path: Path) -> Iterator[Path]:
    """Yield the runs and folders of episodes below a folder, those least deep first."""
    level = [path]
    looked = 0
    for _ in range(DEEPEST):
        folders: list[Path] = []
        for folder in level:
            try:
                folders += sorted(
                    Path(entry) for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith(".")
                )
            except OSError:
                continue  # not ours to look into
        level = folders[: MOST_FOLDERS - looked]
        looked += len(level)
        for folder in level:
            if (folder / RESULTS).is_file() or (folder / TRACES).is_file() or has_episodes(folder):
                yield folder


def has_episodes(folder: Path) -> bool:
    """Whether a folder is one of episode files, by what the first of them begins with."""
    for file in episode_files(folder)[:1]:
        try:
            with open(file, "rb") as opened:
                return FORMAT.encode() in opened.read(200)
        except OSError:
            return False
    return False
