import os
import signal
import subprocess
import sys

import pytest

from flappybird.cli import main
from flappybird.episodes.episode import load, save
from flappybird.errors import FlappyError
from tests.conftest import play
from tests.runs.test_load import saved_row, write_run


def test_verify_says_how_many_agree(tmp_path, capsys):
    for seed in range(3):
        save(play("noop", seed), tmp_path / f"{seed}.json")
    assert main(["verify", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}: 3 of 3 verified\n"


def test_verify_names_what_differs_and_fails(tmp_path, capsys):
    data = play("heuristic", 3).to_dict()
    data["turns"][12]["actions"] = ["TAP"]
    import json

    (tmp_path / "bad.json").write_text(json.dumps(data), encoding="utf-8")
    assert main(["verify", str(tmp_path / "bad.json")]) == 1
    out = capsys.readouterr().out
    assert "tick 12: turns[12].actions is ['TAP'], replay gives ['NOOP']" in out
    assert "0 of 1 verified" in out


def test_episodes_writes_a_file_for_each_rollout(tmp_path, capsys):
    run = write_run(tmp_path / "run", [saved_row(seed) for seed in (1, 0)])
    assert main(["episodes", str(run), "-o", str(tmp_path / "out")]) == 0
    assert "2 of 2 episodes written" in capsys.readouterr().out
    assert [load(tmp_path / "out" / f"episode-000{n}.json").seed for n in (0, 1)] == [0, 1]
    assert main(["verify", str(tmp_path / "out"), str(run)]) == 0


def test_episodes_tells_of_rows_that_have_none(tmp_path, capsys):
    run = write_run(tmp_path / "run", [saved_row(1), {"example_id": 2}, "{half"])
    assert main(["episodes", str(run), "-o", str(tmp_path / "out")]) == 1
    out, err = capsys.readouterr()
    assert "1 of 2 episodes written" in out
    assert "1 damaged line skipped" in out
    assert "row 1: " in err


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["verify", "/nonexistent"], 1, "no such file or folder"),
        (["episodes", "/nonexistent", "-o", "x"], 1, "no such file or folder"),
        (["serve", "--port", "70000"], 2, "cannot listen on port 70000: must be from 0 to 65535"),
        (["serve", "--malformed", "2"], 2, "malformed = 2.0"),
        (["demo", "-n", "0"], 2, "--num-examples = 0"),
        (["demo", "-n", "99999999999999999999"], 2, "must be from 1 to 1000"),
        (["play", "--speed", "-3"], 2, "speed = -3: must be from 0.1 to 10"),
        (["play", "--policy", "noop", "--config", "gravity"], 2, "neither JSON, nor a file, nor name=value"),
        (["report", "x", "--text", "-o", "y.html"], 2, "-o y.html: goes with a page"),
        (["report", "x", "--videos", "nowhere"], 2, "--videos nowhere: no such folder"),
    ],
)
def test_what_goes_wrong_is_one_line_and_an_exit_code(argv, code, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(argv) == code
    out, err = capsys.readouterr()
    assert said in err
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.parametrize("argv", [[], ["nonsense"], ["verify"], ["serve", "--port", "x"], ["serve", "--flag"]])
def test_a_usage_error_is_exit_2(argv, capsys):
    with pytest.raises(SystemExit) as caught:
        main(argv)
    assert caught.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_run_without_rollouts_is_not_verified(tmp_path, capsys):
    run = write_run(tmp_path / "run", [])
    assert main(["verify", str(run)]) == 1
    assert "0 of 0 verified, 3 of 3 asked for are missing" in capsys.readouterr().out
    assert main(["episodes", str(run), "-o", str(tmp_path / "out")]) == 1


def test_a_run_deeper_in_a_folder_is_pointed_at(tmp_path, capsys):
    run = write_run(tmp_path / "evals" / "flappybird--m" / "1234", [saved_row(1)])
    assert main(["verify", str(tmp_path)]) == 1
    assert f"below it is one: {run}" in capsys.readouterr().err


def test_a_folder_or_a_missing_folder_is_named_where_a_file_is_to_be_written(tmp_path):
    for where, said in ((tmp_path, "is a folder; name a file"), (tmp_path / "none" / "x.json", "there is no folder")):
        with pytest.raises(FlappyError, match=said):
            save(play("noop"), where)
    assert list(tmp_path.iterdir()) == []


def test_a_closed_stdout_is_no_traceback(tmp_path):
    save(play("noop"), tmp_path / "e.json")
    command = f"{sys.executable} -m flappybird verify {tmp_path / 'e.json'} >&-"
    told = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (0, "")


@pytest.mark.parametrize("module", ["flappybird", "render", "videos"])
def test_a_usage_error_is_one_line_that_says_where_to_look(module, tmp_path):
    told = subprocess.run([sys.executable, "-m", module, "--nonsense"], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (told.returncode, told.stdout, told.stderr.count("\n")) == (2, "", 1)
    assert told.stderr.startswith("flappybird: ")
    assert told.stderr.endswith("--help\n")


def test_F06_output_that_nobody_reads_is_no_error(tmp_path):
    for seed in range(40):
        data = play("noop", seed).to_dict()
        data["outcome"]["reward"] = 9.0
        import json

        (tmp_path / f"{seed}.json").write_text(json.dumps(data), encoding="utf-8")
    command = f"{sys.executable} -m flappybird verify {tmp_path} | head -1"
    told = subprocess.run(
        command,
        shell=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "TERM": "dumb"},
        check=False,
    )
    assert told.stderr == ""
    assert told.stdout.count("\n") == 1


def test_ctrl_c_leaves_no_traceback(tmp_path):
    code = (
        "import sys, time; from flappybird import cli, cli_runs; cli_runs._verify = lambda args: time.sleep(30);"
        "sys.exit(cli.main(['verify', 'x']))"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as process:
        import time

        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert process.stderr.read() == ""


def test_episodes_of_an_older_run_are_not_mixed_with_those_of_a_newer_one(tmp_path, capsys):
    old = write_run(tmp_path / "old", [saved_row(seed) for seed in range(3)])
    new = write_run(tmp_path / "new", [saved_row(seed) for seed in range(2)])
    out = tmp_path / "out"
    assert main(["episodes", str(old), "-o", str(out)]) == 0
    before = {file.name: file.read_bytes() for file in out.iterdir()}
    assert main(["episodes", str(new), "-o", str(out)]) == 2
    assert "episode-0002.json, which is not of this run" in capsys.readouterr().err
    assert {file.name: file.read_bytes() for file in out.iterdir()} == before
    assert main(["episodes", str(old), "-o", str(out)]) == 0


def test_a_run_that_was_interrupted_at_once_does_not_spoil_the_others(tmp_path, capsys):
    run = write_run(tmp_path / "a", [saved_row(0)])
    empty = tmp_path / "b"
    empty.mkdir()
    assert main(["verify", str(run), str(empty)]) == 0
    assert f"{empty}: left out: no rollout was finished" in capsys.readouterr().out
    assert main(["report", str(run), str(empty), "--text"]) == 0
    assert main(["verify", str(empty)]) == 1


def test_a_folder_of_episodes_deeper_in_a_folder_is_pointed_at(tmp_path, capsys):
    save(play("noop"), tmp_path / "0.json")
    inner = tmp_path / "demo" / "episodes" / "noop"
    inner.mkdir(parents=True)
    (tmp_path / "0.json").rename(inner / "episode-0000.json")
    assert main(["verify", str(tmp_path / "demo" / "episodes")]) == 1
    assert f"below it is one: {inner}" in capsys.readouterr().err


def test_sft_refuses_what_would_leave_a_wrong_file(tmp_path, capsys):
    out = str(tmp_path / "x.jsonl")
    assert main(["sft", "-n", "2", "-o", out, "--numbers", out]) == 2
    assert main(["sft", "-n", "2", "-o", out, "--validation", "0.1"]) == 2
    assert main(["report", "x", "-o", "x.xyz"]) == 2
    assert capsys.readouterr().err.count("\n") == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "help_of"),
    [(["play", "--polcy", "x"], "flappybird play"), (["verify", "a", "--foo"], "flappybird verify"), (["--foo"], "flappybird")],
)
def test_a_usage_error_names_the_help_of_its_command(words, help_of, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.endswith(f"see {help_of} --help\n")
    assert said.count("\n") == 1


def test_a_config_nested_thousands_deep_is_refused_in_one_line(capsys, tmp_path):
    deep = '{"gravity": ' + "[" * 5_000 + "]" * 5_000 + "}"
    (tmp_path / "deep.json").write_text(deep, encoding="utf-8")
    for config in (deep, str(tmp_path / "deep.json"), f"gravity={'[' * 5_000}"):
        assert main(["play", "--policy", "noop", "--config", config]) in (1, 2)
        said = capsys.readouterr().err
        assert said.count("\n") == 1
    assert main(["cost", "-a", deep]) == 2
    assert capsys.readouterr().err.count("\n") == 1
