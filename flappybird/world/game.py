"""The rules of one tick, from top to bottom.

`FlappyGame` is the only thing that moves the world. It knows nothing of models, text protocols, files or pictures.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from flappybird.errors import ConfigError, GameOver, show
from flappybird.world.config import FlappyConfig
from flappybird.world.course import MAX_TICK, Course, Physics
from flappybird.world.observation import Observation
from flappybird.world.units import to_float, to_text


class Reason(StrEnum):
    """Why a game or an episode ended."""

    FLOOR = "floor"
    """The bird touched the lower bound: terminated."""
    CEILING = "ceiling"
    """The bird touched the upper bound: terminated."""
    PIPE = "pipe"
    """The bird was outside the gap of a pipe it was passing: terminated."""
    TICK_LIMIT = "tick_limit"
    """The bird lived through the last tick allowed: truncated."""
    MALFORMED = "malformed"
    """Too many malformed replies in a row, where that ends an episode: truncated."""
    CONTEXT = "context"
    """The model's context or token budget was full before the game ended: truncated."""
    ABORTED = "aborted"
    """The player left before the game ended: truncated."""
    ERROR = "error"
    """A reply never came or something broke: not a result of the game."""

    @property
    def crashed(self) -> bool:
        """Whether the bird died."""
        return self in (Reason.FLOOR, Reason.CEILING, Reason.PIPE)

    @property
    def words(self) -> str:
        """What ended it, as in a list: `tick limit`."""
        return self.value.replace("_", " ")

    @property
    def deed(self) -> str:
        """What happened, to go on a sentence whose subject is the flight: `reached the tick limit`."""
        return _WORDS[self].deed

    @property
    def caption(self) -> str:
        """What happened, as a line of its own in a picture: `Survived to the tick limit`."""
        return _WORDS[self].caption


class _Words(NamedTuple):
    deed: str
    caption: str


_WORDS = {
    Reason.FLOOR: _Words("hit the floor", "Crashed into the floor"),
    Reason.CEILING: _Words("hit the ceiling", "Crashed into the ceiling"),
    Reason.PIPE: _Words("hit a pipe", "Crashed into a pipe"),
    Reason.TICK_LIMIT: _Words("reached the tick limit", "Survived to the tick limit"),
    Reason.MALFORMED: _Words("stopped: malformed replies", "Stopped: too many invalid replies"),
    Reason.CONTEXT: _Words("ran out of context or tokens", "Stopped: the model's context is full"),
    Reason.ABORTED: _Words("stopped early", "Aborted by the player"),
    Reason.ERROR: _Words("errored", "Stopped by an error"),
}


def tally(counts: Mapping[str, int]) -> str:
    """Return how often games ended for which reason, in the order of `counts`.

    >>> tally({"tick_limit": 2, "pipe": 1})
    '2 tick limit, 1 pipe'
    """
    return ", ".join(f"{count} {Reason(reason).words}" for reason, count in counts.items())


class Outcome(NamedTuple):
    """How a game ended."""

    reason: Reason
    tick: int
    """The tick in which it ended; also the number of ticks played."""
    pipe: int | None = None
    """Number (from 0) of the pipe that was hit, where one was."""

    def __str__(self) -> str:
        where = self.reason.words if self.pipe is None else f"pipe {self.pipe}"
        return f"{where} at tick {self.tick}"

    @property
    def caption(self) -> str:
        """The ending as a line in a picture: `Crashed into pipe 4, tick 152`."""
        what = self.reason.caption if self.pipe is None else f"Crashed into pipe {self.pipe}"
        return f"{what}, tick {self.tick}"


class State(NamedTuple):
    """All that a course and an action sequence leave behind: the tick, the bird's y and velocity in units."""

    tick: int = 0
    y: int = 0
    velocity: int = 0

    def then(self, tap: bool, physics: Physics) -> State:
        """Return the state one tick later, whatever the bird meets there."""
        return State(self.tick + 1, *move(self.y, self.velocity, tap, physics.jump, physics.gravity))


def move(y: int, velocity: int, tap: bool, jump: int, gravity: int) -> tuple[int, int]:
    """Return the bird's y and velocity after one tick: it flaps or falls, and moves.

    y, in units, and velocity, jump and gravity, in units per tick, up is positive. Every engine moves birds by this.
    """
    velocity = jump if tap else velocity + gravity
    return y + velocity, velocity


class FlappyGame:
    """One game, from its first tick to a crash or its tick limit.

    >>> game = FlappyGame(seed=7)
    >>> game.step(tap=True)
    >>> game
    FlappyGame(seed=7, tick=1, y=1.60, velocity=1.60, score=0)

    Args:
        config: the world; None for the card's defaults.
        seed: whole number from 0 to 2**53 - 1; the same seed gives the same pipes everywhere.
        max_ticks: the game is truncated after this many ticks; None for no limit.
        state: where to start from, such as another game's `state`; the beginning if not given.

    Raises:
        ConfigError: seed or limit are no such numbers.
    """

    __slots__ = (
        "_band",
        "_gravity",
        "_high",
        "_jump",
        "_low",
        "_next_event",
        "_velocity",
        "_y",
        "course",
        "max_ticks",
        "outcome",
        "tick",
    )

    def __init__(
        self, config: FlappyConfig | None = None, seed: int = 0, *, max_ticks: int | None = None, state: State = State()
    ) -> None:
        self.course = Course(config or FlappyConfig(), seed)
        self.max_ticks = check_ticks(max_ticks, "max_ticks")
        self.outcome: Outcome | None = None
        """How the game ended, None while it goes on."""
        self.tick, self._y, self._velocity = state
        """Ticks played so far."""
        self._jump, self._gravity = self.course.physics.jump, self.course.physics.gravity
        self._next_event = 0
        self._look_ahead(self.tick)

    def step(self, tap: bool) -> Outcome | None:
        """Play one tick, with a TAP or without, and return how the game ended, None while it goes on.

        Raises:
            GameOver: the game has ended already.
        """
        if self.outcome is not None:
            raise GameOver(f"the game has ended ({self.outcome}); make a new one to play on")

        # The bird flaps or falls, and moves.
        y, self._velocity = move(self._y, self._velocity, tap, self._jump, self._gravity)
        self._y = y

        # Pipes move, leave, appear: where each stands follows from its age, so the clock is all there is to move.
        tick = self.tick = self.tick + 1
        if tick == self._next_event:
            self._look_ahead(tick)

        # It lives within its band: off the floor and the ceiling and inside the gap of every pipe it is passing.
        if self._low <= y <= self._high:
            return None
        self.outcome = self._ending(tick, y)
        return self.outcome

    def _look_ahead(self, tick: int) -> None:
        """Note the band of `tick` and the next tick in which it changes or the game is over."""
        self._low, self._high, self._next_event = self.course.band(tick)
        if tick == self.max_ticks:
            self._low, self._high = 1, 0  # no bird goes on past the limit: `_ending` says how the game ended
        elif self.max_ticks is not None and tick < self.max_ticks:
            self._next_event = min(self._next_event, self.max_ticks)

    def _ending(self, tick: int, y: int) -> Outcome:
        low, high, _ = self.course.band(tick)
        return Outcome(Reason.TICK_LIMIT, tick) if low <= y <= high else crash(self.course, tick, y)

    @property
    def config(self) -> FlappyConfig:
        """The world."""
        return self.course.config

    @property
    def seed(self) -> int:
        """The seed of the course."""
        return self.course.seed

    @property
    def state(self) -> State:
        """Tick, y and velocity in units: enough to go on from here on the same course."""
        return State(self.tick, self._y, self._velocity)

    @property
    def y(self) -> float:
        """The bird's vertical position in world units, 0 at mid height, up is positive."""
        return to_float(self._y)

    @property
    def velocity(self) -> float:
        """The bird's vertical velocity in world units per tick, up is positive."""
        return to_float(self._velocity)

    @property
    def score(self) -> int:
        """Pipes passed. In the tick of a crash none is."""
        return passed_by(self.course, self.tick, self.terminated)

    @property
    def terminated(self) -> bool:
        """Whether the bird crashed."""
        return self.outcome is not None and self.outcome.reason.crashed

    @property
    def truncated(self) -> bool:
        """Whether the tick limit ended the game."""
        return self.outcome is not None and self.outcome.reason is Reason.TICK_LIMIT

    def observation(self) -> Observation:
        """Return what a player sees now; `str()` of it is the text that a model reads."""
        return look(self.course, self.state, self.score)

    def __repr__(self) -> str:
        ended = f", outcome={str(self.outcome)!r}" if self.outcome else ""
        return (
            f"FlappyGame(seed={self.seed}, tick={self.tick}, y={to_text(self._y)}, "
            f"velocity={to_text(self._velocity)}, score={self.score}{ended})"
        )


def passed_by(course: Course, tick: int, crashed: bool) -> int:
    """Return how many pipes a bird has passed by `tick`; in the tick of a crash it passes none."""
    return course.passed(tick - 1 if crashed else tick)


def look(course: Course, state: State, score: int) -> Observation:
    """Return what a player sees of `course` in `state`, having passed `score` pipes."""
    physics = course.physics
    return Observation(
        tick=state.tick,
        y=state.y,
        x=physics.bird_x,
        velocity=state.velocity,
        gap_height=physics.gap_height(score),
        radius=physics.radius,
        pipes=tuple([(pipe.x, pipe.gap_y) for pipe in course.visible(state.tick)]),
        score=score,
    )


def crash(course: Course, tick: int, y: int) -> Outcome:
    """Return what a bird hit that is at `y` at `tick`, outside the band in which it could live."""
    physics = course.physics
    if y < physics.low:
        return Outcome(Reason.FLOOR, tick)
    if y > physics.high:
        return Outcome(Reason.CEILING, tick)
    for number in course.touching(tick):
        gap = course.gap(number)
        if 2 * (abs(y - gap.y) + physics.radius) > gap.height:
            return Outcome(Reason.PIPE, tick, number)
    raise AssertionError("a bird outside its band touches something")


def check_ticks(ticks: object, name: str) -> int | None:
    """Return `ticks`. Raises ConfigError where it is neither None nor a whole number from 1 to `MAX_TICK`."""
    if ticks is None or (isinstance(ticks, int) and not isinstance(ticks, bool) and 1 <= ticks <= MAX_TICK):
        return ticks
    raise ConfigError(f"{name} = {show(ticks)}: must be a whole number of ticks from 1 to {MAX_TICK}")
