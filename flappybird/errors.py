"""What can go wrong, as one small family: each message is one line that names the thing, the value and what is allowed.

FlappyError
├── ConfigError    a setting that no game can be played with (also a ValueError)
├── GameOver       a finished game was stepped
├── EpisodeError   an episode file or a saved run that cannot be read
├── TooMuchWork    a world too fine or a course too long for an exact search
└── MissingPart    an optional part is not installed, or is of a release without what was asked for
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class FlappyError(Exception):
    """Base of every error that this project raises on purpose."""


class ConfigError(FlappyError, ValueError):
    """A setting is unknown, of the wrong type, out of range, or makes a world that cannot be played."""


class GameOver(FlappyError, RuntimeError):
    """`step` was called on a game that has ended; the message says when and why it did."""


class EpisodeError(FlappyError, ValueError):
    """An episode or a saved run is missing, damaged, too large, or written by a newer version."""


class TooMuchWork(FlappyError):
    """An exact search would take too long or too much memory; the message gives both sizes."""


class MissingPart(FlappyError, ImportError):
    """An optional dependency is not installed, or its release lacks what was asked for."""


def show(value: object, limit: int = 60) -> str:
    """Return `value` on one line, at most about `limit` characters long, for a message."""
    try:
        text = ascii(value) if isinstance(value, str) and not value.isprintable() else repr(value)
    except (RecursionError, ValueError):  # nested too deeply, or an int of too many digits
        text = f"<{type(value).__name__}>"
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def printable(text: object) -> str:
    """Return `text` so that a terminal only shows it: control and formatting characters (escape sequences, bidi
    overrides, lone surrogates) are written as `\\x1b`, `\\u202e`; lines and tabs stay.
    """
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode("ascii") for char in str(text)
    )


def unknown_name(name: object, allowed: Iterable[str], what: str) -> str:
    """Return the line for a misspelt `name`: what it should have been, nearest first."""
    names = list(allowed)
    near = difflib.get_close_matches(name if isinstance(name, str) else show(name), names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{show(name)} is not {what}; {hint}allowed: {', '.join(names)}"
