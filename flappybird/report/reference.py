"""The built-in policies on the courses of a run: what its scores are to be compared with."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from tqdm import tqdm

from flappybird.episodes.episode import Episode
from flappybird.episodes.rewards import scores
from flappybird.episodes.rollout import Rollout
from flappybird.players.games import play
from flappybird.players.policies import POLICIES, make_policy, plan
from flappybird.players.sight import FAR
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Physics
from flappybird.world.game import FlappyGame, Outcome
from flappybird.world.solver import work

MAX_TICKS = 300_000
"""So many ticks each policy plays at the most for a report, about half a minute in all. Tasks beyond it go without.

In worlds so fine that a search is dear, a tick counts for several.
"""

DEAR = 20_000_000
"""So much work of a search (see `solver.work`) counts for one tick; at the card's defaults it is a fortieth of this."""


class Task(NamedTuple):
    """What two rollouts have in common when they can be compared."""

    config: FlappyConfig
    seed: int
    rules: Rules

    @classmethod
    def of(cls, episode: Episode) -> Task:
        """Return the task that `episode` played."""
        return cls(episode.config, episode.seed, episode.rules)


class Played(NamedTuple):
    """How a policy did on one task."""

    outcome: Outcome
    scores: dict[str, float]


def play_all(tasks: Iterable[Task]) -> dict[Task, dict[str, Played]]:
    """Return how every built-in policy does on each of `tasks`, as far as `MAX_TICKS` reaches."""
    distinct, ticks = [], 0
    for task in dict.fromkeys(tasks):
        searched, _ = work(Physics.of(task.config), FAR // 2)
        cost = task.rules.max_turns * max(searched // DEAR, 1)
        if ticks + cost <= MAX_TICKS:
            ticks += cost
            distinct.append(task)
    bar = tqdm(distinct, desc="baselines", unit="seed", leave=False, delay=2, disable=None)
    return {task: {name: _play(name, task) for name in POLICIES} for task in bar}


@lru_cache(maxsize=10_000)
def _play(name: str, task: Task) -> Played:
    config, seed, rules = task
    game = (
        play(name, config, seed, rules.max_turns, seed)
        if (rules.ticks_per_turn, rules.latency_ticks) == (1, 0)
        else _roll_out(name, task)
    )
    assert game.outcome is not None
    # A policy's replies are always in the format, so they need not be written and read to be scored.
    given = scores(game.outcome, game.score, 1.0) | {"ticks": game.outcome.tick, "invalid_actions": 0}
    return Played(game.outcome, {name: float(value) for name, value in given.items()})


def _roll_out(name: str, task: Task) -> FlappyGame:
    """Play under rules by which an action lands late or a turn is several ticks."""
    config, seed, rules = task
    policy, rollout = make_policy(name, config, seed), Rollout(config, seed, rules)
    while rollout.outcome is None:
        taps, _ = plan(policy, rollout.observation(), config, rules.ticks_per_turn)
        rollout.fly(taps)
    return rollout.game
