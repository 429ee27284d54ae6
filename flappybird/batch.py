"""Many games at once, on arrays: bit for bit the trajectories of `FlappyGame`.

The bird's flight is three array operations. Everything else (pipes entering, leaving and being passed) happens at ticks
that are known beforehand, so it is done for those few games only whose event is due. The pipes come from the same
course as everywhere; what this module leaves to others is words, rewards and files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flappybird.errors import ConfigError, GameOver, show
from flappybird.world.config import FlappyConfig
from flappybird.world.course import MAX_SEED, Course, Physics, check_seed, course_key, draw
from flappybird.world.game import FlappyGame, Outcome, Reason, State, check_ticks, crash
from flappybird.world.observation import Observation
from flappybird.world.units import UNITS

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

FEATURES = ("birdY", "velY", "x1", "gapY1", "gapHeight1", "x2", "gapY2", "gapHeight2")
"""The columns of an observation; world units, world units per tick for velY. 1 is the next pipe not yet passed, 2 the one
after it. x is the distance from the bird to the pipe's centre, negative once the centre is behind the bird. A pipe that is
not on screen yet stands where pipes appear, with its gap at 0."""

_NEVER = np.iinfo(np.int64).max


class FlappyBatch:
    """N games, each on a course of its own, stepped together.

    >>> batch = FlappyBatch(seeds=range(1024), max_ticks=300)
    >>> terminated, truncated = batch.step(np.zeros(1024, bool))

    A game that has ended stands still until it is reset. With `autoreset` its next step is the reset instead: the action
    is ignored and the game stands at tick 0 of its next course.

    Args:
        config: the world; None for the card's defaults.
        seeds: N whole numbers from 0 to 2**53 - 1, one course each.
        max_ticks: every game is truncated after this many ticks; None for no limit.
        autoreset: whether ended games begin anew by themselves: with True on the course seed + N, with a function on
            what it makes of the seeds of those games.

    Raises:
        ConfigError: seeds or limit are no such numbers.
    """

    def __init__(
        self,
        config: FlappyConfig | None = None,
        seeds: Sequence[int] | NDArray[Any] = (0,),
        *,
        max_ticks: int | None = None,
        autoreset: bool | Callable[[Ints], Ints] = False,
    ) -> None:
        self.config = config or FlappyConfig()
        self.physics = physics = Physics.of(self.config)
        self.max_ticks = check_ticks(max_ticks, "max_ticks")
        self.autoreset = autoreset
        self.seeds: Ints = _checked(seeds)
        """The course of each game; int64, (N,)."""
        size = self.num_games = len(self.seeds)

        self.y: NDArray[np.int32] = np.zeros(size, np.int32)
        """The birds' vertical positions in units, up is positive; int32, (N,)."""
        self.velocity: NDArray[np.int32] = np.zeros(size, np.int32)
        """The birds' vertical velocities in units per tick; int32, (N,)."""
        self.terminated: Bools = np.zeros(size, bool)
        """Whether each bird has crashed; (N,)."""
        self.truncated: Bools = np.zeros(size, bool)
        """Whether the tick limit has ended each game; (N,)."""
        self.scored: Bools = np.zeros(size, bool)
        """Whether each bird has passed a pipe in the last step; (N,)."""

        # Pipes count from the next one not yet passed. So many of them can touch the bird at once, and one more is seen.
        self._touchable = -(-(physics.pass_age - physics.enter_age) // physics.interval)
        self._known = max(self._touchable, 2)
        self._touches, self._waits = _timetable(physics)
        self._gap_y = np.zeros((self._known, size), np.int32)
        self._gap_height = np.zeros((self._known, size), np.int32)
        self._floor = np.zeros((self._known, size), np.int32)  # where a bird can live that touches the pipe
        self._ceiling = np.zeros((self._known, size), np.int32)
        self._number = np.zeros(size, np.int64)  # of the next pipe
        self._appeared = np.zeros(size, np.int64)  # when it did or will; like all times below, by this clock
        self._clock = 0
        self._start = np.zeros(size, np.int64)  # tick 0
        self._next_event = np.zeros(size, np.int64)
        self._deadline = np.zeros(size, np.int64)
        self._low = np.zeros(size, np.int32)  # where a living bird can be
        self._high = np.zeros(size, np.int32)
        self._key = np.zeros(size, np.uint64)
        self._heights = np.zeros(0, np.int32)  # of pipes 0, 1, …, as far as they have been asked for
        self._ended = np.zeros(0, np.intp)  # the games that have
        self.reset(seeds=self.seeds)

    def reset(self, games: Any = None, seeds: Sequence[int] | NDArray[Any] | None = None) -> None:
        """Put games back to tick 0.

        Args:
            games: which, as a mask (N,) or as indices; None for all.
            seeds: their courses; None for the next of each, seed + N.

        Raises:
            ConfigError: seeds are no seeds, or not as many as games.
        """
        which = np.arange(self.num_games) if games is None else np.asarray(games)
        which = np.flatnonzero(which) if which.dtype == bool else which.astype(np.intp)
        if seeds is None:
            self.seeds[which] = self._following(self.seeds[which])
        else:
            given = _checked(seeds)
            if len(given) != len(which):
                raise ConfigError(f"seeds: {len(given)} given for {len(which)} games")
            self.seeds[which] = given
        # New arrays: those that a step has handed out stay as they are.
        self.terminated, self.truncated, self.scored = self.terminated.copy(), self.truncated.copy(), self.scored.copy()
        self._begin(which)
        self._ended = np.flatnonzero(self.terminated | self.truncated)

    def step(self, taps: NDArray[Any]) -> tuple[Bools, Bools]:
        """Play one tick of every game and return (terminated, truncated), new arrays each time; bool, (N,).

        Args:
            taps: whether each bird flaps; bool or 0 and 1, (N,).

        Raises:
            ConfigError: `taps` has another shape or type.
            GameOver: all games have ended and nothing resets them.
        """
        taps = self._checked_taps(taps)
        ended = self._ended
        if len(ended) == self.num_games and not self.autoreset:
            raise GameOver(f"all {self.num_games} games have ended; reset them to play on")
        before = (self.y[ended], self.velocity[ended], self.terminated[ended]) if len(ended) else ()

        # The birds flap or fall, and move.
        self.velocity += self.physics.gravity
        np.copyto(self.velocity, self.physics.jump, where=taps)
        self.y += self.velocity

        # The clock moves the pipes.
        self._clock += 1
        self.scored = np.zeros(self.num_games, bool)
        due = np.flatnonzero(self._next_event == self._clock)
        if len(due):
            self._look_ahead(due)

        # Birds live within their bands.
        self.terminated = (self.y < self._low) | (self.y > self._high)
        self.truncated = np.zeros(self.num_games, bool)
        if self.max_ticks is not None:
            np.equal(self._deadline, self._clock, out=self.truncated)

        # Games that had ended before begin anew, or stand still.
        if len(ended):
            if self.autoreset:
                seeds = self.seeds[ended]
                self.seeds[ended] = self.autoreset(seeds) if callable(self.autoreset) else self._following(seeds)
                self._begin(ended)
            else:
                self._stand_still(ended, *before)
        self._ended = np.flatnonzero(self.terminated | self.truncated)
        if len(self._ended):
            self.truncated &= ~self.terminated
            self.scored &= ~self.terminated
            self._next_event[self._ended] = _NEVER
        return self.terminated, self.truncated

    def _following(self, seeds: Ints) -> Ints:
        return (seeds + self.num_games) % (MAX_SEED + 1)

    def _begin(self, games: NDArray[np.intp]) -> None:
        self.terminated[games] = self.truncated[games] = self.scored[games] = False
        self.y[games] = 0
        self.velocity[games] = 0
        self._start[games] = self._clock
        self._deadline[games] = _NEVER if self.max_ticks is None else self._clock + self.max_ticks
        self._key[games] = course_key(self.seeds[games].astype(np.uint64))
        self._number[games] = 0
        self._appeared[games] = self._clock + self.physics.first_spawn
        for ahead in range(self._known):
            self._draw(games, ahead)
        self._look_ahead(games)

    def _stand_still(self, games: NDArray[np.intp], y: Any, velocity: Any, terminated: Any) -> None:
        self.y[games], self.velocity[games], self.terminated[games] = y, velocity, terminated
        for times in (self._start, self._appeared, self._deadline):
            times[games] += times[games] != _NEVER

    def _look_ahead(self, games: NDArray[np.intp]) -> None:
        """Bring what changes at an event up to date: the next pipe, the bands, and when the next event is."""
        physics = self.physics
        age = self._clock - self._appeared.take(games)  # of the next pipe; negative before it appears
        passed = age == physics.pass_age
        if passed.any():
            self._next_pipe(games[passed])
            age[passed] -= physics.interval

        entry = age + _earliest(physics)  # of the timetable
        touches = self._touches.take(entry)
        low = np.where(touches, self._floor[0].take(games), physics.low)
        high = np.where(touches, self._ceiling[0].take(games), physics.high)
        for ahead in range(1, self._touchable):
            touches = self._touches.take(np.maximum(entry - ahead * physics.interval, 0))
            np.maximum(low, self._floor[ahead].take(games), out=low, where=touches)
            np.minimum(high, self._ceiling[ahead].take(games), out=high, where=touches)
        self._low[games] = low
        self._high[games] = high
        self._next_event[games] = self._waits.take(entry) + self._clock

    def _next_pipe(self, games: NDArray[np.intp]) -> None:
        self.scored[games] = True
        self._number[games] += 1
        self._appeared[games] += self.physics.interval
        for known in (self._gap_y, self._gap_height, self._floor, self._ceiling):
            for ahead in range(1, self._known):
                known[ahead - 1][games] = known[ahead].take(games)
        self._draw(games, self._known - 1)

    def _draw(self, games: NDArray[np.intp], ahead: int) -> None:
        """Draw the pipe that is `ahead` pipes after the next one."""
        physics = self.physics
        number = self._number.take(games) + ahead
        drawn = draw(self._key.take(games), number.view(np.uint64), physics.gap_choices)
        middle, height = physics.gap_y(drawn.view(np.int64)), self._height(number)
        half = height // 2 - physics.radius
        self._gap_y[ahead][games] = middle
        self._gap_height[ahead][games] = height
        self._floor[ahead][games] = np.maximum(middle - half, physics.low)
        self._ceiling[ahead][games] = np.minimum(middle + half, physics.high)

    def _height(self, number: Ints) -> NDArray[np.int32]:
        final = self.physics.easy_pipes + self.physics.ramp_pipes  # this pipe and all after it are alike
        number = np.minimum(number, final)
        needed = int(number.max(initial=0)) + 1
        if needed > len(self._heights):
            upto = min(2 * needed, final + 1)
            self._heights = np.array([self.physics.gap_height(n) for n in range(upto)], np.int32)
        return self._heights[number]

    def _checked_taps(self, taps: NDArray[Any]) -> Bools:
        taps = np.asarray(taps)
        if taps.shape != (self.num_games,) or taps.dtype.kind not in "bui":
            raise ConfigError(f"taps: {taps.dtype} of shape {taps.shape}; must be bool, or 0 and 1, of shape {(self.num_games,)}")
        return taps if taps.dtype == bool else taps.astype(bool)

    # --- what is to be seen ---------------------------------------------------------------------------------------

    @property
    def ticks(self) -> Ints:
        """Ticks played in each game; int64, (N,)."""
        return self._clock - self._start

    @property
    def scores(self) -> Ints:
        """Pipes passed in each game; int64, (N,). In the tick of a crash none is."""
        physics = self.physics
        age = self.ticks - self.terminated - physics.first_spawn - physics.pass_age
        return np.maximum(age // physics.interval + 1, 0)

    @property
    def gap_y(self) -> NDArray[np.int32]:
        """Centres of the gaps of the next pipes, on screen or not, in units; int32, (N,)."""
        centres: NDArray[np.int32] = self._gap_y[0]
        return centres

    @property
    def gap_height(self) -> NDArray[np.int32]:
        """Heights of the gaps of the next pipes, in units; int32, (N,)."""
        heights: NDArray[np.int32] = self._gap_height[0]
        return heights

    def observe(self) -> Floats:
        """Return what each player sees, as numbers: float32, (N, 8), see `FEATURES`."""
        physics = self.physics
        seen = np.empty((self.num_games, len(FEATURES)), np.float32)
        seen[:, 0] = self.y
        seen[:, 1] = self.velocity
        # 32 bits hold every age and x of a pipe on screen; one that is further away is clipped.
        away = physics.world_w - physics.bird_x
        age = np.maximum(self._clock - self._appeared, -1 - physics.interval).astype(np.int32)
        for pipe in range(2):
            seen[:, 3 * pipe + 2] = away - np.maximum(age, 0) * physics.speed
            seen[:, 3 * pipe + 3] = self._gap_y[pipe] * (age >= 0)
            seen[:, 3 * pipe + 4] = self._gap_height[pipe]
            age -= physics.interval
        seen /= UNITS
        return seen

    def state(self, game: int) -> State:
        """Return the state of one game: enough to go on with a `FlappyGame`."""
        return State(int(self._clock - self._start[game]), int(self.y[game]), int(self.velocity[game]))

    def outcome(self, game: int) -> Outcome | None:
        """Return how one game ended, None while it goes on."""
        if self.terminated[game]:
            state = self.state(game)
            return crash(Course(self.config, int(self.seeds[game])), state.tick, state.y)
        return Outcome(Reason.TICK_LIMIT, self.state(game).tick) if self.truncated[game] else None

    def observation(self, game: int) -> Observation:
        """Return what a player of one game sees, whole; `str()` of it is the text that a model reads."""
        twin = FlappyGame(self.config, int(self.seeds[game]), state=self.state(game))
        twin.outcome = self.outcome(game)
        return twin.observation()

    def __repr__(self) -> str:
        return f"FlappyBatch(num_games={self.num_games}, config={self.config.changed()}, ended={len(self._ended)})"


def _checked(seeds: Sequence[int] | NDArray[Any]) -> Ints:
    if isinstance(seeds, np.ndarray) and seeds.dtype.kind in "iu" and seeds.ndim == 1:
        wrong = (seeds < 0) | (seeds > MAX_SEED)
        if wrong.any():
            check_seed(int(seeds[wrong][0]))
        return seeds.astype(np.int64)
    try:
        return np.array([check_seed(seed) for seed in seeds], np.int64)
    except TypeError:
        raise ConfigError(f"seeds = {show(seeds)}: must be a list of whole numbers, one per game") from None


def _timetable(physics: Physics) -> tuple[Bools, Ints]:
    """Return, for each age of the next pipe from -`_earliest` on, whether it touches the bird and the ticks to the next event."""
    ages = np.arange(-_earliest(physics), physics.pass_age)
    touches = (ages >= physics.enter_age) & (ages <= physics.leave_age)
    later = np.arange(physics.pass_age // physics.interval + 1) * physics.interval
    changes = np.concatenate([later + physics.enter_age, later + physics.leave_age + 1, [physics.pass_age]])
    events = np.unique(changes[changes <= physics.pass_age])
    return touches, events[np.searchsorted(events, ages, side="right")] - ages


def _earliest(physics: Physics) -> int:
    """How many ticks before its appearance a pipe can be the next one, at the most."""
    return max(physics.first_spawn, physics.interval)
