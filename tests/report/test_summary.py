"""The numbers of a report."""

from __future__ import annotations

import json
import math

import pytest

from flappybird.report.data import gather
from flappybird.report.summary import Summary, ranking, to_dict
from flappybird.report.terminal import text
from tests.report.cases import changed, heuristics, play, policy, row, run


def test_D07_the_mean_of_clean_rollouts_and_the_mean_with_errored_ones_are_told_apart() -> None:
    rows = [row(seed, play(policy("heuristic", seed), seed)) for seed in range(3)]
    rows.append(row(3, play(policy("planner", 3), 3, turns=1, error="HTTP 500")))
    (records,) = gather([run(rows)])
    summary = Summary(records)
    clean = [one.episode.outcome.reward for one in rows[:3] if one.episode]
    assert summary.metrics["reward"] is not None
    assert summary.metrics["reward"].n == 3
    assert summary.metrics["reward"].mean == pytest.approx(sum(clean) / 3)
    assert summary.with_errored is not None
    assert summary.with_errored.n == 4
    assert summary.with_errored.mean < summary.metrics["reward"].mean
    told = summary.to_dict()
    assert (told["ok"], told["errored"]) == (3, 1)
    assert told["metrics"]["reward"]["mean"] != told["reward_with_errored"]["mean"]


def test_the_interval_holds_the_mean_and_is_the_same_every_time() -> None:
    runs = gather([heuristics(12)])
    one, two = Summary(runs[0]).to_dict(), Summary(runs[0]).to_dict()
    assert one == two
    low, high = one["metrics"]["reward"]["interval"]
    assert low < one["metrics"]["reward"]["mean"] < high


def test_rollouts_of_one_seed_count_as_one_draw() -> None:
    once = [row(seed, play(policy("heuristic", seed), seed)) for seed in range(6)]
    thrice = [changed(one, index=3 * one.index + again, rollout=again) for one in once for again in range(3)]
    (single,), (triple,) = gather([run(once)]), gather([run(thrice)])
    assert Summary(single).metrics["reward"].interval == pytest.approx(Summary(triple).metrics["reward"].interval)


def test_one_seed_gives_no_interval() -> None:
    (records,) = gather([heuristics(1)])
    assert Summary(records).metrics["reward"].interval is None


def test_the_planner_reaches_all_of_the_planners_score() -> None:
    (records,) = gather([heuristics(3, "planner")])
    share = Summary(records).share
    assert share is not None
    assert share[0] == pytest.approx(1.0)


def test_tokens_and_seconds_are_per_turn() -> None:
    (records,) = gather([run([row(0, play(policy("noop", 0), completion_tokens=20, seconds=0.5))])])
    metrics = Summary(records).metrics
    assert metrics["tokens_per_turn"].mean == 20
    assert metrics["seconds_per_turn"].mean == 0.5


def test_tokens_of_the_whole_rollout_are_shared_out_over_its_turns() -> None:
    episode = play(policy("noop", 0))
    (records,) = gather([run([row(0, episode, usage={"completion_tokens": 80.0})])])
    assert Summary(records).metrics["tokens_per_turn"].mean == 80 / len(episode.turns)


def test_claims_that_are_no_numbers_reach_no_mean() -> None:
    rows = [row(0, play(policy("noop", 0))), row(1, None, problem="lost", claims={"reward": math.nan, "pipes_passed": 1.0})]
    (records,) = gather([run(rows)])
    summary = Summary(records).to_dict()
    assert summary["metrics"]["reward"]["n"] == 1
    json.dumps(summary, allow_nan=False)


def test_runs_are_ranked_on_the_seeds_that_all_of_them_played() -> None:
    weak, strong = heuristics(6, "noop", model="weak"), heuristics(4, "planner", model="strong")
    common, ranked = ranking(gather([weak, strong]))
    assert [task.seed for task in common] == [0, 1, 2, 3]
    assert [index for index, _, _ in ranked] == [1, 0]
    pair = ranked[1][2]
    assert pair is not None
    assert (pair.wins, pair.ties, pair.losses) == (4, 0, 0)
    assert pair.difference == pytest.approx(ranked[0][1] - ranked[1][1])


def test_an_errored_rollout_takes_its_seed_out_of_the_ranking() -> None:
    broken = heuristics(3, "noop")
    broken = run([*broken.rows[:2], changed(broken.rows[2], error="HTTP 500")])
    common, _ = ranking(gather([broken, heuristics(3, "planner")]))
    assert [task.seed for task in common] == [0, 1]


def test_runs_without_a_common_seed_are_not_ranked() -> None:
    one, two = heuristics(1), run([row(0, play(policy("noop", 9), 9))])
    assert ranking(gather([one, two])) == ([], [])


def test_an_empty_run_has_a_summary_too() -> None:
    (records,) = gather([run([], asked=5)])
    summary = to_dict([records])["runs"][0]
    assert (summary["rows"], summary["missing"], summary["ok"]) == (0, 5, 0)
    assert "5 missing" in text([records])


def test_the_text_is_what_the_numbers_say_and_obeys_no_terminal_codes() -> None:
    runs = gather([heuristics(2, model="bad\x1b[31m"), heuristics(2, "planner", model="good")])
    shown = text(runs)
    assert "\x1b" not in shown
    assert "ranking on 2 common tasks" in shown
    assert "2 of 2 transcripts verified by replay" in shown
