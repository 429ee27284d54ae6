import json

import pytest

from flappybird.episodes.arguments import Settings
from flappybird.episodes.rewards import reward, turn_rewards
from flappybird.episodes.verify import verify
from flappybird.errors import ConfigError
from flappybird.players.games import fly
from flappybird.players.policies import make_policy, plan
from flappybird.protocol.prompt import read_config, read_ticks
from flappybird.protocol.reply import write_reply
from flappybird.rollouts import play_many, worth_of
from flappybird.server.chat import Reply, ReplyError
from flappybird.world.game import FlappyGame, State
from flappybird.world.observation import read_observation


def _planner(conversations):
    replies = []
    for messages in conversations:
        config, seen = read_config(messages[0]["content"]), read_observation(messages[-1]["content"])
        ticks = read_ticks(messages[0]["content"])
        replies.append(write_reply(*plan(make_policy("planner", config), seen, config, ticks)))
    return replies


def _rows(count, **args):
    settings = Settings.of(num_examples=count, **args)
    return [settings.evaluation_row(index) for index in range(count)]


@pytest.mark.parametrize("args", [{}, {"history_turns": 2}, {"ticks_per_turn": 3, "observation": "signed"}, {"latency_ticks": 2}])
def test_games_are_those_that_a_door_plays(args):
    found = sorted(play_many(_rows(5, max_turns=60, **args), _planner, at_once=2, name="planner"))
    settings = Settings.of(max_turns=60, **args)
    assert [played.number for played in found] == list(range(5))
    for seed, played in enumerate(found):
        alone = fly("planner", settings.config, seed, settings.rules)
        assert [turn.reply for turn in played.episode.turns] == [turn.reply for turn in alone.turns]
        assert played.episode.outcome == alone.outcome
        assert verify(played.episode) == []
        assert played.turn_rewards == turn_rewards(played.episode)
        assert sum(played.turn_rewards) == pytest.approx(reward(played.episode))
        assert played.cut_off == (not played.episode.outcome.reason.crashed)
        assert len(played.messages) == 1 + 2 * len(played.episode.turns)


def test_a_reply_gets_the_window_that_the_rules_show():
    asked = []

    def reply(conversations):
        asked.append([message["role"] for message in conversations[0]])
        return ["<THINK>.</THINK><ACTIONS>[]</ACTIONS>"] * len(conversations)

    list(play_many(_rows(1, max_turns=8, history_turns=2), reply))
    assert [roles.count("assistant") for roles in asked] == [0, 1, 2, 3, 2, 3, 2, 3]
    assert all(roles[0] == "system" and roles[-1] == "user" for roles in asked)


def test_reasoning_and_token_counts_are_kept():
    (played,) = play_many(_rows(1, max_turns=1), lambda batch: [Reply("<ACTIONS>[]</ACTIONS>", "fall", 7, 3)])
    (turn,) = played.episode.turns
    assert (turn.reasoning, turn.prompt_tokens, turn.completion_tokens, turn.format) == ("fall", 7, 3, 1.0)
    assert played.messages[-1] == {"role": "assistant", "content": "<ACTIONS>[]</ACTIONS>", "reasoning_content": "fall"}


def test_a_trainer_gets_its_notes_back_and_a_reply_that_was_cut_is_truncated():
    (played,) = play_many(_rows(1, max_turns=2), lambda batch: [{"text": "<THINK>", "cut": True, "note": len(batch[0])}])
    assert played.notes == [2, 4]
    assert [turn.status.value for turn in played.episode.turns] == ["truncated"] * 2
    assert verify(played.episode) == []
    json.dumps(played.messages)


def test_what_a_game_was_still_worth():
    still = ["<THINK>.</THINK><ACTIONS>[]</ACTIONS>"]
    (played,) = play_many(_rows(1, max_turns=5), lambda batch: still, horizon=200)
    assert played.cut_off
    assert played.worth.ticks == 200
    assert played.worth.pipes == FlappyGame(seed=0).course.passed(205)
    (crashed,) = play_many(_rows(1), lambda batch: still, horizon=200)
    assert (crashed.cut_off, crashed.worth) == (False, None)
    doomed = State(0, 0, -100_000)  # falls out of the world in the second tick, unless it flaps at once
    assert worth_of(FlappyGame(), doomed, 50).ticks == 50
    assert worth_of(FlappyGame(), State(0, 98_000, 16_000), 50).ticks < 50


@pytest.mark.parametrize("answers", ["text", [], ["a", "b"], None])
def test_anything_but_as_many_replies_is_an_error(answers):
    with pytest.raises(ReplyError, match="for 1 conversations"):
        list(play_many(_rows(1), lambda batch: answers))


def test_bad_rows_and_numbers_are_refused():
    with pytest.raises(ConfigError, match="not a row"):
        list(play_many([{}], _planner))
    with pytest.raises(ConfigError, match="at_once = 0"):
        list(play_many(_rows(1), _planner, at_once=0))
    with pytest.raises(ConfigError, match="realtime"):
        list(play_many(_rows(1, realtime=10), _planner))
