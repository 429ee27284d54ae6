"""Games in this process: text in, text out, through the same `Rollout` as behind every door, many games at a time."""

from __future__ import annotations

from statistics import mean
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer

from flappybird.episodes.arguments import Settings
from flappybird.episodes.rewards import PIPE_REWARD, WEIGHTS, survived
from flappybird.episodes.rollout import Rollout
from flappybird.protocol.window import NO_HISTORY
from flappybird.rollouts import Played, play_many

from . import model, tokens
from .data import pad_left

BATCHES = (16, 64)
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
    reward: float


def take(player: Player, rollouts: list[Rollout], temperature: float) -> list[Turn]:
    """Fly one turn of each game; return them in the same order."""
    said = player.answer([rollout.message() for rollout in rollouts], [temperature] * len(rollouts))
    turns = []
    for rollout, one in zip(rollouts, said, strict=True):
        passed = rollout.game.score
        rollout.take(one.text, cut=one.cut)
        lived = 0.0 if rollout.game.terminated else WEIGHTS["survival_score"] * survived(rollout.game.tick)
        turns.append(Turn(one, PIPE_REWARD * (rollout.game.score - passed) + lived))
    return turns


def validate(player: Player, difficulty: str, games: int) -> tuple[float, float]:
    """Return pipes and ticks, on average over validation games, where the likeliest reply is always given."""

    def reply(conversations: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
        seen = [conversation[-1]["content"] for conversation in conversations]
        return [{"text": said.text, "cut": said.cut} for said in player.answer(seen, [0.0] * len(seen))]

    settings = Settings.of(difficulty=difficulty, seed=VALIDATION_SEEDS, history_turns=NO_HISTORY)
    played: list[Played] = list(play_many(map(settings.evaluation_row, range(games)), reply, at_once=BATCHES[-1]))
    outcomes = [game.episode.outcome for game in played]
    return mean(outcome.pipes_passed for outcome in outcomes), mean(outcome.ticks for outcome in outcomes)
