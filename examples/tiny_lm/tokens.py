"""The tokenizer: byte-level BPE, learnt from the demonstrations.

What is special about it is only where text is split before pairs are merged. Of each number, the integer part stays with the
name before it (`gapHeight:7`) and the two decimals stand apart (`.25`); the tags and the two actions stand apart, too. Everything
else may merge, so a whole short thought becomes one token. A turn is then 30 tokens long instead of 250, no number is spread
over tokens that mean something else elsewhere, and what never changes in a world costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

PAD, SYSTEM, ANSWER, END = "<|pad|>", "<|system|>", "<|answer|>", "<|end|>"
"""`SYSTEM` stands for the whole system prompt, whatever it says: in one world it is a constant, so there is nothing to read."""

APART = "|".join(
    [
        r"<FLAPPY id=",
        r">\n<OBS>\nbirdY:-?\d+",
        r"\nbirdX:\d+\.\d+\nvelY:-?\d+",
        r"\ngapHeight:\d+",
        r"\nbirdRadius:\d+\.\d+\npipes:\[(?:\(-?\d+)?",
        r"\),\(-?\d+",  # the next pipe's x ...
        r",-?\d+",  # ... and its gap
        r"\)?\]\nscore:\d+",
        r"\.\d+|\d+",
        r"\[TAP\]|\[\]|<THINK>|</THINK>\n<ACTIONS>|</ACTIONS>",
    ]
)
VOCABULARY = 1024


def train(texts: Iterable[str]) -> Tokenizer:
    """Return a tokenizer learnt from `texts`. Any text can be encoded and comes back the same."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(APART), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=[PAD, SYSTEM, ANSWER, END],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return tokenizer


def load(path: Path) -> Tokenizer:
    return Tokenizer.from_file(str(path))


def prompt(tokenizer: Tokenizer, seen: str) -> list[int]:
    """Return the tokens that the model reads before it answers: one for the system prompt, and the present observation."""
    ids: list[int] = tokenizer.encode(seen).ids
    return [tokenizer.token_to_id(SYSTEM), *ids, tokenizer.token_to_id(ANSWER)]


def reply(tokenizer: Tokenizer, text: str) -> list[int]:
    """Return the tokens of a reply and the end of it."""
    ids: list[int] = tokenizer.encode(text).ids
    return [*ids, tokenizer.token_to_id(END)]
