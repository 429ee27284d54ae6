"""What a chart is: marks on two axes, as data. `svg` draws it for the page, `export` for a paper."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, NamedTuple

Kind = Literal["bar", "line", "step", "dot", "down", "up", "ring", "dash", "band"]
"""`down` and `up` are triangles, `dash` is a short level stroke, `band` a pale area behind everything else."""


class Mark(NamedTuple):
    """Something drawn."""

    kind: Kind
    look: str
    """A name of `palette.TOKENS`."""
    points: tuple[tuple[float, float], ...]
    """In the units of the axes; two opposite corners of a bar or a band."""
    title: str = ""
    """What it stands for, in words: shown under the pointer."""
    link: str = ""
    """Fragment of the page that opens its episodes."""
    dash: str = ""
    """How a line is broken, as SVG writes it."""
    width: float = 1.8


class Axis(NamedTuple):
    """One axis."""

    label: str
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    grid: bool = True


class Key(NamedTuple):
    """An entry of a legend."""

    label: str
    look: str
    kind: Kind
    dash: str = ""
    run: int | None = None
    """The run that it stands for."""


class Chart(NamedTuple):
    """One chart."""

    name: str
    title: str
    caption: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    legend: tuple[Key, ...] = ()
    height: int = 290
    """Of the drawing that is 440 wide."""


def round_ticks(low: float, high: float, most: int = 6, whole: bool = False) -> tuple[tuple[float, str], ...]:
    """Return at most about `most` ticks at round numbers from `low` to `high`, with their labels.

    >>> [label for _, label in round_ticks(0, 103)]
    ['0', '20', '40', '60', '80', '100']
    """
    if not high > low:
        return ((low, f"{low:g}"),)
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    if whole:
        step = max(step, 1.0)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return tuple((number * step, f"{number * step:g}".replace("-", "−")) for number in range(first, last + 1))


def percent_axis(label: str) -> Axis:
    """Return an axis of shares."""
    return Axis(label, 0, 1, tuple((share / 4, f"{25 * share} %") for share in range(5)))


def axis(label: str, values: Iterable[float], *, start: float | None = 0, whole: bool = False, grid: bool = True) -> Axis:
    """Return an axis that holds `values`, and begins at `start` where given."""
    values = list(values)
    low, high = min(values, default=0.0), max(values, default=1.0)
    low = low if start is None else min(start, low)
    high = high if high > low else low + 1
    room = 0.04 * (high - low)
    low = low - room if start is None or low < start else low
    return Axis(label, low, high + room, round_ticks(low, high + room, whole=whole), grid)
