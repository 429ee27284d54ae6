"""Records → one HTML page that needs nothing but itself.

Every string that comes from a run goes through `markup.esc` (or, for the player, through `payload.embed`), so that it is
shown literally; the page's own style and script are allowed by their hashes, and nothing else is allowed at all.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from string import Template

from flappybird._version import __version__
from flappybird.report import sections
from flappybird.report.data import ENDS, Records
from flappybird.report.html import count, dot, end_look, esc, moment, name_of, notice, span
from flappybird.report.payload import embed, payload
from flappybird.report.summary import Summary

MAX_NOTICES = 10
"""The most episodes whose differences are told at the top of the page; each is told in the table."""

NAMES = {
    "replay": "Replay",
    "comparison": "Comparison",
    "summary": "Summary",
    "charts": "Pictures",
    "episodes": "Episodes",
    "details": "What ran",
}
"""The sections of the page that its navigation leads to."""


def build(runs: Sequence[Records], folder: Path, built: datetime | None = None) -> str:
    """Return the page for `runs`. Links are relative to `folder`; `built` is when, now if not given."""
    summaries = [Summary(run) for run in runs]
    style, script = _own("style.css"), _own("player.js")
    parts = {
        "headline": _headline(summaries),
        "replay": _own("replay.html"),
        "comparison": sections.comparison(runs) if len(runs) > 1 else "",
        "summary": sections.summary(summaries),
        "charts": sections.pictures(runs),
        "episodes": sections.episodes(runs),
        "details": sections.details(runs),
    }
    heading = " · ".join(dict.fromkeys(run.label for run in runs)) or "No runs"
    return Template(_own("template.html")).substitute(
        parts,
        policy=(
            f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src 'none'; "
            "base-uri 'none'; form-action 'none'"
        ),
        version=esc(__version__),
        title=esc(f"Flappy Bird: {heading}"),
        heading=name_of(heading),
        meta=esc(_meta(runs)),
        nav=" ".join(f'<a href="#{name}">{title}</a>' for name, title in NAMES.items() if parts[name]),
        style=style,
        script=script,
        data=embed(payload(runs, folder)),
        built=moment(built or datetime.now(UTC)),
    )


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _meta(runs: Sequence[Records]) -> str:
    if len(runs) != 1:
        return f"{count(len(runs), 'run')}, {count(sum(len(run.records) for run in runs), 'rollout')} in all"
    run = runs[0].run
    date = [f"run on {moment(run.date)}"] if run.date else []
    return " · ".join([sections.seeds(runs[0]), *date, *(f"{name} {version}" for name, version in run.versions.items())])


# --- the figures at the top ---------------------------------------------------------------------------------------


def _headline(summaries: Sequence[Summary]) -> str:
    cards = f'<div class="cards">{"".join(_cards(summaries[0]))}</div>' if len(summaries) == 1 else ""
    totals = "".join(_totals(summary.records, named=len(summaries) > 1) for summary in summaries)
    notices = "".join(line for summary in summaries for line in _notices(summary.records))
    return f'<section class="headline" aria-label="Headline figures">{cards}{totals}{notices}</section>'


def _cards(summary: Summary) -> Iterable[str]:
    records = summary.records
    reward, pipes = summary.metrics["reward"], summary.metrics["pipes_passed"]
    errored = len(records.errored)
    more = "no rollout was scored"
    if reward:
        more = f"95 % {span('reward', reward.interval)}" if reward.interval else "too few seeds for an interval"
    if errored and summary.with_errored:
        more += f"; with the {errored} errored {summary.with_errored.mean:.2f}"
    yield _card("Mean reward, clean rollouts" if errored else "Mean reward", f"{reward.mean:.2f}" if reward else "–", more)
    yield _card(
        "Pipes passed", f"{pipes.mean:.2f}" if pipes else "–", f"median {pipes.median:g}, best {pipes.high:g}" if pipes else ""
    )
    if summary.share:
        ratio, interval = summary.share
        more = f"95 % {interval.low:.0%} to {interval.high:.0%}" if interval else "too few seeds for an interval"
        yield _card("Share of the planner’s reward", f"{ratio:.0%}", more)
    deaths = [record.analysis for record in records.clean if record.analysis and record.analysis.death]
    if deaths:
        doomed = sorted(analysis.blunder.doomed for analysis in deaths if analysis.blunder)
        more = f"doomed for {count(doomed[len(doomed) // 2], 'tick')} in the median" if doomed else ""
        yield _card("Deaths that one other action avoids", f"{len(doomed)}", more, of=len(deaths))
    if records.replayed:
        good = records.verified == len(records.replayed)
        more = "every stored action, observation and score" if good else "what differs is told below"
        yield _card("Verified by replay", f"{records.verified}", more, "good" if good else "bad", of=len(records.replayed))


def _card(name: str, figure: str, more: str, look: str = "", *, of: int | None = None) -> str:
    whole = f"<small> of {of}</small>" if of is not None else ""
    return (
        f'<div class="card {look}"><div class="name">{esc(name)}</div>'
        f'<div class="figure">{esc(figure)}{whole}</div><div class="more">{esc(more)}</div></div>'
    )


def _totals(records: Records, *, named: bool) -> str:
    total = len(records.records) + records.missing
    ends = [(end_look(end), ENDS[end], number) for end, number in records.ends.items()]
    if records.missing:
        ends.append(("e-missing", "asked for, but not in the run", records.missing))
    bars, at = [], 0.0
    for look, label, number in ends:
        width = 100 * number / total
        bars.append(
            f'<rect class="{look}" x="{at:.3f}" y="0" width="{width:.3f}" height="1"><title>{label}: {number}</title></rect>'
        )
        at += width
    unscored = len(records.records) - len(records.clean) - len(records.errored)
    counts = [f"{len(records.clean)} ok", f"{len(records.errored)} errored"]
    counts += [f"{unscored} unscored"] * (unscored > 0) + [f"{records.missing} missing"] * (records.missing > 0)
    asked = f"{records.run.asked} asked for: " if records.run.asked is not None else ""
    listed = "".join(f"<li>{dot(look)}<b>{number}</b> {label}</li>" for look, label, number in ends)
    svg = f'<svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">{"".join(bars)}</svg>' if total else ""
    told = f"{asked}{', '.join(counts)}; by how they ended, {total} in all:"
    name = f"<b>{name_of(records.label)}</b> · " if named else ""
    return f'<div class="totals">{svg}<p>{name}{told}</p><ul>{listed}</ul></div>'


def _notices(records: Records) -> Iterable[str]:
    run, prefix = records.run, f"{records.label}: "
    for note in run.notes:
        yield notice(prefix + note)
    if run.damaged:
        yield notice(f"{prefix}{count(run.damaged, 'damaged line')} skipped: not one JSON object each", bad=True)
    if run.asked is not None and len(records.records) > run.asked:
        yield notice(f"{prefix}the run has {count(len(records.records), 'row')}, but {run.asked} were asked for", bad=True)
    differing = [record for record in records.records if record.differences]
    for record in differing[:MAX_NOTICES]:
        more = f" (and {len(record.differences) - 1} more)" if len(record.differences) > 1 else ""
        first = record.differences[0]
        yield notice(f"{prefix}episode {record.row.index} differs from its replay first at {first}{more}", bad=True)
    if len(differing) > MAX_NOTICES:
        yield notice(f"{prefix}{len(differing) - MAX_NOTICES} more episodes differ from their replay", bad=True)
    if records.without_baselines:
        without = count(records.without_baselines, "episode")
        yield notice(f"{prefix}the built-in policies were not played for {without}: too many ticks in all")
    claimed = sum(record.episode is None for record in records.clean)
    if claimed:
        yield notice(f"{prefix}{count(claimed, 'score')} without a transcript: as the run claims, not verified")
