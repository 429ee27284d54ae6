"""The analysis against brute force on short courses, and its promises on long ones."""

from __future__ import annotations

import random
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flappybird.analysis import DOOMED, Analysis, analyse
from flappybird.episodes.episode import Episode, Player, replay
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.players.policies import make_policy
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig
from flappybird.world.game import FlappyGame, Reason, State

NARROW = FlappyConfig(
    world_w=8.0,
    bird_x=2.0,
    pipe_speed=1.0,
    pipe_width=1.5,
    first_spawn_interval=1,
    pipe_spawn_interval=6,
    easy_gap_height=4.0,
    base_gap_height=3.0,
    easy_mode_pipes=1,
    ramp_pipes=2,
    gap_center_offset=3.0,
    gravity=-0.6,
)
"""Pipes every few ticks, so that a dozen ticks hold several decisions."""


def play(config: FlappyConfig, seed: int, taps: list[bool], rules: Rules) -> Episode:
    """Return the episode of a bird that flies `taps`, as far as it lives."""
    rollout = Rollout(config, seed, rules)
    for tap in taps:
        if rollout.outcome is not None:
            break
        rollout.fly([tap])
    return finish(rollout, Player(kind="policy", name="test"))


def by_policy(name: str, seed: int, config: FlappyConfig | None = None) -> Episode:
    config = config or FlappyConfig()
    policy, rollout = make_policy(name, config, seed), Rollout(config, seed, Rules())
    while rollout.outcome is None:
        rollout.fly([policy(rollout.observation()).tap])
    return finish(rollout, Player(kind="policy", name=name))


def brute_force(config: FlappyConfig, seed: int, limit: int):
    """Return functions that say by trying everything: whether a state survives to `limit`, and what follows it."""

    def after(state: State, tap: bool) -> State | None:
        game = FlappyGame(config, seed, max_ticks=limit, state=state)
        game.step(tap)
        return None if game.terminated else game.state

    @cache
    def survives(state: State | None) -> bool:
        return state is not None and (state.tick >= limit or survives(after(state, False)) or survives(after(state, True)))

    return survives, after


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**53 - 1), dice=st.randoms(use_true_random=False), limit=st.integers(1, 14))
def test_the_analysis_agrees_with_trying_everything(seed: int, dice: random.Random, limit: int) -> None:
    episode = play(NARROW, seed, [dice.random() < 0.3 for _ in range(limit)], Rules(max_turns=limit))
    analysis = analyse(episode)
    survives, after = brute_force(NARROW, seed, analysis.horizon)
    alive = [state for state in replay(episode).states[: len(analysis.margins)] if state.tick <= analysis.horizon]

    assert survives(State()), "the horizon is one that some bird reaches"
    assert analysis.passable is (analysis.horizon == limit)
    if not analysis.passable:
        assert not brute_force(NARROW, seed, analysis.horizon + 1)[0](State()), "and no bird gets further"
    for state, margin, forced in zip(alive, analysis.margins, analysis.forced, strict=False):
        assert (margin != DOOMED) is survives(state)
        if survives(state):
            assert margin == slack(state, survives, after, analysis.horizon)
        if state.tick < analysis.horizon:
            hold, tap = survives(after(state, False)), survives(after(state, True))
            assert forced is (tap if hold is not tap else None)
    survivable = [state.tick for state in alive if survives(state)]
    if analysis.blunder:
        tick = analysis.blunder.tick
        assert tick == survivable[-1]
        assert not survives(after(alive[tick], analysis.blunder.tap))
        assert survives(after(alive[tick], not analysis.blunder.tap))
    else:
        assert survivable[-1] in (analysis.horizon, episode.outcome.ticks)


def slack(state: State, survives, after, horizon: int) -> int:
    """Ticks without a TAP after which the bird can still be saved."""
    found = waited = 0
    then: State | None = state
    while then is not None and then.tick < horizon:
        then, waited = after(then, False), waited + 1
        if survives(then):
            found = waited
    return found


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**53 - 1), dice=st.randoms(use_true_random=False), chance=st.sampled_from([0.0, 0.1, 0.15, 0.5]))
def test_the_rescue_lives_to_the_tick_limit_from_the_point_of_no_return_on(seed: int, dice: random.Random, chance: float) -> None:
    episode = play(FlappyConfig(), seed, [dice.random() < chance for _ in range(300)], Rules())
    analysis = analyse(episode)
    if analysis.blunder is None:
        return
    tick, tap, _, doomed, rescue = analysis.blunder
    assert tick + len(rescue) == 300
    assert rescue[0] is not tap
    game = FlappyGame(episode.config, seed, max_ticks=300, state=replay(episode).states[tick])
    for action in rescue:
        game.step(action)
    assert game.outcome is not None
    assert game.outcome.reason is Reason.TICK_LIMIT
    assert doomed == episode.outcome.ticks - tick - 1


@pytest.mark.parametrize("seed", range(6))
def test_a_margin_never_shrinks_by_more_than_the_ticks_that_pass(seed: int) -> None:
    margins = analyse(by_policy("heuristic", seed)).margins
    assert all(after >= before - 1 for before, after in pairwise(margins))


@pytest.mark.parametrize("seed", range(6))
def test_the_planner_is_never_past_the_point_of_no_return(seed: int) -> None:
    analysis = analyse(by_policy("planner", seed))
    assert analysis.blunder is None
    assert analysis.death is None
    met, taken = analysis.choices
    assert met == taken > 0
    assert DOOMED not in analysis.margins


def test_a_bird_that_does_nothing_could_be_saved_in_its_last_tick() -> None:
    analysis = analyse(by_policy("noop", 0))
    assert analysis.blunder is not None
    assert analysis.blunder[:4] == (7, False, 7, 0)
    assert analysis.margins == [7, 6, 5, 4, 3, 2, 1, 0]
    assert analysis.death is not None
    assert analysis.death.reason is Reason.FLOOR
    assert analysis.death.miss < 0


def test_near_misses_are_the_taps_of_the_last_moment() -> None:
    taps = [tick % 8 == 7 for tick in range(40)]
    analysis = analyse(play(FlappyConfig(), 0, taps, Rules(max_turns=40)))
    assert 7 in analysis.near_misses
    assert all(analysis.margins[tick] == 0 and analysis.forced[tick] is True for tick in analysis.near_misses)


def test_with_latency_the_blunder_is_laid_to_the_turn_that_asked_for_it() -> None:
    rules = Rules(latency_ticks=3)
    late = analyse(play(FlappyConfig(), 0, [tick == 2 for tick in range(300)], rules))
    assert [tick for tick, tap in enumerate(late.taps) if tap] == [5], "asked for in turn 2, flown in tick 5"
    assert late.blunder is not None
    assert late.blunder.turn == late.blunder.tick - 3


def test_before_latency_is_over_no_turn_is_to_blame() -> None:
    analysis = analyse(play(FlappyConfig(), 0, [True] * 300, Rules(latency_ticks=20)))
    assert analysis.blunder is not None
    assert analysis.blunder.tick == 7
    assert analysis.blunder.turn is None


def test_a_plan_of_several_ticks_is_laid_to_its_turn() -> None:
    rollout = Rollout(FlappyConfig(), 0, Rules(ticks_per_turn=5))
    while rollout.outcome is None:
        rollout.fly([False] * 5)
    analysis = analyse(finish(rollout, Player(kind="policy", name="test")))
    assert analysis.blunder is not None
    assert (analysis.blunder.tick, analysis.blunder.turn) == (7, 1)


def test_where_no_bird_can_pass_the_horizon_is_as_far_as_any_bird_gets() -> None:
    steep = FlappyConfig(
        gap_center_offset=9.5, easy_gap_height=0.6, base_gap_height=0.6, pipe_spawn_interval=8, pipe_speed=0.3, pipe_width=2.0
    )
    analysis = analyse(by_policy("planner", 3, steep))
    assert not analysis.passable
    assert 0 < analysis.horizon < 300


def test_an_episode_that_was_left_while_doomed_has_a_blunder_but_no_death() -> None:
    analysis = analyse(play(FlappyConfig(), 0, [True] * 5, Rules()))
    rollout = Rollout(FlappyConfig(), 0, Rules())
    for tap in [True] * 5:
        rollout.fly([tap])
    left: Analysis = analyse(finish(rollout, Player(kind="human", name="test")))
    assert left == analysis
    assert left.death is None


def test_an_episode_without_turns_has_nothing_to_blame() -> None:
    analysis = analyse(finish(Rollout(FlappyConfig(), 0, Rules()), Player(kind="model", name="test"), error="no answer"))
    assert analysis.blunder is None
    assert analysis.death is None
    assert analysis.taps == []
    assert len(analysis.margins) == 1


def test_a_tick_limit_far_away_costs_no_more_than_the_look_ahead() -> None:
    analysis = analyse(play(FlappyConfig(), 0, [], Rules(max_turns=1_000_000)))
    assert analysis.horizon == 2_000


def test_a_death_before_the_reply_was_there_is_blamed_on_no_turn():
    rollout = Rollout(FlappyConfig(), 1, Rules(realtime=30.0))
    rollout.take("<THINK>up</THINK><ACTIONS>[TAP]</ACTIONS>", waited=20)
    found = analyse(finish(rollout, Player(kind="model", name="slow")))
    assert found.death is not None
    assert found.blunder is not None
    assert (found.blunder.turn, found.blunder.tap) == (None, False)
