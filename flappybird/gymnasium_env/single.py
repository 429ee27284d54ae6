"""One game as a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from flappybird.batch import FEATURES
from flappybird.episodes.rewards import PIPE_REWARD, SURVIVAL_RAMP_TICKS, TICK_REWARDS
from flappybird.errors import ConfigError, show, unknown_name
from flappybird.gymnasium_env.arguments import (
    Observed,
    check_observed,
    check_options,
    checked_size,
    checked_state,
    make_config,
    number_space,
)
from flappybird.gymnasium_env.pictures import FRAMES_PER_SECOND, Pictures
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course, Physics
from flappybird.world.game import FlappyGame, Outcome, State, check_ticks
from flappybird.world.seeds import GYMNASIUM_SEEDS, check_seed
from flappybird.world.units import UNITS


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
        check_observed(observe)
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ConfigError(f"render_mode: {unknown_name(render_mode, self.metadata['render_modes'], 'a render mode')}")
        self.observe = observe
        self.render_mode = render_mode
        self.size = size = checked_size(size)
        self._speed = Physics.of(self.config).speed
        self.action_space = spaces.Discrete(2)
        self.observation_space = (
            number_space(self.config) if observe == "numbers" else spaces.Box(0, 255, (size[1], size[0], 3), np.uint8)
        )
        self.game: FlappyGame | None = None
        """The game being played, None before the first reset."""
        self._pictures: Pictures | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[NDArray[Any], dict[str, Any]]:
        """Begin a game: on the course `seed`, or on one drawn from `seeds.GYMNASIUM_SEEDS`.

        `options` may hold a `state`, a `game.State` to begin in instead of the beginning.

        Raises:
            ConfigError: the seed is none, an option is unknown, or no living bird can be in the state.
        """
        check_options(options, "state")
        seed = None if seed is None else check_seed(seed)
        super().reset(seed=seed)
        if seed is None:
            seed = int(self.np_random.integers(GYMNASIUM_SEEDS.start, GYMNASIUM_SEEDS.stop))
        state = (options or {}).get("state")
        state = State() if state is None else checked_state(Course(self.config, seed), state, self.max_turns)
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
            self._pictures = Pictures(self.size)
        return self._pictures.draw(game)

    def close(self) -> None:
        """Close the window, where there is one."""
        if self._pictures is not None:
            self._pictures.close()
            self._pictures = None

    def __getstate__(self) -> dict[str, Any]:
        # A copy draws pictures of its own, in a window of its own.
        return {**self.__dict__, "_pictures": None}


def _ending(outcome: Outcome) -> dict[str, Any]:
    ending: dict[str, Any] = {"reason": outcome.reason.value}
    if outcome.pipe is not None:
        ending["pipe"] = outcome.pipe
    return ending
