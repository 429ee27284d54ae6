"""Tables for a terminal."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[str]], words: Collection[int] = (0,)) -> str:
    """Return a plain table: the columns numbered in `words` are set left, all others, which hold numbers, right.

    >>> print(table(("policy", "pipes"), [("noop", "0"), ("planner", "12")]))
    policy   pipes
    noop         0
    planner     12
    """
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, *rows):
        cells = (
            cell.ljust(width) if at in words else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
