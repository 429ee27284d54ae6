"""Remembering what was worked out, as long as all of it takes no more than a number of bytes."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import ParamSpec, Protocol, TypeVar

from cachetools import LRUCache, cached


class Sized(Protocol):
    """Anything that knows how much memory it takes."""

    @property
    def size(self) -> int:
        """Bytes, about."""
        ...


P = ParamSpec("P")
T = TypeVar("T", bound=Sized)


def remembered(most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that keeps what a function returned last, as long as all of it takes no more than `most` bytes.

    For results whose sizes lie far apart, so that counting them would bound nothing.
    """
    decorate: Callable[[Callable[P, T]], Callable[P, T]] = cached(LRUCache(most, getsizeof=lambda found: found.size), lock=Lock())
    return decorate
