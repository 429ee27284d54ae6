"""From nothing to a curve: `python -m examples.tiny_lm`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tqdm import tqdm

from flappybird.errors import FlappyError

from . import data, evaluate, model, show
from .train import DIFFICULTY, Times

STAGES = ("untrained", "start", "sft", "rl")
ONE_CORE = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
GAMES_A_MINUTE = 30
"""Demonstrated games for each minute of the budget: each turn is then seen once or twice."""


def main() -> int:
    """Do everything that is not done yet; return the exit code."""
    asked = _arguments()
    folder, began = asked.output, time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    _same_recipe(folder, {"minutes": asked.minutes, "seeds": asked.seeds, "games": asked.games, "cpu": asked.cpu_minutes})
    os.environ.setdefault("XLA_FLAGS", ONE_CORE)  # of the processes below; this one computes nothing
    if not (folder / "turns.npz").is_file():
        data.make(max(round(GAMES_A_MINUTE * asked.minutes), 20), DIFFICULTY, folder)
        _tell(began, "demonstrations and tokenizer")
    _train(folder, asked.seeds, asked.minutes, asked.cpu_minutes)
    _tell(began, f"{asked.seeds} trainings")

    flights = []
    with evaluate.endpoint(folder) as url:
        for seed in range(asked.seeds):
            for stage in STAGES:
                run = evaluate.fly(url, folder, f"seed{seed}-{stage}", DIFFICULTY, asked.games)
                flights.append(show.Flight(seed, stage, DIFFICULTY, run))
                _tell(began, f"vf-eval seed{seed}-{stage}: {evaluate.line(run)['pipes']} pipes")
        _, seed, stage = max(_validated(folder, seed, stage) for seed in range(asked.seeds) for stage in ("sft", "rl"))
        for level in asked.carry_over:
            run = evaluate.fly(url, folder, f"seed{seed}-{stage}", level, asked.games)
            flights.append(show.Flight(seed, stage, level, run))
            _tell(began, f"vf-eval seed{seed}-{stage} on {level}: {evaluate.line(run)['pipes']} pipes")
    for what, where in show.everything(folder, flights, DIFFICULTY).items():
        print(f"{what:<8}{where}")
    print(f"best    {folder / f'seed{seed}' / stage}.npz, chosen in validation")
    _tell(began, "done")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.tiny_lm", description="A tiny language model learns to fly.")
    parser.add_argument("--minutes", type=_positive, default=20.0, help="budget on two idle cores (default: 20)")
    parser.add_argument(
        "--cpu-minutes", action="store_true", help="count processor time, on a machine that does other work beside"
    )
    parser.add_argument("--seeds", type=int, choices=(1, 2), default=2, help="trainings side by side (default: 2)")
    parser.add_argument("--games", type=_count, default=50, help="evaluation games per checkpoint (default: 50)")
    parser.add_argument("--carry-over", nargs="*", default=["medium"], help="harder levels to fly too (default: medium)")
    parser.add_argument("-o", "--output", type=Path, default=Path("outputs/tiny_lm"), help="default: outputs/tiny_lm")
    return parser.parse_args()


def _positive(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0.5 <= minutes <= 10_000:
        raise argparse.ArgumentTypeError(f"{text}: must be from 0.5 to 10000 minutes")
    return minutes


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text}: must be from 1 to 10000")
    return int(text)


def _same_recipe(folder: Path, recipe: dict[str, object]) -> None:
    """Go on with a folder only by the recipe it was begun with."""
    path = folder / "recipe.json"
    if not path.is_file():
        path.write_text(json.dumps(recipe), encoding="utf-8")
    elif (begun := json.loads(path.read_text(encoding="utf-8"))) != recipe:
        raise FlappyError(f"{folder}: was begun with {begun}, not {recipe}; name another folder with -o")


def _train(folder: Path, seeds: int, minutes: float, cpu: bool) -> None:
    """Run the trainings side by side, one on a core; raises FlappyError where one fails."""
    times = Times.of(minutes)
    running: list[subprocess.Popen[bytes]] = []
    try:
        for seed in range(seeds):
            if (folder / f"seed{seed}" / "done").is_file():
                continue
            command = [sys.executable, "-m", "examples.tiny_lm.train", str(folder), str(seed), str(minutes), *["--cpu"] * cpu]
            with open(folder / f"train-seed{seed}.log", "ab") as log:
                running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        total = seeds * (times.start + 2 * times.further)
        with tqdm(total=round(total), desc="training", unit="s", disable=None, leave=False) as progress:
            while any(process.poll() is None for process in running):
                time.sleep(0.5)
                spent, words = _spent(folder)
                progress.update(min(round(spent), progress.total) - progress.n)
                progress.set_postfix_str(words)
    except BaseException:
        for process in running:
            process.send_signal(signal.SIGTERM)
        raise
    for process in running:
        if process.wait():
            raise FlappyError(f"a training ended with exit code {process.returncode}; see {folder}/train-seed*.log")


def _spent(folder: Path) -> tuple[float, str]:
    """Return the seconds of all trainings together, and how each flew last."""
    seconds, words = 0.0, []
    for log in sorted(folder.glob("seed*/log.jsonl")):
        lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]
        last = {line["stage"]: line for line in lines}
        seconds += sum(line["spent"] for line in last.values())
        words.append(f"{log.parent.name} {lines[-1]['stage']} {lines[-1]['pipes']:.2f} pipes" if lines else "")
    return seconds, ", ".join(words)


def _validated(folder: Path, seed: int, stage: str) -> tuple[tuple[float, float], int, str]:
    facts = model.load(folder / f"seed{seed}" / f"{stage}.npz")[2]
    return (facts["pipes"], facts["ticks"]), seed, stage


def _tell(began: float, what: str) -> None:
    print(f"{time.monotonic() - began:6.0f} s  {what}", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FlappyError as error:
        print(f"tiny_lm: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("tiny_lm: stopped; the same command goes on from here", file=sys.stderr)
        sys.exit(130)
