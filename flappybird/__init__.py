"""Flappy Bird as a world for language models: exact physics, a text protocol, verified episodes.

Everything public is listed in `__all__` and loaded when it is touched, so that importing the package costs nothing and
needs neither verifiers nor numpy nor pygame.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from flappybird._version import __version__

_HOME = {
    "ConfigError": "flappybird.errors",
    "Course": "flappybird.world.course",
    "Episode": "flappybird.episodes.episode",
    "EpisodeError": "flappybird.errors",
    "FlappyConfig": "flappybird.world.config",
    "FlappyError": "flappybird.errors",
    "FlappyGame": "flappybird.world.game",
    "FlappyHarness": "flappybird.harness",
    "FlappyTaskEnv": "flappybird.taskset",
    "FlappyTaskset": "flappybird.taskset",
    "GameOver": "flappybird.errors",
    "MissingPart": "flappybird.errors",
    "Observation": "flappybird.world.observation",
    "Outcome": "flappybird.world.game",
    "Reason": "flappybird.world.game",
    "Rollout": "flappybird.episodes.rollout",
    "Rules": "flappybird.protocol.rules",
    "State": "flappybird.world.game",
    "Status": "flappybird.protocol.reply",
    "TooMuchWork": "flappybird.errors",
    "load_episode": "flappybird.episodes.episode",
    "make_policy": "flappybird.players.policies",
    "read_reply": "flappybird.protocol.reply",
    "replay": "flappybird.episodes.episode",
    "save_episode": "flappybird.episodes.episode",
    "system_prompt": "flappybird.protocol.prompt",
    "verify": "flappybird.episodes.verify",
}

_INSIDE = {"load_episode": "load", "save_episode": "save"}

# verifiers v1 looks at every name here for the one Taskset, Env and Harness; the classic API asks for `load_environment`.
__all__ = [*_HOME, "__version__", "load_environment"]


def load_environment(
    max_turns: int = 300,
    num_examples: int = 10,
    config: Any = None,
    config_overrides: dict[str, Any] | None = None,
    seed: int = 0,
    **more: Any,
) -> Any:
    """Return the environment for the classic API of verifiers, see `flappybird.classic.load_environment`."""
    # A function, so that looking at it does not load the classic API, which verifiers 0.4 no longer has.
    classic = import_module("flappybird.classic")
    return classic.load_environment(max_turns, num_examples, config, config_overrides, seed, **more)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'flappybird' has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOME[name]), _INSIDE.get(name, name))
    except AttributeError as error:
        # Those who look a class up by name take an AttributeError for "there is none", and go on without it.
        raise ImportError(f"flappybird.{name} could not be loaded: {error}") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
