"""One state → one picture.

A `Scene` is a course made ready to be drawn at one size: a kept pixel array with a surface over it, a background that is drawn
once, sprites made once. A frame puts the background back where something moved, draws what moves, and hands out a copy. Drawing
reads the course and changes nothing in the game.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from flappybird.world.course import Course, Pipe
from flappybird.world.units import UNITS, to_units
from render import sprites
from render.captions import Captions
from render.colors import ALARM, GHOSTS, PAPER, ROOF, RULE, SKY, SKY_BANDS, SOIL, mix
from render.layout import DEFAULT_SIZE, FOOT, Size, View, check_size
from render.moment import Moment, Overlay
from render.sdl import pygame

Frame: TypeAlias = npt.NDArray[np.uint8]
"""A picture: uint8, (height, width, 3), red green blue, contiguous."""


class Scene:
    """A course at one size, ready to be drawn tick by tick.

    Args:
        course: the course.
        size: width and height in pixels, both even.
        overlay: what is drawn beside the world.
        player: who plays, for the HUD.
        ghosts: names of the other birds on the course, in the order of `Moment.ghosts`.

    Raises:
        ConfigError: the size is odd or out of range.
    """

    def __init__(
        self,
        course: Course,
        size: Size = DEFAULT_SIZE,
        overlay: Overlay = Overlay(),
        player: str = "",
        ghosts: Sequence[str] = (),
    ) -> None:
        self.course, self.size, self.overlay = course, check_size(size), overlay
        self.view = View.of(course.config, size, panel=overlay.thought or overlay.hud, band=overlay.thought)
        width, height = size
        self.pixels: Frame = np.zeros((height, width, 3), np.uint8)
        self.canvas = pygame.image.frombuffer(self.pixels, size, "RGB")
        """The last picture, as a surface over `pixels`."""
        self.radius = max(self.view.length(course.physics.radius), 2)
        """The bird's radius in pixels: that of what collides."""
        self._captions = Captions(course, self.view, overlay, player, ghosts, sprites.reach(self.radius), self._put)
        self._game = pygame.Rect(self.view.game)
        self._floor = self.view.y(-to_units(course.config.world_h) // 2)
        self._stripe = max(self.view.length(4 * UNITS), 4)
        foot = round(FOOT * course.config.world_h * self.view.scale)
        self._grass = sprites.turf(self._game.width, max(foot // 4, 2), self._stripe, self.canvas)
        self._back = self._background(foot)
        self._body, self._lip = sprites.pipe(self.view.length(course.physics.width), self._game.height, self.canvas)
        self._birds: dict[tuple[int, int, int], Any] = {}
        self._moved: list[Any] = [self.canvas.get_rect()]

    def draw(self, moment: Moment) -> Frame:
        """Return the picture of `moment`, freshly owned: (height, width, 3), uint8."""
        self.paint(moment)
        return self.pixels.copy()

    def paint(self, moment: Moment) -> None:
        """Draw `moment` on the canvas."""
        canvas, moved = self.canvas, self._moved
        for rect in moved:
            canvas.blit(self._back, rect, rect)
        moved.clear()
        canvas.set_clip(self._game)
        late = (1 - moment.share) * self.course.physics.speed
        for pipe in self.course.visible(moment.state.tick):
            self._draw_pipe(pipe, late)
        # The grass slips left as fast as the pipes.
        slip = round(moment.time * self.course.physics.speed * self.view.scale / UNITS) % self._stripe
        canvas.blit(self._grass, (self._game.left, self._floor), (slip, 0, self._game.width, self._grass.get_height()))
        for number in range(len(moment.ghosts)):
            self._draw_bird(moment, number)
        self._draw_bird(moment)
        if self.overlay.hitbox or (self.overlay.ending and moment.ended is not None and moment.ended.reason.crashed):
            self._draw_ring(moment)
        self._captions.over(moment)
        canvas.set_clip(None)
        self._captions.around(moment)

    def cover(self, rect: Any) -> None:
        """Note that somebody drew on the canvas in `rect`; the next picture begins without it."""
        self._moved.append(rect)

    def _put(self, sprite: Any, at: tuple[int, int], area: Any = None) -> None:
        self._moved.append(self.canvas.blit(sprite, at, area))

    def _draw_pipe(self, pipe: Pipe, late: float) -> None:
        view, lip = self.view, self._lip.get_height()
        left = view.x(pipe.x + late) - self._lip.get_width() // 2
        inset = (self._lip.get_width() - self._body.get_width()) // 2
        top, bottom = view.y(pipe.gap_y + pipe.gap_height // 2), view.y(pipe.gap_y - pipe.gap_height // 2)
        roof, floor = self._game.top, self._floor
        self._put(self._body, (left + inset, roof), (0, 0, self._body.get_width(), max(top - lip - roof, 0)))
        self._put(self._lip, (left, top - lip))
        self._put(self._body, (left + inset, bottom + lip), (0, 0, self._body.get_width(), max(floor - bottom - lip, 0)))
        self._put(self._lip, (left, bottom))

    def _draw_bird(self, moment: Moment, ghost: int | None = None) -> None:
        state = moment.state if ghost is None else moment.ghosts[ghost]
        sprite = self._bird(state.velocity, 0 if ghost is None else 1 + ghost % len(GHOSTS))
        physics = self.course.physics
        # A bird that has ended stays behind where it did.
        x = self.view.x(physics.bird_x - max(moment.time - state.tick, 0) * physics.speed)
        self._put(sprite, (x - sprite.get_width() // 2, self.view.y(moment.height(ghost)) - sprite.get_height() // 2))

    def _draw_ring(self, moment: Moment) -> None:
        at = self.view.x(self.course.physics.bird_x), self.view.y(moment.height())
        # Around what collides: over the bird's dark outline.
        self._moved.append(pygame.draw.circle(self.canvas, ALARM, at, self.radius + sprites.outline(self.radius)[0] + 1, 2))

    def _bird(self, velocity: int, plumage: int) -> Any:
        """Return the bird that flies with `velocity` (units per tick): its tilt and its wing follow from it."""
        jump, gravity = self.course.physics.jump, self.course.physics.gravity
        tilt = 5 * round(max(-75.0, min(28.0, 28.0 * velocity / jump)) / 5)
        since = (jump - velocity) // -gravity  # ticks since the last TAP
        wing = since if 0 <= since < 2 else 2
        key = tilt, wing, plumage
        if key not in self._birds:
            self._birds[key] = sprites.bird(self.radius, *key)
        return self._birds[key]

    def _background(self, foot: int) -> Any:
        back = pygame.Surface(self.size, 0, self.canvas)
        back.fill(PAPER)
        game, floor = self._game, self._floor
        roof = self.view.y(to_units(self.course.config.world_h) // 2)
        back.set_clip(game)
        for band in range(SKY_BANDS):
            top = roof + (floor - roof) * band // SKY_BANDS
            back.fill(mix(*SKY, band / (SKY_BANDS - 1)), (game.left, top, game.width, floor - top))
        back.blit(sprites.scenery(game.width, max(floor - roof, 1)), (game.left, roof))
        back.fill(ROOF, (game.left, game.top, game.width, max(roof - game.top, 1)))
        soil = floor + self._grass.get_height()
        back.fill(SOIL[0], (game.left, soil, game.width, game.bottom - soil))
        back.fill(SOIL[1], (game.left, soil, game.width, max(foot // 12, 1)))
        if self.overlay.hud and self.view.panel is None:
            self._captions.sign(back)
        back.set_clip(None)
        if self.view.panel is not None:
            x, y, width, height = self.view.panel
            pygame.draw.line(back, RULE, (x, y), (x, y + height) if x else (x + width, y))
        return back
