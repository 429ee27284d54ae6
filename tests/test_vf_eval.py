"""The real `vf-eval` command, against real servers. Starting it takes seconds, so each run asserts a lot."""

import json
import signal
import socket
import time
from collections import Counter
from pathlib import Path

import pytest

from flappybird import load_environment
from flappybird.errors import ConfigError
from flappybird.runs import check, load_run
from flappybird.runs.resume import refuse_to_mix
from tests import readme
from tests.conftest import run_command, scripted, started, turn_of

vf = pytest.importorskip("verifiers")
if not hasattr(vf, "MultiTurnEnv"):
    pytest.skip("this release of verifiers has no classic API", allow_module_level=True)

NOOP = "<THINK>down</THINK><ACTIONS>[]</ACTIONS>"
CARD_ARGS = {"max_turns": 500, "config_overrides": {"easy_gap_height": 7.0, "gravity": -0.25}}


def endpoints(folder: Path, url: str, *models: str) -> None:
    """Write configs/endpoints.toml so that `-m NAME` reaches a server of ours."""
    (folder / "configs").mkdir(exist_ok=True)
    entries = [f'[[endpoint]]\nendpoint_id = "{m}"\nmodel = "{m}"\nurl = "{url}"\nkey = "OPENAI_API_KEY"\n' for m in models]
    (folder / "configs" / "endpoints.toml").write_text("\n".join(entries), encoding="utf-8")


def saved(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.rglob("results.jsonl"))


def direct(url: str, model: str, *more: str) -> list[str]:
    return ["vf-eval", "flappybird", "-m", model, "-b", url, "-k", "FLAPPYBIRD_API_KEY", "--disable-env-server", *more]


def test_the_cards_first_command_plays_ten_games(tmp_path):
    seeds = Counter()

    def answer(body):
        if turn_of(body) == 0:
            seeds[body["messages"][1]["content"]] += 1
        return NOOP

    with scripted(answer) as url:
        endpoints(tmp_path, url, "openai/gpt-4.1-mini")
        done = run_command(*first_command(), cwd=tmp_path, cold=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert sum(seeds.values()) == 10  # found in the package's own pyproject.toml, through the env server
    assert "Rollouts per example: 1" in done.stdout or "pipes_passed: avg - 0.000" in done.stdout
    assert "crashed: 1.000" in done.stdout


def test_the_cards_long_command_word_for_word(tmp_path):
    bodies = []

    def answer(body):
        bodies.append(body)
        return NOOP

    with scripted(answer) as url:
        endpoints(tmp_path, url, "gpt-4.1-mini")
        words = readme.command("uv run vf-eval flappybird -m gpt-4.1-mini")
        assert words[1:-1] == ["flappybird", "-m", "gpt-4.1-mini", "-n", "20", "-r", "3", "-t", "512", "-T", "0.7", "-a"]
        assert json.loads(words[-1]) == CARD_ARGS
        done = run_command(*words, cwd=tmp_path, OPENAI_API_KEY="sk-x")
    assert done.returncode == 0, done.stderr[-2000:]
    assert sum(turn_of(body) == 0 for body in bodies) == 60
    first = bodies[0]
    assert (first.get("max_completion_tokens") or first.get("max_tokens"), first["temperature"]) == (512, 0.7)
    assert "gravity=-0.25" in first["messages"][0]["content"]
    assert "gapHeight:7.00" in first["messages"][1]["content"]


def first_command() -> list[str]:
    (found,) = [command for command in readme.commands() if command == "uv run vf-eval flappybird"]
    return readme.words(found)


def test_any_openai_compatible_server_will_do(tmp_path):
    words = readme.command("uv run vf-eval flappybird -m my-model")
    with scripted(lambda body: NOOP) as url:
        done = run_command(*(url if word == "http://127.0.0.1:8000/v1" else word for word in words), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    (folder,) = saved(tmp_path)
    assert [row.episode.outcome.ticks for row in load_run(folder).rows] == [8] * 5


def test_64_rollouts_at_once_in_two_workers_are_saved_and_verified(policy_server, tmp_path):
    endpoints(tmp_path, policy_server, "heuristic")
    words = ["-m", "heuristic", "-n", "32", "-r", "2", "-c", "64", "-s", "-w", "2", "-a", '{"max_turns": 15, "seed": 100}']
    done = run_command("vf-eval", "flappybird", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    (folder,) = saved(tmp_path)
    assert folder.parent.name == "flappybird--heuristic"
    run = load_run(folder)
    assert [row.example for row in run.rows] == [n for n in range(32) for _ in range(2)]
    assert [row.episode.seed for row in run.rows] == [100 + n for n in range(32) for _ in range(2)]
    assert all(check(row) == [] for row in run.rows)
    assert run.env_args == {"max_turns": 15, "seed": 100}
    verified = run_command("flappybird", "verify", str(folder), cwd=tmp_path)
    assert (verified.returncode, verified.stdout) == (0, f"{folder}: 64 of 64 verified\n")


def test_D10_a_server_that_fails_is_told_as_an_error_and_resume_refuses_to_mix(tmp_path):
    def answer(body):
        # The third turn of the game that starts second: seeds are told apart by nothing but their order here.
        if turn_of(body) == 2 and body["messages"][0]["role"] == "system" and body.get("seed") is None and failing:
            failing.pop()
            return 500, {"error": {"message": "it broke", "type": "server_error", "code": "x"}}
        return NOOP

    failing = [1]
    with scripted(answer, headers={"x-should-retry": "false"}) as url:
        done = run_command(*direct(url, "m", "-n", "4", "-r", "1", "-c", "1", "-s"), cwd=tmp_path)
        assert done.returncode == 0, done.stderr[-2000:]
        (folder,) = saved(tmp_path)
        run = load_run(folder)
        assert [row.error is not None for row in run.rows].count(True) == 1
        broken = next(row for row in run.rows if row.error)
        assert "it broke" in broken.error
        assert (broken.episode.outcome.reason.value, broken.episode.outcome.ticks) == ("error", 2)
        assert all(check(row) == [] for row in run.rows)
        verified = run_command("flappybird", "verify", str(folder), cwd=tmp_path)
        assert "4 of 4 verified, 1 ended by an error" in verified.stdout

        # Resumed with other arguments, the library would go on without a word.
        results = folder / "results.jsonl"
        lines = results.read_text(encoding="utf-8").splitlines(keepends=True)
        results.write_text("".join(lines[:2]) + lines[2][:100], encoding="utf-8")
        again = direct(url, "m", "-n", "4", "-r", "1", "-s", "--resume", str(folder))
        refused = run_command(*again, "-a", '{"max_turns": 7}', cwd=tmp_path)
        assert refused.returncode == 2
        assert "cannot resume" in refused.stderr
        assert "Traceback" not in refused.stderr
        with pytest.raises(ConfigError, match=r"cannot resume .*temperature = None, not 0\.9"):
            refuse_to_mix(folder, load_environment().settings, {}, {"temperature": 0.9})
        assert len(load_run(folder).rows) == 2

        # With the same, it plays exactly what is missing.
        resumed = run_command(*again, cwd=tmp_path)
        assert resumed.returncode == 0, resumed.stderr[-2000:]
        run = load_run(folder)
        assert ([row.example for row in run.rows], run.damaged) == ([0, 1, 2, 3], 1)
        assert all(check(row) == [] for row in run.rows)


def test_bad_arguments_end_in_one_line_and_exit_2(tmp_path, monkeypatch, capsys):
    done = run_command(*direct("http://127.0.0.1:9", "m", "-a", '{"max_turn": 5}'), cwd=tmp_path)
    assert done.returncode == 2
    assert "'max_turn' is not an environment argument; did you mean 'max_turns'?" in done.stderr
    assert done.stderr.count("\n") <= 1

    env = load_environment()
    monkeypatch.setattr("sys.argv", ["vf-eval"])  # a process of its own says just this
    with pytest.raises(SystemExit) as ended:
        env._get_eval_inputs(0)
    assert ended.value.code == 2
    assert capsys.readouterr().err == "flappybird: num_examples = 0: -n takes a number of games, or -1 for all 10\n"


def test_a_dead_server_is_named_before_the_first_game(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as bound:
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/v1"
    # As users start it, with the environment server and the display on.
    done = run_command("vf-eval", "flappybird", "-m", "m", "-b", url, "-k", "MY_KEY", "-n", "1", "-r", "1", "-s", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [f"flappybird: no server at {url}: Connection refused"]
    assert saved(tmp_path) == []


def test_ctrl_c_keeps_what_was_finished(tmp_path):
    def answer(body):
        if turn_of(body) == 3 and "slow" in seen:
            time.sleep(30)
        if turn_of(body) == 7:
            seen.add("slow")
        return NOOP

    seen: set[str] = set()
    with scripted(answer) as url:
        words = direct(url, "m", "-n", "4", "-r", "1", "-c", "1", "-s", "-d")
        with open(tmp_path / "said", "w") as said:
            process = started(*words, cwd=tmp_path, stdout=said, stderr=said)
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline and not any(path.stat().st_size for path in tmp_path.rglob("results.jsonl")):
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.wait(60)
    (folder,) = saved(tmp_path)
    run = load_run(folder)
    assert [row.example for row in run.rows] == [0]
    assert check(run.rows[0]) == []
    assert json.loads((folder / "metadata.json").read_text())["num_examples"] == 4
