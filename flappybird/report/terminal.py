"""Records → the summary as plain text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from flappybird.errors import show
from flappybird.players.policies import POLICIES
from flappybird.report.causes import CAUSES
from flappybird.report.data import ENDS, Records
from flappybird.report.html import count
from flappybird.report.overview import Overview
from flappybird.report.summary import METRICS, Summary, ranking


def text(runs: Sequence[Records]) -> str:
    """Return the summary of `runs`, about 100 columns wide."""
    summaries = [Summary(run) for run in runs]
    blocks = ["\n".join(_run(summary)) for summary in summaries]
    if runs:
        blocks.insert(0, _plain("".join(text for text, _ in Overview(runs, summaries).verdict())))
    if len(runs) > 1:
        blocks.append("\n".join(_ranking(runs)))
    return "\n\n".join(blocks) + "\n"


def _run(summary: Summary) -> Iterator[str]:
    records = summary.records
    run = records.run
    yield f"{_plain(records.label)} · {_plain(run.path.name)}"
    asked = f"{run.asked} asked for, " if run.asked is not None else ""
    missing = f", {records.missing} missing" if records.missing else ""
    yield f"{asked}{count(len(records.records), 'row')}: {len(records.clean)} ok, {len(records.errored)} errored{missing}"
    yield "ended: " + (", ".join(f"{count} {ENDS[end]}" for end, count in records.ends.items()) or "nothing was played")
    yield f"{records.verified} of {len(records.checked)} transcripts verified by replay"
    if records.causes:
        yield "lost by: " + ", ".join(f"{count} {CAUSES[cause][0].lower()}" for cause, count in records.causes.items())
    for record in records.records:
        if record.differences:
            yield f"  episode {record.row.index} differs first at {record.differences[0]}"
    for note in run.notes:
        yield f"note: {_plain(note)}"
    if run.damaged:
        yield f"note: {run.damaged} damaged lines skipped"
    yield ""
    yield f"{'clean rollouts':<18}{'mean':>9}{'95 % interval':>19}{'median':>9}{'min':>9}{'max':>9}  " + "".join(
        f"{name:>10}" for name in POLICIES
    )
    for name, label in METRICS.items():
        stats = summary.metrics[name]
        if stats:
            interval = f"{stats.interval.low:.2f} to {stats.interval.high:.2f}" if stats.interval else "–"
            base = [summary.baselines[policy].get(name) for policy in POLICIES]
            others = "".join(f"{one.mean:>10.2f}" if one else f"{'–':>10}" for one in base)
            yield f"{label:<18}{stats.mean:>9.2f}{interval:>19}{stats.median:>9.2f}{stats.low:>9.2f}{stats.high:>9.2f}  {others}"
    if records.errored and summary.with_errored:
        yield f"{'Reward, with errored':<18} {summary.with_errored.mean:.2f} over {summary.with_errored.n} rollouts"
    if summary.share:
        ratio, within = summary.share
        yield f"share of the planner's reward: {ratio:.0%}" + (f" (95 % {within.low:.0%} to {within.high:.0%})" if within else "")


def _ranking(runs: Sequence[Records]) -> Iterator[str]:
    common, ranked = ranking(runs)
    if not common:
        yield "no ranking: the runs have no seed with the same settings in common"
        return
    yield f"ranking on {len(common)} common tasks, by mean reward"
    for place, (index, mean, pair) in enumerate(ranked, 1):
        behind = ""
        if pair:
            interval = f" (95 % {pair.interval.low:.2f} to {pair.interval.high:.2f})" if pair.interval else ""
            behind = f"  {pair.difference:.2f} behind{interval}"
        yield f"{place:>3}. {_plain(runs[index].label):<40}{mean:>9.2f}{behind}"


def _plain(value: str) -> str:
    """Return `value` on one line, without anything that a terminal would obey."""
    return value if value.isprintable() else show(value, 200)
