"""The fixtures of `tests.episodes`, here."""

from tests.episodes import run

__all__ = ["run"]
