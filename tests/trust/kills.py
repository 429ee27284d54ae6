"""Commands killed without warning (SIGKILL) at random moments, and what must still be true of what they leave behind."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from flappybird.episodes.episode import load, save
from flappybird.episodes.verify import verify
from flappybird.runs import check, load_run
from tests.conftest import ROOT, play, started
from tests.runs.test_load import saved_row, write_run


class Killed(NamedTuple):
    """How often a command was killed in its middle."""

    killed: int
    finished: int
    """How often it was done before."""


def kill_often(command: list[str], times: int, whole: Callable[[], Any], dice: random.Random, cwd: Path) -> Killed:
    """Start `command` and kill it at a random moment of its work, until `times` were hit; check `whole()` after each."""
    started = time.monotonic()
    _run(command, cwd, None)
    takes = time.monotonic() - started
    whole()
    return hit(lambda seconds: _run(command, cwd, seconds, whole), times, takes, dice)


def hit(run: Callable[[float], bool], times: int, takes: float, dice: random.Random) -> Killed:
    """Call `run` with random shares of `takes` seconds until it was killed `times` times in the middle.

    Where it is done before, the machine has become faster than it was when `takes` was measured: the next one has less time.
    """
    killed, finished = 0, 0
    while killed < times:
        if run(dice.uniform(0.2, 1.0) * takes):
            killed += 1
        else:
            finished += 1
            takes *= 0.8
            assert takes > 0.01, "it cannot be hit"
    return Killed(killed, finished)


def _run(command: list[str], cwd: Path, seconds: float | None, whole: Callable[[], Any] = lambda: None) -> bool:
    """Run `command`, `seconds` long at the most; return whether it was killed."""
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, said = process.communicate(timeout=seconds)
        assert process.returncode == 0, said[-2000:]
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        whole()  # also while orphans, if there are any, are still at it
        wait_for_orphans(process.pid)
        whole()
        return True


def wait_for_orphans(group: int) -> None:
    """Wait until a group of processes is gone; raise AssertionError if it stays."""
    with contextlib.suppress(ProcessLookupError):
        for _ in range(200):
            os.killpg(group, 0)
            time.sleep(0.05)
        raise AssertionError("what it had started goes on without it")


# --- what is killed -----------------------------------------------------------------------------------------------


def a_run(folder: Path, rows: int = 6) -> Path:
    """A saved run of some rows."""
    return write_run(folder / "run", [saved_row(seed, max_turns=40) for seed in range(rows)])


def episodes(folder: Path, times: int, dice: random.Random) -> Killed:
    """`flappybird episodes`: every file under a final name is an episode that its replay confirms."""
    run, out = a_run(folder, 40), folder / "out"

    def whole() -> None:
        for file in out.glob("[!.]*"):
            assert verify(load(file)) == []

    return kill_often([sys.executable, "-m", "flappybird", "episodes", str(run), "-o", str(out)], times, whole, dice, folder)


def report(folder: Path, times: int, dice: random.Random) -> Killed:
    """`flappybird report`: the page is the old one or the new one, and whole."""
    run, page = a_run(folder), folder / "page.html"

    def whole() -> None:
        text = page.read_text(encoding="utf-8")
        assert text.startswith(("<!", "<html"))
        assert text.rstrip().endswith("</html>")

    return kill_often([sys.executable, "-m", "flappybird", "report", str(run), "-o", str(page)], times, whole, dice, folder)


def playing(folder: Path, times: int, dice: random.Random) -> Killed:
    """`flappybird play --save`: the episode is the old one or the new one, and verified."""
    file = folder / "played.json"
    save(play("noop"), file)

    def whole() -> None:
        assert verify(load(file)) == []

    command = [sys.executable, "-m", "flappybird", "play", "--policy", "planner", "--seed", "3", "--save", str(file)]
    return kill_often(command, times, whole, dice, folder)


def videos(folder: Path, times: int, dice: random.Random) -> Killed:
    """`python -m videos`: what stands under a final name plays to its end, and the next export goes on from there."""
    import imageio_ffmpeg

    (folder / "episodes").mkdir()
    for seed in range(4):
        save(play("heuristic", seed, max_turns=30), folder / "episodes" / f"e{seed}.json")
    out = folder / "clips"
    rounds = iter(range(10**6))

    def whole() -> None:
        for file in folder.glob("clips*/[!.]*.mp4"):
            frames, _ = imageio_ffmpeg.count_frames_and_secs(str(file))
            assert frames >= 10

    # Each time into a folder of its own, or there would be nothing left to do.
    started = time.monotonic()
    command = [sys.executable, "-m", "videos", str(folder / "episodes"), "--size", "144x120", "--workers", "2", "-o"]
    _run([*command, str(out)], folder, None)
    takes = time.monotonic() - started
    whole()
    done = hit(lambda seconds: _run([*command, str(folder / f"clips{next(rounds)}")], folder, seconds, whole), times, takes, dice)
    for unfinished in folder.glob("clips[0-9]*"):
        _run([*command, str(unfinished)], folder, None)
        assert len(list(unfinished.glob("[!.]*.mp4"))) == 4
        break
    whole()
    return done


def evaluations(folder: Path, times: int, dice: random.Random, url: str, games: int = 12) -> Killed:
    """`vf-eval -s`, killed and resumed again and again: in the end the run is the one that nobody disturbed.

    Killed at a random moment after it has begun to save, so that there is something to lose.
    """
    words = [
        "flappybird",
        "-m",
        "heuristic:latency=0.02",
        "-b",
        url,
        "-k",
        "FLAPPYBIRD_API_KEY",
        "-n",
        str(games),
        "-r",
        "1",
        "-s",
    ]
    words += ["-c", "2", "-a", '{"max_turns": 25, "report": false}', "--disable-tui", "--disable-env-server"]
    killed, saved, seen = 0, None, 0
    for round_ in range(times + 1):
        last = round_ == times
        resume = ["--resume", str(saved)] if saved else []
        with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
            process = started("vf-eval", *words, *resume, cwd=folder, stdout=said, stderr=said)
            if last:
                ended = process.wait(600)
                said.seek(0)
                assert ended == 0, said.read()[-2000:]
            else:
                begun = time.monotonic()
                while process.poll() is None and time.monotonic() - begun < 120:
                    found = next(iter(folder.rglob("results.jsonl")), None)
                    if found and found.read_bytes().count(b"\n") > seen:
                        break
                    time.sleep(0.05)
                time.sleep(dice.uniform(0.0, 0.6))
                killed += process.poll() is None
                process.send_signal(signal.SIGKILL)
                process.wait()
        found = next(iter(folder.rglob("results.jsonl")), None)
        if found is None:
            continue
        saved = found.parent
        json.loads((saved / "metadata.json").read_text(encoding="utf-8"))
        run = load_run(saved)
        assert len(run.rows) >= seen, "a finished episode is gone"
        assert run.damaged <= killed
        assert all(row.error is None and check(row) == [] for row in run.rows)
        examples = [row.example for row in run.rows]
        assert len(set(examples)) == len(examples), "something is counted twice"
        seen = len(run.rows)
        if seen == games and not last:
            break
    assert saved is not None
    assert sorted(row.example for row in load_run(saved).rows) == list(range(games))
    return Killed(killed, times - killed)
