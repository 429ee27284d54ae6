"""What verifiers v1 saves: `traces.jsonl` and its config."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field

from flappybird.episodes.arguments import ARGUMENTS
from flappybird.episodes.episode import MAX_BYTES, PHYSICS, Episode, Player, from_dict
from flappybird.episodes.verify import CUT_SHORT
from flappybird.errors import ConfigError, EpisodeError, show
from flappybird.protocol.rules import Rules, first_kept
from flappybird.runs.lines import json_lines
from flappybird.runs.run import Contradiction, Piece, Row, Run
from flappybird.runs.saved import (
    OURS,
    REWARDS,
    Count,
    Message,
    Number,
    Object,
    Saved,
    Versions,
    Words,
    bad_numbers,
    finite,
    mark,
    number,
    player,
    product,
    short,
)
from flappybird.system.files import parse_json, read_bytes
from flappybird.world.config import FlappyConfig
from flappybird.world.course import TRAINING_SEEDS

FILE = "traces.jsonl"


def _objects(value: Any) -> list[Any]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


Objects = BeforeValidator(_objects)
"""Put on a list of models: of what is there, the JSON objects."""


class _Data(Saved):
    idx: Count = None
    system_prompt: Words = None
    seed: Any = None
    config: Any = None
    rules: Object = Field(default_factory=dict)
    versions: Versions = Versions()


class _Task(Saved):
    data: _Data = _Data()


class _ModelConfig(Saved):
    model: Words = None


class _Agent(Saved):
    config: _ModelConfig = _ModelConfig()


class _Release(Saved):
    version: Words = None


class _Node(Saved):
    """A message of the conversation; which one it follows makes a tree of them."""

    parent: Any = None
    message: Message = Message()
    sampled: Any = None

    @property
    def reply(self) -> bool:
        return self.sampled is True


class _Usage(Saved):
    prompt_tokens: Number = None
    cached_input_tokens: Number = None
    completion_tokens: Number = None


class _Call(Saved):
    usage: _Usage | None = None


class _Kept(Saved):
    """`info` of a trace."""

    episode: Any = None
    ending: Any = None
    turn_rewards: Any = None


class _Fault(Saved):
    type: Any = None
    message: Any = None


class _Timing(Saved):
    start: Number = None


class _Trace(Saved):
    """One rollout."""

    task: _Task = _Task()
    agent: _Agent = _Agent()
    verifiers: _Release = _Release()
    nodes: Annotated[list[_Node], Objects] = Field(default_factory=list)
    calls: Annotated[list[_Call], Objects] = Field(default_factory=list)
    rewards: Object = Field(default_factory=dict)
    metrics: Object = Field(default_factory=dict)
    info: _Kept = _Kept()
    ok: Any = None
    stop_condition: Any = None
    errors: Annotated[list[_Fault], Objects] = Field(default_factory=list)
    timing: _Timing = _Timing()


class _Line(Saved):
    """A line of `traces.jsonl`: one episode of the library, with the trace of each of its agents."""

    task: _Task | None = None
    traces: Annotated[list[_Trace], Objects] = Field(default_factory=list)
    ok: Any = None
    errors: Annotated[list[_Fault], Objects] = Field(default_factory=list)


class _Env(Saved):
    taskset: Object = Field(default_factory=dict)


class _Select(Saved):
    limit: Count = None


class _Config(Saved):
    """What the run was started with."""

    env: _Env = _Env()
    taskset: Object = Field(default_factory=dict)
    model: Words = None
    sampling: Object = Field(default_factory=dict)
    num_tasks: Count = None
    num_rollouts: Count = None
    select: _Select = _Select()


class Traces:
    """Reads `traces.jsonl` and the config beside it."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @classmethod
    def of(cls, path: Path) -> Self | None:
        file = path if path.name == FILE else path / FILE
        return cls(file) if file.is_file() else None

    def head(self) -> Run:
        return self._head

    def pieces(self, start: int = 0) -> Iterator[Piece]:
        return json_lines(self.file, start)

    def rows(self, piece: Piece) -> list[Row]:
        """Return a row for each trace of a saved episode, and one that says why where it has none."""
        if piece.data is None:
            return []
        line = _Line.model_validate(piece.data)
        if line.traces:
            return [self._row(trace, line, piece.offset) for trace in line.traces]
        error = _last(line.errors) or "error"
        why = "the rollout ended before it began"
        return [Row(0, None, problem=why, error=error, example=line.task.data.idx if line.task else None, offset=piece.offset)]

    # --- what is known of all rows ---

    @cached_property
    def _notes(self) -> list[str]:
        return []

    @cached_property
    def _config(self) -> _Config:
        return _Config.model_validate(_saved_config(self.file.parent, self._notes))

    @cached_property
    def _taskset(self) -> dict[str, Any]:
        return self._config.env.taskset or self._config.taskset

    @cached_property
    def _player(self) -> Player:
        model = self._config.model or (self._first.agent.config.model if self._first else None)
        return player(model or "unknown", self._config.sampling, self._notes)

    @cached_property
    def _first(self) -> _Trace | None:
        """The first trace of the run."""
        for piece in self.pieces():
            if piece.data is not None and (traces := _Line.model_validate(piece.data).traces):
                return traces[0]
        return None

    @cached_property
    def _head(self) -> Run:
        config, taskset, who = self._config, self._taskset, self._player
        # Each release says elsewhere how many games were asked for; in 0.3.0, none means all of them.
        tasks = config.num_tasks or config.select.limit
        if tasks is None and config.num_rollouts is not None:
            tasks = _Config.model_validate({"num_tasks": taskset.get("num_examples")}).num_tasks
        first = self._first
        versions = {
            "flappybird": first.task.data.versions.flappybird if first else None,
            "verifiers": first.verifiers.version if first else None,
        }
        return Run(
            path=self.file.parent,
            kind="v1",
            model=who.name,
            rows=[],
            asked=product(tasks, config.num_rollouts),
            each=config.num_rollouts,
            env_args={name: taskset[name] for name in ("split", *ARGUMENTS) if taskset.get(name) is not None},
            sampling=who.sampling,
            versions={name: version for name, version in versions.items() if version is not None},
            notes=self._notes,
        )

    # --- one row ---

    def _row(self, trace: _Trace, line: _Line, offset: int) -> Row:
        example, error = trace.task.data.idx, None if trace.ok is True else _last(trace.errors) or "error"
        scores, wrong = self._scores(trace, error)
        used = [call.usage for call in trace.calls if call.usage is not None]
        replies = [node.message.said for node in trace.nodes if node.reply]
        kept: dict[str, Any] = {
            "error": error,
            "claims": finite(scores),
            "usage": {
                "prompt_tokens": sum((use.prompt_tokens or 0) + (use.cached_input_tokens or 0) for use in used),
                "completion_tokens": sum(use.completion_tokens or 0 for use in used),
            }
            if any(use.prompt_tokens or use.completion_tokens for use in used)
            else {},
            "example": example,
            "started": trace.timing.start,
            "mark": mark(trace.timing.start, replies) if trace.timing.start else None,
            "offset": offset,
        }
        try:
            if trace.info.episode is None:
                raise EpisodeError("the trace has no episode in its info: it is of another environment, or ended before it began")
            episode = from_dict(trace.info.episode, "info.episode")
        except EpisodeError as fault:
            return Row(0, None, problem=str(fault), **kept)
        seen = {
            "player": self._player.model_copy(update={"name": episode.player.name}),
            "origin": {"run": self.file.parent.name, "example": example},
        }
        stated: dict[str, Any] = {"stop_condition": trace.stop_condition}
        if self._taskset.get("system_prompt") is None:
            stated["system_prompt"] = trace.task.data.system_prompt
        for name in ("ending", "turn_rewards"):
            if (value := getattr(trace.info, name)) is not None:
                stated[f"info.{name}"] = value
        contradictions = [*wrong, *self._unlike_its_task(trace, line, episode), *_odd_nodes(trace, episode)]
        if trace.ok is not (not trace.errors):
            contradictions.append(Contradiction("ok", 0, trace.ok, not trace.errors))
        return Row(
            0,
            episode.model_copy(update=seen),
            contradictions=contradictions,
            stated=stated,
            observations=[_parent(node, trace.nodes).message.text for node in trace.nodes if node.reply],
            replies=replies,
            **kept,
        )

    def _scores(self, trace: _Trace, error: str | None) -> tuple[dict[str, Any], list[Contradiction]]:
        """Return the scores that a trace has, the reward among them, and what is wrong with them as such."""
        given = {name: value if isinstance(value, dict) else {} for name, value in trace.rewards.items()}
        scores: dict[str, Any] = {name: value.get("score", "missing") for name, value in given.items() if value}
        wrong = []
        if not (error is not None and not scores):  # what broke may not have been scored
            wrong += bad_numbers(scores | trace.metrics, (*REWARDS, *OURS))
        plugged = self._task_config.get("rewards")  # which can change a weight, or add rewards of one's own
        for name, weight in REWARDS.items():
            stored = given.get(name, {}).get("weight", "missing")
            if name in scores and stored != weight and not (isinstance(plugged, dict) and name in plugged):
                wrong.append(Contradiction(f"rewards.{name}.weight", 0, stored, weight))
        shares = [number(scores[name]) for name in REWARDS if name in scores]
        if len(shares) == len(REWARDS) and None not in shares:
            scores["reward"] = sum(share * weight for share, weight in zip(shares, REWARDS.values(), strict=True) if share)
        return scores | trace.metrics, wrong

    @property
    def _task_config(self) -> dict[str, Any]:
        task = self._taskset.get("task")
        return task if isinstance(task, dict) else {}

    def _unlike_its_task(self, trace: _Trace, line: _Line, episode: Episode) -> Iterator[Contradiction]:
        """Yield where an episode is not of the task that its trace, its line and its run say it is of."""
        places = {"traces.task.data": trace.task.data, "task.data": (line.task or _Task()).data}
        if line.task is None and trace.verifiers.version == "0.3.0":  # which keeps the task with its traces alone
            del places["task.data"]
        for where, data in places.items():
            for name, stored, played in (
                ("idx", data.idx, trace.task.data.idx),
                ("seed", data.seed, episode.seed),
                ("config", _config(data.config), episode.config),
                ("rules", _rules(data.rules), episode.rules),
                ("system_prompt", data.system_prompt, trace.task.data.system_prompt),
                ("versions.flappybird", data.versions.flappybird, trace.task.data.versions.flappybird or "a release"),
                ("versions.physics", data.versions.physics, PHYSICS),
            ):
                if stored != played:
                    yield Contradiction(f"{where}.{name}", 0, stored, played)
        first, example = self._taskset.get("seed"), trace.task.data.idx
        if isinstance(first, int) and example is not None:
            asked = first + example + (TRAINING_SEEDS.start if self._taskset.get("split") == "train" else 0)
            if episode.seed != asked:
                yield Contradiction("seed", 0, episode.seed, asked)


def _config(value: Any) -> FlappyConfig | str:
    try:
        return FlappyConfig.of(value) if isinstance(value, dict) else show(value)
    except ConfigError as error:
        return str(error)


def _rules(value: dict[str, Any]) -> Rules | str:
    try:
        return Rules(**value)
    except ConfigError as error:
        return str(error)


_NOTHING = _Node()


def _parent(node: _Node, nodes: list[_Node]) -> _Node:
    """Return the message that a message follows; an empty one where it follows none."""
    place = node.parent
    return nodes[place] if isinstance(place, int) and 0 <= place < len(nodes) else _NOTHING


def _odd_nodes(trace: _Trace, episode: Episode) -> Iterator[Contradiction]:
    """Yield the first message of a trace that no model was to read or say.

    Every reply must answer an observation that follows the turns that were kept, and these the system prompt; whatever is on no
    such way does not belong there. What is read and said itself is compared with the replay, see `check`.
    """
    nodes, window = trace.nodes, episode.rules.history_turns
    replies = [place for place, node in enumerate(nodes) if node.reply]
    cut_short = episode.outcome.reason in CUT_SHORT
    if len(replies) > len(episode.turns) + cut_short:  # where it was cut short, a last reply may have come too late
        place = replies[len(episode.turns)]
        yield Contradiction(f"nodes[{place}]", 0, "a reply", f"no more than {len(episode.turns)} replies")
        return
    asked = list(replies)
    if cut_short and nodes and not nodes[-1].reply:
        asked.append(len(nodes))  # an observation that nobody answered
    known: set[int] = set()
    texts: list[tuple[str, str]] = []  # role and text of what the model has read and said so far, without the system prompt
    for turn, reply in enumerate(asked):
        kept = first_kept(turn, window)
        place = nodes[reply].parent if reply < len(nodes) else reply - 1
        known.add(reply)
        expected = [("user", None), *reversed(texts[2 * kept :]), ("system", trace.task.data.system_prompt)]
        for step, (role, text) in enumerate(expected):
            if not isinstance(place, int) or not 0 <= place < min(reply, len(nodes)):
                yield Contradiction(f"nodes[{reply}]", 0, f"{step} messages", f"after {len(expected)}")
                return
            node = nodes[place]
            if node.message.role != role or (text is not None and node.message.text != text):
                yield Contradiction(f"nodes[{place}]", 0, (node.message.role, node.message.text), (role, text or "a message"))
                return
            if step == 0:
                texts.append(("user", node.message.text))
            known.add(place)
            if step == 1 and turn and kept == first_kept(turn - 1, window) and place == asked[turn - 1]:
                break  # from here on it is the way of the turn before
            place = node.parent
        else:
            if place is not None:
                yield Contradiction(f"nodes[{reply}]", 0, "more messages", f"after {len(expected)}")
                return
        if reply < len(nodes):
            texts.append(("assistant", nodes[reply].message.text))
            if nodes[reply].message.role != "assistant":
                yield Contradiction(f"nodes[{reply}].role", 0, nodes[reply].message.role, "assistant")
                return
    for place, node in enumerate(nodes):
        if place not in known:
            yield Contradiction(f"nodes[{place}]", 0, (node.message.role, node.message.text), "no message")
            return


def _saved_config(folder: Path, notes: list[str]) -> Any:
    """Return the config that a v1 run was started with, from where its release keeps it; what is amiss is added to `notes`."""
    resolved = folder / "configs" / "resolved"
    files = sorted((resolved if resolved.is_dir() else folder / "configs").glob("*.json"))
    try:
        if files:
            return parse_json(read_bytes(files[0], MAX_BYTES), str(files[0]), constants=True)
        stated = tomllib.loads(read_bytes(folder / "config.toml", MAX_BYTES).decode("utf-8"))  # release 0.3.0
        return json.loads(json.dumps(stated, default=str))  # TOML has dates, which nothing here can keep
    except EpisodeError as error:
        notes.append(str(error) if files else f"{folder.name} has no config")
    except (ValueError, RecursionError) as error:
        notes.append(f"{folder / 'config.toml'}: not TOML: {show(str(error), 120)}")
    return {}


def _last(errors: list[_Fault]) -> str | None:
    """Return the last error, in one line."""
    return short(f"{errors[-1].type}: {errors[-1].message}") if errors else None
