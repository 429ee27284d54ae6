"""The fixtures of `tests.browser` and `tests.episodes`, here."""

from tests.browser import browser
from tests.episodes import run

__all__ = ["browser", "run"]
