"""Games in this process: text in, text out, through the same `Rollout` as behind every door, many games at a time."""

from __future__ import annotations

from statistics import mean
from typing import NamedTuple

import numpy as np
from tokenizers import Tokenizer

from flappybird.episodes.arguments import Settings, start
from flappybird.episodes.rewards import WEIGHTS, survival
from flappybird.episodes.rollout import Rollout

from . import model, tokens
from .data import pad_left

BATCHES = (8, 16, 32, 64)
"""Numbers of prompts that are answered at once; what waits is padded to one of them, since each is compiled for seconds."""

VALIDATION_SEEDS = 1_000_000
"""Checkpoints are chosen on the seeds from here on; the final evaluation has the seeds from 0 on, RL those of training."""


class Player:
    """A checkpoint that answers texts with texts."""

    def __init__(self, tokenizer: Tokenizer, shape: model.Shape, weights: model.Weights, seed: int = 0) -> None:
        self.tokenizer, self.shape, self.weights = tokenizer, shape, weights
        self.end = tokenizer.token_to_id(tokens.END)
        self.dice = np.random.default_rng(seed)

    def warm_up(self) -> None:
        """Compile for all sizes of a batch."""
        for batch in BATCHES:
            self.answer([""] * batch, [0.0] * batch)

    def answer(self, seen: list[str], temperatures: list[float], longest: int | None = None) -> list[Said]:
        """Return a reply to each observation."""
        prompts = pad_left([tokens.prompt(self.tokenizer, text) for text in seen], self.shape.prompt, 0)
        longest = longest or self.shape.reply + 2
        said: list[Said] = []
        while len(said) < len(seen):
            rest = len(seen) - len(said)
            batch = next((size for size in BATCHES if size >= rest), BATCHES[-1])
            here = slice(len(said), len(said) + batch)
            part = np.zeros((batch, self.shape.prompt), np.int16)
            part[: min(batch, rest)] = prompts[here]
            warmth = np.zeros(batch, np.float32)
            warmth[: min(batch, rest)] = temperatures[here]
            seed = np.int32(self.dice.integers(2**31))
            ids, chances, hidden = map(np.asarray, model.answer(self.weights, self.shape, self.end, longest, part, warmth, seed))
            kept = self.shape.reply
            for prompt, row, chance, thought in zip(part[:rest], ids[:rest], chances[:rest], hidden[:rest], strict=True):
                text = self.tokenizer.decode([token for token in row.tolist() if token > 0], skip_special_tokens=True)
                said.append(Said(text, prompt, row[:kept], chance[:kept], thought, self.end not in row))
        return said


class Said(NamedTuple):
    """One reply and how it came about."""

    text: str
    prompt: np.ndarray
    """int16, (longest prompt,)"""
    reply: np.ndarray
    """int32, (longest reply,)"""
    chances: np.ndarray
    """float32, (longest reply,): log probability of each token"""
    hidden: np.ndarray
    """float32, (width,): what the model made of the prompt"""
    cut: bool


class Turn(NamedTuple):
    """One turn of a game: what was said, and the reward of the tick that followed."""

    said: Said
    tick: int
    reward: float


def fly(player: Player, rollouts: list[Rollout], temperature: float) -> list[list[Turn]]:
    """Play all games to their ends, side by side; return the turns of each."""
    flown: list[list[Turn]] = [[] for _ in rollouts]
    while going := [number for number, rollout in enumerate(rollouts) if rollout.outcome is None]:
        replies = player.answer([rollouts[number].message() for number in going], [temperature] * len(going))
        for number, said in zip(going, replies, strict=True):
            rollout = rollouts[number]
            tick, passed = rollout.game.tick, rollout.game.score
            rollout.take(said.text, cut=said.cut)
            crashed = rollout.outcome is not None and rollout.outcome.reason.crashed
            lived = 0.0 if crashed else survival(tick + 1) - survival(tick)
            reward = WEIGHTS["pipes_passed"] * (rollout.game.score - passed) + WEIGHTS["survival_score"] * lived
            flown[number].append(Turn(said, tick, reward))
    return flown


def validate(player: Player, difficulty: str, games: int) -> tuple[float, float]:
    """Return pipes and ticks, on average over validation games, where the likeliest reply is always given."""
    settings = Settings.of(difficulty=difficulty, seed=VALIDATION_SEEDS)
    rollouts = [start(settings.evaluation_row(number)) for number in range(games)]
    fly(player, rollouts, 0.0)
    return mean(rollout.game.score for rollout in rollouts), mean(rollout.game.tick for rollout in rollouts)
