"""Servers that fail: what broke is told as broken, never as a score, and `--resume` plays exactly what is missing."""

import asyncio
import json
import logging
from pathlib import Path

import pytest

pytest.importorskip("verifiers.envs.environment", reason="the classic API of verifiers is not installed")

from verifiers.types import ClientConfig
from verifiers.utils.save_utils import make_serializable

import flappybird
from flappybird.errors import ConfigError
from flappybird.runs import check, load_run, run_of_outputs
from flappybird.runs.resume import ERRORED, set_errors_aside
from flappybird.world.game import Reason
from tests.trust.faults import WRONG, FaultProxy, always, once

TURNS = 6


def play(url, folder=None, n=3, turns=TURNS, retries=0, timeout=20.0, **more):
    """Play `n` games of the heuristic; return the run, read back from `folder` where it is saved there."""
    logging.getLogger("verifiers").setLevel(logging.CRITICAL)
    env = flappybird.load_environment(max_turns=turns)
    env.env_id = "flappybird"
    env.env_args = {"max_turns": turns}
    client = ClientConfig(api_base_url=url, api_key_var="FLAPPYBIRD_API_KEY", max_retries=retries, timeout=timeout)
    saving = {} if folder is None else {"results_path": folder, "save_results": True}
    results = asyncio.run(
        env.evaluate(
            client=client,
            model="heuristic",
            num_examples=n,
            rollouts_per_example=1,
            on_start=_quiet,
            on_progress=_quiet,
            **saving,
            **more,
        )
    )
    rows = [json.loads(json.dumps(row, default=make_serializable)) for row in results["outputs"]]
    run = load_run(folder) if folder else None
    return run or run_of_outputs(rows, {"model": "heuristic"}, folder or Path("run"))


def _quiet(*_):
    """Instead of a progress bar."""


def essence(run):
    """What of a run does not depend on the clock."""
    return [
        (
            row.example,
            row.rollout,
            row.error,
            row.claims,
            [(turn.reply, turn.status) for turn in row.episode.turns],
            row.episode.outcome,
        )
        for row in run.rows
    ]


@pytest.mark.parametrize("fault", [500, 503, 429, 404, "reset", "half", *WRONG])
def test_a_reply_that_never_came_is_an_error_of_its_rollout_and_never_a_score(policy_server, fault):
    with FaultProxy(policy_server, once(fault)) as url:
        run = play(url)
    (broken,) = [row for row in run.rows if row.error]
    assert (broken.episode.outcome.reason, broken.episode.outcome.ticks) == (Reason.ERROR, 2)
    assert "\n" not in broken.error
    assert [row.episode.outcome.ticks for row in run.rows if not row.error] == [TURNS, TURNS]
    assert all(check(row) == [] for row in run.rows)


def test_a_server_that_stalls_is_given_up_after_the_clients_time(policy_server):
    with FaultProxy(policy_server, once("stall")) as url:
        run = play(url, timeout=1.0)
    assert [row.error is not None for row in run.rows].count(True) == 1


@pytest.mark.parametrize("fault", ["429 0", "503 0", "reset", "half"])
def test_a_fault_that_passes_costs_nothing(policy_server, fault):
    proxy = FaultProxy(policy_server, once(fault))
    with proxy as url:
        run = play(url, retries=2)
    assert essence(run) == essence(play(policy_server))
    assert len(proxy.asked) == 3 * TURNS + 1


def test_a_context_that_is_full_from_some_turn_on_ends_rollouts_and_is_no_crash(policy_server):
    with FaultProxy(policy_server, always("context", at=4)) as url:
        run = play(url)
    for row in run.rows:
        assert (row.error, row.episode.outcome.reason, row.episode.outcome.ticks) == (None, Reason.CONTEXT, 4)
        assert check(row) == []


def test_a_whole_evaluation_without_a_server_is_all_errors_and_no_score(policy_server):
    with FaultProxy(policy_server, always(500, at=0)) as url:
        run = play(url)
    assert [row.error is not None for row in run.rows] == [True] * 3
    assert all(row.episode is None or not row.episode.turns for row in run.rows)


# --- going on afterwards ---


@pytest.mark.parametrize("fault", [500, "half", "choices null"])
def test_D10_resuming_plays_what_broke_again_and_nothing_twice(policy_server, tmp_path, fault):
    with FaultProxy(policy_server, lambda turn: fault if turn == 3 and len(broke) < 2 and not broke.append(1) else None) as url:
        broke: list[int] = []
        first = play(url, tmp_path / "run", n=5)
    assert [row.error is not None for row in first.rows].count(True) == 2
    assert len(first.rows) == 5
    lines = (tmp_path / "run" / "results.jsonl").read_bytes().splitlines(keepends=True)
    errored = [line for line in lines if json.loads(line)["error"]]

    proxy = FaultProxy(policy_server, lambda turn: None)
    with proxy as url:
        resumed = play(url, tmp_path / "run", n=5)
    assert len(proxy.asked) == 2 * TURNS  # exactly the two that were missing
    undisturbed = play(policy_server, tmp_path / "other", n=5)
    assert essence(resumed) == essence(undisturbed)
    averages = [json.loads((tmp_path / name / "metadata.json").read_text())["avg_reward"] for name in ("run", "other")]
    assert averages[0] == averages[1]
    # The rows that broke are kept beside the run, word for word.
    assert (tmp_path / "run" / ERRORED).read_bytes().splitlines(keepends=True) == errored

    with FaultProxy(policy_server, always(500, at=0)) as url:  # nothing is left to ask for
        assert essence(play(url, tmp_path / "run", n=5)) == essence(undisturbed)


@pytest.mark.parametrize("status", [401, 403])
def test_D10_a_key_that_is_refused_from_some_moment_on_costs_no_finished_episode(policy_server, tmp_path, status):
    # Asking on makes no sense then: the library ends the evaluation. What was finished stands, and resuming plays the rest.
    begun: list[int] = []

    def refused(turn):
        begun.extend([1] * (turn == 0))
        return status if len(begun) > 3 else None

    with FaultProxy(policy_server, refused) as url, pytest.raises(Exception, match=f"told {status}"):
        play(url, tmp_path / "run", n=6, max_concurrent=1)
    finished = load_run(tmp_path / "run")
    assert [row.example for row in finished.rows] == [0, 1, 2]
    assert all(row.error is None and check(row) == [] for row in finished.rows)

    proxy = FaultProxy(policy_server, lambda turn: None)
    with proxy as url:
        resumed = play(url, tmp_path / "run", n=6)
    assert len(proxy.asked) == 3 * TURNS
    assert essence(resumed) == essence(play(policy_server, tmp_path / "other", n=6))


def test_D10_a_run_may_break_again_while_it_is_resumed(policy_server, tmp_path):
    for _ in range(3):
        with FaultProxy(policy_server, once(500)) as url:
            run = play(url, tmp_path / "run")
        assert [row.error is not None for row in run.rows].count(True) == 1
    resumed = play(policy_server, tmp_path / "run")
    assert essence(resumed) == essence(play(policy_server))
    assert len((tmp_path / "run" / ERRORED).read_text(encoding="utf-8").splitlines()) == 3


def test_rows_are_set_aside_once_however_often_the_process_dies_in_between(tmp_path, monkeypatch):
    from flappybird.runs import resume

    good, bad = '{"example_id": 0, "error": null}\n', '{"example_id": 1, "error": "it broke"}\n'
    late = '{"example_id": 2, "error": null, "stop_condition": "timeout_reached"}'
    results = tmp_path / "results.jsonl"
    results.write_text(good + '{"half a li\n' + bad + late, encoding="utf-8")
    before, write = results.read_bytes(), resume.write_bytes

    def dies_before_the_second(path, data):
        if path == results:
            raise KeyboardInterrupt
        write(path, data)

    monkeypatch.setattr(resume, "write_bytes", dies_before_the_second)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            set_errors_aside(tmp_path)
        assert results.read_bytes() == before
    monkeypatch.undo()
    assert set_errors_aside(tmp_path) == 2
    assert results.read_text(encoding="utf-8") == good + '{"half a li\n'
    assert (tmp_path / ERRORED).read_text(encoding="utf-8") == bad + late + "\n"
    assert set_errors_aside(tmp_path) == 0


@pytest.mark.parametrize("metadata", ["{", "[]", '"x"', '{"env_args": 7}', '{"env_args": {"max_turn": 1}}'])
def test_D10_a_run_with_damaged_metadata_is_not_resumed(policy_server, tmp_path, metadata):
    (tmp_path / "results.jsonl").write_text("", encoding="utf-8")
    (tmp_path / "metadata.json").write_text(metadata, encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot resume") as caught:
        play(policy_server, tmp_path)
    assert "\n" not in str(caught.value)


def test_a_rollout_that_is_retried_is_counted_once(policy_server):
    with FaultProxy(policy_server, once("choices empty")) as url:
        run = play(url, max_retries=1)
    assert essence(run) == essence(play(policy_server))
