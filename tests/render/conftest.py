"""The fixtures of `tests.episodes`, here."""

from tests.episodes import crash, crash_file, run, short_file, survivor

__all__ = ["crash", "crash_file", "run", "short_file", "survivor"]
