"""What a training run has learnt → a page, charts and text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from flappybird.report import svg
from flappybird.report.causes import CAUSES
from flappybird.report.context import Drawn, page_context
from flappybird.report.data import gather
from flappybird.report.figures import Axis, Chart, Key, Mark, axis, percent_axis
from flappybird.report.html import count, minus, number, percent, span
from flappybird.report.page import render
from flappybird.report.progress import EXPLAINED, LOOKS, MAX_BARS, SHOWN, Played, Point, Progress


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
