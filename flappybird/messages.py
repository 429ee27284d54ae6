"""A tick as message content: text, or text with a small PNG where the rules ask for a picture.

The only place where this package asks for `render`, and only when a picture is asked for.
"""

from __future__ import annotations

import base64
import io
from functools import lru_cache
from typing import Any

from flappybird.episodes.rollout import Rollout
from flappybird.protocol.observe import SIZE, has_picture
from flappybird.protocol.rules import Rules
from flappybird.system.install import sibling
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course

SCENES = 256
"""How many courses are kept ready to be drawn."""


def require_renderer(rules: Rules) -> None:
    """Raise MissingPart where `rules` ask for pictures and what draws them is not installed."""
    if has_picture(rules):
        _renderer()


def content(rollout: Rollout) -> str | list[dict[str, Any]]:
    """Return what a model is sent of `rollout` as it stands: text, or OpenAI content parts with a picture.

    Raises:
        MissingPart: a picture is asked for, and what draws it is not installed.
    """
    text = rollout.message()
    if not has_picture(rollout.rules):
        return text
    url = f"data:image/png;base64,{base64.b64encode(png(rollout)).decode()}"
    return [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]


def png(rollout: Rollout) -> bytes:
    """Return the picture of `rollout` as it stands, `SIZE` pixels, as a PNG file's bytes. Raises MissingPart."""
    scene, moment, image = _scene(rollout.game.config, rollout.game.seed)
    scene.paint(moment(state=rollout.game.state, score=rollout.game.score))
    file = io.BytesIO()
    image.save(scene.canvas, file, "tick.png")
    return file.getvalue()


@lru_cache(maxsize=SCENES)
def _scene(config: FlappyConfig, seed: int) -> tuple[Any, Any, Any]:
    scene, pygame = _renderer()
    return scene.Scene(Course(config, seed), SIZE, scene.Overlay.of("score")), scene.Moment, pygame.image


def _renderer() -> tuple[Any, Any]:
    need = "observations with a picture need the renderer"
    return sibling("render.scene", need, "render"), sibling("render.sdl", need, "render").pygame
