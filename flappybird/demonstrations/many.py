"""Many games, flown by as many processes as there are, the same however many these are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from flappybird.demonstrations.games import TRIES, Demonstration, demonstrate
from flappybird.demonstrations.lines import lines, preferences
from flappybird.demonstrations.plan import Plan
from flappybird.errors import FlappyError
from flappybird.system.jobs import spread

CHUNK = 8
"""Games that a process flies at a time: enough to be worth the way, few enough for memory and a lively progress bar."""

FEW = 50
"""Up to this many games are flown in this process: starting others would take longer."""


class Flown(NamedTuple):
    """A game as other processes hand it over: its lines already written, its words no longer needed."""

    game: Demonstration
    lines: list[str]
    pairs: list[str]
    turns: int


class _Task(NamedTuple):
    """Seeds to try one after the other, the levels in turn from that of game `made`."""

    plan: Plan
    seeds: range
    made: int
    lined: bool
    paired: bool


def _fly(task: _Task) -> tuple[_Task, list[Flown]]:
    plan, flown = task.plan, list[Flown]()
    for seed in task.seeds:
        # The level goes by the games made, so that the levels are mixed evenly however often each is crashed on.
        name = plan.levels[(task.made + len(flown)) % len(plan.levels)]
        game = demonstrate(plan, name, seed, weighing=plan.marks or task.paired)
        if game is not None:
            written = [json.dumps(line) for line in lines(plan, game)] if task.lined else []
            pairs = [json.dumps(pair) for pair in preferences(plan, game)] if task.paired else []
            turns = len(game.replies)
            if task.lined:
                game = game._replace(seen=[], replies=[], moments=[], marks=[], rejected=[])
            flown.append(Flown(game, written, pairs, turns))
    return task, flown


def games(
    plan: Plan,
    first: int,
    count: int,
    lined: bool = False,
    paired: bool = False,
    jobs: int | None = 1,
    backend: str | None = None,
) -> Iterator[Flown]:
    """Yield `count` games from seed `first` on, the same ones however many processes fly them.

    Raises:
        ConfigError: a line exceeds the token cap.
        FlappyError: the policy crashes too often to demonstrate anything.
    """
    tried = crashed = 0

    def tasks(seeds: range) -> Iterator[_Task]:
        for at in range(0, len(seeds), CHUNK):
            some = seeds[at : at + CHUNK]
            # As if what is still in the air lands: so it does with a policy that is worth demonstrating, and else is flown again.
            yield _Task(plan, some, some.start - first - crashed, lined, paired)

    while tried - crashed < count and tried < count * TRIES:
        seeds = range(first + tried, first + min(count + crashed, count * TRIES))
        tried += len(seeds)
        for task, flown in spread(_fly, tasks(seeds), *((1, None) if len(seeds) <= FEW else (jobs, backend))):
            made = task.seeds.start - first - crashed
            if (task.made - made) % len(plan.levels):
                _, flown = _fly(task._replace(made=made))
            crashed += len(task.seeds) - len(flown)
            yield from flown
    if tried - crashed < count:
        where, made = ", ".join(plan.levels), tried - crashed
        raise FlappyError(f"{plan.policy} got through only {made} of {count * TRIES} games on {where}: choose a better one")
