"""The index of runs: what is known of each of their rows, read once and kept in a small SQLite file that may be deleted.

A file that grew is read from where reading ended; one that was replaced is read anew. A last line that is not whole yet is
waited for. Ranges of a file are independent of each other, so that they can be spread over processes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any

from flappybird.errors import EpisodeError, FlappyError
from flappybird.runs.entries import COLUMNS, Entry, Explain, Part, file_of, index_range, whole_lines
from flappybird.runs.load import open_run
from flappybird.runs.run import Run
from flappybird.system.files import open_to_read
from flappybird.system.jobs import spread

SCHEMA = 1
"""Raised when the same file would give other rows or columns; an index of another schema is another file."""

RANGE = 8_000_000
"""Bytes of a file that are one task; some dozens of episodes of 300 ticks."""

SAMPLE = 4_096
"""Bytes at both ends of what was read by which a file that was replaced is known."""

# --- the file -----------------------------------------------------------------------------------------------------


def index_file() -> Path:
    """Return where the index lies: in the user's cache folder, or that of temporary files where nothing can be written there."""
    base = os.environ.get("XDG_CACHE_HOME") or ""
    user = str(os.getuid()) if hasattr(os, "getuid") else "user"
    homes = [Path(base) if os.path.isabs(base) else Path("~/.cache").expanduser(), Path(tempfile.gettempdir()) / f"cache-{user}"]
    for home in homes:
        folder = home / "flappybird"
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if os.access(folder, os.W_OK):
                return folder / f"runs-{SCHEMA}.sqlite"
    raise FlappyError(f"no folder for the index can be written: {', '.join(map(str, homes))}")


_TABLES = f"""
create table if not exists runs (
    id integer primary key, path text unique, inode integer, modified integer, done integer, sample text, head text,
    explained integer, damaged integer);
create table if not exists entries (
    run integer, {", ".join(COLUMNS)}, primary key (run, offset, part)) without rowid;
"""


class Index:
    """The index of runs. Several processes, and several threads of each, may use it at once.

    Args:
        file: the SQLite file; `index_file()` if not given. A file that is none is made anew.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file or index_file()
        try:
            self._make()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise FlappyError(f"{self.file}: {error}") from None
            for suffix in ("", "-wal", "-shm"):  # damaged: it holds nothing that cannot be read again
                Path(f"{self.file}{suffix}").unlink(missing_ok=True)
            self._make()

    def _make(self) -> None:
        with self._open() as database:
            database.execute("pragma journal_mode = wal")
            database.executescript(_TABLES)

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with contextlib.closing(sqlite3.connect(self.file, timeout=60)) as database, database:
            database.row_factory = sqlite3.Row
            database.execute("pragma synchronous = normal")
            yield database

    def update(
        self, path: str | Path, jobs: int | None = 1, backend: str | None = None, explain: Explain | None = None
    ) -> Iterator[tuple[int, int]]:
        """Read what is new of the run at `path`; yield how much of it is indexed and how much there is: bytes, or files.

        Args:
            path: the run.
            jobs: processes; None for one per processor.
            backend: a cluster instead, see `system.jobs`.
            explain: what names the causes; a run that was indexed without is then read anew.

        Raises:
            EpisodeError: there is no run, or it cannot be read. What was known of it stays.
        """
        path = Path(os.path.realpath(path))
        opened = open_run(path)
        file = file_of(path)
        try:
            status = (file or path).stat()
            size = status.st_size if file else opened.head.asked or 0
            known = self._known(path)
            listing = _digest(_listing(path)) if file is None else ""
            explained = known is not None and (bool(known["explained"]) or explain is None)
            unchanged = known is not None and (known["inode"], known["modified"]) == (status.st_ino, status.st_mtime_ns)
            if known and explained and size == known["done"] and (unchanged if file else known["sample"] == listing):
                yield size, size
                return
            end = whole_lines(file, size) if file else size
            head = _settled(opened.head)
            same = explained and known["inode"] == status.st_ino and known["head"] == head if known else False
            if known and same:
                same = known["done"] <= end and (unchanged or known["done"] < size)
                same = same and known["sample"] == (_sample(file, known["done"]) if file else listing)
        except OSError as error:
            raise EpisodeError(f"{path}: {error.strerror or error}") from None
        start = known["done"] if known and same else 0
        facts = {"inode": status.st_ino, "modified": status.st_mtime_ns, "head": head, "explained": explain is not None}
        run = self._begin(path, facts, start)
        yield start, size
        step = RANGE if file else 64
        ranges = [(lower, min(lower + step, end)) for lower in range(start, end, step)]
        tasks = ((str(path), lower, upper, explain) for lower, upper in ranges)
        parts = spread(index_range, tasks, jobs if len(ranges) > 1 else 1, backend)
        for (lower, upper), part in zip(ranges, parts, strict=True):
            self._add(run, (lower, upper), part, _sample(file, upper) if file else listing)
            yield upper, size

    def _known(self, path: Path) -> sqlite3.Row | None:
        with self._open() as database:
            found: sqlite3.Row | None = database.execute("select * from runs where path = ?", (str(path),)).fetchone()
            return found

    def _begin(self, path: Path, facts: dict[str, Any], start: int) -> int:
        with self._open() as database:
            database.execute("begin immediate")
            database.execute(
                "insert or ignore into runs (path, done, damaged, sample) values (?, 0, 0, ?)", (str(path), _digest(b""))
            )
            run: int = database.execute("select id from runs where path = ?", (str(path),)).fetchone()["id"]
            database.execute(
                "update runs set inode = :inode, modified = :modified, head = :head, explained = :explained where id = :run",
                {**facts, "run": run},
            )
            if start == 0:
                database.execute("delete from entries where run = ?", (run,))
                database.execute("update runs set done = 0, damaged = 0, sample = ? where id = ?", (_digest(b""), run))
            return run

    def _add(self, run: int, done: tuple[int, int], part: Part, sample: str) -> None:
        values = f"({', '.join('?' * (len(COLUMNS) + 1))})"
        with self._open() as database:
            database.execute("begin immediate")
            # Where another process was faster, its rows are these rows, and counted already.
            moved = database.execute(
                "update runs set done = ?, sample = ?, damaged = damaged + ? where id = ? and done = ?",
                (done[1], sample, part.damaged, run, done[0]),
            ).rowcount
            if moved:
                database.executemany(
                    f"insert or replace into entries values {values}", ((run, *astuple(entry)) for entry in part.entries)
                )

    # --- what is asked of it ---

    def count(self, path: str | Path, where: Where | None = None) -> int:
        """Return how many rows of a run there are, of those that `where` keeps."""
        condition, values = _condition(where)
        return int(self._ask(path, f"select count(*) n from entries where run = ? {condition}", values)[0]["n"])

    def entries(
        self,
        path: str | Path,
        where: Where | None = None,
        sort: str = "offset",
        down: bool = False,
        start: int = 0,
        most: int = 100,
    ) -> list[Entry]:
        """Return up to `most` rows of a run from the `start`-th on, sorted by the column `sort`; unknown values come last.

        Raises:
            EpisodeError: there is no such column.
        """
        condition, values = _condition(where)
        column, order = _column(sort), "desc" if down else "asc"
        found = self._ask(
            path,
            f"select {', '.join(COLUMNS)} from entries where run = ? {condition} "
            f"order by {column} is null, {column} {order}, offset, part limit ? offset ?",
            [*values, most, start],
        )
        return [
            Entry(**{**row, "verified": None if row["verified"] is None else bool(row["verified"])}) for row in map(dict, found)
        ]

    def numbers(self, path: str | Path) -> dict[str, Any]:
        """Return figures of a run: rows `n`, `scores` of them and the sum and squares of their rewards, `errors`, `replayed`,
        `unverified`, `damaged` lines."""
        row = self._ask(
            path,
            "select count(*) n, coalesce(sum(ended = 'error'), 0) errors, count(verified) replayed, "
            "coalesce(sum(verified = 0 and turns > 0), 0) unverified, "
            "count(case when ended is not 'error' then reward end) scores, "
            "coalesce(sum(case when ended is not 'error' then reward end), 0) total, "
            "coalesce(sum(case when ended is not 'error' then reward * reward end), 0) squares, "
            "max(level) level, min(seed) first, max(seed) last from entries where run = ?",
        )[0]
        known = self._known(Path(os.path.realpath(path)))
        return {**dict(row), "damaged": known["damaged"] if known else 0, "done": known["done"] if known else 0}

    def values(self, path: str | Path, column: str) -> dict[Any, int]:
        """Return how often each value of a column stands in a run, the most frequent first."""
        name = _column(column)
        rows = self._ask(path, f"select {name} value, count(*) n from entries where run = ? group by {name} order by n desc")
        return {row["value"]: row["n"] for row in rows}

    def _ask(self, path: str | Path, question: str, values: Any = ()) -> list[sqlite3.Row]:
        known = self._known(Path(os.path.realpath(path)))
        with self._open() as database:
            return database.execute(question, (known["id"] if known else -1, *values)).fetchall()


Where = dict[str, Any]
"""Column → the value that it must have, a list of those that it may have, or a pair (least, most) of which either may be None."""


def _condition(where: Where | None) -> tuple[str, list[Any]]:
    parts, values = [""], []
    for name, wanted in (where or {}).items():
        column = _column(name)
        if isinstance(wanted, list):
            parts.append(f"{column} in (select value from json_each(?))")
            values.append(json.dumps(wanted))
            continue
        pairs = zip((">=", "<="), wanted, strict=True) if isinstance(wanted, tuple) else [("is", wanted)]
        for sign, value in pairs:
            if not isinstance(wanted, tuple) or value is not None:
                parts.append(f"{column} {sign} ?")
                values.append(value)
    return " and ".join(parts), values


def _column(name: str) -> str:
    if name not in COLUMNS:
        raise EpisodeError(f"{name!r} is no column; there are {', '.join(COLUMNS)}")
    return name


# --- how a file is known again ------------------------------------------------------------------------------------


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _sample(file: Path, done: int) -> str:
    """Return a digest of the first and the last bytes of what was read of a file."""
    with open_to_read(file) as opened:
        first = opened.read(min(SAMPLE, done))
        opened.seek(max(done - SAMPLE, 0))
        return _digest(first + opened.read(min(SAMPLE, done)))


def _listing(path: Path) -> bytes:
    """Return what tells one state of a folder of episode files from another: names, sizes, times."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    return repr([(file.name, status.st_size, status.st_mtime_ns) for file in files for status in [file.stat()]]).encode()


def _settled(head: Run) -> str:
    """Return a digest of what the run says of all of its rows; what changes while it runs is left out."""
    return _digest(json.dumps([head.kind, head.model, head.env_args, head.sampling], sort_keys=True, default=str).encode())
