"""Ctrl-C and SIGTERM: when they may strike, and whom they reach."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any

BOTH = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def held() -> Iterator[list[int]]:
    """Let Ctrl-C and SIGTERM take effect only after the block, which sees them in the list that it is given.

    For work that an exception in its middle would leave half done with nobody to know of it: locks held, processes that belong
    to no one, files under temporary names. Masking the signals would not do: another thread of the process takes them then, and
    Python handles them in the main thread all the same. In other threads, where no signal strikes, nothing is done.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before: dict[signal.Signals, Any] = {}
    try:
        for which in BOTH:
            before[which] = signal.signal(which, lambda number, _: came.append(number))
        yield came
    finally:
        for which, handler in before.items():
            signal.signal(which, signal.SIG_DFL if handler is None else handler)
        if came:
            signal.raise_signal(came[0])


@contextlib.contextmanager
def out_of_reach_of_ctrl_c() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach, though a terminal sends it to all: each would print a traceback.

    Their parent ends them.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # which lifts the mask when it starts, as it else would in the middle of the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # new processes inherit what is blocked
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def terminate(*_: object) -> None:
    """Handle SIGTERM: end with 143, as after a Ctrl-C, cleaning up; once, since cleaning up is not to be cut short."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(128 + signal.SIGTERM)
