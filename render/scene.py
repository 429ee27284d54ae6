"""One state → one picture.

A `Scene` is a course made ready to be drawn at one size: a kept pixel array with a surface over it, a background that is drawn
once, sprites made once. A frame puts the background back where something moved, draws what moves, and hands out a copy. Drawing
reads the course and changes nothing in the game; `View` is the only way from world to screen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from flappybird.errors import ConfigError, show, unknown_name
from flappybird.protocol.reply import Status
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course, Pipe
from flappybird.world.game import Outcome, Reason, State
from flappybird.world.units import UNITS, to_text, to_units
from render.lettering import Color, clean, line_height, measure, shorten, wrap, write
from render.sdl import pygame

Frame: TypeAlias = npt.NDArray[np.uint8]
"""A picture: uint8, (height, width, 3), red green blue, contiguous."""

Size = tuple[int, int]

DEFAULT_SIZE: Size = (576, 480)
SMALLEST, LARGEST = 64, 4096
"""Limits of a picture's width and height in pixels."""

# --- colours ------------------------------------------------------------------------------------------------------

SKY: tuple[Color, Color] = ((78, 168, 222), (202, 236, 240))
"""At the ceiling and at the floor."""
SKY_BANDS = 96
CLOUD: Color = (240, 249, 250)
HILLS: tuple[Color, Color] = ((150, 205, 196), (116, 186, 150))
ROOF: Color = (52, 84, 128)
GRASS: tuple[Color, Color] = ((126, 200, 80), (106, 178, 66))
GRASS_EDGE: Color = (74, 124, 50)
SOIL: tuple[Color, Color] = ((222, 206, 148), (204, 184, 124))
PIPE: tuple[tuple[float, Color], ...] = (
    (0.28, (172, 226, 100)),
    (0.74, (124, 186, 60)),
    (1.00, (94, 150, 42)),
)
"""Across a pipe from its left edge to its right: where each shade ends, as a share of the width. Few and flat,
because what is flat does not change as it moves, and what does not change takes no room in a video."""
PIPE_EDGE: Color = (48, 84, 28)
BODY: Color = (250, 200, 50)
BELLY: Color = (252, 228, 140)
WING: Color = (255, 244, 214)
BEAK: Color = (238, 108, 48)
INK: Color = (58, 44, 40)
WHITE: Color = (255, 255, 255)
GHOSTS: tuple[Color, ...] = ((86, 128, 240), (226, 92, 150), (150, 96, 220), (60, 160, 150))
"""Body colours of other birds on the same course."""
PAPER: Color = (24, 32, 48)
"""Ground of everything around the game."""
RULE: Color = (52, 66, 92)
SAID: Color = (232, 238, 246)
FAINT: Color = (148, 164, 190)
ALARM: Color = (228, 74, 62)
AMBER: Color = (244, 172, 54)

FLAT: tuple[Color, ...] = (
    *(SKY + HILLS + GRASS + SOIL),
    *(CLOUD, ROOF, GRASS_EDGE, PIPE_EDGE, *(color for _, color in PIPE)),
    *(BODY, BELLY, WING, BEAK, INK, WHITE, *GHOSTS),
    *(PAPER, RULE, SAID, FAINT, ALARM, AMBER),
)
"""All colours of flat areas, except those between the two of the sky: what a picture with few colours has to have."""

WIDEST = ("tick 0000", "y -00.00", "vel -0.00", "gap -0.00 to 0.00")
"""What the HUD's columns have room for."""

# --- what is drawn ------------------------------------------------------------------------------------------------


class Overlay(NamedTuple):
    """What is drawn beside the world. Each can be switched off."""

    score: bool = True
    """Pipes passed, large, at the top."""
    hud: bool = True
    """Tick, y, velocity, gap; seed and player."""
    thought: bool = True
    """What the player thought in this turn: beside the game where there is room, else over its foot as a subtitle."""
    status: bool = True
    """A mark at turns whose reply was not `ok`."""
    ending: bool = True
    """In the last picture, why the episode ended."""
    hitbox: bool = False
    """The circle that collides; the bird itself is drawn larger so that it can be seen."""

    @classmethod
    def of(cls, text: str) -> Overlay:
        """Return the overlay that `text` lists: names joined by commas, `all` or `none`; `-name` takes one off the defaults.

        Raises:
            ConfigError: a name is unknown.
        """
        names = [name.strip() for name in text.split(",") if name.strip()]
        if names == ["all"]:
            return cls(*[True] * len(cls._fields))
        if names == ["none"]:
            return cls(*[False] * len(cls._fields))
        if {"all", "none"} & {*names}:
            raise ConfigError(f"overlay = {show(text)}: all and none stand alone")
        off = bool(names) and all(name.startswith("-") for name in names)
        for name in names:
            if name.removeprefix("-" if off else "") not in cls._fields:
                raise ConfigError(unknown_name(name, [*cls._fields, "all", "none"], "an overlay"))
        if off:
            return cls()._replace(**{name[1:]: False for name in names})
        return cls(**{name: name in names for name in cls._fields})


class Moment(NamedTuple):
    """What is to be seen at one tick: a state, and what is known of the turn that led there."""

    state: State = State()
    score: int = 0
    thought: str = ""
    status: Status = Status.OK
    tap: bool = False
    """Whether the turn's action was a TAP."""
    ended: Outcome | None = None
    """How the episode ended, in its last moment."""
    ghosts: tuple[State, ...] = ()
    """Other birds on the same course."""


def check_size(size: Size, name: str = "size") -> Size:
    """Return `size`. Raises ConfigError where width or height is odd or out of range."""
    for side in size:
        if side % 2 or not SMALLEST <= side <= LARGEST:
            raise ConfigError(
                f"{name} = {size[0]}x{size[1]}: width and height must be even (video is stored in blocks of 2x2 pixels), "
                f"from {SMALLEST} to {LARGEST}"
            )
    return size


def read_size(text: str) -> Size:
    """Return the size that `text`, such as `576x480`, stands for. Raises ConfigError where it stands for none."""
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal() and width.isascii() and height.isascii() and len(text) < 20):
        raise ConfigError(f"size = {show(text)}: must be WIDTHxHEIGHT in pixels, such as 576x480")
    return check_size((int(width), int(height)))


# --- from world to screen -----------------------------------------------------------------------------------------

FOOT, HEAD = 0.085, 0.015
"""Ground below the floor and roof above the ceiling that are shown, as shares of the world's height."""


class View(NamedTuple):
    """World → screen: one scale for both axes, so shapes keep their aspect; what is left of the picture lies around `game`."""

    scale: float
    """Pixels per world unit."""
    left: float
    """Screen x of world x = 0."""
    middle: float
    """Screen y of world y = 0."""
    game: tuple[int, int, int, int]
    """Left, top, width and height of the world, with roof and ground, on the screen."""
    panel: tuple[int, int, int, int] | None
    """The same of the room for text beside or below it, None where there is none to speak of."""

    @classmethod
    def of(cls, config: FlappyConfig, size: Size, panel: bool = False) -> View:
        """Return the largest view of `config`'s world in a picture of `size`, with or without room for a panel."""
        (width, height), tall = size, config.world_h * (1 + FOOT + HEAD)
        scale = min(width / config.world_w, height / tall)
        game_w, game_h = round(config.world_w * scale), round(tall * scale)
        left, top, beside = (width - game_w) // 2, (height - game_h) // 2, None
        if panel and width - game_w >= max(width * 0.22, 150):
            left, beside = 0, (game_w, 0, width - game_w, height)
        elif panel and height - game_h >= max(height * 0.2, 70):
            top, beside = 0, (0, game_h, width, height - game_h)
        return cls(scale, left, top + config.world_h * (0.5 + HEAD) * scale, (left, top, game_w, game_h), beside)

    def x(self, units: float) -> int:
        """Return the screen x (pixels) of a world x (units)."""
        return round(self.left + units * self.scale / UNITS)

    def y(self, units: float) -> int:
        """Return the screen y (pixels) of a world y (units); up in the world is up on the screen."""
        return round(self.middle - units * self.scale / UNITS)

    def length(self, units: float) -> int:
        """Return how many pixels a length (units) is, at least one."""
        return max(round(units * self.scale / UNITS), 1)


# --- the scene ----------------------------------------------------------------------------------------------------


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
        self.course, self.size, self.overlay, self.player = course, check_size(size), overlay, clean(player)
        self.ghosts = [clean(name) for name in ghosts]
        self.view = View.of(course.config, size, panel=overlay.thought)
        width, height = size
        self.pixels: Frame = np.zeros((height, width, 3), np.uint8)
        self.canvas = pygame.image.frombuffer(self.pixels, size, "RGB")
        """The last picture, as a surface over `pixels`."""
        self._game = pygame.Rect(self.view.game)
        self._floor = self.view.y(-to_units(course.config.world_h) // 2)
        self._text = max(round(self._game.height / 34), 9)  # size of small letters
        self._columns = [measure(widest, self._text) + self._text // 2 for widest in WIDEST]
        self._grass = self._turf()
        self._back = self._background()
        self._body, self._lip = self._pipe_sprites()
        self._birds: dict[tuple[int, int, int], Any] = {}
        self._digits = [self._digit(digit) for digit in "0123456789"] if overlay.score else []
        self._notes: dict[tuple[Any, ...], Any] = {}
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
        for pipe in self.course.visible(moment.state.tick):
            self._draw_pipe(pipe)
        self._draw_ground(moment.state.tick)
        for number, ghost in enumerate(moment.ghosts):
            self._draw_bird(ghost, 1 + number % len(GHOSTS), moment.state.tick)
        self._draw_bird(moment.state, 0, moment.state.tick)
        self._draw_overlay(moment)
        canvas.set_clip(None)

    def cover(self, rect: Any) -> None:
        """Note that somebody drew on the canvas in `rect`; the next picture begins without it."""
        self._moved.append(rect)

    def _put(self, sprite: Any, at: tuple[int, int], area: Any = None) -> None:
        self._moved.append(self.canvas.blit(sprite, at, area))

    # The world.

    def _draw_pipe(self, pipe: Pipe) -> None:
        view, lip = self.view, self._lip.get_height()
        left = view.x(pipe.x) - self._lip.get_width() // 2
        inset = (self._lip.get_width() - self._body.get_width()) // 2
        top, bottom = view.y(pipe.gap_y + pipe.gap_height // 2), view.y(pipe.gap_y - pipe.gap_height // 2)
        roof, floor = self._game.top, self._floor
        self._put(self._body, (left + inset, roof), (0, 0, self._body.get_width(), max(top - lip - roof, 0)))
        self._put(self._lip, (left, top - lip))
        self._put(self._body, (left + inset, bottom + lip), (0, 0, self._body.get_width(), max(floor - bottom - lip, 0)))
        self._put(self._lip, (left, bottom))

    def _draw_ground(self, tick: int) -> None:
        # The grass slips left as fast as the pipes.
        slip = round(tick * self.course.physics.speed * self.view.scale / UNITS) % self._stripe
        self.canvas.blit(self._grass, (self._game.left, self._floor), (slip, 0, self._game.width, self._grass.get_height()))

    def _draw_bird(self, state: State, plumage: int, tick: int) -> None:
        sprite, physics = self._bird(state.velocity, plumage), self.course.physics
        # A bird that ended before `tick` stays behind where it did.
        x, y = self.view.x(physics.bird_x - (tick - state.tick) * physics.speed), self.view.y(state.y)
        self._put(sprite, (x - sprite.get_width() // 2, y - sprite.get_height() // 2))

    # What is written over and beside it.

    def _draw_overlay(self, moment: Moment) -> None:
        overlay, game, view = self.overlay, self._game, self.view
        if overlay.hitbox or (overlay.ending and moment.ended is not None and moment.ended.reason.crashed):
            self._draw_ring(moment)
        if overlay.status and moment.status is not Status.OK:
            mark = self._note(("mark", moment.status), lambda: self._chip(f"! {moment.status.value}", ALARM, WHITE))
            x, y = view.x(self.course.physics.bird_x), view.y(moment.state.y) - round(self.drawn_radius * 1.6)
            self._put(mark, (max(x - mark.get_width() // 2, game.left + 2), max(y - mark.get_height(), game.top + 2)))
        if overlay.score:
            self._draw_score(moment.score)
        if overlay.hud and view.panel is None:
            self._draw_hud(moment)
        if overlay.ending and moment.ended is not None:
            self._draw_ending(moment.ended)
        if view.panel is not None:
            self.canvas.set_clip(None)
            self._draw_panel(moment, pygame.Rect(view.panel))
        elif overlay.thought and moment.thought:
            note = self._note(("said", moment.thought), lambda: self._subtitle(moment.thought))
            self._put(note, (game.left, self._floor - note.get_height()))

    def _draw_ring(self, moment: Moment) -> None:
        at = self.view.x(self.course.physics.bird_x), self.view.y(moment.state.y)
        radius = self.view.length(self.course.physics.radius)
        self._moved.append(pygame.draw.circle(self.canvas, WHITE, at, radius + 1))
        self._moved.append(pygame.draw.circle(self.canvas, ALARM, at, radius))

    def _draw_score(self, score: int) -> None:
        digits = [self._digits[int(digit)] for digit in str(score)]
        x = self._game.centerx - sum(digit.get_width() for digit in digits) // 2
        for digit in digits:
            self._put(digit, (x, self._game.top + self._game.height // 24))
            x += digit.get_width()

    def _draw_hud(self, moment: Moment) -> None:
        # On the soil, where it hides nothing; seed and player stand there already.
        x = self._game.left + self._text // 2
        for fact, width in zip(self._facts(moment), self._columns, strict=True):
            if x + width <= self._game.right:
                self._put(write(fact, self._text, INK, SOIL[0]), (x, self._line_top))
                x += width

    @property
    def _line_top(self) -> int:
        """Where the line on the soil begins."""
        top: int = self._floor + self._grass.get_height()
        room: int = self._game.bottom - top - line_height(self._text)
        return top + max(room, 0) // 2

    def _sign(self, back: Any) -> None:
        """Write seed and player on the soil, as far as there is room beside the facts that change."""
        room = self._game.width - sum(self._columns) - self._text
        text = f"seed {self.course.seed}" + (f" · {self.player}" if self.player else "")
        if room >= measure("seed 0…", self._text):
            text = shorten(text, self._text, room)
            back.blit(
                write(text, self._text, INK), (self._game.right - self._text // 2 - measure(text, self._text), self._line_top)
            )

    def _facts(self, moment: Moment) -> tuple[str, ...]:
        tick, y, velocity = moment.state
        gap = self.course.gap(moment.score)
        half = gap.height // 2
        return (
            f"tick {tick}",
            f"y {to_text(y)}",
            f"vel {to_text(velocity)}",
            f"gap {to_text(gap.y - half)} to {to_text(gap.y + half)}",
        )

    def _draw_ending(self, ended: Outcome) -> None:
        self._put(self._note(("veil", ended.reason), lambda: self._veil(ended)), self._game.topleft)
        text = told(ended)
        size = round(self._text * 1.5)
        while measure(text, size) > self._game.width * 9 // 10 and size > 8:
            size -= 1
        sign = self._note(("end", text), lambda: self._chip(text, ALARM if ended.reason.crashed else RULE, WHITE, size))
        self._put(sign, (self._game.centerx - sign.get_width() // 2, self._game.top + self._game.height * 3 // 10))

    def _draw_panel(self, moment: Moment, room: Any) -> None:
        """Draw what is known of the turn: who, where, what was thought and done."""
        beside = room.left > 0
        pad = max(min(room.width, room.height) // 16, 6)
        size = min(max(room.width // 18 if beside else room.height // 8, 9), self._text * 5 // 4)
        line, x, y, width = line_height(size), room.left + pad, room.top + pad, room.width - 2 * pad
        if self.overlay.hud:
            who = self.player or "flappybird"
            self._put(write(shorten(who, size, width), size, WHITE, PAPER), (x, y))
            y += line * 5 // 4
            facts = [f"seed {self.course.seed}", *self._facts(moment)]
            if beside:
                for left, right in (facts[:2], facts[2:4], facts[4:] + [""]):
                    self._put(write(shorten(left, size, width if not right else width // 2 - pad), size, FAINT, PAPER), (x, y))
                    if right:
                        self._put(write(right, size, FAINT, PAPER), (x + width // 2, y))
                    y += line * 9 // 8
            else:
                self._put(write(shorten("   ".join(facts), size, width), size, FAINT, PAPER), (x, y))
                y += line * 9 // 8
            y += line // 3
            self._moved.append(pygame.draw.line(self.canvas, RULE, (x, y), (x + width, y)))
            y += line // 2
        if moment.state.tick or moment.thought:
            if moment.status is not Status.OK and self.overlay.status:
                label, ground, ink = f"{moment.status.value}, flies as no-op", ALARM, WHITE
            else:
                label, ground, ink = ("TAP", AMBER, INK) if moment.tap else ("NOOP", RULE, SAID)
            chip = self._note(("chip", label, size), lambda: self._chip(label, ground, ink, size))
            self._put(chip, (x, y))
            y += chip.get_height() + line // 2
        lines = (room.bottom - pad - y) // line
        if self.overlay.thought and moment.thought and lines > 0:
            note = self._note(
                ("panel", moment.thought, size, lines),
                lambda: self._lines(wrap(moment.thought, size, width, lines), size, SAID, PAPER),
            )
            self._put(note, (x, y))

    # Notes: surfaces with text, kept for as long as they are likely to be asked for again.

    def _note(self, key: tuple[Any, ...], make: Any) -> Any:
        note = self._notes.get(key)
        if note is None:
            if len(self._notes) > 64:
                self._notes.clear()
            note = self._notes[key] = make()
        return note

    def _subtitle(self, thought: str) -> Any:
        pad, width = self._text // 2, self._game.width
        lines = wrap(thought, self._text, width - 4 * pad, 3)
        text = self._lines(lines, self._text, WHITE, None)
        note = pygame.Surface((width, text.get_height() + 2 * pad), pygame.SRCALPHA)
        note.fill((*PAPER, 205))
        note.blit(text, (2 * pad, pad))
        return note

    def _lines(self, lines: Iterable[str], size: int, color: Color, ground: Color | None) -> Any:
        lines = list(lines)
        width = max((measure(line, size) for line in lines), default=1)
        area = max(width, 1), max(line_height(size) * len(lines), 1)
        note = pygame.Surface(area, 0, self.canvas) if ground else pygame.Surface(area, pygame.SRCALPHA)
        if ground:
            note.fill(ground)
        for row, line in enumerate(lines):
            note.blit(write(line, size, color), (0, row * line_height(size)))
        return note

    def _chip(self, text: str, ground: Color, ink: Color, size: int | None = None) -> Any:
        size = size or self._text
        label, pad = write(text, size, ink), size // 2
        chip = pygame.Surface((label.get_width() + 2 * pad, label.get_height() + pad), pygame.SRCALPHA)
        pygame.draw.rect(chip, ground, chip.get_rect(), border_radius=pad)
        chip.blit(label, (pad, pad // 2))
        return chip

    def _veil(self, ended: Outcome) -> Any:
        veil = pygame.Surface(self._game.size, pygame.SRCALPHA)
        veil.fill((*(ALARM if ended.reason.crashed else PAPER), 70))
        return veil

    # What is made once.

    @property
    def drawn_radius(self) -> int:
        """The bird's radius on the screen (pixels): up to two and a half times what collides, so that it can be seen."""
        radius = self.course.physics.radius
        seen = max(radius, min(radius * 5 // 2, to_units(self.course.config.world_h) // 40))
        return max(self.view.length(seen), 3)

    def _background(self) -> Any:
        back = pygame.Surface(self.size, 0, self.canvas)
        back.fill(PAPER)
        game, floor = self._game, self._floor
        back.set_clip(game)
        for band in range(SKY_BANDS):
            top = game.top + (floor - game.top) * band // SKY_BANDS
            back.fill(_mix(*SKY, band / (SKY_BANDS - 1)), (game.left, top, game.width, floor - top))
        back.blit(self._scenery(floor - game.top), game.topleft)
        roof = self.view.y(to_units(self.course.config.world_h) // 2)
        back.fill(ROOF, (game.left, game.top, game.width, max(roof - game.top, 1)))
        soil = floor + self._grass.get_height()
        back.fill(SOIL[0], (game.left, soil, game.width, game.bottom - soil))
        back.fill(SOIL[1], (game.left, soil, game.width, max((game.bottom - floor) // 12, 1)))
        if self.overlay.hud and self.view.panel is None:
            self._sign(back)
        back.set_clip(None)
        if self.view.panel is not None:
            x, y, width, height = self.view.panel
            pygame.draw.line(back, RULE, (x, y), (x, y + height) if x else (x + width, y))
        return back

    def _scenery(self, height: int) -> Any:
        """Clouds and hills, drawn at three times their size and shrunk so that their edges are smooth."""
        many, width = 3, self._game.width
        big = pygame.Surface((width * many, height * many), pygame.SRCALPHA)
        big.fill((*HILLS[0], 0))
        unit = height * many / 20
        for at, low, reach in ((0.04, 17.6, 4.2), (0.3, 18.2, 5.0), (0.62, 17.4, 4.6), (0.93, 18.0, 5.4)):
            self._blob(big, HILLS[0], at * width * many, (low + reach / 2) * unit, reach * 1.6 * unit, reach * unit)
        for at, reach in ((0.16, 3.4), (0.46, 2.6), (0.78, 3.2), (1.02, 2.4)):
            self._blob(big, HILLS[1], at * width * many, 20.4 * unit, reach * 1.9 * unit, reach * unit)
        for at, y, wide in ((0.13, 5.2, 2.6), (0.44, 9.4, 2.0), (0.66, 3.6, 3.0), (0.9, 8.0, 2.2)):
            for shift, share in ((-0.62, 0.55), (-0.1, 0.85), (0.5, 0.62)):
                middle = at * width * many + shift * wide * unit
                self._blob(
                    big,
                    CLOUD,
                    middle,
                    (y - share * 0.4 * wide * 0.5) * unit,
                    share * wide * 0.62 * unit,
                    share * wide * 0.48 * unit,
                )
            rect = pygame.Rect(0, 0, wide * 2.2 * unit, wide * 0.42 * unit)
            rect.center = round(at * width * many), round(y * unit)
            pygame.draw.rect(big, CLOUD, rect, border_radius=rect.height // 2)
        return pygame.transform.smoothscale(big, (width, height))

    @staticmethod
    def _blob(surface: Any, color: Color, x: float, y: float, reach_x: float, reach_y: float) -> None:
        pygame.draw.ellipse(surface, color, (x - reach_x, y - reach_y, 2 * reach_x, 2 * reach_y))

    def _turf(self) -> Any:
        """The grass, one stripe wider than the world so that it can slip left under it."""
        height = max((self._game.bottom - self._floor) // 4, 2)
        self._stripe = max(self.view.length(4 * UNITS), 4)
        turf = pygame.Surface((self._game.width + self._stripe, height), 0, self.canvas)
        turf.fill(GRASS[0])
        half = self._stripe // 2
        for x in range(-self._stripe, turf.get_width() + self._stripe, self._stripe):
            pygame.draw.polygon(turf, GRASS[1], ((x + half, 0), (x + 2 * half, 0), (x + half, height - 1), (x, height - 1)))
        turf.fill(GRASS_EDGE, (0, 0, turf.get_width(), max(height // 6, 1)))
        return turf

    def _pipe_sprites(self) -> tuple[Any, Any]:
        """A pipe's body, as high as the world, and its lip: exactly as wide as what collides."""
        wide = self.view.length(self.course.physics.width)
        lip = max(wide * 2 // 5, 2)
        inset = max(wide // 16, 1) if wide > 6 else 0
        return self._tube(wide - 2 * inset, self._game.height, False), self._tube(wide, lip, True)

    def _tube(self, width: int, height: int, framed: bool) -> Any:
        tube = pygame.Surface((width, height), 0, self.canvas)
        edge = max(width // 24, 1)
        start = 0
        for share, color in PIPE:
            stop = round(share * width)
            tube.fill(color, (start, 0, stop - start, height))
            start = stop
        for rect in ((0, 0, edge, height), (width - edge, 0, edge, height)):
            tube.fill(PIPE_EDGE, rect)
        if framed:
            for rect in ((0, 0, width, edge), (0, height - edge, width, edge)):
                tube.fill(PIPE_EDGE, rect)
        return tube

    def _digit(self, digit: str) -> Any:
        size = max(self._game.height // 11, 14)
        edge = max(size // 14, 1)
        dark, light = write(digit, size, INK), write(digit, size, WHITE)
        sprite = pygame.Surface((light.get_width() + edge, light.get_height() + 2 * edge), pygame.SRCALPHA)
        for dx in (0, edge, 2 * edge):
            for dy in (0, edge, 2 * edge):
                sprite.blit(dark, (dx - edge // 2, dy))
        sprite.blit(light, (edge - edge // 2, edge))
        return sprite

    def _bird(self, velocity: int, plumage: int) -> Any:
        """Return the bird that flies with `velocity` (units per tick): its tilt and its wing follow from it."""
        jump, gravity = self.course.physics.jump, self.course.physics.gravity
        tilt = 5 * round(max(-75.0, min(28.0, 28.0 * velocity / jump)) / 5)
        since = (jump - velocity) // -gravity  # ticks since the last TAP
        wing = since if 0 <= since < 2 else 2
        key = tilt, wing, plumage
        if key not in self._birds:
            self._birds[key] = self._hatch(*key)
        return self._birds[key]

    def _hatch(self, tilt: int, wing: int, plumage: int) -> Any:
        body = GHOSTS[plumage - 1] if plumage else BODY
        belly = _mix(body, WHITE, 0.45) if plumage else BELLY
        many = 8 if self.drawn_radius < 40 else 3
        radius = self.drawn_radius * many
        side = radius * 3
        big = pygame.Surface((side, side), pygame.SRCALPHA)
        big.fill((*INK, 0))
        middle, edge = side // 2, max(radius // 7, 1)

        def oval(color: Color, x: float, y: float, wide: float, high: float, outline: bool = False) -> None:
            grow = edge if outline else 0
            reach_x, reach_y = wide * radius + grow, high * radius + grow
            box = (middle + x * radius - reach_x, middle - y * radius - reach_y, 2 * reach_x, 2 * reach_y)
            pygame.draw.ellipse(big, INK if outline else color, box)
            if outline:
                oval(color, x, y, wide, high)

        oval(body, 0, 0, 1.05, 0.84, outline=True)
        oval(belly, -0.05, -0.4, 0.7, 0.34)
        oval(BEAK, 0.95, -0.16, 0.36, 0.2, outline=True)
        oval(WHITE, 0.52, 0.34, 0.34, 0.36, outline=True)
        oval(INK, 0.64, 0.32, 0.14, 0.17)
        oval(WING, *((-0.62, -0.42, 0.46, 0.4), (-0.68, 0.0, 0.52, 0.26), (-0.66, 0.26, 0.46, 0.36))[wing], outline=True)
        turned = pygame.transform.rotate(big, tilt)
        small = max(turned.get_width() // many, 1)
        sprite = pygame.transform.smoothscale(turned, (small, small))
        if plumage:
            sprite.set_alpha(150)
        return sprite


def told(ended: Outcome) -> str:
    """Return, for people, how an episode ended."""
    what = {
        Reason.FLOOR: "Crashed into the floor",
        Reason.CEILING: "Crashed into the ceiling",
        Reason.PIPE: f"Crashed into pipe {ended.pipe}",
        Reason.TICK_LIMIT: "Survived to the tick limit",
        Reason.MALFORMED: "Stopped: too many invalid replies",
        Reason.ABORTED: "Aborted by the player",
        Reason.CONTEXT: "Stopped: the model's context is full",
        Reason.ERROR: "Stopped by an error",
    }[ended.reason]
    return f"{what}, tick {ended.tick}"


def _mix(one: Color, other: Color, share: float) -> Color:
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue
