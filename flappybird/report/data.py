"""A run → records: every rollout checked against its replay, explained and scored, and none of them lost."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from flappybird.analysis import Analysis, analyse
from flappybird.episodes import rewards
from flappybird.episodes.episode import Episode, Replay, replay
from flappybird.episodes.verify import Difference
from flappybird.errors import TooMuchWork
from flappybird.report.causes import CAUSES, Cause, cause_of
from flappybird.report.reference import Played, Task, play_all
from flappybird.runs import Row, Run, check
from flappybird.world.game import Reason

NO_TRANSCRIPT = "no transcript"
"""How a rollout ended of which nothing was saved that could be replayed, and no error either."""

ENDS: dict[str, str] = {reason.value: reason.deed for reason in dict.fromkeys([Reason.TICK_LIMIT, Reason.PIPE, *Reason])}
ENDS[NO_TRANSCRIPT] = NO_TRANSCRIPT
"""Every way in which a row of a run can end, and how it is called on the page."""


@dataclass(frozen=True)
class Record:
    """One rollout of a run, as the report knows it."""

    row: Row
    end: str
    """A key of `ENDS`."""
    scores: dict[str, float]
    """Scores by name: of the replay where there is one, else as the run claims; empty where nothing is known."""
    differences: list[Difference]
    """Where what was saved and the replay part."""
    played: Replay | None = None
    analysis: Analysis | None = None
    cause: Cause | None = None
    """Why the bird died; None where it did not, or where nobody knows."""
    baselines: dict[str, Played] | None = None
    """The built-in policies on the same task; None where they were not played."""
    video: Path | None = None

    @property
    def clean(self) -> bool:
        """Whether this is a score: the rollout did not break."""
        return self.end != Reason.ERROR.value and bool(self.scores)

    @property
    def episode(self) -> Episode | None:
        """The episode, where there is a transcript."""
        return self.row.episode

    @property
    def task(self) -> Task | None:
        """What was played."""
        return Task.of(self.row.episode) if self.row.episode else None


@dataclass(frozen=True)
class Records:
    """A run with its records."""

    run: Run
    label: str
    """A name for it that no other run of the report has."""
    records: list[Record]
    missing: int
    """Rollouts that were asked for and of which there is no row."""
    without_baselines: int
    """Episodes whose task the built-in policies did not play."""

    @property
    def clean(self) -> list[Record]:
        """The records that are scores."""
        return [record for record in self.records if record.clean]

    @property
    def errored(self) -> list[Record]:
        """The records of rollouts that broke."""
        return [record for record in self.records if record.end == Reason.ERROR.value]

    @property
    def ends(self) -> dict[str, int]:
        """How many rows ended in which way; adds up to the number of rows."""
        counts = Counter(record.end for record in self.records)
        return {end: counts[end] for end in ENDS if counts[end]}

    @property
    def causes(self) -> dict[str, int]:
        """How many clean flights were lost by which cause, see `causes.CAUSES`."""
        counts = Counter(record.cause.name for record in self.clean if record.cause)
        return {cause: counts[cause] for cause in CAUSES if counts[cause]}

    @property
    def replayed(self) -> list[Record]:
        """The records with a transcript."""
        return [record for record in self.records if record.episode]

    @property
    def checked(self) -> list[Record]:
        """The records with something to verify: a transcript of at least one turn."""
        return [record for record in self.replayed if record.episode and record.episode.turns]

    @property
    def verified(self) -> int:
        """How many of `checked` agree with their replay in everything that was saved."""
        return sum(not record.differences for record in self.checked)


def gather(runs: list[Run], videos: Path | None = None) -> list[Records]:
    """Return the records of `runs`; `videos` is a folder of exported videos, `videos` inside each run if not given."""
    runs = [part for run in runs for part in split(run)]
    tasks = [Task.of(row.episode) for run in runs for row in run.rows if row.episode]
    baselines = play_all(tasks)
    gathered: list[Records] = []
    for run, label in zip(runs, _labels(runs), strict=True):
        folder = videos or (run.path if run.path.is_dir() else run.path.parent) / "videos"
        clips = _videos(folder)
        bar = tqdm(run.rows, desc="episodes", unit="episode", leave=False, delay=2, disable=None)
        records = [_record(row, baselines, clips) for row in bar]
        without = sum(record.episode is not None and record.baselines is None for record in records)
        gathered.append(Records(run, label, records, max((run.asked or 0) - len(records), 0), without))
    return gathered


def split(run: Run) -> list[Run]:
    """Return `run` in parts of which each has one player, one config and one set of rules: no average mixes what differs.

    Rows without a transcript, and rollouts of which there is no row, stay with the largest part.
    """
    parts: dict[Any, list[Row]] = {}
    for row in run.rows:
        if row.episode:
            parts.setdefault((row.episode.player.name, row.episode.config, row.episode.rules), []).append(row)
    if len(parts) < 2:
        return [run]
    ordered = sorted(parts.items(), key=lambda part: (-len(part[1]), part[1][0].index))
    found = []
    for number, ((player, config, rules), rows) in enumerate(ordered, 1):
        if number == 1:
            rows = sorted(rows + [row for row in run.rows if row.episode is None], key=lambda row: row.index)
        changed = {**config.changed(), **rules.model_dump(exclude_defaults=True)}
        stated = ", ".join(f"{name} = {value}" for name, value in changed.items()) or "the default settings"
        note = f"part {number} of {len(parts)} of {run.path.name}, whose rows do not belong together: {player} with {stated}"
        missing = max((run.asked or 0) - len(run.rows), 0) if number == 1 else 0
        asked = None if run.asked is None else len(rows) + missing
        found.append(
            replace(run, model=player, rows=rows, asked=asked, notes=[note, *run.notes], damaged=run.damaged * (number == 1))
        )
    return found


def _record(row: Row, baselines: dict[Task, dict[str, Played]], clips: dict[int, Path]) -> Record:
    episode, video = row.episode, clips.get(row.index)
    broke = row.error is not None
    if episode is None:
        claims = {name: value for name, value in row.claims.items() if math.isfinite(value)}
        return Record(row, Reason.ERROR.value if broke else NO_TRANSCRIPT, claims, [], video=video)
    played = replay(episode)
    analysis: Analysis | None
    try:
        analysis = analyse(episode, played)
    except TooMuchWork as error:
        row, analysis = replace(row, problem=f"it cannot be explained: {error}"), None
    return Record(
        row,
        end=Reason.ERROR.value if broke else episode.outcome.reason.value,
        scores=scores_of(row, episode),
        differences=check(row, played),
        played=played,
        analysis=analysis,
        cause=cause_of(episode, played, analysis) if analysis else None,
        baselines=baselines.get(Task.of(episode)),
        video=video,
    )


def explain(row: Row, flown: Replay) -> str:
    """Return what lost an episode, a key of `causes.CAUSES`; empty where nothing did, or nobody knows. See `runs.index`."""
    assert row.episode is not None
    try:
        cause = cause_of(row.episode, flown, analyse(row.episode, flown))
    except TooMuchWork:
        return ""
    return cause.name if cause else ""


def scores_of(row: Row, episode: Episode) -> dict[str, float]:
    """Return the scores of an episode by name, as far as they are known."""
    ending, turns = episode.outcome, episode.turns
    scores = {
        "reward": ending.reward,
        "pipes_passed": float(ending.pipes_passed),
        "survival_score": ending.survival_score,
        "format": ending.format,
        "ticks": float(ending.ticks),
        "invalid_actions": rewards.invalid_actions(episode),
    }
    tokens = [turn.completion_tokens for turn in turns if turn.completion_tokens is not None]
    seconds = [turn.seconds for turn in turns if turn.seconds is not None]
    if tokens:
        scores["tokens_per_turn"] = sum(tokens) / len(tokens)
    elif turns and math.isfinite(row.usage.get("completion_tokens", math.nan)):
        scores["tokens_per_turn"] = row.usage["completion_tokens"] / len(turns)
    if seconds:
        scores["seconds_per_turn"] = sum(seconds) / len(seconds)
    return scores


def _labels(runs: list[Run]) -> list[str]:
    """Return a short name for each run: its model, numbered where several runs share it."""
    names = [run.model or "unknown" for run in runs]
    labels = []
    for index, name in enumerate(names):
        same = names[: index + 1].count(name)
        labels.append(name if names.count(name) == 1 else f"{name} ({same})")
    return labels


def _videos(folder: Path) -> dict[int, Path]:
    """Return the videos in `folder` by row: the last number in a file's name is the row that it shows."""
    found: dict[int, Path] = {}
    try:
        files = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError:
        files = []
    for file in files:
        number = re.search(r"(\d{1,9})\D*\Z", file.stem)
        if number and file.suffix.lower() in (".mp4", ".gif", ".webm"):
            found.setdefault(int(number[1]), file)
    return found
