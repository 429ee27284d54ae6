"""Many games as a Gymnasium vector environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from flappybird.batch import FlappyBatch, Pay
from flappybird.episodes.rewards import PIPE_REWARD, TICK_REWARDS
from flappybird.errors import ConfigError, show
from flappybird.gymnasium_env.arguments import Observed, check_observed, check_options, make_config, number_space
from flappybird.gymnasium_env.pictures import FRAMES_PER_SECOND
from flappybird.world.config import FlappyConfig
from flappybird.world.game import check_ticks
from flappybird.world.seeds import GYMNASIUM_SEEDS, SEED_RANGES, check_seed

STOCK = 4096
"""Seeds that a vector environment draws at once: one draw costs about as much as a thousand."""


class FlappyBirdVectorEnv(VectorEnv[NDArray[np.float32], NDArray[np.int64], NDArray[Any]]):
    """Many games at once, on arrays. Arguments, actions, observations and rewards as in `FlappyBirdEnv`, numbers only.

    A game that has ended begins anew in its next step, on a course drawn from `seeds.GYMNASIUM_SEEDS` (Gymnasium's
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
        check_observed(observe)
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
        check_options(options, "reset_mask")
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
                f"(see seeds.SEED_RANGES)"
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
