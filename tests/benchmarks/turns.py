"""What a turn of ours costs beside the library's own, in memory and in tokens: `python -m tests.benchmarks.turns [TURNS …]`.

The floor is the same run with an empty environment: the same library, messages of the same length, a game that is none. What is
ours is clocked within a real run, function by function: reading, flying, recording, observing, building requests, episode
and scores. The model is a process of its own and not counted. CPU seconds of this process, the least of some runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import io
import logging
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from flappybird import messages
from flappybird.cost import estimates
from flappybird.episodes import arguments, rewards
from flappybird.episodes.episode import Episode
from flappybird.episodes.rollout import Rollout
from flappybird.protocol.rules import Rules
from flappybird.system.table import table
from flappybird.world.config import FlappyConfig
from tests.benchmarks._stub import REPLY

WORLD = {"gravity": -0.0001, "world_h": 1000.0, "easy_gap_height": 900.0, "base_gap_height": 900.0}
"""A world in which a bird that is never told to flap lives for thousands of ticks, with pipes that come, are passed and go."""
KEY = "FLAPPYBIRD_API_KEY"
REPEATS = 2


@contextlib.contextmanager
def model() -> Iterator[str]:
    """Run the stub and give its URL."""
    command = [sys.executable, str(Path(__file__).parent / "_stub.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
        process.terminate()


def a_look() -> str:
    """Return an observation as long as most."""
    rollout = Rollout(FlappyConfig(**WORLD), 0, Rules())
    for _ in range(100):
        rollout.fly([False])
    return rollout.message()


def cpu(run: Callable[[], Any]) -> float:
    """Return the CPU seconds of this process that `run` takes, quietly."""
    gc.collect()
    with contextlib.redirect_stderr(io.StringIO()):
        began = time.process_time()
        run()
        return time.process_time() - began


_clocked = 0.0
_depth = 0


def clocked(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function` with its CPU time added to what is ours; calls within calls count once."""

    @functools.wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        global _clocked, _depth
        if _depth:
            return function(*args, **kwargs)
        _depth, began = 1, time.process_time()
        try:
            return function(*args, **kwargs)
        finally:
            _depth, _clocked = 0, _clocked + time.process_time() - began

    return timed


@contextlib.contextmanager
def clocks() -> Iterator[Callable[[], float]]:
    """Clock every function of ours that the doors call; give what reads the CPU seconds since."""
    from flappybird import classic, taskset

    both = ("finish", "Rollout", "first_kept")
    wanted = [(classic, name) for name in ("_rollout", "_exchange", "read_reply", *both)]
    wanted += [(taskset, name) for name in ("_take", "_wire", "from_dict", *both)]
    wanted += [(Rollout, "take"), (messages, "content"), (Episode, "to_dict"), (arguments, "start")]
    wanted += [(rewards, name) for name in ("format_score", "pipes_passed", "survival_score", "turn_rewards")]
    kept = [(home, name, getattr(home, name)) for home, name in wanted]
    global _clocked
    for home, name, function in kept:
        setattr(home, name, clocked(function))
    _clocked = 0.0
    try:
        yield lambda: _clocked
    finally:
        for home, name, function in kept:
            setattr(home, name, function)


# --- classic --------------------------------------------------------------------------------------------------------


def classic(url: str, turns: int, ours: bool, window: int = 0) -> Callable[[], Any]:
    """Return what plays one classic rollout of `turns` turns, in our environment or in an empty one."""
    import verifiers as vf
    from datasets import Dataset

    from flappybird import load_environment

    if ours:
        env = load_environment(max_turns=turns, num_examples=1, config_overrides=WORLD, history_turns=window)
    else:
        look = a_look()
        prompt = load_environment(num_examples=1, config_overrides=WORLD).get_eval_dataset()[0]["prompt"][0]

        class Empty(vf.MultiTurnEnv):  # type: ignore[misc]
            async def env_response(self, messages: Any, state: Any, **kwargs: Any) -> Any:
                return [vf.UserMessage(content=look)]

        rows = Dataset.from_list([{"prompt": [prompt, {"role": "user", "content": look}], "example_id": 0}])
        rubric = vf.Rubric(funcs=[lambda completion: 0.0])
        env = Empty(max_turns=turns, dataset=rows, eval_dataset=rows, rubric=rubric)
    client = vf.ClientConfig(api_base_url=url, api_key_var=KEY)

    def run() -> None:
        found = asyncio.run(env.evaluate(client=client, model="stub", num_examples=1, rollouts_per_example=1))
        assert len(found["outputs"][0]["completion"]) == 2 * turns - 1

    return run


# --- v1 -------------------------------------------------------------------------------------------------------------


def v1(url: str, turns: int, ours: bool, window: int = 0) -> Callable[[], Any]:
    """Return what plays one v1 rollout of `turns` turns, in our environment and harness or in ones that do the least."""
    import httpx
    import verifiers.v1 as vf

    from flappybird import taskset

    look = a_look()

    class LeastSession(taskset.FlappySession):
        async def _run(self, messages: Any) -> Any:
            said = [{"role": "user", "content": self.data.prompt if messages is None else messages[0].content}]
            if not self.shown:
                self.shown = [{"role": "system", "content": self.data.system_prompt}]
            body = {"model": "stub", "messages": [*self.shown, *said]}
            response = await self.client.post(f"{self.endpoint}/chat/completions", json=body, timeout=httpx.Timeout(None))
            self.shown += [*said, {"role": "assistant", "content": response.json()["choices"][0]["message"]["content"]}]
            return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    class LeastHarness(taskset.FlappyHarness):
        async def session(self, *args: Any, **kwargs: Any) -> Any:
            return LeastSession(self, *args, **kwargs)

    class Empty(taskset.FlappyTaskEnv):
        async def run(self, task: Any, agents: Any) -> None:
            agents.agent.harness = LeastHarness(agents.agent.harness.config)
            async with agents.agent.interaction(task.__class__(task.data.model_copy(update={"prompt": None}))) as play:
                for _ in range(turns):
                    await play.turn([vf.UserMessage(content=look)])
                play.trace.info["episode"] = _SHORT

    asked = {"id": "flappybird", "max_turns": turns, "config_overrides": WORLD, "history_turns": window}
    config = vf.resolve_env_config({"taskset": asked})
    env = taskset.FlappyTaskEnv(config) if ours else Empty(config)
    task = next(iter(env.taskset))
    client = vf.EvalClientConfig(base_url=url, api_key_var=KEY)
    context = vf.ModelContext(model="stub", client=client, sampling=vf.SamplingConfig())

    async def play() -> Any:
        async with env.serving():
            return await env.run_episode(task, context)

    def run() -> None:
        episode = asyncio.run(play())
        assert episode.ok, episode.errors
        assert episode.traces[0].num_turns == turns

    return run


def _short() -> dict[str, Any]:
    from flappybird.episodes.episode import Player
    from flappybird.episodes.rewards import finish

    rollout = Rollout(FlappyConfig(), 0, Rules(max_turns=1))
    rollout.take(REPLY)
    return finish(rollout, Player(kind="model", name="stub")).to_dict()


_SHORT = _short()


# --- what is ours alone ---------------------------------------------------------------------------------------------


def own(turns: int) -> float:
    """Return the CPU seconds of reading, flying, recording and observing `turns` turns, without any library."""
    rollout = Rollout(FlappyConfig(**WORLD), 0, Rules(max_turns=turns))

    def run() -> None:
        while rollout.outcome is None:
            rollout.message()
            rollout.take(REPLY)

    return cpu(run)


def memory(turns: int, rollouts: int = 100) -> float:
    """Return the bytes that a live rollout of ours holds after `turns` turns, its replies included."""
    config = FlappyConfig(**WORLD)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = []
    for seed in range(rollouts):
        rollout = Rollout(config, seed, Rules(max_turns=turns + 1))
        for _ in range(turns):
            rollout.take(str(REPLY[:-1]) + REPLY[-1])
        kept.append(rollout.record)
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return held / len(kept)


# --- the page -------------------------------------------------------------------------------------------------------


def main(sizes: tuple[int, ...] = (100, 300, 600)) -> None:
    """Print the figures."""
    logging.disable(logging.WARNING)
    rows = []
    with model() as url:
        for door, play in _doors():
            cpu(play(url, 5, True))  # what is loaded once
            for turns in sizes:
                floor = min(cpu(play(url, turns, False)) for _ in range(REPEATS))
                for window in (0, 8):
                    runs = []
                    for _ in range(REPEATS):
                        with clocks() as ours:
                            runs.append((cpu(play(url, turns, True, window)), ours()))
                    total, own_part = (min(seconds) / turns * 1e3 for seconds in zip(*runs, strict=True))
                    share = own_part / (floor / turns * 1e3)
                    cells = (f"{floor / turns * 1e3:.2f}", f"{total:.2f}", f"{own_part:.3f}", f"{share:.1%}")
                    rows.append((door, window or "all", turns, *cells))
                    print(".", end="", file=sys.stderr, flush=True)
    print("", file=sys.stderr)
    shown = [tuple(str(cell) for cell in row) for row in rows]
    head = (
        "CPU of one rollout, ms/turn",
        "history",
        "turns",
        "empty environment",
        "our environment",
        "of it ours",
        "ours / empty",
    )
    print(table(head, shown))
    print()
    lines = []
    for turns in sizes:
        seconds = min(own(turns) for _ in range(REPEATS))
        lines.append((f"{turns} turns", f"{seconds / turns * 1e6:.0f}", f"{memory(turns) / 1e3:.0f}"))
    print(table(("ours alone", "µs/turn", "KB/live rollout"), lines))
    print()
    counted = [(e.name, f"{e.tokens.turns:,}", f"{e.tokens.prompt:,}", f"{e.tokens.completion:,}") for e in estimates({})]
    print(table(("tokens of a 300-tick episode (o200k_base)", "turns", "prompt", "completion"), counted))


def _doors() -> list[tuple[str, Callable[..., Callable[[], Any]]]]:
    import verifiers

    doors: list[tuple[str, Callable[..., Callable[[], Any]]]] = [(f"v1, verifiers {verifiers.__version__}", v1)]
    if hasattr(verifiers, "MultiTurnEnv"):
        doors.insert(0, (f"classic, verifiers {verifiers.__version__}", classic))
    return doors


if __name__ == "__main__":
    main(tuple(int(size) for size in sys.argv[1:]) or (100, 300, 600))
