"""The tables of a report as rows of plain values, and as text: Markdown and LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flappybird.report.causes import CAUSES
from flappybird.report.context import verified
from flappybird.report.data import Record, Records
from flappybird.report.overview import Overview
from flappybird.report.summary import METRICS, Stats
from flappybird.runs.frame import episode_rows, turn_rows

Row = dict[str, Any]


def tables(overview: Overview) -> dict[str, list[Row]]:
    """Return the tables by name: `leaderboard`, `metrics`, `causes`, one row per episode, one row per turn."""
    return {
        "leaderboard": [_place(overview, number) for number in range(len(overview.places))],
        "metrics": [*_metrics(overview)],
        "causes": [*_causes(overview)],
        "episodes": [row for records in overview.runs for row in _episodes(records)],
        "turns": [{"label": records.label, **row} for records in overview.runs for row in turn_rows(records.run)],
    }


def _place(overview: Overview, number: int) -> Row:
    place = overview.places[number]
    share, records = place.summary.share, place.records
    row: Row = {"place": place.number, "run": place.label, "episodes": len(records.clean), "errored": len(records.errored)}
    for metric in ("reward", "pipes_passed", "format", "invalid_actions", "tokens_per_turn"):
        stats = place.stats(metric)
        row[metric] = stats.mean if stats else None
        if metric in ("reward", "pipes_passed"):
            row |= {f"{metric}_low": _low(stats), f"{metric}_high": _high(stats)}
    return row | {
        "share_of_planner": share[0] if share else None,
        "verified": records.verified,
        "checked": len(records.checked),
    }


def _low(stats: Stats | None) -> float | None:
    return stats.interval.low if stats and stats.interval else None


def _high(stats: Stats | None) -> float | None:
    return stats.interval.high if stats and stats.interval else None


def _metrics(overview: Overview) -> list[Row]:
    rows = []
    for place in overview.places:
        players = {place.label: place.summary.metrics}
        players |= {f"built-in {policy} on these seeds": dict(stats) for policy, stats in place.summary.baselines.items()}
        for player, metrics in players.items():
            for name in METRICS:
                stats = metrics.get(name)
                if stats:
                    rows.append(
                        {"run": place.label, "player": player, "metric": name, "n": stats.n, "mean": stats.mean}
                        | {"low": _low(stats), "high": _high(stats)}
                        | {"median": stats.median, "min": stats.low, "max": stats.high}
                    )
    return rows


def _causes(overview: Overview) -> list[Row]:
    rows = []
    for place in overview.places:
        deaths = sum(place.records.causes.values())
        for cause, number in place.records.causes.items():
            rows.append({"run": place.label, "cause": CAUSES[cause][0], "deaths": number, "share": number / deaths})
    return rows


def _episodes(records: Records) -> list[Row]:
    return [
        {"label": records.label, **row, **_explained(record)}
        for record, row in zip(records.records, episode_rows(records.run), strict=True)
    ]


def _explained(record: Record) -> Row:
    blunder = record.analysis.blunder if record.analysis else None
    return {
        "cause": record.cause.name if record.cause else None,
        "no_return": blunder.tick if blunder else None,
        "doomed": blunder.doomed if blunder else None,
        "verified": verified(record),
    }


# --- text -------------------------------------------------------------------------------------------------------------

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}


def markdown(rows: Sequence[Row]) -> str:
    """Return `rows` as a Markdown table."""
    names = _names(rows)
    lines = [[*names], ["---:" if _numeric(rows, name) else "---" for name in names]]
    lines += [[_cell(row[name]).replace("|", "\\|").replace("<", "&lt;") for name in names] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def latex(rows: Sequence[Row], long: bool = False) -> str:
    """Return `rows` as a LaTeX table, of the package booktabs; `long` ones go over pages, with the package longtable."""
    names = _names(rows)
    kind = "longtable" if long else "tabular"
    columns = "".join("r" if _numeric(rows, name) else "l" for name in names)
    lines = [
        " & ".join(map(_escaped, line)) + r" \\" for line in ([*names], *([_cell(row[name]) for name in names] for row in rows))
    ]
    packages = "booktabs, longtable" if long else "booktabs"
    body = "\n".join([lines[0], r"\midrule", *([r"\endhead"] if long else []), *lines[1:]])
    return f"% \\usepackage{{{packages}}}\n\\begin{{{kind}}}{{{columns}}}\n\\toprule\n{body}\n\\bottomrule\n\\end{{{kind}}}\n"


def _names(rows: Sequence[Row]) -> list[str]:
    return list(rows[0]) if rows else []


def _numeric(rows: Sequence[Row], name: str) -> bool:
    return any(isinstance(row[name], int | float) for row in rows)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"
    return " ".join("".join(letter if letter.isprintable() else " " for letter in str(value)).split())


def _escaped(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
