"""Verified means verified: whatever is edited in a real row is found, except what `runs.check` says cannot be."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from flappybird.cli import main
from flappybird.runs import Run, check, check_run, load_run, run_of_outputs
from tests.conftest import scripted, serving, turn_of
from tests.runs.test_load import METADATA, saved_row, write_run

vf = pytest.importorskip("verifiers")

TURNS = 6


def faults(run: Run) -> list[str]:
    """Everything that `verify` would say of a run."""
    rows = [str(row.problem) if row.episode is None else str(fault) for row in run.rows for fault in check(row) or [row.problem]]
    return [line for line in rows if line != "None"] + check_run(run) + [f"{run.missing} missing"] * bool(run.missing)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Yield the path of every leaf of a JSON value, with what puts another value into a copy of it; `path!` leaves it out."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        where = f"{path}.{key}" if path else str(key)
        if isinstance(item, dict | list) and item:
            for below, change in leaves(item, where):
                yield below, lambda whole, key=key, change=change: change(whole[key])
        else:
            for number, other in enumerate(others(item)):
                yield f"{where}={number}", lambda whole, key=key, other=other: whole.__setitem__(key, other)
        if isinstance(value, dict):
            yield f"{where}!", lambda whole, key=key: whole.pop(key)


def others(value: Any) -> list[Any]:
    """Values that somebody might write in place of `value`."""
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int | float):
        return [value + 1, float("nan"), float("inf"), None, str(value), 10**400]
    if isinstance(value, str):
        return [value + "x", "", None]
    return ["edited"]


def edited(row: Any, unseen: list[str]) -> Iterator[tuple[str, Any]]:
    """Yield every edit of a row that must be found: its path, and the row that it makes."""
    for path, change in leaves(row):
        if not any(re.match(pattern, path) for pattern in unseen):
            other = copy.deepcopy(row)
            change(other)
            yield path, other


# --- the classic door ---

UNSEEN = [
    r"timing",  # when and how long
    r"token_usage",
    r"is_completed",  # of the library
    r"is_truncated",
    r"tool_defs",
    r"answer",
    r"info\.turns\.\d+\.(prompt_tokens|completion_tokens|seconds)(=|!)",
    r"completion\.\d+\.(content|reasoning_content)=0$",  # a word more, where it changes nothing of how the reply is read
    r"error(=|!)",  # found by the averages, see below
    r"info\.(rules|config)\.\w+(!|=3)$",  # what is left out, or null, is the default
]
"""What nothing in a row can tell; a reason each where the name does not say it."""


@pytest.fixture(scope="module")
def outputs() -> list[dict[str, Any]]:
    """Two rows of the classic door: one that is alive at the limit, one with replies of every kind."""
    pytest.importorskip("flappybird.classic")
    from tests.test_classic import evaluate

    said = ["<THINK>a</THINK><ACTIONS>[TAP]</ACTIONS>", "prose", {"content": "<ACTIONS>[]</ACTIONS>", "reasoning_content": "b"}]
    with scripted(lambda body: said[turn_of(body) % 3]) as url:
        return evaluate(url, "m", n=2, max_turns=TURNS)


def about(outputs: list[dict[str, Any]]) -> dict[str, Any]:
    """The metadata that the library saves beside them."""
    names = outputs[0]["metrics"]
    return {
        **METADATA,
        "env_args": {"max_turns": TURNS},
        "num_examples": len(outputs),
        "avg_reward": sum(row["reward"] for row in outputs) / len(outputs),
        "avg_error": 0.0,
        "avg_metrics": {name: sum(row["metrics"][name] for row in outputs) / len(outputs) for name in names},
    }


def test_real_rows_of_the_classic_door_are_verified(outputs):
    assert faults(run_of_outputs(outputs, about(outputs), Path("run"))) == []


def test_every_edit_of_a_classic_row_is_found(outputs):
    metadata = about(outputs)
    tried, missed = 0, []
    for path, row in edited(outputs[1], UNSEEN):
        tried += 1
        if not faults(run_of_outputs([outputs[0], row], metadata, Path("run"))):
            missed.append(path)
    assert not missed, missed
    assert tried > 300


def test_every_edit_of_the_averages_is_found(outputs):
    metadata = about(outputs)
    unseen = [
        "(?!avg_|num_examples|rollouts_per_example|version_info.env)",
        "num_examples(!|=[1-5])",
        "rollouts_per_example(!|=[1-5])",
    ]
    unseen.append("version_info.env_version(=2|!)")  # a run without metadata has none either
    missed = [path for path, other in edited(metadata, unseen) if not faults(run_of_outputs(outputs, other, Path("run")))]
    assert not missed, missed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda row: row["completion"].append({"role": "user", "content": "<FLAPPY id=6>"}), "must be 'no more'"),
        (
            lambda row: row["completion"].insert(1, {"role": "system", "content": "Always flap."}),
            "role is 'system', must be 'user'",
        ),
        (lambda row: row["completion"].insert(1, {"role": "tool", "content": "x"}), "role is 'tool', must be 'user'"),
        (
            lambda row: row["prompt"][0].update(content=row["prompt"][0]["content"].replace("gravity=-0.30", "gravity=-0.20")),
            "system_prompt is ",
        ),
        (lambda row: row.update(reward="99"), "reward is '99', must be 'a finite number'"),
        (lambda row: row.pop("reward"), "reward is 'missing'"),
        (lambda row: row.update(metrics={}), "ticks is 'missing'"),
        (lambda row: row.update(pipes_passed=9.0), "column pipes_passed is 9.0"),
        (lambda row: row.update(stop_condition="crashed"), "stop_condition is 'crashed', replay gives 'tick_limit_reached'"),
        (lambda row: row.update(error={"error": "x", "error_chain_repr": "x"}), "avg_error is 0.0, the rows give 0.5"),
        (lambda row: row.update(example_id=7), "but plays seed 1"),
        (lambda row: row["info"]["rules"].update(max_turns=7), "info.rules"),
    ],
)
def test_each_kind_of_edit_is_named(outputs, change, said):
    row = copy.deepcopy(outputs[1])
    change(row)
    assert any(said in line for line in faults(run_of_outputs([outputs[0], row], about(outputs), Path("run")))), said


# --- v1 ---

UNSEEN_V1 = [
    r"(traces\.0\.)?(id|env|run|version|verifiers|agent|tools|calls|mm_token|request_|response_|extra_usage|is_completed|timing)",
    r"(traces\.0\.)?task\.(type|key|hash)",
    r"(traces\.0\.)?task\.data\.(name|prompt|network|artifacts|timeout|resources)",
    r"(traces\.0\.)?task\.data\.(config|rules)\.\w+(!|=3)$",  # what is left out, or null, is the default
    r"ok",  # of the whole episode, whose traces say it too
    r"errors",
    r"traces\.0\.nodes\.\d+\.(timestamp|token_ids|mask|is_content|logprobs|sampled(=0|=1|!)$)",
    r"traces\.0\.info\.episode\.(player|origin|turns\.\d+\.(prompt_tokens|completion_tokens|seconds))",
    r"traces\.0\.info\.episode\.(config|rules)\.\w+(!|=3)$",
    r"traces\.0\.errors",  # the words of an error, and none where there was none
    r"traces\.0\.info\.(ending(!|=2)|turn_rewards!)",  # a run of an older release has none
    r"traces\.0\.info\.episode(!|\.(version|physics)!)",
    r"traces!",
]


@pytest.fixture(scope="module")
def traced() -> dict[str, Any]:
    """A line of `traces.jsonl` of the v1 door, with rewards by turn."""
    pytest.importorskip("flappybird.taskset")
    from tests.test_taskset import play_v1

    with serving() as url:
        played = play_v1(url, "heuristic", max_turns=TURNS, turn_reward=True, history_turns=2)
    line: dict[str, Any] = json.loads(json.dumps(played.model_dump(mode="json", exclude_none=True)))
    return line


def v1_run(folder: Path, *lines: dict[str, Any]) -> Run:
    folder.mkdir(exist_ok=True)
    (folder / "traces.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (folder / "configs").mkdir(exist_ok=True)
    config = {"env": {"taskset": {"seed": 0}}, "num_tasks": 1, "num_rollouts": len(lines), "model": "m"}
    (folder / "configs" / "eval.json").write_text(json.dumps(config), encoding="utf-8")
    return load_run(folder)


def test_a_real_trace_is_verified(traced, tmp_path):
    assert faults(v1_run(tmp_path, traced)) == []


def test_every_edit_of_a_trace_is_found(traced, tmp_path):
    tried, missed = 0, []
    for path, line in edited(traced, UNSEEN_V1):
        tried += 1
        if not faults(v1_run(tmp_path, line)):
            missed.append(path)
    assert not missed, missed
    assert tried > 300


def extra_node(line: dict[str, Any]) -> None:
    nodes = line["traces"][0]["nodes"]
    nodes.append({**copy.deepcopy(nodes[-1]), "parent": len(nodes) - 1})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda line: line["traces"][0]["task"]["data"].update(seed=5), "traces.task.data.seed is 5, must be 0"),
        (lambda line: line["task"]["data"]["config"].update(gravity=-0.2), "task.data.config"),
        (extra_node, "is 'a reply', must be 'no more than 6 replies'"),
        (lambda line: line["traces"][0]["nodes"].append({"message": {"role": "user", "content": "x"}}), "must be 'no message'"),
        (lambda line: line["traces"][0]["rewards"]["format_reward_func"].update(weight=9.0), "weight is 9.0, must be 0.2"),
    ],
)
def test_each_kind_of_edit_of_a_trace_is_named(traced, tmp_path, change, said):
    line = copy.deepcopy(traced)
    change(line)
    found = faults(v1_run(tmp_path, line))
    assert any(said in fault for fault in found), found


# --- a run as a whole ---


def test_rows_beyond_those_asked_for_and_copies_are_named(tmp_path, capsys):
    rows = [saved_row(0), saved_row(1)]
    later = {**copy.deepcopy(rows[0]), "timing": {"start_time": 1_790_000_099.0}}
    run = write_run(tmp_path / "r", [*rows, later, rows[1]], metadata={**METADATA, "num_examples": 2})
    assert main(["verify", str(run)]) == 1
    out = capsys.readouterr().out
    assert f"{run}: row 3 is a copy of row 2" in out
    assert f"{run}: row 1 is rollout 2 of example 0, of which 1 were asked for" in out


def test_a_run_with_rows_missing_is_not_verified_even_where_others_are_surplus(tmp_path, capsys):
    later = {**saved_row(0), "timing": {"start_time": 1_790_000_099.0}}
    run = write_run(tmp_path / "r", [saved_row(0), later], metadata={**METADATA, "num_examples": 2})
    assert main(["verify", str(run)]) == 1
    assert "1 of 2 asked for are missing" in capsys.readouterr().out


@pytest.mark.parametrize(
    "path", ["reward", "metrics.ticks", "timing.start_time", "token_usage.input_tokens", "example_id", "ticks"]
)
def test_one_number_of_400_digits_spoils_nothing_else(tmp_path, path, capsys):
    row = saved_row(1)
    *folders, last = path.split(".")
    place = row
    for folder in folders:
        place = place[folder]
    place[last] = 10**400
    run = write_run(tmp_path / "r", [saved_row(0), row])
    for command in (
        ["verify", run],
        ["episodes", run, "-o", tmp_path / "e"],
        ["report", run, "--json"],
        ["report", run, "--text"],
    ):
        assert main([str(word) for word in command]) in (0, 1)
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    assert "2 of 2 episodes written" in out
    if path in ("reward", "metrics.ticks", "ticks"):
        assert re.search(r"1 of 2 verified", out)


def test_a_number_of_9000_digits_is_a_bad_number_and_no_damaged_line(tmp_path):
    line = json.dumps(saved_row(1)).replace('"input_tokens": 100.0', f'"input_tokens": {"9" * 9_000}')
    run = load_run(write_run(tmp_path, [line]))
    assert (run.damaged, len(run.rows), run.rows[0].usage) == (0, 1, {"completion_tokens": 10.0})


def test_an_error_that_was_taken_out_of_a_row_is_found(outputs):
    row = copy.deepcopy(outputs[0])
    row["info"]["outcome"].update(reason="error", error="it broke")
    row["stop_condition"] = "has_error"
    assert any("error is None" in fault for fault in faults(run_of_outputs([row], {}, Path("run"))))


@pytest.mark.parametrize("reward", [1.7e308, -1.7e308, 1e16, float("inf"), float("nan")])
def test_a_reward_that_no_game_can_give_is_a_bad_number_and_the_rest_is_read(outputs, tmp_path, capsys, reward):
    rows = [copy.deepcopy(row) | {"reward": reward} for row in outputs]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row, default=str) + "\n" for row in rows), encoding="utf-8")
    assert main(["verify", str(tmp_path)]) == 1
    assert "reward" in capsys.readouterr().out
    for form in ("--text", "--json"):
        assert main(["report", str(tmp_path), form]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "1.7e+308" not in said.out.split("differs first")[0]
