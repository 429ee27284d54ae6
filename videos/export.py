"""Many episodes → many files: in parallel, resumable, each whole or not there.

A file bears a mark of what it shows and how, so that one of another run, or at another size, is not taken for done.

Row N of a run goes to `episode-000N.mp4` (four digits, more where needed; see `file_name`), so that whoever reads the run can
find its pictures without asking.

The processes are our own, not `system.jobs`: one that is killed costs its file alone, where joblib gives up all of them, and
one that is told to stop clears away what its encoder has begun.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from multiprocessing import Pipe, get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import NamedTuple

from flappybird import runs
from flappybird.episodes.episode import Episode
from flappybird.errors import ConfigError, FlappyError
from flappybird.runs import Run
from flappybird.system.signals import held, out_of_reach_of_ctrl_c, terminate
from render.clip import Clip, Timing
from render.frames import Track
from render.layout import DEFAULT_SIZE, Size
from render.lettering import lacking
from render.moment import Overlay
from videos.writer import check_target, playable, write

FORMATS = ("mp4", "gif", "png")


class Job(NamedTuple):
    """One file to write; plain values, so that it can go to another process."""

    row: int
    episode: Episode
    path: Path
    size: Size = DEFAULT_SIZE
    timing: Timing = Timing()
    overlay: Overlay = Overlay()
    quality: str = "fast"


class Done(NamedTuple):
    """What became of a job."""

    row: int
    path: Path
    skipped: bool = False
    """Whether the file was there already, whole."""
    problem: str | None = None
    """Why there is no file."""
    lacking: str = ""
    """What its letters lack, see `render.lettering.lacking`."""


def file_name(index: int, kind: str = "mp4") -> str:
    """Return the name of the file of row `index` of a run.

    >>> file_name(12)
    'episode-0012.mp4'
    """
    return runs.file_name(index, kind)


def choose(run: Run, best: int = 0, worst: int = 0, median: int = 0) -> list[int]:
    """Return the rows of `run` that have an episode, in order: all, or those with the best, worst and median rewards."""
    rows = [row for row in run.rows if row.episode is not None]
    if not (best or worst or median):
        return [row.index for row in rows]
    # By reward, ties by position: the same rows every time.
    ranked = [row.index for row in sorted(rows, key=lambda row: (-row.episode.outcome.reward if row.episode else 0.0, row.index))]
    middle = max((len(ranked) - median) // 2, 0)
    return sorted({*ranked[:best], *ranked[max(len(ranked) - worst, 0) :], *ranked[middle : middle + median]})


def check_workers(workers: int) -> None:
    """Raise ConfigError where `workers` is out of range."""
    if not 1 <= workers <= 64:
        raise ConfigError(f"workers = {workers}: must be from 1 to 64")


def export(jobs: Sequence[Job], workers: int = 1) -> Iterator[Done]:
    """Write the file of each job and yield what became of it, as it is done; one that fails does not stop the rest.

    Args:
        jobs: what to write.
        workers: processes that write at the same time.

    Raises:
        ConfigError: `workers` is out of range.
    """
    check_workers(workers)
    todo = []
    for job in jobs:
        if whole(job.path, mark(job)):
            yield Done(job.row, job.path, skipped=True)
        else:
            todo.append(job)
    if workers == 1 or len(todo) < 2:
        yield from map(run_job, todo)
    else:
        yield from _in_parallel(todo, min(workers, len(todo)))


def _in_parallel(jobs: Sequence[Job], workers: int) -> Iterator[Done]:
    waiting = list(reversed(jobs))
    busy: dict[Connection, tuple[SpawnProcess, Job]] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < workers:
                process, pipe = _start()
                busy[pipe] = process, _send(pipe, waiting.pop())
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                process, job = busy.pop(ready)
                try:
                    yield ready.recv()
                    if waiting:
                        busy[ready] = process, _send(ready, waiting.pop())
                        continue
                except (EOFError, OSError):
                    yield Done(job.row, job.path, problem="its process was killed")
                    process.join()
                    _clear(job.path)
                ready.close()
                process.join()
    finally:
        # Told to stop: so are the workers, which clear away what they have begun.
        for pipe, (process, _) in busy.items():
            process.terminate()
            pipe.close()
        for process, job in busy.values():
            process.join(5)
            process.kill()
            process.join()
            _clear(job.path)


def _start() -> tuple[SpawnProcess, Connection]:
    """Start a worker. Spawned, not forked: nothing that this process has drawn or opened goes along."""
    ours, theirs = Pipe()
    process = get_context("spawn").Process(target=_work, args=(theirs,), daemon=True)
    with held(), out_of_reach_of_ctrl_c():
        process.start()
    theirs.close()
    return process, ours


def _clear(path: Path) -> None:
    """Remove what a worker that has ended left of `path` under temporary names, see `files.replacing`."""
    for left in path.parent.glob(f".{path.stem[:40]}-*{path.suffix}"):
        left.unlink(missing_ok=True)


def _send(pipe: Connection, job: Job) -> Job:
    with contextlib.suppress(OSError):  # a worker that has died is noticed when its answer is read
        pipe.send(job)
    return job


def _work(pipe: Connection) -> None:
    """Do jobs until there are no more. Ends with its parent: told to, by SIGTERM, or left alone."""
    signal.signal(signal.SIGTERM, terminate)
    threading.Thread(target=_watch, daemon=True).start()
    with contextlib.suppress(EOFError, OSError):
        while True:
            pipe.send(run_job(pipe.recv()))


def _watch() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


def run_job(job: Job) -> Done:
    """Write the file of one job."""
    try:
        clip = Clip([Track(job.episode)], job.size, job.timing, job.overlay)
        kind = check_target(job.path)
        if kind == ".png":
            clip.pace = clip.pace._replace(ticks=clip.pace.ticks[-1:])
        write(job.path, clip.frames(), job.size, clip.fps, clip.samples() if kind == ".gif" else (), job.quality, mark(job))
        return Done(job.row, job.path, lacking=lacking())
    except (FlappyError, OSError) as error:
        return Done(job.row, job.path, problem=str(error))


def mark(job: Job) -> str:
    """Return what tells the file of this job from those of others: a digest of the episode and of how it is shown."""
    shown = job.episode.to_json(), job.path.suffix, job.size, job.timing, job.overlay, job.quality
    return "flappybird-" + hashlib.sha256(repr(shown).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def whole(path: Path, mark: str = "") -> bool:
    """Whether `path` is there, was written to its end, and bears `mark`."""
    if not path.is_file():
        return False
    try:
        data = path.read_bytes()
        if path.suffix == ".mp4":
            return playable(path) and mark.encode() in data
    except OSError:
        return False
    end = {".gif": b"\x3b", ".png": b"IEND\xaeB`\x82"}[path.suffix]
    return data.endswith(end) and mark.encode() in data
