"""Demonstrations as tokens: what a policy of the package read and said, turn by turn.

They come from `flappybird.sft`, the same that `flappybird sft` writes to a file. Two things are simplified. A turn stands alone:
the observation is the whole state of the game, so nothing is lost by forgetting the turns before. And of each
thought only the last sentence is kept ("Both ways live, hold the middle: no TAP."): with nine numbers in every thought a
model of this size spends its budget on copying digits.
"""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tokenizers import Tokenizer
from tqdm import tqdm

from flappybird.sft import Demonstration, Plan, demonstrations
from flappybird.world.game import FlappyGame, State
from flappybird.world.levels import level

from . import tokens

TOKENIZER_TURNS = 20_000
"""Turns that the tokenizer learns from, besides a few games on harder levels: it should know their numbers, too."""

HARDER = 15

_BEFORE_LAST = re.compile(r"<THINK>.*\. (?=[^.]+\.</THINK>)")


STARTS = 4
"""States of each demonstrated game in which games of RL begin."""


class Turns(NamedTuple):
    """Demonstrated turns. Prompts are padded on the left, so that every reply begins in the same place."""

    prompts: np.ndarray
    """int16, (turns, longest prompt)"""
    replies: np.ndarray
    """int16, (turns, longest reply), padded on the right"""
    starts: np.ndarray
    """int64, (states, 4): seed, tick, y and velocity (units) of states that a game can begin in"""


def short(reply: str) -> str:
    """Return a reply with its thought cut to the last sentence."""
    return _BEFORE_LAST.sub("<THINK>", reply)


def make(games: int, difficulty: str, folder: Path) -> None:
    """Write `tokenizer.json` and `turns.npz` to `folder`: as many games, half of them from a state off course."""
    plan = Plan(games=games, levels=(difficulty,), perturbed=0.5)
    flown = tqdm(demonstrations(plan), total=games, desc="demonstrations", unit="game", disable=None, leave=False)
    turns: list[tuple[str, str]] = []
    starts: list[tuple[int, ...]] = []
    for game in flown:
        turns += ((seen, short(reply)) for seen, reply in zip(game.seen, game.replies, strict=True))
        starts += ((game.seed, *state) for state in midway(game))
    harder = demonstrations(Plan(games=HARDER, levels=("medium", "hard", "expert"), perturbed=0.5))
    texts = [*chain.from_iterable(turns[:TOKENIZER_TURNS]), *(seen for game in harder for seen in game.seen)]
    tokenizer = tokens.train(texts)
    prompts = [tokens.prompt(tokenizer, seen) for seen, _ in turns]
    replies = [tokens.reply(tokenizer, reply) for _, reply in turns]
    pad = tokenizer.token_to_id(tokens.PAD)
    tokenizer.save(str(folder / "tokenizer.json"))
    np.savez(
        folder / "turns.npz",
        prompts=pad_left(prompts, max(map(len, prompts)), pad),
        replies=pad_right(replies, max(map(len, replies)), pad),
        starts=np.array(starts),
    )


def midway(game: Demonstration) -> list[State]:
    """Return states of a demonstrated game: the first one, and others at even distances."""
    flown, states = FlappyGame(level(game.level), game.seed, state=game.start), []
    for number, tap in enumerate(game.taps):
        if number % -(-len(game.taps) // STARTS) == 0:
            states.append(flown.state)
        flown.step(tap)
    return states


def load(folder: Path) -> tuple[Tokenizer, Turns]:
    """Return what `make` wrote."""
    with np.load(folder / "turns.npz") as arrays:
        return tokens.load(folder / "tokenizer.json"), Turns(arrays["prompts"], arrays["replies"], arrays["starts"])


def pad_left(rows: list[list[int]], length: int, pad: int) -> np.ndarray:
    """Return rows of tokens as an int16 array (rows, length); of one that is too long, the end is kept."""
    padded = np.full((len(rows), length), pad, np.int16)
    for line, row in zip(padded, rows, strict=True):
        line[max(length - len(row), 0) :] = row[-length:]
    return padded


def pad_right(rows: list[list[int]], length: int, pad: int) -> np.ndarray:
    """Return rows of tokens as an int16 array (rows, length)."""
    padded = np.full((len(rows), length), pad, np.int16)
    for line, row in zip(padded, rows, strict=True):
        line[: len(row)] = row
    return padded
