"""A training run → its steps in order: a trainer's output folder, or a list of evaluated checkpoints.

prime-rl's file monitor writes `rollouts/step_N/{train,eval}/{all,effective}/traces.jsonl`, and its later releases
`traces/step_N/{train,eval}/traces.jsonl`, both while the training runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from flappybird.errors import EpisodeError
from flappybird.runs.traces import FILE

PLACES = ("rollouts", "traces")
"""Folders of a trainer's output in which its steps lie."""


class Step(NamedTuple):
    """One step of a training run, or one checkpoint."""

    number: int
    """What the trainer counts; of checkpoints without numbers their place, from 0."""
    name: str
    train: Path | None
    """What was played to train on, all of it; a path for `open_run`."""
    eval: Path | None
    """What was played to evaluate."""

    @property
    def fit(self) -> Path:
        """The run that shows best what the model could do at this step."""
        found = self.eval or self.train
        assert found is not None
        return found


def is_training(path: str | Path) -> bool:
    """Whether `path` is a trainer's output folder."""
    return bool(_step_folders(Path(path)))


def training_steps(paths: Sequence[str | Path]) -> list[Step]:
    """Return the steps of a trainer's output folder, or of checkpoints' runs, in order.

    Checkpoints are ordered by the last number in their names where each has one of its own, else as they are given.

    Raises:
        EpisodeError: a trainer's folder stands among checkpoints, or has nothing in it that was played.
    """
    listed = [Path(path) for path in paths]
    trained = [path for path in listed if is_training(path)]
    if trained and len(listed) > 1:
        raise EpisodeError(f"{trained[0]}: a trainer's output folder stands alone, it was given with {len(listed) - 1} more")
    if trained:
        return _of_trainer(trained[0])
    for path in listed:
        if not os.path.lexists(path):
            raise EpisodeError(f"{path}: no such file or folder")
        if path.is_dir() and not any(path.iterdir()):
            raise EpisodeError(f"{path}: an empty folder")
    names = [path.resolve().name if path.name != FILE else path.resolve().parent.name for path in listed]
    numbers = [int(found[-1]) if (found := re.findall(r"\d{1,12}", name)) else None for name in names]
    steps = [Step(place, name, None, path) for place, (name, path) in enumerate(zip(names, listed, strict=True))]
    if None in numbers or len(set(numbers)) < len(numbers):
        return steps
    return sorted(step._replace(number=number) for step, number in zip(steps, numbers, strict=True) if number is not None)


def _of_trainer(folder: Path) -> list[Step]:
    steps = [
        Step(number, f"step {number}", _played(where / "train"), _played(where / "eval"))
        for number, where in sorted(_step_folders(folder).items())
    ]
    found = [step for step in steps if step.train or step.eval]
    if not found:
        raise EpisodeError(f"{folder}: none of its {len(steps)} steps has a {FILE} yet")
    return found


def _step_folders(folder: Path) -> dict[int, Path]:
    found: dict[int, Path] = {}
    for place in PLACES:
        try:
            entries = [Path(entry) for entry in os.scandir(folder / place) if entry.is_dir()]
        except OSError:
            continue
        for entry in entries:
            if number := re.fullmatch(r"step_(\d{1,12})", entry.name):
                found.setdefault(int(number[1]), entry)
    return found


def _played(folder: Path) -> Path | None:
    """Return the file of all that was played, else of what was trained on."""
    files = (folder / subset / FILE for subset in ("all", ".", "effective"))
    return next((file for file in files if file.is_file()), None)
