"""The window in which a person plays: an episode by the same rules, seeds and ticks as a model's, see `session`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flappybird.errors import ConfigError, FlappyError, show
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig
from render.colors import PAPER, WHITE
from render.frames import Track
from render.layout import LARGEST, SMALLEST, Size
from render.lettering import measure, write
from render.moment import Overlay
from render.scene import Scene
from render.sdl import Window, letter, pygame
from render.session import Phase, Session
from render.sound import Sounds

DISPLAY_FPS = 60
NO_DISPLAY = "no display to play on; let a policy play instead: flappybird play --policy heuristic --save episode.json"

KEYS = (
    ("space, up, click", "flap; begin; begin again"),
    ("P", "pause"),
    ("R", "begin again at once"),
    ("N", "the next course"),
    ("F", "full screen, and back"),
    ("? or F1", "this help"),
    ("Esc, Q", "leave"),
)


def play(
    config: FlappyConfig,
    seed: int = 0,
    rules: Rules = Rules(),
    speed: float = 1.0,
    path: Path | None = None,
    size: Size = (864, 720),
    fps: int = DISPLAY_FPS,
    clock: Callable[[], float] = time.perf_counter,
    each: Callable[[Session], None] = lambda session: None,
    rival: Track | None = None,
    sound: bool = False,
) -> Session:
    """Open a window and let a person play until it is closed; return the session.

    Args:
        config, seed, rules, speed, path, rival: see `Session`.
        size: of the window.
        fps: pictures per second.
        clock: seconds.
        each: called once for every picture, before the keys are read.
        sound: whether flaps, points and crashes are heard.

    Raises:
        FlappyError: there is no display.
        ConfigError: a setting is out of range.
    """
    check_path(path)
    session = Session(config, seed, rules, speed, path, rival)
    with Window(size, "flappybird", NO_DISPLAY, repeat=False) as window:
        sounds = _sounds() if sound else None
        try:
            _Show(session, window, sounds, each).run(fps, clock)
        finally:
            # However the play ends, by the window's button, Ctrl-C or SIGTERM, what was played is kept.
            session.quit()
            if sounds is not None:
                sounds.close()
    return session


def check_path(path: Path | None) -> None:
    """Raise ConfigError or FlappyError where no episode can be saved to `path`: before a game is played for it."""
    if path is None:
        return
    if path.suffix.lower() != ".json":
        raise ConfigError(f"{path}: unknown extension {show(path.suffix)}; an episode is a .json")
    if not path.parent.is_dir():
        raise FlappyError(f"{path}: there is no folder {path.parent}")
    if path.is_dir():
        raise FlappyError(f"{path}: is a folder; name a file")


def _sounds() -> Sounds | None:
    try:
        return Sounds()
    except FlappyError as error:
        print(f"flappybird: {error}; you play without", file=sys.stderr)
        return None


class _Show:
    """What `play` keeps while the window is open."""

    def __init__(self, session: Session, window: Window, sounds: Sounds | None, each: Callable[[Session], None]) -> None:
        self.session, self.window, self.sounds, self.each = session, window, sounds, each
        self.helping = False
        self.scene = self.fitting()

    def fitting(self) -> Scene:
        """Return a scene of the session's course, as large as the window."""
        size = tuple(min(max(side // 2 * 2, SMALLEST), LARGEST) for side in self.window.size())
        rivals = [] if self.session.rival is None else [self.session.rival.name]
        return Scene(self.session.rollout.game.course, (size[0], size[1]), Overlay(thought=False), "you", rivals)

    def run(self, fps: int, clock: Callable[[], float]) -> None:
        pace, session, before, shape = pygame.time.Clock(), self.session, clock(), self.window.size()
        while True:
            self.each(session)
            for event in pygame.event.get():
                if event.type == pygame.QUIT:
                    return
                if event.type == pygame.KEYDOWN and (event.key == pygame.K_ESCAPE or letter(event) == "q"):
                    return
                self.handle(event)
            now = clock()
            session.pass_time(0.0 if self.helping else now - before)
            before = now
            if self.sounds is not None:
                for sound in session.heard:
                    self.sounds.play(sound)
            session.heard.clear()
            if self.scene.course is not session.rollout.game.course or self.window.size() != shape:
                self.scene, shape = self.fitting(), self.window.size()
            self.draw()
            pace.tick(fps)

    def handle(self, event: Any) -> None:
        session = self.session
        if event.type == pygame.WINDOWFOCUSLOST:
            session.focus(False)
        elif event.type == pygame.MOUSEBUTTONDOWN and event.button == 1:
            self.flap()
        elif event.type == pygame.KEYDOWN:
            if event.key in (pygame.K_SPACE, pygame.K_UP):
                self.flap()
            elif event.key == pygame.K_F1 or getattr(event, "unicode", "") == "?":
                self.helping = not self.helping
            else:
                actions: dict[str, Callable[[], None]] = {
                    "p": session.pause,
                    "r": session.restart,
                    "n": session.next_seed,
                    "f": self.fill,
                }
                actions.get(letter(event), lambda: None)()

    def flap(self) -> None:
        if self.helping:
            self.helping = False
        else:
            self.session.press()

    def fill(self) -> None:
        """Fill the screen, or go back into a window; a game that flies pauses, since the screen may be dark for a moment."""
        self.session.focus(False)
        self.window.toggle_full_screen()

    def draw(self) -> None:
        session = self.session
        self.scene.paint(session.moment())
        best = session.best.get(session.seed)
        said = {
            Phase.WAITING: ["Space, up or click: flap and begin", "?: all keys"],
            Phase.FLYING: [],
            Phase.PAUSED: ["Paused: flap or P to go on"],
            Phase.OVER: ["Space: again    " + ("N: next course    " if session.rival is None else "") + "Esc: leave"],
        }[session.phase]
        if session.phase is Phase.OVER and session.verdict():
            said = [session.verdict(), *said]
        if said and best is not None:
            said = [*said, f"best on seed {session.seed}: {best}"]
        if self.helping:
            _list(self.scene)
        elif said:
            _say(self.scene, said)
        state = "help" if self.helping else session.phase.value
        record = f" - best {best}" if best is not None else ""
        self.window.title(f"flappybird - seed {session.seed} - tick {session.rollout.game.tick} - {state}{record}")
        self.window.show(self.scene.canvas)


def _plate(scene: Scene, width: int, height: int, top: int) -> Any:
    """Draw a dark plate of this size in the middle of the world; return where it is."""
    left, _, wide, _ = scene.view.game
    plate = pygame.Rect(0, 0, width, height)
    plate.midtop = left + wide // 2, top
    scene.cover(pygame.draw.rect(scene.canvas, PAPER, plate, border_radius=8))
    return plate


def _say(scene: Scene, lines: list[str]) -> None:
    _, top, width, height = scene.view.game
    size = max(height // 28, 10)
    while size > 8 and max(measure(line, size) for line in lines) + 2 * size > width:
        size -= 1
    at = top + height * 55 // 100
    for line in lines:
        label = write(line, size, WHITE)
        plate = _plate(scene, label.get_width() + 2 * size, label.get_height() + size // 2, at)
        scene.canvas.blit(label, (plate.left + size, plate.top + size // 4))
        at = plate.bottom + size // 3


def _list(scene: Scene) -> None:
    """Show the keys."""
    _, top, width, height = scene.view.game
    size = max(min(height // 26, width // 34), 8)
    line, keys = size * 3 // 2, max(measure(key, size) for key, _ in KEYS) + size
    wide = keys + max(measure(what, size) for _, what in KEYS)
    plate = _plate(scene, wide + 2 * size, (len(KEYS) + 1) * line, top + height // 8)
    for row, (key, what) in enumerate(KEYS):
        y = plate.top + line // 2 + row * line
        scene.canvas.blit(write(key, size, WHITE), (plate.left + size, y))
        scene.canvas.blit(write(what, size, WHITE), (plate.left + size + keys, y))
