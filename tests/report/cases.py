"""Runs for the report's tests, made in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from flappybird.episodes.episode import Episode, Player
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.players.policies import make_policy
from flappybird.protocol.rules import Rules
from flappybird.runs import Row, Run
from flappybird.world.config import FlappyConfig

Say = Callable[[Rollout], str]
"""What is said in the next turn of a rollout."""


def policy(name: str, seed: int, config: FlappyConfig | None = None) -> Say:
    """A player that answers as a built-in policy does."""
    decide = make_policy(name, config or FlappyConfig(), seed)
    return lambda rollout: decide(rollout.observation()).reply()


def repeat(*replies: str) -> Say:
    """A player that says `replies` again and again."""
    return lambda rollout: replies[len(rollout.turns) % len(replies)]


def play(
    say: Say,
    seed: int = 0,
    *,
    config: FlappyConfig | None = None,
    rules: Rules | None = None,
    turns: int | None = None,
    name: str = "test-model",
    error: str | None = None,
    **facts: Any,
) -> Episode:
    """Return the episode of one rollout, of its first `turns` turns if given."""
    rollout = Rollout(config or FlappyConfig(), seed, rules or Rules())
    while rollout.outcome is None and (turns is None or len(rollout.turns) < turns):
        rollout.take(say(rollout), **facts)
    return finish(rollout, Player(kind="model", name=name), error=error)


def row(index: int, episode: Episode | None, **fields: Any) -> Row:
    """Return a row that claims what its episode scored."""
    if episode is not None:
        ending = episode.outcome
        claims = {name: float(getattr(ending, name)) for name in ("reward", "pipes_passed", "survival_score", "format")}
        fields = {"claims": claims, "example": episode.seed, "error": ending.error, **fields}
    return Row(index, episode, **fields)


def run(rows: Iterable[Row], model: str = "test-model", **fields: Any) -> Run:
    """Return a run of `rows`."""
    rows = list(rows)
    fields = {"asked": len(rows), "date": datetime(2026, 3, 1, 12, 30, tzinfo=UTC), **fields}
    return Run(Path("outputs/run"), "classic", model, rows, **fields)


def heuristics(count: int, name: str = "heuristic", **fields: Any) -> Run:
    """Return a run of the heuristic on the first seeds."""
    return run([row(seed, play(policy(name, seed), seed)) for seed in range(count)], **fields)


def changed(of: Row, **fields: Any) -> Row:
    """Return `of` with other fields."""
    return replace(of, **fields)
