"""Saved evaluations and folders of episode files, as episodes.

A run is read once, here, for every command that works on one. What is read is never trusted: sizes are bounded, a
damaged line is skipped and counted, and a row without a usable transcript says why instead of an episode.
"""

from flappybird.runs.check import check, check_run
from flappybird.runs.frame import to_frame
from flappybird.runs.load import OpenRun, has_episodes, load_episode_at, load_run, load_runs, open_run
from flappybird.runs.results import error_of, run_of_outputs
from flappybird.runs.run import Row, Run, file_name

__all__ = [
    "OpenRun",
    "Row",
    "Run",
    "check",
    "check_run",
    "error_of",
    "file_name",
    "has_episodes",
    "load_episode_at",
    "load_run",
    "load_runs",
    "open_run",
    "run_of_outputs",
    "to_frame",
]
