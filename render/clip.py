"""What to draw of which episodes, how large and how fast: a `Clip`, as command lines ask for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from render.frames import TICKS_PER_SECOND, Pace, Track, frames
from render.grid import grid_frames
from render.layout import DEFAULT_SIZE, Size
from render.moment import Overlay
from render.scene import Frame

SAMPLES = 12
"""Pictures from which a clip's colours are learnt."""


class Timing(NamedTuple):
    """Which part of an episode is shown, and how fast. See `Pace.of`."""

    fps: float = TICKS_PER_SECOND
    speed: float = 1.0
    start: int | None = None
    stop: int | None = None
    hold: float = 0.0


class Clip:
    """Pictures to be: nothing is drawn before `frames` is asked for.

    Args:
        tracks: the episodes; with more than one, they are shown side by side, in step.
        size: width and height of a picture, in pixels.
        timing: which part is shown, and how fast.
        overlay: what is drawn beside the world.
        ghosts: other birds on the course of a single episode.

    Raises:
        ConfigError: a number is out of range.
    """

    def __init__(
        self,
        tracks: Sequence[Track],
        size: Size = DEFAULT_SIZE,
        timing: Timing = Timing(),
        overlay: Overlay = Overlay(),
        ghosts: Sequence[Track] = (),
    ) -> None:
        self.tracks, self.size, self.overlay, self.ghosts = tracks, size, overlay, ghosts
        self.pace = Pace.of(max(track.last for track in tracks), *timing)

    @property
    def fps(self) -> Fraction:
        """Pictures per second."""
        return self.pace.fps

    def frames(self) -> Iterator[Frame]:
        """Yield the pictures: (height, width, 3), uint8."""
        return self._at(self.pace)

    def samples(self) -> list[Frame]:
        """Return a few pictures from all over the clip, in which most of its colours occur."""
        ticks = self.pace.ticks
        some = sorted({ticks[index * (len(ticks) - 1) // (SAMPLES - 1)] for index in range(SAMPLES)})
        return list(self._at(Pace(tuple(some), self.pace.fps)))

    def _at(self, pace: Pace) -> Iterator[Frame]:
        if len(self.tracks) > 1:
            return grid_frames(self.tracks, pace, self.size, self.overlay)
        return frames(self.tracks[0], pace, self.size, self.overlay, self.ghosts)
