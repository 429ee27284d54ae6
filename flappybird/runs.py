"""Saved evaluations and folders of episode files → episodes.

A run is read once, here, for every command that works on one. What is read is never trusted: sizes are bounded, a
damaged line is skipped and counted, and a row without a usable transcript says why instead of an episode.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from flappybird import rewards
from flappybird.config import FlappyConfig, one_line
from flappybird.episode import MAX_BYTES, Ending, Episode, Player, Turn, fly, from_dict, load
from flappybird.errors import ConfigError, EpisodeError, show
from flappybird.files import parse_json, read_bytes
from flappybird.game import Reason
from flappybird.records import Difference, finish, verify
from flappybird.rollout import Rollout, Rules
from flappybird.settings import ARGUMENTS, observe
from flappybird.text import content_text

MAX_ROWS = 1_000_000
"""The most rollouts that are read from one run."""


MAX_ERROR = 1_000
"""Characters of an error that are kept; a server can send pages of it."""


@dataclass(frozen=True)
class Row:
    """One rollout of a run."""

    index: int
    """Position in the run, from 0: the N of `RUN:N`."""
    episode: Episode | None
    """The rollout rebuilt from seed, config and replies; None where that is not possible."""
    problem: str | None = None
    """Why there is no episode."""
    error: str | None = None
    """What the run says went wrong outside of the game; such a rollout is no score."""
    claims: dict[str, float] = field(default_factory=dict)
    """Scores as the run saved them: `reward` and metrics, by name; finite numbers only."""
    observations: list[str] | None = None
    """The user messages as they were sent, in order; None where they were not saved."""
    replies: list[tuple[str, str]] | None = None
    """Text and reasoning of each reply as the transcript has it, where the episode was not made from the transcript."""
    example: int | str | None = None
    """The example (dataset row) that was played."""
    rollout: int = 0
    """Which of the rollouts of this example it is, from 0, in the order of the file."""
    usage: dict[str, float] = field(default_factory=dict)
    """Tokens of the whole rollout where known: `prompt_tokens`, `completion_tokens`."""


@dataclass(frozen=True)
class Run:
    """A saved evaluation, or a folder of episodes."""

    path: Path
    kind: Literal["classic", "v1", "episodes"]
    model: str
    rows: list[Row]
    asked: int | None = None
    """How many rollouts were asked for, where known."""
    env_args: dict[str, Any] = field(default_factory=dict)
    sampling: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    """Release of the environment and of verifiers, where known."""
    date: datetime | None = None
    """When it was made, with time zone."""
    damaged: int = 0
    """Lines that could not be read and were skipped."""
    notes: list[str] = field(default_factory=list)
    """What a reader should know: settings that differ from row to row, unreadable files."""


def file_name(index: int, kind: str = "json") -> str:
    """Return the name of the file that is made from row `index` of a run.

    >>> file_name(12)
    'episode-0012.json'
    """
    return f"episode-{index:04d}.{kind}"


def load_run(path: str | Path) -> Run:
    """Return the run at `path`: an episode file, a folder of them, or what `vf-eval` (or v1's `eval`, `replay`, `gepa`) saved.

    Raises:
        EpisodeError: there is nothing to read, or it is no run.
    """
    path = Path(path)
    if path.is_file() and path.suffix == ".json":
        return _episodes(path, [path])
    folder = path.parent if path.name in ("results.jsonl", "traces.jsonl") else path
    if (folder / "results.jsonl").is_file():
        return _classic(folder)
    if (folder / "traces.jsonl").is_file():
        return _v1(folder)
    # Names with a dot are what `files.replacing` writes to: a process that was killed may have left one.
    files = sorted(file for file in path.glob("*.json") if not file.name.startswith(".")) if path.is_dir() else []
    if files:
        return _episodes(path, files)
    if not path.exists():
        raise EpisodeError(f"{path}: no such file or folder")
    levels = ("*", "*/*", "*/*/*")
    below = (
        found.parent for depth in levels for name in ("results", "traces") for found in sorted(path.glob(f"{depth}/{name}.jsonl"))
    )
    first = next(below, None)
    hint = f"; below it is one: {first}" if first else " (results.jsonl, traces.jsonl)"
    raise EpisodeError(f"{path}: neither an episode file, nor a folder of them, nor a saved evaluation{hint}")


def load_episode_at(where: str) -> Episode:
    """Return the episode that `where` names: an episode file, or `RUN:N` for row N of a run.

    Raises:
        EpisodeError: there is none.
    """
    run, colon, number = where.rpartition(":")
    if not colon or not number.isdigit() or Path(where).exists():
        rows = load_run(where).rows
        if len(rows) != 1:
            raise EpisodeError(f"{where}: has {len(rows)} episodes; name one as {where}:N, N from 0")
        row = rows[0]
    else:
        rows = load_run(run).rows
        if int(number) >= len(rows):
            raise EpisodeError(f"{where}: {run} has {len(rows)} episodes, N must be from 0 to {len(rows) - 1}")
        row = rows[int(number)]
    if row.episode is None:
        raise EpisodeError(f"{where}: {row.problem}")
    return row.episode


def check(row: Row) -> list[Difference]:
    """Compare all that `row` claims, its episode, its observations, its scores, with the replay; return what differs."""
    episode = row.episode
    if episode is None:
        return []
    found = verify(episode)
    rollout = Rollout(episode.config, episode.seed, episode.rules)
    compared = True  # up to the first difference, of which the others follow
    for index, turn in enumerate(episode.turns):
        if rollout.outcome is not None:
            break
        if compared and (difference := _transcript_difference(row, index, turn, rollout)):
            found.append(difference)
            compared = False
        fly(rollout, turn)
    truth = _scores(episode, rollout)
    for name, value in row.claims.items():
        if name in truth and abs(value - truth[name]) > 1e-9:
            found.append(Difference(name, rollout.game.tick, value, truth[name]))
    return sorted(found, key=lambda difference: difference.tick)


def _transcript_difference(row: Row, index: int, turn: Turn, rollout: Rollout) -> Difference | None:
    """Return what is not, in the transcript of turn `index`, as `turn` and the replay have it."""
    tick, seen, replies = rollout.game.tick, row.observations, row.replies
    if seen is not None:
        given = observe(rollout)
        if index >= len(seen):
            return Difference(f"observation[{index}]", tick, "none", given)
        if seen[index] != given:
            return Difference(f"observation[{index}]", tick, *_first_difference(seen[index], given))
    if replies is not None:
        said = (turn.reply or "", turn.reasoning or "")
        if index >= len(replies) or replies[index] != said:
            return Difference(f"turns[{index}].reply", tick, said, replies[index] if index < len(replies) else "none")
    return None


def _first_difference(stored: str, given: str) -> tuple[str, str]:
    """Return the first lines in which two texts differ."""
    old, new = stored.splitlines(), given.splitlines()
    for a, b in zip(old, new, strict=False):
        if a != b:
            return a, b
    return f"{len(old)} lines", f"{len(new)} lines"


def _scores(episode: Episode, rollout: Rollout) -> dict[str, float]:
    """Return every score and metric of the episode as its replay gives it."""
    claimed = episode.outcome
    if rollout.outcome is None:
        rollout.end(claimed.reason)
    outcome = rollout.outcome
    assert outcome is not None
    ending = claimed.model_copy(
        update={
            "reason": outcome.reason,
            "ticks": outcome.tick,
            "pipe": outcome.pipe,
            **rewards.scores(episode.turns, episode.rules, outcome, rollout.game.score),
        }
    )
    true = episode.model_copy(update={"outcome": ending})
    scores = {function.__name__: function(true) for function in (rewards.reward, *rewards.ALL_METRICS)}
    return scores | {
        "flappy_reward_func": scores["pipes_passed"],
        "flappy_survival_reward": scores["survival_score"],
        "format": rewards.format_score(true),
        "format_reward_func": rewards.format_score(true),
        "num_turns": float(len(episode.turns)),
    }


# --- folders of episode files -------------------------------------------------------------------------------------


def _episodes(path: Path, files: list[Path]) -> Run:
    rows: list[Row] = []
    for index, file in enumerate(files):
        try:
            episode = load(file)
        except EpisodeError as fault:
            if len(files) == 1:
                raise
            rows.append(Row(index, None, problem=str(fault)))
            continue
        claims = {name: float(getattr(episode.outcome, name)) for name in ("reward", "pipes_passed", "survival_score", "format")}
        error = episode.outcome.error or "error" if episode.outcome.reason is Reason.ERROR else None
        rows.append(Row(index, episode, error=error, claims=claims, example=episode.seed))
    names = {row.episode.player.name for row in rows if row.episode}
    return Run(path, "episodes", ", ".join(sorted(names)) or "unknown", _numbered(rows), asked=len(rows))


def _numbered(rows: Iterable[Row]) -> list[Row]:
    """Return `rows` with the rollouts of each example counted."""
    counts: Counter[Any] = Counter()
    numbered = []
    for index, row in enumerate(rows):
        numbered.append(_with(row, index=index, rollout=counts[row.example]))
        counts[row.example] += 1
    return numbered


def _with(row: Row, **changes: Any) -> Row:
    return Row(**{**{name: getattr(row, name) for name in Row.__dataclass_fields__}, **changes})


# --- what classic vf-eval saves -----------------------------------------------------------------------------------


def _classic(folder: Path) -> Run:
    notes: list[str] = []
    metadata: Any = {}
    if (folder / "metadata.json").is_file():
        try:
            saved = read_bytes(folder / "metadata.json", MAX_BYTES)
            metadata = parse_json(saved, f"{folder / 'metadata.json'}", constants=True)
        except EpisodeError as error:
            notes.append(str(error))
    else:
        notes.append(f"{folder.name} has no metadata.json")
    damaged: list[str] = []
    outputs = list(_lines(folder / "results.jsonl", damaged))
    return run_of_outputs(outputs, metadata if isinstance(metadata, dict) else {}, folder, damaged=len(damaged), notes=notes)


def _lines(path: Path, damaged: list[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects of a file of lines; lines that are none are skipped and told in `damaged`."""
    try:
        with open(path, "rb") as file:
            for number in range(1, MAX_ROWS + 1):
                line = file.readline(MAX_BYTES + 1)
                if not line:
                    return
                if not line.strip():
                    continue
                if len(line) > MAX_BYTES:
                    raise EpisodeError(f"{path}: line {number} is larger than {MAX_BYTES / 1e6:g} MB, the most that is read")
                try:
                    value = parse_json(line, f"line {number}", constants=True)
                except EpisodeError as error:
                    damaged.append(str(error))
                    continue
                if isinstance(value, dict):
                    yield value
                else:
                    damaged.append(f"line {number}: no JSON object")
    except OSError as error:
        raise EpisodeError(f"{path}: {error.strerror or error}") from None


def run_of_outputs(
    outputs: Iterable[Mapping[str, Any]],
    metadata: Mapping[str, Any],
    path: Path,
    *,
    damaged: int = 0,
    notes: Iterable[str] = (),
) -> Run:
    """Return the run that rows of classic verifiers, in memory or read from a file, and their metadata make.

    Rows are put in the order of their examples, since the library saves them as they finish.
    """
    model = str(metadata.get("model") or "unknown")
    notes = list(notes)
    player = _player(model, metadata.get("sampling_args"), notes)
    sampling = player.sampling
    listed = list(outputs)
    rows = [_row(output, player, path) for output in listed]
    rows.sort(key=lambda row: (not isinstance(row.example, int), row.example if isinstance(row.example, int) else 0))
    asked = _product(metadata.get("num_examples"), metadata.get("rollouts_per_example"))
    versions = _dict(metadata.get("version_info"))
    starts = [start for output in listed if (start := _number(_dict(output.get("timing")).get("start_time")))]
    return Run(
        path=path,
        kind="classic",
        model=model,
        rows=_numbered(rows),
        asked=asked,
        env_args=_dict(metadata.get("env_args")),
        sampling=sampling,
        versions={
            name: versions[key]
            for name, key in (("flappybird", "env_version"), ("verifiers", "vf_version"))
            if isinstance(versions.get(key), str)
        },
        date=_date(starts),
        damaged=damaged,
        notes=[*notes, *_worlds(rows)],
    )


# --- what verifiers v1 saves --------------------------------------------------------------------------------------


def _v1(folder: Path) -> Run:
    notes: list[str] = []
    saved = _saved_config(folder, notes)
    damaged: list[str] = []
    lines = list(_lines(folder / "traces.jsonl", damaged))
    taskset = _dict(_dict(saved.get("env")).get("taskset")) or _dict(saved.get("taskset"))
    tasks = (
        saved.get("num_tasks")
        or _dict(saved.get("select")).get("limit")
        or (taskset.get("num_examples") if "num_rollouts" in saved else None)
    )
    traces = [trace for line in lines for trace in _list(line.get("traces")) if isinstance(trace, dict)]
    model = saved.get("model") or (_dict(_dict(traces[0].get("agent")).get("config")).get("model") if traces else None)
    player = _player(str(model or "unknown"), saved.get("sampling"), notes)
    rows = [row for line in lines for row in _rows_of_line(line, player, folder)]
    rows.sort(key=lambda row: (not isinstance(row.example, int), row.example if isinstance(row.example, int) else 0))
    starts = [start for trace in traces if (start := _number(_dict(trace.get("timing")).get("start")))]
    versions = (
        {
            "flappybird": _dict(_dict(_dict(traces[0].get("task")).get("data")).get("versions")).get("flappybird"),
            "verifiers": _dict(traces[0].get("verifiers")).get("version"),
        }
        if traces
        else {}
    )
    return Run(
        path=folder,
        kind="v1",
        model=player.name,
        rows=_numbered(rows),
        asked=_product(tasks, saved.get("num_rollouts")),
        env_args={name: taskset[name] for name in ("split", *ARGUMENTS) if taskset.get(name) is not None},
        sampling=player.sampling,
        versions={name: version for name, version in versions.items() if isinstance(version, str)},
        date=_date(starts),
        damaged=len(damaged),
        notes=[*notes, *_worlds(rows)],
    )


def _saved_config(folder: Path, notes: list[str]) -> dict[str, Any]:
    """Return the config that a v1 run was started with, from where its release keeps it; what is amiss is told in `notes`."""
    resolved = folder / "configs" / "resolved"
    files = sorted((resolved if resolved.is_dir() else folder / "configs").glob("*.json"))
    try:
        if files:
            return _dict(parse_json(read_bytes(files[0], MAX_BYTES), str(files[0]), constants=True))
        stated = tomllib.loads(read_bytes(folder / "config.toml", MAX_BYTES).decode("utf-8"))  # release 0.3.0
        return _dict(json.loads(json.dumps(stated, default=str)))  # TOML has dates, which nothing here can keep
    except EpisodeError as error:
        notes.append(str(error) if files else f"{folder.name} has no config")
    except (ValueError, RecursionError) as error:
        notes.append(f"{folder / 'config.toml'}: not TOML: {show(str(error), 120)}")
    return {}


def _rows_of_line(line: Mapping[str, Any], player: Player, path: Path) -> list[Row]:
    """Return the rows of one saved v1 episode: one for each of its traces, and one that says why where it has none."""
    traces = [trace for trace in _list(line.get("traces")) if isinstance(trace, dict)]
    if not traces:
        return [
            Row(0, None, problem="the rollout ended before it began", error=_last_error(line) or "error", example=_index(line))
        ]
    return [_row_of_trace(trace, _index(trace), player, path) for trace in traces]


def _index(record: Mapping[str, Any]) -> int | None:
    """Return the place in its taskset of the task that an episode or a trace is about."""
    index = _dict(_dict(record.get("task")).get("data")).get("idx")
    return index if isinstance(index, int) else None


def _row_of_trace(trace: Mapping[str, Any], example: int | None, player: Player, path: Path) -> Row:
    scores = {name: _dict(value) for name, value in _dict(trace.get("rewards")).items()}
    numbers = {name: (_number(value.get("score")), _number(value.get("weight"))) for name, value in scores.items()}
    claims = {name: score for name, (score, _) in numbers.items() if score is not None}
    if numbers and all(score is not None and weight is not None for score, weight in numbers.values()):
        claims["reward"] = sum(score * weight for score, weight in numbers.values() if score is not None and weight is not None)
    claims |= {name: number for name, value in _dict(trace.get("metrics")).items() if (number := _number(value)) is not None}
    used = [_dict(_dict(call).get("usage")) for call in _list(trace.get("calls"))]
    usage = {
        "prompt_tokens": sum(
            (_number(use.get("prompt_tokens")) or 0) + (_number(use.get("cached_input_tokens")) or 0) for use in used
        ),
        "completion_tokens": sum(_number(use.get("completion_tokens")) or 0 for use in used),
    }
    nodes = [_dict(node) for node in _list(trace.get("nodes"))]
    said = [node for node in nodes if node.get("sampled") is True]
    replies = [_dict(node.get("message")) for node in said]
    kept: dict[str, Any] = {
        "error": None if trace.get("ok") is True else _last_error(trace) or "error",
        "claims": claims,
        "usage": usage if any(used) else {},
        "example": example,
    }
    found = _dict(trace.get("info")).get("episode")
    try:
        if found is None:
            raise EpisodeError("the trace has no episode in its info: it is of another environment, or ended before it began")
        episode = from_dict(found, "info.episode")
    except EpisodeError as error:
        return Row(0, None, problem=str(error), **kept)
    episode = episode.model_copy(
        update={
            "player": player.model_copy(update={"name": episode.player.name}),
            "origin": {"run": path.name, "example": example},
        }
    )
    return Row(
        0,
        episode,
        observations=[_asked(node, nodes) for node in said],
        replies=[(content_text(reply.get("content")), content_text(reply.get("reasoning_content"))) for reply in replies],
        **kept,
    )


def _asked(node: Mapping[str, Any], nodes: list[dict[str, Any]]) -> str:
    """Return the text of the message that a reply answered."""
    parent = node.get("parent")
    if not isinstance(parent, int) or not 0 <= parent < len(nodes):
        return ""
    return content_text(_dict(nodes[parent].get("message")).get("content"))


def _last_error(record: Mapping[str, Any]) -> str | None:
    errors = [_dict(error) for error in _list(record.get("errors"))]
    return _line(f"{errors[-1].get('type')}: {errors[-1].get('message')}") if errors else None


# --- what both have -----------------------------------------------------------------------------------------------


def _worlds(rows: Iterable[Row]) -> list[str]:
    """Return a note where the rows were not all played in one world by one set of rules."""
    worlds = {json.dumps([row.episode.config.model_dump(), row.episode.rules.model_dump()]) for row in rows if row.episode}
    return [f"the rows were played under {len(worlds)} different settings"] if len(worlds) > 1 else []


def _date(starts: list[float]) -> datetime | None:
    return datetime.fromtimestamp(min(starts), UTC) if starts and 0 < min(starts) < 4e9 else None


def _player(model: str, sampling: Any, notes: list[str]) -> Player:
    """Return who played; settings that no episode could keep are left out, and noted."""
    settings = {name: value for name, value in _dict(sampling).items() if value not in (None, {})}
    try:
        return Player(kind="model", name=model, sampling=settings)
    except ValidationError as error:
        notes.append(one_line(error))
        return Player(kind="model", name=model)


def _row(output: Mapping[str, Any], player: Player, path: Path) -> Row:
    claims = {name: number for name, value in _dict(output.get("metrics")).items() if (number := _number(value)) is not None}
    if (reward := _number(output.get("reward"))) is not None:
        claims["reward"] = reward
    usage = {
        name: tokens
        for name, key in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))
        if (tokens := _number(_dict(output.get("token_usage")).get(key))) is not None
    }
    example = output.get("example_id")
    kept: dict[str, Any] = {
        "error": error_of(output),
        "claims": claims,
        "usage": usage,
        "example": example if isinstance(example, int | str) else None,
    }
    messages = [*_list(output.get("prompt")), *_list(output.get("completion"))]
    said = [
        (content_text(m.get("content")), content_text(m.get("reasoning_content"))) for m in messages if _role(m) == "assistant"
    ]
    try:
        episode = _rebuild(output, player, said, {"run": path.name, "example": kept["example"]}, kept["error"])
    except (EpisodeError, ConfigError) as error:
        return Row(0, None, problem=str(error), **kept)
    return Row(0, episode, observations=[content_text(m.get("content")) for m in messages if _role(m) == "user"], **kept)


def _rebuild(
    output: Mapping[str, Any], player: Player, said: list[tuple[str, str]], origin: dict[str, Any], error: str | None
) -> Episode:
    """Return the episode of a row from its `info` (seed, config, rules, what is known of each turn) and its replies."""
    info = output.get("info")
    if isinstance(info, str):
        info = parse_json(info, "info")
    if not isinstance(info, dict) or "seed" not in info:
        raise EpisodeError("the row has no info with seed, config and rules: it is of another environment")
    try:
        config, rules = FlappyConfig.of(info.get("config")), Rules(**_dict(info.get("rules")))
        told = [_dict(turn) for turn in _list(info.get("turns"))]
        if told and len(told) != len(said):
            raise EpisodeError(f"the row has {len(said)} replies, but was recorded with {len(told)} turns")
        if not told or not isinstance(info.get("outcome"), dict):
            return _play(config, rules, info["seed"], said, player, origin, error or "the rollout was cut short")
        turns = [
            Turn(**{**turn, "reply": text, "reasoning": aside or None}) for turn, (text, aside) in zip(told, said, strict=True)
        ]
        return Episode(
            seed=info["seed"],
            config=config,
            rules=rules,
            player=player,
            turns=turns,
            outcome=Ending(**info["outcome"]),
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
        told = error.get("error_chain_repr") or error.get("message")
        error = told if isinstance(told, str) else show(error, 200)
    if error:
        return _line(str(error))
    return "timed out" if output.get("stop_condition") == "timeout_reached" else None


def _line(error: str) -> str:
    line = " ".join(error.split())
    return line if len(line) <= MAX_ERROR else f"{line[: MAX_ERROR - 1]}…"


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _role(message: Any) -> Any:
    return message.get("role") if isinstance(message, dict) else None


def _number(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return None


def _product(*factors: Any) -> int | None:
    return math.prod(factors) if all(isinstance(factor, int) and 0 <= factor <= MAX_ROWS for factor in factors) else None
