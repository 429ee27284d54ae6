"""Commands without their start: a process that has loaded verifiers forks one that runs the command.

Loading verifiers takes some eight seconds of a processor, and the suite runs its commands some forty times. What a command
does, and what it reads and writes, is the same; how it starts on its own is shown by the tests that run it `cold`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import IO, Any

COMMANDS = ("vf-eval", "eval", "replay", "validate")
LOADED = ("flappybird.classic", "flappybird.taskset", "flappybird.report", "flappybird.runs")
LONGEST = 1 << 18


def entry_point(name: str) -> metadata.EntryPoint:
    """The function behind a command."""
    (found,) = metadata.entry_points(group="console_scripts", name=name)
    return found


class Process:
    """A running command, with as much of `subprocess.Popen` as the tests need."""

    def __init__(self, channel: socket.socket, pid: int, args: list[str]) -> None:
        self.channel, self.pid, self.args = channel, pid, args
        self.returncode: int | None = None

    def send_signal(self, which: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, which)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.001)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self.channel.settimeout(timeout)
            try:
                self.returncode = int(self.channel.recv(LONGEST))
            except TimeoutError:
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
        return self.returncode


class Warm:
    """The process that forks; it ends with this one."""

    def __init__(self) -> None:
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, "-m", "tests.warm", str(theirs.fileno())]
        root = Path(__file__).parent.parent
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, cwd=root)
        theirs.close()

    def start(self, command: list[str], cwd: Path, env: dict[str, str], stdout: IO[Any], stderr: IO[Any]) -> Process:
        """Run a command; one at a time."""
        self.channel.settimeout(None)
        asked = json.dumps({"command": command, "cwd": str(cwd), "env": env}).encode()
        socket.send_fds(self.channel, [asked], [stdout.fileno(), stderr.fileno()])
        return Process(self.channel, int(self.channel.recv(LONGEST)), command)

    def close(self) -> None:
        self.channel.close()
        self.process.wait(30)


def serve(channel: socket.socket) -> list[str]:
    """Fork for each command that comes; return the command in the process that is to run it."""
    while True:
        said, streams, *_ = socket.recv_fds(channel, LONGEST, 2)
        if not said:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            asked = json.loads(said)
            channel.close()
            for stream, number in zip(streams, (1, 2), strict=True):
                os.dup2(stream, number)
                os.close(stream)
            os.environ.clear()
            os.environ.update(asked["env"])
            os.chdir(asked["cwd"])
            command: list[str] = asked["command"]
            return command
        for stream in streams:
            os.close(stream)
        channel.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        channel.send(str(os.waitstatus_to_exitcode(status)).encode())


def load() -> None:
    """Load what commands load, as far as this release of verifiers has it."""
    for name in COMMANDS:
        with contextlib.suppress(ImportError, ValueError):
            entry_point(name).load()
    for module in LOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    load()
    words = serve(socket.socket(fileno=int(sys.argv[1])))
    sys.argv = words
    sys.path[0] = str(Path(words[0]).parent)  # as where a script lies
    sys.exit(entry_point(Path(words[0]).name).load()())
