"""A path → a run: what is there is recognised, and read by the reader of its format."""

from __future__ import annotations

from pathlib import Path

from flappybird.episodes.episode import Episode, load
from flappybird.errors import EpisodeError
from flappybird.runs.results import read_results
from flappybird.runs.run import Row, Run, numbered
from flappybird.runs.traces import read_traces
from flappybird.world.game import Reason


def load_run(path: str | Path) -> Run:
    """Return the run at `path`: an episode file, a folder of them, or what `vf-eval` (or v1's `eval`, `replay`, `gepa`) saved.

    Raises:
        EpisodeError: there is nothing to read, or it is no run.
    """
    path = Path(path)
    if path.is_file() and path.suffix == ".json":
        return _episodes(path, [path])
    folder = path.parent if path.name in ("results.jsonl", "traces.jsonl") else path
    if (folder / "results.jsonl").is_file():
        return read_results(folder)
    if (folder / "traces.jsonl").is_file():
        return read_traces(folder)
    # Names with a dot are what `files.replacing` writes to: a process that was killed may have left one.
    files = sorted(file for file in path.glob("*.json") if not file.name.startswith(".")) if path.is_dir() else []
    if files:
        return _episodes(path, files)
    if not path.exists():
        raise EpisodeError(f"{path}: no such file or folder")
    levels = ("*", "*/*", "*/*/*")
    below = (
        found.parent for depth in levels for name in ("results", "traces") for found in sorted(path.glob(f"{depth}/{name}.jsonl"))
    )
    first = next(below, None)
    hint = f"; below it is one: {first}" if first else " (results.jsonl, traces.jsonl)"
    raise EpisodeError(f"{path}: neither an episode file, nor a folder of them, nor a saved evaluation{hint}")


def load_episode_at(where: str) -> Episode:
    """Return the episode that `where` names: an episode file, or `RUN:N` for row N of a run.

    Raises:
        EpisodeError: there is none.
    """
    run, colon, number = where.rpartition(":")
    if not colon or not number.isdigit() or Path(where).exists():
        rows = load_run(where).rows
        if len(rows) != 1:
            raise EpisodeError(f"{where}: has {len(rows)} episodes; name one as {where}:N, N from 0")
        row = rows[0]
    else:
        rows = load_run(run).rows
        if int(number) >= len(rows):
            raise EpisodeError(f"{where}: {run} has {len(rows)} episodes, N must be from 0 to {len(rows) - 1}")
        row = rows[int(number)]
    if row.episode is None:
        raise EpisodeError(f"{where}: {row.problem}")
    return row.episode


def _episodes(path: Path, files: list[Path]) -> Run:
    rows: list[Row] = []
    for index, file in enumerate(files):
        try:
            episode = load(file)
        except EpisodeError as fault:
            if len(files) == 1:
                raise
            rows.append(Row(index, None, problem=str(fault)))
            continue
        claims = {name: float(getattr(episode.outcome, name)) for name in ("reward", "pipes_passed", "survival_score", "format")}
        error = episode.outcome.error or "error" if episode.outcome.reason is Reason.ERROR else None
        rows.append(Row(index, episode, error=error, claims=claims, example=episode.seed))
    names = {row.episode.player.name for row in rows if row.episode}
    return Run(path, "episodes", ", ".join(sorted(names)) or "unknown", numbered(rows), asked=len(rows))
