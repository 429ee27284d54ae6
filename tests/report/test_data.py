"""Records: nothing lost, nothing mixed, nothing scored that broke."""

from __future__ import annotations

from pathlib import Path

import pytest

from flappybird.protocol.rules import Rules
from flappybird.report import reference
from flappybird.report.data import NO_TRANSCRIPT, gather, split
from flappybird.report.reference import Task, play_all
from flappybird.runs import Run
from flappybird.world.config import FlappyConfig
from tests.report.cases import changed, heuristics, play, policy, repeat, row, run


def seven() -> Run:
    """Three finished, one errored, one cut short, one without turns, one without a transcript."""
    return run(
        [
            row(0, play(policy("heuristic", 0), 0)),
            row(1, play(policy("noop", 1), 1)),
            row(2, play(policy("planner", 2), 2, rules=Rules(max_turns=300))),
            row(3, play(policy("planner", 3), 3, turns=5, error="the server answered 500")),
            row(4, play(policy("planner", 4), 4, turns=9)),
            row(5, play(policy("planner", 5), 5, turns=0, error="no reply ever came")),
            row(6, None, problem="the row has no info", claims={}),
        ]
    )


def test_E05_every_row_is_counted_once_by_how_it_ended() -> None:
    (records,) = gather([seven()])
    assert records.ends == {"tick_limit": 1, "pipe": 1, "floor": 1, "aborted": 1, "error": 2, NO_TRANSCRIPT: 1}
    assert sum(records.ends.values()) == len(records.records) == 7


def test_D07_an_errored_rollout_is_no_score() -> None:
    (records,) = gather([seven()])
    assert [record.row.index for record in records.clean] == [0, 1, 2, 4]
    assert [record.row.index for record in records.errored] == [3, 5]


def test_a_run_that_says_error_wins_over_an_episode_that_ended_well() -> None:
    (records,) = gather([run([row(0, play(policy("noop", 0)), error="HTTP 500")])])
    assert records.ends == {"error": 1}
    assert records.clean == []


def test_rollouts_that_were_asked_for_and_never_saved_are_missing() -> None:
    (records,) = gather([run([row(0, play(policy("noop", 0)))], asked=4)])
    assert records.missing == 3


def test_a_claim_that_the_replay_denies_is_a_difference() -> None:
    honest = row(0, play(policy("noop", 0)))
    boasting = changed(honest, claims={**honest.claims, "reward": 99.0})
    (records,) = gather([run([honest, boasting])])
    assert records.verified == 1
    assert "reward" in str(records.records[1].differences[0])


def test_an_observation_that_was_not_what_the_game_showed_is_a_difference() -> None:
    episode = play(repeat("<ACTIONS>[]</ACTIONS>"))
    lying = row(0, episode, observations=["<FLAPPY id=0>\nbirdY:9.00\n</FLAPPY>"] * len(episode.turns))
    (records,) = gather([run([lying])])
    assert records.records[0].differences[0].tick == 0


def test_D10_rows_of_two_models_or_settings_are_never_averaged_together() -> None:
    rows = [row(index, play(policy("noop", index), index, name="model-a")) for index in range(3)]
    rows += [row(3, play(policy("noop", 3), 3, name="model-b"))]
    rows += [row(4, play(policy("noop", 4), 4, name="model-a", config=FlappyConfig(gravity=-0.25)))]
    rows += [row(5, None, problem="damaged")]
    parts = split(run(rows, asked=8))
    assert [(part.model, [one.index for one in part.rows]) for part in parts] == [
        ("model-a", [0, 1, 2, 5]),
        ("model-b", [3]),
        ("model-a", [4]),
    ]
    assert [part.asked for part in parts] == [6, 1, 1], "the two that are missing stay with the largest part"
    assert "gravity = -0.25" in parts[2].notes[0]
    assert len({records.label for records in gather([run(rows)])}) == 3


def test_a_run_of_one_kind_stays_whole() -> None:
    whole = heuristics(2)
    assert split(whole) == [whole]


def test_baselines_play_by_the_rules_of_the_run() -> None:
    task = Task(FlappyConfig(), 0, Rules(max_turns=50, ticks_per_turn=2))
    played = play_all([task])[task]
    assert list(played) == ["noop", "random", "heuristic", "planner"]
    assert played["planner"].outcome.tick == 50
    assert played["noop"].scores["pipes_passed"] == 0


def test_a_baseline_scores_what_the_same_policy_scores_as_a_model() -> None:
    for name in ("noop", "random", "heuristic", "planner"):
        episode = play(policy(name, 5), 5)
        task = Task.of(episode)
        scores = play_all([task])[task][name].scores
        for score in ("reward", "pipes_passed", "survival_score", "format"):
            assert scores[score] == pytest.approx(getattr(episode.outcome, score))


def test_baselines_that_would_take_too_long_are_left_out_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "MAX_TICKS", 500)
    (records,) = gather([heuristics(2)])
    assert [record.baselines is None for record in records.records] == [False, True]
    assert records.without_baselines == 1


def test_videos_are_found_by_the_row_in_their_name(tmp_path: Path) -> None:
    for name in ("episode-0001.mp4", "episode-0000.txt", "2.gif"):
        (tmp_path / name).write_bytes(b"")
    (records,) = gather([heuristics(3)], tmp_path)
    assert [record.video and record.video.name for record in records.records] == [None, "episode-0001.mp4", "2.gif"]
