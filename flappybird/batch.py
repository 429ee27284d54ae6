"""Many games at once: bit for bit the trajectories of `FlappyGame`, at the speed of C.

`_step` below is `FlappyGame.step` once more, for N games and with what a learner wants of each: observation, reward, ends.
It is plain Python; numba compiles it when the first batch is made, together with the very functions that move a single bird
and draw a single course. What this module leaves to others is words and files.
"""

from __future__ import annotations

import os
import stat
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from flappybird.errors import ConfigError, GameOver, MissingPart, show
from flappybird.system.install import missing
from flappybird.world import course, game, units
from flappybird.world.config import FlappyConfig
from flappybird.world.course import MAX_SEED, MAX_TICK, SEED_RANGES, Course, Physics, check_seed, course_key, draw, mix64
from flappybird.world.game import FlappyGame, Outcome, Reason, State, check_ticks, crash, move
from flappybird.world.observation import Observation
from flappybird.world.units import UNITS

try:
    import numpy as np
    from numpy.typing import NDArray
except ImportError:
    raise missing("many games at once need numpy", "gymnasium") from None

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float32]

FEATURES = ("birdY", "velY", "x1", "gapY1", "gapHeight1", "x2", "gapY2", "gapHeight2")
"""The columns of an observation; world units, world units per tick for velY. 1 is the next pipe not yet passed, 2 the one
after it. x is the distance from the bird to the pipe's centre, negative once the centre is behind the bird. A pipe that is
not on screen yet stands where pipes appear, with its gap at 0."""


# --- the loop: plain Python that numba compiles -------------------------------------------------------------------

GAME = np.dtype(
    [
        ("seed", np.int64),
        ("tick", np.int64),
        ("score", np.int64),  # also the number of the next pipe
        ("until", np.int64),  # the tick in which the band changes
        ("low", np.int32),  # where a living bird can be
        ("high", np.int32),
        ("y", np.int32),
        ("velocity", np.int32),
        ("gap_y1", np.int32),  # of the next pipe
        ("gap_height1", np.int32),
        ("gap_y2", np.int32),  # of the one after it
        ("gap_height2", np.int32),
    ]
)
"""One game, in units and ticks; 64 bytes, which is one line of a processor's cache."""

_NONE = np.zeros(0, np.int64)
_STARTS, _STOPS = np.array([(seeds.start, seeds.stop) for seeds in SEED_RANGES]).T.copy()

_PLAYING, _TERMINATED, _TRUNCATED = 0, 1, 2

_spawn_tick, _newest, _gap_y, _gap_height = Physics.spawn_tick, Physics.newest, Physics.gap_y, Physics.gap_height


class Seen(NamedTuple):
    """What a step or a reset leaves behind of N games; new arrays each time."""

    terminated: Bools
    truncated: Bools
    scored: Bools
    rewards: NDArray[np.float64]
    seeds: Ints
    ticks: Ints
    scores: Ints
    numbers: Floats

    @classmethod
    def of(cls, games: int) -> Seen:
        """Return arrays to be filled."""
        made: Callable[..., Any] = np.empty
        return cls(
            made(games, np.bool_),
            made(games, np.bool_),
            made(games, np.bool_),
            made(games, np.float64),
            made(games, np.int64),
            made(games, np.int64),
            made(games, np.int64),
            made((games, len(FEATURES)), np.float32),
        )


def _step(games: Any, ends: Any, taps: Any, worlds: Any, max_ticks: int, seeds: Any, pay: Any, pipe_pay: float, seen: Any) -> int:
    """Play one tick of every game, fill `seen`, and return how many games have ended.

    Games that had ended before begin anew, in turn on the courses `seeds`; where there are none they stand still. Nothing
    happens where a tap is neither 0 nor 1: -1 is returned.
    """
    for index in range(len(games)):
        if taps[index] != 0 and taps[index] != 1:
            return -1
    physics = worlds[0]
    ended = begun = 0
    for index in range(len(games)):
        game = games[index]
        seen.scored[index] = False
        seen.rewards[index] = 0.0
        if ends[index] == _PLAYING:
            # The bird flaps or falls, and moves.
            game.y, game.velocity = move(game.y, game.velocity, taps[index], physics.jump, physics.gravity)

            # Pipes move, leave, appear: the clock is all there is to move.
            game.tick += 1
            if game.tick == game.until:
                _look_ahead(game, physics)

            # It lives within its band, up to the tick limit, and scores what it passes.
            if not game.low <= game.y <= game.high:
                ends[index] = _TERMINATED
            else:
                if game.tick == max_ticks:
                    ends[index] = _TRUNCATED
                seen.rewards[index] = pay[min(game.tick, len(pay)) - 1]
                if game.tick == _spawn_tick(physics, game.score) + physics.pass_age:
                    game.score += 1
                    seen.scored[index] = True
                    seen.rewards[index] += pipe_pay
                    _next_gaps(game, physics)
        elif len(seeds) > 0:
            ends[index] = _PLAYING
            _begin(game, seeds[begun], 0, 0, 0, physics)
            begun += 1
        ended += ends[index] != _PLAYING
        _show(game, ends[index], physics, index, seen)
    return ended


def _reset(games: Any, ends: Any, which: Any, worlds: Any, seeds: Any, states: Any, seen: Any) -> int:
    """Begin the games `which` anew in `states` of the courses `seeds`, fill `seen`, and return how many games have ended."""
    physics = worlds[0]
    for place in range(len(which)):
        ends[which[place]] = _PLAYING
        tick, y, velocity = states[place]
        _begin(games[which[place]], seeds[place], tick, y, velocity, physics)
    ended = 0
    for index in range(len(games)):
        seen.scored[index] = False
        seen.rewards[index] = 0.0
        ended += ends[index] != _PLAYING
        _show(games[index], ends[index], physics, index, seen)
    return ended


def _begin(game: Any, seed: int, tick: int, y: int, velocity: int, physics: Any) -> None:
    game.seed, game.tick, game.y, game.velocity = seed, tick, y, velocity
    game.score = _newest(physics, tick, physics.pass_age) + 1
    _look_ahead(game, physics)
    _next_gaps(game, physics)


def _look_ahead(game: Any, physics: Any) -> None:
    """Note the band of this tick and the next tick in which it changes; see `Course.band`."""
    low, high = physics.low, physics.high
    number = game.score  # pipes that have been passed do not touch the bird
    age = game.tick - _spawn_tick(physics, number)
    leaves = MAX_TICK
    while age >= physics.enter_age:
        if age <= physics.leave_age:
            middle, height = _gap(game.seed, number, physics)
            room = height // 2 - physics.radius
            low, high = max(low, middle - room), min(high, middle + room)
            leaves = min(leaves, physics.leave_age + 1 - age)
        number += 1
        age -= physics.interval
    game.low, game.high, game.until = low, high, game.tick + min(leaves, physics.enter_age - age)


def _next_gaps(game: Any, physics: Any) -> None:
    game.gap_y1, game.gap_height1 = _gap(game.seed, game.score, physics)
    game.gap_y2, game.gap_height2 = _gap(game.seed, game.score + 1, physics)


def _gap(seed: int, number: int, physics: Any) -> tuple[int, int]:
    # All unsigned: beside a signed number numba would go on in floating point.
    drawn = draw(course_key(np.uint64(seed)), np.uint64(number), np.uint64(physics.gap_choices))  # type: ignore[arg-type]
    return _gap_y(physics, np.int64(drawn)), _gap_height(physics, number)  # type: ignore[arg-type]


def _show(game: Any, end: int, physics: Any, index: int, seen: Any) -> None:
    """Fill place `index` of `seen`; what belongs to the step alone is filled by it."""
    seen.terminated[index] = end == _TERMINATED
    seen.truncated[index] = end == _TRUNCATED
    seen.seeds[index] = game.seed
    seen.ticks[index] = game.tick
    seen.scores[index] = game.score
    away = physics.world_w - physics.bird_x
    age = game.tick - _spawn_tick(physics, game.score)
    later = age - physics.interval
    numbers = seen.numbers[index]
    numbers[0] = game.y / UNITS
    numbers[1] = game.velocity / UNITS
    numbers[2] = (away - max(age, 0) * physics.speed) / UNITS
    numbers[3] = game.gap_y1 / UNITS if age >= 0 else 0.0
    numbers[4] = game.gap_height1 / UNITS
    numbers[5] = (away - max(later, 0) * physics.speed) / UNITS
    numbers[6] = game.gap_y2 / UNITS if later >= 0 else 0.0
    numbers[7] = game.gap_height2 / UNITS


# --- compiling it -------------------------------------------------------------------------------------------------

_SHARED = (move, mix64, course_key, draw, _spawn_tick, _newest, _gap_y, _gap_height, _gap, _next_gaps, _look_ahead, _begin, _show)
"""What the loops call, in an order in which each calls only what stands before it."""

_SOURCES = (course.__file__, game.__file__, units.__file__, __file__)
"""The files that compiled code depends on."""

_one_at_a_time = threading.Lock()


class _Loops(NamedTuple):
    step: Any
    reset: Any


@lru_cache(maxsize=1)
def _compiled() -> _Loops:
    """Return the loops, compiled; the machine code is kept on disk for the next process.

    Raises:
        MissingPart: numba is not installed, or does not work with the numpy that is.
    """
    try:
        import numba
        from numba.extending import register_jitable
    except ModuleNotFoundError as error:
        raise missing(f"many games at once need {error.name}", "gymnasium") from None
    except ImportError as error:
        raise MissingPart(f"many games at once need numba, which cannot be loaded: {error}") from None
    for rule in _SHARED:
        register_jitable(rule)
    loops = _Loops(numba.njit(_step), numba.njit(_reset))
    # numba keys its cache on the file of the loop alone and would run old rules after an edit of the others. So the folder
    # is named after all of them; numba looks its name up while caching is enabled, and only then.
    with _one_at_a_time:
        users = numba.config.CACHE_DIR
        folder = cache_folder(users)
        if folder is not None:
            try:
                numba.config.CACHE_DIR = str(folder)
                for loop in loops:
                    loop.enable_caching()
            finally:
                numba.config.CACHE_DIR = users
    return loops


def cache_folder(users: str = "") -> Path | None:
    """Return the folder for machine code compiled from these very sources; None where none can be written.

    It lies in the user's `NUMBA_CACHE_DIR`, else beside this file, else in the user's cache, else in the temporary folder.
    """
    try:
        sources = b"".join(sha256(Path(source).read_bytes()).digest() for source in _SOURCES)
    except OSError:
        return None  # a package without sources
    name = f"flappybird-{sha256(sources).hexdigest()[:16]}"
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for base in (users, os.path.join(os.path.dirname(__file__), "__pycache__"), home):
        if base and (folder := _writable(Path(base) / name)):
            return folder
    # What lies there is run: in a folder that others can write to, it must be ours alone.
    private = Path(tempfile.gettempdir()) / f"flappybird-{os.getuid() if hasattr(os, 'getuid') else 'cache'}"
    return _writable(private / name) if _ours_alone(private) else None


def _writable(folder: Path) -> Path | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return None
    return folder


def _ours_alone(folder: Path) -> bool:
    """Whether `folder`, made if it is not there, is a folder that belongs to this user and that no one else can write to."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return False
    if not hasattr(os, "getuid"):
        return stat.S_ISDIR(found.st_mode)  # each user has a temporary folder of their own
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


# --- what is used of it -------------------------------------------------------------------------------------------


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
        _compiled()
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
                `course.SEED_RANGES`, comes its first).
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
        self._ended = _compiled().reset(self._games, self._ends, which, self._worlds, given, begin, self._seen)

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
        ended = _compiled().step(self._games, self._ends, taps, self._worlds, self._limit, seeds, *self._pay, seen)
        if ended < 0:
            game = int(((taps != 0) & (taps != 1)).argmax())
            raise ConfigError(f"taps[{game}] = {taps[game]}: must be 0 (nothing) or 1 (flap)")
        self._seen, self._ended = seen, ended
        return seen.terminated, seen.truncated

    def _next_seeds(self) -> Ints:
        """Return the courses on which the games that have ended begin anew."""
        seeds = self._games["seed"][self._ends != _PLAYING]
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
        if self._ends[game] == _TERMINATED:
            state = self.state(game)
            return crash(Course(self.config, int(self._games["seed"][game])), state.tick, state.y)
        return Outcome(Reason.TICK_LIMIT, self.state(game).tick) if self._ends[game] == _TRUNCATED else None

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
