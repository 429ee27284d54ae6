"""The loop over many games: `FlappyGame.step` once more, for N games and with what a learner wants of each.

Plain Python, which numba compiles when the first batch is made, together with the very functions that move a single bird and
draw a single course. The machine code is kept on disk, under a name made from all sources that it depends on.
"""

from __future__ import annotations

import os
import stat
import tempfile
import threading
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from flappybird.errors import MissingPart
from flappybird.system.install import missing
from flappybird.world import course, game, units
from flappybird.world.course import MAX_TICK, Physics, course_key, draw, mix64
from flappybird.world.game import move
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

PLAYING, TERMINATED, TRUNCATED = 0, 1, 2

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
        if ends[index] == PLAYING:
            # The bird flaps or falls, and moves.
            game.y, game.velocity = move(game.y, game.velocity, taps[index], physics.jump, physics.gravity)

            # Pipes move, leave, appear: the clock is all there is to move.
            game.tick += 1
            if game.tick == game.until:
                _look_ahead(game, physics)

            # It lives within its band, up to the tick limit, and scores what it passes.
            if not game.low <= game.y <= game.high:
                ends[index] = TERMINATED
            else:
                if game.tick == max_ticks:
                    ends[index] = TRUNCATED
                seen.rewards[index] = pay[min(game.tick, len(pay)) - 1]
                if game.tick == _spawn_tick(physics, game.score) + physics.pass_age:
                    game.score += 1
                    seen.scored[index] = True
                    seen.rewards[index] += pipe_pay
                    _next_gaps(game, physics)
        elif len(seeds) > 0:
            ends[index] = PLAYING
            _begin(game, seeds[begun], 0, 0, 0, physics)
            begun += 1
        ended += ends[index] != PLAYING
        _show(game, ends[index], physics, index, seen)
    return ended


def _reset(games: Any, ends: Any, which: Any, worlds: Any, seeds: Any, states: Any, seen: Any) -> int:
    """Begin the games `which` anew in `states` of the courses `seeds`, fill `seen`, and return how many games have ended."""
    physics = worlds[0]
    for place in range(len(which)):
        ends[which[place]] = PLAYING
        tick, y, velocity = states[place]
        _begin(games[which[place]], seeds[place], tick, y, velocity, physics)
    ended = 0
    for index in range(len(games)):
        seen.scored[index] = False
        seen.rewards[index] = 0.0
        ended += ends[index] != PLAYING
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
    seen.terminated[index] = end == TERMINATED
    seen.truncated[index] = end == TRUNCATED
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
def compiled() -> _Loops:
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
