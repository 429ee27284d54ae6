"""Small pieces of HTML. What is called text here is escaped here; what is called markup has been escaped before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from flappybird.report.data import NO_TRANSCRIPT
from flappybird.report.summary import Interval

DIGITS = {
    "reward": 2,
    "pipes_passed": 2,
    "survival_score": 1,
    "ticks": 1,
    "format": 3,
    "invalid_actions": 2,
    "tokens_per_turn": 1,
}
"""Decimals of the metrics; 2 for the others."""

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"}


def esc(value: object) -> str:
    """Return `value` as HTML that shows it literally: no markup, control characters and lone surrogates as symbols."""
    shown = []
    for letter in str(value):
        code = ord(letter)
        if letter in _ENTITIES:
            shown.append(_ENTITIES[letter])
        elif code < 32 and letter not in "\n\t":
            shown.append(chr(0x2400 + code))
        elif 0xD800 <= code < 0xE000 or code in (0x7F, 0xFFFE, 0xFFFF):
            shown.append("\ufffd")
        else:
            shown.append(letter)
    return "".join(shown)


def name_of(text: str) -> str:
    """A name from outside, whose writing direction stays its own."""
    return f"<bdi>{esc(text)}</bdi>"


def section(name: str, title: str, markup: str, beside: str = "") -> str:
    """A section with its heading; `beside` (markup) stands on the heading's line."""
    return (
        f'<section id="{name}" aria-labelledby="{name}-title"><div class="section-head"><h2 id="{name}-title">{esc(title)}</h2>'
        f"{beside}</div>{markup}</section>"
    )


def notice(text: str, *, bad: bool = False) -> str:
    """A line that stands out."""
    return f'<p class="notice{" bad" if bad else ""}">{esc(text)}</p>'


def table(head: Sequence[str], rows: Iterable[str], *, caption: str = "", tall: str = "", left: Sequence[str] = ()) -> str:
    """A table that scrolls by itself.

    Args:
        head: column names, text; those that are also in `left` are aligned left.
        rows: markup of whole rows.
        caption: markup.
        tall: what to call the table's region where it may be long enough to scroll up and down.
    """
    cells = "".join(heading(name, name in left) for name in head)
    top = f"<caption>{caption}</caption>" if caption else ""
    return f"{scroll(tall)}<table>{top}<thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def scroll(tall: str = "") -> str:
    """The opening of a box that scrolls sideways; if `tall` names it, also up and down, by keyboard too."""
    return f'<div class="scroll tall" tabindex="0" role="region" aria-label="{esc(tall)}">' if tall else '<div class="scroll">'


def heading(name: str, left: bool = False) -> str:
    """A column's heading."""
    return f'<th scope="col"{" class=left" if left else ""}>{esc(name)}</th>' if name else "<td></td>"


def tr(cells: Iterable[str], *, name: str = "", look: str = "") -> str:
    """A row of cells (markup), after the row's own heading `name` (markup) if given."""
    first = f'<th scope="row">{name}</th>' if name else ""
    return f"<tr{f' class={look}' if look else ''}>{first}{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def dot(look: str) -> str:
    """A spot of colour."""
    return f'<span class="dot {look}"></span>'


def end_look(end: str) -> str:
    """The class of a way to end, a key of `data.ENDS`."""
    return "e-none" if end == NO_TRANSCRIPT else f"e-{end}"


def number(metric: str, value: float) -> str:
    """A value of a metric."""
    return f"{value:.{DIGITS.get(metric, 2)}f}"


def span(metric: str, interval: Interval | None) -> str:
    """An interval of a metric."""
    return f"{number(metric, interval.low)} to {number(metric, interval.high)}" if interval else "–"


def count(number: int, noun: str) -> str:
    """`3 seeds`, `1 seed`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def moment(when: datetime | None) -> str:
    """Return an instant in UTC, as people read it; one without a time zone says so."""
    if when is None:
        return "unknown"
    if when.tzinfo is None:
        return f"{when:%Y-%m-%d %H:%M:%S}, time zone unknown"
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
