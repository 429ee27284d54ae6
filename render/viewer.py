"""An episode in a window: played, stepped, scrubbed.

`Deck` is the player without the window: where it stands, how fast it goes, what a key does. `view` is the window around it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from flappybird.errors import FlappyError
from render.colors import ALARM, AMBER, FAINT, PAPER, PIPE, RULE, SAID
from render.frames import TICKS_PER_SECOND, Track
from render.layout import Size
from render.lettering import line_height, measure, write
from render.moment import Overlay
from render.scene import Scene
from render.sdl import Window, letter, pygame

SPEEDS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
DISPLAY_FPS = 60
LONGEST_CLIP = 10 * 60 * DISPLAY_FPS
"""Pictures after which a recording stops by itself."""

STRIP = 34
"""Height in pixels of the timeline below the picture."""

Record = Callable[[Track, Sequence[int], int, Overlay, Path], None]
"""Writes a clip: the episode, the tick of each picture, pictures per second, what is drawn beside the world, the file."""


class Deck:
    """Where a player stands in an episode of `last` ticks."""

    def __init__(self, last: int, speed: float = 1.0) -> None:
        self.last = last
        self.at = 0.0
        """Position in ticks."""
        self.speed = speed
        self.playing = True

    @property
    def tick(self) -> int:
        """The tick to show."""
        return min(int(self.at), self.last)

    def pass_time(self, seconds: float) -> None:
        """Move on by `seconds` of real time, unless paused; the end pauses."""
        if self.playing:
            self.at += seconds * TICKS_PER_SECOND * self.speed
            if self.at >= self.last:
                self.at, self.playing = float(self.last), False

    def toggle(self) -> None:
        """Pause, or play on; from the end, play again."""
        if not self.playing and self.tick == self.last:
            self.at = 0.0
        self.playing = not self.playing

    def step(self, ticks: int) -> None:
        """Pause, and move by `ticks`."""
        self.go(self.tick + ticks)

    def go(self, tick: float) -> None:
        """Pause at `tick`, or at the nearest there is."""
        self.playing = False
        self.at = float(min(max(int(tick), 0), self.last))

    def faster(self, steps: int) -> None:
        """Take the next faster (or slower) speed."""
        nearest = min(range(len(SPEEDS)), key=lambda index: abs(SPEEDS[index] - self.speed))
        self.speed = SPEEDS[min(max(nearest + steps, 0), len(SPEEDS) - 1)]


def view(
    track: Track,
    size: Size,
    overlay: Overlay = Overlay(),
    ghosts: Sequence[Track] = (),
    speed: float = 1.0,
    record: Record | None = None,
) -> None:
    """Open a window and play `track` in it until it is closed.

    Raises:
        FlappyError: there is no display.
    """
    deck = Deck(track.last, speed)
    with Window((size[0], size[1] + STRIP), _title(track, deck)) as window:
        _Show(track, deck, size, overlay, ghosts, window, record).run()


def _title(track: Track, deck: Deck) -> str:
    return f"flappybird - {track.name[:60]} - seed {track.course.seed} - tick {deck.tick}/{track.last} - {deck.speed:g}x"


class _Show:
    """What `view` keeps while the window is open."""

    def __init__(
        self,
        track: Track,
        deck: Deck,
        size: Size,
        overlay: Overlay,
        ghosts: Sequence[Track],
        window: Window,
        record: Record | None,
    ) -> None:
        self.track, self.deck, self.size, self.overlay = track, deck, size, overlay
        self.ghosts, self.window, self.record = ghosts, window, record
        self.scene: Scene = track.scene(size, overlay, ghosts)
        self.picture = pygame.Surface((size[0], size[1] + STRIP), 0, self.scene.canvas)
        self.invalid = track.invalid_ticks()
        self.passes = [t for t in range(1, track.last + 1) if track.score(t) > track.score(t - 1)]
        self.clip: list[int] | None = None  # ticks shown since R was pressed
        self.news = ""

    def run(self) -> None:
        pace, before = pygame.time.Clock(), time.perf_counter()
        while True:
            for event in pygame.event.get():
                if event.type == pygame.QUIT or (
                    event.type == pygame.KEYDOWN and (event.key == pygame.K_ESCAPE or letter(event) == "q")
                ):
                    self.stop_clip()
                    return
                self.handle(event)
            now = time.perf_counter()
            self.deck.pass_time(now - before)
            before = now
            self.draw()
            if self.clip is not None:
                self.clip.append(self.deck.tick)
                if len(self.clip) >= LONGEST_CLIP:
                    self.stop_clip()
            pace.tick(DISPLAY_FPS)

    def handle(self, event: Any) -> None:
        deck = self.deck
        if event.type == pygame.KEYDOWN:
            far = 10 if event.mod & pygame.KMOD_SHIFT else 1
            actions: dict[int, Callable[[], None]] = {
                pygame.K_SPACE: deck.toggle,
                pygame.K_LEFT: lambda: deck.step(-far),
                pygame.K_RIGHT: lambda: deck.step(far),
                pygame.K_HOME: lambda: deck.go(0),
                pygame.K_END: lambda: deck.go(deck.last),
                pygame.K_PLUS: lambda: deck.faster(1),
                pygame.K_KP_PLUS: lambda: deck.faster(1),
                pygame.K_EQUALS: lambda: deck.faster(1),
                pygame.K_MINUS: lambda: deck.faster(-1),
                pygame.K_KP_MINUS: lambda: deck.faster(-1),
            }
            letters = {"t": self.toggle_thoughts, "r": self.toggle_clip, "f": self.window.toggle_full_screen}
            actions.get(event.key, letters.get(letter(event), lambda: None))()
        elif event.type in (pygame.MOUSEBUTTONDOWN, pygame.MOUSEMOTION):
            held = event.button == 1 if event.type == pygame.MOUSEBUTTONDOWN else event.buttons[0]
            x, y = self.window.to_picture(event.pos, self.picture.get_size())
            if held and y >= self.size[1] - 4:
                left, width = self.bar()
                deck.go(round((x - left) / width * deck.last))

    def toggle_thoughts(self) -> None:
        self.overlay = self.overlay._replace(thought=not self.overlay.thought)
        self.scene = self.track.scene(self.size, self.overlay, self.ghosts)

    def toggle_clip(self) -> None:
        if self.clip is None:
            self.clip, self.news = [], ""
        else:
            self.stop_clip()

    def stop_clip(self) -> None:
        """Write what was shown since R was pressed."""
        shown, self.clip = self.clip, None
        if not shown or self.record is None:
            return
        path = _free(Path(f"clip-seed{self.track.course.seed}-tick{shown[0]}-{shown[-1]}.mp4"))
        try:
            self.record(self.track, shown, DISPLAY_FPS, self.overlay, path)
            self.news = f"saved {path}"
        except (FlappyError, OSError) as error:
            self.news = str(error)

    def bar(self) -> tuple[int, int]:
        """Left end and width of the timeline."""
        return STRIP, max(self.size[0] - 2 * STRIP - 150, 20)

    def draw(self) -> None:
        deck, picture = self.deck, self.picture
        self.scene.paint(self.track.moment(deck.tick, self.ghosts))
        picture.blit(self.scene.canvas, (0, 0))
        picture.fill(PAPER, (0, self.size[1], self.size[0], STRIP))
        (left, width), middle = self.bar(), self.size[1] + STRIP // 2

        def x(tick: int) -> int:
            return left + round(width * tick / max(deck.last, 1))

        pygame.draw.rect(picture, RULE, (left, middle - 3, width, 6), border_radius=3)
        pygame.draw.rect(picture, FAINT, (left, middle - 3, x(deck.tick) - left, 6), border_radius=3)
        for tick in self.passes:
            pygame.draw.rect(picture, PIPE[1][1], (x(tick) - 1, middle - 9, 2, 4))
        for tick in self.invalid:
            pygame.draw.rect(picture, ALARM, (x(tick) - 1, middle + 5, 2, 5))
        pygame.draw.circle(picture, AMBER, (x(deck.tick), middle), 7)
        if deck.playing:
            for dx in (-4, 2):
                picture.fill(SAID, (STRIP // 2 + dx, middle - 6, 3, 12))
        else:
            pygame.draw.polygon(
                picture, SAID, [(STRIP // 2 - 4, middle - 7), (STRIP // 2 - 4, middle + 7), (STRIP // 2 + 7, middle)]
            )
        text = f"{deck.tick}/{deck.last}  {deck.speed:g}x"
        picture.blit(write(text, 14, SAID), (self.size[0] - measure(text, 14) - 12, middle - line_height(14) // 2))
        if self.clip is not None:
            pygame.draw.circle(picture, ALARM, (self.size[0] - measure(text, 14) - 28, middle), 6)
        self.window.title(
            _title(self.track, deck) + (" - recording" if self.clip is not None else f" - {self.news}" if self.news else "")
        )
        self.window.show(picture)


def _free(path: Path) -> Path:
    """Return `path`, or the first numbered name beside it that is not taken."""
    number, free = 1, path
    while free.exists():
        number += 1
        free = path.with_stem(f"{path.stem}-{number}")
    return free
