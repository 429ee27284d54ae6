"""Many rollouts at once in one process, and what they cost; a million ticks, and whether anything grows."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import json
import resource
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from flappybird.episodes import arguments, rewards
from flappybird.episodes.episode import Episode
from flappybird.episodes.rollout import Rollout
from flappybird.runs import Run, run_of_outputs


class Pauses:
    """Garbage collections that are worth noting, in CPU seconds."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.total = 0.0

    def note(self, took: float) -> None:
        """Note one."""
        self.longest = max(self.longest, took)
        self.total += took


class Load(NamedTuple):
    """What an evaluation of many rollouts at once cost, in this process."""

    run: Run
    turns: int
    seconds: float
    cpu: float
    """CPU seconds of this process, the library's share and ours."""
    ours: float
    """CPU seconds inside the package's own functions."""
    longest: float
    """The longest that the event loop has to wait because of us, in CPU seconds: one step of one of the environment's hooks, with
    what it calls of the library."""
    collected: float
    """CPU seconds of the longest garbage collection, which strikes whoever makes the next object; in none of the above."""
    stall: float
    """The longest time that the event loop was late, in seconds, whoever held it up."""
    memory: float
    """Growth of the process's peak memory, in bytes."""


@contextlib.contextmanager
def _collections(pauses: Pauses) -> Iterator[None]:
    """Note how long each garbage collection takes that is worth noting."""
    begun = [0.0]

    def note(phase: str, _: Any) -> None:
        if phase == "start":
            begun[0] = time.thread_time()
        elif (took := time.thread_time() - begun[0]) > 0.001:
            pauses.note(took)

    gc.callbacks.append(note)
    try:
        yield
    finally:
        gc.callbacks.remove(note)


@contextlib.contextmanager
def _watched(owner: Any, name: str, spent: list[float], inside: list[str], pauses: Pauses) -> Iterator[None]:
    original = getattr(owner, name)

    def timed(*args: Any, **kwargs: Any) -> Any:
        if inside:  # one of them calls another: counted there
            return original(*args, **kwargs)
        inside.append(name)
        before, started = pauses.total, time.thread_time()
        try:
            return original(*args, **kwargs)
        finally:
            spent.append(time.thread_time() - started - (pauses.total - before))
            inside.clear()

    with mock.patch.object(owner, name, timed):
        yield


@contextlib.contextmanager
def _stepped(owner: Any, name: str, steps: list[float], pauses: Pauses) -> Iterator[None]:
    """Note how long each step of a coroutine takes: from one return to the event loop to the next."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def stepped(*args: Any, **kwargs: Any) -> Any:
        return driven(original(*args, **kwargs))

    @types.coroutine
    def driven(hook: Any) -> Any:
        sent = None
        while True:
            before, started = pauses.total, time.thread_time()
            try:
                waiting_for = hook.send(sent)
            except StopIteration as done:
                return done.value
            finally:
                steps.append(time.thread_time() - started - (pauses.total - before))
            sent = yield waiting_for

    with mock.patch.object(owner, name, stepped):
        yield


def peak() -> int:
    """The peak memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


PER_CLIENT = 32
"""So many rollouts share an HTTP client: the time that its pool of connections takes for a request grows with their square."""


HOOKS = ("setup_state", "get_prompt_messages", "add_trajectory_step", "env_response", "render_completion")
"""The coroutines by which the library enters the environment, as far as they do more than look something up."""


def evaluate(url: str, model: str, rollouts: int, turns: int, **args: Any) -> Load:
    """Play `rollouts` games at once, at most `turns` turns each, against the server at `url`."""
    from verifiers.types import ClientConfig, EndpointClientConfig
    from verifiers.utils.save_utils import make_serializable

    import flappybird

    env = flappybird.load_environment(max_turns=turns, **args)
    endpoint = EndpointClientConfig(api_base_url=url, api_key_var="FLAPPYBIRD_API_KEY")
    client = ClientConfig(endpoint_configs=[endpoint] * -(-rollouts // PER_CLIENT))
    late = [0.0]

    async def heartbeat() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.005)
            late.append(time.perf_counter() - before - 0.005)

    async def play() -> Any:
        beating = asyncio.create_task(heartbeat())
        try:
            return await env.evaluate(
                client=client,
                model=model,
                num_examples=rollouts,
                rollouts_per_example=1,
                on_start=lambda *_: None,
                on_progress=lambda *_: None,
            )
        finally:
            beating.cancel()

    spent: list[float] = []
    steps: list[float] = []
    inside: list[str] = []
    pauses = Pauses()
    before, wall, cpu = peak(), time.perf_counter(), time.process_time()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_collections(pauses))
        for owner, name in ((arguments, "start"), (Rollout, "message"), (Rollout, "take"), (rewards, "finish")):
            stack.enter_context(_watched(owner, name, spent, inside, pauses))
        stack.enter_context(_watched(flappybird.classic, "_episode", spent, inside, pauses))
        stack.enter_context(_watched(Episode, "to_dict", spent, inside, pauses))
        for name in HOOKS:
            stack.enter_context(_stepped(flappybird.classic.FlappyEnv, name, steps, pauses))
        results = asyncio.run(play())
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    memory = peak() - before
    rows = [json.loads(json.dumps(row, default=make_serializable)) for row in results["outputs"]]
    run = run_of_outputs(rows, {"model": model}, Path("load"))
    return Load(
        run=run,
        turns=sum(len(row.episode.turns) for row in run.rows if row.episode),
        seconds=wall,
        cpu=cpu,
        ours=sum(spent),
        longest=max(spent + steps),
        collected=pauses.longest,
        stall=max(late),
        memory=memory,
    )


def fly(ticks: int, watch: Callable[[int], None] = lambda _: None) -> int:
    """Fly `ticks` ticks through replies and observations, game after game in one process; return the games begun."""
    from flappybird.protocol.rules import Rules
    from flappybird.world.config import FlappyConfig

    config, rules = FlappyConfig(), Rules(max_turns=1_000_000)
    flown, games = 0, 0
    while flown < ticks:
        rollout = Rollout(config, games, rules)
        games += 1
        while rollout.outcome is None and flown < ticks:
            seen = rollout.observation()
            number = rollout.game.score
            aim = rollout.game.course.gap(number).y
            rollout.take("<ACTIONS>[TAP]</ACTIONS>" if seen.y < aim - 6_000 else "<ACTIONS>[]</ACTIONS>")
            rollout.message()
            flown += 1
            if flown % 100_000 == 0:
                watch(flown)
            if len(rollout.turns) == 300:
                break
    return games


def resident() -> int:
    """The memory of this process now, in bytes."""
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
