"""Many games at once: bit for bit the trajectories of `FlappyGame`, at the speed of C. The loop itself is in `kernel`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flappybird.errors import ConfigError, GameOver, show
from flappybird.kernel import FEATURES as FEATURES
from flappybird.kernel import GAME, PLAYING, TERMINATED, TRUNCATED, Bools, Floats, Ints, Seen, compiled
from flappybird.system.install import missing
from flappybird.world.config import FlappyConfig
from flappybird.world.course import MAX_TICK, Course, Physics
from flappybird.world.game import FlappyGame, Outcome, Reason, State, check_ticks, crash
from flappybird.world.observation import Observation
from flappybird.world.seeds import MAX_SEED, SEED_RANGES, check_seed

try:
    import numpy as np
    from numpy.typing import NDArray
except ImportError:
    raise missing("many games at once need numpy", "gymnasium") from None

_NONE = np.zeros(0, np.int64)
_STARTS, _STOPS = np.array([(seeds.start, seeds.stop) for seeds in SEED_RANGES]).T.copy()


class Pay(NamedTuple):
    """What a bird earns."""

    ticks: tuple[float, ...] = (0.0,)
    """For living through tick 1, 2, …; the last one for all that follow."""
    pipe: float = 0.0
    """For passing a pipe."""


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
        pay: what `rewards` counts; None for nothing.
        states: where each game begins the first time, such as another game's `state`; None for the beginning.

    Raises:
        ConfigError: seeds or limit are no such numbers, or there are not as many states as games.
        MissingPart: numba is not installed.
    """

    def __init__(
        self,
        config: FlappyConfig | None = None,
        seeds: Sequence[int] | NDArray[Any] = (0,),
        *,
        max_ticks: int | None = None,
        autoreset: bool | Callable[[Ints], Any] = False,
        pay: Pay | None = None,
        states: Sequence[State] | None = None,
    ) -> None:
        self.config = config or FlappyConfig()
        self.physics = Physics.of(self.config)
        self.max_ticks = check_ticks(max_ticks, "max_ticks")
        self.autoreset = autoreset
        self._worlds = np.array([self.physics], [(name, np.int64) for name in Physics._fields])  # numba takes it fastest so
        self._limit = MAX_TICK + 1 if self.max_ticks is None else self.max_ticks
        pay = pay or Pay()
        self._pay = np.array(pay.ticks, np.float64), float(pay.pipe)
        given = _checked(seeds)
        self.num_games = len(given)
        self._games = np.zeros(self.num_games, GAME)
        self._ends = np.zeros(self.num_games, np.uint8)
        self._seen = Seen.of(self.num_games)
        self._ended = 0  # how many games have
        compiled()
        self.reset(seeds=given, states=states)

    def reset(
        self,
        games: Any = None,
        seeds: Sequence[int] | NDArray[Any] | None = None,
        states: Sequence[State] | None = None,
    ) -> None:
        """Put games back to tick 0, or to given states.

        Args:
            games: which, as a mask (N,) or as indices; None for all.
            seeds: their courses; None for the next of each, seed + N (after the last seed of its range, see
                `seeds.SEED_RANGES`, comes its first).
            states: where they begin; None for the beginning. As in `FlappyGame`, nothing asks whether a bird can live there.

        Raises:
            ConfigError: there are no such games, seeds are no seeds, or seeds or states not as many as games.
        """
        which = self._checked_games(games)
        given = self._following(self._games["seed"][which]) if seeds is None else _checked(seeds)
        if len(given) != len(which):
            raise ConfigError(f"seeds: {len(given)} given for {len(which)} games")
        begin = np.zeros((len(which), len(State._fields)), np.int64)
        if states is not None:
            if len(states) != len(which):
                raise ConfigError(f"states: {len(states)} given for {len(which)} games")
            begin[:] = np.array(states, np.int64).reshape(begin.shape)
        self._seen = Seen.of(self.num_games)
        self._ended = compiled().reset(self._games, self._ends, which, self._worlds, given, begin, self._seen)

    def step(self, taps: NDArray[Any]) -> tuple[Bools, Bools]:
        """Play one tick of every game and return (terminated, truncated), new arrays each time; bool, (N,).

        Args:
            taps: whether each bird flaps; bool or 0 and 1, (N,).

        Raises:
            ConfigError: `taps` has another shape or type.
            GameOver: all games have ended and nothing resets them.
        """
        taps = self._checked_taps(taps)
        seeds = _NONE
        if self._ended and self.autoreset:
            seeds = self._next_seeds()
        elif self._ended == self.num_games:
            raise GameOver(f"all {self.num_games} games have ended; reset them to play on")
        seen = Seen.of(self.num_games)
        ended = compiled().step(self._games, self._ends, taps, self._worlds, self._limit, seeds, *self._pay, seen)
        if ended < 0:
            game = int(((taps != 0) & (taps != 1)).argmax())
            raise ConfigError(f"taps[{game}] = {taps[game]}: must be 0 (nothing) or 1 (flap)")
        self._seen, self._ended = seen, ended
        return seen.terminated, seen.truncated

    def _next_seeds(self) -> Ints:
        """Return the courses on which the games that have ended begin anew."""
        seeds = self._games["seed"][self._ends != PLAYING]
        if not callable(self.autoreset):
            return self._following(seeds)
        chosen = _checked(self.autoreset(seeds))
        if len(chosen) != len(seeds):
            raise ConfigError(f"autoreset: {len(chosen)} seeds given for {len(seeds)} games")
        return chosen

    def _following(self, seeds: Ints) -> Ints:
        place = np.searchsorted(_STOPS, seeds, side="right")
        start, stop = _STARTS[place], _STOPS[place]
        following: Ints = start + (seeds - start + self.num_games) % (stop - start)
        return following

    def _checked_games(self, games: Any) -> NDArray[np.intp]:
        if games is None:
            return np.arange(self.num_games)
        which = np.asarray(games)
        if which.dtype == bool and which.shape == (self.num_games,):
            return np.flatnonzero(which)
        if which.size == 0 and which.ndim == 1 and which.dtype != bool:
            return np.zeros(0, np.intp)
        if which.ndim == 1 and which.dtype.kind in "iu" and which.min() >= -self.num_games and which.max() < self.num_games:
            return which.astype(np.intp) % self.num_games
        raise ConfigError(f"games = {show(games)}: must be a mask of {self.num_games} games, or some of their numbers")

    def _checked_taps(self, taps: NDArray[Any]) -> Ints:
        taps = np.asarray(taps)
        if taps.shape != (self.num_games,) or taps.dtype.kind not in "bui":
            raise ConfigError(f"taps: {taps.dtype} of shape {taps.shape}; must be bool, or 0 and 1, of shape {(self.num_games,)}")
        # Arrays of one kind only, or numba compiles the loop once more: contiguous, of int64, and not read-only.
        return np.require(taps, np.int64, ("C", "W"))

    # --- what is to be seen ---------------------------------------------------------------------------------------

    @property
    def terminated(self) -> Bools:
        """Whether each bird has crashed; (N,). Like all arrays below but y and velocity new in each step and reset."""
        return self._seen.terminated

    @property
    def truncated(self) -> Bools:
        """Whether the tick limit has ended each game; (N,)."""
        return self._seen.truncated

    @property
    def scored(self) -> Bools:
        """Whether each bird has passed a pipe in the last step; (N,)."""
        return self._seen.scored

    @property
    def rewards(self) -> NDArray[np.float64]:
        """What each bird has earned in the last step, see `Pay`; float64, (N,)."""
        return self._seen.rewards

    @property
    def seeds(self) -> Ints:
        """The course of each game; int64, (N,)."""
        return self._seen.seeds

    @property
    def ticks(self) -> Ints:
        """Ticks played in each game; int64, (N,)."""
        return self._seen.ticks

    @property
    def scores(self) -> Ints:
        """Pipes passed in each game; int64, (N,). In the tick of a crash none is."""
        return self._seen.scores

    @property
    def y(self) -> NDArray[np.int32]:
        """The birds' vertical positions in units, up is positive; int32, (N,)."""
        return self._games["y"]

    @property
    def velocity(self) -> NDArray[np.int32]:
        """The birds' vertical velocities in units per tick; int32, (N,)."""
        return self._games["velocity"]

    @property
    def gap_y(self) -> NDArray[np.int32]:
        """Centres of the gaps of the next pipes, on screen or not, in units; int32, (N,)."""
        return self._games["gap_y1"]

    @property
    def gap_height(self) -> NDArray[np.int32]:
        """Heights of the gaps of the next pipes, in units; int32, (N,)."""
        return self._games["gap_height1"]

    def observe(self) -> Floats:
        """Return what each player sees, as numbers: float32, (N, 8), see `FEATURES`; the same array until the next step."""
        return self._seen.numbers

    def state(self, game: int) -> State:
        """Return the state of one game: enough to go on with a `FlappyGame`."""
        one = self._games[game]
        return State(int(one["tick"]), int(one["y"]), int(one["velocity"]))

    def outcome(self, game: int) -> Outcome | None:
        """Return how one game ended, None while it goes on."""
        if self._ends[game] == TERMINATED:
            state = self.state(game)
            return crash(Course(self.config, int(self._games["seed"][game])), state.tick, state.y)
        return Outcome(Reason.TICK_LIMIT, self.state(game).tick) if self._ends[game] == TRUNCATED else None

    def observation(self, game: int) -> Observation:
        """Return what a player of one game sees, whole; `str()` of it is the text that a model reads."""
        twin = FlappyGame(self.config, int(self._games["seed"][game]), state=self.state(game))
        twin.outcome = self.outcome(game)
        return twin.observation()

    def __repr__(self) -> str:
        return f"FlappyBatch(num_games={self.num_games}, config={self.config.changed()}, ended={self._ended})"


def _checked(seeds: Sequence[int] | NDArray[Any]) -> Ints:
    if isinstance(seeds, np.ndarray) and seeds.dtype.kind in "iu" and seeds.ndim == 1:
        if seeds.size and not 0 <= seeds.min() <= seeds.max() <= MAX_SEED:
            check_seed(int(seeds[(seeds < 0) | (seeds > MAX_SEED)][0]))
        return seeds.astype(np.int64)
    try:
        return np.array([check_seed(seed) for seed in seeds], np.int64)
    except TypeError:
        raise ConfigError(f"seeds = {show(seeds)}: must be a list of whole numbers, one per game") from None
