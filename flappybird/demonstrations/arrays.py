"""Demonstrated games as arrays, for offline reinforcement learning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flappybird.demonstrations.games import Demonstration
from flappybird.episodes.rewards import PIPE_REWARD, TICK_REWARDS
from flappybird.world.levels import level

AT_ONCE = 1024
"""Games that are turned into numbers together."""


def save_numbers(games: list[Demonstration], path: Path) -> None:
    """Write games as one .npz file of arrays, game after game, for offline reinforcement learning.

    `observations` float32 (ticks + games, 8), see `batch.FEATURES`: those before each action and the last one of each game;
    `actions` int8 (ticks,); `rewards` float64 (ticks,): the card's without format, as in `gymnasium_env`;
    `lengths` int64 (games,): ticks per game; `seeds` int64 (games,); `levels` text (games,). Every game ends by its tick
    limit, none by a crash.

    Raises:
        MissingPart: numpy or numba is not installed.
    """
    import numpy as np

    from flappybird.batch import FEATURES, FlappyBatch, Pay

    pay = Pay(tuple(TICK_REWARDS), PIPE_REWARD)
    observations: list[Any] = [np.zeros((0, len(FEATURES)))] * len(games)
    rewards: list[Any] = [np.zeros(0)] * len(games)
    for name in dict.fromkeys(game.level for game in games):
        of_level = [place for place, game in enumerate(games) if game.level == name]
        for first in range(0, len(of_level), AT_ONCE):
            places = of_level[first : first + AT_ONCE]
            flown = [games[place] for place in places]
            taps = np.zeros((max(len(game.taps) for game in flown), len(flown)), bool)
            for column, game in enumerate(flown):
                taps[: len(game.taps), column] = game.taps
            batch = FlappyBatch(level(name), [game.seed for game in flown], pay=pay, states=[game.start for game in flown])
            seen, paid = [batch.observe()], []
            for row in taps:  # games that are over fly on, unseen
                batch.step(row)
                seen.append(batch.observe())
                paid.append(batch.rewards)
            for column, (place, game) in enumerate(zip(places, flown, strict=True)):
                observations[place] = np.array([numbers[column] for numbers in seen[: len(game.taps) + 1]])
                rewards[place] = np.array([reward[column] for reward in paid[: len(game.taps)]])
    with open(path, "wb") as file:
        np.savez_compressed(
            file,
            observations=np.concatenate(observations),
            actions=np.array([tap for game in games for tap in game.taps], np.int8),
            rewards=np.concatenate(rewards),
            lengths=np.array([len(game.taps) for game in games], np.int64),
            seeds=np.array([game.seed for game in games], np.int64),
            levels=np.array([game.level for game in games]),
        )
