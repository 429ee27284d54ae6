import json
import os
import signal
import subprocess
import sys
import time
from operator import neg
from pathlib import Path

import pytest

from flappybird.cli import main
from flappybird.errors import ConfigError, FlappyError, MissingPart
from flappybird.system.jobs import spread
from tests.trust.kills import wait_for_orphans


def kill_itself(_):
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(number):
    raise ConfigError(f"{number}: refused")


def test_results_come_in_the_order_of_the_tasks_and_tasks_are_taken_as_there_is_room():
    taken = []

    def tasks():
        for number in range(40):
            taken.append(number)
            yield number

    results = spread(neg, tasks(), jobs=2)
    assert next(results) == 0
    assert len(taken) < 40
    assert list(results) == [-number for number in range(1, 40)]


def test_what_goes_wrong_in_another_process_is_told_as_here():
    for jobs in (1, 2):
        with pytest.raises(ConfigError, match="^3: refused$"):
            list(spread(refuse, [3, 3], jobs))


def test_a_process_that_is_ended_from_outside_is_told_in_one_line():
    with pytest.raises(FlappyError, match="ended from outside; fewer need less memory: --jobs 1"):
        list(spread(kill_itself, range(3), jobs=2))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--jobs", "0"], "--jobs = 0: must be at least 1"),
        (["--backend", "slurm"], "--backend = 'slurm': must be one of ray, dask"),
    ],
)
@pytest.mark.parametrize("command", [["baselines"], ["sft", "-o", "x.jsonl"]], ids=lambda words: words[0])
def test_wrong_options_are_usage_errors_of_one_line(command, words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*command, *words]) == 2
    told = capsys.readouterr()
    assert told.err == f"flappybird: {message}\n"
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_whose_library_is_not_installed_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingPart, match=r"--backend dask needs dask: `pip install 'dask\[distributed\]'`"):
        list(spread(neg, [1], backend="dask"))


# --- the commands that spread work ---------------------------------------------------------------------------------

SFT = ("-n", "60", "--policy", "heuristic", "--difficulty", "card,hard", "--max-turns", "120", "--perturbed", "0.5")
"""Some of these games end in a crash, so that the levels of those after them depend on them."""


def sft(folder: Path, *options: str) -> dict[str, bytes]:
    """What `sft` writes."""
    folder.mkdir()
    words = ["sft", *SFT, "--validation", "0.1", "-o", str(folder / "demos.jsonl"), "--numbers", str(folder / "numbers.npz")]
    assert main([*words, *options]) == 0
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def baselines(capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """What `baselines` prints."""
    capsys.readouterr()
    words = ["baselines", "-n", "60", "--difficulty", "easy,expert", "--policy", "noop,heuristic", "--max-turns", "50", "--json"]
    assert main([*words, *options]) == 0
    return capsys.readouterr().out


def test_processes_change_nothing_in_what_is_written(tmp_path, capsys):
    alone = sft(tmp_path / "one", "--jobs", "1")
    crashed = [json.loads(line)["seed"] for line in alone["demos.jsonl"].splitlines()]
    assert crashed[-1] - crashed[0] > len(crashed), "nobody crashed"
    assert sft(tmp_path / "two", "--jobs", "2") == alone
    assert baselines(capsys, "--jobs", "2") == baselines(capsys, "--jobs", "1")


def test_a_cluster_of_ray_changes_nothing_in_what_is_written(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")  # its workers run here
    ray = pytest.importorskip("ray", reason="it is in the dependency group trust")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        assert sft(tmp_path / "ray", "--backend", "ray") == sft(tmp_path / "here", "--jobs", "1")
        assert baselines(capsys, "--backend", "ray", "--jobs", "2") == baselines(capsys, "--jobs", "1")
    finally:
        ray.shutdown()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at /proc for the processes")
@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGKILL], ids=lambda which: which.name)
def test_F04_processes_end_with_the_one_that_started_them_and_leave_no_half_file(which, tmp_path):
    old = tmp_path / "demos.jsonl"
    old.write_bytes(b"older")
    command = [sys.executable, "-m", "flappybird", "sft", "-n", "50000", "--jobs", "2", "-o", str(old)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as run:
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
        while len(children.read_text().split()) < 3 and run.poll() is None:  # two, and who tidies up behind them
            time.sleep(0.02)
        os.kill(run.pid, which)
        out, err = run.communicate(timeout=60)
        wait_for_orphans(run.pid)
    assert old.read_bytes() == b"older"
    if which is not signal.SIGKILL:
        assert (run.returncode, out, err) == (128 + which, "", "")
        assert [path.name for path in tmp_path.iterdir()] == ["demos.jsonl"]
