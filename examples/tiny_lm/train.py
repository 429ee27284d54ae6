"""One training from nothing: SFT with a half-trained checkpoint on its way, then RL from there for as long as SFT went on.

`python -m examples.tiny_lm.train FOLDER SEED MINUTES [--cpu]` takes one core; `__main__` runs one beside the other. Every
validation is a line of `log.jsonl`, and a place from which a training that was interrupted goes on.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import NamedTuple

import jax
from tqdm import tqdm

from . import data, model, play
from .rl import Rl
from .sft import Sft

DIFFICULTY = "easy"
VALIDATION_GAMES = 64


class Times(NamedTuple):
    """How one training spends its seconds."""

    start: float
    """SFT up to the half-trained checkpoint from which RL begins."""
    further: float
    """SFT from there on; RL from there on, for as long."""
    between: float
    """From validation to validation."""

    @classmethod
    def of(cls, minutes: float) -> Times:
        """Return the times of a budget: a bit more than half of it goes into training, the rest into evaluation."""
        return cls(start=60 * minutes * 0.03, further=60 * minutes * 0.25, between=60 * minutes * 0.06)


def run(trainer: Sft | Rl, player: play.Player, folder: Path, stage: str, times: Times, cpu: bool) -> None:
    """Train a stage; keep the checkpoint that flew best in validation as `STAGE.npz`, and the half-trained one as `start.npz`.

    Args:
        cpu: whether seconds are those of the processor, for machines that do other work beside.
    """
    seconds = times.further + (times.start if stage == "sft" else 0)
    clock = time.process_time if cpu else time.monotonic
    saved, log = folder / f"{stage}.state", folder / "log.jsonl"
    spent, best = 0.0, (-1.0, -1.0)
    if saved.is_file():
        (trainer.weights, trainer.state), facts = model.load_tree(saved, (trainer.weights, trainer.state))
        trainer.steps, spent, best = facts["steps"], facts["spent"], tuple(facts["best"])
    trainer.warm_up()  # no clock counts what compiling takes
    shown = tqdm(total=round(seconds), initial=round(spent), desc=f"{folder.name} {stage}", unit="s", disable=None, leave=False)
    due = spent + times.between
    while spent < seconds:
        began = clock()
        known = trainer.step(spent / seconds)
        spent += clock() - began
        shown.update(min(round(spent), shown.total) - shown.n)
        half = stage == "sft" and spent >= times.start and not (folder / "start.npz").is_file()
        if not (half or spent >= min(due, seconds)):
            continue
        player.weights = trainer.weights
        pipes, ticks = play.validate(player, DIFFICULTY, VALIDATION_GAMES)
        shown.set_postfix(pipes=f"{pipes:.2f}", ticks=f"{ticks:.0f}")
        facts = {"steps": trainer.steps, "spent": round(spent, 1), "pipes": pipes, "ticks": ticks}
        with open(log, "a", encoding="utf-8") as file:
            file.write(json.dumps({"stage": stage, **facts, **known}) + "\n")
        if half:
            model.save(folder / "start.npz", player.shape, trainer.weights, **facts)
        else:
            due = spent + times.between
        if (pipes, ticks) >= best:
            best = pipes, ticks
            model.save(folder / f"{stage}.npz", player.shape, trainer.weights, **facts)
        model.save(saved, player.shape, (trainer.weights, trainer.state), steps=trainer.steps, spent=spent, best=best)
    shown.close()


def main(folder: Path, seed: int, minutes: float, cpu: bool) -> None:
    """Train in `folder`/`seed`N with the data of `folder`; what is there already is not done again."""
    jax.config.update("jax_compilation_cache_dir", str(folder.resolve() / "compiled"))
    tokenizer, turns = data.load(folder)
    place, times = folder / f"seed{seed}", Times.of(minutes)
    place.mkdir(exist_ok=True)
    shape = model.Shape(tokenizer.get_vocab_size(), turns.prompts.shape[1], turns.replies.shape[1])
    player = play.Player(tokenizer, shape, model.init(shape, seed), seed)
    if not (place / "untrained.npz").is_file():
        model.save(place / "untrained.npz", shape, player.weights)
    player.warm_up()
    run(Sft(shape, player.weights, turns, seed), player, place, "sft", times, cpu)
    _, weights, _ = model.load(place / "start.npz")
    run(Rl(tokenizer, shape, weights, DIFFICULTY, turns.starts, seed), player, place, "rl", times, cpu)
    (place / "done").touch()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), "--cpu" in sys.argv)
