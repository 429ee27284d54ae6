"""Door: Gymnasium. Importing this module registers `flappybird/FlappyBird-v0`.

    import gymnasium, flappybird.gymnasium_env
    env = gymnasium.make("flappybird/FlappyBird-v0", difficulty="hard")
    envs = gymnasium.make_vec("flappybird/FlappyBird-v0", num_envs=1024)

One environment plays a `FlappyGame`, a vector of them a `FlappyBatch`; both give the same numbers, bit for bit. Rewards are
the card's without the part for the format of replies. `reset(seed=s)` plays the course `s`; a reset without a seed draws
one from `course.GYMNASIUM_SEEDS`, so evaluation seeds (those below 2**40) are only played when they are asked for. Pictures
are drawn by `render`, which is loaded when the first one is asked for, and many games need numba, which is loaded with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import index
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from flappybird.batch import FEATURES, FlappyBatch, Pay
from flappybird.episodes.arguments import world_of
from flappybird.episodes.rewards import PIPE_REWARD, SURVIVAL_RAMP_TICKS, TICK_REWARDS
from flappybird.errors import ConfigError, show, unknown_name
from flappybird.system.install import missing, sibling
from flappybird.world.config import FlappyConfig
from flappybird.world.course import GYMNASIUM_SEEDS, MAX_TICK, SEED_RANGES, Course, Physics, check_seed
from flappybird.world.game import FlappyGame, Outcome, State, check_ticks
from flappybird.world.units import UNITS

try:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
except ImportError:
    raise missing("this door needs gymnasium", "gymnasium") from None

ENV_ID = "flappybird/FlappyBird-v0"
FRAMES_PER_SECOND = 30
STOCK = 4096
"""Seeds that a vector environment draws at once: one draw costs about as much as a thousand."""

Observed = Literal["numbers", "pixels"]


def make_config(
    difficulty: str | None = None,
    config: FlappyConfig | Mapping[str, Any] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> FlappyConfig:
    """Return the world that a door's arguments stand for: `config`, or the level `difficulty`, under `overrides`.

    Raises:
        ConfigError: both are given, there is no such level, or the result is not a legal config.
    """
    return FlappyConfig.of(world_of(difficulty, config), overrides)


def number_space(config: FlappyConfig) -> spaces.Box:
    """Return the space of observations as numbers, see `batch.FEATURES`; it also holds the last one, after a crash."""
    physics = Physics.of(config)
    speed = top_speed(physics)
    away, behind = physics.world_w - physics.bird_x, (physics.width + 2 * physics.radius) // 2 + physics.speed
    tallest = max(physics.easy_height, physics.base_height)
    low = [-physics.high - speed, -speed, *[-behind, -physics.high, 0] * 2]
    high = [physics.high + speed, speed, *[away, physics.high, tallest] * 2]
    return spaces.Box(np.array(low, np.float32) / UNITS, np.array(high, np.float32) / UNITS, dtype=np.float32)


def top_speed(physics: Physics) -> int:
    """Return a speed (units per tick) that no bird exceeds, up or down, not even in its crash."""
    fallen = 0  # ticks in which a bird at rest can fall through the whole world
    while -physics.gravity * fallen * (fallen + 1) // 2 <= 2 * physics.high:
        fallen += 1
    return max(physics.jump, -physics.gravity * (fallen + 1))


class FlappyBirdEnv(gymnasium.Env[NDArray[Any], Any]):
    """One game.

    Actions: 0 does nothing, 1 flaps. Observations: with `observe="numbers"` float32, (8,), see `batch.FEATURES`; with
    "pixels" uint8, (height, width, 3). `info` holds the course's `seed`, the `tick` and the `score`, and at the end the
    `reason` and the number of the `pipe` that was hit.

    Args:
        difficulty: one of `levels.LEVELS`; None for the card's world.
        config: a whole world instead of a level: a FlappyConfig or its fields.
        config_overrides: fields laid over either.
        max_turns: the tick limit; the game is truncated there. None for no limit.
        observe: what an observation is.
        render_mode: None, `rgb_array` or `human` (a window, drawn in every step).
        size: width and height of pictures, in pixels.

    Raises:
        ConfigError: an argument is none of these.
    """

    metadata: dict[str, Any] = {"render_modes": ["human", "rgb_array"], "render_fps": FRAMES_PER_SECOND}  # noqa: RUF012

    def __init__(
        self,
        difficulty: str | None = None,
        config: FlappyConfig | Mapping[str, Any] | None = None,
        config_overrides: Mapping[str, Any] | None = None,
        max_turns: int | None = 300,
        observe: Observed = "numbers",
        render_mode: str | None = None,
        size: tuple[int, int] = (576, 480),
    ) -> None:
        self.config = make_config(difficulty, config, config_overrides)
        self.max_turns = check_ticks(max_turns, "max_turns")
        _check_observed(observe)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ConfigError(f"render_mode: {unknown_name(render_mode, self.metadata['render_modes'], 'a render mode')}")
        self.observe = observe
        self.render_mode = render_mode
        self.size = size = _checked_size(size)
        self._speed = Physics.of(self.config).speed
        self.action_space = spaces.Discrete(2)
        self.observation_space = (
            number_space(self.config) if observe == "numbers" else spaces.Box(0, 255, (size[1], size[0], 3), np.uint8)
        )
        self.game: FlappyGame | None = None
        """The game being played, None before the first reset."""
        self._pictures: _Pictures | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[NDArray[Any], dict[str, Any]]:
        """Begin a game: on the course `seed`, or on one drawn from `course.GYMNASIUM_SEEDS`.

        `options` may hold a `state`, a `game.State` to begin in instead of the beginning.

        Raises:
            ConfigError: the seed is none, an option is unknown, or no living bird can be in the state.
        """
        _check_options(options, "state")
        seed = None if seed is None else check_seed(seed)
        super().reset(seed=seed)
        if seed is None:
            seed = int(self.np_random.integers(GYMNASIUM_SEEDS.start, GYMNASIUM_SEEDS.stop))
        state = (options or {}).get("state")
        state = State() if state is None else _checked_state(Course(self.config, seed), state, self.max_turns)
        self.game = FlappyGame(self.config, seed, max_ticks=self.max_turns, state=state)
        self._numbers = np.zeros(len(FEATURES), np.float32)
        self._score = self.game.score
        self._look_ahead(self.game)
        if self.render_mode == "human":
            self.render()
        return self._observation(self.game), {"seed": seed, "tick": state.tick, "score": self._score}

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        """Play one tick.

        Raises:
            ConfigError: the action is neither 0 nor 1.
            gymnasium.error.ResetNeeded: no game has begun.
            GameOver: the game has ended.
        """
        game = self.game
        if game is None:
            raise gymnasium.error.ResetNeeded("reset the environment before its first step")
        try:
            known = action == 0 or action == 1
        except ValueError:  # an array of several
            known = False
        if not known:
            raise ConfigError(f"action = {show(action)}: must be 0 (nothing) or 1 (flap)")
        outcome = game.step(bool(action))

        tick = game.tick
        terminated = outcome is not None and outcome.reason.crashed
        reward = 0.0 if terminated else TICK_REWARDS[tick - 1] if tick < SURVIVAL_RAMP_TICKS else TICK_REWARDS[-1]
        if tick == self._changes:
            if tick == self._passes and not terminated:
                reward += PIPE_REWARD
                self._score += 1
            self._look_ahead(game)
        info = {"seed": game.course.seed, "tick": tick, "score": self._score}
        if outcome is not None:
            info.update(_ending(outcome))
        if self.render_mode == "human":
            self.render()
        return self._observation(game), reward, terminated, outcome is not None and not terminated, info

    def _look_ahead(self, game: FlappyGame) -> None:
        """Note down what stays the same until the next pipe appears or is passed."""
        course, physics, tick = game.course, game.course.physics, game.tick
        number = self._score
        self._passes = physics.spawn_tick(number) + physics.pass_age
        self._changes = min(self._passes, physics.spawn_tick(course.physics.newest(tick) + 1))
        away = physics.world_w - physics.bird_x
        # x = (at - tick * speed) of the two pipes, where they are on screen.
        self._at: list[int | None] = []
        for pipe in range(2):
            appeared, gap = physics.spawn_tick(number + pipe), course.gap(number + pipe)
            on_screen = tick >= appeared
            self._at.append(away + appeared * physics.speed if on_screen else None)
            self._numbers[3 * pipe + 2 : 3 * pipe + 5] = (
                np.array((away, gap.y if on_screen else 0, gap.height), np.float32) / UNITS
            )

    def _observation(self, game: FlappyGame) -> NDArray[Any]:
        if self.observe == "pixels":
            return self._picture(game)
        numbers = self._numbers.copy()
        tick, y, velocity = game.state
        numbers[0], numbers[1] = y / UNITS, velocity / UNITS
        first, second = self._at
        moved = tick * self._speed
        if first is not None:
            numbers[2] = (first - moved) / UNITS
        if second is not None:
            numbers[5] = (second - moved) / UNITS
        return numbers

    def render(self) -> Any:
        """Return the picture, uint8, (height, width, 3), with `rgb_array`; show it in the window with `human`."""
        if self.game is None:
            raise gymnasium.error.ResetNeeded("reset the environment before it is rendered")
        if self.render_mode is None:
            gymnasium.logger.warn("render() without a render_mode shows nothing; choose one when the environment is made")
            return None
        picture = self._picture(self.game)
        if self.render_mode == "rgb_array":
            return picture
        assert self._pictures is not None
        self._pictures.show()
        return None

    def _picture(self, game: FlappyGame) -> NDArray[np.uint8]:
        if self._pictures is None:
            self._pictures = _Pictures(self.size)
        return self._pictures.draw(game)

    def close(self) -> None:
        """Close the window, where there is one."""
        if self._pictures is not None:
            self._pictures.close()
            self._pictures = None

    def __getstate__(self) -> dict[str, Any]:
        # A copy draws pictures of its own, in a window of its own.
        return {**self.__dict__, "_pictures": None}


class FlappyBirdVectorEnv(VectorEnv[NDArray[np.float32], NDArray[np.int64], NDArray[Any]]):
    """Many games at once, on arrays. Arguments, actions, observations and rewards as in `FlappyBirdEnv`, numbers only.

    A game that has ended begins anew in its next step, on a course drawn from `course.GYMNASIUM_SEEDS` (Gymnasium's
    `AutoresetMode.NEXT_STEP`). `reset(seed=s)` begins on the courses s, s + 1, …; a list names a course for each game, or
    None for one that is drawn. `info` holds `seed`, `tick` and `score`, (N,) each. `max_episode_steps`, which
    `gymnasium.make_vec` hands on, is a limit like `max_turns`; the lower one counts.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": [],
        "render_fps": FRAMES_PER_SECOND,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        difficulty: str | None = None,
        config: FlappyConfig | Mapping[str, Any] | None = None,
        config_overrides: Mapping[str, Any] | None = None,
        max_turns: int | None = 300,
        observe: Observed = "numbers",
        render_mode: str | None = None,
        size: tuple[int, int] | None = None,
        max_episode_steps: int | None = None,
    ) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int | np.integer) or num_envs < 1:
            raise ConfigError(f"num_envs = {show(num_envs)}: must be a whole number from 1 on")
        _check_observed(observe)
        for name, value, usual in (("observe", observe, "numbers"), ("render_mode", render_mode, None), ("size", size, None)):
            if value != usual:
                raise ConfigError(f"{name} = {show(value)}: this vector draws no pictures; vectorization_mode='sync' does")
        self.num_envs = int(num_envs)
        self.render_mode = None
        self.config = make_config(difficulty, config, config_overrides)
        limits = check_ticks(max_turns, "max_turns"), check_ticks(max_episode_steps, "max_episode_steps")
        self.max_turns = min((limit for limit in limits if limit is not None), default=None)
        self.single_action_space = spaces.Discrete(2)
        self.single_observation_space = number_space(self.config)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.batch: FlappyBatch | None = None
        """The games being played, None before the first reset."""
        self._stock = np.zeros(0, np.int64)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin all games anew. `options` may hold a `reset_mask`, (N,), bool or 0 and 1: only those games begin anew.

        Raises:
            ConfigError: these are no seeds, not as many as games, or an option is unknown or no such mask.
        """
        _check_options(options, "reset_mask")
        mask = self._checked_mask((options or {}).get("reset_mask"))
        wanted = self._wanted(seed)
        super().reset(seed=next((one for one in wanted if one is not None), None))
        self._stock = self._stock[:0]
        drawn = self._drawn(np.zeros(self.num_envs))
        seeds = np.array([ours if theirs is None else theirs for ours, theirs in zip(drawn, wanted, strict=True)], np.int64)
        if self.batch is None or mask is None:
            self.batch = FlappyBatch(
                self.config,
                seeds,
                max_ticks=self.max_turns,
                autoreset=self._drawn,
                pay=Pay(tuple(TICK_REWARDS), PIPE_REWARD),
            )
        else:
            self.batch.reset(mask, seeds[mask])
        return self.batch.observe(), self._info(self.batch)

    def _wanted(self, seed: Any) -> list[int | None]:
        """The course that each game shall have, None where it is drawn."""
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, np.ndarray):
            seed = seed.tolist()
        if isinstance(seed, list | tuple | range):
            if len(seed) != self.num_envs:
                raise ConfigError(f"seed: {len(seed)} seeds given for {self.num_envs} games")
            return [None if one is None else check_seed(one) for one in seed]
        first = check_seed(seed)
        same = next(seeds for seeds in SEED_RANGES if first in seeds)
        if first + self.num_envs > same.stop:
            raise ConfigError(
                f"seed = {first}: {self.num_envs} games reach past {same.stop - 1}, the last seed of the same purpose "
                f"(see course.SEED_RANGES)"
            )
        return list(range(first, first + self.num_envs))

    def _checked_mask(self, mask: Any) -> NDArray[np.bool_] | None:
        if mask is None:
            return None
        given = np.asarray(mask)
        if given.shape != (self.num_envs,) or given.dtype.kind not in "bui" or (given != given.astype(bool)).any():
            raise ConfigError(f"reset_mask = {show(mask)}: must be {self.num_envs} times true or false, or 1 or 0")
        return given.astype(bool)

    def step(
        self, actions: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Play one tick of every game; arrays of (N, 8), (N,), (N,), (N,).

        Raises:
            ConfigError: `actions` has another shape or type.
            gymnasium.error.ResetNeeded: no game has begun.
        """
        if self.batch is None:
            raise gymnasium.error.ResetNeeded("reset the environment before its first step")
        terminated, truncated = self.batch.step(actions)
        return self.batch.observe(), self.batch.rewards, terminated, truncated, self._info(self.batch)

    def _drawn(self, seeds: NDArray[Any]) -> NDArray[np.int64]:
        if len(seeds) > len(self._stock):
            size = max(len(seeds), STOCK)
            self._stock = self.np_random.integers(GYMNASIUM_SEEDS.start, GYMNASIUM_SEEDS.stop, size=size)
        drawn, self._stock = self._stock[: len(seeds)], self._stock[len(seeds) :]
        return drawn

    def _info(self, batch: FlappyBatch) -> dict[str, Any]:
        known = np.ones(self.num_envs, bool)
        return {
            "seed": batch.seeds,
            "_seed": known,
            "tick": batch.ticks,
            "_tick": known,
            "score": batch.scores,
            "_score": known,
        }


def _check_observed(observe: object) -> None:
    if observe not in ("numbers", "pixels"):
        raise ConfigError(f"observe: {unknown_name(observe, ('numbers', 'pixels'), 'a kind of observation')}")


def _check_options(options: Any, name: str) -> None:
    for key in options or {}:
        if key != name:
            raise ConfigError(f"options: {unknown_name(key, (name,), 'an option of this reset')}")


def _checked_size(size: Any) -> tuple[int, int]:
    try:
        width, height = map(index, size)
    except (TypeError, ValueError):
        width = height = 0
    if width < 1 or height < 1 or bool in map(type, size):
        raise ConfigError(f"size = {show(size)}: must be width and height in pixels, such as (576, 480)")
    return width, height


def _checked_state(course: Course, state: Any, max_turns: int | None) -> State:
    """Return `state`. Raises ConfigError where no living bird of this course can be in it."""
    try:
        tick, y, velocity = map(index, state)
    except (TypeError, ValueError):
        raise ConfigError(f"state = {show(state)}: must be a game.State: tick, y and velocity, whole numbers of units") from None
    last, speed = MAX_TICK if max_turns is None else max_turns - 1, top_speed(course.physics)
    if not 0 <= tick <= last:
        raise ConfigError(f"state: tick = {tick}: must be from 0 to {last}, before the tick limit")
    low, high, _ = course.band(tick)
    if not low <= y <= high:
        raise ConfigError(
            f"state: y = {y}: must be from {low} to {high} units at tick {tick} of course {course.seed}, or it is a crash"
        )
    if abs(velocity) > speed:
        raise ConfigError(
            f"state: velocity = {velocity}: must be from {-speed} to {speed} units per tick, the fastest of this world"
        )
    return State(tick, y, velocity)


def _ending(outcome: Outcome) -> dict[str, Any]:
    ending: dict[str, Any] = {"reason": outcome.reason.value}
    if outcome.pipe is not None:
        ending["pipe"] = outcome.pipe
    return ending


class _Pictures:
    """What `render` draws for an environment: loaded when the first picture is asked for."""

    def __init__(self, size: tuple[int, int]) -> None:
        need = "pictures of the game need the renderer"
        self._scene, self._sdl = sibling("render.scene", need, "render"), sibling("render.sdl", need, "render")
        self._size = size
        self._drawn: Any = None  # the scene of the course drawn last
        self._window: Any = None
        self._clock: Any = None

    def draw(self, game: FlappyGame) -> NDArray[np.uint8]:
        scene = self._scene
        if self._drawn is None or self._drawn.course is not game.course:
            self._drawn = scene.Scene(game.course, self._size, scene.Overlay(thought=False, hud=False))
        picture: NDArray[np.uint8] = self._drawn.draw(scene.Moment(state=game.state, score=game.score, ended=game.outcome))
        return picture

    def show(self) -> None:
        """Show what was drawn last in the window, no faster than `FRAMES_PER_SECOND`."""
        pygame = self._sdl.pygame
        if self._window is None:
            hint = "no display to open a window on; render_mode='rgb_array' needs none"
            self._window, self._clock = self._sdl.Window(self._size, "Flappy Bird", hint), pygame.time.Clock()
        pygame.event.pump()
        self._window.show(self._drawn.canvas)
        self._clock.tick(FRAMES_PER_SECOND)

    def close(self) -> None:
        if self._window is not None:
            self._window.__exit__()
            self._window = None


gymnasium.register(
    ENV_ID,
    entry_point="flappybird.gymnasium_env:FlappyBirdEnv",
    vector_entry_point="flappybird.gymnasium_env:FlappyBirdVectorEnv",
)
