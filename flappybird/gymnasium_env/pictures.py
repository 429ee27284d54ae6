"""What `render` draws for an environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from flappybird.system.install import sibling
from flappybird.world.game import FlappyGame

FRAMES_PER_SECOND = 30


class Pictures:
    """The pictures of one environment, and its window. The renderer is loaded when it is made."""

    def __init__(self, size: tuple[int, int]) -> None:
        need = "pictures of the game need the renderer"
        self._scene, self._sdl = sibling("render.scene", need, "render"), sibling("render.sdl", need, "render")
        self._size = size
        self._drawn: Any = None  # the scene of the course drawn last
        self._window: Any = None
        self._clock: Any = None

    def draw(self, game: FlappyGame) -> NDArray[np.uint8]:
        scene = self._scene
        if self._drawn is None or self._drawn.course is not game.course:
            self._drawn = scene.Scene(game.course, self._size, scene.Overlay(thought=False, hud=False))
        picture: NDArray[np.uint8] = self._drawn.draw(scene.Moment(state=game.state, score=game.score, ended=game.outcome))
        return picture

    def show(self) -> None:
        """Show what was drawn last in the window, no faster than `FRAMES_PER_SECOND`."""
        pygame = self._sdl.pygame
        if self._window is None:
            hint = "no display to open a window on; render_mode='rgb_array' needs none"
            self._window, self._clock = self._sdl.Window(self._size, "Flappy Bird", hint), pygame.time.Clock()
        pygame.event.pump()
        self._window.show(self._drawn.canvas)
        self._clock.tick(FRAMES_PER_SECOND)

    def close(self) -> None:
        if self._window is not None:
            self._window.__exit__()
            self._window = None
