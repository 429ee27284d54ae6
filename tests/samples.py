"""Episodes to draw, flown once."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flappybird.episodes.episode import Episode, Player, save
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.players.games import fly
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@functools.cache
def flown(policy: str = "heuristic", seed: int = 3, ticks: int = 300) -> Episode:
    """The episode that `policy` flies on `seed`."""
    return fly(policy, FlappyConfig(), seed, Rules(max_turns=ticks))


def replied(*replies: str, name: str = "a model", config: FlappyConfig | None = None, cut: bool = False) -> Episode:
    """The episode of a model that gives these replies."""
    rollout = Rollout(config or FlappyConfig(), 3, Rules())
    for reply in replies:
        rollout.take(reply, cut=cut)
    return finish(rollout, Player(kind="model", name=name))


@pytest.fixture
def crash() -> Episode:
    """253 ticks of `heuristic` that end in pipe 6."""
    return flown("heuristic", 3)


@pytest.fixture
def survivor() -> Episode:
    """60 ticks of `planner`, alive at the limit."""
    return flown("planner", 3, 60)


@pytest.fixture
def crash_file(tmp_path: Path, crash: Episode) -> Path:
    path = tmp_path / "crash.json"
    save(crash, path)
    return path


@pytest.fixture
def short_file(tmp_path: Path) -> Path:
    path = tmp_path / "short.json"
    save(flown("random", 3), path)
    return path


def clean_environment(**changes: str) -> dict[str, str]:
    """This environment as a server has it: without a display, a driver or a terminal."""
    gone = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER", "SDL_AUDIODRIVER", "PYGAME_HIDE_SUPPORT_PROMPT", "XDG_RUNTIME_DIR")
    kept = {name: value for name, value in os.environ.items() if name not in gone}
    return kept | {"TERM": "dumb"} | changes


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run `python -m MODULE ARGUMENTS` in a folder of its own, as on a server."""

    def command(
        *arguments: object, env: dict[str, str] | None = None, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", *map(str, arguments)],
            env=clean_environment(**(env or {})),
            cwd=cwd or tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return command
