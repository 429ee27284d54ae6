"""The fixture of `tests.browser`, here."""

from tests.browser import browser

__all__ = ["browser"]
