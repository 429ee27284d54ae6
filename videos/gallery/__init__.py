"""The clips that README shows, made by `python -m videos.gallery` from games that are flown for them: nothing is staged."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from flappybird.players.games import fly
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig
from render.clip import Clip, Timing
from render.frames import Track
from render.layout import Size
from render.moment import Overlay
from videos.writer import Written, write

LARGEST = 300_000
"""No clip is larger than this many bytes."""


class Shot(NamedTuple):
    """One clip of the gallery."""

    policy: str
    seed: int
    size: Size
    timing: Timing
    overlay: Overlay = Overlay()
    ghost: str | None = None


SHOTS = {
    "passes.gif": Shot("planner", 7, (480, 300), Timing(fps=12.5, start=75, stop=180)),
    "crash.gif": Shot("heuristic", 3, (480, 300), Timing(fps=12.5, start=185, hold=2.0)),
    "race.gif": Shot(
        "heuristic", 3, (360, 300), Timing(fps=12.5, start=125, hold=1.0), Overlay(thought=False, hud=False), ghost="planner"
    ),
}
"""What is shown: a policy that passes pipes, a crash with its thought, a race against a see-through bird."""


def make(name: str, folder: Path) -> Written:
    """Write the clip `name` to `folder`. The same code and releases give the same bytes."""
    shot = SHOTS[name]
    flown = [Track(fly(policy, FlappyConfig(), shot.seed, Rules())) for policy in (shot.policy, shot.ghost) if policy]
    clip = Clip(flown[:1], shot.size, shot.timing, shot.overlay, flown[1:])
    return write(folder / name, clip.frames(), clip.size, clip.fps, clip.samples())
