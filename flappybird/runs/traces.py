"""What verifiers v1 saves: `traces.jsonl` and its config."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from flappybird.episodes.arguments import ARGUMENTS
from flappybird.episodes.episode import MAX_BYTES, Player, from_dict
from flappybird.errors import EpisodeError, show
from flappybird.protocol.reply import content_text, said_and_thought
from flappybird.runs.run import (
    Row,
    Run,
    date_of,
    json_lines,
    list_of,
    number_of,
    numbered,
    object_of,
    one_line_of,
    player_of,
    product_of,
    worlds,
)
from flappybird.system.files import parse_json, read_bytes


def read_traces(folder: Path) -> Run:
    notes: list[str] = []
    saved = _saved_config(folder, notes)
    damaged: list[str] = []
    lines = list(json_lines(folder / "traces.jsonl", damaged))
    taskset = object_of(object_of(saved.get("env")).get("taskset")) or object_of(saved.get("taskset"))
    tasks = (
        saved.get("num_tasks")
        or object_of(saved.get("select")).get("limit")
        or (taskset.get("num_examples") if "num_rollouts" in saved else None)
    )
    traces = [trace for line in lines for trace in list_of(line.get("traces")) if isinstance(trace, dict)]
    model = saved.get("model") or (object_of(object_of(traces[0].get("agent")).get("config")).get("model") if traces else None)
    player = player_of(str(model or "unknown"), saved.get("sampling"), notes)
    rows = [row for line in lines for row in _rows_of_line(line, player, folder)]
    rows.sort(key=lambda row: (not isinstance(row.example, int), row.example if isinstance(row.example, int) else 0))
    starts = [start for trace in traces if (start := number_of(object_of(trace.get("timing")).get("start")))]
    versions = (
        {
            "flappybird": object_of(object_of(object_of(traces[0].get("task")).get("data")).get("versions")).get("flappybird"),
            "verifiers": object_of(traces[0].get("verifiers")).get("version"),
        }
        if traces
        else {}
    )
    return Run(
        path=folder,
        kind="v1",
        model=player.name,
        rows=numbered(rows),
        asked=product_of(tasks, saved.get("num_rollouts")),
        env_args={name: taskset[name] for name in ("split", *ARGUMENTS) if taskset.get(name) is not None},
        sampling=player.sampling,
        versions={name: version for name, version in versions.items() if isinstance(version, str)},
        date=date_of(starts),
        damaged=len(damaged),
        notes=[*notes, *worlds(rows)],
    )


def _saved_config(folder: Path, notes: list[str]) -> dict[str, Any]:
    """Return the config that a v1 run was started with, from where its release keeps it; what is amiss is told in `notes`."""
    resolved = folder / "configs" / "resolved"
    files = sorted((resolved if resolved.is_dir() else folder / "configs").glob("*.json"))
    try:
        if files:
            return object_of(parse_json(read_bytes(files[0], MAX_BYTES), str(files[0]), constants=True))
        stated = tomllib.loads(read_bytes(folder / "config.toml", MAX_BYTES).decode("utf-8"))  # release 0.3.0
        return object_of(json.loads(json.dumps(stated, default=str)))  # TOML has dates, which nothing here can keep
    except EpisodeError as error:
        notes.append(str(error) if files else f"{folder.name} has no config")
    except (ValueError, RecursionError) as error:
        notes.append(f"{folder / 'config.toml'}: not TOML: {show(str(error), 120)}")
    return {}


def _rows_of_line(line: Mapping[str, Any], player: Player, path: Path) -> list[Row]:
    """Return the rows of one saved v1 episode: one for each of its traces, and one that says why where it has none."""
    traces = [trace for trace in list_of(line.get("traces")) if isinstance(trace, dict)]
    if not traces:
        return [
            Row(0, None, problem="the rollout ended before it began", error=_last_error(line) or "error", example=_index(line))
        ]
    return [_row_of_trace(trace, _index(trace), player, path) for trace in traces]


def _index(record: Mapping[str, Any]) -> int | None:
    """Return the place in its taskset of the task that an episode or a trace is about."""
    index = object_of(object_of(record.get("task")).get("data")).get("idx")
    return index if isinstance(index, int) else None


def _row_of_trace(trace: Mapping[str, Any], example: int | None, player: Player, path: Path) -> Row:
    scores = {name: object_of(value) for name, value in object_of(trace.get("rewards")).items()}
    numbers = {name: (number_of(value.get("score")), number_of(value.get("weight"))) for name, value in scores.items()}
    claims = {name: score for name, (score, _) in numbers.items() if score is not None}
    if numbers and all(score is not None and weight is not None for score, weight in numbers.values()):
        claims["reward"] = sum(score * weight for score, weight in numbers.values() if score is not None and weight is not None)
    claims |= {
        name: number for name, value in object_of(trace.get("metrics")).items() if (number := number_of(value)) is not None
    }
    used = [object_of(object_of(call).get("usage")) for call in list_of(trace.get("calls"))]
    usage = {
        "prompt_tokens": sum(
            (number_of(use.get("prompt_tokens")) or 0) + (number_of(use.get("cached_input_tokens")) or 0) for use in used
        ),
        "completion_tokens": sum(number_of(use.get("completion_tokens")) or 0 for use in used),
    }
    nodes = [object_of(node) for node in list_of(trace.get("nodes"))]
    said = [node for node in nodes if node.get("sampled") is True]
    replies = [object_of(node.get("message")) for node in said]
    kept: dict[str, Any] = {
        "error": None if trace.get("ok") is True else _last_error(trace) or "error",
        "claims": claims,
        "usage": usage if any(used) else {},
        "example": example,
    }
    found = object_of(trace.get("info")).get("episode")
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
        replies=[said_and_thought(reply.get("content"), reply.get("reasoning_content")) for reply in replies],
        **kept,
    )


def _asked(node: Mapping[str, Any], nodes: list[dict[str, Any]]) -> str:
    """Return the text of the message that a reply answered."""
    parent = node.get("parent")
    if not isinstance(parent, int) or not 0 <= parent < len(nodes):
        return ""
    return content_text(object_of(nodes[parent].get("message")).get("content"))


def _last_error(record: Mapping[str, Any]) -> str | None:
    errors = [object_of(error) for error in list_of(record.get("errors"))]
    return one_line_of(f"{errors[-1].get('type')}: {errors[-1].get('message')}") if errors else None
