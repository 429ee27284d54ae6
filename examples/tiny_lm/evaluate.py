"""Checkpoints under test: the real `vf-eval` asks the endpoint, the package verifies and scores what it saved."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from flappybird.errors import FlappyError
from flappybird.protocol.window import NO_HISTORY
from flappybird.runs import Run, check, load_run

TICKS = 300
RESAMPLES = 10_000


class Mean(NamedTuple):
    """A mean with its 95 % interval, by drawing seeds again and again."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def mean(values: list[float]) -> Mean:
    """Return the mean of one value per seed; of differences, too."""
    numbers = np.array(values)
    drawn = np.random.default_rng(0).choice(numbers, (RESAMPLES, len(numbers))).mean(axis=1)
    return Mean(float(numbers.mean()), *map(float, np.quantile(drawn, (0.025, 0.975))))


@contextlib.contextmanager
def endpoint(folder: Path) -> Iterator[str]:
    """Serve the checkpoints in `folder` as a process of its own; give its URL, and end it afterwards."""
    command = [sys.executable, "-m", "examples.tiny_lm.serve", str(folder), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            if not port.isdigit():
                raise FlappyError(f"the endpoint did not start: {' '.join(command)}")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def fly(url: str, folder: Path, name: str, difficulty: str, games: int) -> Run:
    """Return the run of the checkpoint `name` on the evaluation seeds from 0 on; one that was saved before is not repeated.

    Raises:
        FlappyError: `vf-eval` failed, or its run cannot be verified.
    """
    place = folder / "evaluation" / difficulty / name
    if (place / "verified").is_file():
        return load_run(place / (place / "verified").read_text(encoding="utf-8"))
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    world = {"difficulty": difficulty, "max_turns": TICKS, "history_turns": NO_HISTORY, "report": False}
    command = [str(Path(sysconfig.get_path("scripts")) / "vf-eval"), "flappybird", "-m", name, "-b", url]
    command += ["-k", "FLAPPYBIRD_API_KEY", "-n", str(games), "-r", "1", "-c", "64", "-T", "0", "-s", "-o", str(place)]
    command += ["--disable-tui", "--disable-env-server", "-a", json.dumps(world)]
    with (
        open(place / "vf-eval.log", "w", encoding="utf-8") as log,
        subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL) as process,
    ):
        try:
            code = _watched(process, place, games, f"vf-eval {name} {difficulty}")
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.wait(20)
            raise
    found = sorted(path.parent for path in place.rglob("results.jsonl"))
    if code != 0 or len(found) != 1:
        raise FlappyError(f"vf-eval ended with exit code {code}; its output is in {place / 'vf-eval.log'}")
    run = load_run(found[0])
    faults = [row for row in run.rows if row.episode is None or row.error or check(row)]  # what `flappybird verify` does
    if faults or len(run.rows) != games:
        raise FlappyError(f"{found[0]}: {len(run.rows) - len(faults)} of {games} games verified; see flappybird verify")
    (place / "verified").write_text(str(found[0].relative_to(place)), encoding="utf-8")
    return run


def _watched(process: subprocess.Popen[bytes], place: Path, games: int, title: str) -> int:
    with tqdm(total=games, desc=title, unit="game", disable=None, leave=False) as progress:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(0.5)
            progress.update(sum(file.read_bytes().count(b"\n") for file in place.rglob("results.jsonl")) - progress.n)


def pipes(run: Run) -> list[float]:
    """Return the pipes passed on each seed, in the order of the seeds."""
    episodes = sorted((row.episode for row in run.rows if row.episode), key=lambda episode: episode.seed)
    return [float(episode.outcome.pipes_passed) for episode in episodes]


def line(run: Run) -> dict[str, Mean]:
    """Return the figures of a run: pipes, ticks, format."""
    endings = [row.episode.outcome for row in run.rows if row.episode]
    return {
        "pipes": mean(pipes(run)),
        "ticks": mean([float(ending.ticks) for ending in endings]),
        "format": mean([row.claims["format_reward_func"] for row in run.rows]),
    }
