"""Supervised fine-tuning: the demonstrated reply becomes likelier, token by token. Loss on replies only."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from . import model
from .data import Turns
from .optimizer import compiled, optimizer

BATCH = 64
WARMUP = 20
"""Steps in which the learning rate grows from nothing."""


class Sft:
    """Training on demonstrations; a step is one batch of single turns."""

    def __init__(self, shape: model.Shape, weights: model.Weights, turns: Turns, seed: int) -> None:
        self.turns, self.seed = turns, seed
        moves = optimizer(0.02, 0.002)
        self.weights, self.state, self.steps = jax.tree.map(np.array, weights), moves.init(weights), 0
        self.update = compiled(lambda weights, batch: _loss(weights, shape, *batch), moves)

    def warm_up(self) -> None:
        """Compile."""
        self.update(self.weights, self.state, (self.turns.prompts[:BATCH], self.turns.replies[:BATCH]), 0.0)

    def step(self, share: float) -> dict[str, float]:
        """Learn from one batch, when `share` of the time is over: the learning rate follows half a cosine."""
        picked = np.random.default_rng([self.seed, self.steps]).integers(len(self.turns.prompts), size=BATCH)
        scale = min((self.steps + 1) / WARMUP, 1) * max((1 + math.cos(math.pi * share)) / 2, 0.03)
        batch = self.turns.prompts[picked], self.turns.replies[picked]
        self.weights, self.state, loss = self.update(self.weights, self.state, batch, scale)
        self.steps += 1
        return {"loss": float(loss)}


def _loss(weights: model.Weights, shape: model.Shape, prompts: jax.Array, replies: jax.Array) -> Any:
    return -model.log_probabilities(weights, shape, prompts, replies).sum() / (replies != 0).sum()
