"""How values are written on a page: filters of its templates. What comes from a run is escaped by the templates themselves."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

if TYPE_CHECKING:
    from flappybird.report.summary import Interval

DIGITS = {
    "reward": 2,
    "pipes_passed": 2,
    "survival_score": 1,
    "ticks": 1,
    "format": 3,
    "invalid_actions": 2,
    "tokens_per_turn": 1,
    "tokens": 0,
}
"""Decimals of the metrics; 2 for the others."""

_UNSHOWABLE = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
_UNSHOWABLE |= dict.fromkeys((*range(0xD800, 0xE000), 0x7F, 0xFFFE, 0xFFFF), 0xFFFD)


def clean(value: Any) -> Any:
    """Return `value` with what no file or browser can hold shown as symbols: control characters and lone surrogates.

    Every expression of a template goes through here before it is escaped; markup stays as it is.
    """
    if isinstance(value, str) and not isinstance(value, Markup):
        return value.translate(_UNSHOWABLE)
    return value


def number(value: float | None, metric: str) -> str:
    """Return a value of a metric, a dash where it is not known."""
    return "–" if value is None else minus(f"{value:.{DIGITS.get(metric, 2)}f}")


def span(interval: Interval | None, metric: str) -> str:
    """Return an interval of a metric: `[40.10, 56.30]`, nothing where there is none."""
    return f"[{number(interval.low, metric)}, {number(interval.high, metric)}]" if interval else ""


def percent(share: float) -> str:
    """Return a share of 1 in percent."""
    return f"{share:.0%}".replace("%", " %")


def minus(text: str) -> str:
    """Return a number's text with a real minus sign, never that of a zero."""
    return text.replace("-", "−") if text.strip("-0.") else text.lstrip("-")


def count(number: int, noun: str) -> str:
    """Return `3 seeds`, `1 seed`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def ordinal(number: int) -> str:
    """Return a number as people count.

    >>> [ordinal(number) for number in (1, 2, 3, 11, 22, 113)]
    ['1st', '2nd', '3rd', '11th', '22nd', '113th']
    """
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def moment(when: datetime | None) -> str:
    """Return an instant in UTC, as people read it; one without a time zone says so."""
    if when is None:
        return "unknown"
    if when.tzinfo is None:
        return f"{when:%Y-%m-%d %H:%M:%S}, time zone unknown"
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def as_json(value: Any) -> str:
    """Return plain values as JSON text."""
    return json.dumps(value, ensure_ascii=False, default=str, sort_keys=True)
