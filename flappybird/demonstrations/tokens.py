"""How many tokens a line of demonstrations is."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import ceil

from flappybird.system.tokens import Count, tokenizer, tokenizer_of

MARGIN = 1.3
"""What the bundled tokenizer counts, times this: those that split every digit need up to 23 % more for the same games.
A tokenizer that is named counts as it is."""

TOKENS_PER_MESSAGE = 6
"""What a chat template puts around a message, at the most: marks, the role, ends of lines."""

TOKENS_PER_LINE = 16
"""What it puts around all of them, at the most: a beginning, the empty thought of a reasoning model, an end."""


class Counter:
    """Counts the tokens of messages; remembers those of the texts that come again and again."""

    def __init__(self, count: Count, margin: float) -> None:
        self._count, self._margin = lru_cache(maxsize=1024)(count), margin

    def __call__(self, texts: Iterable[str]) -> int:
        """Return the most tokens that messages of these texts are, without what surrounds the line."""
        counts = [self._count(text) for text in texts]
        return ceil(sum(counts) * self._margin) + TOKENS_PER_MESSAGE * len(counts)


@lru_cache(maxsize=4)
def counter(name: str | None) -> Counter:
    """Return what counts by the tokenizer `name`, None for the bundled one. Raises ConfigError and MissingPart."""
    return Counter(tokenizer(), MARGIN) if name is None else Counter(tokenizer_of(name), 1.0)
