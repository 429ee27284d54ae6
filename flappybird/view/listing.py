"""The runs below a folder, and in what state each of them is."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any, Literal

from flappybird.errors import EpisodeError, FlappyError, show
from flappybird.runs import Run, has_episodes, open_run
from flappybird.runs.entries import file_of
from flappybird.runs.folder import episode_files
from flappybird.runs.index import Index
from flappybird.runs.resume import LOCK
from flappybird.runs.training import is_training

State = Literal["running", "complete", "resumable", "stopped", "broken"]

LIVELY_SECONDS = 30.0
"""A run that is not complete counts as running for so long after its last row, where nothing else says who plays."""

DEEPEST = 10
"""How many folders down runs are looked for."""


Stamp = tuple[int, int, bool]
"""By what a file that changed is known: time in nanoseconds, size, and whether somebody plays for it."""


def stamp(path: Path) -> Stamp | None:
    """Return the stamp of the file of a run; None for a folder of episodes, and where it has gone."""
    file = file_of(path)
    try:
        status = file.stat() if file else None
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, (path / LOCK).exists()) if status else None


@dataclass(frozen=True)
class Listed:
    """A run as the list shows it."""

    name: str
    """Its path below the folder."""
    key: str
    """What names it in addresses: its folder's number, and its name."""
    path: Path
    state: State
    changed: float
    """When its rows changed last, in seconds since 1970."""
    model: str = ""
    level: str = ""
    options: str = ""
    rows: int = 0
    """Rows that are indexed."""
    asked: int | None = None
    mean: float | None = None
    """Mean reward of the rows that are scores."""
    half: float | None = None
    """Half of its 95 % normal interval."""
    problem: str = ""
    left: float | None = None
    """Seconds until it is complete at the pace so far."""

    @property
    def found_by(self) -> str:
        """What a search looks through."""
        return f"{self.name} {self.model} {self.level} {self.options} {self.state}".lower()


def find(folder: Path) -> Iterator[Path]:
    """Yield the runs at and below `folder`: what evaluations saved, and folders of episode files."""
    deepest = len(folder.parts) + DEEPEST
    for where, below, _ in os.walk(folder):
        path = Path(where)
        below[:] = sorted(name for name in below if not name.startswith(".")) if len(path.parts) < deepest else []
        if file_of(path) is not None or has_episodes(path):
            yield path


def trainings(runs: Iterable[Listed], folders: Sequence[Path]) -> dict[str, str]:
    """Return the trainers' output folders that `runs` are steps of: what names them in addresses, and their paths for people."""
    found = {}
    looked: set[Path] = set()
    for run in runs:
        number = run.key.partition("/")[0]
        root = folders[int(number)]
        for parent in run.path.parents:
            if parent in looked or (parent != root and root not in parent.parents):
                break
            looked.add(parent)
            if is_training(parent):
                name = str(parent.relative_to(root)) if parent != root else "."
                found[f"{number}/{name}"] = parent.name if parent == root else name
                break
    return found


def listed(path: Path, folder: Path, index: Index, number: int = 0) -> Listed:
    """Return what the list says of the run at `path` below `folder`, the `number`-th, by what is indexed of it."""
    name = str(path.relative_to(folder)) if path != folder else "."
    key = f"{number}/{name}"
    try:
        changed = _changed(path)
        head = open_run(path).head
        numbers = index.numbers(path)
    except (FlappyError, OSError, ValueError) as error:
        return Listed(name, key, path, "broken", 0.0, problem=str(error))
    count, scores = numbers["n"], numbers["scores"]
    mean = numbers["total"] / scores if scores else None
    spread = max(numbers["squares"] / scores - mean * mean, 0.0) if mean is not None else 0.0
    half = 1.96 * sqrt(spread / (scores - 1)) if scores > 1 else None
    if count and not numbers["replayed"] and not numbers["errors"]:
        problem = f"none of {count} rows has an episode: of another environment, or damaged"
        return Listed(name, key, path, "broken", changed, head.model, rows=count, problem=problem)
    state = _state(path, head, count, changed)
    return Listed(
        name,
        key,
        path,
        state,
        changed,
        model=head.model,
        level=numbers["level"] or "",
        options=", ".join(f"{key} = {value}" for key, value in head.env_args.items()),
        rows=count,
        asked=head.asked,
        mean=mean,
        half=half,
        left=_left(path, count, head.asked, changed) if state == "running" else None,
    )


def _changed(path: Path) -> float:
    file = file_of(path)
    times = [file.stat().st_mtime] if file else [one.stat().st_mtime for one in episode_files(path)]
    return max(times, default=0.0)


def _state(path: Path, head: Run, count: int, changed: float) -> State:
    if head.kind == "episodes" or (head.asked is not None and count >= head.asked):
        return "complete"
    if (path / LOCK).exists() or time.time() - changed < LIVELY_SECONDS:
        return "running"
    if head.asked is None:
        return "stopped"
    return "resumable" if head.kind == "classic" else "stopped"


def _left(path: Path, count: int, asked: int | None, changed: float) -> float | None:
    file = file_of(path)
    if file is None or not count or asked is None:
        return None
    begun = min(entry.stat().st_mtime for entry in file.parent.iterdir())
    return max(changed - begun, 0.0) / count * (asked - count) or None


def within(name: str, folder: Path) -> Path:
    """Return the run that an address names. Raises EpisodeError where it is not below `folder`."""
    try:
        path = Path(os.path.realpath(folder / name))
    except ValueError:
        raise EpisodeError(f"{show(name, 200)}: no path") from None
    root = Path(os.path.realpath(folder))
    if path != root and root not in path.parents:
        raise EpisodeError(f"{show(name, 200)}: not below {folder}")
    return path


def progress(run: Listed) -> dict[str, Any]:
    """Return how far a run is, for its page: `state`, `progress` in words, `share` from 0 to 1 or None."""
    said = f"{run.rows:,}" + (f" of {run.asked:,}" if run.asked is not None else "")
    left = "" if run.left is None else f", about {duration(run.left)} left"
    share = run.rows / run.asked if run.asked and run.state != "complete" else None
    return {"state": run.state, "progress": f"{said} rollouts{left}", "share": share}


def duration(seconds: float) -> str:
    """Return a time in words, such as `40 s` or `2.5 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
