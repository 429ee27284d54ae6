"""The fixtures of `tests.browser` and `tests.samples`, here."""

from tests.browser import browser
from tests.samples import run

__all__ = ["browser", "run"]
