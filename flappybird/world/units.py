"""Whole numbers inside, decimals at the edge.

Every length and speed of the game is a whole number of *units*, 1/10,000 of a world unit each, so that
nothing is ever rounded while the game runs. This module is the edge: it turns what people write into
units and units into what people and models read.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

UNITS = 10_000
"""Units in one world unit: the finest step that any length or speed can have is 0.0001."""

HUNDREDTH = UNITS // 100
"""Units in 0.01, the step of gap centres and gap heights."""


def to_units(value: float) -> int:
    """Return `value` (world units) in units.

    Raises:
        ValueError: `value` is not finite, or finer than 0.0001.
    """
    try:
        return exact_multiple(value, UNITS)
    except ValueError as error:
        raise ValueError(f"{value!r} is not a multiple of 0.0001") from error


def exact_multiple(value: float, parts: int) -> int:
    """Return how many 1/`parts` make up `value` exactly as it is written. Raises ValueError where none do."""
    scaled = Decimal(repr(value)) * parts
    if not scaled.is_finite() or scaled != scaled.to_integral_value():
        raise ValueError(f"{value!r} is not a multiple of 1/{parts}")
    return int(scaled)


def to_float(units: int) -> float:
    """Return `units` in world units: the float nearest to the exact decimal."""
    return units / UNITS


@lru_cache(maxsize=8192)
def to_text(units: int) -> str:
    """Return `units` as the decimal that models and people read: exact, two to four decimals, never `-0.00`.

    >>> to_text(-3000), to_text(0), to_text(61700), to_text(12345)
    ('-0.30', '0.00', '6.17', '1.2345')
    """
    whole, part = divmod(abs(units), UNITS)
    sign = "-" if units < 0 else ""
    if part % HUNDREDTH == 0:
        return f"{sign}{whole}.{part // HUNDREDTH:02d}"
    return f"{sign}{whole}.{part:04d}".rstrip("0")


def from_text(text: str) -> int:
    """Return the units that a decimal written by `to_text` (or by hand, as fine as 0.0001) stands for.

    Raises:
        ValueError: `text` is no decimal number, or finer than 0.0001.
    """
    try:
        scaled = Decimal(text) * UNITS
        if scaled == scaled.to_integral_value():
            return int(scaled)
    except ArithmeticError:
        pass
    raise ValueError(f"{text!r} is not a number with at most four decimals")


def half_text(units: int) -> str:
    """Return half of `units` as a decimal, exactly: with a fifth decimal where `units` is odd."""
    return to_text(units // 2) if units % 2 == 0 else f"{units / (2 * UNITS):.5f}"


def signed_text(halves: int) -> str:
    """Return `halves` (half units) as a decimal with its sign: `+18.80`, `-2.60`, `+0.00`."""
    return ("-" if halves < 0 else "+") + half_text(abs(halves))
