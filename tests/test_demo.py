"""The demo where something is missing, fails or is interrupted. That it does what README shows: `test_readme`."""

import os
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest

from flappybird import demo
from flappybird.cli import main
from flappybird.episodes.episode import save
from tests.conftest import play


@pytest.fixture
def verifiers(monkeypatch):
    """Pretend that a release of verifiers is installed, or none."""
    real = metadata.version

    def pretend(release: str | None) -> None:
        def version(name: str) -> str:
            if name != "verifiers":
                return real(name)
            if release is None:
                raise metadata.PackageNotFoundError(name)
            return release

        monkeypatch.setattr(metadata, "version", version)

    return pretend


@pytest.mark.parametrize(("release", "found"), [("0.4.0", "verifiers 0.4.0"), ("1.0", "verifiers 1.0"), (None, "not installed")])
def test_without_the_classic_release_the_demo_names_the_extra_and_writes_nothing(release, found, verifiers, tmp_path, capsys):
    verifiers(release)
    assert main(["demo", "-o", str(tmp_path / "out")]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert found in told.err
    assert "the extra [classic] brings it" in told.err
    assert told.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("release", ["0.3.0", "0.3.1", "0.3.1.dev2"])
def test_releases_with_the_classic_api_are_taken(release, verifiers):
    verifiers(release)
    demo.require_classic()


@pytest.mark.parametrize("missing", ["pygame", "imageio_ffmpeg", "numpy"])
def test_without_an_extra_there_is_no_video_and_the_line_names_what_brings_it(missing, tmp_path):
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from pathlib import Path\n"
        "from types import SimpleNamespace\n"
        "from flappybird.demo import film\n"
        "from flappybird.episodes.episode import load\n"
        "print(film([SimpleNamespace(episode=load('e.json'))], Path('x.mp4')))\n"
    )
    save(play("noop"), tmp_path / "e.json")
    told = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout.startswith("none: ")
    assert "None" not in told.stdout
    assert "the extra [" in told.stdout or "pip install" in told.stdout
    assert not (tmp_path / "x.mp4").exists()


def program(folder: Path, code: str) -> Path:
    """A folder of scripts whose `vf-eval` runs `code`."""
    scripts = folder / "scripts"
    scripts.mkdir()
    (scripts / "vf-eval").write_text(f"#!{sys.executable}\n{code}\n", encoding="utf-8")
    (scripts / "vf-eval").chmod(0o755)
    return scripts


def test_a_vf_eval_that_fails_is_quoted(monkeypatch, tmp_path):
    scripts = program(tmp_path, "print('working', flush=True); raise SystemExit('it broke')")
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(scripts))
    with pytest.raises(demo.DemoError, match=r"exit code 1: it broke; all of its output is in .*vf-eval\.log"):
        demo.evaluate(["planner"], "http://127.0.0.1:9/v1", 1, tmp_path)


def test_a_vf_eval_that_is_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    with pytest.raises(demo.DemoError, match=r"vf-eval is missing"):
        demo.evaluate(["planner"], "http://127.0.0.1:9/v1", 1, tmp_path)


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_no_process_behind(which, tmp_path):
    """A demo whose `vf-eval` says that it runs, and would run for an hour."""
    sleeper = "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\ntime.sleep(3600)"
    scripts = program(tmp_path, sleeper)
    code = (
        "import sys, sysconfig\n"
        f"sysconfig.get_path = lambda name: {str(scripts)!r}\n"
        "from flappybird import cli, demo\n"
        "demo.require_classic = lambda: None\n"
        "sys.exit(cli.main())\n"
    )
    command = [sys.executable, "-c", code, "demo", "-n", "1", "-o", "out"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / "pid").is_file() or not (tmp_path / "pid").read_text():
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        process.send_signal(which)
        said = process.communicate(timeout=60)[1]
    assert (process.returncode, said) == (128 + which, "")
    assert not running(int((tmp_path / "pid").read_text()))


def running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_policy_server_says_why_it_did_not_start(monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "SEED", "seven")
    with pytest.raises(demo.DemoError, match="did not start: .*seven"), demo.policy_server(tmp_path / "serve.log"):
        pass
