"""Reinforcement learning: the model flies, and what kept its bird alive becomes likelier.

PPO in its plainest form. Games side by side on training seeds, sampled at temperature 1, cut after `TICKS` ticks. A reply is
an action. It is rewarded with what its tick added to the environment's reward (survival and pipes) and what followed, discounted, since
a wrong flap kills within some dozen ticks or never. The baseline of a turn is what all games still got from the same tick on:
their pipes come at the same ticks. So there is no second network, and no reference model either.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from tokenizers import Tokenizer

from flappybird.settings import Settings, start

from . import model, play
from .optimizer import compiled, optimizer

GAMES, TICKS = 64, 150
DISCOUNT = 0.95
CLIP = 0.2
BATCH = 64
TURNS = 4096
"""Turns that an iteration learns from at the most: those that went most unlike the baseline."""


class Rl:
    """Training by flying; a step is one iteration: 64 games, then one pass over their turns."""

    def __init__(self, tokenizer: Tokenizer, shape: model.Shape, weights: model.Weights, difficulty: str, seed: int) -> None:
        self.seed = seed
        self.settings = Settings.of(difficulty=difficulty, max_turns=TICKS)
        moves = optimizer(0.003, 0.0003)
        self.weights, self.state, self.steps = jax.tree.map(np.array, weights), moves.init(weights), 0
        self.update = compiled(lambda weights, batch: _loss(weights, shape, batch), moves)
        self.player = play.Player(tokenizer, shape, self.weights, seed)

    def step(self, share: float) -> dict[str, float]:
        """Fly and learn once, when `share` of the time is over."""
        dice = np.random.default_rng([self.seed, self.steps])
        rollouts = [start(self.settings.training_row(int(course))) for course in dice.integers(2**30, size=GAMES)]
        self.player.weights = self.weights
        turns = experience(play.fly(self.player, rollouts, 1.0))
        order = dice.permutation(np.argsort(-np.abs(turns["advantages"]))[:TURNS])
        for at in range(0, len(order), BATCH):
            part = np.resize(order[at : at + BATCH], BATCH)  # the last batch is filled up with turns of its own
            batch = {name: values[part] for name, values in turns.items()}
            self.weights, self.state, _ = self.update(self.weights, self.state, batch, 1.0 - 0.7 * share)
        self.steps += 1
        flown = [(rollout.game.score, rollout.game.tick) for rollout in rollouts]
        return dict(zip(("sampled_pipes", "sampled_ticks"), np.mean(flown, axis=0).tolist(), strict=True))


def experience(games: list[list[play.Turn]]) -> dict[str, np.ndarray]:
    """Return the turns of all games as arrays, each with its advantage."""
    turns = [turn for game in games for turn in game]
    returns = np.concatenate([returned([turn.reward for turn in game]) for game in games])
    ticks = np.array([turn.tick for turn in turns])
    baseline = np.bincount(ticks, returns) / np.maximum(np.bincount(ticks), 1)
    advantages = returns - baseline[ticks]
    return {
        "prompts": np.array([turn.said.prompt for turn in turns]),
        "replies": np.array([turn.said.reply for turn in turns]),
        "chances": np.array([turn.said.chances.sum() for turn in turns]),
        "advantages": (advantages / (advantages.std() + 1e-6)).astype(np.float32),
    }


def returned(rewards: list[float]) -> np.ndarray:
    """Return what each turn of a game and the turns after it earned, discounted."""
    returns, still = np.zeros(len(rewards)), 0.0
    for turn in reversed(range(len(rewards))):
        returns[turn] = still = rewards[turn] + DISCOUNT * still
    return returns


def _loss(weights: model.Weights, shape: model.Shape, turns: dict[str, jax.Array]) -> jax.Array:
    now = model.log_probabilities(weights, shape, turns["prompts"], turns["replies"]).sum(axis=1)
    ratio, gain = jnp.exp(now - turns["chances"]), turns["advantages"]
    return -jnp.minimum(ratio * gain, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * gain).mean()
