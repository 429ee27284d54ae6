"""Saved evaluations and folders of episode files → episodes.

A run is read once, here, for every command that works on one. What is read is never trusted: sizes are bounded, a
damaged line is skipped and counted, and a row without a usable transcript says why instead of an episode.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from flappybird.episode import Episode, load
from flappybird.errors import EpisodeError


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


def load_run(path: str | Path) -> Run:
    """Return the run at `path`: an episode file, a folder of them, or what `vf-eval` saved.

    Raises:
        EpisodeError: there is nothing to read, or it is no run.
    """
    path = Path(path)
    if path.is_file() and path.suffix == ".json":
        return _episodes(path, [path])
    files = sorted(path.glob("*.json")) if path.is_dir() else []
    if files:
        return _episodes(path, files)
    raise EpisodeError(f"{path}: no episode file, no folder of episode files and no saved evaluation")


def _episodes(path: Path, files: list[Path]) -> Run:
    rows: list[Row] = []
    for index, file in enumerate(files):
        try:
            episode = load(file)
        except EpisodeError as error:
            if len(files) == 1:
                raise
            rows.append(Row(index, None, problem=str(error)))
            continue
        claims = {name: float(getattr(episode.outcome, name)) for name in ("reward", "pipes_passed", "survival_score", "format")}
        rows.append(Row(index, episode, error=episode.outcome.error, claims=claims, example=episode.seed))
    names = {row.episode.player.name for row in rows if row.episode}
    return Run(path, "episodes", ", ".join(sorted(names)) or "unknown", rows, asked=len(rows))
