"""What came of it: a table, a curve, a report and a video."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from flappybird.demo import film
from flappybird.report import write_report
from flappybird.runs import Run
from flappybird.system.files import replacing

from . import evaluate, model

COLOURS = {"sft": "#1f77b4", "rl": "#d62728", "untrained": "#7f7f7f", "start": "#7f7f7f"}


class Flight(NamedTuple):
    """A checkpoint on a level, as `vf-eval` saved it."""

    seed: int
    stage: str
    level: str
    run: Run


def table(folder: Path, flights: Sequence[Flight]) -> str:
    """Return all flights as a Markdown table, 95 % intervals over evaluation seeds; seconds are those of training."""
    names = ("training", "checkpoint", "seconds", "level", "games", "pipes (95 %)", "ticks", "format")
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for flight in flights:
        figures = evaluate.line(flight.run)
        ticks, form = figures["ticks"].value, figures["format"].value
        cells = (
            f"seed {flight.seed}",
            flight.stage,
            f"{trained(folder, flight):.0f}",
            flight.level,
            len(flight.run.rows),
            figures["pipes"],
            f"{ticks:.0f}",
            f"{form:.3f}",
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def trained(folder: Path, flight: Flight) -> float:
    """Return the seconds of training that a checkpoint has behind it; those of RL come on top of its start's."""
    stages = ("start", "rl") if flight.stage == "rl" else (flight.stage,)
    facts = [model.load(folder / f"seed{flight.seed}" / f"{stage}.npz")[2] for stage in stages]
    return sum(fact.get("spent", 0.0) for fact in facts)


def differences(flights: Sequence[Flight], level: str) -> str:
    """Return how many pipes RL gained over its start, and over SFT that went on from there for as long, seed by seed."""
    pipes = {(flight.seed, flight.stage): evaluate.pipes(flight.run) for flight in flights if flight.level == level}
    lines = ["| training | compared on the same courses | pipes (95 %) |", "|---|---|---|"]
    for seed in sorted({flight.seed for flight in flights}):
        for other, words in (("start", "RL less its start"), ("sft", "RL less as much further SFT")):
            pairs = zip(pipes[seed, "rl"], pipes[seed, other], strict=True)
            lines.append(f"| seed {seed} | {words} | {evaluate.mean([a - b for a, b in pairs])} |")
    return "\n".join(lines)


def curve(folder: Path, flights: Sequence[Flight], level: str) -> Path:
    """Draw pipes over training time: validation as lines, evaluation as points with their intervals; return the PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), dpi=110, layout="constrained")
    axis: Any = figure.subplots()
    for place in sorted(folder.glob("seed[0-9]")):
        style = "-" if place.name == "seed0" else "--"
        begins = model.load(place / "start.npz")[2]
        for stage, offset in (("sft", 0.0), ("rl", begins["spent"])):
            lines = [json.loads(line) for line in (place / "log.jsonl").read_text(encoding="utf-8").splitlines()]
            points = [(line["spent"] + offset, line["pipes"]) for line in lines if line["stage"] == stage]
            points = [(0.0, 0.0) if stage == "sft" else (offset, begins["pipes"]), *points]
            label = f"{stage.upper()}, {place.name.replace('seed', 'seed ')} (validation)"
            axis.plot(*zip(*points, strict=True), style, color=COLOURS[stage], linewidth=1.2, alpha=0.7, label=label)
    labelled = set()
    for flight in flights:
        if flight.level != level:
            continue
        pipes = evaluate.line(flight.run)["pipes"]
        label = None if flight.stage in labelled else f"{flight.stage}, vf-eval, {len(flight.run.rows)} games"
        labelled.add(flight.stage)
        reach = [[pipes.value - pipes.low], [pipes.high - pipes.value]]
        x, shape = trained(folder, flight), "os"[flight.seed % 2]
        axis.errorbar(x, pipes.value, reach, fmt=shape, color=COLOURS[flight.stage], capsize=3, label=label, zorder=3)
    axis.set(xlabel="seconds of training", ylabel=f"pipes of 8 ({level}, 300 ticks)", ylim=(-0.2, 8.3))
    axis.axhline(8, color="#bbbbbb", linewidth=0.8)
    axis.legend(fontsize=7, loc="upper left")
    axis.spines[["top", "right"]].set_visible(False)
    path = folder / "curve.png"
    with replacing(path) as temporary:
        figure.savefig(temporary, format="png")
    return path


def everything(folder: Path, flights: Sequence[Flight], level: str) -> dict[str, Path | str]:
    """Write table, curve, report and video to `folder`; return where each lies."""
    written = f"{table(folder, flights)}\n\n{differences(flights, level)}\n"
    (folder / "table.md").write_text(written, encoding="utf-8")
    print(f"\n{written}")
    first = [flight.run for flight in flights if flight.level == level and flight.seed == min(flight.seed for flight in flights)]
    return {
        "table": folder / "table.md",
        "curve": curve(folder, flights, level),
        "report": write_report([flight.run for flight in flights if flight.level == level], folder / "report.html"),
        "video": film([run.rows[0] for run in first], folder / "seed-0.mp4"),
    }
