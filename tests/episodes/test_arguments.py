"""The options of how replies and ticks meet and of what a model sees, in the core and in the classic door."""

from __future__ import annotations

import asyncio
import itertools
import json
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flappybird import messages
from flappybird.episodes import rewards
from flappybird.episodes.arguments import Settings
from flappybird.episodes.episode import Player, from_dict, replay
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.episodes.verify import verify
from flappybird.errors import ConfigError
from flappybird.players.policies import make_policy
from flappybird.protocol import observe
from flappybird.protocol.prompt import read_config, read_ticks, system_prompt
from flappybird.protocol.reply import read_reply
from flappybird.protocol.rules import Rules, first_kept
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Physics
from flappybird.world.observation import read_observation
from flappybird.world.units import from_text
from tests.conftest import play

MODEL = Player(kind="model", name="m")
TAP, NOOP = "<THINK>x</THINK><ACTIONS>[TAP]</ACTIONS>", "<THINK>x</THINK><ACTIONS>[]</ACTIONS>"


# --- defaults ---------------------------------------------------------------------------------------------------------


def test_the_defaults_are_the_cards_and_are_not_written_down():
    assert Rules().model_dump() == {"max_turns": 300, "ticks_per_turn": 1, "latency_ticks": 0, "stop_on_malformed": 0}
    rules = Rules(observation="signed", history_turns=8, realtime=True)
    assert rules.model_dump()["realtime"] == 30.0
    assert Rules(**rules.model_dump()) == rules


def test_an_episode_without_the_later_rules_is_read_and_verified():
    data = play("planner", 3, max_turns=40).to_dict()
    assert set(data["rules"]) == {"max_turns", "ticks_per_turn", "latency_ticks", "stop_on_malformed"}
    episode = from_dict(data)
    assert episode.rules.observation == "card"
    assert verify(episode) == []


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"observation": "pixels"}, "observation = 'pixels'"),
        ({"history_turns": -1}, "history_turns = -1"),
        ({"realtime": -1.0}, "realtime = -1.0"),
        ({"realtime": float("nan")}, "realtime = nan"),
        ({"realtime": "fast"}, "realtime = 'fast'"),
        ({"ticks_per_turn": 0}, "ticks_per_turn = 0"),
        ({"latency_ticks": 1.5}, "latency_ticks = 1.5"),
        ({"history": 3}, "did you mean 'history_turns'"),
    ],
)
def test_a_bad_rule_is_refused_by_name(rule, told):
    with pytest.raises(ConfigError, match=told) as refused:
        Rules(**rule)
    assert "\n" not in str(refused.value)


# --- history ----------------------------------------------------------------------------------------------------------


@given(turns=st.integers(0, 2_000), k=st.integers(1, 300))
def test_a_window_holds_k_to_2k_less_one_turns_and_moves_only_when_full(turns, k):
    shown = turns - first_kept(turns, k)
    assert shown == turns or k <= shown < 2 * k
    moved = first_kept(turns + 1, k) - first_kept(turns, k)
    assert moved in (0, k)
    assert moved == 0 or shown == 2 * k - 1


def test_all_of_the_history_is_kept_by_default():
    assert {first_kept(turns, 0) for turns in range(1_000)} == {0}


# --- several ticks a turn ---------------------------------------------------------------------------------------------


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


def test_a_trail_tells_taps_from_the_velocities_alone():
    for policy, seed in itertools.product(("random", "planner"), range(3)):
        episode = play(policy, seed, ticks_per_turn=5, max_turns=100)
        states = replay(episode).states
        listed = observe.trail(states, Physics.of(episode.config))
        taps = [tick.split(",")[1] == "TAP" for tick in listed[len("trail:[(") : -2].split("),(")]
        asked = [tap for turn in episode.turns for tap in turn.taps]
        assert taps == asked[: len(taps)]


# --- latency and real time ----------------------------------------------------------------------------------------------


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


# --- what is seen -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("view", ["card", "signed", "text+image"])
@pytest.mark.parametrize("ticks", [1, 4])
def test_every_text_with_numbers_is_read_back_exactly(view, ticks):
    rollout = Rollout(FlappyConfig(), 3, Rules(observation=view, ticks_per_turn=ticks, max_turns=120))
    decide = make_policy("planner", FlappyConfig())
    while rollout.outcome is None:
        assert read_observation(rollout.message()) == rollout.observation()
        rollout.fly([decide(rollout.observation()).tap] + [False] * (ticks - 1))


def edges(text: str) -> dict[str, int]:
    listed = next(line for line in text.splitlines() if line.startswith("nextGap:"))
    pairs = [pair.split(":") for pair in listed[len("nextGap:[") : -1].split(",") if pair]
    return {name: from_text(value.removeprefix("+")) for name, value in pairs}


def test_signed_distances_tell_a_crash_from_a_flight():
    seen, inside = 0, 0
    for seed in range(4):
        rollout = Rollout(FlappyConfig(), seed, Rules(observation="signed", max_turns=160))
        decide = make_policy("heuristic", FlappyConfig())
        physics = Physics.of(FlappyConfig())
        while rollout.outcome is None:
            found = edges(rollout.message())
            ahead = [pipe for pipe in rollout.game.course.visible(rollout.game.tick) if pipe.number >= rollout.game.score]
            assert bool(found) == bool(ahead)
            if ahead:
                seen += 1
                touches = abs(ahead[0].x - physics.bird_x) * 2 < physics.width + 2 * physics.radius
                assert touches == (found["left"] < 0 < found["right"])
                if touches:
                    inside += 1
                    assert found["bottom"] <= 0 <= found["top"]
            rollout.fly([decide(rollout.observation()).tap])
    assert seen > inside > 50


def test_a_map_shows_bird_pipes_and_air_where_they_are():
    rollout = Rollout(FlappyConfig(), 7, Rules(observation="ascii", ticks_per_turn=10))
    for _ in range(7):
        taps = [rollout.game.y < 0] + [False] * 9
        rollout.fly(taps)
        if rollout.outcome:
            break
    text = rollout.message()
    rows = [line for line in text.splitlines() if set(line) <= set(".#@")]
    assert len(rows) == 20
    assert {len(row) for row in rows} == {24}
    assert sum(row.count("@") for row in rows) == 1
    for pipe in rollout.game.course.visible(rollout.game.tick):
        column = min(max(pipe.x // 10_000, 0), 23)
        for row, line in enumerate(rows):
            y = 10 * 10_000 - row * 10_000 - 5_000
            solid = abs(y - pipe.gap_y) * 2 > pipe.gap_height
            if abs(column * 10_000 + 5_000 - pipe.x) <= 10_000 and line[column] != "@":
                assert (line[column] == "#") == solid


def test_a_map_of_a_large_world_stays_small():
    config = FlappyConfig(world_w=900.0, world_h=900.0, pipe_speed=2.0)
    rollout = Rollout(config, 0, Rules(observation="ascii"))
    rows = [line for line in rollout.message().splitlines() if set(line) <= set(".#@")]
    assert (len(rows[0]), len(rows)) == observe.LARGEST_MAP


@given(
    view=st.sampled_from(["card", "signed", "ascii", "image", "text+image"]),
    ticks=st.integers(1, 6),
    late=st.integers(0, 3),
    gravity=st.sampled_from([-0.3, -0.25, -0.1]),
)
def test_every_prompt_states_the_world_and_shows_replies_that_parse(view, ticks, late, gravity):
    config = FlappyConfig(gravity=gravity)
    prompt = system_prompt(config, ticks, observation=view, latency_ticks=late)
    assert read_config(prompt) == config
    assert read_ticks(prompt) == ticks
    examples = [line for line in prompt.splitlines() if line.startswith("<ACTIONS>")]
    assert len(examples) == 2
    assert all(read_reply(f"<THINK>x</THINK>{example}", ticks=ticks).format == 1.0 for example in examples)
    assert ("tick late" in prompt or "ticks late" in prompt) == (late > 0)
    assert ("trail" in prompt) == (ticks > 1)


def test_a_picture_is_a_small_png_beside_the_text():
    pytest.importorskip("render.scene", reason="the renderer")
    rollout = Rollout(FlappyConfig(), 7, Rules(observation="text+image"))
    text, picture = messages.content(rollout)
    assert text["text"] == rollout.message()
    url = picture["image_url"]["url"]
    assert url.startswith("data:image/png;base64,")
    data = messages.png(rollout)
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == messages.SIZE
    assert len(data) < 20_000
    before = rollout.game.state
    rollout.take(TAP)
    assert messages.png(rollout) != data
    assert before.tick == 0


def test_without_the_renderer_one_line_says_what_brings_it(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "render", None)
    monkeypatch.setitem(sys.modules, "render.scene", None)
    with pytest.raises(ImportError, match=r"the extra \[render\] brings it") as refused:
        messages.require_renderer(Rules(observation="image"))
    assert "\n" not in str(refused.value)
    messages.require_renderer(Rules())


# --- rewards of turns ---------------------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 50),
    policy=st.sampled_from(["noop", "random", "heuristic", "planner"]),
    ticks=st.integers(1, 4),
    late=st.integers(0, 2),
)
def test_the_rewards_of_the_turns_add_up_to_the_reward(seed, policy, ticks, late):
    episode = play(policy, seed, ticks_per_turn=ticks, latency_ticks=late, max_turns=150)
    shares = rewards.turn_rewards(episode)
    assert len(shares) == len(episode.turns)
    assert sum(shares) == pytest.approx(rewards.reward(episode), abs=1e-9)
    assert all(share >= 0 for share in shares)


def test_the_turn_that_passes_a_pipe_gets_it_and_the_turn_that_crashes_gets_nothing():
    episode = play("planner", 3, max_turns=120)
    shares = rewards.turn_rewards(episode)
    passed = [turn for turn, share in enumerate(shares) if share > 2]
    assert len(passed) == episode.outcome.pipes_passed > 0
    crash = play("noop", 0)
    assert rewards.turn_rewards(crash)[-1] == pytest.approx(0.2 / len(crash.turns))


# --- the classic door ---------------------------------------------------------------------------------------------------


def classic(url: str, model: str, columns: list[str] | None = None, **args: Any) -> dict[str, Any]:
    vf = pytest.importorskip("verifiers")
    if not hasattr(vf, "__version__") or vf.__version__ >= "0.4":
        pytest.skip("verifiers 0.4 has no classic API")
    from flappybird import load_environment

    env = load_environment(num_examples=1, **args)
    client = vf.ClientConfig(api_base_url=url, api_key_var="FLAPPYBIRD_API_KEY")
    found = asyncio.run(
        env.evaluate(client=client, model=model, num_examples=1, rollouts_per_example=1, state_columns=columns or [])
    )
    output: dict[str, Any] = json.loads(json.dumps(found["outputs"][0], default=lambda message: message.model_dump()))
    return output


def test_the_classic_door_saves_every_turn_of_a_windowed_conversation(policy_server):
    row = classic(policy_server, "planner", max_turns=25, history_turns=3)
    assert len(row["completion"]) == 49
    assert [message["role"] for message in row["completion"]] == ["assistant", "user"] * 24 + ["assistant"]
    ticks = [read_observation(message["content"]).tick for message in row["completion"] if message["role"] == "user"]
    assert ticks == list(range(1, 25))


def test_the_classic_door_gives_each_turn_its_reward(policy_server):
    row = classic(policy_server, "planner", ["trajectory"], max_turns=12, turn_reward=True)
    shares = [step["reward"] for step in row["trajectory"]]
    assert len(set(shares)) > 1
    assert sum(shares) == pytest.approx(row["reward"])


def test_real_time_runs_from_the_seconds_that_a_reply_took(policy_server):
    row = classic(policy_server, "planner:latency=0.06", max_turns=60, realtime=50.0)
    turns = row["info"]["turns"] if isinstance(row["info"], dict) else json.loads(row["info"])["turns"]
    assert all(turn["waited"] >= 3 for turn in turns)
    assert all(turn["waited"] == int(turn["seconds"] * 50) or abs(turn["seconds"] * 50 % 1) < 0.02 for turn in turns)


def test_settings_take_every_option_and_refuse_bad_ones_by_name():
    checked = Settings.of(history_turns=8, observation="ascii", realtime=True, turn_reward=True)
    assert (checked.rules.history_turns, checked.rules.realtime, checked.turn_reward) == (8, 30.0, True)
    with pytest.raises(ConfigError, match="turn_reward = 1"):
        Settings.of(turn_reward=1)
    with pytest.raises(ConfigError, match="did you mean 'history_turns'"):
        Settings.of(history_turn=1)
