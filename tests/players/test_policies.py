import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flappybird.errors import ConfigError
from flappybird.players.policies import POLICIES, make_policy, plan
from flappybird.players.sight import imagine
from flappybird.protocol.reply import Status, read_reply, write_reply
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course
from flappybird.world.game import FlappyGame, State
from flappybird.world.observation import read_observation
from flappybird.world.solver import Survival
from flappybird.world.units import from_text
from tests.worlds import worlds


@given(worlds(), st.integers(0, 10_000), st.sampled_from(sorted(POLICIES)))
@settings(max_examples=40)
def test_every_reply_is_in_the_cards_format_and_its_thought_is_true(config, seed, name):
    policy, game = make_policy(name, config, seed), FlappyGame(config, seed, max_ticks=60)
    while game.outcome is None:
        decision = policy(read_observation(str(game.observation())))
        reply = read_reply(decision.reply())
        assert (reply.status, reply.actions, reply.format) == (Status.OK, (decision.tap,), 1.0)
        assert len(decision.thought) < 160
        velocity, before, after = re.search(r"velY (\S+), birdY (\S+?)->(\S+?)[:.](?: |$)", decision.thought).groups()
        assert from_text(before) == game.state.y
        game.step(decision.tap)
        assert (from_text(velocity), from_text(after)) == (game.state.velocity, game.state.y)


@given(worlds(), st.integers(0, 10_000))
@settings(max_examples=40)
def test_the_planner_never_leaves_what_can_be_survived_on_the_pipes_in_sight(config, seed):
    course, planner = Course(config, seed), make_policy("planner", config)
    game = FlappyGame(config, seed, max_ticks=120)
    while game.outcome is None:
        seen = game.observation()
        # The truth about all ticks that no unseen pipe can touch, from the course itself.
        last = course.physics.spawn_tick(course.physics.newest(game.tick) + 1) + course.physics.enter_age - 1
        survival = Survival.of(course, min(max(last, game.tick + 1), game.tick + 300))
        keeps = {tap: survival.keeps(game.state, tap) for tap in (False, True)}
        tap = planner(seen).tap
        if any(keeps.values()):
            assert keeps[tap]
        game.step(tap)


def test_the_planner_survives_the_cards_world():
    for seed in range(30):
        game = FlappyGame(seed=seed, max_ticks=300)
        planner = make_policy("planner", game.config)
        while game.outcome is None:
            game.step(planner(game.observation()).tap)
        assert (game.truncated, game.score) == (True, 8)


def test_the_policies_rank_as_their_order_says():
    def mean(name: str) -> float:
        ticks = 0
        for seed in range(30):
            game = FlappyGame(seed=seed, max_ticks=300)
            policy = make_policy(name, game.config, seed)
            while game.outcome is None:
                game.step(policy(game.observation()).tap)
            ticks += game.tick
        return ticks / 30

    scores = [mean(name) for name in POLICIES]
    assert scores == sorted(scores)
    assert scores[0] == 8
    assert 10 < scores[1] < 40
    assert 150 < scores[2] < 290
    assert scores[3] == 300


def test_random_is_repeatable_with_a_seed_and_differs_without():
    seen = [FlappyGame(seed=1, state=State(tick, 0, 0)).observation() for tick in range(200)]

    def taps(seed):
        policy = make_policy("random", FlappyConfig(), seed)
        return [policy(observation).tap for observation in seen]

    assert taps(1) == taps(1)
    assert taps(1) != taps(2)
    assert taps(None) != taps(None)
    assert 10 < sum(taps(3)) < 60


def test_a_plan_is_what_the_policy_does_tick_by_tick_while_no_new_pipe_appears():
    game = FlappyGame(seed=6)
    for name in ("heuristic", "planner"):
        policy = make_policy(name, game.config)
        for _ in range(45):
            game.step(policy(game.observation()).tap)
        taps, thought = plan(policy, game.observation(), game.config, 8)
        probe = FlappyGame(game.config, 6, state=game.state)
        for tap in taps[:4]:
            assert policy(probe.observation()).tap == tap
            probe.step(tap)
        assert thought == policy(game.observation()).thought
        assert read_reply(write_reply(taps, thought), ticks=8).actions == taps


@given(worlds(), st.integers(0, 1000), st.lists(st.booleans(), max_size=100))
def test_what_is_imagined_comes_true_but_for_pipes_that_appear(config, seed, taps):
    game = FlappyGame(config, seed)
    for tap in taps:
        imagined = imagine(game.observation(), tap, config)
        if game.step(tap):
            return
        true = game.observation()
        spawned = len(true.pipes) > len(imagined.pipes)
        assert imagined == true._replace(pipes=true.pipes[: len(true.pipes) - spawned], gap_height=imagined.gap_height)
        assert imagined.gap_height == true.gap_height


def test_an_unknown_policy_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match="'planer' is not a policy; did you mean 'planner'?"):
        make_policy("planer", FlappyConfig())


def test_policies_answer_observations_that_no_game_can_be_in():
    text = (
        "<FLAPPY id=5>\n<OBS>\nbirdY:0.3333\nbirdX:4.00\nvelY:-0.0777\ngapHeight:6.00\nbirdRadius:0.20\n"
        "pipes:[(23.45,1.2),(3.1,-0.5)]\nscore:2\n</OBS>\n</FLAPPY>"
    )
    for name in POLICIES:
        assert make_policy(name, FlappyConfig())(read_observation(text)).thought
