"""What is known of each row of a run, read from a range of its file that needs no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

from flappybird.episodes import rewards
from flappybird.episodes.episode import Replay, replay
from flappybird.runs.check import check
from flappybird.runs.load import open_run
from flappybird.runs.results import FILE as RESULTS
from flappybird.runs.run import Row
from flappybird.runs.traces import FILE as TRACES
from flappybird.system.files import open_to_read
from flappybird.world.game import Reason
from flappybird.world.levels import LEVELS

Explain = Callable[[Row, Replay], str]
"""Names what lost an episode, empty where nothing did; a function of a module, since other processes import it."""


@dataclass(frozen=True)
class Entry:
    """One row of a run, as the index keeps it. What is not known is None."""

    offset: int
    """The byte at which its line begins, or the number of its file in a folder."""
    part: int
    """Which of the rollouts of this line, from 0."""
    length: int
    """Bytes up to the next line; 1 in a folder."""
    ended: str | None = None
    """A value of `Reason`; None where there is no transcript and no error."""
    cause: str | None = None
    """What lost it; None where nobody asked, see `Explain`."""
    reward: float | None = None
    pipes: float | None = None
    ticks: float | None = None
    format: float | None = None
    invalid: float | None = None
    tokens: float | None = None
    """Completion tokens of the whole rollout."""
    turns: int | None = None
    example: str | None = None
    seed: int | None = None
    level: str | None = None
    """The name of the level; `custom` where the world is none of them."""
    verified: bool | None = None
    """Whether all that was saved agrees with the replay."""
    error: str | None = None
    """What went wrong outside of the game, or why there is no episode."""


COLUMNS = tuple(field.name for field in fields(Entry))


@dataclass(frozen=True)
class Part:
    """What a range of a file holds."""

    entries: list[Entry]
    damaged: int


def index_range(task: tuple[str, int, int, Explain | None]) -> Part:
    """Return the entries of the lines that begin in `start ≤ byte < end` of a run; for a folder, of these of its files.

    Args:
        task: path, start, end, and what explains an episode, None for nothing.

    Raises:
        EpisodeError: the run cannot be read.
    """
    path, start, end, explain = task
    opened = open_run(path)
    file = file_of(Path(path))
    if file is not None:
        start = _line_start(file, start)
    entries: list[Entry] = []
    damaged = 0
    for piece in opened.pieces(start) if start < end else ():
        if piece.offset >= end:
            break
        damaged += piece.problem is not None
        rows = opened.rows_of(piece)
        length = _line_length(file, piece.offset) if file is not None else 1
        entries += (_entry(row, piece.offset, part, length, explain) for part, row in enumerate(rows))
    return Part(entries, damaged)


def _line_start(file: Path, start: int) -> int:
    """Return the first byte from `start` on at which a line begins."""
    if start == 0:
        return 0
    with open_to_read(file) as opened:
        opened.seek(start - 1)
        while (piece := opened.readline(1 << 20)) and not piece.endswith(b"\n"):
            pass
        return opened.tell()


def _line_length(file: Path, start: int) -> int:
    return _line_start(file, start + 1) - start


def _entry(row: Row, offset: int, part: int, length: int, explain: Explain | None) -> Entry:
    episode = row.episode
    example = None if row.example is None else str(row.example)
    if episode is None:
        ended = Reason.ERROR.value if row.error is not None else None
        why = row.error or row.problem
        return Entry(
            offset, part, length, ended, reward=row.claims.get("reward"), tokens=row.completion_tokens, example=example, error=why
        )
    flown = replay(episode)
    ending = episode.outcome
    return Entry(
        offset,
        part,
        length,
        ended=Reason.ERROR.value if row.error is not None else ending.reason.value,
        cause=explain(row, flown) if explain else None,
        reward=ending.reward,
        pipes=float(ending.pipes_passed),
        ticks=float(ending.ticks),
        format=ending.format,
        invalid=rewards.invalid_actions(episode),
        tokens=row.completion_tokens,
        turns=len(episode.turns),
        example=example,
        # SQLite's whole numbers have 64 bits.
        seed=episode.seed if abs(episode.seed) < 2**63 else None,
        level=next((name for name, config in LEVELS.items() if config == episode.config), "custom"),
        verified=not check(row, flown),
        error=row.error,
    )


def file_of(path: Path) -> Path | None:
    """Return the file of lines that a run is saved in; None for episode files."""
    if path.name in (RESULTS, TRACES):
        return path
    return next((path / name for name in (RESULTS, TRACES) if (path / name).is_file()), None)


def whole_lines(file: Path, size: int) -> int:
    """Return up to which byte `file` holds whole lines: a last one without its end counts where it is whole JSON."""
    with open_to_read(file) as opened:
        end, tail = size, b""
        while end > 0:
            start = max(end - 65_536, 0)
            opened.seek(start)
            block = opened.read(end - start)
            cut = block.rfind(b"\n")
            if cut >= 0:
                tail, end = block[cut + 1 :] + tail, start + cut + 1
                break
            tail, end = block + tail, start
    try:
        whole = bool(tail.strip()) and isinstance(json.loads(tail), dict)
    except (ValueError, RecursionError):
        whole = False
    return size if whole else end
