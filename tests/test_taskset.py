"""The v1 door. Runs on verifiers 0.3 and 0.4; comparisons with the classic door run where there is one."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flappybird import runs, server
from flappybird.episodes import rewards
from flappybird.episodes.arguments import ARGUMENTS
from flappybird.episodes.verify import verify
from flappybird.world.seeds import TRAINING_SEEDS
from tests.conftest import run_command, serving

vf = pytest.importorskip("verifiers.v1", reason="verifiers 0.3 or newer")
taskset = pytest.importorskip("flappybird.taskset")
harness = pytest.importorskip("flappybird.harness")

CLASSIC = pytest.mark.skipif(not hasattr(vf.Taskset, "head"), reason="verifiers 0.4 has no classic API")
NEW = hasattr(vf.Taskset, "take")
"""Whether this is release 0.4."""
OLD = not hasattr(vf.Task, "hash")
"""Whether this is release 0.3.0."""
EVAL = "vf-eval" if NEW else "eval"


def load(**args: Any) -> Any:
    return taskset.FlappyTaskset(taskset.FlappyTasksetConfig(id="flappybird", **args))


def first(tasks: Any, count: int) -> list[Any]:
    return list(tasks.take(count) if NEW else tasks.head(count))


def play_v1(url: str, model: str = "heuristic", index: int = 0, agent: dict[str, Any] | None = None, **args: Any) -> Any:
    """Return the library's episode of one game played in this process."""
    env = vf.load_environment(vf.resolve_env_config({"taskset": {"id": "flappybird", **args}, "agent": agent or {}}))
    task = first(env.taskset, index + 1)[index]
    client = vf.EvalClientConfig(base_url=url, api_key_var="FLAPPYBIRD_API_KEY")
    context = vf.ModelContext(model=model, client=client, sampling=vf.SamplingConfig())

    async def run() -> Any:
        async with env.serving():
            return await env.run_episode(task, context)

    return asyncio.run(run())


def play_classic(url: str, model: str, **args: Any) -> Any:
    """Return the row that the classic door makes of one game."""
    import verifiers as classic

    from flappybird import load_environment

    env = load_environment(num_examples=1, **args)
    client = classic.ClientConfig(api_base_url=url, api_key_var="FLAPPYBIRD_API_KEY")
    found = asyncio.run(env.evaluate(client=client, model=model, num_examples=1, rollouts_per_example=1))
    return found["outputs"][0]


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[str, Any]]]:
    """What the server is asked, call by call: role and content of every message."""
    calls: list[list[tuple[str, Any]]] = []
    answer = server.answer

    def listening(policy: str, options: Any, messages: list[Any], *more: Any) -> list[str]:
        calls.append([(message.role, message.content) for message in messages])
        return answer(policy, options, messages, *more)

    monkeypatch.setattr(server, "answer", listening)
    return calls


IMPOSSIBLE = {
    "gravity": -12.0,
    "jump_impulse": 15.0,
    "easy_gap_height": 2.0,
    "pipe_spawn_interval": 1,
    "gap_center_offset": 9.7,
}

# --- which games ----------------------------------------------------------------------------------------------------


def test_v1_takes_the_arguments_of_load_environment_and_a_split():
    own = {name for name in taskset.FlappyTasksetConfig.model_fields if name not in vf.TasksetConfig.model_fields}
    assert own == {*ARGUMENTS, "split"} - {"report"}
    default = taskset.FlappyTasksetConfig(id="flappybird").settings()
    assert default == taskset.Settings.of()


def test_D09_as_many_games_are_made_as_are_asked_for():
    assert [task.data.seed for task in load(num_examples=3, seed=5)] == [5, 6, 7]
    assert [task.data.seed for task in first(load(num_examples=3), 12)] == list(range(12))
    assert len(first(load(num_examples=3), 2)) == 2


def test_training_seeds_are_endless_and_meet_no_evaluation_seed():
    train = load(split="train")
    assert train.INFINITE
    assert [task.data.seed for task in first(train, 3)] == list(TRAINING_SEEDS[:3])
    with pytest.raises(ValueError, match="evaluation seeds must stay below"):
        load(seed=TRAINING_SEEDS.start)


def test_a_task_key_says_what_is_played_wherever_it_stands():
    (one,), (_, other) = first(load(seed=1), 1), first(load(seed=0), 2)
    assert one.key == other.key
    assert OLD or one.hash != other.hash  # which holds its place in the taskset
    assert one.with_system_prompt("Fly!").key == one.key
    assert first(load(seed=1, config_overrides={"gravity": -0.25}), 1)[0].key != one.key
    assert len({task.key for task in first(load(), 50)}) == 50


def test_a_task_survives_the_way_to_a_worker():
    for args in ({}, {"config_overrides": {"gravity": -0.25}, "history_turns": 4, "realtime": True, "observation": "signed"}):
        (task,) = first(load(**args), 1)
        again = taskset.FlappyData.model_validate(json.loads(json.dumps(task.data.model_dump(mode="json"))))
        assert again == task.data
        assert taskset.FlappyTask(again).key == task.key


BAD = [
    ({"max_turns": 0}, "max_turns = 0"),
    ({"config_overrides": {"gravty": -0.3}}, "did you mean 'gravity'"),
    ({"observation": "cards"}, "observation"),
    ({"history_turns": -2}, "history_turns = -2"),
    ({"max_turns": True}, "max_turns = True"),
    ({"max_turns": "300.0"}, "max_turns = '300.0'"),
    ({"turn_reward": 1}, "turn_reward = 1: must be true or false"),
    ({"num_examples": 2.0}, "num_examples = 2.0"),
    ({"config": {1: 2}}, "config: 1 is not a field"),
    ({"config": IMPOSSIBLE}, "10 of 10 seeds .* cannot be flown to tick 300 by any bird"),
    ({"config_overrides": {"gravity": float("nan")}}, "gravity"),
]


@pytest.mark.parametrize(("args", "told"), BAD)
def test_a_bad_argument_is_refused_by_name(args, told):
    with pytest.raises(ValueError, match=told):
        load(**args)


@CLASSIC
@pytest.mark.parametrize(("args", "told"), BAD)
def test_the_classic_door_refuses_the_same(args, told):
    from flappybird import load_environment

    with pytest.raises(ValueError, match=told):
        load_environment(**args)


def test_who_insists_plays_courses_that_no_bird_can_fly():
    assert len(list(load(config=IMPOSSIBLE, allow_impossible=True, num_examples=2).load())) == 2
    with pytest.raises(ValueError, match="must be true or false"):
        load(config=IMPOSSIBLE, allow_impossible=1)


def test_the_command_line_knows_only_text_and_null_stands_for_the_default():
    plain = load(max_turns=40, turn_reward=True, realtime=2.5, history_turns=-1).settings
    assert load(max_turns="40", turn_reward="true", realtime="2.5", history_turns="-1").settings == plain
    nothing = dict.fromkeys(set(ARGUMENTS) - {"report"})
    assert load(**nothing).settings == load().settings == taskset.Settings.of(**nothing)


# --- one rollout ----------------------------------------------------------------------------------------------------


def test_an_episode_stands_in_the_trace_and_its_scores_are_those_of_the_trace(policy_server):
    played = play_v1(policy_server, "planner", max_turns=88)
    (trace,) = played.traces
    episode = taskset.episode_of(trace)
    assert played.ok
    assert verify(episode) == []
    assert trace.stop_condition == "tick_limit_reached"
    assert trace.reward == pytest.approx(rewards.reward(episode))
    assert {name: reward.score for name, reward in trace.rewards.items()} == {
        "flappy_reward_func": episode.outcome.pipes_passed,
        "flappy_survival_reward": episode.outcome.survival_score,
        "format_reward_func": 1.0,
    }
    assert trace.metrics == {metric.__name__: metric(episode) for metric in rewards.ALL_METRICS}
    assert trace.metrics["pipes_passed"] > 0
    assert len(episode.turns) == trace.num_turns == 88
    assert trace.num_branches == 1


def test_D02_the_last_action_before_a_limit_on_turns_is_applied(policy_server):
    for limit in (1, 2, 5):
        played = play_v1(policy_server, "planner", agent={"max_turns": limit})
        (trace,) = played.traces
        assert trace.num_turns == taskset.episode_of(trace).outcome.ticks == limit
        assert trace.metrics["ticks"] == limit


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"seed": 7, "config_overrides": {"gravity": -0.25, "easy_gap_height": 7.0}},
        {"history_turns": 4},
        {"history_turns": -1},
        {"history_turns": -1, "ticks_per_turn": 4},
        {"ticks_per_turn": 5, "history_turns": 3},
        {"latency_ticks": 1},
        {"observation": "signed"},
        {"observation": "ascii"},
        {"stop_on_malformed": 3, "turn_reward": True},
    ],
    ids=lambda args: "+".join(args) or "defaults",
)
@CLASSIC
def test_both_doors_send_the_same_messages_and_make_the_same_episode(args, policy_server, heard):
    args = {"max_turns": 60, **args}
    model = "heuristic:malformed=0.2,seed=3"
    row = play_classic(policy_server, model, **args)
    in_classic = list(heard)
    heard.clear()
    (trace,) = play_v1(policy_server, model, **args).traces

    assert len(heard) > 1
    assert json.dumps(heard) == json.dumps(in_classic)

    saved = json.loads(json.dumps(row, default=lambda message: message.model_dump()))
    found = runs.run_of_outputs([saved], {"model": model}, Path("run")).rows[0]
    assert runs.check(found) == []
    classic = found.episode
    assert classic is not None, found.problem
    one, other = classic.to_dict(), taskset.episode_of(trace).to_dict()
    assert one["outcome"]["reason"] in {"tick_limit", "floor", "pipe", "ceiling", "malformed"}
    for episode in (one, other):
        episode.pop("origin")
        assert all(turn.pop("seconds") >= 0 for turn in episode["turns"])
    assert json.dumps(one) == json.dumps(other)

    assert row["reward"] == pytest.approx(trace.reward, abs=1e-12)
    scores = {name: reward.score for name, reward in trace.rewards.items()} | trace.metrics
    assert scores == {name: row["metrics"][name] for name in scores}
    assert set(row["metrics"]) == {*scores, "num_turns"}
    if "turn_reward" in args:
        assert trace.info["turn_rewards"] == pytest.approx(rewards.turn_rewards(classic))
        assert sum(trace.info["turn_rewards"]) == pytest.approx(trace.reward)


def test_a_window_of_history_keeps_a_stable_prefix(policy_server, heard):
    (trace,) = play_v1(policy_server, "planner", max_turns=40, history_turns=5).traces
    shown = [(len(messages) - 2) // 2 for messages in heard]
    assert shown == [turn if turn < 10 else 5 + turn % 5 for turn in range(40)]
    assert trace.num_branches == 7  # one for each cut, and one to begin with
    assert len(trace.assistant_messages) == trace.num_turns == 40
    for before, after in itertools.pairwise(heard):
        assert after[: len(before)] == before or len(after) <= len(before)
        assert after[0] == before[0]


def test_an_empty_reply_is_a_turn_and_a_dead_server_an_error(monkeypatch):
    monkeypatch.setattr(server, "answer", lambda *_: [""])
    monkeypatch.setattr(harness, "RETRIES", 0)
    with serving() as url:
        (trace,) = play_v1(url, max_turns=4).traces
        assert trace.ok
        assert trace.metrics["invalid_actions"] == 4
        assert [turn.status.value for turn in taskset.episode_of(trace).turns] == ["empty"] * 4
    played = play_v1(url, max_turns=4)
    (trace,) = played.traces
    assert not played.ok
    assert taskset.episode_of(trace).outcome.reason.value == "error"
    assert not trace.metrics or set(trace.metrics.values()) == {None}


def test_D12_a_call_that_fails_for_a_passing_reason_is_made_again(monkeypatch):
    answered = []
    answer = server.answer

    def flaky(*args: Any) -> list[str]:
        answered.append(args)
        if len(answered) == 2:
            raise RuntimeError("overloaded")
        return answer(*args)

    monkeypatch.setattr(server, "answer", flaky)
    monkeypatch.setattr(harness, "BACKOFF", 0.0)
    with serving() as url:
        (trace,) = play_v1(url, max_turns=4).traces
    assert trace.ok
    assert trace.num_turns == 4
    assert len(answered) == 5
    assert trace.num_branches == 1


def test_D11_rollouts_at_once_are_the_rollouts_one_by_one(policy_server):
    env = vf.load_environment(vf.resolve_env_config({"taskset": {"id": "flappybird", "max_turns": 15}}))
    client = vf.EvalClientConfig(base_url=policy_server, api_key_var="FLAPPYBIRD_API_KEY")
    context = vf.ModelContext(model="heuristic", client=client, sampling=vf.SamplingConfig())
    tasks = first(env.taskset, 3) * 2

    async def run(at_once: int) -> list[Any]:
        gate = asyncio.Semaphore(at_once)
        async with env.serving():
            slots = [slot for task in tasks for slot in env.slots(task)]
            return await asyncio.gather(*(env.run_slot(slot, context, gate) for slot in slots))

    def flown(episodes: list[Any]) -> list[Any]:
        return [[turn.taps for turn in taskset.episode_of(episode.traces[0]).turns] for episode in episodes]

    together, alone = flown(asyncio.run(run(6))), flown(asyncio.run(run(1)))
    assert together == alone
    assert together[:3] == together[3:]


def test_validation_finds_a_prompt_that_lies_and_a_course_that_nobody_can_fly():
    (task,) = first(load(max_turns=120), 1)
    assert asyncio.run(task.validate(None)) is True
    liar = task.with_system_prompt(task.data.system_prompt.replace("gravity=-0.30", "gravity=-0.25"))
    with pytest.raises(ValueError, match="the system prompt states"):
        asyncio.run(liar.validate(None))
    narrow = {"easy_gap_height": 0.5, "base_gap_height": 0.5, "gap_center_offset": 8.0, "pipe_width": 9.0}
    (task,) = first(load(max_turns=200, config_overrides=narrow, allow_impossible=True), 1)
    with pytest.raises(ValueError, match="no bird can live 200 ticks"):
        asyncio.run(task.validate(None))


def test_a_reply_that_differs_from_the_episode_is_found(policy_server, tmp_path):
    played = play_v1(policy_server, "planner", max_turns=5)
    line = played.model_dump(mode="json")
    line["traces"][0]["nodes"][-1]["message"]["content"] = "<THINK>no</THINK><ACTIONS>[TAP]</ACTIONS>"
    (tmp_path / "traces.jsonl").write_text(json.dumps(line) + "\n{half a line", encoding="utf-8")
    run = runs.load_run(tmp_path)
    assert run.kind == "v1"
    assert run.damaged == 1
    assert [str(difference).split(" is ")[0] for difference in runs.check(run.rows[0])] == ["tick 4: turns[4].reply"]


# --- the real commands ------------------------------------------------------------------------------------------------


RUN = () if OLD else ("--run.name", "run")


def evaluate(url: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    output = folder / "run" if OLD else folder
    command = [EVAL, "flappybird", "--no-push", "--no-rich", "--client.base-url", url, "-o", str(output), *words]
    return run_command(*command, cwd=folder)


@pytest.fixture(scope="module")
def evaluated(policy_server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of the real command: 3 games of 30 ticks, through the library's pool of workers."""
    folder = tmp_path_factory.mktemp("v1")
    done = evaluate(policy_server, folder, "-m", "planner", "-n", "3", "--env.taskset.max-turns", "30", *RUN)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / "run"


def test_the_real_command_plays_and_what_it_saves_is_read_and_verified(evaluated):
    run = runs.load_run(evaluated)
    assert (run.kind, run.model, run.asked, run.damaged, run.notes) == ("v1", "planner", 3, 0, [])
    assert run.versions["verifiers"].startswith("0.4" if NEW else "0.3")
    assert run.env_args["max_turns"] == 30
    assert [row.example for row in run.rows] == [0, 1, 2]
    for row in run.rows:
        assert row.error is None
        assert row.episode is not None
        assert runs.check(row) == []
        assert row.claims["reward"] == pytest.approx(row.episode.outcome.reward)
        assert row.usage["prompt_tokens"] > row.usage["completion_tokens"] > 0
    assert runs.load_run(evaluated / "traces.jsonl").rows == run.rows


def test_an_episode_of_a_v1_run_is_an_episode_file_like_any_other(evaluated, tmp_path):
    done = run_command("flappybird", "episodes", str(evaluated), "-o", str(tmp_path / "episodes"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run_command("flappybird", "verify", str(tmp_path / "episodes"), str(evaluated), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("3 of 3 verified") == 2


def test_replaying_a_run_gives_the_same_scores(evaluated, tmp_path):
    command = ["vf-replay" if NEW else "replay", str(evaluated), "--rich", "false", "-o", str(tmp_path / "again")]
    done = run_command(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    before, after = runs.load_run(evaluated), runs.load_run(tmp_path / "again")
    assert sorted(str(row.claims) for row in after.rows) == sorted(str(row.claims) for row in before.rows)
    assert len(after.rows) == 3


def test_a_resumed_run_plays_only_what_is_missing(evaluated, policy_server, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(evaluated, folder, symlinks=True)
    lines = (folder / "traces.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "traces.jsonl").write_text("".join(lines[:2]) + lines[2][:500], encoding="utf-8")
    if OLD:
        words = ["--resume", str(folder)]
    else:
        config = folder / "configs/resolved/eval.json"
        saved = json.loads(config.read_text(encoding="utf-8"))
        config.write_text(json.dumps({**saved, "output_dir": str(tmp_path)}), encoding="utf-8")
        words = ["@", str(config), "--resume"]
    done = run_command(EVAL, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    run = runs.load_run(folder)
    assert [row.example for row in run.rows] == [0, 1, 2]
    assert all(runs.check(row) == [] for row in run.rows)
    kept = (folder / "traces.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    assert set(lines[:2]) <= set(kept)


def test_the_real_validate_checks_the_seeds(tmp_path):
    command = ["vf-validate" if NEW else "validate", "flappybird", "-n", "2", "--only-gold", "--runtime.type", "subprocess"]
    done = run_command(*command, "--rich", "false", "-o", str(tmp_path / "out"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    (summary,) = (tmp_path / "out").rglob("summary.json")
    assert json.loads(summary.read_text(encoding="utf-8"))["outcomes"]["valid"] == 2


# --- loading ---------------------------------------------------------------------------------------------------------


def python(code: str) -> str:
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240, env=env)
    return done.stdout.strip()


def test_looking_at_every_public_name_loads_no_classic_api():
    code = (
        "import flappybird, sys; [getattr(flappybird, name) for name in flappybird.__all__];"
        "print('flappybird.classic' in sys.modules, 'datasets' in sys.modules)"
    )
    assert python(code) == "False False"


def test_the_library_finds_exactly_one_taskset_environment_and_harness():
    import flappybird

    found = [getattr(flappybird, name) for name in flappybird.__all__]
    for kind in (vf.Taskset, vf.Env, vf.Harness):
        assert sum(isinstance(value, type) and issubclass(value, kind) for value in found) == 1
    assert vf.environment_class("flappybird") is flappybird.FlappyTaskEnv
    assert vf.default_harness_id("flappybird") == "flappybird"
    assert not flappybird.FlappyHarness.EXECUTES_CODE


def test_a_fault_while_a_class_is_loaded_is_no_missing_attribute():
    code = (
        "import sys, types; fake = types.ModuleType('flappybird.taskset'); sys.modules['flappybird.taskset'] = fake\n"
        "import flappybird\n"
        "try: flappybird.FlappyTaskset\n"
        "except ImportError as error: print(type(error).__name__)"
    )
    assert python(code) == "ImportError"


@pytest.mark.skipif(not NEW, reason="verifiers 0.3 has a classic API")
def test_D01_without_the_classic_api_one_line_says_which_release_has_it():
    code = "import flappybird\ntry: flappybird.load_environment()\nexcept ImportError as error: print(error)"
    told = python(code)
    assert "verifiers 0.4" in told
    assert "the extra [classic] brings it" in told
    assert "\n" not in told


def test_without_verifiers_one_line_says_which_release_brings_v1():
    code = (
        "import sys; sys.modules['verifiers'] = None; sys.modules['verifiers.v1'] = None\n"
        "import flappybird; flappybird.FlappyGame\n"
        "try: flappybird.FlappyTaskset\n"
        "except ImportError as error: print(error)"
    )
    told = python(code)
    assert "release 0.3 or newer" in told
    assert "\n" not in told
