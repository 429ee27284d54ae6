"""Many rollouts at once in one process. The full sizes and their figures: `python -m tests.benchmarks trust`."""

import pytest

from flappybird.runs import check
from tests.trust import load


def test_many_rollouts_at_once_are_all_verified_and_stay_apart(policy_server):
    pytest.importorskip("verifiers.envs.environment", reason="the classic API of verifiers is not installed")
    done = load.evaluate(policy_server, "heuristic", 64, 8, seed=1000)
    assert [row.episode.seed for row in done.run.rows] == [1000 + n for n in range(64)]
    assert all(row.error is None and check(row) == [] for row in done.run.rows)
    assert done.turns == sum(row.episode.outcome.ticks for row in done.run.rows)


def test_flying_on_and_on_keeps_nothing():
    load.fly(5_000)  # what is loaded and remembered once
    before = load.resident()
    load.fly(20_000)
    assert load.resident() - before < 8_000_000
