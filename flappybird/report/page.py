"""Records → one HTML page that needs nothing but itself.

Every string that comes from a run goes through `esc` (or, for the player, through `payload.embed`), so that it is shown
literally; the page's own style and script are allowed by their hashes, and nothing else is allowed at all.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from flappybird import __version__
from flappybird.game import Reason
from flappybird.report import charts
from flappybird.report.data import ENDS, NO_TRANSCRIPT, Record, Records
from flappybird.report.payload import embed, payload
from flappybird.report.summary import METRICS, Interval, Pair, Stats, Summary, ranking
from flappybird.policies import POLICIES

DIGITS = {
    "reward": 2,
    "pipes_passed": 2,
    "survival_score": 1,
    "ticks": 1,
    "format": 3,
    "invalid_actions": 2,
    "tokens_per_turn": 1,
}
MAX_SEEDS_LISTED = 500
"""The most seeds of which a comparison lists every run's result."""


def esc(value: object) -> str:
    """Return `value` as HTML that shows it literally: no markup, control characters and lone surrogates as symbols."""
    shown = []
    for letter in str(value):
        code = ord(letter)
        if letter in _ENTITIES:
            shown.append(_ENTITIES[letter])
        elif code < 32 and letter not in "\n\t":
            shown.append(chr(0x2400 + code))
        elif 0xD800 <= code < 0xE000 or code in (0x7F, 0xFFFE, 0xFFFF):
            shown.append("\ufffd")
        else:
            shown.append(letter)
    return "".join(shown)


_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"}


def build(runs: Sequence[Records], folder: Path, built: datetime | None = None) -> str:
    """Return the page for `runs`. Links are relative to `folder`; `built` is when, now if not given."""
    summaries = [Summary(run) for run in runs]
    style, script = _own("style.css"), _own("player.js")
    several = len(runs) > 1
    sections = {
        "headline": _headline(summaries),
        "replay": _own("replay.html"),
        "comparison": _comparison(runs) if several else "",
        "summary": _summary(summaries),
        "charts": _charts(runs),
        "episodes": _episodes(runs),
        "details": _details(runs),
    }
    names = {
        "replay": "Replay",
        "comparison": "Comparison",
        "summary": "Summary",
        "charts": "Pictures",
        "episodes": "Episodes",
        "details": "What ran",
    }
    heading = " · ".join(dict.fromkeys(run.label for run in runs)) or "No runs"
    return Template(_own("template.html")).substitute(
        sections,
        policy=(
            f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src 'none'; "
            "base-uri 'none'; form-action 'none'"
        ),
        version=esc(__version__),
        title=esc(f"Flappy Bird: {heading}"),
        heading=f"<bdi>{esc(heading)}</bdi>",
        meta=_meta(runs),
        nav=" ".join(f'<a href="#{name}">{title}</a>' for name, title in names.items() if sections[name]),
        style=style,
        script=script,
        data=embed(payload(runs, folder)),
        built=esc(moment(built or datetime.now(UTC))),
    )


def moment(when: datetime | None) -> str:
    """Return an instant in UTC, as people read it; one without a time zone says so."""
    if when is None:
        return "unknown"
    if when.tzinfo is None:
        return f"{when:%Y-%m-%d %H:%M:%S}, time zone unknown"
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# --- the top ------------------------------------------------------------------------------------------------------


def _meta(runs: Sequence[Records]) -> str:
    if len(runs) != 1:
        rows = sum(len(run.records) for run in runs)
        return f"{len(runs)} runs, {_count(rows, 'rollout')} in all"
    run = runs[0].run
    parts = [_seeds(runs[0]), f"run on {moment(run.date)}" if run.date else ""]
    parts += [f"{name} {version}" for name, version in run.versions.items()]
    return " · ".join(esc(part) for part in parts if part)


def _seeds(run: Records) -> str:
    seeds = sorted({record.episode.seed for record in run.records if record.episode})
    if not seeds:
        return "no seeds known"
    if seeds == list(range(seeds[0], seeds[-1] + 1)) and len(seeds) > 2:
        return f"{_count(len(run.records), 'rollout')} on seeds {seeds[0]} to {seeds[-1]}"
    few = ", ".join(map(str, seeds[:6])) + ("…" if len(seeds) > 6 else "")
    return f"{_count(len(run.records), 'rollout')} on {_count(len(seeds), 'seed')}: {few}"


def _headline(summaries: Sequence[Summary]) -> str:
    parts = ['<section class="headline" aria-label="Headline figures">']
    if len(summaries) == 1:
        parts.append(f'<div class="cards">{"".join(_cards(summaries[0]))}</div>')
    parts += [_totals(summary, named=len(summaries) > 1) for summary in summaries]
    parts += [_notices(summary.records) for summary in summaries]
    return "".join(parts) + "</section>"


def _cards(summary: Summary) -> Iterable[str]:
    records = summary.records
    reward, pipes = summary.metrics["reward"], summary.metrics["pipes_passed"]
    errored = len(records.errored)
    more = _range("reward", reward.interval) if reward else "no rollout was scored"
    if errored and summary.with_errored:
        more += f"; with the {errored} errored ones {summary.with_errored.mean:.2f}"
    yield _card("Mean reward, clean rollouts" if errored else "Mean reward", f"{reward.mean:.2f}" if reward else "–", more)
    yield _card(
        "Pipes passed", f"{pipes.mean:.2f}" if pipes else "–", f"median {pipes.median:g}, best {pipes.high:g}" if pipes else ""
    )
    if summary.share:
        ratio, interval = summary.share
        yield _card(
            "Share of the planner’s reward", f"{ratio:.0%}", f"95 % {interval.low:.0%} to {interval.high:.0%}" if interval else ""
        )
    lost = [record.analysis.blunder for record in records.clean if record.analysis and record.analysis.death]
    if lost:
        doomed = [blunder.doomed for blunder in lost if blunder]
        avoidable = f"{len(doomed)} of {len(lost)}"
        middle = sorted(doomed)[len(doomed) // 2] if doomed else 0
        yield _card(
            "Deaths that one other action avoids", avoidable, f"doomed for {middle} ticks in the median" if doomed else ""
        )
    good = records.verified == len(records.replayed)
    yield _card(
        "Verified by replay",
        f"{records.verified}<small> of {len(records.replayed)}</small>",
        "every stored action, observation and score" if good else "see what differs below",
        "good" if good and records.replayed else "bad" if not good else "",
        raw=True,
    )


def _card(name: str, figure: str, more: str, look: str = "", *, raw: bool = False) -> str:
    shown = figure if raw else esc(figure)
    return f'<div class="card {look}"><div class="name">{esc(name)}</div><div class="figure">{shown}</div><div class="more">{esc(more)}</div></div>'


def _totals(summary: Summary, *, named: bool) -> str:
    records = summary.records
    total = len(records.records) + records.missing
    ends: list[tuple[str, str, int]] = [(_end_class(end), ENDS[end], count) for end, count in records.ends.items()]
    if records.missing:
        ends.append(("e-missing", "asked for, but not in the run", records.missing))
    bars, at = [], 0.0
    for look, label, count in ends:
        width = 100 * count / total
        bars.append(
            f'<rect class="{look}" x="{at:.3f}" y="0" width="{width:.3f}" height="1"><title>{esc(label)}: {count}</title></rect>'
        )
        at += width
    asked = f"{records.run.asked} asked for: " if records.run.asked is not None else ""
    line = f"{asked}{len(records.clean)} ok, {len(records.errored)} errored"
    unscored = len(records.records) - len(records.clean) - len(records.errored)
    line += f", {unscored} unscored" if unscored else ""
    line += f", {records.missing} missing" if records.missing else ""
    listed = "".join(f'<li><span class="dot {look}"></span><b>{count}</b> {esc(label)}</li>' for look, label, count in ends)
    name = f"<b><bdi>{esc(records.label)}</bdi></b> · " if named else ""
    svg = f'<svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">{"".join(bars)}</svg>' if total else ""
    return f'<div class="totals">{svg}<p>{name}{esc(line)}; by how they ended, {total} in all:</p><ul>{listed}</ul></div>'


def _notices(records: Records) -> str:
    run, prefix = records.run, f"{records.label}: "
    told = [(note, False) for note in run.notes]
    if run.damaged:
        told.append(
            (f"{_count(run.damaged, 'damaged line')} could not be read and {'was' if run.damaged == 1 else 'were'} skipped", True)
        )
    if run.asked is not None and len(records.records) > run.asked:
        told.append((f"the run has {len(records.records)} rows, but only {run.asked} were asked for", True))
    differing = [record for record in records.records if record.differences]
    for record in differing[:10]:
        more = len(record.differences) - 1
        tail = f" (and {more} more)" if more else ""
        told.append((f"episode {record.row.index} differs from its replay first at {record.differences[0]}{tail}", True))
    if len(differing) > 10:
        told.append((f"{len(differing) - 10} more episodes differ from their replay", True))
    if records.without_baselines:
        told.append(
            (f"the built-in policies were not played for {_count(records.without_baselines, 'episode')}: too many ticks", False)
        )
    claimed = sum(record.episode is None for record in records.clean)
    if claimed:
        told.append((f"{_count(claimed, 'score')} without a transcript: as the run claims, not verified", False))
    return "".join(f'<p class="notice{" bad" if bad else ""}">{esc(prefix + text)}</p>' for text, bad in told)


# --- numbers ------------------------------------------------------------------------------------------------------


def _summary(summaries: Sequence[Summary]) -> str:
    tables = "".join(_summary_table(summary) for summary in summaries)
    if not tables:
        return ""
    return (
        '<section id="summary" aria-labelledby="summary-title"><h2 id="summary-title">Summary</h2>'
        '<p class="lead">Clean rollouts only. Intervals are 95 % bootstrap intervals of the mean, drawn by seed. '
        "The right half is the built-in policies on the same seeds, as often as the model played each.</p>"
        f"{tables}</section>"
    )


def _summary_table(summary: Summary) -> str:
    head = ["", "Mean", "95 % interval", "Median", "Min", "Max", "n", *POLICIES]
    rows = []
    for name, label in METRICS.items():
        stats = summary.metrics[name]
        if stats is None:
            continue
        cells = [_number(name, stats.mean), _range(name, stats.interval, bare=True), _number(name, stats.median)]
        cells += [_number(name, stats.low), _number(name, stats.high), str(stats.n)]
        base = [summary.baselines[policy].get(name) for policy in POLICIES]
        cells = [f"<td>{cell}</td>" for cell in cells]
        cells += [f'<td class="base">{_number(name, one.mean) if one else "–"}</td>' for one in base]
        rows.append(f'<tr><th scope="row">{label}</th>{"".join(cells)}</tr>')
        if name == "reward" and summary.records.errored and summary.with_errored:
            whole = summary.with_errored
            cells = [_number(name, whole.mean), _range(name, whole.interval, bare=True), _number(name, whole.median)]
            cells += [_number(name, whole.low), _number(name, whole.high), str(whole.n)]
            told = "Reward, errored rollouts included"
            rows.append(
                f'<tr><th scope="row">{told}</th>{"".join(f"<td>{cell}</td>" for cell in cells)}{"<td></td>" * len(POLICIES)}</tr>'
            )
    if not rows:
        return f'<p class="notice">{esc(summary.records.label)}: no rollout was scored.</p>'
    caption = f"<caption><bdi>{esc(summary.records.label)}</bdi></caption>"
    return f'<div class="scroll"><table>{caption}{_head(head)}<tbody>{"".join(rows)}</tbody></table></div>'


def _comparison(runs: Sequence[Records]) -> str:
    common, ranked = ranking(runs)
    if not common:
        text = '<p class="notice">These runs have no seed with the same settings in common, so they cannot be ranked.</p>'
        return f'<section id="comparison" aria-labelledby="comparison-title"><h2 id="comparison-title">Comparison</h2>{text}</section>'
    rows = []
    for place, (index, mean, pair) in enumerate(ranked, 1):
        rows.append(
            f'<tr class="rank{place}"><td>{place}</td><th scope="row" class="left"><span class="dot r-{index % 8}"></span><bdi>{esc(runs[index].label)}</bdi></th>'
            f"<td>{mean:.2f}</td>{_pair(pair)}</tr>"
        )
    head = ["", "Run", "Mean reward", "Behind the best", "95 % interval", "Seeds won, tied, lost"]
    seeds = _count(len(common), "task")
    return (
        '<section id="comparison" aria-labelledby="comparison-title"><h2 id="comparison-title">Comparison</h2>'
        f'<p class="lead">Ranked by mean reward on the {seeds} (seed and settings) that every run has a clean rollout of. Differences are paired: '
        "the same seeds, run by run. An interval that includes 0 does not tell the two apart.</p>"
        f'<div class="scroll"><table>{_head(head)}<tbody>{"".join(rows)}</tbody></table></div>{_side_by_side(runs, common)}</section>'
    )


def _pair(pair: Pair | None) -> str:
    if pair is None:
        return "<td>best</td><td>–</td><td>–</td>"
    interval = f"{pair.interval.low:.2f} to {pair.interval.high:.2f}" if pair.interval else "–"
    return f"<td>{pair.difference:.2f}</td><td>{interval}</td><td>{pair.losses}, {pair.ties}, {pair.wins}</td>"


def _side_by_side(runs: Sequence[Records], common: Sequence[Any]) -> str:
    by_task: list[dict[Any, Record]] = []
    for run in runs:
        first: dict[Any, Record] = {}
        for record in run.clean:
            first.setdefault(record.task, record)
        by_task.append(first)
    rows = []
    for task in common[:MAX_SEEDS_LISTED]:
        cells = []
        best = max(of_run[task].scores["reward"] for of_run in by_task)
        for number, of_run in enumerate(by_task):
            record = of_run[task]
            reward = f"{record.scores['reward']:.2f}"
            strong = f"<b>{reward}</b>" if record.scores["reward"] == best else reward
            cells.append(
                f'<td><a href="#{_link(number, record, len(runs))}">{strong}</a> <span class="sub">{_short(record)}</span></td>'
            )
        link = f'<a href="#{_link(0, by_task[0][task], len(runs))}&amp;race=1">side by side</a>'
        rows.append(f'<tr><th scope="row">{task.seed}</th>{"".join(cells)}<td>{link}</td></tr>')
    more = f"<caption>The first {MAX_SEEDS_LISTED} of {len(common)}</caption>" if len(common) > MAX_SEEDS_LISTED else ""
    head = _head(["Seed", *(run.label for run in runs), "Watch"])
    return f'<h3 class="lead">The same seed, run by run</h3><div class="scroll tall" tabindex="0">{"<table>"}{more}{head}<tbody>{"".join(rows)}</tbody></table></div>'


def _link(number: int, record: Record, runs: int) -> str:
    return (f"run={number}&amp;" if runs > 1 else "") + f"episode={record.row.index}"


def _short(record: Record) -> str:
    ending = record.end.replace("_", " ")
    return esc(f"{ending}, tick {int(record.scores['ticks'])}") if "ticks" in record.scores else esc(ending)


# --- pictures and episodes ----------------------------------------------------------------------------------------


def _charts(runs: Sequence[Records]) -> str:
    drawn = charts.draw(runs)
    if not drawn:
        return ""
    shown = "".join(
        f"<figure><h3>{esc(chart.title)}</h3>{chart.svg}<figcaption>{esc(chart.caption)}</figcaption></figure>" for chart in drawn
    )
    return f'<section id="charts" aria-labelledby="charts-title"><div class="section-head"><h2 id="charts-title">Pictures</h2></div><div class="pictures">{shown}</div></section>'


def _episodes(runs: Sequence[Records]) -> str:
    several = len(runs) > 1
    columns = [
        "Episode",
        *(["Run"] if several else []),
        "Seed",
        "Ended",
        "Ticks",
        "Pipes",
        "Reward",
        "Format",
        "Invalid",
        "No return",
        "Doomed",
        "Last-tick TAPs",
        "Verified",
        "Video",
    ]
    head = "".join(f'<th scope="col"{_left(name)}><button type="button">{name}</button></th>' for name in columns)
    rows, position = [], 0
    for number, run in enumerate(runs):
        for record in run.records:
            rows.append(_episode_row(record, position, number, run.label if several else None, len(runs)))
            position += 1
    ends = {end: sum(run.ends.get(end, 0) for run in runs) for end in ENDS}
    chips = [("", f"All {position}", True)] + [(end, f"{ENDS[end]} {count}", False) for end, count in ends.items() if count]
    filters = "".join(
        f'<button type="button" data-end="{esc(end)}" aria-pressed="{str(on).lower()}">{esc(label)}</button>'
        for end, label, on in chips
    )
    if not rows:
        rows.append(f'<tr><td colspan="{len(columns)}">There are no episodes in this run.</td></tr>')
    return (
        '<section id="episodes" aria-labelledby="episodes-title"><div class="section-head"><h2 id="episodes-title">Episodes</h2>'
        f'<div class="filters" role="group" aria-label="Filter by how it ended">{filters}</div></div>'
        '<p class="lead">“No return” is the last tick at which the bird could still be saved; “doomed” is how long it flew on after that; '
        "last-tick TAPs came when one tick later nothing could have saved it. "
        f'<span id="shown" role="status">{position} of {position} shown</span></p>'
        f'<div class="scroll tall" tabindex="0" role="region" aria-label="All episodes"><table><thead><tr>{head}</tr></thead><tbody id="rows">{"".join(rows)}</tbody></table></div></section>'
    )


def _left(name: str) -> str:
    return ' class="left"' if name in ("Run", "Ended", "Verified") else ""


def _episode_row(record: Record, position: int, number: int, label: str | None, runs: int) -> str:
    scores, analysis = record.scores, record.analysis
    blunder = analysis.blunder if analysis else None
    cells = [f'<td data-v="{record.row.index}"><a href="#{_link(number, record, runs)}">{record.row.index}</a></td>']
    if label is not None:
        cells.append(f'<td class="left"><span class="dot r-{number % 8}"></span><bdi>{esc(label)}</bdi></td>')
    seed = record.episode.seed if record.episode else None
    cells.append(_cell(seed))
    cells.append(_ended(record))
    cells += [_cell(_maybe(scores, "ticks"), "g"), _cell(_maybe(scores, "pipes_passed"), "g")]
    reward = _maybe(scores, "reward")
    shown = "–" if reward is None else f"{reward:.2f}" if record.clean else f"({reward:.2f})"
    cells.append(f'<td data-v="{"" if reward is None else reward}">{shown}</td>')
    cells += [_cell(_maybe(scores, "format"), ".3f"), _cell(_maybe(scores, "invalid_actions"), "g")]
    cells += [_cell(blunder.tick if blunder else None), _cell(blunder.doomed if blunder else None)]
    cells.append(_cell(len(analysis.near_misses) if analysis else None))
    if record.episode is None:
        cells.append('<td class="left sub" data-v="2">no transcript</td>')
    elif record.differences:
        cells.append(f'<td class="left bad-text" data-v="1">✕ from tick {record.differences[0].tick}</td>')
    else:
        cells.append('<td class="left good-text" data-v="0">✓</td>')
    cells.append('<td data-v="0">▸</td>' if record.video else '<td data-v=""></td>')
    return f'<tr id="row-{position}" data-end="{esc(record.end)}">{"".join(cells)}</tr>'


def _ended(record: Record) -> str:
    text = ENDS[record.end]
    outcome = record.episode.outcome if record.episode else None
    if outcome and outcome.reason is Reason.PIPE and record.end == Reason.PIPE.value:
        text = f"hit pipe {outcome.pipe}"
    told = record.row.error if record.end == Reason.ERROR.value else record.row.problem if record.episode is None else None
    if told:
        return f'<td class="left wrap" data-v="{esc(text)}"><span class="dot {_end_class(record.end)}"></span>{esc(text)}: <span class="sub words">{esc(told[:300])}</span></td>'
    return f'<td class="left" data-v="{esc(text)}"><span class="dot {_end_class(record.end)}"></span>{esc(text)}</td>'


def _end_class(end: str) -> str:
    return "e-none" if end == NO_TRANSCRIPT else f"e-{end}"


def _maybe(scores: dict[str, float], name: str) -> float | None:
    return scores.get(name)


def _cell(value: float | None, form: str = "") -> str:
    return '<td data-v="">–</td>' if value is None else f'<td data-v="{value}">{value:{form}}</td>'


# --- what ran -----------------------------------------------------------------------------------------------------


def _details(runs: Sequence[Records]) -> str:
    tables = "".join(_detail(run) for run in runs)
    if not tables:
        return ""
    return (
        '<section id="details" aria-labelledby="details-title"><div class="section-head"><h2 id="details-title">What ran</h2></div>'
        f'<div class="columns">{tables}</div></section>'
    )


def _detail(records: Records) -> str:
    run = records.run
    episode = next((record.episode for record in records.records if record.episode), None)
    facts: list[tuple[str, str]] = [("Model", run.model), ("Run", f"{run.path.name} ({run.kind})"), ("Date", moment(run.date))]
    facts += [(f"{name} release", version) for name, version in run.versions.items()]
    facts += [("Asked for", "unknown" if run.asked is None else _count(run.asked, "rollout")), ("Seeds", _seeds(records))]
    facts += [("Sampling", _plain(run.sampling)), ("Environment arguments", _plain(run.env_args))]
    if episode:
        facts.append(("Rules", _plain(episode.rules.model_dump())))
        facts.append(("World, changed from the defaults", _plain(episode.config.changed())))
    rows = "".join(f'<tr><th scope="row">{esc(name)}</th><td class="value">{_code(value)}</td></tr>' for name, value in facts)
    return f'<div class="scroll"><table class="facts-table"><caption><bdi>{esc(records.label)}</bdi></caption><tbody>{rows}</tbody></table></div>'


def _code(value: str) -> str:
    return f"<code>{esc(value)}</code>" if value.startswith(("{", "[")) else esc(value)


def _plain(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, default=str, sort_keys=True) if value else "none given"


def _head(names: Sequence[str]) -> str:
    cells = "".join(f'<th scope="col"{_left(name)}>{esc(name)}</th>' if name else "<td></td>" for name in names)
    return f"<thead><tr>{cells}</tr></thead>"


def _number(name: str, value: float) -> str:
    return f"{value:.{DIGITS.get(name, 2)}f}"


def _range(name: str, interval: Interval | None, *, bare: bool = False) -> str:
    if interval is None:
        return "–" if bare else "too few seeds for an interval"
    return f"{'' if bare else '95 % '}{_number(name, interval.low)} to {_number(name, interval.high)}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


__all__ = ["Stats", "build", "esc", "moment"]
