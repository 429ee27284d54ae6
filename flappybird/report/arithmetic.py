"""Numbers said in a thought against what they should be: sums that do not add up, and states that no action leads to.

Only what is written out is judged: `1.30 + 1.60 = 3.10`, `birdY becomes 2.40`. Nothing is guessed from prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from flappybird.world.course import Physics
from flappybird.world.game import State
from flappybird.world.units import UNITS

LONGEST = 20_000
"""Characters of a thought that are looked at."""

_NUMBER = r"[-−]?\d{1,6}(?:\.\d{1,6})?"
_SUM = re.compile(
    rf"(?<![\d.,+*×/(\-−–])({_NUMBER}(?:\s{{0,3}}[+\-−*×]\s{{0,3}}\(?{_NUMBER}\)?){{1,4}})\s{{0,3}}=\s{{0,3}}({_NUMBER})(?![\d%/*×(]|\.\d)"
)
_STEP = re.compile(rf"\s{{0,3}}([+\-−*×])\s{{0,3}}\(?({_NUMBER})\)?")
_BECOMES = re.compile(
    rf"\b(birdY|velY)(?:\s{{1,3}}{_NUMBER})?\s{{0,3}}(?:becomes|→|->|will be)\s{{0,3}}({_NUMBER})"
    r"(?![\d%/*×]|\.\d|\s{0,3}[+\-−*×]\s?\d)",
    re.IGNORECASE,
)


class Slip(NamedTuple):
    """A number in a thought that is wrong."""

    said: str
    right: str

    def __str__(self) -> str:
        return f"says {self.said}; it is {self.right}"


def slips(thought: str, before: State | None = None, physics: Physics | None = None) -> list[Slip]:
    """Return what is wrong in `thought`, in the order in which it is said.

    Args:
        thought: what the model wrote.
        before: the state that was answered. Given where a reply decides exactly the next tick: then what a bird *becomes*
            must be what a TAP or holding leads to.
        physics: the world's.

    >>> [str(slip) for slip in slips("birdY 1.30 + 1.60 = 3.10, still inside")]
    ['says 1.30 + 1.60 = 3.10; it is 2.90']
    """
    thought = thought[:LONGEST]
    found = [(match.start(), slip) for match in _SUM.finditer(thought) if (slip := _sum(match))]
    if before is not None and physics is not None:
        found += list(_states(thought, before, physics))
    return [slip for _, slip in sorted(found, key=lambda one: one[0])]


def _sum(match: re.Match[str]) -> Slip | None:
    left, said = match.groups()
    try:
        right = _worth(left)
        claimed = _decimal(said)
    except InvalidOperation:
        return None
    if _same(claimed, right):
        return None
    return Slip(" ".join(match[0].split()), _text(right))


def _worth(text: str) -> Decimal:
    """Return the value of a sum of products, each with at most a few terms."""
    first = re.match(_NUMBER, text)
    assert first
    total, term = Decimal(0), _decimal(first[0])
    for sign, number in _STEP.findall(text[first.end() :]):
        value = _decimal(number)
        if sign in "*×":
            term *= value
        else:
            total, term = total + term, value if sign == "+" else -value
    return total + term


def _states(thought: str, before: State, physics: Physics) -> Iterator[tuple[int, Slip]]:
    velocities = (physics.jump, before.velocity + physics.gravity)
    may = {"vely": velocities, "birdy": tuple(before.y + velocity for velocity in velocities)}
    for match in _BECOMES.finditer(thought):
        name, said = match[1], _decimal(match[2])
        right = [Decimal(units) / UNITS for units in may[name.lower()]]
        if not any(_same(said, value) for value in right):
            yield match.start(), Slip(f"{name} becomes {match[2]}", f"{_text(right[0])} with a TAP, {_text(right[1])} without")


def _same(said: Decimal, right: Decimal) -> bool:
    """Whether a number is right as far as it was written out: 2.4 and 2.45 are both right for 2.449."""
    exponent = said.as_tuple().exponent
    return abs(said - right) <= Decimal(1).scaleb(exponent if isinstance(exponent, int) else 0) / 2


def _decimal(text: str) -> Decimal:
    return Decimal(text.replace("−", "-"))


def _text(value: Decimal) -> str:
    return f"{value.quantize(Decimal('0.0001')).normalize():f}" if value % 1 else f"{value:.0f}"
