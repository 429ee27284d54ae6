"""What verifiers v1 saves: `traces.jsonl` and its config."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from flappybird.episodes.arguments import ARGUMENTS
from flappybird.episodes.episode import MAX_BYTES, PHYSICS, Episode, Player, from_dict
from flappybird.errors import ConfigError, EpisodeError, show
from flappybird.protocol.rules import Rules
from flappybird.runs.lines import json_lines
from flappybird.runs.run import Contradiction, Piece, Row, Run
from flappybird.runs.saved import (
    OURS,
    REWARDS,
    bad_numbers,
    finite,
    mark,
    number,
    player,
    product,
    short,
)
from flappybird.runs.trace import Config, Fault, Line, Task, Trace, odd_nodes, parent
from flappybird.system.files import parse_json, read_bytes
from flappybird.world.config import FlappyConfig
from flappybird.world.seeds import TRAINING_SEEDS

FILE = "traces.jsonl"


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
        line = Line.model_validate(piece.data)
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
    def _config(self) -> Config:
        return Config.model_validate(_saved_config(self.file.parent, self._notes))

    @cached_property
    def _taskset(self) -> dict[str, Any]:
        return self._config.env.taskset or self._config.taskset

    @cached_property
    def _player(self) -> Player:
        model = self._config.model or (self._first.agent.config.model if self._first else None)
        return player(model or "unknown", self._config.sampling, self._notes)

    @cached_property
    def _first(self) -> Trace | None:
        """The first trace of the run."""
        for piece in self.pieces():
            if piece.data is not None and (traces := Line.model_validate(piece.data).traces):
                return traces[0]
        return None

    @cached_property
    def _head(self) -> Run:
        config, taskset, who = self._config, self._taskset, self._player
        # Each release says elsewhere how many games were asked for; in 0.3.0, none means all of them.
        tasks = config.num_tasks or config.select.limit
        if tasks is None and config.num_rollouts is not None:
            tasks = Config.model_validate({"num_tasks": taskset.get("num_examples")}).num_tasks
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

    def _row(self, trace: Trace, line: Line, offset: int) -> Row:
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
        contradictions = [*wrong, *self._unlike_its_task(trace, line, episode), *odd_nodes(trace, episode)]
        if trace.ok is not (not trace.errors):
            contradictions.append(Contradiction("ok", 0, trace.ok, not trace.errors))
        return Row(
            0,
            episode.model_copy(update=seen),
            contradictions=contradictions,
            stated=stated,
            observations=[parent(node, trace.nodes).message.text for node in trace.nodes if node.reply],
            replies=replies,
            **kept,
        )

    def _scores(self, trace: Trace, error: str | None) -> tuple[dict[str, Any], list[Contradiction]]:
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

    def _unlike_its_task(self, trace: Trace, line: Line, episode: Episode) -> Iterator[Contradiction]:
        """Yield where an episode is not of the task that its trace, its line and its run say it is of."""
        places = {"traces.task.data": trace.task.data, "task.data": (line.task or Task()).data}
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


def _last(errors: list[Fault]) -> str | None:
    """Return the last error, in one line."""
    return short(f"{errors[-1].type}: {errors[-1].message}") if errors else None
