"""What is to be seen at one tick, and what of it is to be drawn."""

from __future__ import annotations

from typing import NamedTuple

from flappybird.errors import ConfigError, show, unknown_name
from flappybird.protocol.reply import Status
from flappybird.world.game import Outcome, State


class Overlay(NamedTuple):
    """What is drawn beside the world. Each can be switched off."""

    score: bool = True
    """Pipes passed, large, at the top."""
    hud: bool = True
    """Tick, y, velocity, gap; seed and player."""
    thought: bool = True
    """What the player thought in this turn: beside or below the world, never over it."""
    status: bool = True
    """A mark at turns whose reply was not `ok`."""
    ending: bool = True
    """In the last picture, why the episode ended."""
    hitbox: bool = False
    """A ring around the circle that collides."""

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
    before: State | None = None
    """The state one tick earlier, where the picture lies between the two."""
    ghosts_before: tuple[State, ...] = ()
    """The same of each ghost."""
    share: float = 1.0
    """How much of the tick has passed, 0 to 1; less than 1 only with `before`."""

    @property
    def time(self) -> float:
        """The tick that is shown, with its fraction."""
        return self.state.tick - (1 - self.share)

    def height(self, ghost: int | None = None) -> float:
        """Return the y (units) at which the bird, or a ghost, is seen."""
        state = self.state if ghost is None else self.ghosts[ghost]
        earlier = self.before if ghost is None else self.ghosts_before[ghost] if self.ghosts_before else None
        return state.y if earlier is None else earlier.y + (state.y - earlier.y) * self.share
