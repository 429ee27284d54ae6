"""Records → the context of the page's templates: plain values, none of them markup but the drawings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import count as count_from
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from flappybird import cost
from flappybird._version import __version__
from flappybird.players.policies import POLICIES
from flappybird.report import svg
from flappybird.report.causes import CAUSES, death_text
from flappybird.report.charts import charts, link
from flappybird.report.data import ENDS, Record, Records
from flappybird.report.figures import Chart
from flappybird.report.html import count, moment
from flappybird.report.overview import Overview, end_name, notices
from flappybird.report.palette import TOKENS
from flappybird.report.payload import OF_A_CAUSE, evenly, payload
from flappybird.report.reference import Task
from flappybird.report.strips import strip
from flappybird.report.summary import METRICS, Summary
from flappybird.world.game import Reason

MAX_NOTICES = 10
"""The most episodes of a run whose differences are listed at the top of the page; each is named in the table."""

MAX_SEEDS_LISTED = 500
"""The most seeds of which every run's result is listed."""

MAX_ERROR_SHOWN = 300
"""Characters of an error in the table; the replay shows all of it."""

HEADINGS = {
    "overview": "Result",
    "replay": "Replay",
    "causes": "Why they died",
    "numbers": "Numbers",
    "charts": "Charts",
    "episodes": "Episodes",
    "details": "What ran",
}
"""Sections of the page, and what its navigation calls them."""


class Drawn(NamedTuple):
    """A chart and its drawing."""

    chart: Chart
    svg: Markup


def page_context(
    runs: Sequence[Records],
    folder: Path,
    built: datetime | None = None,
    *,
    embed: bool = False,
    note: str = "",
    select: Collection[int] = (),
) -> dict[str, Any]:
    """Return the context of `page.html`.

    Args:
        runs: what to show.
        folder: the folder of the page: links to videos are relative to it.
        built: when; now if not given.
        embed: show the player alone.
        note: a line at the foot of the page.
        select: indices of episodes whose replays the page holds in any case.
    """
    overview = Overview(runs, [Summary(run) for run in runs])
    data = payload(overview, folder, select)
    forest = overview.forest()
    found = {
        "causes": causes(overview),
        "numbers": numbers(overview),
        "charts": [Drawn(chart, svg.draw(chart)) for chart in charts(overview)],
        "episodes": list(episodes(overview, {episode["row"] for episode in data["episodes"]})),
        "details": [{"place": place, "facts": list(_facts(place.records))} for place in overview.places],
    }
    return {
        "version": __version__,
        "title": _title(overview),
        "meta": _meta(runs),
        "embed": embed,
        "progress": None,
        "race": None,
        "overview": overview,
        "several": len(runs) > 1,
        "verdict": overview.verdict(),
        "forest": Drawn(forest, svg.draw(forest)) if forest and (len(runs) > 1 or forest.legend) else None,
        "notices": [notice for run in runs for notice in notices(run, len(runs) > 1, MAX_NOTICES)],
        **found,
        "seeds": same_seeds(overview) if len(runs) > 1 else None,
        "columns": _columns(runs),
        "filters": filters(runs),
        "sections": {name: title for name, title in HEADINGS.items() if name in ("overview", "replay") or found.get(name)},
        "tokens": TOKENS,
        "data": data,
        "replays": len(data["episodes"]),
        "built": moment(built or datetime.now(UTC)),
        "note": note,
    }


def _title(overview: Overview) -> str:
    if not overview.places:
        return "No runs"
    if len(overview.places) == 1:
        return overview.places[0].label
    return f"{len(overview.places)} runs compared"


def _meta(runs: Sequence[Records]) -> str:
    if len(runs) != 1:
        return f"{count(len(runs), 'run')}, {count(sum(len(run.records) for run in runs), 'rollout')} in all"
    run = runs[0].run
    date = [f"run on {moment(run.date)}"] if run.date else []
    return " · ".join([seeds_text(runs[0]), *date, *(f"{name} {version}" for name, version in run.versions.items())])


# --- why they died ----------------------------------------------------------------------------------------------------


def causes(overview: Overview) -> list[dict[str, Any]]:
    """Return the causes of death, the most frequent first: counts by run, share of all deaths, examples."""
    found: dict[str, list[tuple[int, Record]]] = {}
    for run, records in enumerate(overview.runs):
        for record in records.clean:
            if record.cause:
                found.setdefault(record.cause.name, []).append((run, record))
    total = sum(map(len, found.values()))
    listed = []
    for name, of_it in sorted(found.items(), key=lambda item: (-len(item[1]), list(CAUSES).index(item[0]))):
        counts = [sum(run == place.run for run, _ in of_it) for place in overview.places]
        examples = [
            {
                "svg": strip(record),
                "link": link(run, record, record.cause.tick if record.cause else None),
                "run": run,
                "episode": record.row.index,
                "said": str(record.cause.slips[0]) if record.cause and record.cause.slips else "",
                "text": f"{_end_text(record)} at tick {record.scores['ticks']:g}",
            }
            for run, record in evenly(of_it, OF_A_CAUSE)
        ]
        listed.append(
            {
                "name": name,
                "label": CAUSES[name][0],
                "meaning": CAUSES[name][1],
                "count": len(of_it),
                "share": len(of_it) / total,
                "counts": counts,
                "examples": examples,
            }
        )
    return listed


# --- numbers ----------------------------------------------------------------------------------------------------------


def numbers(overview: Overview) -> list[dict[str, Any]]:
    """Return one row per metric: what every run reached, in the order of the leaderboard, and every built-in player."""
    rows = []
    for name, label in METRICS.items():
        cells = [place.stats(name) for place in overview.places]
        if not any(cells):
            continue
        base = []
        for policy in POLICIES:
            known = [stats for summary in overview.summaries if (stats := summary.baselines[policy].get(name))]
            base.append(sum(one.mean * one.n for one in known) / sum(one.n for one in known) if known else None)
        rows.append({"metric": name, "label": label, "cells": cells, "base": base})
        if name == "reward" and any(place.records.errored for place in overview.places):
            cells = [place.summary.with_errored for place in overview.places]
            rows.append(
                {"metric": name, "label": "Reward, errored rollouts included", "cells": cells, "base": [None] * len(base)}
            )
    return rows


def same_seeds(overview: Overview) -> dict[str, Any]:
    """Return what every run reached on each task that all of them played, and how they rank on these."""
    first: dict[int, dict[Task | None, Record]] = {}
    for place in overview.places:
        of_run = first.setdefault(place.run, {})
        for record in place.records.clean:
            of_run.setdefault(record.task, record)
    rows = []
    for task in overview.common[:MAX_SEEDS_LISTED]:
        records = [(place.run, first[place.run][task]) for place in overview.places]
        best = max(record.scores["reward"] for _, record in records)
        cells = [
            {
                "link": link(run, record),
                "reward": record.scores["reward"],
                "best": record.scores["reward"] == best,
                "ended": f"{_end_text(record)}, tick {record.scores['ticks']:g}",
            }
            for run, record in records
        ]
        rows.append({"seed": task.seed, "cells": cells, "race": f"{link(*records[0])}&race=1"})
    behind = {index: pair for index, _, pair in overview.ranked}
    means = {index: mean for index, mean, _ in overview.ranked}
    return {"rows": rows, "total": len(overview.common), "behind": behind, "means": means}


# --- every episode ----------------------------------------------------------------------------------------------------

_COLUMNS = {
    "Episode": "",
    "Run": "left",
    "Seed": "",
    "Ended": "left",
    "Cause": "left",
    "Ticks": "",
    "Pipes": "",
    "Reward": "",
    "Format": "",
    "Invalid": "",
    "No return": "",
    "Doomed": "",
    "Last-tick TAPs": "",
    "Verified": "left",
    "Video": "",
}


def _columns(runs: Sequence[Records]) -> dict[str, str]:
    """Return the columns of the table of episodes, and how each is aligned."""
    filmed = any(record.video for run in runs for record in run.records)
    left_out = ({"Run"} if len(runs) < 2 else set()) | (set() if filmed else {"Video"})
    return {name: align for name, align in _COLUMNS.items() if name not in left_out}


def episodes(overview: Overview, replays: Collection[int]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the table of episodes; `replays` are those of which the page holds the replay."""
    rows = count_from()
    for run, records in enumerate(overview.runs):
        for record in records.records:
            scores, analysis, episode = record.scores, record.analysis, record.episode
            blunder = analysis.blunder if analysis else None
            why = record.row.error if record.end == Reason.ERROR.value else record.row.problem if episode is None else None
            yield {
                "here": next(rows) in replays,
                "run": run,
                "index": record.row.index,
                "link": link(run, record),
                "seed": episode.seed if episode else None,
                "end": end_name(record.end),
                "ended": _end_text(record),
                "why": (why or "")[:MAX_ERROR_SHOWN],
                "cause": record.cause.name if record.cause else "",
                "cause_text": CAUSES[record.cause.name][0] if record.cause else "",
                "ticks": scores.get("ticks"),
                "pipes": scores.get("pipes_passed"),
                "reward": scores.get("reward"),
                "clean": record.clean,
                "format": scores.get("format"),
                "invalid": scores.get("invalid_actions"),
                "lost": blunder.tick if blunder else None,
                "doomed": blunder.doomed if blunder else None,
                "near": len(analysis.near_misses) if analysis else None,
                "verified": verified(record),
                "differs": record.differences[0].tick if record.differences else None,
                "video": record.video is not None,
            }


def verified(record: Record) -> str:
    """Return whether a rollout agrees with its replay, `yes` or `no`; `no turns`, `no transcript` where there is none."""
    if record.episode is None:
        return "no transcript"
    if record.differences:
        return "no"
    return "yes" if record.episode.turns else "no turns"


def filters(runs: Sequence[Records]) -> list[dict[str, Any]]:
    """Return what the table of episodes can be filtered by."""
    ends = {end: sum(run.ends.get(end, 0) for run in runs) for end in ENDS}
    lost = {cause: sum(run.causes.get(cause, 0) for run in runs) for cause in CAUSES}
    return [
        *({"by": "end", "value": end_name(end), "label": ENDS[end], "count": number} for end, number in ends.items() if number),
        *(
            {"by": "cause", "value": cause, "label": CAUSES[cause][0], "count": number}
            for cause, number in lost.items()
            if number
        ),
    ]


def _end_text(record: Record) -> str:
    if record.end == Reason.PIPE.value and record.episode:
        return death_text(Reason.PIPE, record.episode.outcome.pipe)
    return ENDS[record.end]


# --- what ran ---------------------------------------------------------------------------------------------------------


def _facts(records: Records) -> Iterable[tuple[str, Any]]:
    run = records.run
    yield "Model", run.model
    yield "Run", f"{run.path.name} ({run.kind})"
    yield "Date", moment(run.date)
    for name, version in run.versions.items():
        yield f"{name} release", version
    yield "Asked for", "unknown" if run.asked is None else count(run.asked, "rollout")
    yield "Seeds", seeds_text(records)
    yield "Sampling", run.sampling
    yield "Environment arguments", run.env_args
    episode = next((record.episode for record in records.records if record.episode), None)
    if episode:
        yield "Rules", episode.rules.model_dump()
        yield "World, changed from the defaults", episode.config.changed()
    yield from cost.facts(run)


def seeds_text(records: Records) -> str:
    """Return how many rollouts there are, on which seeds."""
    played = sorted({record.episode.seed for record in records.records if record.episode})
    rollouts = count(len(records.records), "rollout")
    if not played:
        return f"{rollouts}, no seeds known"
    if len(played) > 2 and played[-1] - played[0] == len(played) - 1:
        return f"{rollouts} on seeds {played[0]} to {played[-1]}"
    listed = ", ".join(map(str, played[:6])) + ("…" if len(played) > 6 else "")
    return f"{rollouts} on {count(len(played), 'seed')}: {listed}"
