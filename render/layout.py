"""Where things stand in a picture: the world, and the room for words beside or below it.

`View` is the only way from world to screen.
"""

from __future__ import annotations

from typing import NamedTuple

from flappybird.errors import ConfigError, show
from flappybird.world.config import FlappyConfig
from flappybird.world.units import UNITS
from render.lettering import line_height

Size = tuple[int, int]
"""Width and height in pixels."""

Box = tuple[int, int, int, int]
"""Left, top, width and height in pixels."""

DEFAULT_SIZE: Size = (576, 480)
SMALLEST, LARGEST = 64, 4096
"""Limits of a picture's width and height in pixels."""

FOOT, HEAD = 0.085, 0.015
"""Ground below the floor and roof above the ceiling that are shown, as shares of the world's height."""


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


class Band(NamedTuple):
    """The band below the world that holds the thought where there is no room for a panel."""

    lines: int
    text: int
    """Size of its letters, in pixels."""

    @classmethod
    def of(cls, height: int) -> Band:
        """Return the band of a picture of `height` pixels."""
        return cls(3 if height >= 300 else 2 if height >= 110 else 1, max(round(height / 36), 9))

    @property
    def pad(self) -> int:
        """Pixels between its edge and the letters."""
        return max(self.text // 3, 1)

    @property
    def height(self) -> int:
        """Its height in pixels."""
        return self.lines * line_height(self.text) + 2 * self.pad


class View(NamedTuple):
    """World → screen: one scale for both axes, so that shapes keep their aspect."""

    scale: float
    """Pixels per world unit."""
    left: float
    """Screen x of world x = 0."""
    middle: float
    """Screen y of world y = 0."""
    game: Box
    """The world, with roof and ground."""
    panel: Box | None = None
    """Room for all that is known of the turn, beside or below the world; None where there is no room to speak of."""
    band: Box | None = None
    """Room for the thought alone, below the world; None where it has a panel, or is not shown."""

    @classmethod
    def of(cls, config: FlappyConfig, size: Size, panel: bool = False, band: bool = False) -> View:
        """Return the largest view of `config`'s world in a picture of `size`.

        Args:
            config, size: the world; width and height in pixels.
            panel: whether there are words for a panel, if one fits.
            band: whether there has to be room for a thought, panel or not.
        """
        (width, height), tall = size, config.world_h * (1 + FOOT + HEAD)
        scale = min(width / config.world_w, height / tall)
        beside, below = width - round(config.world_w * scale), height - round(tall * scale)
        if panel and beside >= max(width * 0.22, 150):
            return cls._at(config, scale, (0, 0, width - beside, height), panel=(width - beside, 0, beside, height))
        if panel and below >= max(height * 0.2, 90):
            return cls._at(config, scale, (0, 0, width, height - below), panel=(0, height - below, width, below))
        foot = max(Band.of(height).height, below) if band else 0
        scale = min(width / config.world_w, (height - foot) / tall)
        wide = round(config.world_w * scale)
        room = (width - wide) // 2, 0, wide, height - foot
        return cls._at(config, scale, room, band=(0, height - foot, width, foot) if foot else None)

    @classmethod
    def _at(cls, config: FlappyConfig, scale: float, game: Box, panel: Box | None = None, band: Box | None = None) -> View:
        left, top, _, height = game
        # Height that the world leaves over goes to the roof, a third, and to the ground.
        spare = height - config.world_h * (1 + FOOT + HEAD) * scale
        return cls(scale, left, top + spare / 3 + config.world_h * (0.5 + HEAD) * scale, game, panel, band)

    def x(self, units: float) -> int:
        """Return the screen x (pixels) of a world x (units)."""
        return round(self.left + units * self.scale / UNITS)

    def y(self, units: float) -> int:
        """Return the screen y (pixels) of a world y (units); up in the world is up on the screen."""
        return round(self.middle - units * self.scale / UNITS)

    def length(self, units: float) -> int:
        """Return how many pixels a length (units) is, at least one."""
        return max(round(units * self.scale / UNITS), 1)
