"""What classic `vf-eval` saves: `results.jsonl` and `metadata.json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from flappybird.episodes.episode import MAX_BYTES, Ending, Episode, Player, Turn
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.errors import ConfigError, EpisodeError, show
from flappybird.protocol.reply import content_text, said_and_thought
from flappybird.protocol.rules import Rules
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
    role_of,
    worlds,
)
from flappybird.system.files import parse_json, read_bytes
from flappybird.world.config import FlappyConfig, one_line


def read_results(folder: Path) -> Run:
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
    outputs = list(json_lines(folder / "results.jsonl", damaged))
    return run_of_outputs(outputs, metadata if isinstance(metadata, dict) else {}, folder, damaged=len(damaged), notes=notes)


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
    player = player_of(model, metadata.get("sampling_args"), notes)
    sampling = player.sampling
    listed = list(outputs)
    rows = [_row(output, player, path) for output in listed]
    rows.sort(key=lambda row: (not isinstance(row.example, int), row.example if isinstance(row.example, int) else 0))
    asked = product_of(metadata.get("num_examples"), metadata.get("rollouts_per_example"))
    versions = object_of(metadata.get("version_info"))
    starts = [start for output in listed if (start := number_of(object_of(output.get("timing")).get("start_time")))]
    return Run(
        path=path,
        kind="classic",
        model=model,
        rows=numbered(rows),
        asked=asked,
        env_args=object_of(metadata.get("env_args")),
        sampling=sampling,
        versions={
            name: versions[key]
            for name, key in (("flappybird", "env_version"), ("verifiers", "vf_version"))
            if isinstance(versions.get(key), str)
        },
        date=date_of(starts),
        damaged=damaged,
        notes=[*notes, *worlds(rows)],
    )


def _row(output: Mapping[str, Any], player: Player, path: Path) -> Row:
    claims = {
        name: number for name, value in object_of(output.get("metrics")).items() if (number := number_of(value)) is not None
    }
    if (reward := number_of(output.get("reward"))) is not None:
        claims["reward"] = reward
    usage = {
        name: tokens
        for name, key in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))
        if (tokens := number_of(object_of(output.get("token_usage")).get(key))) is not None
    }
    example = output.get("example_id")
    kept: dict[str, Any] = {
        "error": error_of(output),
        "claims": claims,
        "usage": usage,
        "example": example if isinstance(example, int | str) else None,
    }
    messages = [*list_of(output.get("prompt")), *list_of(output.get("completion"))]
    said = [said_and_thought(m.get("content"), m.get("reasoning_content")) for m in messages if role_of(m) == "assistant"]
    try:
        episode = _rebuild(output, player, said, {"run": path.name, "example": kept["example"]}, kept["error"])
    except (EpisodeError, ConfigError) as error:
        return Row(0, None, problem=str(error), **kept)
    return Row(0, episode, observations=[content_text(m.get("content")) for m in messages if role_of(m) == "user"], **kept)


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
        config, rules = FlappyConfig.of(info.get("config")), Rules(**object_of(info.get("rules")))
        told = [object_of(turn) for turn in list_of(info.get("turns"))]
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
        return one_line_of(str(error))
    return "timed out" if output.get("stop_condition") == "timeout_reached" else None
