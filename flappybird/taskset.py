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
import re
from collections.abc import Iterator
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from flappybird.episodes import rewards
from flappybird.episodes.arguments import ARGUMENTS, Settings
from flappybird.episodes.episode import Episode, Player, from_dict
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.errors import MissingPart
from flappybird.messages import content, require_renderer
from flappybird.protocol.observe import has_picture
from flappybird.protocol.prompt import prompt_of, read_config, read_ticks
from flappybird.protocol.rules import MAX_TURNS, ObservationKind, Rules
from flappybird.system.install import found_verifiers
from flappybird.system.loopback import spare_loopback
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course
from flappybird.world.game import Reason
from flappybird.world.solver import passable

try:
    import verifiers.v1 as vf

    vf.HarnessSession, vf.Interaction  # noqa: B018 - touched, so that a release without them is noticed here
except (ImportError, AttributeError):
    raise MissingPart(
        f"the taskset needs v1 of verifiers, release 0.3 or newer, and {found_verifiers('has none of it')}"
    ) from None


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
    max_turns: int = MAX_TURNS
    """The limit on ticks."""
    ticks_per_turn: int = 1
    """Ticks that one reply plans."""
    latency_ticks: int = 0
    """An action lands this many ticks late."""
    stop_on_malformed: int = 0
    """The episode ends after this many invalid replies in a row; 0 for never."""
    realtime: float | bool = 0.0
    """Ticks that pass in each second that a reply takes; true for 30, 0 where the game waits."""
    observation: ObservationKind = "card"
    """What the model sees: card, signed, ascii, image or text+image."""
    history_turns: int = 0
    """The model sees the last k turns, up to 2k - 1; 0 for all, -1 for the present observation alone."""
    turn_reward: bool = False
    """Whether `trace.info["turn_rewards"]` says what each turn added to the reward."""
    allow_impossible: bool = False
    """Whether courses are played that no bird can fly to the tick limit."""

    @model_validator(mode="before")
    @classmethod
    def _as_in_the_classic_door(cls, given: Any) -> Any:
        # Checked before pydantic makes 1 of True and 300 of "300.0".
        if not isinstance(given, dict):
            return given
        given = {name: _typed(name, value) for name, value in given.items() if value is not None}
        Settings.of(**{name: given[name] for name in ARGUMENTS if name in given and name != "report"})
        return given

    def settings(self) -> Settings:
        """Return the checked arguments. Raises ConfigError."""
        return Settings.of(**{name: getattr(self, name) for name in ARGUMENTS if name != "report"})


def _typed(name: str, value: Any) -> Any:
    """Return an argument that a command line gave as text as what it stands for."""
    if not isinstance(value, str) or name not in ARGUMENTS:
        return value
    default = getattr(Settings, name, Rules.model_fields[name].default if name in Rules.model_fields else None)
    if isinstance(default, bool | float) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if isinstance(default, float) and re.fullmatch(r"-?\d+(\.\d+)?", value):
        return float(value)
    if isinstance(default, int) and not isinstance(default, bool) and re.fullmatch(r"-?\d+", value):
        return int(value)
    return value


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
        require_renderer(self.settings.rules)
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
                prompt=None if has_picture(self.settings.rules) else rollout.message(),
                **row,
            )
            yield FlappyTask(data, self.config.task)

    def _first(self, count: int) -> Self:
        # Games are made on demand: as many as are asked for, where the library would stop at the end of the table.
        if self.config.split == "eval":
            self.settings.certify(count)
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
        ending = episode.outcome
        trace.info["ending"] = f"{rollout.outcome}, {ending.pipes_passed} pipes passed, format {ending.format:.2f}"
        if self.taskset.config.turn_reward:
            trace.info["turn_rewards"] = rewards.turn_rewards(episode)


_STOPS = {Reason.TICK_LIMIT: "tick_limit_reached", Reason.MALFORMED: "too_many_malformed"}
"""Stop conditions, named as in the classic door."""

_OUT_OF_TOKENS = ("context_length", "max_input_tokens", "max_output_tokens", "max_total_tokens")


def _message(rollout: Rollout) -> list[Any]:
    return [vf.UserMessage(content=content(rollout))]


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
