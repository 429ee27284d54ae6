"""One rollout in progress: replies in, observations out.

A `Rollout` carries replies to a `FlappyGame` and writes down every turn. All it knows is one plain JSON object, its
`record`, so that a rollout can be stored, sent or resumed at any moment, and an episode is made from it at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from flappybird.config import FlappyConfig, one_line
from flappybird.errors import ConfigError, GameOver, unknown_name
from flappybird.game import FlappyGame, Outcome, Reason, State
from flappybird.observation import Observation
from flappybird.text import MAX_PLAN, Reply, Status, content_text, read_reply

Action = Literal["TAP", "NOOP"]
View = Literal["card", "signed", "ascii", "image", "text+image"]

TICKS_PER_SECOND = 30.0
"""The pace of real time where none is given: that of the videos."""


def _pace(value: Any) -> Any:
    return {True: TICKS_PER_SECOND, False: 0.0}[value] if isinstance(value, bool) else value


class Rules(BaseModel):
    """How replies and ticks meet, and what a player sees. The defaults are the card's: one reply, one tick, the game waits,
    and the whole history is there.

    Raises:
        ConfigError: a field is unknown, of the wrong type or out of range.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    max_turns: Annotated[int, Field(ge=1, le=1_000_000)] = 300
    """The limit on ticks: exactly so many can happen."""
    ticks_per_turn: Annotated[int, Field(ge=1, le=MAX_PLAN)] = 1
    """Ticks that one reply plans."""
    latency_ticks: Annotated[int, Field(ge=0, le=100)] = 0
    """An action lands so many ticks late."""
    stop_on_malformed: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """The episode ends after so many invalid replies in a row; 0 for never."""
    realtime: Annotated[float, BeforeValidator(_pace), Field(ge=0, le=1_000)] = 0.0
    """Ticks that pass in each second that a reply takes; True for `TICKS_PER_SECOND`, 0 where the game waits."""
    observation: View = "card"
    """What a player sees of a tick, see `views`."""
    history_turns: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """A model sees the last so many turns, up to twice as many less one (see `first_kept`); 0 for all."""

    LATER: ClassVar[tuple[str, ...]] = ("realtime", "observation", "history_turns")
    """Rules that came after the first version; at their defaults they are not written down, so that files stay as they were."""

    @model_serializer(mode="wrap")
    def _lean(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = dump(self)
        for name in self.LATER:
            if name in fields and fields[name] == type(self).model_fields[name].default:
                del fields[name]
        return fields

    def __init__(self, **fields: Any) -> None:
        for name in fields:
            if name not in type(self).model_fields:
                raise ConfigError(unknown_name(name, type(self).model_fields, "a rule"))
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise ConfigError(one_line(error)) from None

    @property
    def trail(self) -> bool:
        """Whether several ticks can pass between two observations, so that these show what happened in between."""
        return self.ticks_per_turn > 1 or self.realtime > 0

    def waited(self, seconds: float) -> int:
        """Return how many ticks pass while a reply takes `seconds`."""
        return int(seconds * self.realtime)


def first_kept(turns: int, history_turns: int) -> int:
    """Return the first turn that a model still sees when `turns` are over: a block window over the last of them.

    The window grows from k = `history_turns` to 2k - 1 turns and is then cut back to k. So between two cuts a conversation
    only grows at its end: what a provider has cached of it stays valid, and a trainer makes one sample of it.

    >>> [first_kept(turns, 3) for turns in range(10)]
    [0, 0, 0, 0, 0, 0, 3, 3, 3, 6]
    """
    return max(turns // history_turns - 1, 0) * history_turns if history_turns else 0


class Rollout:
    """A game that is played by replies.

    >>> rollout = Rollout(FlappyConfig(), seed=7, rules=Rules())
    >>> rollout.take("<THINK>up</THINK><ACTIONS>[TAP]</ACTIONS>")
    >>> rollout.game
    FlappyGame(seed=7, tick=1, y=1.60, velocity=1.60, score=0)

    Args:
        config: the world.
        seed: the course.
        rules: how replies and ticks meet.
        record: the record of a rollout in progress to go on with; a new one if not given.
    """

    def __init__(self, config: FlappyConfig, seed: int, rules: Rules, record: dict[str, Any] | None = None) -> None:
        self.rules = rules
        if record is None:
            record = {
                "tick": 0,
                "y": 0,
                "velocity": 0,
                "ended": None,
                "pending": [False] * rules.latency_ticks,
                "bad_in_a_row": 0,
                "turns": [],
            }
        self.record = record
        """All that has happened, as plain JSON."""
        self.game = FlappyGame(
            config, seed, max_ticks=rules.max_turns, state=State(record["tick"], record["y"], record["velocity"])
        )
        self.trail: list[State] = [State(*state) for state in record.get("trail", ())] or [self.game.state]
        """Every state since the last observation, the first and the last included."""
        if record["ended"]:
            self.game.outcome = self.outcome

    @property
    def outcome(self) -> Outcome | None:
        """How the rollout ended, None while it goes on."""
        ended = self.record["ended"]
        return Outcome(Reason(ended["reason"]), ended["tick"], ended["pipe"]) if ended else None

    @property
    def turns(self) -> list[dict[str, Any]]:
        """What happened so far, one entry per turn, in the fields of `episode.Turn`."""
        turns: list[dict[str, Any]] = self.record["turns"]
        return turns

    def observation(self) -> Observation:
        """Return what the player sees now."""
        return self.game.observation()

    def take(self, text: Any, reasoning: Any = None, *, cut: bool = False, waited: int = 0, **facts: Any) -> Reply:
        """Read a reply, fly its ticks, write the turn down.

        Args:
            text: the reply's content, see `text.read_reply`.
            reasoning: what came in a separate reasoning field.
            cut: whether the model ran into its token limit.
            waited: ticks that passed, as no-op, before the reply came.
            facts: what else is known of the turn: `prompt_tokens`, `completion_tokens`, `seconds`.

        Raises:
            GameOver: the rollout has ended.
        """
        reply = read_reply(text, reasoning, cut=cut, ticks=self.rules.ticks_per_turn)
        said = {"reply": content_text(text), "reasoning": content_text(reasoning), "cut": cut, "ignored": reply.ignored}
        self._turn(reply.actions, reply.status, waited, **said, **facts)
        return reply

    def fly(self, taps: Sequence[bool], status: Status = Status.OK, *, waited: int = 0, **facts: Any) -> None:
        """Fly the ticks of one turn and write it down: of a key press, of a number, or of a reply that was read before."""
        self._turn(tuple(taps), status, waited, **facts)

    def end(self, reason: Reason) -> None:
        """End a rollout whose game goes on: aborted, an error."""
        if self.record["ended"] is None:
            self._write_outcome(Outcome(reason, self.game.tick))

    def _turn(self, taps: tuple[bool, ...], status: Status, waited: int, **facts: Any) -> None:
        if self.record["ended"]:
            raise GameOver(f"the rollout has ended ({self.outcome})")
        turn = {"tick": self.game.tick, "actions": ["TAP" if tap else "NOOP" for tap in taps], "status": status.value}
        turn.update((name, value) for name, value in (*facts.items(), ("waited", waited)) if value or name == "reply")
        self.turns.append(turn)

        self.trail = [self.game.state]
        for tap in chain(repeat(False, waited), taps):
            self._tick(tap)
            if self.game.outcome is not None:
                break
        self.record["tick"], self.record["y"], self.record["velocity"] = self.game.state
        if self.rules.trail:
            self.record["trail"] = [list(state) for state in self.trail]

        bad = self.record["bad_in_a_row"] = 0 if status is Status.OK else self.record["bad_in_a_row"] + 1
        if self.game.outcome is not None:
            self._write_outcome(self.game.outcome)
        elif 0 < self.rules.stop_on_malformed <= bad:
            self._write_outcome(Outcome(Reason.MALFORMED, self.game.tick))

    def _tick(self, tap: bool) -> None:
        # With latency, an action waits in line behind those that have not landed yet.
        pending = self.record["pending"]
        pending.append(tap)
        self.game.step(pending.pop(0))
        self.trail.append(self.game.state)

    def _write_outcome(self, outcome: Outcome) -> None:
        self.record["ended"] = {"reason": outcome.reason.value, "tick": outcome.tick, "pipe": outcome.pipe}
        self.game.outcome = outcome
