"""Commands that are asked to stop (SIGINT, SIGTERM) at random moments, with an older file where theirs is to stand."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from flappybird.episodes.episode import load, save
from flappybird.world.game import Reason
from tests.conftest import play
from tests.samples import clean_environment
from tests.trust.kills import a_run, wait_for_orphans

OLD = b"an older file"


class Command(NamedTuple):
    """A command that is to be stopped."""

    words: list[str]
    whole: Callable[[bytes], Any]
    """Looks at what stands under the final name, if it is not the old file; raises if it is not whole."""
    file: Path | None
    """The final name."""


def _page(data: bytes) -> None:
    assert data.startswith((b"<!", b"<html"))
    assert data.rstrip().endswith(b"</html>")


def _gif(data: bytes) -> None:
    assert (data[:6], data[-1:]) == (b"GIF89a", b"\x3b")


def _mp4(data: bytes) -> None:
    assert 0 < data.find(b"moov") < data.find(b"mdat")


def playing(folder: Path) -> Command:
    """`flappybird play`, in a window that nobody sees."""
    file = folder / "me.json"

    def begun(_: bytes) -> None:
        assert load(file).outcome.reason is Reason.ABORTED

    return Command(["flappybird", "play", "--save", str(file)], begun, file)


def _rendering(folder: Path, name: str, whole: Callable[[bytes], Any]) -> Command:
    save(play("planner", 3, max_turns=300), folder / "long.json")
    return Command(["render", str(folder / "long.json"), "-o", str(folder / name)], whole, folder / name)


def mp4(folder: Path) -> Command:
    """`python -m render -o x.mp4`."""
    return _rendering(folder, "x.mp4", _mp4)


def gif(folder: Path) -> Command:
    """`python -m render -o x.gif`."""
    return _rendering(folder, "x.gif", _gif)


def report(folder: Path) -> Command:
    """`flappybird report`."""
    file = folder / "page.html"
    return Command(["flappybird", "report", str(a_run(folder)), "-o", str(file)], _page, file)


def serving(folder: Path) -> Command:
    """`flappybird serve`: its port is free again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def free(_: bytes) -> None:
        with socket.socket() as again:
            again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            again.bind(("127.0.0.1", port))

    return Command(["flappybird", "serve", "--port", str(port)], free, None)


ALL = (playing, mp4, gif, report, serving)


class Stopped(NamedTuple):
    """How often a command was stopped in its middle."""

    stopped: int
    finished: int
    """How often it was done before."""


def stop_often(what: Callable[[Path], Command], signals: Sequence[signal.Signals], dice: random.Random, folder: Path) -> Stopped:
    """Send a command one signal after another, each at a random moment of its work, and look at what each leaves behind."""
    command = what(folder)
    begun = time.monotonic()
    lasts = what in (playing, serving)  # until somebody stops them
    if lasts:
        subprocess.run([sys.executable, "-m", command.words[0], "--help"], check=True, stdout=subprocess.DEVNULL)
        takes = 5 * (time.monotonic() - begun) + 0.5
    else:
        process = _start(command, folder)
        _, err = process.communicate()
        assert process.returncode == 0, err
        takes = time.monotonic() - begun
    stopped, finished = 0, 0
    while stopped < len(signals):
        which = signals[stopped]
        if command.file is not None:
            command.file.write_bytes(OLD)
        around = sorted(path.name for path in folder.iterdir())
        process = _start(command, folder)
        time.sleep(dice.uniform(0.3, 1.0) * takes)
        while process.poll() is None and not _listens(process.pid):  # a slow machine: none of our code runs yet
            time.sleep(0.005)
        process.send_signal(which)
        _, err = process.communicate(timeout=30)
        if process.returncode != 0 or lasts:
            stopped += 1
            expected = -which if which is signal.SIGKILL else 128 + which
            assert process.returncode == expected, (process.returncode, err)
        else:  # the machine has become faster than it was when the time was taken
            finished += 1
            takes *= 0.8
            assert takes > 0.01, "it cannot be hit"
        assert err.count("\n") <= 1, err
        assert "Traceback" not in err
        wait_for_orphans(process.pid)
        left = b"" if command.file is None else command.file.read_bytes()
        if left != OLD:
            command.whole(left)
        assert sorted(path.name for path in folder.iterdir()) == around
    return Stopped(stopped, finished)


def _listens(process: int) -> bool:
    """Whether a process has a handler for SIGTERM, which a command of ours has from its first line to its last."""
    status = Path(f"/proc/{process}/status")
    if not status.exists():  # ended, or another system
        return True
    caught = next((line for line in status.read_text().splitlines() if line.startswith("SigCgt:")), "SigCgt: 0")
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def _start(command: Command, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", *command.words],
        cwd=folder,
        env=clean_environment(SDL_VIDEODRIVER="dummy", PYTHONPATH=str(Path(__file__).parents[2])),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
