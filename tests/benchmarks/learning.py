"""How soon a learner flies: PPO with numpy alone, on the vector environment, one process.

It prints the learning curve in pipes passed on evaluation seeds, which it never trains on, and the seconds it took; the
episodes of the learned policy can be kept and are episodes like any other: `flappybird verify` and the report read them.
`python -m tests.benchmarks.learning --difficulty hard --episodes FOLDER`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np

from flappybird.batch import FlappyBatch
from flappybird.episodes.episode import Player, save
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.episodes.verify import verify
from flappybird.gymnasium_env import FlappyBirdVectorEnv
from flappybird.protocol.rules import Rules
from flappybird.world.levels import LEVELS, level
from tests.benchmarks._bench import machine

GAMES, STEPS, EPOCHS, PARTS = 256, 64, 4, 8
"""Games at once, steps between updates, passes over them, and the parts that each pass is cut into."""
DISCOUNT, TRACE, CLIP, ENTROPY, RATE = 0.99, 0.95, 0.2, 0.01, 1e-3
SCALE = np.array([5, 2, 10, 3, 4, 20, 3, 4], np.float32)
"""What observations are divided by, so that they are about 1."""
EVALUATED = 200
"""Evaluation seeds per point of the curve."""


class Network:
    """Two hidden layers; out come the logit of a flap and the value of the state. Trained with Adam."""

    def __init__(self, dice: np.random.Generator, hidden: int = 64) -> None:
        sizes = [(len(SCALE), hidden), (hidden, hidden), (hidden, 2)]
        self.weights = [(dice.standard_normal(size) / np.sqrt(size[0])).astype(np.float32) for size in sizes]
        self.weights[2] *= 0.1
        self.weights += [np.zeros(size[1], np.float32) for size in sizes]
        self.weights[5][0] = -1.5  # a flap in every sixth tick keeps a bird about where it is
        self._moments = [(np.zeros_like(weight), np.zeros_like(weight)) for weight in self.weights]
        self._updates = 0

    def __call__(self, seen: Any) -> tuple[Any, Any, list[Any]]:
        """Return logits, values and what `learn` needs to go back through the layers."""
        first, second, last, *biases = self.weights
        layers = [seen / SCALE]
        layers.append(np.tanh(layers[0] @ first + biases[0]))
        layers.append(np.tanh(layers[1] @ second + biases[1]))
        out = layers[2] @ last + biases[2]
        return out[:, 0], out[:, 1], layers

    def learn(self, layers: list[Any], slopes: Any, rate: float) -> None:
        """Go one step of Adam down the slopes (n, 2) of the loss by the two outputs."""
        gradients: list[Any] = [None] * 6
        for layer in (2, 1, 0):
            gradients[layer], gradients[3 + layer] = layers[layer].T @ slopes, slopes.sum(axis=0)
            if layer:
                slopes = (slopes @ self.weights[layer].T) * (1 - layers[layer] ** 2)
        length = np.sqrt(sum(float((gradient**2).sum()) for gradient in gradients))
        self._updates += 1
        for weight, gradient, (mean, square) in zip(self.weights, gradients, self._moments, strict=True):
            gradient = gradient * min(1.0, 0.5 / (length + 1e-8))
            mean += 0.1 * (gradient - mean)
            square += 0.001 * (gradient**2 - square)
            unbiased = mean / (1 - 0.9**self._updates), square / (1 - 0.999**self._updates)
            weight -= rate * unbiased[0] / (np.sqrt(unbiased[1]) + 1e-5)


def chance(logits: Any) -> Any:
    """Chances of a flap."""
    return 1 / (1 + np.exp(-logits))


def collect(envs: FlappyBirdVectorEnv, network: Network, seen: Any, over: Any, dice: np.random.Generator) -> dict[str, Any]:
    """Play `STEPS` steps and return what happened, arrays of (STEPS, GAMES, …), with advantages and returns."""
    told: dict[str, list[Any]] = {name: [] for name in ("seen", "tapped", "chance", "value", "reward", "dead", "cut", "real")}
    for _ in range(STEPS):
        logits, values, _ = network(seen)
        tapped = dice.random(GAMES) < chance(logits)
        following, rewards, dead, cut, _ = envs.step(tapped.astype(np.int64))
        happened = (seen, tapped, np.where(tapped, chance(logits), chance(-logits)), values, rewards, dead, cut, ~over)
        for name, value in zip(told, happened, strict=True):
            told[name].append(value)
        seen, over = following, dead | cut
    data = {name: np.array(values) for name, values in told.items()}
    # Generalised advantage estimation. Steps in which a game only began anew are not real and lead nowhere.
    after, ahead = network(seen)[1], 0.0
    data["advantage"] = np.zeros((STEPS, GAMES), np.float32)
    for step in reversed(range(STEPS)):
        ended = data["dead"][step] | data["cut"][step]
        # What comes after the tick limit is worth what the last state seems worth; after a crash comes nothing.
        worth = np.where(data["dead"][step], 0.0, after)
        surprise = data["reward"][step] + DISCOUNT * worth - data["value"][step]
        ahead = surprise + DISCOUNT * TRACE * np.where(ended, 0.0, ahead)
        ahead = np.where(data["real"][step], ahead, 0.0)
        data["advantage"][step] = ahead
        after = data["value"][step]
    data["goal"] = data["advantage"] + data["value"]
    data["last"] = seen, over
    return data


def improve(network: Network, data: dict[str, Any], rate: float, dice: np.random.Generator) -> None:
    """Take PPO's clipped steps over what was collected."""
    real = np.flatnonzero(data["real"])
    flat = {
        name: data[name].reshape(-1, *data[name].shape[2:])[real] for name in ("seen", "tapped", "chance", "advantage", "goal")
    }
    for _ in range(EPOCHS):
        for part in np.array_split(dice.permutation(len(real)), PARTS):
            seen, tapped, old, advantage, goal = (flat[name][part] for name in flat)
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            logits, values, layers = network(seen)
            flap = chance(logits)
            ratio = np.where(tapped, flap, 1 - flap) / old
            free = np.where(advantage > 0, ratio < 1 + CLIP, ratio > 1 - CLIP)
            # d log(chance of what was done) / d logit is (tapped - flap); of the entropy, -logit flap (1 - flap).
            policy = -(free * advantage * ratio) * (tapped - flap) + ENTROPY * logits * flap * (1 - flap)
            slopes = np.stack([policy, 0.5 * np.clip(values - goal, -10, 10)], axis=1).astype(np.float32) / len(part)
            network.learn(layers, slopes, rate)


def evaluate(network: Network, name: str) -> tuple[float, float]:
    """Return pipes passed and the share of games that reach tick 300, on the first evaluation seeds."""
    batch = FlappyBatch(level(name), range(EVALUATED), max_ticks=300)
    while not (batch.terminated | batch.truncated).all():
        batch.step(network(batch.observe())[0] > 0)
    return float(batch.scores.mean()), float(batch.truncated.mean())


def train(name: str, steps: int, seed: int = 0) -> Network:
    """Train on the level `name` for about `steps` steps and print the curve."""
    dice = np.random.default_rng(seed)
    network, envs = Network(dice), FlappyBirdVectorEnv(GAMES, difficulty=name)
    seen, _ = envs.reset(seed=seed)
    over = np.zeros(GAMES, bool)
    updates, took, shown = steps // (GAMES * STEPS), 0.0, 0
    print(f"{name}: pipes (of 8) and share of {EVALUATED} games that survive 300 ticks")
    for update in range(updates + 1):
        if update * 12 >= shown * updates:
            shown += 1
            pipes, survived = evaluate(network, name)
            bar = "#" * round(5 * pipes)
            print(f"  {update * GAMES * STEPS:>10,} steps {took:>6.1f} s  {pipes:>5.2f}  {survived:>6.1%}  {bar}", flush=True)
        begun = time.perf_counter()
        data = collect(envs, network, seen, over, dice)
        seen, over = data["last"]
        improve(network, data, RATE * (1 - update / (updates + 1)), dice)
        took += time.perf_counter() - begun
    return network


def keep(network: Network, name: str, folder: Path, games: int = 10) -> None:
    """Write episodes of the learned policy to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(games):
        rollout = Rollout(level(name), seed, Rules())
        batch = FlappyBatch(level(name), [seed], max_ticks=300)
        while rollout.outcome is None:
            tap = bool(network(batch.observe())[0][0] > 0)
            rollout.fly([tap])
            batch.step(np.array([tap]))
        episode = finish(rollout, Player(kind="policy", name="ppo"), origin={"trained on": name})
        assert not verify(episode)
        save(episode, folder / f"{name}-{seed}.json")
    print(f"  {games} episodes written to {folder}")


def main(words: list[str] | None = None) -> None:
    """Learn, and print how it went."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.learning")
    parser.add_argument("--difficulty", choices=LEVELS, action="append", help="default: easy and hard")
    parser.add_argument("--steps", type=int, default=3_000_000)
    parser.add_argument("--episodes", type=Path, metavar="FOLDER", help="keep episodes of the learned policy")
    args = parser.parse_args(words or [])
    print(f"{machine()}\n")
    for name in args.difficulty or ["easy", "hard"]:
        network = train(name, args.steps)
        if args.episodes:
            keep(network, name, args.episodes)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
