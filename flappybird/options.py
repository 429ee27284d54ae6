"""What people write on a command line: a config as JSON, as a file that holds it, or as name=value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from flappybird.config import FlappyConfig
from flappybird.errors import ConfigError, show
from flappybird.files import read_json

LARGEST = 1_000_000
"""The most bytes of a config file that are read."""


def read_config(texts: list[str]) -> FlappyConfig:
    """Return the config that `texts` make up, each laid over those before it.

    Each is a JSON object, the path of a file that holds one, or `name=value` (several joined by commas).

    Raises:
        ConfigError: one is none of these, or the result is not a legal config.
        EpisodeError: the file cannot be read.
    """
    fields: dict[str, Any] = {}
    for text in texts:
        fields.update(_read(text))
    return FlappyConfig(**fields)


def _read(text: str) -> dict[str, Any]:
    stripped = text.strip()
    try:
        found = json.loads(stripped)
    except ValueError:
        if stripped.startswith("{") or stripped.endswith("}"):
            raise ConfigError(
                f"config = {show(text, 120)}: is not JSON; if you wrote quotes, the shell took them: "
                "write it as name=value, or name a file that holds the JSON"
            ) from None
        if "=" in stripped and not Path(stripped).exists():
            return dict(_pair(part) for part in stripped.split(","))
        if not Path(stripped).exists():
            raise ConfigError(
                f"config = {show(text, 120)}: neither JSON, nor a file, nor name=value, such as gravity=-0.25"
            ) from None
        found = read_json(Path(stripped), LARGEST)
    if not isinstance(found, dict):
        raise ConfigError(f'config = {show(text, 120)}: must be an object of FlappyConfig fields, such as {{"gravity": -0.25}}')
    return found


def _pair(part: str) -> tuple[str, Any]:
    name, _, value = part.partition("=")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        raise ConfigError(f"{name.strip()} = {show(value)}: must be a number, such as gravity=-0.25") from None
