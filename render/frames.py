"""An episode → a stream of pictures, one at a time: nothing is kept, whatever the length.

Time is the episode's: a tick lasts 1/`TICKS_PER_SECOND` s at normal speed, and a clip of n ticks lasts exactly n of them. The
picture that is shown for a stretch of time is that of the tick at its end, so that the last picture is the last state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from flappybird.episodes.episode import Episode, replay
from flappybird.errors import ConfigError
from flappybird.world.game import Outcome, State
from render.lettering import clean, measure, shorten, write
from render.scene import DEFAULT_SIZE, FAINT, PAPER, Frame, Moment, Overlay, Scene, Size, check_size
from render.sdl import pygame

TICKS_PER_SECOND = 30
"""How many ticks one second shows at normal speed."""

MAX_FRAMES = 1_000_000
"""A clip of more pictures is refused: the speed or the rate is a slip of the pen."""


class Track:
    """An episode, replayed once and ready to be looked at tick by tick."""

    def __init__(self, episode: Episode) -> None:
        self.episode = episode
        played = replay(episode)
        self.course, self._states, self._turn_at, self._taps = played.course, played.states, played.turn_at, played.taps
        ending = episode.outcome
        # Where the turns stop before the game does, the file says why.
        self.outcome = played.outcome or Outcome(ending.reason, len(self._states) - 1)

    @property
    def last(self) -> int:
        """The last tick."""
        return len(self._states) - 1

    @property
    def name(self) -> str:
        """Who played."""
        return self.episode.player.name

    def state(self, tick: int) -> State:
        """Return the state at `tick`; after the last, the last."""
        return self._states[min(tick, self.last)]

    def score(self, tick: int) -> int:
        """Return how many pipes were passed by `tick`."""
        tick = min(tick, self.last)
        crashed = tick == self.last and self.outcome.reason.crashed
        return self.course.passed(tick - 1 if crashed else tick)

    def moment(self, tick: int, ghosts: Sequence[Track] = ()) -> Moment:
        """Return what is to be seen at `tick`: its state, and the turn that led there; after the last tick, the last."""
        tick = min(max(tick, 0), self.last)
        turn = self._turn_at[max(tick - 1, 0)] if self._turn_at else None
        known = self.episode.turns[turn] if turn is not None else None
        return Moment(
            state=self._states[tick],
            score=self.score(tick),
            thought=known.thought if known is not None else "",
            status=known.status if known and tick else Moment().status,
            tap=tick > 0 and self._taps[tick - 1],
            ended=self.outcome if tick == self.last else None,
            ghosts=tuple(ghost.state(tick) for ghost in ghosts),
        )

    def invalid_ticks(self) -> list[int]:
        """Return the ticks at which a reply that was not `ok` began to fly."""
        turns = self.episode.turns
        return [
            tick + 1
            for tick, turn in enumerate(self._turn_at)
            if turns[turn].status != "ok" and (tick == 0 or self._turn_at[tick - 1] != turn)
        ]

    def scene(self, size: Size = DEFAULT_SIZE, overlay: Overlay = Overlay(), ghosts: Sequence[Track] = ()) -> Scene:
        """Return the scene that this episode plays in."""
        return Scene(self.course, size, overlay, self.name, [ghost.name for ghost in ghosts])


class Pace(NamedTuple):
    """Which ticks are shown, and when.

    Args of `of`:
        last: the last tick there is.
        fps: pictures per second.
        speed: 2 is twice as fast as normal.
        start, stop: the clip shows the ticks after `start` up to `stop`; all if not given.
        hold: seconds that the last picture stays on.
    """

    ticks: tuple[int, ...] | range
    """The tick of each picture."""
    fps: Fraction

    @property
    def seconds(self) -> Fraction:
        """How long the clip lasts."""
        return len(self.ticks) / self.fps

    @classmethod
    def of(
        cls,
        last: int,
        fps: float | Fraction = TICKS_PER_SECOND,
        speed: float = 1.0,
        start: int | None = None,
        stop: int | None = None,
        hold: float = 0.0,
    ) -> Pace:
        """Return the pace of a clip. Raises ConfigError where a value is out of range."""
        for name, value, low, high in (("fps", fps, 1, 240), ("speed", speed, 0.01, 100), ("hold", hold, 0, 60)):
            if not low <= value <= high:
                raise ConfigError(f"{name} = {float(value):g}: must be from {low} to {high}")
        start = 0 if start is None else start
        stop = last if stop is None else min(stop, last)
        if not 0 <= start <= stop:
            raise ConfigError(f"from = {start}, to = {stop}: must be ticks in order, from 0 to {last}")
        rate = Fraction(fps).limit_denominator(1001)
        step = TICKS_PER_SECOND * Fraction(speed).limit_denominator(1000) / rate  # ticks per picture
        moving = max(round((stop - start) / step), 1)
        if moving > MAX_FRAMES:
            raise ConfigError(f"fps = {float(fps):g} at speed {speed:g}: {moving} pictures are more than {MAX_FRAMES}")
        shown = [min(start + math.ceil((picture + 1) * step), stop) for picture in range(moving)]
        shown[-1] = stop
        return cls((*shown, *[stop] * round(hold * rate)), rate)


def frames(
    track: Track, pace: Pace, size: Size = DEFAULT_SIZE, overlay: Overlay = Overlay(), ghosts: Sequence[Track] = ()
) -> Iterator[Frame]:
    """Yield the pictures of an episode at a pace, each freshly owned: (height, width, 3), uint8.

    Raises:
        ConfigError: a ghost's course is another one, or the size is none.
    """
    for ghost in ghosts:
        if (ghost.course.seed, ghost.course.config) != (track.course.seed, track.course.config):
            raise ConfigError(
                f"ghost {ghost.name}: its course is not that of {track.name} "
                f"(seed {ghost.course.seed} and {track.course.seed}); a ghost flies the same seed and config"
            )
    scene = track.scene(size, overlay, ghosts)
    return (scene.draw(track.moment(tick, ghosts)) for tick in pace.ticks)


def grid_frames(tracks: Sequence[Track], pace: Pace, size: Size = DEFAULT_SIZE, overlay: Overlay = Overlay()) -> Iterator[Frame]:
    """Yield pictures of several episodes side by side, in step, each frozen where it ended: (height, width, 3), uint8.

    Raises:
        ConfigError: the cells of so many episodes are too small at this size.
    """
    width, height = check_size(size)
    columns = next(n for n in range(1, len(tracks) + 1) if n * math.ceil(len(tracks) / n) >= len(tracks) and n * n >= len(tracks))
    if len(tracks) in (2, 3):
        columns = len(tracks) if width >= height else 1
    rows = math.ceil(len(tracks) / columns)
    title = max(min(height // rows // 12, 28), 12)
    cell = width // columns // 2 * 2, (height // rows - title) // 2 * 2
    check_size(cell, f"cell of {len(tracks)} episodes in size {width}x{height}")
    scenes = [track.scene(cell, overlay._replace(hud=False)) for track in tracks]

    page: Frame = np.empty((height, width, 3), np.uint8)
    page[:] = PAPER
    surface = pygame.image.frombuffer(page, size, "RGB")
    places = []
    for index, track in enumerate(tracks):
        row, column = divmod(index, columns)
        x, y = column * cell[0], row * (cell[1] + title)
        text = shorten(clean(f"{track.name}, seed {track.course.seed}"), title * 2 // 3, cell[0] - 8)
        surface.blit(write(text, title * 2 // 3, FAINT), (x + (cell[0] - measure(text, title * 2 // 3)) // 2, y + title // 6))
        places.append((x, y + title))

    def stream() -> Iterator[Frame]:
        done: set[int] = set()
        for tick in pace.ticks:
            for index, (track, scene, (x, y)) in enumerate(zip(tracks, scenes, places, strict=True)):
                if index not in done:
                    scene.paint(track.moment(tick))
                    page[y : y + cell[1], x : x + cell[0]] = scene.pixels
                    if tick >= track.last:
                        done.add(index)
            yield page.copy()

    return stream()
