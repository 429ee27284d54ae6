"""What is written over, beside and below the world: score, HUD, panel, thought, names of ghosts, ending."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flappybird.protocol.reply import Status
from flappybird.world.course import Course
from flappybird.world.game import Outcome
from flappybird.world.units import to_text
from render.colors import ALARM, AMBER, FAINT, GHOSTS, INK, PAPER, RULE, SAID, SOIL, WHITE, Color
from render.layout import FOOT, Band, View
from render.lettering import clean, line_height, measure, shorten, wrap, write
from render.moment import Moment, Overlay
from render.sdl import pygame
from render.sprites import figure

WIDEST = ("tick 0000", "y -00.00", "vel -0.00", "gap -0.00 to 0.00")
"""What the HUD's columns have room for."""

Put = Callable[[Any, tuple[int, int]], None]
"""Draws a surface at a place (left, top) and remembers that this part of the picture has changed."""


def chip(text: str, ground: Color, ink: Color, size: int) -> Any:
    """Return a label with rounded corners."""
    label, pad = write(text, size, ink), size // 2
    plate = pygame.Surface((label.get_width() + 2 * pad, label.get_height() + pad), pygame.SRCALPHA)
    pygame.draw.rect(plate, ground, plate.get_rect(), border_radius=pad)
    plate.blit(label, (pad, pad // 2))
    return plate


def lines(texts: Iterable[str], size: int, color: Color, ground: Color) -> Any:
    """Return lines of text on a plain ground, one below the other."""
    texts = list(texts)
    area = max((measure(text, size) for text in texts), default=1), line_height(size) * len(texts)
    note = pygame.Surface((max(area[0], 1), max(area[1], 1)), 0, 24)
    note.fill(ground)
    for row, text in enumerate(texts):
        note.blit(write(text, size, color), (0, row * line_height(size)))
    return note


class Captions:
    """The words of one scene.

    Args:
        course, view, overlay: what is drawn, where, and what of it.
        player: who plays.
        ghosts: names of the other birds, in the order of `Moment.ghosts`.
        bird: radius of a bird with its outline, in pixels.
        put: draws on the scene's canvas.
    """

    def __init__(
        self, course: Course, view: View, overlay: Overlay, player: str, ghosts: Sequence[str], bird: int, put: Put
    ) -> None:
        self.course, self.view, self.overlay, self.player = course, view, overlay, clean(player)
        self.ghosts, self.bird, self.put = [clean(name) for name in ghosts], bird, put
        self.game = pygame.Rect(view.game)
        config = course.config
        self.floor = view.y(-round(config.world_h * 5_000))
        self.roof = view.y(round(config.world_h * 5_000))
        tall = self.floor - self.roof
        self.text = max(round(tall / 31), 9)
        """Size of small letters."""
        self.columns = [measure(widest, self.text) + self.text // 2 for widest in WIDEST]
        self.soil = self.floor + max(round(FOOT * config.world_h * view.scale) // 4, 2)
        """Where the soil begins, on which the HUD stands."""
        self.line = self.soil + max(self.game.bottom - self.soil - line_height(self.text), 0) // 2
        self.digits = [figure(digit, max(tall // 10, 14)) for digit in "0123456789"] if overlay.score else []
        self.notes: dict[tuple[Any, ...], Any] = {}

    def note(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Return the surface that `make` makes; one that is likely to be asked for again is kept."""
        note = self.notes.get(key)
        if note is None:
            if len(self.notes) > 64:
                self.notes.clear()
            note = self.notes[key] = make()
        return note

    def over(self, moment: Moment) -> None:
        """Write what stands over the world."""
        overlay, view = self.overlay, self.view
        bird = view.x(self.course.physics.bird_x), view.y(moment.height())
        for number, name in enumerate(self.ghosts[: len(moment.ghosts)]):
            self._name_ghost(moment, number, name, bird[1])
        if overlay.status and moment.status is not Status.OK:
            mark = self.note(("mark", moment.status), lambda: chip(f"! {moment.status.value}", ALARM, WHITE, self.text))
            self._beside(mark, bird, above=True)
        if overlay.score:
            self._score(moment.score)
        if overlay.hud and view.panel is None and self.line + line_height(self.text) <= self.game.bottom:
            self._hud(moment)
        if overlay.ending and moment.ended is not None:
            self._ending(moment.ended, bird[1])

    def around(self, moment: Moment) -> None:
        """Write what stands beside or below the world."""
        if self.view.panel is not None:
            self._panel(moment, pygame.Rect(self.view.panel))
        elif self.view.band is not None and moment.thought and self.overlay.thought:
            room, band = pygame.Rect(self.view.band), Band.of(self.view.band[1] + self.view.band[3])
            fits = max((room.height - 2 * band.pad) // line_height(band.text), 1)
            width = room.width - 2 * band.text
            note = self.note(
                ("thought", moment.thought),
                lambda: lines(wrap(moment.thought, band.text, width, fits), band.text, SAID, PAPER),
            )
            self.put(note, (band.text, room.top + band.pad))

    def _beside(self, label: Any, bird: tuple[int, int], above: bool) -> None:
        """Put a label above or below a bird, inside the world."""
        x = max(bird[0] - label.get_width() // 2, self.game.left + 2)
        reach = self.bird + 3
        tops = (bird[1] - reach - label.get_height(), bird[1] + reach)
        top = tops[0] if above else tops[1]
        if not self.roof <= top <= self.floor - label.get_height():
            top = tops[1] if above else tops[0]
        self.put(label, (x, top))

    def _name_ghost(self, moment: Moment, number: int, name: str, bird: int) -> None:
        ghost, physics = moment.ghosts[number], self.course.physics
        x = self.view.x(physics.bird_x - max(moment.time - ghost.tick, 0) * physics.speed)
        if x < self.game.left or not name:
            return
        y, size = self.view.y(moment.height(number)), max(self.text * 7 // 8, 8)
        color = GHOSTS[number % len(GHOSTS)]
        label = self.note(("ghost", number), lambda: chip(shorten(name, size, self.game.width // 4), color, WHITE, size))
        self._beside(label, (x, y), above=y <= bird)

    def _score(self, score: int) -> None:
        digits = [self.digits[int(digit)] for digit in str(score)]
        x = self.game.centerx - sum(digit.get_width() for digit in digits) // 2
        for digit in digits:
            self.put(digit, (x, self.roof + (self.floor - self.roof) // 40))
            x += digit.get_width()

    def _hud(self, moment: Moment) -> None:
        # On the soil, where it hides nothing; seed and player stand there already.
        x = self.game.left + self.text // 2
        for fact, width in zip(self.facts(moment), self.columns, strict=True):
            if x + width <= self.game.right:
                self.put(write(fact, self.text, INK, SOIL[0]), (x, self.line))
                x += width

    def sign(self, back: Any) -> None:
        """Write seed and player on the soil of `back`, as far as there is room beside the facts that change."""
        room = self.game.width - sum(self.columns) - self.text
        if self.line + line_height(self.text) > self.game.bottom:
            return
        text = f"seed {self.course.seed}" + (f" · {self.player}" if self.player else "")
        if room >= measure("seed 0…", self.text):
            text = shorten(text, self.text, room)
            back.blit(write(text, self.text, INK), (self.game.right - self.text // 2 - measure(text, self.text), self.line))

    def facts(self, moment: Moment) -> tuple[str, ...]:
        """Return tick, y, velocity and the next gap, if there is a pipe to see."""
        tick, y, velocity = moment.state
        ahead = next((pipe for pipe in self.course.visible(tick) if pipe.number >= moment.score), None)
        gap = "no pipe yet" if moment.score == 0 else "no pipe"
        if ahead is not None:
            half = ahead.gap_height // 2
            gap = f"gap {to_text(ahead.gap_y - half)} to {to_text(ahead.gap_y + half)}"
        return f"tick {tick}", f"y {to_text(y)}", f"vel {to_text(velocity)}", gap

    def _ending(self, ended: Outcome, bird: int) -> None:
        self.put(self.note(("veil", ended.reason), lambda: self._veil(ended)), self.game.topleft)
        text = ended.caption
        size = round(self.text * 1.5)
        while measure(text, size) > self.game.width * 9 // 10 and size > 8:
            size -= 1
        sign = self.note(("end", text), lambda: chip(text, ALARM if ended.reason.crashed else RULE, WHITE, size))
        tall = self.floor - self.roof
        top = self.roof + tall * 3 // 10
        if top - self.bird <= bird <= top + sign.get_height() + self.bird:  # it would cover the bird
            top = self.roof + tall * 6 // 10
        self.put(sign, (self.game.centerx - sign.get_width() // 2, top))

    def _veil(self, ended: Outcome) -> Any:
        veil = pygame.Surface(self.game.size, pygame.SRCALPHA)
        veil.fill((*(ALARM if ended.reason.crashed else PAPER), 70))
        return veil

    def _panel(self, moment: Moment, room: Any) -> None:
        """Write what is known of the turn: who, where, what was thought and done."""
        pad = max(min(room.width, room.height) // 18, 5)
        # Letters as large as leave room for some ten lines of some thirty signs.
        size = max(min(room.width // 15, (room.height - 2 * pad) // 12, self.text * 2), 9)
        line, x, y, width = line_height(size), room.left + pad, room.top + pad, room.width - 2 * pad
        if self.overlay.hud:
            facts = [f"seed {self.course.seed}", *self.facts(moment)]
            who = self.player
            if room.height < 9 * line:  # no room to be generous with
                who, facts = "", ["   ".join([who, *facts] if who else facts)]
            if who:
                self.put(write(shorten(who, size, width), size, WHITE, PAPER), (x, y))
                y += line * 5 // 4
            for left, right in zip(facts[::2], [*facts[1::2], ""], strict=False):
                self.put(write(shorten(left, size, width if not right else width // 2 - pad), size, FAINT, PAPER), (x, y))
                if right:
                    self.put(write(shorten(right, size, width // 2), size, FAINT, PAPER), (x + width // 2, y))
                y += line * 9 // 8
            y += line // 4
            rule = self.note(("rule",), lambda: lines([""], size, RULE, RULE))
            self.put(pygame.transform.scale(rule, (width, 1)), (x, y))
            y += line // 2
        if self.overlay.thought and (moment.state.tick or moment.thought):
            if moment.status is not Status.OK and self.overlay.status:
                label, ground, ink = f"{moment.status.value}, flies as no-op", ALARM, WHITE
            else:
                label, ground, ink = ("TAP", AMBER, INK) if moment.tap else ("NOOP", RULE, SAID)
            plate = self.note(("chip", label, size), lambda: chip(shorten(label, size, width - size), ground, ink, size))
            self.put(plate, (x, y))
            y += plate.get_height() + line // 2
        fits = (room.bottom - pad - y) // line
        if self.overlay.thought and moment.thought and fits > 0:
            note = self.note(
                ("panel", moment.thought, size, fits), lambda: lines(wrap(moment.thought, size, width, fits), size, SAID, PAPER)
            )
            self.put(note, (x, y))
