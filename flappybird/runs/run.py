"""A run: the rollouts of a saved evaluation, what its readers share, and the interface behind which each of them stands."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from flappybird.episodes.episode import Episode
from flappybird.episodes.verify import Difference
from flappybird.errors import show

MAX_ROWS = 1_000_000
"""The most rollouts that are read from one run."""


class Contradiction(Difference):
    """Something saved of a rollout that the format, the run's own settings or another part of the row denies."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"tick {self.tick}: {self.where} is {show(self.stored)}, must be {show(self.replayed)}"


@dataclass(frozen=True)
class Row:
    """One rollout of a run."""

    index: int
    """Position in the run, from 0: the N of `RUN:N`."""
    episode: Episode | None
    """The rollout rebuilt from seed, config and replies; None where that is not possible."""
    problem: str | None = None
    """Why there is no episode."""
    error: str | None = None
    """What the run says went wrong outside of the game; such a rollout is no score."""
    claims: dict[str, float] = field(default_factory=dict)
    """Scores as the run saved them: `reward` and metrics, by name; finite numbers only."""
    contradictions: Sequence[Difference] = ()
    """What is wrong with the row before anything is replayed: scores that are missing or no numbers, parts that disagree."""
    stated: dict[str, Any] = field(default_factory=dict)
    """What else the run says of the rollout that its replay knows, by name; see `check.facts`."""
    observations: list[str] | None = None
    """The user messages as they were sent, in order; None where they were not saved."""
    replies: list[tuple[str, str]] | None = None
    """Text and reasoning of each reply as the transcript has it, where the episode was not made from the transcript."""
    example: int | str | None = None
    """The example (dataset row) that was played."""
    rollout: int = 0
    """Which of the rollouts of this example it is, from 0, in the order of the file."""
    usage: dict[str, float] = field(default_factory=dict)
    """Tokens of the whole rollout where known: `prompt_tokens`, `completion_tokens`."""
    started: float | None = None
    """When it began, in seconds since 1970; None where unknown."""
    mark: str | None = None
    """A digest of what was said and when: two rows with one mark are copies. None where it cannot tell rows apart."""
    offset: int = 0
    """Where it stands: the byte at which its line begins, or the number of its file in a folder."""

    @property
    def completion_tokens(self) -> float | None:
        """Tokens of all its replies: those that are known turn by turn, else of the whole rollout; None where unknown."""
        turns = self.episode.turns if self.episode else ()
        known = [turn.completion_tokens for turn in turns if turn.completion_tokens is not None]
        return float(sum(known)) if known else self.usage.get("completion_tokens")


@dataclass(frozen=True)
class Run:
    """A saved evaluation, or a folder of episodes."""

    path: Path
    kind: Literal["classic", "v1", "episodes"]
    model: str
    rows: list[Row]
    asked: int | None = None
    """How many rollouts were asked for, where known."""
    each: int | None = None
    """How many of them of each example, where known."""
    env_args: dict[str, Any] = field(default_factory=dict)
    sampling: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    """Release of the environment and of verifiers, where known."""
    averages: dict[str, Any] = field(default_factory=dict)
    """Means over the rows as the run saved them, by name: `reward`, `error` and every metric; whatever stands there."""
    date: datetime | None = None
    """When it was made, with time zone."""
    damaged: int = 0
    """Lines that could not be read and were skipped."""
    notes: list[str] = field(default_factory=list)
    """What a reader should know: settings that differ from row to row, unreadable files."""

    @property
    def surplus(self) -> list[Row]:
        """The rows beyond those that were asked for: more rollouts of an example, or more examples."""
        examples = self.asked // self.each if self.asked is not None and self.each else None
        first = set(list(dict.fromkeys(row.example for row in self.rows))[:examples])
        return [row for row in self.rows if (self.each and row.rollout >= self.each) or row.example not in first]

    @property
    def missing(self) -> int:
        """How many of the rollouts that were asked for have no row."""
        return max((self.asked or 0) - (len(self.rows) - len(self.surplus)), 0)


class Piece(NamedTuple):
    """What is read of a run at a time: a line, or a file of its own."""

    offset: int
    """The byte at which the line begins, or the number of the file."""
    data: Any
    """The JSON object that stands there; None where none does."""
    problem: str | None = None
    """Why there is none."""


class Reader(Protocol):
    """How one format is read. A new format is another class in `load.READERS`; nothing else knows of it."""

    @classmethod
    def of(cls, path: Path) -> Reader | None:
        """Return the reader of what lies at `path`, None where that is of another format."""

    def head(self) -> Run:
        """Return all that is known of the run without its rows. Reads small files only, and the first line."""

    def pieces(self, start: int = 0) -> Iterator[Piece]:
        """Yield what the run consists of from the offset `start` on, one piece in memory at a time. Raises EpisodeError."""

    def rows(self, piece: Piece) -> list[Row]:
        """Return the rollouts that a piece holds; indices and rollouts are not counted yet."""


def file_name(index: int, kind: str = "json", rows: int = 0) -> str:
    """Return the name of the file that is made from row `index` of a run of `rows` rows: names sort like their rows.

    >>> file_name(12), file_name(12, rows=20_000)
    ('episode-0012.json', 'episode-00012.json')
    """
    return f"episode-{index:0{max(4, len(str(rows - 1)))}d}.{kind}"


def filled(head: Run, rows: Iterable[Row], damaged: int) -> Run:
    """Return the run that `head` begins, with its rows: by example, since libraries save as they finish; files as they lie."""
    listed = list(rows)
    if head.kind != "episodes":
        listed.sort(key=lambda row: row.example if isinstance(row.example, int) else math.inf)
    counts: Counter[Any] = Counter()
    for index, row in enumerate(listed):
        listed[index] = replace(row, index=index, rollout=counts[row.example])
        counts[row.example] += 1
    starts = [row.started for row in listed if row.started]
    worlds = {json.dumps([row.episode.config.model_dump(), row.episode.rules.model_dump()]) for row in listed if row.episode}
    mixed = [f"the rows were played under {len(worlds)} different settings"] if len(worlds) > 1 else []
    return replace(head, rows=listed, damaged=damaged, date=_date(starts), notes=[*head.notes, *mixed])


def _date(starts: list[float]) -> datetime | None:
    return datetime.fromtimestamp(min(starts), UTC) if starts and 0 < min(starts) < 4e9 else None
