"""What tests share: played episodes, a running policy server, a scripted model, the real `vf-eval`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from hypothesis import HealthCheck, settings

from flappybird.episodes.episode import Episode
from flappybird.players.games import fly
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig
from tests.warm import COMMANDS, Process, Warm

settings.register_profile("default", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")

ROOT = Path(__file__).parent.parent
SCRIPTS = Path(sysconfig.get_path("scripts"))

# Run in the background of a shell, the suite ignores Ctrl-C, and so would every process that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


def play(policy: str = "planner", seed: int = 0, config: FlappyConfig | None = None, **rules: Any) -> Episode:
    """Return the episode that a policy plays, written down reply by reply."""
    return fly(policy, config or FlappyConfig(), seed, Rules(**rules))


LONG = ("test_readme.py", "test_vf_eval.py", "test_export.py", "test_crashes.py", "test_tiny_lm.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with long tests come first: the short ones then fill the time that they leave on other processors."""
    items.sort(key=lambda item: item.path.name not in LONG)


@pytest.fixture(scope="session")
def policy_server() -> Iterator[str]:
    """The URL of a policy server on a free loopback port."""
    with serving() as url:
        yield url


class serving:
    """An ASGI application, or the policy server with some options or a function, in a thread for the length of a `with` block."""

    def __init__(self, app: Any = None, reply: Any = None, **options: Any) -> None:
        from flappybird.server import Options, listen, make_server

        self.bound = listen("127.0.0.1", 0)
        self.server = make_server(Options(**options), reply)
        if app is not None:
            self.server.config.app = app
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.bound]}, daemon=True)

    def queue(self) -> Any:
        """What waits for the function."""
        return self.server.policies.reply._waiting

    def __enter__(self) -> str:
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        return f"http://127.0.0.1:{self.bound.getsockname()[1]}/v1"

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join(10)
        self.bound.close()


def scripted(answer: Callable[[dict[str, Any]], Any], headers: dict[str, str] | None = None) -> serving:
    """A model that says what `answer` returns for a request body: text, a message dict, or (status, body) with `headers`."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    async def complete(request: Any) -> Response:
        said = await asyncio.to_thread(answer, await request.json())
        if isinstance(said, tuple):
            return JSONResponse(said[1], status_code=said[0], headers=headers)
        message = said if isinstance(said, dict) else {"content": said}
        finish = message.pop("finish_reason", "stop")
        choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish, "logprobs": None}
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
        return Response(json.dumps(body), media_type="application/json")  # in ASCII, so that any character can be said

    return serving(Starlette(routes=[Route("/v1/chat/completions", complete, methods=["POST"])]))


def turn_of(body: dict[str, Any]) -> int:
    """Which turn of its rollout a request is, from 0."""
    return sum(message["role"] == "assistant" for message in body["messages"])


Finished = subprocess.CompletedProcess

_warm: list[Warm] = []


@pytest.fixture(scope="session", autouse=True)
def _warm_ends() -> Iterator[None]:
    yield
    for one in _warm:
        one.close()


def started(*command: str, cwd: Path, stdout: IO[Any], stderr: IO[Any], **env: str) -> Process:
    """Start a command of verifiers from the process that has it loaded, see `tests.warm`."""
    if not _warm:
        _warm.append(Warm())
    script, *rest = command
    return _warm[0].start([str(SCRIPTS / script), *rest], cwd, clean(env), stdout, stderr)


def run_command(*command: str, cwd: Path, timeout: float = 240, cold: bool = False, **env: str) -> Finished[str]:
    """Run a command of this environment, such as `vf-eval` or `flappybird`, and return how it ended.

    What verifiers brings is started warm, see `tests.warm`, but where it is to be started as users start it: `cold`.
    """
    program = str(SCRIPTS / command[0])
    if command[0] not in COMMANDS or cold:
        return subprocess.run(
            [program, *command[1:]],
            cwd=cwd,
            env=clean(env),
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+", encoding="utf-8") as errors:
        process = started(*command, cwd=cwd, stdout=out, stderr=errors, **env)
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            raise
        out.seek(0)
        errors.seek(0)
        return Finished(list(command), process.wait(), out.read(), errors.read())


def clean(env: dict[str, str]) -> dict[str, str]:
    """The environment of a command: without keys, so that nothing reaches a provider, and with bytecode, so that a library is
    not compiled at every start."""
    unwanted = ("OPENAI_API_KEY", "PRIME_API_KEY", "PYTHONDONTWRITEBYTECODE")
    usual = {name: value for name, value in os.environ.items() if name not in unwanted}
    usual["PATH"] = f"{SCRIPTS}{os.pathsep}{usual.get('PATH', '')}"
    return {**usual, **env}


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., Finished[str]]:
    """Run a command in an empty folder."""

    def run(*words: str, **env: str) -> Finished[str]:
        return run_command(*words, cwd=tmp_path, **env)

    return run


@pytest.fixture
def signals_of_a_new_process() -> Iterator[None]:
    """The handlers that Python starts with: in this process libraries may have left theirs."""
    before = [(which, signal.getsignal(which)) for which in (signal.SIGINT, signal.SIGTERM)]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    for which, handler in before:
        signal.signal(which, handler)
