"""Flappy Bird as a world for language models: exact physics, a text protocol, verified episodes.

Everything public is listed in `__all__` and loaded when it is touched, so that importing the package costs nothing and
needs neither verifiers nor numpy nor pygame.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "Course": "flappybird.course",
    "Episode": "flappybird.episode",
    "FlappyConfig": "flappybird.config",
    "FlappyGame": "flappybird.game",
    "Observation": "flappybird.observation",
    "Outcome": "flappybird.game",
    "Reason": "flappybird.game",
    "Rollout": "flappybird.rollout",
    "Rules": "flappybird.rollout",
    "State": "flappybird.game",
    "Status": "flappybird.text",
    "load_environment": "flappybird.classic",
    "load_episode": "flappybird.episode",
    "make_policy": "flappybird.policies",
    "read_reply": "flappybird.text",
    "replay": "flappybird.episode",
    "save_episode": "flappybird.episode",
    "system_prompt": "flappybird.text",
    "verify": "flappybird.records",
}

_INSIDE = {"load_episode": "load", "save_episode": "save"}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'flappybird' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), _INSIDE.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
