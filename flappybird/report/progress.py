"""A training run → one page: what the model learnt, step by step, and one seed flown by all its checkpoints.

`progress_data` reads and sums up; `progress_page` shows it. Scores are those that the rollouts were saved with;
causes of deaths, which take a replay, are found for a sample of each step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from flappybird.episodes.episode import Episode, replay
from flappybird.errors import EpisodeError
from flappybird.report.data import explain, scores_of
from flappybird.report.html import count
from flappybird.report.payload import evenly
from flappybird.report.reference import Task
from flappybird.report.summary import Interval, interval_of
from flappybird.runs import Row, Run, open_run
from flappybird.runs.training import Step, training_steps

SHOWN = {
    "reward": "Reward",
    "pipes_passed": "Pipes passed",
    "format": "Format",
    "invalid_actions": "Invalid replies per episode",
    "tokens": "Reply tokens per episode",
    "ticks": "Length in ticks",
}
"""What is drawn by step, in this order."""

LOOKS = {"train": "run0", "eval": "run1"}
"""The colours of the two kinds of rollouts."""

EXPLAINED = 12
"""The most deaths of a step that are replayed to find their causes."""

RACERS = 6
"""The most checkpoints that fly side by side, evenly from first to last: as many as the player has lanes."""

MAX_BARS = 60
"""The most steps of which a stacked chart shows each; of more it shows every second, every third, …"""


class Mean(NamedTuple):
    """A mean over the rollouts of a step."""

    mean: float
    interval: Interval | None
    """95 %, of tasks drawn again and again; None where fewer than two were played."""


@dataclass(frozen=True)
class Played:
    """The rollouts of one kind at one step."""

    rollouts: int = 0
    """That are scores."""
    errored: int = 0
    foreign: int = 0
    """Without an episode of this environment."""
    means: dict[str, Mean] = field(default_factory=dict)
    """By a name of `SHOWN`."""
    groups: int = 0
    """Tasks that were played more than once."""
    flat: int = 0
    """Of these, the ones whose rollouts all have the same reward."""
    deaths: int = 0
    explained: int = 0
    """Flights of the sample, those that lived included."""
    causes: dict[str, int] = field(default_factory=dict)
    """How many of the sample died of which cause, see `causes.CAUSES`."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        means = {
            name: {"mean": one.mean, "interval": list(one.interval) if one.interval else None} for name, one in self.means.items()
        }
        return vars(self) | {"means": means}


@dataclass(frozen=True)
class Point:
    """A step with what was played at it."""

    step: Step
    train: Played | None
    eval: Played | None


@dataclass(frozen=True)
class Progress:
    """A training run, summed up."""

    title: str
    points: list[Point]
    race: list[Run]
    """One run for each checkpoint of the race, each of the same task in one rollout."""
    notes: list[str]

    def of(self, kind: str) -> list[tuple[Point, Played]]:
        """Return the steps at which rollouts of a kind, `train` or `eval`, were scored."""
        return [(point, one) for point in self.points if (one := getattr(point, kind)) is not None and one.rollouts]

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "title": self.title,
            "steps": [
                {"step": point.step.number, "name": point.step.name}
                | {kind: one.to_dict() for kind in LOOKS if (one := getattr(point, kind)) is not None}
                for point in self.points
            ],
            "notes": self.notes,
        }


def progress_data(paths: str | Path | Sequence[str | Path], seed: int | None = None) -> Progress:
    """Return what a trainer's output folder, or a list of checkpoints' runs, shows of a training.

    Args:
        paths: the folder, or the runs.
        seed: the course of the race; that which most checkpoints flew if not given.

    Raises:
        EpisodeError: there is nothing to read, or no rollout of this environment in it.
    """
    listed = [paths] if isinstance(paths, (str, Path)) else list(paths)
    steps = training_steps(listed)
    notes: list[str] = []
    points, flown = [], []
    for step in tqdm(steps, desc="steps", unit="step", leave=False, delay=2, disable=None):
        first: dict[Task, tuple[Path, int]] = {}
        parts = {}
        for kind, path in (("eval", step.eval), ("train", step.train)):
            parts[kind] = _played(path, f"{step.name}, {kind}", first, notes) if path else None
        points.append(Point(step, parts["train"], parts["eval"]))
        flown.append((step, first))
    if not any(part and part.rollouts for point in points for part in (point.train, point.eval)):
        raise EpisodeError(f"{listed[0]}: no scored rollout of this environment in {count(len(steps), 'step')}")
    notes = [*_gaps(steps), *notes]
    title = Path(listed[0]).resolve().name if steps[0].train or len(listed) == 1 else f"{count(len(steps), 'checkpoint')}"
    return Progress(title, points, list(_race(flown, seed)), notes)


def _gaps(steps: Sequence[Step]) -> Iterator[str]:
    trained = [step.number for step in steps if step.train]
    missing = [number for number in range(min(trained, default=0), max(trained, default=-1) + 1) if number not in set(trained)]
    if missing:
        listed = ", ".join(map(str, missing[:8])) + (", …" if len(missing) > 8 else "")
        yield f"{count(len(missing), 'step')} without training rollouts: {listed}"
    if trained and not any(step.eval for step in steps):
        yield "no step was evaluated"


# --- one step ---------------------------------------------------------------------------------------------------------


def _played(path: Path, name: str, first: dict[Task, tuple[Path, int]], notes: list[str]) -> Played:
    """Sum up a run; the first rollout of each task is kept in `first`, what is amiss is added to `notes`."""
    values: dict[str, dict[Any, list[float]]] = {metric: {} for metric in SHOWN}
    errored = foreign = damaged = deaths = explained = rollouts = 0
    found: Counter[str] = Counter()
    try:
        run = open_run(path)
        for piece in run.pieces():
            damaged += piece.problem is not None
            for row in run.rows_of(piece):
                episode = row.episode
                if row.error is not None or episode is None:
                    errored += row.error is not None
                    foreign += row.error is None
                    continue
                rollouts += 1
                task = Task.of(episode)
                first.setdefault(task, (path, row.offset))
                for metric, value in _scores(row, episode).items():
                    values[metric].setdefault(task, []).append(value)
                deaths += episode.outcome.reason.crashed
                if explained < EXPLAINED:
                    explained += 1
                    found.update(_cause(row, episode))
    except EpisodeError as error:
        notes.append(f"{name}: {error}")
    if damaged:
        notes.append(f"{name}: {count(damaged, 'line')} half written or damaged, left out")
    if foreign:
        notes.append(f"{name}: {count(foreign, 'rollout')} without an episode of this environment, left out")
    if errored:
        notes.append(f"{name}: {count(errored, 'rollout')} errored, left out")
    groups = [of_task for of_task in values["reward"].values() if len(of_task) > 1]
    flat = sum(max(group) - min(group) < 1e-9 for group in groups)
    means = {metric: _mean(list(of_metric.values())) for metric, of_metric in values.items() if of_metric}
    return Played(rollouts, errored, foreign, means, len(groups), flat, deaths, explained, dict(found))


def _scores(row: Row, episode: Episode) -> dict[str, float]:
    known = scores_of(row, episode) | ({} if row.completion_tokens is None else {"tokens": row.completion_tokens})
    return {name: known[name] for name in SHOWN if name in known}


def _cause(row: Row, episode: Episode) -> list[str]:
    """Return the name of the cause of death; nothing where the bird lived, or where it cannot be found."""
    try:
        cause = explain(row, replay(episode))
    except EpisodeError:
        return []
    return [cause] if cause else []


def _mean(groups: list[list[float]]) -> Mean:
    import numpy as np

    sums, sizes = np.array([sum(group) for group in groups]), np.array([len(group) for group in groups])
    return Mean(float(sums.sum() / sizes.sum()), interval_of(sums, sizes))


# --- the race ---------------------------------------------------------------------------------------------------------


def _race(flown: Sequence[tuple[Step, dict[Task, tuple[Path, int]]]], seed: int | None) -> Iterator[Run]:
    """Yield a run of one rollout for each checkpoint that flew the task of the race."""
    times = Counter(task for _, first in flown for task in first if seed is None or task.seed == seed)
    if not times:
        if seed is not None:
            raise EpisodeError(f"seed = {seed}: no step has an episode of it")
        return
    (task, _), *_ = times.most_common(1)
    racers = [(step, first[task]) for step, first in flown if task in first]
    for step, (path, offset) in evenly(racers, RACERS):
        run = open_run(path)
        row = next(row for row in run.rows_at(offset) if row.episode and Task.of(row.episode) == task)
        yield Run(path, run.head.kind, step.name, [row])
