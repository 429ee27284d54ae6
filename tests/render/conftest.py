"""The fixtures of `tests.samples`, here."""

from tests.samples import crash, crash_file, run, short_file, survivor

__all__ = ["crash", "crash_file", "run", "short_file", "survivor"]
