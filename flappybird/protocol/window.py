"""The block window: which turns a model still sees."""

from __future__ import annotations

NO_HISTORY = -1
"""As `history_turns`: a model sees no turn but the present one."""


def first_kept(turns: int, history_turns: int) -> int:
    """Return the first turn that a model still sees when `turns` are over: a block window over the last of them.

    The window grows from k = `history_turns` to 2k - 1 turns and is then cut back to k. So between two cuts a conversation
    only grows at its end: what a provider has cached of it stays valid, and a trainer makes one sample of it.

    >>> [first_kept(turns, 3) for turns in range(10)]
    [0, 0, 0, 0, 0, 0, 3, 3, 3, 6]
    """
    if history_turns == NO_HISTORY:
        return turns
    return max(turns // history_turns - 1, 0) * history_turns if history_turns else 0
