"""The sections of the page below the replay: numbers, comparison, pictures, the table of episodes, what ran."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from flappybird import cost
from flappybird.players.policies import POLICIES
from flappybird.report import charts
from flappybird.report.data import ENDS, Record, Records
from flappybird.report.html import count, dot, end_look, esc, moment, name_of, notice, number, scroll, section, span, table, tr
from flappybird.report.reference import Task
from flappybird.report.summary import METRICS, Pair, Stats, Summary, ranking
from flappybird.world.game import Reason

MAX_SEEDS_LISTED = 500
"""The most seeds of which a comparison lists every run's result."""

MAX_ERROR_SHOWN = 300
"""Characters of an error in the table; the replay shows all of it."""


# --- numbers ------------------------------------------------------------------------------------------------------


def summary(summaries: Sequence[Summary]) -> str:
    """Every metric of every run beside the built-in policies on the same seeds."""
    if not summaries:
        return ""
    lead = (
        '<p class="lead">Clean rollouts only. Intervals are 95 % bootstrap intervals of the mean, drawn by seed. '
        "The right half is the built-in policies on the same seeds, as often as the model played each.</p>"
    )
    return section("summary", "Summary", lead + "".join(_summary_table(one) for one in summaries))


def _summary_table(one: Summary) -> str:
    rows = []
    for name, label in METRICS.items():
        stats = one.metrics[name]
        if stats is None:
            continue
        base = [one.baselines[policy].get(name) for policy in POLICIES]
        rows.append(tr(_stats(name, stats) + [number(name, other.mean) if other else "–" for other in base], name=label))
        if name == "reward" and one.records.errored and one.with_errored:
            rows.append(tr(_stats(name, one.with_errored) + [""] * len(base), name="Reward, errored rollouts included"))
    if not rows:
        return notice(f"{one.records.label}: no rollout was scored.")
    head = ["", "Mean", "95 % interval", "Median", "Min", "Max", "n", *POLICIES]
    return table(head, rows, caption=name_of(one.records.label))


def _stats(name: str, stats: Stats) -> list[str]:
    values = (stats.median, stats.low, stats.high)
    return [number(name, stats.mean), span(name, stats.interval), *(number(name, value) for value in values), str(stats.n)]


# --- several runs -------------------------------------------------------------------------------------------------


def comparison(runs: Sequence[Records]) -> str:
    """The runs from best to worst on the tasks that all of them played, and each of these tasks run by run."""
    common, ranked = ranking(runs)
    if not common:
        text = "These runs have no seed with the same settings in common, so they cannot be ranked."
        return section("comparison", "Comparison", notice(text))
    lead = (
        f'<p class="lead">Ranked by mean reward on the {count(len(common), "task")} (seed and settings) of which every run has a '
        "clean rollout. Differences are paired: the same seeds, run by run. An interval that includes 0 does not tell two runs "
        "apart.</p>"
    )
    head = ["Run", "Place", "Mean reward", "Behind the best", "95 % interval", "Seeds won, tied, lost"]
    rows = (
        tr([str(place), f"{mean:.2f}", *_pair(pair)], name=f"{dot(f'r-{index % 8}')}{name_of(runs[index].label)}")
        for place, (index, mean, pair) in enumerate(ranked, 1)
    )
    title = '<h3 class="lead">The same seed, run by run</h3>'
    return section("comparison", "Comparison", lead + table(head, rows) + title + _side_by_side(runs, common))


def _pair(pair: Pair | None) -> list[str]:
    if pair is None:
        return ["best", "–", "–"]
    return [f"{pair.difference:.2f}", span("reward", pair.interval), f"{pair.losses}, {pair.ties}, {pair.wins}"]


def _side_by_side(runs: Sequence[Records], common: Sequence[Task]) -> str:
    first: list[dict[Task | None, Record]] = [{} for _ in runs]
    for found, run in zip(first, runs, strict=True):
        for record in run.clean:
            found.setdefault(record.task, record)
    rows = []
    for task in common[:MAX_SEEDS_LISTED]:
        records = [found[task] for found in first]
        best = max(record.scores["reward"] for record in records)
        cells = []
        for index, record in enumerate(records):
            reward = f"{record.scores['reward']:.2f}"
            strong = f"<b>{reward}</b>" if record.scores["reward"] == best else reward
            ended = f"{record.end.replace('_', ' ')}, tick {record.scores['ticks']:g}"
            cells.append(f'<a href="#{link(index, record, len(runs))}">{strong}</a> <span class="sub">{ended}</span>')
        cells.append(f'<a href="#{link(0, records[0], len(runs))}&amp;race=1">side by side</a>')
        rows.append(tr(cells, name=str(task.seed)))
    more = f"The first {MAX_SEEDS_LISTED} of {len(common)}" if len(common) > MAX_SEEDS_LISTED else ""
    return table(["Seed", *(run.label for run in runs), "Watch"], rows, caption=more, tall="The same seed, run by run")


def link(run: int, record: Record, runs: int) -> str:
    """Return the fragment that opens a record in the player."""
    return (f"run={run}&amp;" if runs > 1 else "") + f"episode={record.row.index}"


# --- pictures -----------------------------------------------------------------------------------------------------


def pictures(runs: Sequence[Records]) -> str:
    """The charts."""
    drawn = charts.draw(runs)
    if not drawn:
        return ""
    shown = (
        f"<figure><h3>{esc(chart.title)}</h3>{chart.svg}<figcaption>{esc(chart.caption)}</figcaption></figure>" for chart in drawn
    )
    return section("charts", "Pictures", f'<div class="pictures">{"".join(shown)}</div>')


# --- every episode ------------------------------------------------------------------------------------------------

_LEFT = ("Run", "Ended", "Verified")


def episodes(runs: Sequence[Records]) -> str:
    """The table of all rows, to be sorted and filtered by how they ended."""
    several, filmed = len(runs) > 1, any(record.video for run in runs for record in run.records)
    columns = ["Episode", "Run", "Seed", "Ended", "Ticks", "Pipes", "Reward", "Format", "Invalid", "No return", "Doomed"]
    columns += ["Last-tick TAPs", "Verified", "Video"]
    kept = [name for name in columns if (several or name != "Run") and (filmed or name != "Video")]
    listed = [(index, run, record) for index, run in enumerate(runs) for record in run.records]
    rows = [
        f'<tr id="row-{position}" data-end="{esc(record.end)}">'
        + "".join(cell for name, cell in _episode(record, index, run.label, len(runs)).items() if name in kept)
        + "</tr>"
        for position, (index, run, record) in enumerate(listed)
    ]
    total = len(rows)
    if not rows:
        rows.append(f'<tr><td colspan="{len(kept)}">There are no episodes.</td></tr>')
    head = "".join(
        f'<th scope="col"{" class=left" if name in _LEFT else ""}><button type="button">{name}</button></th>' for name in kept
    )
    lead = (
        '<p class="lead">“No return” is the last tick at which the bird could still be saved; “doomed” is how long it flew on '
        "after that; last-tick TAPs came when one tick later nothing could have saved it. Errored rewards stand in brackets: "
        f'they are no scores. <span id="shown" role="status">{total} of {total} shown</span></p>'
    )
    body = f'<table><thead><tr>{head}</tr></thead><tbody id="rows">{"".join(rows)}</tbody></table></div>'
    return section("episodes", "Episodes", lead + scroll("All episodes") + body, _filters(runs, total))


def _filters(runs: Sequence[Records], total: int) -> str:
    ends = {end: sum(run.ends.get(end, 0) for run in runs) for end in ENDS}
    chips = [("", f"All {total}")] + [(end, f"{ENDS[end]} {number}") for end, number in ends.items() if number]
    buttons = (
        f'<button type="button" data-end="{end}" aria-pressed="{"false" if end else "true"}">{label}</button>'
        for end, label in chips
    )
    return f'<div class="filters" role="group" aria-label="Filter by how it ended">{"".join(buttons)}</div>'


def _episode(record: Record, run: int, label: str, runs: int) -> dict[str, str]:
    """Return the cells of a row, by column. `data-v` is what a column is sorted by, empty where it is not known."""
    scores, analysis, index = record.scores, record.analysis, record.row.index
    blunder = analysis.blunder if analysis else None
    reward = scores.get("reward")
    return {
        "Episode": f'<td data-v="{index}"><a href="#{link(run, record, runs)}">{index}</a></td>',
        "Run": f'<td class="left">{dot(f"r-{run % 8}")}{name_of(label)}</td>',
        "Seed": _cell(record.episode.seed if record.episode else None),
        "Ended": _ended(record),
        "Ticks": _cell(scores.get("ticks"), "g"),
        "Pipes": _cell(scores.get("pipes_passed"), "g"),
        "Reward": _cell(reward, ".2f") if record.clean or reward is None else f'<td data-v="{reward}">({reward:.2f})</td>',
        "Format": _cell(scores.get("format"), ".3f"),
        "Invalid": _cell(scores.get("invalid_actions"), "g"),
        "No return": _cell(blunder.tick if blunder else None),
        "Doomed": _cell(blunder.doomed if blunder else None),
        "Last-tick TAPs": _cell(len(analysis.near_misses) if analysis else None),
        "Verified": _verified(record),
        "Video": '<td data-v="0">▸</td>' if record.video else '<td data-v=""></td>',
    }


def _cell(value: float | None, form: str = "") -> str:
    return '<td data-v="">–</td>' if value is None else f'<td data-v="{value}">{value:{form}}</td>'


def _ended(record: Record) -> str:
    text, told = ENDS[record.end], None
    if record.end == Reason.PIPE.value and record.episode:
        text = f"hit pipe {record.episode.outcome.pipe}"
    elif record.end == Reason.ERROR.value:
        told = record.row.error
    elif record.episode is None:
        told = record.row.problem
    why = f': <span class="sub words">{esc(told[:MAX_ERROR_SHOWN])}</span>' if told else ""
    return f'<td class="left{" wrap" if told else ""}" data-v="{text}">{dot(end_look(record.end))}{text}{why}</td>'


def _verified(record: Record) -> str:
    if record.episode is None:
        return '<td class="left sub" data-v="2">no transcript</td>'
    if record.differences:
        return f'<td class="left bad-text" data-v="1">✕ from tick {record.differences[0].tick}</td>'
    return '<td class="left good-text" data-v="0">✓ yes</td>'


# --- what ran -----------------------------------------------------------------------------------------------------


def details(runs: Sequence[Records]) -> str:
    """Model, sampling, arguments, rules, world, versions and dates of every run."""
    tables = "".join(_detail(run) for run in runs)
    return section("details", "What ran", f'<div class="columns">{tables}</div>') if tables else ""


def _detail(records: Records) -> str:
    rows = (f'<tr><th scope="row">{esc(name)}</th><td class="value">{_value(value)}</td></tr>' for name, value in _facts(records))
    body = f"<caption>{name_of(records.label)}</caption><tbody>{''.join(rows)}</tbody>"
    return f'{scroll()}<table class="facts-table">{body}</table></div>'


def _facts(records: Records) -> Iterable[tuple[str, Any]]:
    run = records.run
    yield "Model", run.model
    yield "Run", f"{run.path.name} ({run.kind})"
    yield "Date", moment(run.date)
    for name, version in run.versions.items():
        yield f"{name} release", version
    yield "Asked for", "unknown" if run.asked is None else count(run.asked, "rollout")
    yield "Seeds", seeds(records)
    yield "Sampling", run.sampling
    yield "Environment arguments", run.env_args
    episode = next((record.episode for record in records.records if record.episode), None)
    if episode:
        yield "Rules", episode.rules.model_dump()
        yield "World, changed from the defaults", episode.config.changed()
    yield from cost.facts(run)


def _value(value: Any) -> str:
    if not isinstance(value, dict):
        return esc(value)
    return f"<code>{esc(json.dumps(value, ensure_ascii=False, default=str, sort_keys=True))}</code>" if value else "none"


def seeds(records: Records) -> str:
    """Return how many rollouts there are, on which seeds, as text."""
    played = sorted({record.episode.seed for record in records.records if record.episode})
    rollouts = count(len(records.records), "rollout")
    if not played:
        return f"{rollouts}, no seeds known"
    if len(played) > 2 and played[-1] - played[0] == len(played) - 1:
        return f"{rollouts} on seeds {played[0]} to {played[-1]}"
    listed = ", ".join(map(str, played[:6])) + ("…" if len(played) > 6 else "")
    return f"{rollouts} on {count(len(played), 'seed')}: {listed}"
