"""A person at the keyboard → an episode, by the same rules, seeds and ticks as a model's.

`Session` is the play without the window: it is told of keys and of time passing, and moves in whole ticks, so that the display's
rate decides nothing. `play` is the window around it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any

from flappybird.config import FlappyConfig
from flappybird.course import MAX_SEED
from flappybird.episode import Episode, Player, save
from flappybird.errors import FlappyError
from flappybird.options import check_tps
from flappybird.records import finish
from flappybird.rollout import Rollout, Rules
from flappybird.solo import told
from render.colors import PAPER, WHITE
from render.layout import Size
from render.lettering import write
from render.moment import Moment, Overlay
from render.scene import Scene
from render.sdl import Window, pygame

TICKS_PER_SECOND = 20
"""How fast a person plays, if not asked otherwise."""

LONGEST_STALL = 0.25
"""Seconds that the game catches up after a stall; what is longer stops the clock, so nobody dies of a slow disk."""

DISPLAY_FPS = 60
HELP = "no display to play on; let a policy play instead: flappybird play --policy heuristic --save episode.json"


class Phase(StrEnum):
    """Where a session stands."""

    WAITING = "waiting"
    """Before the first key."""
    FLYING = "flying"
    PAUSED = "paused"
    """The window has lost the focus."""
    OVER = "over"


class Session:
    """Games of one person, one after the other.

    Args:
        config: the world.
        seed: the first course.
        rules: how many ticks a game lasts at most.
        tps: ticks per second.
        path: where the episode is saved as a game ends, None for nowhere. A second game of the session is saved beside
            it as `name-2.json`, and so on: no game is lost.

    Raises:
        ConfigError: seed or speed are out of range.
    """

    def __init__(
        self, config: FlappyConfig, seed: int = 0, rules: Rules = Rules(), tps: float = TICKS_PER_SECOND, path: Path | None = None
    ) -> None:
        self.config, self.seed, self.rules, self.tps, self.path = config, seed, rules, check_tps(tps, "tps"), path
        self.best: dict[int, int] = {}
        """The most pipes passed on each seed."""
        self.saved: list[Path] = []
        self.phase = Phase.WAITING
        self.rollout = Rollout(config, seed, rules)
        self._tapped = False
        self._owed = 0.0  # ticks

    def press(self) -> None:
        """Flap in the next tick; the first press begins the game."""
        if self.phase in (Phase.WAITING, Phase.FLYING, Phase.PAUSED):
            self.phase = Phase.FLYING
            self._tapped = True

    def pass_time(self, seconds: float) -> int:
        """Let `seconds` of real time pass, and return how many ticks were flown in them."""
        if self.phase is not Phase.FLYING:
            self._owed = 0.0
            return 0
        self._owed += min(seconds, LONGEST_STALL) * self.tps
        flown = 0
        while self._owed >= 1 and self.phase is Phase.FLYING:
            self._owed -= 1
            self._tick()
            flown += 1
        return flown

    def _tick(self) -> None:
        self.rollout.fly([self._tapped])
        self._tapped = False
        if self.rollout.outcome is not None:
            self.phase = Phase.OVER
            self.best[self.seed] = max(self.best.get(self.seed, 0), self.rollout.game.score)
            self._save()

    def focus(self, has: bool) -> None:
        """Pause a game that flies when the window loses the focus; the next press goes on."""
        if not has and self.phase is Phase.FLYING:
            self.phase = Phase.PAUSED

    def restart(self, seed: int | None = None) -> None:
        """Begin again, on the same course or on another; a game that flies is saved as aborted."""
        self._leave()
        self.seed = self.seed if seed is None else seed
        self.rollout = Rollout(self.config, self.seed, self.rules)
        self.phase, self._tapped, self._owed = Phase.WAITING, False, 0.0

    def next_seed(self) -> None:
        """Begin on the course of the next seed."""
        self.restart((self.seed + 1) % (MAX_SEED + 1))

    def quit(self) -> None:
        """Leave: a game that has not ended is saved as aborted; one that never began only if nothing else was saved."""
        self._leave()
        if self.path is not None and not self.saved:
            self._save()

    def _leave(self) -> None:
        if self.phase in (Phase.FLYING, Phase.PAUSED):
            self._save()

    def episode(self) -> Episode:
        """Return the game so far; one that has not ended is marked as aborted, and ends."""
        return finish(self.rollout, Player(kind="human", name="human", sampling={"ticks_per_second": self.tps}))

    def _save(self) -> None:
        episode = self.episode()
        if self.path is not None:
            number = len(self.saved) + 1
            path = self.path if number == 1 else self.path.with_stem(f"{self.path.stem}-{number}")
            save(episode, path)
            self.saved.append(path)

    def told(self) -> str:
        """Return, on one line, how the last game ended."""
        return told(self.episode())


def play(
    config: FlappyConfig,
    seed: int = 0,
    rules: Rules = Rules(),
    tps: float = TICKS_PER_SECOND,
    path: Path | None = None,
    size: Size = (864, 720),
    fps: int = DISPLAY_FPS,
    clock: Callable[[], float] = time.perf_counter,
    each: Callable[[Session], None] = lambda session: None,
) -> Session:
    """Open a window and let a person play until it is closed; return the session.

    Args:
        config, seed, rules, tps, path: see `Session`.
        size: of the window.
        fps: pictures per second.
        clock: seconds.
        each: called once for every picture, before the keys are read.

    Raises:
        FlappyError: there is no display.
        ConfigError: a setting is out of range.
    """
    session = Session(config, seed, rules, tps, path)
    if path is not None and not path.parent.is_dir():
        raise FlappyError(f"{path}: there is no folder {path.parent}")
    with Window(size, "flappybird", HELP) as window:
        try:
            _run(session, window, size, fps, clock, each)
        finally:
            # However the play ends, by the window's button, Ctrl-C or SIGTERM, what was played is kept.
            session.quit()
    return session


def _run(
    session: Session, window: Window, size: Size, fps: int, clock: Callable[[], float], each: Callable[[Session], None]
) -> None:
    scene, pace = _scene(session, size), pygame.time.Clock()
    before = clock()
    while True:
        each(session)
        for event in pygame.event.get():
            if event.type == pygame.QUIT or (event.type == pygame.KEYDOWN and event.key in (pygame.K_ESCAPE, pygame.K_q)):
                return
            _handle(session, event)
        now = clock()
        session.pass_time(now - before)
        before = now
        if scene.course is not session.rollout.game.course:
            scene = _scene(session, size)
        _show(session, scene, window)
        pace.tick(fps)


def _handle(session: Session, event: Any) -> None:
    if event.type == pygame.KEYDOWN and event.key in (pygame.K_SPACE, pygame.K_UP):
        session.press() if session.phase is not Phase.OVER else None
    elif event.type == pygame.MOUSEBUTTONDOWN and event.button == 1:
        session.press()
    elif event.type == pygame.KEYDOWN and event.key == pygame.K_r:
        session.restart()
    elif event.type == pygame.KEYDOWN and event.key == pygame.K_n:
        session.next_seed()
    elif event.type == pygame.WINDOWFOCUSLOST:
        session.focus(False)


def _scene(session: Session, size: Size) -> Scene:
    return Scene(session.rollout.game.course, size, Overlay(thought=False), "you")


def _show(session: Session, scene: Scene, window: Window) -> None:
    game = session.rollout.game
    scene.paint(Moment(game.state, game.score, ended=session.rollout.outcome))
    best = session.best.get(session.seed)
    said = {
        Phase.WAITING: "Space, up or click to flap and begin",
        Phase.FLYING: "",
        Phase.PAUSED: "Paused: flap to go on",
        Phase.OVER: "R: again    N: next seed    Esc: leave",
    }[session.phase]
    if said:
        _say(scene, [said, *([f"best on seed {session.seed}: {best}"] if best is not None else [])])
    window.title(f"flappybird - seed {session.seed} - tick {game.tick}" + (f" - best {best}" if best is not None else ""))
    window.show(scene.canvas)


def _say(scene: Scene, lines: list[str]) -> None:
    left, top, width, height = scene.view.game
    size = max(height // 28, 10)
    at = top + height * 55 // 100
    for line in lines:
        label = write(line, size, WHITE)
        plate = pygame.Rect(0, 0, label.get_width() + 2 * size, label.get_height() + size // 2)
        plate.midtop = left + width // 2, at
        scene.cover(pygame.draw.rect(scene.canvas, PAPER, plate, border_radius=size // 2))
        scene.canvas.blit(label, (plate.left + size, plate.top + size // 4))
        at = plate.bottom + size // 3
