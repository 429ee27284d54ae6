"""A training run → one page: what the model learnt, step by step, and one seed flown by all its checkpoints.

`progress_data` reads and sums up, `progress_page` fills the templates. Scores are those that the rollouts were saved with;
causes of deaths, which take a replay, are found for a sample of each step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from flappybird.analysis import analyse
from flappybird.episodes import rewards
from flappybird.episodes.episode import Episode, replay
from flappybird.errors import EpisodeError, TooMuchWork
from flappybird.report import svg
from flappybird.report.causes import CAUSES, cause_of
from flappybird.report.context import Drawn, page_context
from flappybird.report.data import gather
from flappybird.report.figures import Axis, Chart, Key, Mark, axis, percent_axis
from flappybird.report.html import count, minus, number, percent, span
from flappybird.report.page import render
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
                    found.update(_cause(episode))
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
    ending = episode.outcome
    scores = {
        "reward": ending.reward,
        "pipes_passed": float(ending.pipes_passed),
        "format": ending.format,
        "invalid_actions": rewards.invalid_actions(episode),
        "ticks": float(ending.ticks),
    }
    tokens = [turn.completion_tokens for turn in episode.turns if turn.completion_tokens is not None]
    if tokens:
        scores["tokens"] = float(sum(tokens))
    elif "completion_tokens" in row.usage:
        scores["tokens"] = row.usage["completion_tokens"]
    return scores


def _cause(episode: Episode) -> list[str]:
    """Return the name of the cause of death; nothing where the bird lived, or where it cannot be found."""
    try:
        played = replay(episode)
        cause = cause_of(episode, played, analyse(episode, played))
    except (EpisodeError, TooMuchWork):
        return []
    return [cause.name] if cause else []


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
    if len(racers) > RACERS:
        racers = [racers[index * (len(racers) - 1) // (RACERS - 1)] for index in range(RACERS)]
    for step, (path, offset) in racers:
        run = open_run(path)
        row = next(row for row in run.rows_at(offset) if row.episode and Task.of(row.episode) == task)
        yield Run(path, run.head.kind, step.name, [row])


# --- the page ---------------------------------------------------------------------------------------------------------


def progress_page(data: Progress) -> str:
    """Return the page of a training run: one HTML file that needs nothing but itself."""
    drawn = [Drawn(chart, svg.draw(chart)) for chart in progress_charts(data)]
    context = page_context(gather(data.race), Path())
    seeds = {row.episode.seed for run in data.race for row in run.rows if row.episode}
    return render(
        context
        | {
            "title": data.title,
            "meta": _meta(data),
            "progress": {"charts": drawn, "rows": _table(data), "notes": data.notes[:20], "more": max(len(data.notes) - 20, 0)},
            "verdict": [(verdict(data), False)],
            "race": f"Seed {min(seeds)}, flown by {count(len(data.race), 'checkpoint')}" if seeds else None,
            "sections": {"progress": "Learning", "replay": "Race", "steps": "Steps", "episodes": "Flights"},
            "data": context["data"] | {"race": len(data.race) > 1},
            **dict.fromkeys(("causes", "numbers", "charts", "details")),
        }
    )


def verdict(data: Progress) -> str:
    """Return what was learnt, in a sentence."""
    kind = "eval" if len(data.of("eval")) > 1 or not data.of("train") else "train"
    shown = data.of(kind)
    (first, one), (last, other) = shown[0], shown[-1]
    if first is last:
        return f"Only {first.step.name} was played: mean reward {_words(one, 'reward')}."
    best, most = max(shown, key=lambda pair: pair[1].means["reward"].mean)
    said = (
        f"Mean reward went from {_words(one, 'reward')} at {first.step.name} to {_words(other, 'reward')} at {last.step.name}, "
        f"and pipes from {number(one.means['pipes_passed'].mean, 'pipes_passed')} to "
        f"{number(other.means['pipes_passed'].mean, 'pipes_passed')}"
    )
    where = {"eval": "on evaluation seeds", "train": "on training seeds"}[kind]
    peak = (
        f" The best was {_words(most, 'reward')} at {best.step.name}."
        if most.means["reward"].mean > other.means["reward"].mean + 1e-9
        else ""
    )
    return f"{said}, {where}.{peak}"


def _words(of: Played, metric: str) -> str:
    mean = of.means[metric]
    return " ".join(filter(None, (number(mean.mean, metric), span(mean.interval, metric))))


def _meta(data: Progress) -> str:
    totals = {kind: sum(one.rollouts for _, one in data.of(kind)) for kind in LOOKS}
    played = [
        f"{count(total, 'rollout')} of {kind} at {count(len(data.of(kind)), 'step')}" for kind, total in totals.items() if total
    ]
    return " · ".join([count(len(data.points), "step"), *played])


def _table(data: Progress) -> list[dict[str, Any]]:
    """Return a row for each step and kind: what it is, how many rollouts, its means."""
    return [
        {"name": point.step.name, "kind": kind, "played": one}
        for point in data.points
        for kind in LOOKS
        if (one := getattr(point, kind)) is not None
    ]


def progress_text(data: Progress) -> str:
    """Return the training run as text, one line a step."""
    lines = [
        verdict(data),
        "",
        f"{'step':>8}  {'':5}  {'n':>6}  {'reward':>8}  {'pipes':>6}  {'format':>6}  {'invalid':>7}  {'ticks':>6}",
    ]
    for point in data.points:
        for kind in LOOKS:
            one: Played | None = getattr(point, kind)
            if one and one.rollouts:
                cells = [one.means[name].mean for name in ("reward", "pipes_passed", "format", "invalid_actions", "ticks")]
                shown = "{:8.2f}  {:6.2f}  {:6.3f}  {:7.2f}  {:6.1f}".format(*cells)
                lines.append(f"{point.step.number:>8}  {kind:5}  {one.rollouts:>6}  {shown}")
    return "\n".join([*lines, *(f"note: {note}" for note in data.notes)]) + "\n"


# --- charts -----------------------------------------------------------------------------------------------------------


def progress_charts(data: Progress) -> list[Chart]:
    """Return the charts for which there is anything to show."""
    curves = [_curve(data, metric) for metric in SHOWN]
    return [chart for chart in (*curves, _causes(data), _flat(data)) if chart]


def _steps_axis(data: Progress) -> Axis:
    return axis("step", [point.step.number for point in data.points], start=None, whole=True, grid=False)


def _curve(data: Progress, metric: str) -> Chart | None:
    marks: list[Mark] = []
    keys, values = [], []
    for kind, look in LOOKS.items():
        shown = [(point, one.means[metric]) for point, one in data.of(kind) if metric in one.means]
        if not shown:
            continue
        keys.append(Key(kind, look, "line"))
        line = tuple((float(point.step.number), mean.mean) for point, mean in shown)
        for point, mean in shown:
            low, high = mean.interval or (mean.mean, mean.mean)
            values += [low, high]
            x = float(point.step.number)
            title = f"{point.step.name}, {kind}: {number(mean.mean, metric)} {span(mean.interval, metric)}".strip()
            if high > low:
                marks.append(Mark("line", look, ((x, low), (x, high)), title, width=1))
            marks.append(Mark("dot" if len(shown) <= MAX_BARS else "line", look, ((x, mean.mean),), title))
        if len(line) > 1:
            marks.append(Mark("line", look, line, kind, width=2))
    if not keys:
        return None
    y = percent_axis("") if metric == "format" else axis("", values)
    caption = "Mean of each step; upright lines are its 95 % interval."
    return Chart(metric, SHOWN[metric], caption, _steps_axis(data), y, tuple(marks), tuple(keys))


def _causes(data: Progress) -> Chart | None:
    kind = "eval" if len(data.of("eval")) > 1 or not data.of("train") else "train"
    shown = [(point, one) for point, one in data.of(kind) if one.explained]
    if not any(one.causes for _, one in shown):
        return None
    seen = [cause for cause in CAUSES if any(one.causes.get(cause) for _, one in shown)]

    def parts(point: Point, one: Played) -> Iterator[tuple[str, float, str]]:
        for cause in seen:
            lost = one.causes.get(cause, 0)
            said = f"{point.step.name}: {lost} of {count(one.explained, 'flight')}: {CAUSES[cause][0].lower()}"
            yield f"cause-{cause}", lost / one.explained, said

    keys = tuple(Key(CAUSES[cause][0], f"cause-{cause}", "bar") for cause in seen)
    of = (
        f"of up to {EXPLAINED} flights of each step"
        if any(one.rollouts > one.explained for _, one in shown)
        else "of all flights"
    )
    caption = f"What lost them, as shares {of} ({kind}); the rest lived."
    return _stacked(data, "causes", "Causes of death", caption, "share of flights", shown, parts, keys)


def _flat(data: Progress) -> Chart | None:
    shown = [(point, one) for point, one in data.of("train") if one.groups]
    if not shown:
        return None

    def parts(point: Point, one: Played) -> Iterator[tuple[str, float, str]]:
        share = one.flat / one.groups
        said = f"{point.step.name}: {one.flat} of {count(one.groups, 'group')} ({percent(share)}) without spread"
        yield "run0", share, said

    caption = "Groups of one task whose rollouts all have the same reward: they teach nothing."
    keys = (Key("no spread", "run0", "bar"),)
    return _stacked(data, "flat", "Groups without signal", caption, "share of groups", shown, parts, keys)


def _stacked(
    data: Progress,
    name: str,
    title: str,
    caption: str,
    label: str,
    shown: Sequence[tuple[Point, Played]],
    parts: Callable[[Point, Played], Iterator[tuple[str, float, str]]],
    keys: tuple[Key, ...],
) -> Chart:
    """Return bars by step; bars stand side by side, and the axis names the steps."""
    every = -(-len(shown) // MAX_BARS)
    shown = shown[::every]
    marks = []
    for place, (point, one) in enumerate(shown):
        low = 0.0
        for look, share, said in parts(point, one):
            if share:
                marks.append(Mark("bar", look, ((place + 0.08, low), (place + 0.92, low + share)), said))
                low += share
    ticks = tuple((place + 0.5, minus(str(point.step.number))) for place, (point, _) in enumerate(shown))
    x = Axis("step", 0, len(shown), ticks, grid=False)
    more = f" One of {every} steps is drawn." if every > 1 else ""
    return Chart(name, title, caption + more, x, percent_axis(label), tuple(marks), keys)
