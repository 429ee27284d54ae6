"""Demonstrations: what a policy does, as chat transcripts in exactly the prompt format of the environment.

A line of the file is what one request and its replies are, or a window of them, cut as the environment cuts what a model sees:
`messages` (or `prompt` and `completion`) as trainers and `datasets.load_dataset("json")` read them, and beside them what it
takes to play it again: seed, config, rules, and where it begins. `problems` checks every word of a line by replay. Seeds come
from the training range.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from tqdm import tqdm

from flappybird.demonstrations.arrays import save_numbers
from flappybird.demonstrations.check import problems
from flappybird.demonstrations.games import Demonstration
from flappybird.demonstrations.many import games
from flappybird.demonstrations.plan import Plan, rules_of
from flappybird.demonstrations.tokens import counter
from flappybird.errors import ConfigError
from flappybird.system.files import replacing
from flappybird.system.jobs import check_jobs
from flappybird.world.seeds import TRAINING_SEEDS, VALIDATION_SEEDS

__all__ = ["Demonstration", "Plan", "demonstrations", "problems", "rules_of", "save_numbers", "write"]


def write(
    plan: Plan,
    output: Path,
    numbers: Path | None = None,
    jobs: int | None = 1,
    backend: str | None = None,
    preferences: Path | None = None,
) -> str:
    """Write the demonstrations of `plan` to `output` (and `…validation.jsonl` beside it) and return what was written, in words.

    Args:
        plan: what to demonstrate.
        output: the file of the training part.
        numbers: where to write the same games as arrays, see `save_numbers`.
        jobs: processes; None for one per processor. They change nothing in the files.
        backend: the cluster that they run on, see `system.jobs.spread`; None for this machine.
        preferences: where to write, for each decisive turn of the training part, a reply to choose and one to reject.

    Raises:
        ConfigError: the plan cannot be carried out, or a line exceeds its token cap.
        FlappyError: the policy crashes too often to demonstrate anything.
        MissingPart: what counts tokens, or what `numbers` needs, is not installed.
    """
    plan.check()
    check_jobs(jobs, backend)
    if plan.max_tokens is not None:
        counter(plan.tokenizer)
    held_out = round(plan.games * plan.validation)
    beside = output.with_name(f"{output.stem}.validation{output.suffix}")
    files = {"-o": output, "--numbers": numbers, "--preferences": preferences}
    files |= {"the validation part": beside} if held_out else {}
    _check_apart({option: path for option, path in files.items() if path is not None})
    parts = [(output, TRAINING_SEEDS[plan.seed], plan.games - held_out, preferences)]
    if held_out:
        parts.append((beside, VALIDATION_SEEDS[plan.seed], held_out, None))
    told, flown = [], []
    with ExitStack() as written, tqdm(total=plan.games, unit="game", disable=None, leave=False) as progress:
        for path, first, count, pairs_path in parts:
            lines = turns = pairs = 0
            with ExitStack() as open_files:
                file = open_files.enter_context(_open(written.enter_context(replacing(path))))
                pairs_file = open_files.enter_context(_open(written.enter_context(replacing(pairs_path)))) if pairs_path else None
                for one in games(plan, first, count, True, pairs_file is not None, jobs, backend):
                    file.writelines(f"{line}\n" for line in one.lines)
                    if pairs_file is not None:
                        pairs_file.writelines(f"{pair}\n" for pair in one.pairs)
                    lines, turns, pairs = lines + len(one.lines), turns + one.turns, pairs + len(one.pairs)
                    if numbers is not None:
                        flown.append(one.game)
                    progress.update()
            told.append(f"{path}: {count} games, {turns} turns in {lines} lines")
            if pairs_path is not None:
                told.append(f"{pairs_path}: {pairs} pairs, one for each decisive turn")
        if numbers is not None:
            with replacing(numbers) as temporary:
                save_numbers(flown, temporary)
            told.append(f"{numbers}: the same as arrays")
    return "\n".join(told)


def _open(path: Path) -> IO[str]:
    return open(path, "w", encoding="utf-8", newline="\n")


def _check_apart(files: dict[str, Path]) -> None:
    """Raise ConfigError where two of the files to be written are one."""
    for option, path in files.items():
        for other, taken in files.items():
            if option != other and os.path.realpath(path) == os.path.realpath(taken):
                raise ConfigError(f"{other} {taken}: is the file of {option} too; name another")


def demonstrations(plan: Plan, validation: bool = False) -> Iterator[Demonstration]:
    """Yield the games of a plan: the training part, or the one kept apart. Raises as `write` does."""
    plan.check()
    held_out = round(plan.games * plan.validation)
    first = (VALIDATION_SEEDS if validation else TRAINING_SEEDS)[plan.seed]
    for flown in games(plan, first, held_out if validation else plan.games - held_out):
        yield flown.game
