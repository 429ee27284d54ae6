"""The classic door, in-process, against models that are real servers."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

vf = pytest.importorskip("verifiers")
if not hasattr(vf, "MultiTurnEnv"):
    pytest.skip("this release of verifiers has no classic API", allow_module_level=True)

from verifiers.types import ClientConfig  # noqa: E402
from verifiers.utils.save_utils import make_serializable  # noqa: E402

import flappybird  # noqa: E402
from flappybird import classic, vf_eval  # noqa: E402
from flappybird.episodes import rewards  # noqa: E402
from flappybird.episodes.arguments import Settings  # noqa: E402
from flappybird.episodes.rollout import Rollout  # noqa: E402
from flappybird.errors import ConfigError  # noqa: E402
from flappybird.protocol.prompt import system_prompt  # noqa: E402
from flappybird.protocol.rules import Rules  # noqa: E402
from flappybird.runs import check, run_of_outputs  # noqa: E402
from flappybird.world.config import FlappyConfig  # noqa: E402
from flappybird.world.game import FlappyGame, Reason  # noqa: E402
from flappybird.world.levels import level  # noqa: E402
from flappybird.world.observation import read_observation  # noqa: E402
from flappybird.world.seeds import TRAINING_SEEDS  # noqa: E402
from tests.conftest import play, scripted, serving, turn_of  # noqa: E402

TAP = "<THINK>up</THINK><ACTIONS>[TAP]</ACTIONS>"
NOOP = "<THINK>down</THINK><ACTIONS>[]</ACTIONS>"


def evaluate(
    url: str,
    model: str = "planner",
    n: int = 1,
    r: int = 1,
    concurrent: int = -1,
    columns: tuple[str, ...] = (),
    **args: Any,
) -> list[dict[str, Any]]:
    """Return the rows of an evaluation, as vf-eval would save them."""
    env = flappybird.load_environment(**args)
    client = ClientConfig(api_base_url=url, api_key_var="FLAPPYBIRD_API_KEY")
    results = asyncio.run(
        env.evaluate(
            client=client,
            model=model,
            num_examples=n,
            rollouts_per_example=r,
            max_concurrent=concurrent,
            state_columns=list(columns),
            on_start=_quiet,
        )
    )
    return json.loads(json.dumps(results["outputs"], default=make_serializable))


def _quiet(*_: Any) -> None:
    """Instead of a progress bar."""


def rebuilt(rows: list[dict[str, Any]]) -> Any:
    from pathlib import Path

    return run_of_outputs(rows, {"model": "m"}, Path("run"))


@pytest.fixture(scope="module")
def evaluated(policy_server):
    """A whole game by the planner, with all that was said in every prompt."""
    return evaluate(policy_server, seed=7)


def test_an_evaluation_gives_the_games_rewards_and_metrics(evaluated):
    (row,) = evaluated
    assert row["reward"] == pytest.approx(2 * 8 + 0.2 * 404.2 + 0.2)
    assert row["metrics"] == {
        "flappy_reward_func": 8.0,
        "flappy_survival_reward": 404.2,
        "format_reward_func": 1.0,
        "pipes_passed": 8.0,
        "survival_score": 404.2,
        "done": 0.0,
        "ticks": 300.0,
        "invalid_actions": 0.0,
        "death_floor": 0.0,
        "death_ceiling": 0.0,
        "death_pipe": 0.0,
        "num_turns": 300.0,
    }
    assert (row["stop_condition"], row["error"], row["is_truncated"]) == ("tick_limit_reached", None, False)


def test_row_and_replies_give_the_episode_again(evaluated):
    (row,) = rebuilt(evaluated).rows
    played = play("planner", 7)
    assert [turn.reply for turn in row.episode.turns] == [turn.reply for turn in played.turns]
    assert row.episode.outcome == played.outcome
    assert check(row) == []


def test_the_messages_are_the_prompt_and_every_observation():
    asked = []

    def answer(body):
        asked.append(body["messages"])
        return TAP if turn_of(body) % 4 == 0 else NOOP

    with scripted(answer) as url:
        (row,) = evaluate(url, max_turns=6, seed=3)
    game = FlappyGame(seed=3)
    expected = [
        {"role": "system", "content": system_prompt(FlappyConfig())},
        {"role": "user", "content": str(game.observation())},
    ]
    for turn, messages in enumerate(asked):
        assert [(m["role"], m["content"]) for m in messages] == [(m["role"], m["content"]) for m in expected]
        game.step(turn % 4 == 0)
        expected += [
            {"role": "assistant", "content": TAP if turn % 4 == 0 else NOOP},
            {"role": "user", "content": str(game.observation())},
        ]
    assert len(asked) == 6
    assert row["metrics"]["ticks"] == 6


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_D02_every_reply_is_applied_once_the_last_one_included(limit):
    with scripted(lambda body: TAP if turn_of(body) % 4 == 0 else NOOP) as url:
        (row,) = evaluate(url, max_turns=limit)
    assert row["metrics"]["num_turns"] == limit
    assert sum(message["role"] == "assistant" for message in row["completion"]) == limit
    episode = rebuilt([row]).rows[0].episode
    assert (len(episode.turns), episode.outcome.ticks) == (limit, limit)


def test_D02_the_pipe_passed_by_the_last_action_counts(policy_server):
    # Pipe 0 is passed in tick 81.
    for limit, pipes in ((80, 0), (81, 1)):
        (row,) = evaluate(policy_server, max_turns=limit)
        assert row["metrics"]["pipes_passed"] == pipes
        assert row["metrics"]["ticks"] == limit


def test_nobody_is_asked_again_after_a_crash():
    asked = []

    def answer(body):
        asked.append(1)
        return NOOP

    with scripted(answer) as url:
        (row,) = evaluate(url)
    assert len(asked) == 8
    assert row["stop_condition"] == "crashed"
    assert row["metrics"]["death_floor"] == row["metrics"]["done"] == 1.0


REPLIES: list[tuple[Any, str, str]] = [
    # what is said, the status it must get, the action
    (TAP, "ok", "TAP"),
    ("<think>maybe <actions>[]</actions></think><actions>[tap]</actions>", "ok", "TAP"),
    ("just prose", "malformed", "NOOP"),
    ("", "empty", "NOOP"),
    ({"content": None}, "empty", "NOOP"),
    ({"content": None, "reasoning_content": "I would flap"}, "empty", "NOOP"),
    ({"content": "<ACTIONS>[TAP]</ACTIONS>", "reasoning_content": "up"}, "ok", "TAP"),
    ({"content": "because</think><ACTIONS>[TAP]</ACTIONS>"}, "ok", "TAP"),
    ({"content": "<THINK>I wonder", "finish_reason": "length"}, "truncated", "NOOP"),
    ({"content": "<THINK>a</THINK><ACTIONS>[TAP]", "finish_reason": "length"}, "truncated", "NOOP"),
    ({"content": "<THINK>a</THINK><ACTIONS>[TAP]", "finish_reason": "stop"}, "ok", "TAP"),
    (
        {"content": None, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "tap", "arguments": "{}"}}]},
        "empty",
        "NOOP",
    ),
    ("x" * 1_000_000, "malformed", "NOOP"),
    ("<FLAPPY id=9>\n<OBS>\nscore:99\n</OBS>\n</FLAPPY>" + TAP, "ok", "TAP"),
]


@pytest.mark.parametrize(("said", "status", "action"), REPLIES)
def test_D12_every_kind_of_reply_has_its_status_and_never_breaks_the_rollout(said, status, action):
    with scripted(lambda body: dict(said) if isinstance(said, dict) else said) as url:
        (row,) = evaluate(url, max_turns=2)
    assert row["error"] is None
    (rebuilt_row,) = rebuilt([row]).rows
    turns = rebuilt_row.episode.turns
    assert [(turn.status.value, turn.taps) for turn in turns] == [(status, (action == "TAP",))] * 2
    assert row["metrics"]["invalid_actions"] == 2 * (status != "ok")
    assert check(rebuilt_row) == []
    if isinstance(said, dict) and said.get("reasoning_content"):
        assert turns[0].reasoning == said["reasoning_content"]


def test_D12_a_body_that_the_library_cannot_read_ends_one_rollout_as_an_error():
    # A lone surrogate is legal in JSON text, but the library's client refuses the whole body.
    with scripted(lambda body: "\ud800" if turn_of(body) == 1 and "id=1>" in body["messages"][-1]["content"] else NOOP) as url:
        (row,) = evaluate(url, max_turns=5)
    (read,) = rebuilt([row]).rows
    assert read.error
    assert "\n" not in read.error
    assert (read.episode.outcome.reason, read.episode.outcome.ticks) == (Reason.ERROR, 1)


def test_D05_reasoning_in_its_own_field_gets_the_full_format_score():
    with scripted(lambda body: {"content": "<ACTIONS>[]</ACTIONS>", "reasoning_content": "down"}) as url:
        (row,) = evaluate(url, max_turns=2)
    assert row["metrics"]["format_reward_func"] == 1.0


def test_tokens_and_seconds_of_every_turn_are_kept():
    with scripted(lambda body: NOOP) as url:
        (row,) = rebuilt(evaluate(url, max_turns=3)).rows
    for turn in row.episode.turns:
        assert (turn.prompt_tokens, turn.completion_tokens) == (11, 7)
        assert 0 < turn.seconds < 10


def test_D07_a_reply_that_never_came_is_an_error_of_its_rollout_alone():
    def answer(body):
        second_game = "birdY" in body["messages"][1]["content"] and body["messages"][-1]["content"].startswith("<FLAPPY id=2>")
        return (400, {"error": {"message": "broken", "type": "x", "code": "x"}}) if second_game else NOOP

    with scripted(answer) as url:
        (row,) = evaluate(url, max_turns=5)
    assert row["error"] is not None
    (read,) = rebuilt([row]).rows
    assert read.error
    assert "broken" in read.error
    assert read.episode.outcome.reason is Reason.ERROR
    assert read.episode.outcome.ticks == 2
    assert check(read) == []


def test_a_full_context_ends_a_rollout_and_is_no_crash():
    def answer(body):
        if turn_of(body) == 3:
            message = "This model's maximum context length is 100 tokens"
            return (400, {"error": {"message": message, "type": "invalid_request_error", "code": "context_length_exceeded"}})
        return NOOP

    with scripted(answer) as url:
        (row,) = evaluate(url)
    (read,) = rebuilt([row]).rows
    assert (row["stop_condition"], read.episode.outcome.reason, read.error) == ("prompt_too_long", Reason.CONTEXT, None)
    assert check(read) == []


def test_D12_an_exception_of_ours_ends_one_rollout_and_not_the_evaluation(policy_server, monkeypatch):
    true = Rollout.message

    def sometimes(rollout):
        if rollout.game.seed == 1 and rollout.game.tick == 3:
            raise KeyError("a bug")
        return true(rollout)

    monkeypatch.setattr(Rollout, "message", sometimes)
    rows = evaluate(policy_server, n=3, max_turns=9)
    assert [row["error"] is not None for row in rows] == [False, True, False]
    assert "KeyError in env_response" in rebuilt(rows).rows[1].error


def test_D11_rollouts_at_once_are_those_played_one_by_one(policy_server):
    def told(rows):
        return [(row["info"]["seed"], row["reward"], [m["content"] for m in row["completion"]]) for row in rows]

    together = evaluate(policy_server, "heuristic", n=4, r=4, concurrent=16, max_turns=12)
    assert told(together) == told(evaluate(policy_server, "heuristic", n=4, r=4, concurrent=1, max_turns=12))
    assert len({row["info"]["seed"] for row in together}) == 4
    # Rollouts of one example play one course.
    assert all(len({row["info"]["seed"] for row in together if row["example_id"] == example}) == 1 for example in range(4))


def test_the_environment_object_holds_settings_and_nothing_of_a_rollout(policy_server):
    env = flappybird.load_environment(max_turns=20)
    before = dict(vars(env))
    client = ClientConfig(api_base_url=policy_server, api_key_var="FLAPPYBIRD_API_KEY")
    asyncio.run(env.evaluate(client=client, model="planner", num_examples=3, on_start=_quiet))
    changed = {name for name, value in vars(env).items() if before.get(name) is not value}
    assert changed <= {"eval_dataset", "dataset"}


@pytest.mark.parametrize(("asked", "games"), [(3, 3), (-1, 2), (5, 5)])
def test_D09_as_many_games_are_made_as_are_asked_for(asked, games):
    with scripted(lambda body: NOOP) as url:
        rows = evaluate(url, n=asked, num_examples=2, seed=40, max_turns=1)
    assert [row["info"]["seed"] for row in rows] == list(range(40, 40 + games))


@pytest.mark.parametrize("asked", [0, -2])
def test_D09_a_senseless_number_of_games_is_refused(asked):
    env = flappybird.load_environment()
    with pytest.raises(ConfigError, match=f"num_examples = {asked}"):
        env._get_eval_inputs(asked)


def test_training_games_never_meet_evaluation_games():
    env = flappybird.load_environment(seed=5)
    seeds = {json.loads(info)["seed"] for info in env.get_dataset(50)["info"]}
    assert len(seeds) == 50
    assert min(seeds) >= TRAINING_SEEDS.start
    assert max(json.loads(info)["seed"] for info in env.get_eval_dataset()["info"]) < TRAINING_SEEDS.start
    with pytest.raises(ConfigError, match="evaluation seeds must stay below"):
        flappybird.load_environment(seed=TRAINING_SEEDS.start - 5)


def test_config_and_overrides_reach_the_game(policy_server):
    (row,) = evaluate(policy_server, config_overrides={"easy_gap_height": 7.0, "gravity": -0.25}, max_turns=100)
    assert row["info"]["config"]["gravity"] == -0.25
    assert "gapHeight:7.00" in row["prompt"][1]["content"]
    assert "-0.25 is added to velY" in row["prompt"][0]["content"]
    assert check(rebuilt([row]).rows[0]) == []


def test_a_difficulty_names_a_world_and_overrides_are_laid_over_it(policy_server):
    (row,) = evaluate(policy_server, difficulty="hard", config_overrides={"gravity": -0.2}, max_turns=5)
    assert row["info"]["config"] == level("hard").model_dump() | {"gravity": -0.2}


def test_a_plan_of_several_ticks_is_flown_within_the_tick_limit(policy_server):
    (row,) = evaluate(policy_server, ticks_per_turn=4, max_turns=30)
    assert row["metrics"]["ticks"] == 30
    assert row["metrics"]["num_turns"] == 8
    assert check(rebuilt([row]).rows[0]) == []


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"max_turn": 5}, "'max_turn' is not an environment argument; did you mean 'max_turns'?"),
        ({"max_turns": "3"}, "max_turns = '3'"),
        ({"max_turns": 3.7}, "max_turns = 3.7"),
        ({"max_turns": 0}, "max_turns = 0"),
        ({"num_examples": 0}, "num_examples = 0"),
        ({"num_examples": -3}, "num_examples = -3"),
        ({"num_examples": True}, "num_examples = True"),
        ({"seed": -1}, "seed = -1"),
        ({"seed": "1"}, "seed = '1'"),
        ({"config": 7}, "config = 7"),
        ({"config_overrides": {"gravty": -0.2}}, "did you mean 'gravity'"),
        ({"config_overrides": "gravity=-0.2"}, "config_overrides = 'gravity=-0.2'"),
        ({"config": {"gravity": float("nan")}}, "gravity = nan"),
        ({"report": 3}, "report = 3"),
        ({"difficulty": "hrd"}, "'hrd' is not a level; did you mean 'hard'?"),
        ({"difficulty": "hard", "config": {"gravity": -0.2}}, "difficulty = 'hard': config names a world too"),
    ],
)
def test_D12_bad_arguments_are_refused_at_load_in_one_line(args, said):
    with pytest.raises(ConfigError) as caught:
        flappybird.load_environment(**args)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_config_object_its_dict_and_its_json_are_the_same():
    config = FlappyConfig(gravity=-0.25)
    settings_of = [Settings.of(config=given) for given in (config, config.model_dump(), json.loads(config.model_dump_json()))]
    assert settings_of[0] == settings_of[1] == settings_of[2]


# --- the parser and the rubric ---


def test_D04_the_parser_the_game_and_the_rubric_never_disagree():
    parser = classic.FlappyParser()
    text = f"<think>maybe {NOOP}</think>{TAP}"
    assert parser.parse(text).actions == "[TAP]"
    assert parser.parse_answer(text) == "[TAP]"
    assert parser.parse_answer([{"role": "assistant", "content": text}]) == "[TAP]"
    assert parser.parse("<THINK>x</THINK>").actions is None
    assert parser.parse(NOOP).actions == "[]"
    assert parser.parse_answer([]) is None
    assert (parser.answer_field, [name for name, _ in parser._fields]) == ("actions", ["think", "actions"])
    reward = parser.get_format_reward_func()
    messages = [{"role": "assistant", "content": said} for said in (TAP, "<ACTIONS>[]</ACTIONS>", "no", "")]
    assert reward(messages) == (1.0 + 0.5) / 4
    assert reward([]) == 0.0


def test_the_parser_says_nothing_of_its_think_field(caplog):
    classic.FlappyParser()
    assert caplog.text == ""


def test_the_rubric_has_the_cards_functions_and_weights():
    env = flappybird.load_environment()
    rubric = env.rubric.rubrics[0]
    weighted = {function.__name__: weight for function, weight in zip(rubric.funcs, rubric.weights, strict=True) if weight}
    assert weighted == {"flappy_reward_func": 2.0, "flappy_survival_reward": 0.2, "format_reward_func": 0.2}
    assert {"pipes_passed", "survival_score", "done"} <= {function.__name__ for function in rubric.funcs}


said = st.lists(st.sampled_from([TAP, NOOP, "<ACTIONS>[TAP]</ACTIONS>", "prose", "<THINK>x"]), min_size=1, max_size=12)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said, st.integers(0, 1000))
def test_the_reward_is_the_cards_formula_whatever_is_said(replies, seed):
    with scripted(lambda body: replies[turn_of(body) % len(replies)]) as url:
        (row,) = evaluate(url, max_turns=40, seed=seed)
    (read,) = rebuilt([row]).rows
    metrics = row["metrics"]
    assert row["reward"] == pytest.approx(
        2.0 * metrics["pipes_passed"] + 0.2 * metrics["survival_score"] + 0.2 * metrics["format_reward_func"]
    )
    assert metrics["survival_score"] == rewards.survival(int(metrics["ticks"] - metrics["done"]))
    assert check(read) == []
    _obeys_the_physics_by_its_observations_alone(row)


def _obeys_the_physics_by_its_observations_alone(row):
    """Recompute every tick of a transcript from what the model was shown, in decimals."""
    import re
    from decimal import Decimal

    def read(text):
        return {name: Decimal(value) for name, value in re.findall(r"(birdY|velY|score):(-?[\d.]+)", text)}

    shown = [read(m["content"]) for m in [*row["prompt"], *row["completion"]] if m["role"] == "user"]
    turns = row["info"]["turns"]
    for before, turn, after in zip(shown, turns, shown[1:], strict=False):
        velocity = Decimal("1.6") if turn["actions"] == ["TAP"] else before["velY"] - Decimal("0.3")
        assert after["velY"] == velocity
        assert after["birdY"] == before["birdY"] + velocity
        assert after["score"] >= before["score"]


def test_many_conversations_on_spoilt_answers_are_all_verified():
    with serving(malformed=0.3, seed=9) as url:
        rows = evaluate(url, "heuristic", n=6, r=2, concurrent=12, max_turns=60)
    run = rebuilt(random.Random(1).sample(rows, len(rows)))
    assert [row.example for row in run.rows] == [n for n in range(6) for _ in range(2)]
    assert [row.rollout for row in run.rows] == [0, 1] * 6
    assert all(check(row) == [] for row in run.rows)
    assert any(row.claims["invalid_actions"] > 0 for row in run.rows)


def test_every_turn_of_a_windowed_conversation_is_saved(policy_server):
    (row,) = evaluate(policy_server, max_turns=25, history_turns=3)
    assert len(row["completion"]) == 49
    assert [message["role"] for message in row["completion"]] == ["assistant", "user"] * 24 + ["assistant"]
    ticks = [read_observation(message["content"]).tick for message in row["completion"] if message["role"] == "user"]
    assert ticks == list(range(1, 25))


def test_each_turn_gets_its_reward_where_that_is_asked_for(policy_server):
    (row,) = evaluate(policy_server, columns=("trajectory",), max_turns=12, turn_reward=True)
    shares = [step["reward"] for step in row["trajectory"]]
    assert len(set(shares)) > 1
    assert sum(shares) == pytest.approx(row["reward"])


def test_real_time_runs_from_the_seconds_that_a_reply_took(policy_server):
    (row,) = evaluate(policy_server, "planner:latency=0.06", max_turns=60, realtime=50.0)
    turns = row["info"]["turns"] if isinstance(row["info"], dict) else json.loads(row["info"])["turns"]
    assert all(turn["waited"] >= 3 for turn in turns)
    assert all(turn["waited"] == int(turn["seconds"] * 50) or abs(turn["seconds"] * 50 % 1) < 0.02 for turn in turns)


def test_a_folder_that_cannot_be_written_to_costs_nothing_but_the_report(tmp_path, monkeypatch):
    (tmp_path / "environments").write_text("in the way", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(vf_eval.sys, "argv", ["vf-eval"])
    lines = []
    monkeypatch.setattr(vf_eval.atexit, "register", lambda _, *said, **__: lines.extend(said))
    with scripted(lambda body: NOOP) as url:
        (row,) = evaluate(url, max_turns=2)
    assert row["error"] is None
    assert len(lines) == 1
    assert lines[0].startswith("flappybird: no report: ")
    assert "\n" not in lines[0]


def test_environments_with_different_options_play_in_one_group(policy_server):
    members = [{"max_turns": 6}, {"max_turns": 6, "history_turns": 2, "realtime": 0.0}, {"max_turns": 6, "observation": "signed"}]
    group = vf.EnvGroup([flappybird.load_environment(num_examples=1, **args) for args in members])
    infos = [json.loads(info) if isinstance(info, str) else info for info in group.get_dataset(n=-1)["info"]]
    assert {Rules(**info["rules"]) for info in infos} == {env.settings.rules for env in group.envs}
    client = ClientConfig(api_base_url=policy_server, api_key_var="FLAPPYBIRD_API_KEY")
    found = asyncio.run(group.evaluate(client=client, model="planner", num_examples=-1, rollouts_per_example=1, on_start=_quiet))
    assert len(found["outputs"]) == 3
    for output in found["outputs"]:
        assert output["error"] is None
        assert output["metrics"]["ticks"] == 6.0
    saved = json.loads(json.dumps(found["outputs"], default=make_serializable))
    for row in run_of_outputs(saved, {"model": "planner"}, Path("group")).rows:
        assert row.problem is None
        assert check(row) == []


def test_a_plan_of_several_ticks_is_parsed_and_scored_without_a_state():
    parser = flappybird.load_environment(ticks_per_turn=3).parser
    plan = "<THINK>x</THINK><ACTIONS>[NOOP, TAP]</ACTIONS>"
    assert parser.parse(plan).actions == parser.parse_answer(plan) == "[NOOP, TAP, NOOP]"
    said = [{"role": "assistant", "content": plan}, {"role": "assistant", "content": "up"}]
    assert parser.get_format_reward_func()(said) == 0.5
    assert flappybird.load_environment().parser.parse(plan).actions is None
