from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flappybird.episodes import rewards
from flappybird.episodes.episode import Player
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.protocol.reply import Status
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig
from flappybird.world.game import Outcome, Reason
from tests.conftest import play

MODEL = Player(kind="model", name="m")
FULL, PART, BAD = "<THINK>a</THINK><ACTIONS>[]</ACTIONS>", "<ACTIONS>[TAP]</ACTIONS>", "tap!"


def test_the_weights_are_the_cards():
    assert rewards.WEIGHTS == {"pipes_passed": 2.0, "survival_score": 0.2, "format": 0.2}


def test_three_hundred_ticks_survived_are_404_2_exactly():
    assert rewards.survival(300) == 404.2
    assert rewards.survival(0) == 0.0
    assert rewards.survival(1) == 1.005


@given(st.integers(0, 2_000))
def test_survival_is_the_sum_that_the_card_states(ticks):
    total = sum(1 * (1 + Fraction(5, 1000) * min(tick, 80)) for tick in range(1, ticks + 1))
    assert rewards.survival(ticks) == float(total)


def test_the_tick_of_a_crash_adds_nothing():
    crashed = play("noop")
    assert (crashed.outcome.reason, crashed.outcome.ticks) == (Reason.FLOOR, 8)
    assert rewards.survival_score(crashed) == rewards.survival(7)


def test_the_reward_is_the_cards_formula():
    for policy in ("noop", "random", "heuristic", "planner"):
        episode = play(policy, 1)
        assert rewards.reward(episode) == pytest.approx(
            2.0 * rewards.pipes_passed(episode) + 0.2 * rewards.survival_score(episode) + 0.2 * rewards.format_score(episode)
        )
        assert episode.outcome.reward == rewards.reward(episode)
    perfect = play("planner", 1)
    assert rewards.reward(perfect) == pytest.approx(2.0 * 8 + 0.2 * 404.2 + 0.2)


def test_the_format_score_is_the_mean_over_the_turns():
    rollout = Rollout(FlappyConfig(), 1, Rules())
    for text in (FULL, PART, BAD, ""):
        rollout.take(text)
    assert rewards.format_score(finish(rollout, MODEL)) == (1.0 + 0.5 + 0 + 0) / 4
    assert rewards.format_score(finish(Rollout(FlappyConfig(), 1, Rules()), MODEL)) == 0.0


def test_metrics_tell_how_it_ended():
    floor, limit = play("noop"), play("planner")
    pipe = play("heuristic", 5)
    assert pipe.outcome.reason is Reason.PIPE
    shares = ("done", "death_floor", "death_ceiling", "death_pipe")
    assert [getattr(rewards, name)(floor) for name in shares] == [1, 1, 0, 0]
    assert [getattr(rewards, name)(pipe) for name in shares] == [1, 0, 0, 1]
    assert [getattr(rewards, name)(limit) for name in shares] == [0, 0, 0, 0]
    rollout = Rollout(FlappyConfig(), 1, Rules())
    while rollout.outcome is None:
        rollout.take("<ACTIONS>[TAP]</ACTIONS>")
    ceiling = finish(rollout, MODEL)
    assert [getattr(rewards, name)(ceiling) for name in shares] == [1, 0, 1, 0]


@given(st.lists(st.sampled_from([FULL, PART, BAD, ""]), max_size=80), st.integers(0, 1000))
def test_surviving_longer_never_scores_less_than_crashing(said, seed):
    """Whatever was said before and is said next, one more tick survived is worth more than its worst format."""
    rollout = Rollout(FlappyConfig(), seed, Rules())
    last = float("-inf")
    for text in said:
        if rollout.outcome is not None:
            return
        now = finish(Rollout(FlappyConfig(), seed, Rules(), _copy(rollout.record)), MODEL).outcome.reward
        assert now > last
        last = now
        rollout.take(text)
        if rollout.outcome is None:
            # The same turns, had this tick been the crash.
            crash = finish(Rollout(FlappyConfig(), seed, Rules(), _copy(rollout.record)), MODEL)
            claimed = crash.outcome
            score, alive = (
                rewards.ending(crash.turns, Outcome(reason, claimed.ticks), claimed.pipes_passed)
                for reason in (Reason.FLOOR, Reason.ABORTED)
            )
            assert alive.reward > score.reward


def _copy(record):
    import json

    return json.loads(json.dumps(record))


@given(st.lists(st.sampled_from([FULL, PART, BAD, ""]), max_size=60))
def test_invalid_actions_count_every_turn_that_is_not_ok(said):
    rollout = Rollout(FlappyConfig(), 3, Rules())
    for text in said:
        if rollout.outcome is None:
            rollout.take(text)
    episode = finish(rollout, MODEL)
    assert rewards.invalid_actions(episode) == sum(turn.status is not Status.OK for turn in episode.turns)
