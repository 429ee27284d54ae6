"""Reinforcement learning: the model flies, and what kept its bird alive becomes likelier.

PPO in a plain form. Games side by side on training seeds, sampled at temperature 1: an iteration flies `TICKS` ticks of each,
a game that ends is replaced, one that flies on is taken up again by the next iteration. Most begin in a state of a
demonstrated game, where pipes are near: from the beginning, a third of all turns would be flown before the first one.

A reply is an action, rewarded with what its tick added to the environment's reward (survival and pipes). A game is over as
soon as no play could save it, which the package's exact solver knows: so the wrong flap is blamed, not the dozen replies after
it that could no longer help. The baseline, what a state is worth, is a linear fit of what followed on what the model itself
made of the observation. There is no second network, and no reference model either.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from tokenizers import Tokenizer

from flappybird.episodes.arguments import Settings, start
from flappybird.episodes.rollout import Rollout
from flappybird.world.game import State
from flappybird.world.seeds import TRAINING_SEEDS
from flappybird.world.solver import Survival

from . import model, play
from .optimizer import compiled, optimizer

GAMES, TICKS = 64, 64
FROM_THE_BEGINNING = 0.2
"""Share of the games that begin at tick 0."""
DISCOUNT, TRACE = 0.95, 0.9
"""How much the reward of the next tick counts against that of this one, and how far a surprise is traced back (GAE)."""
FITS = 4
"""Times that the worth of a state is fitted: each takes up from the one before what the games that go on are still worth."""
CLIP = 0.2
BATCH = 256
"""Turns in a batch: rewards are noisier than demonstrations, and Muon's steps are as long for noise as for signal."""
TURNS = 2048
"""Turns that an iteration learns from."""
RATES = 0.002, 0.0002
"""Learning rates of Muon and of Adam, a tenth of those of SFT."""


class Flight:
    """One game, and the turns of it that an iteration learns from."""

    def __init__(self, rollout: Rollout) -> None:
        self.rollout, self.turns = rollout, list[play.Turn]()
        self.survival = Survival.of(rollout.game.course, rollout.rules.max_turns)

    @property
    def lost(self) -> bool:
        """Whether the bird has crashed, or must."""
        return self.rollout.game.terminated or not self.survival.survives(self.rollout.game.state)


class Rl:
    """Training by flying; a step is one iteration: 64 ticks of 64 games, then one pass over the turns that matter."""

    def __init__(
        self, tokenizer: Tokenizer, shape: model.Shape, weights: model.Weights, difficulty: str, starts: np.ndarray, seed: int
    ) -> None:
        self.seed, self.starts, self.flying = seed, starts, list[Flight]()
        self.settings = Settings.of(difficulty=difficulty)
        moves = optimizer(*RATES)
        self.weights, self.state, self.steps = jax.tree.map(np.array, weights), moves.init(weights), 0
        self.update = compiled(lambda weights, batch: _loss(weights, shape, batch), moves)
        self.player = play.Player(tokenizer, shape, self.weights, seed)

    def warm_up(self) -> None:
        """Compile."""
        shape, nothing = self.player.shape, np.zeros(BATCH, np.float32)
        turns = {"prompts": np.ones((BATCH, shape.prompt), np.int16), "replies": np.ones((BATCH, shape.reply), np.int32)}
        self.update(self.weights, self.state, {**turns, "chances": nothing, "advantages": nothing}, 0.0)

    def begin(self, dice: np.random.Generator) -> Rollout:
        """Return a new game: from the beginning of a course, or from a state of a demonstrated game."""
        if dice.random() < FROM_THE_BEGINNING:
            return start(self.settings.training_row(int(dice.integers(2**30))))
        seed, *state = self.starts[dice.integers(len(self.starts))].tolist()
        rollout = start(self.settings.training_row(seed - TRAINING_SEEDS.start))
        return Rollout(rollout.game.config, seed, rollout.rules, {**rollout.record, **State(*state)._asdict()})

    def fly(self, dice: np.random.Generator) -> list[Flight]:
        """Fly `TICKS` ticks of `GAMES` games; return what was flown of each."""
        self.player.weights = self.weights
        flown: list[Flight] = []
        now = self.flying
        for flight in now:
            flight.turns = []
        for _ in range(TICKS):
            now += [Flight(self.begin(dice)) for _ in range(GAMES - len(now))]
            for flight, turn in zip(now, play.take(self.player, [flight.rollout for flight in now], 1.0), strict=True):
                flight.turns.append(turn)
            over = [flight.lost or flight.rollout.outcome is not None for flight in now]
            flown += [flight for flight, ended in zip(now, over, strict=True) if ended]
            now = [flight for flight, ended in zip(now, over, strict=True) if not ended]
        self.flying = now
        return flown + now

    def step(self, share: float) -> dict[str, float]:
        """Fly and learn once, when `share` of the time is over."""
        dice = np.random.default_rng([self.seed, self.steps])
        flights = self.fly(dice)
        turns = experience([flight.turns for flight in flights])
        advantages = np.concatenate(surprises([flight.turns for flight in flights], [flight.lost for flight in flights]))
        advantages += 1e-6 - advantages.mean()
        # Turns are drawn the more often the more they matter, and count alike then: the same gradient from fewer of them.
        drawn = dice.choice(len(advantages), TURNS, p=np.abs(advantages) / np.abs(advantages).sum())
        turns["advantages"] = np.sign(advantages).astype(np.float32)
        for at in range(0, TURNS, BATCH):
            batch = {name: values[drawn[at : at + BATCH]] for name, values in turns.items()}
            self.weights, self.state, _ = self.update(self.weights, self.state, batch, 1.0 - 0.95 * share)
        self.steps += 1
        return {"lost_per_100_turns": 100 * sum(flight.lost for flight in flights) / len(advantages)}


def experience(games: list[list[play.Turn]]) -> dict[str, np.ndarray]:
    """Return the turns of all games as arrays."""
    said = [turn.said for game in games for turn in game]
    return {
        "prompts": np.array([one.prompt for one in said]),
        "replies": np.array([one.reply for one in said]),
        "chances": np.array([one.chances.sum() for one in said]),
    }


def surprises(games: list[list[play.Turn]], lost: list[bool]) -> list[np.ndarray]:
    """Return the advantage of each turn of each game: how much better it went on than the state before it promised.

    Args:
        lost: which games were lost with their last turn. The others go on: the state after it is taken to be worth as much as
            the one before it.
    """
    hidden = [np.array([[*turn.said.hidden, 1.0] for turn in game]) for game in games]
    known = np.concatenate(hidden)
    inverse = np.linalg.inv(known.T @ known + 10 * np.eye(known.shape[1]))
    values = [np.zeros(len(game)) for game in games]
    for _ in range(FITS):
        followed = []
        for game, value, dead in zip(games, values, lost, strict=True):
            rewards = [turn.reward for turn in game]
            rewards[-1] += 0.0 if dead else DISCOUNT * value[-1]
            followed.append(discounted(rewards, DISCOUNT))
        fit = inverse @ (known.T @ np.concatenate(followed))
        values = [rows @ fit for rows in hidden]
    advantages = []
    for game, value, dead in zip(games, values, lost, strict=True):
        following = np.append(value[1:], 0.0 if dead else value[-1])
        differences = [turn.reward for turn in game] + DISCOUNT * following - value
        if not dead:
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
