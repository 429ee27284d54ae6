"""Reinforcement learning: the model flies, and what kept its bird alive becomes likelier.

PPO in a plain form. Games side by side on training seeds, sampled at temperature 1, cut after `TICKS` ticks. A reply is an
action, rewarded with what its tick added to the environment's reward (survival and pipes). The baseline, what a state is
worth, is a linear fit of what followed on what the model itself made of the observation: so the wrong flap is blamed, not the
dozen replies after it that could no longer help. There is no second network, and no reference model either.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from tokenizers import Tokenizer

from flappybird.episodes.arguments import Settings, start

from . import model, play
from .optimizer import compiled, optimizer

GAMES, TICKS = 64, 150
DISCOUNT, TRACE = 0.95, 0.95
"""How much the reward of the next tick counts against that of this one, and how far a surprise is traced back (GAE)."""
CLIP = 0.2
BATCH = 256
"""Turns in a batch: rewards are noisier than demonstrations, and Muon's steps are as long for noise as for signal."""
TURNS = 3072
"""Turns that an iteration learns from."""
RATES = 0.002, 0.0002
"""Learning rates of Muon and of Adam, a tenth of those of SFT."""


class Rl:
    """Training by flying; a step is one iteration: 64 games, then one pass over their turns."""

    def __init__(self, tokenizer: Tokenizer, shape: model.Shape, weights: model.Weights, difficulty: str, seed: int) -> None:
        self.seed = seed
        self.settings = Settings.of(difficulty=difficulty, max_turns=TICKS)
        moves = optimizer(*RATES)
        self.weights, self.state, self.steps = jax.tree.map(np.array, weights), moves.init(weights), 0
        self.update = compiled(lambda weights, batch: _loss(weights, shape, batch), moves)
        self.player = play.Player(tokenizer, shape, self.weights, seed)

    def warm_up(self) -> None:
        """Compile."""
        shape, nothing = self.player.shape, np.zeros(BATCH, np.float32)
        turns = {"prompts": np.ones((BATCH, shape.prompt), np.int16), "replies": np.ones((BATCH, shape.reply), np.int32)}
        self.update(self.weights, self.state, {**turns, "chances": nothing, "advantages": nothing}, 0.0)

    def step(self, share: float) -> dict[str, float]:
        """Fly and learn once, when `share` of the time is over."""
        dice = np.random.default_rng([self.seed, self.steps])
        rollouts = [start(self.settings.training_row(int(course))) for course in dice.integers(2**30, size=GAMES)]
        self.player.weights = self.weights
        games = play.fly(self.player, rollouts, 1.0)
        cut = [rollout.outcome is not None and not rollout.outcome.reason.crashed for rollout in rollouts]
        turns, advantages = experience(games), np.concatenate(surprises(games, cut))
        advantages += 1e-6 - advantages.mean()
        # Turns are drawn the more often the more they matter, and count alike then: the same gradient from fewer of them.
        drawn = dice.choice(len(advantages), min(TURNS, 2 * len(advantages)), p=np.abs(advantages) / np.abs(advantages).sum())
        turns["advantages"] = np.sign(advantages).astype(np.float32)
        for at in range(0, len(drawn) - BATCH + 1, BATCH):
            batch = {name: values[drawn[at : at + BATCH]] for name, values in turns.items()}
            self.weights, self.state, _ = self.update(self.weights, self.state, batch, 1.0 - 0.7 * share)
        self.steps += 1
        flown = [(rollout.game.score, rollout.game.tick) for rollout in rollouts]
        return dict(zip(("sampled_pipes", "sampled_ticks"), np.mean(flown, axis=0).tolist(), strict=True))


def experience(games: list[list[play.Turn]]) -> dict[str, np.ndarray]:
    """Return the turns of all games as arrays."""
    said = [turn.said for game in games for turn in game]
    return {
        "prompts": np.array([one.prompt for one in said]),
        "replies": np.array([one.reply for one in said]),
        "chances": np.array([one.chances.sum() for one in said]),
    }


def surprises(games: list[list[play.Turn]], cut: list[bool]) -> list[np.ndarray]:
    """Return the advantage of each turn of each game: how much better it went on than the state before it promised.

    Args:
        cut: which games ended by the tick limit. They would have gone on: what a state is worth is not learnt from their
            last turns.
    """
    hidden = [np.array([[*turn.said.hidden, 1.0] for turn in game]) for game in games]
    returns = [discounted([turn.reward for turn in game], DISCOUNT) for game in games]
    told = [len(game) - 40 * ended for game, ended in zip(games, cut, strict=True)]  # 0.95 ** 40 = 0.13
    known = np.concatenate([rows[: max(n, 0)] for rows, n in zip(hidden, told, strict=True)])
    worth = np.concatenate([values[: max(n, 0)] for values, n in zip(returns, told, strict=True)])
    fit = np.linalg.solve(known.T @ known + 10 * np.eye(known.shape[1]), known.T @ worth)
    advantages = []
    for rows, game, ended in zip(hidden, games, cut, strict=True):
        value = rows @ fit
        following = np.append(value[1:], value[-1] if ended else 0.0)
        differences = [turn.reward for turn in game] + DISCOUNT * following - value
        if ended:
            differences[-1] = 0.0
        advantages.append(discounted(differences, DISCOUNT * TRACE))
    return advantages


def discounted(rewards: list[float] | np.ndarray, discount: float) -> np.ndarray:
    """Return the sum of each reward and all that follow it, discounted."""
    sums, still = np.zeros(len(rewards)), 0.0
    for turn in reversed(range(len(rewards))):
        sums[turn] = still = rewards[turn] + discount * still
    return sums


def _loss(weights: model.Weights, shape: model.Shape, turns: dict[str, jax.Array]) -> jax.Array:
    now = model.log_probabilities(weights, shape, turns["prompts"], turns["replies"]).sum(axis=1)
    ratio, gain = jnp.exp(now - turns["chances"]), turns["advantages"]
    return -jnp.minimum(ratio * gain, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * gain).mean()
