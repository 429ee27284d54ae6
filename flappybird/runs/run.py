"""A run: the rollouts of a saved evaluation, and what its readers share."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from flappybird.episodes.episode import MAX_BYTES, Episode, Player
from flappybird.errors import EpisodeError
from flappybird.system.files import parse_json
from flappybird.world.config import one_line

MAX_ROWS = 1_000_000
"""The most rollouts that are read from one run."""

MAX_ERROR = 1_000
"""Characters of an error that are kept; a server can send pages of it."""


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


@dataclass(frozen=True)
class Run:
    """A saved evaluation, or a folder of episodes."""

    path: Path
    kind: Literal["classic", "v1", "episodes"]
    model: str
    rows: list[Row]
    asked: int | None = None
    """How many rollouts were asked for, where known."""
    env_args: dict[str, Any] = field(default_factory=dict)
    sampling: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    """Release of the environment and of verifiers, where known."""
    date: datetime | None = None
    """When it was made, with time zone."""
    damaged: int = 0
    """Lines that could not be read and were skipped."""
    notes: list[str] = field(default_factory=list)
    """What a reader should know: settings that differ from row to row, unreadable files."""


def file_name(index: int, kind: str = "json") -> str:
    """Return the name of the file that is made from row `index` of a run.

    >>> file_name(12)
    'episode-0012.json'
    """
    return f"episode-{index:04d}.{kind}"


def json_lines(path: Path, damaged: list[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects of a file of lines; lines that are none are skipped and told in `damaged`."""
    try:
        with open(path, "rb") as file:
            for number in range(1, MAX_ROWS + 1):
                line = file.readline(MAX_BYTES + 1)
                if not line:
                    return
                if not line.strip():
                    continue
                if len(line) > MAX_BYTES:
                    raise EpisodeError(f"{path}: line {number} is larger than {MAX_BYTES / 1e6:g} MB, the most that is read")
                try:
                    value = parse_json(line, f"line {number}", constants=True)
                except EpisodeError as error:
                    damaged.append(str(error))
                    continue
                if isinstance(value, dict):
                    yield value
                else:
                    damaged.append(f"line {number}: no JSON object")
    except OSError as error:
        raise EpisodeError(f"{path}: {error.strerror or error}") from None


def numbered(rows: Iterable[Row]) -> list[Row]:
    """Return `rows` with the rollouts of each example counted."""
    counts: Counter[Any] = Counter()
    numbered = []
    for index, row in enumerate(rows):
        numbered.append(with_changes(row, index=index, rollout=counts[row.example]))
        counts[row.example] += 1
    return numbered


def with_changes(row: Row, **changes: Any) -> Row:
    return Row(**{**{name: getattr(row, name) for name in Row.__dataclass_fields__}, **changes})


def worlds(rows: Iterable[Row]) -> list[str]:
    """Return a note where the rows were not all played in one world by one set of rules."""
    worlds = {json.dumps([row.episode.config.model_dump(), row.episode.rules.model_dump()]) for row in rows if row.episode}
    return [f"the rows were played under {len(worlds)} different settings"] if len(worlds) > 1 else []


def date_of(starts: list[float]) -> datetime | None:
    return datetime.fromtimestamp(min(starts), UTC) if starts and 0 < min(starts) < 4e9 else None


def player_of(model: str, sampling: Any, notes: list[str]) -> Player:
    """Return who played; settings that no episode could keep are left out, and noted."""
    settings = {name: value for name, value in object_of(sampling).items() if value not in (None, {})}
    try:
        return Player(kind="model", name=model, sampling=settings)
    except ValidationError as error:
        notes.append(one_line(error))
        return Player(kind="model", name=model)


def one_line_of(error: str) -> str:
    line = " ".join(error.split())
    return line if len(line) <= MAX_ERROR else f"{line[: MAX_ERROR - 1]}…"


def object_of(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def role_of(message: Any) -> Any:
    return message.get("role") if isinstance(message, dict) else None


def number_of(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def product_of(*factors: Any) -> int | None:
    return math.prod(factors) if all(isinstance(factor, int) and 0 <= factor <= MAX_ROWS for factor in factors) else None
