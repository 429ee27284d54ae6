"""One game played by replies: plans, latency, real time."""

from __future__ import annotations

import json

import pytest

from flappybird.episodes.episode import Player, from_dict, replay
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.episodes.verify import verify
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig

MODEL = Player(kind="model", name="m")


TAP, NOOP = "<THINK>x</THINK><ACTIONS>[TAP]</ACTIONS>", "<THINK>x</THINK><ACTIONS>[]</ACTIONS>"


def test_a_plan_flies_tick_by_tick_and_the_trail_shows_it():
    rollout = Rollout(FlappyConfig(), 7, Rules(ticks_per_turn=4))
    assert rollout.message().splitlines()[9] == "trail:[]"
    reply = rollout.take("<THINK>x</THINK><ACTIONS>[NOOP, TAP]</ACTIONS>")
    assert reply.actions == (False, True, False, False)
    assert rollout.message().splitlines()[9] == (
        "trail:[(1,NOOP,-0.30,-0.30),(2,TAP,1.30,1.60),(3,NOOP,2.60,1.30),(4,NOOP,3.60,1.00)]"
    )
    assert rollout.take("<THINK>x</THINK><ACTIONS>[TAP,TAP,TAP,TAP,TAP,TAP]</ACTIONS>").ignored == 2
    assert rollout.turns[-1]["ignored"] == 2


def test_a_trail_survives_the_way_through_a_record():
    rollout = Rollout(FlappyConfig(), 7, Rules(ticks_per_turn=3))
    rollout.take("<ACTIONS>[TAP]</ACTIONS>")
    again = Rollout(rollout.game.config, 7, rollout.rules, json.loads(json.dumps(rollout.record)))
    assert again.message() == rollout.message()


@pytest.mark.parametrize("late", [1, 3])
def test_an_action_lands_as_many_ticks_late_as_asked(late):
    rollout = Rollout(FlappyConfig(), 0, Rules(latency_ticks=late))
    rollout.take(TAP)
    velocities = [rollout.game.velocity]
    for _ in range(late):
        rollout.take(NOOP)
        velocities.append(rollout.game.velocity)
    assert velocities[:-1] == pytest.approx([-0.3 * (tick + 1) for tick in range(late)])
    assert velocities[-1] == 1.6


def test_ticks_pass_while_the_model_thinks_and_replay_is_exact():
    rules = Rules(realtime=10.0, max_turns=30)
    rollout = Rollout(FlappyConfig(), 0, rules)
    for reply, seconds in ((TAP, 0.05), (NOOP, 0.35), (TAP, 0.0), (NOOP, 0.2)):
        rollout.take(reply, waited=rules.waited(seconds), seconds=seconds)
    assert rollout.game.tick == 4 + 0 + 3 + 0 + 2
    assert rollout.message().count("NOOP") == 3
    episode = from_dict(json.loads(finish(rollout, MODEL).to_json()))
    assert [turn.waited for turn in episode.turns] == [0, 3, 0, 2]
    assert verify(episode) == []
    assert replay(episode).states[-1] == rollout.game.state


def test_a_bird_can_die_before_its_reply_comes():
    rollout = Rollout(FlappyConfig(), 0, Rules(realtime=True))
    rollout.take(TAP, waited=rollout.rules.waited(2.0))
    assert str(rollout.outcome) == "floor at tick 8"
    assert verify(finish(rollout, MODEL)) == []
