"""Turn rules: ticks per reply, latency, history."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, model_serializer

from flappybird.world.config import Strict

ObservationKind = Literal["card", "signed", "ascii", "image", "text+image"]

MAX_TURNS = 300
"""The limit on ticks where none is given: the card's."""

MAX_PLAN = 100
"""The most ticks that one reply can plan."""

TICKS_PER_SECOND = 30.0
"""The pace of real time where none is given: that of the videos."""


def _pace(value: Any) -> Any:
    return {True: TICKS_PER_SECOND, False: 0.0}[value] if isinstance(value, bool) else value


class Rules(Strict):
    """How replies and ticks meet, and what a player sees. The defaults are the card's: one reply, one tick, the game waits,
    and the whole history is there.

    Raises:
        ConfigError: a field is unknown, of the wrong type or out of range.
    """

    FIELD: ClassVar[str] = "a rule"

    max_turns: Annotated[int, Field(ge=1, le=1_000_000)] = MAX_TURNS
    """The limit on ticks: exactly this many can happen."""
    ticks_per_turn: Annotated[int, Field(ge=1, le=MAX_PLAN)] = 1
    """Ticks that one reply plans."""
    latency_ticks: Annotated[int, Field(ge=0, le=100)] = 0
    """An action lands this many ticks late."""
    stop_on_malformed: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """The episode ends after this many invalid replies in a row; 0 for never."""
    realtime: Annotated[float, BeforeValidator(_pace), Field(ge=0, le=1_000)] = 0.0
    """Ticks that pass in each second that a reply takes; True for `TICKS_PER_SECOND`, 0 where the game waits."""
    observation: ObservationKind = "card"
    """What a player sees of a tick, see `observe`."""
    history_turns: Annotated[int, Field(ge=-1, le=1_000_000)] = 0
    """A model sees the last k turns, up to 2k - 1 (see `first_kept`); 0 for all, `NO_HISTORY` for none:
    the system prompt and the present observation, which says all there is to know."""

    LATER: ClassVar[tuple[str, ...]] = ("realtime", "observation", "history_turns")
    """Rules that came after the first version; at their defaults they are not written down, so that files stay as they were."""

    @model_serializer(mode="wrap")
    def _lean(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = dump(self)
        for name in self.LATER:
            if name in fields and fields[name] == type(self).model_fields[name].default:
                del fields[name]
        return fields

    @property
    def trail(self) -> bool:
        """Whether several ticks can pass between two observations, so that these show what happened in between."""
        return self.ticks_per_turn > 1 or self.realtime > 0

    def waited(self, seconds: float) -> int:
        """Return how many ticks pass while a reply takes `seconds`."""
        return int(seconds * self.realtime)
