"""Door: verifiers v1, what `eval` of release 0.3 and `vf-eval` of 0.4 run and what prime-rl trains on.

A taskset yields seeds, an environment carries messages between the agent and a `Rollout`, and a harness asks the model. No rule
of the game is here. The finished episode stands in `trace.info["episode"]`, and every score is a function of it, so that saved
traces can be scored again.

The harness is our own because the stock one for plain chat starts a Python program for every turn. Ours keeps one connection
and posts from within; all model calls still go through the library's interception, which is the contract.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import itertools
import json
import ssl
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from flappybird import pictures, rewards
from flappybird.config import FlappyConfig
from flappybird.course import Course
from flappybird.episode import Episode, Player, from_dict
from flappybird.errors import missing_api
from flappybird.game import Reason
from flappybird.loopback import spare_loopback
from flappybird.records import finish
from flappybird.rollout import Rollout, Rules, View, first_kept
from flappybird.settings import ARGUMENTS, Settings, observe, prompt_of
from flappybird.solver import passable
from flappybird.text import read_config, read_ticks

try:
    import httpx
    import verifiers.v1 as vf

    vf.HarnessSession, vf.Interaction  # noqa: B018 - touched, so that a release without them is told here
except (ImportError, AttributeError):
    raise missing_api("the taskset needs v1 of verifiers", "has none of it", "pip install 'verifiers>=0.3' brings it") from None


# --- which games are played ---------------------------------------------------------------------------------------


class FlappyTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    """The environment's arguments, `--env.taskset.*`: those of `load_environment`, and which seeds to play."""

    split: Literal["eval", "train"] = "eval"
    """`eval`: `num_examples` games from `seed` on. `train`: an endless stream of others."""
    num_examples: int = 10
    """Games of the evaluation; `-n` may ask for more or fewer."""
    seed: int = 0
    """Seed of the first game; game i has seed `seed` + i, and training seeds lie beyond all of evaluation."""
    config: dict[str, Any] | None = None
    """The world; fields that are left out are the card's."""
    config_overrides: dict[str, Any] | None = None
    """Fields laid over `config`."""
    difficulty: str | None = None
    """A named world instead of `config`: card, easy, medium, hard or expert."""
    max_turns: int = 300
    """The limit on ticks."""
    ticks_per_turn: int = 1
    """Ticks that one reply plans."""
    latency_ticks: int = 0
    """An action lands so many ticks late."""
    stop_on_malformed: int = 0
    """The episode ends after so many invalid replies in a row; 0 for never."""
    realtime: float | bool = 0.0
    """Ticks that pass in each second that a reply takes; true for 30, 0 where the game waits."""
    observation: View = "card"
    """What the model sees: card, signed, ascii, image or text+image."""
    history_turns: int = 0
    """The model sees the last so many turns, up to twice as many less one; 0 for all."""
    turn_reward: bool = False
    """Whether `trace.info["turn_rewards"]` says what each turn added to the reward."""

    @model_validator(mode="after")
    def _playable(self) -> Self:
        self.settings()
        return self

    def settings(self) -> Settings:
        """Return the checked arguments. Raises ConfigError."""
        return Settings.of(**{name: getattr(self, name) for name in ARGUMENTS if name != "report"})


class FlappyData(vf.TaskData):  # type: ignore[misc]
    """One game: with the replies it gives the episode again, anywhere."""

    seed: int
    config: FlappyConfig
    rules: Rules
    versions: dict[str, Any] = Field(default_factory=dict)
    """Release of this package and version of the physics."""


class FlappyTask(vf.Task[FlappyData, vf.State, vf.TaskConfig]):  # type: ignore[misc]
    """One game to play, its scores and its check."""

    @property
    def key(self) -> str:
        """What is played, whatever its place in the taskset and whatever the prompt says: the seed and a digest of the world."""
        world = json.dumps([self.data.config.model_dump(), self.data.rules.model_dump()], sort_keys=True)
        return f"{self.data.seed}-{hashlib.sha256(world.encode()).hexdigest()[:12]}"

    @vf.reward(weight=rewards.WEIGHTS["pipes_passed"])  # type: ignore[untyped-decorator]
    async def flappy_reward_func(self, trace: vf.Trace) -> float:
        """Number of pipes passed."""
        return rewards.pipes_passed(episode_of(trace))

    @vf.reward(weight=rewards.WEIGHTS["survival_score"])  # type: ignore[untyped-decorator]
    async def flappy_survival_reward(self, trace: vf.Trace) -> float:
        """Accumulated survival bonus."""
        return rewards.survival_score(episode_of(trace))

    @vf.reward(weight=rewards.WEIGHTS["format"])  # type: ignore[untyped-decorator]
    async def format_reward_func(self, trace: vf.Trace) -> float:
        """Mean format score of the replies."""
        return rewards.format_score(episode_of(trace))

    @vf.metric  # type: ignore[untyped-decorator]
    async def all_metrics(self, trace: vf.Trace) -> dict[str, float]:
        """Every metric of the card and of ours, each under its own name."""
        episode = episode_of(trace)
        return {metric.__name__: metric(episode) for metric in rewards.ALL_METRICS}

    async def validate(self, runtime: Any) -> bool:
        """Whether some sequence of actions lives to the tick limit, and the prompt states the world that is played."""
        data = self.data
        stated = read_config(data.system_prompt or ""), read_ticks(data.system_prompt or "")
        if stated != (data.config, data.rules.ticks_per_turn):
            raise ValueError(f"seed {data.seed}: the system prompt states {stated[0]} and {stated[1]} ticks a turn")
        if not await asyncio.to_thread(passable, Course(data.config, data.seed), data.rules.max_turns):
            raise ValueError(f"seed {data.seed}: no bird can live {data.rules.max_turns} ticks")
        return True


def episode_of(trace: vf.Trace) -> Episode:
    """Return the episode that `trace` has become. Raises EpisodeError where it has none."""
    return from_dict(trace.info.get("episode"), f"trace {trace.id}")


class FlappyTaskset(vf.Taskset[FlappyTask, FlappyTasksetConfig]):  # type: ignore[misc]
    """Seeds to play: a table of any length for evaluation, an endless stream for training."""

    INFINITE = True  # of the class, as trainers ask it; a taskset of evaluation games says no for itself

    def __init__(self, config: FlappyTasksetConfig) -> None:
        super().__init__(config)
        self.settings = config.settings()
        pictures.require(self.settings.rules)
        spare_loopback()  # the harness asks a server in this process, which asks the model
        self.count: int | None = config.num_examples if config.split == "eval" else None
        self.INFINITE = self.count is None

    def load(self) -> Iterator[FlappyTask]:
        row_of = self.settings.evaluation_row if self.config.split == "eval" else self.settings.training_row
        for index in itertools.count() if self.count is None else range(self.count):
            row = row_of(index)
            rollout = Rollout(self.settings.config, row["seed"], self.settings.rules)
            data = FlappyData(
                idx=index,
                name=f"seed {row['seed']}",
                system_prompt=prompt_of(self.settings.config, self.settings.rules),
                # A picture is drawn when it is sent: the task stays small, and the same wherever it is loaded.
                prompt=None if pictures.has_picture(self.settings.rules) else observe(rollout),
                **row,
            )
            yield FlappyTask(data, self.config.task)

    def _first(self, count: int) -> Self:
        # Games are made on demand: as many as are asked for, where the library would stop at the end of the table.
        view = copy.copy(self)
        view.count, view.INFINITE = count, False
        return view

    def head(self, num_tasks: int) -> Self:
        """Return a view of the first `num_tasks` games (release 0.3)."""
        return self._first(num_tasks) if self.transform is None else super().head(num_tasks)

    def take(self, num_tasks: int) -> Self:
        """Return a view of the first `num_tasks` games (release 0.4)."""
        return self._first(num_tasks) if self.transform is None else super().take(num_tasks)


# --- how one is played --------------------------------------------------------------------------------------------


class FlappyEnvConfig(vf.SingleAgentEnvConfig):  # type: ignore[misc]
    """The one agent's seat. Its harness runs within this process, so it needs no box of its own."""

    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class FlappyTaskEnv(vf.SingleAgentEnv, vf.Env[FlappyEnvConfig]):  # type: ignore[misc]
    """Flappy Bird for `eval`, its worker pool, and v1 trainers."""

    async def run(self, task: FlappyTask, agents: vf.Agents) -> None:
        rollout = Rollout(task.data.config, task.data.seed, task.data.rules)
        async with agents.agent.interaction(task) as play:
            try:
                # A task with a prompt has its first observation there.
                message = _message(rollout) if task.data.prompt is None else None
                while rollout.outcome is None:
                    segment = await play.turn(message)
                    if segment.terminated:
                        break
                    _take(rollout, play.trace)
                    message = _message(rollout) if rollout.outcome is None else None
            finally:
                # Scores are made when the interaction closes, from what stands here.
                self._conclude(rollout, play.trace)

    def _conclude(self, rollout: Rollout, trace: vf.Trace) -> None:
        error = None
        if rollout.outcome is not None:
            trace.stop(_STOPS.get(rollout.outcome.reason, "crashed"))
        elif trace.stop_condition in _OUT_OF_TOKENS:
            rollout.end(Reason.CONTEXT)
        elif trace.last_error is not None:
            error = f"{trace.last_error.type}: {trace.last_error.message}"
        episode = finish(rollout, Player(kind="model", name=str(trace.agent.config.model)), error=error)
        trace.info["episode"] = episode.to_dict()
        told = episode.outcome
        trace.info["ending"] = f"{rollout.outcome}, {told.pipes_passed} pipes passed, format {told.format:.2f}"
        if self.taskset.config.turn_reward:
            trace.info["turn_rewards"] = rewards.turn_rewards(episode)


_STOPS = {Reason.TICK_LIMIT: "tick_limit_reached", Reason.MALFORMED: "too_many_malformed"}
"""Stop conditions, named as in the classic door."""

_OUT_OF_TOKENS = ("context_length", "max_input_tokens", "max_output_tokens", "max_total_tokens")


def _message(rollout: Rollout) -> list[Any]:
    return [vf.UserMessage(content=pictures.content(rollout))]


def _take(rollout: Rollout, trace: vf.Trace) -> None:
    """Give the reply that stands at the end of `trace` to the rollout."""
    call = trace.calls[-1]
    message, usage, seconds = trace.nodes[call.node].message, call.usage, call.time.duration
    rollout.take(
        message.content,
        message.reasoning_content,
        cut=call.finish_reason == "length",
        prompt_tokens=usage.input_tokens if usage else None,
        completion_tokens=usage.completion_tokens if usage else None,
        waited=rollout.rules.waited(seconds),
        seconds=round(seconds, 4),
    )


# --- how the model is asked ---------------------------------------------------------------------------------------

RETRIES = 5
"""How often a call that failed for a passing reason is made again."""

BACKOFF = 0.5
"""Seconds before the first of them; twice as many before each next one."""

PASSING = (408, 429, *range(500, 600))
"""HTTP statuses after which it is worth asking again."""


class FlappyHarness(vf.Harness[vf.HarnessConfig]):  # type: ignore[misc]
    """Asks the model turn by turn, from within this process: no tools, one connection, and only the turns that the rules show."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def session(self, *args: Any, **kwargs: Any) -> FlappySession:
        return FlappySession(self, *args, **kwargs)

    async def launch(self, *args: Any, **kwargs: Any) -> vf.ProgramResult:
        session = await self.session(*args, **kwargs)
        try:
            return await session._run(None)
        finally:
            await session.close()


class FlappySession(vf.HarnessSession):  # type: ignore[misc]
    """One conversation: what was said, as it goes over the wire, and the connection it goes over."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.client = httpx.AsyncClient(timeout=None, headers={"authorization": f"Bearer {self.secret}"}, verify=_certificates())
        system, _ = self.harness.resolve_prompt(self.data)
        self.head = [_wire({"role": "system", "content": system})] if system else []
        rules = getattr(self.data, "rules", None)
        self.window = rules.history_turns if isinstance(rules, Rules) else 0
        self.turns = 0
        """Turns that are over."""
        self.shown: list[list[bytes]] = []
        """The messages of each turn that the model is still shown."""

    async def _run(self, messages: Any | None) -> vf.ProgramResult:
        said = [_wire({"role": m.role, "content": _content(m.content)}) for m in self._said(messages)]
        kept = first_kept(self.turns, self.window)
        self.shown = self.shown[len(self.shown) - (self.turns - kept) :]
        conversation = b",".join([*self.head, *itertools.chain.from_iterable(self.shown), *said])
        body = b'{"model":%s,"messages":[%s]}' % (_wire(self.ctx.model), conversation)
        response = await self._ask(body)
        if response.status_code != 200:
            return vf.ProgramResult(exit_code=1, stdout="", stderr=response.text)
        reply = response.json()["choices"][0]["message"]
        reply = {name: value for name, value in reply.items() if value is not None} | {"content": reply.get("content") or ""}
        self.shown.append([*said, _wire(reply)])
        self.turns += 1
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    def _said(self, messages: Any | None) -> list[Any]:
        if messages is not None:
            return list(messages)
        prompt = self.data.prompt
        return [vf.UserMessage(content=prompt)] if isinstance(prompt, str) else list(prompt or ())

    async def _ask(self, body: bytes) -> httpx.Response:
        for attempt in itertools.count():
            # The count tells the library which calls are the same one again.
            headers = {"content-type": "application/json", "x-stainless-retry-count": str(attempt)}
            response = await self.client.post(f"{self.endpoint}/chat/completions", content=body, headers=headers)
            if response.status_code not in PASSING or attempt == RETRIES:
                return response
            await asyncio.sleep(BACKOFF * 2**attempt)
        raise AssertionError("unreachable")

    async def close(self) -> None:
        await super().close()
        await self.client.aclose()


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    """Return what remote interception is verified against; loading it takes longer than many turns do, so it is kept."""
    return ssl.create_default_context()


def _wire(value: Any) -> bytes:
    return json.dumps(value).encode()


def _content(content: Any) -> Any:
    return content if isinstance(content, str) else [part.model_dump() for part in content]
