"""What can be seen of a game at one tick, as numbers and as the card's text, and back.

The text *is* the state: it is exact, so reading it gives the numbers it was written from.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from flappybird.world.config import MAX_VISIBLE_PIPES
from flappybird.world.units import from_text, to_text


class Observation(NamedTuple):
    """One tick as a player sees it; lengths in units. `str()` gives the card's `<FLAPPY>` block."""

    tick: int
    y: int
    """The bird's y."""
    x: int
    velocity: int
    """Vertical velocity per tick, up is positive."""
    gap_height: int
    """Gap height of the next pipe not yet passed; with none on screen, of the next to appear."""
    radius: int
    pipes: tuple[tuple[int, int], ...]
    """(x, gap y) of every pipe on screen, left to right, passed ones too."""
    score: int
    """Pipes passed; also the number of the next pipe, counted from 0."""

    def __str__(self) -> str:
        pipes = ",".join([f"({to_text(x)},{to_text(gap_y)})" for x, gap_y in self.pipes])
        return (
            f"<FLAPPY id={self.tick}>\n"
            "<OBS>\n"
            f"birdY:{to_text(self.y)}\n"
            f"birdX:{to_text(self.x)}\n"
            f"velY:{to_text(self.velocity)}\n"
            f"gapHeight:{to_text(self.gap_height)}\n"
            f"birdRadius:{to_text(self.radius)}\n"
            f"pipes:[{pipes}]\n"
            f"score:{self.score}\n"
            "</OBS>\n"
            "</FLAPPY>"
        )


_NUMBER = r"(-?\d{1,9}(?:\.\d{1,4})?)"
_BLOCK = re.compile(
    r"<FLAPPY id=(\d{1,12})>\s*<OBS>\s*"
    rf"birdY:{_NUMBER}\s+birdX:{_NUMBER}\s+velY:{_NUMBER}\s+gapHeight:{_NUMBER}\s+birdRadius:{_NUMBER}\s+"
    r"pipes:\[([-\d.,() ]*)\]\s+score:(\d{1,9})\s*"
    r"(?:(?:nextGap|trail):[^\n<]*\n\s*)*"  # what variants of the block add, see `protocol.observe`
    r"</OBS>"
)
_PIPE = re.compile(rf"\(\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)")


def read_observation(text: str) -> Observation | None:
    """Return the last observation written in `text`, None where there is none; one of more than `MAX_VISIBLE_PIPES` is none."""
    # Searched from the last opening on, so that a long history costs nothing.
    for start in reversed([found.start() for found in re.finditer("<FLAPPY id=", text)]):
        found = _BLOCK.match(text, start)
        if found and found[7].count("(") <= MAX_VISIBLE_PIPES:
            tick, y, x, velocity, gap_height, radius, pipes, score = found.groups()
            return Observation(
                tick=int(tick),
                y=from_text(y),
                x=from_text(x),
                velocity=from_text(velocity),
                gap_height=from_text(gap_height),
                radius=from_text(radius),
                pipes=tuple((from_text(px), from_text(gap_y)) for px, gap_y in _PIPE.findall(pipes)),
                score=int(score),
            )
    return None
