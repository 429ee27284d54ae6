"""What classic `vf-eval` saves: `results.jsonl` and `metadata.json`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError

from flappybird.episodes.arguments import Settings
from flappybird.episodes.episode import MAX_BYTES, PHYSICS, Ending, Episode, Player, Turn
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.errors import ConfigError, EpisodeError, show
from flappybird.protocol.rules import Rules
from flappybird.runs.lines import json_lines
from flappybird.runs.run import Contradiction, Piece, Row, Run, filled
from flappybird.runs.saved import (
    OURS,
    REWARDS,
    Count,
    Items,
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
from flappybird.world.config import FlappyConfig, one_line
from flappybird.world.seeds import TRAINING_SEEDS

FILE = "results.jsonl"

METRICS = (*OURS, *REWARDS, "num_turns")
"""What every row has a number of, in `metrics` and in a column of its own."""


class _VersionInfo(Saved):
    env_version: Words = None
    vf_version: Words = None


class Metadata(Saved):
    """`metadata.json`."""

    model: Any = None
    sampling_args: Object = Field(default_factory=dict)
    env_args: Object = Field(default_factory=dict)
    num_examples: Count = None
    rollouts_per_example: Count = None
    version_info: _VersionInfo = _VersionInfo()
    avg_reward: Any = "missing"
    avg_error: Any = "missing"
    avg_metrics: Object = Field(default_factory=dict)

    @property
    def averages(self) -> dict[str, Any]:
        """The means over the rows, by name; empty where none was saved."""
        if self.avg_reward == self.avg_error == "missing" and not self.avg_metrics:
            return {}
        return {"avg_reward": self.avg_reward, "avg_error": self.avg_error} | {
            f"avg_metrics.{name}": self.avg_metrics.get(name, "missing") for name in (*METRICS, *self.avg_metrics)
        }


class _Timing(Saved):
    start_time: Number = None


class _Usage(Saved):
    input_tokens: Number = None
    output_tokens: Number = None


class _Output(Saved):
    """A line of `results.jsonl`."""

    example_id: Any = None
    prompt: Annotated[list[Message], Items] = Field(default_factory=list)
    completion: Annotated[list[Message], Items] = Field(default_factory=list)
    info: Any = None
    reward: Any = "missing"
    metrics: Object = Field(default_factory=dict)
    error: Any = None
    stop_condition: Any = None
    timing: _Timing = _Timing()
    token_usage: _Usage = _Usage()


class _Info(Saved):
    """What our door keeps of a rollout beside its messages."""

    seed: Any = "missing"
    config: Any = None
    rules: Object = Field(default_factory=dict)
    versions: Versions = Versions()
    turns: Annotated[list[Object], Items] = Field(default_factory=list)
    outcome: Any = None


class Results:
    """Reads `results.jsonl` and the `metadata.json` beside it."""

    def __init__(self, file: Path) -> None:
        self.file = file

    @classmethod
    def of(cls, path: Path) -> Self | None:
        file = path if path.name == FILE else path / FILE
        return cls(file) if file.is_file() else None

    def head(self) -> Run:
        return self._outputs.head

    def pieces(self, start: int = 0) -> Iterator[Piece]:
        return json_lines(self.file, start)

    def rows(self, piece: Piece) -> list[Row]:
        return [] if piece.data is None else [self._outputs.row(piece.data, piece.offset)]

    @cached_property
    def _outputs(self) -> _Outputs:
        folder, notes, metadata = self.file.parent, [], None
        if (folder / "metadata.json").is_file():
            try:
                saved = read_bytes(folder / "metadata.json", MAX_BYTES)
                metadata = parse_json(saved, f"{folder / 'metadata.json'}", constants=True)
            except EpisodeError as error:
                notes.append(str(error))
        else:
            notes.append(f"{folder.name} has no metadata.json")
        return _Outputs(metadata, folder, notes)


def run_of_outputs(outputs: Iterable[Mapping[str, Any]], metadata: Mapping[str, Any], path: Path) -> Run:
    """Return the run that rows of classic verifiers in memory, and their metadata, make."""
    made = _Outputs(dict(metadata), path, [])
    return filled(made.head, [made.row(output) for output in outputs], damaged=0)


class _Outputs:
    """Makes a run of outputs, by what its metadata says of all of them."""

    def __init__(self, metadata: Any, path: Path, notes: list[str]) -> None:
        about = Metadata.model_validate(metadata)
        self.player = player(str(about.model or "unknown"), about.sampling_args, notes)
        self.path = path
        self.release = about.version_info.env_version
        self.settings = _settings(about.env_args)
        versions = {"flappybird": self.release, "verifiers": about.version_info.vf_version}
        self.head = Run(
            path=path,
            kind="classic",
            model=self.player.name,
            rows=[],
            asked=product(about.num_examples, about.rollouts_per_example),
            each=about.rollouts_per_example,
            env_args=about.env_args,
            sampling=self.player.sampling,
            versions={name: version for name, version in versions.items() if version is not None},
            averages=about.averages,
            notes=notes,
        )

    def row(self, data: Mapping[str, Any], offset: int = 0) -> Row:
        """Return the row of one output."""
        output = _Output.model_validate(dict(data))
        messages = [*output.prompt, *output.completion]
        said = [message.said for message in messages if message.role == "assistant"]
        example = output.example_id if isinstance(output.example_id, int | str) else None
        error, scores = error_of(data), output.metrics | {"reward": output.reward}
        usage = {"prompt_tokens": output.token_usage.input_tokens, "completion_tokens": output.token_usage.output_tokens}
        started = output.timing.start_time
        kept: dict[str, Any] = {
            "error": error,
            "claims": finite(scores),
            "usage": {name: tokens for name, tokens in usage.items() if tokens is not None},
            "example": example,
            "started": started,
            "mark": mark(started, said) if started else None,
            "offset": offset,
        }
        try:
            info = _info(output.info)
            episode = _rebuild(info, self.player, said, {"run": self.path.name, "example": example}, error)
        except (EpisodeError, ConfigError) as fault:
            return Row(0, None, problem=str(fault), **kept)
        unscored = error is not None and not output.metrics
        contradictions = [
            *bad_numbers(scores, () if unscored else ("reward", *METRICS)),
            *_columns(data, output.metrics),
            *_order(messages, len(said)),
            *self._unlike_the_settings(info, episode, example),
            *(_left_out(info) if error is None else ()),
        ]
        return Row(
            0,
            episode,
            contradictions=contradictions,
            observations=[message.text for message in messages if message.role == "user"],
            stated={
                "system_prompt": next((message.text for message in messages if message.role == "system"), None),
                "stop_condition": output.stop_condition,
            },
            **kept,
        )

    def _unlike_the_settings(self, info: _Info, episode: Episode, example: int | str | None) -> Iterator[Contradiction]:
        """Yield where a row was played with other versions, or another game, than its run says."""
        played = info.versions
        if played.flappybird is None or self.release not in (None, played.flappybird):
            yield Contradiction("info.versions.flappybird", 0, played.flappybird or "missing", self.release or "a release")
        if played.physics != PHYSICS:
            yield Contradiction("info.versions.physics", 0, played.physics, PHYSICS)
        if not isinstance(example, int):
            yield Contradiction("example_id", 0, example, "a whole number")
        if self.settings is None or not isinstance(example, int):
            return
        first = self.settings.seed + example
        for name, stored, asked in (
            ("seed", episode.seed, TRAINING_SEEDS[first] if episode.seed >= TRAINING_SEEDS.start else first),
            ("config", episode.config, self.settings.config),
            ("rules", episode.rules, self.settings.rules),
        ):
            if stored != asked:
                yield Contradiction(f"info.{name}", 0, stored, asked)


def _left_out(info: _Info) -> Iterator[Contradiction]:
    """Yield what is not there of what our door keeps of every rollout that came to its end."""
    for name, there in (
        ("config", isinstance(info.config, dict)),
        ("turns", info.turns),
        ("outcome", isinstance(info.outcome, dict)),
    ):
        if not there:
            yield Contradiction(f"info.{name}", 0, "missing", "what was played")


def _settings(env_args: dict[str, Any]) -> Settings | None:
    """Return the settings that saved arguments mean; None where they say nothing, as those of an environment made by hand."""
    try:
        return Settings.of(**env_args) if env_args else None
    except ConfigError:
        return None


def _columns(data: Mapping[str, Any], metrics: Mapping[str, Any]) -> Iterator[Contradiction]:
    """Yield where the column of a metric is not the metric."""
    for name, value in metrics.items():
        column = data.get(name, "missing")
        if column != value and number(value) is not None:
            yield Contradiction(f"column {name}", 0, column, value)


def _order(messages: list[Message], replies: int) -> Iterator[Contradiction]:
    """Yield the first message of a wrong role: the rules come first, then observations and replies in turn, a reply last."""
    roles = ["system", "user", *["assistant", "user"] * replies]
    del roles[2 * replies + 1 if replies else 2 :]
    for index in range(max(len(messages), len(roles))):
        role = messages[index].role if index < len(messages) else "missing"
        must = roles[index] if index < len(roles) else "no more"
        if role != must:
            yield Contradiction(f"messages[{index}].role", 0, role, must)
            return


def _info(info: Any) -> _Info:
    found = parse_json(info, "info", constants=True) if isinstance(info, str) else info
    if not isinstance(found, dict) or "seed" not in found:
        raise EpisodeError("the row has no info with seed, config and rules: it is of another environment")
    return _Info.model_validate(found)


def _rebuild(info: _Info, player: Player, said: list[tuple[str, str]], origin: dict[str, Any], error: str | None) -> Episode:
    """Return the episode of a row from its `info` (seed, config, rules, what is known of each turn) and its replies."""
    try:
        config, rules = FlappyConfig.of(info.config), Rules(**info.rules)
        if info.turns and len(info.turns) != len(said):
            raise EpisodeError(f"the row has {len(said)} replies, but was recorded with {len(info.turns)} turns")
        if not info.turns or not isinstance(info.outcome, dict):
            return _play(config, rules, info.seed, said, player, origin, error or "the rollout was cut short")
        return Episode(
            seed=info.seed,
            config=config,
            rules=rules,
            player=player,
            turns=[
                Turn(**{**turn, "reply": text, "reasoning": aside or None})
                for turn, (text, aside) in zip(info.turns, said, strict=True)
            ],
            outcome=Ending(**info.outcome),
            origin=origin,
        )
    except ValidationError as fault:
        raise EpisodeError(f"info: {one_line(fault)}") from None
    except TypeError as fault:
        raise EpisodeError(f"info: {fault}") from None


def _play(
    config: FlappyConfig,
    rules: Rules,
    seed: int,
    said: list[tuple[str, str]],
    player: Player,
    origin: dict[str, Any],
    error: str,
) -> Episode:
    """Return the episode that replies alone give, where nothing else was recorded."""
    rollout = Rollout(config, seed, rules)
    for text, aside in said:
        if rollout.outcome is not None:
            break
        rollout.take(text, aside)
    return finish(rollout, player, origin=origin, error=error if rollout.outcome is None else None)


def error_of(output: Mapping[str, Any]) -> str | None:
    """Return what went wrong outside of the game in a row of classic verifiers, in one line; None where nothing did."""
    error = output.get("error")
    if isinstance(error, dict):
        reason = error.get("error_chain_repr") or error.get("message")
        error = reason if isinstance(reason, str) else show(error, 200)
    if error:
        return short(str(error))
    return TIMED_OUT if output.get("stop_condition") == "timeout_reached" else None


TIMED_OUT = "timed out"
"""The error of a row that the library saved without one."""
