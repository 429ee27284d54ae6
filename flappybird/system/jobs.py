"""Work spread over processes, or over a cluster, by joblib: in the order of its tasks, the same however many there are.

A backend keeps options of its own: `RAY_ADDRESS` names the cluster of Ray, `DASK_SCHEDULER_ADDRESS` that of Dask, and whoever
calls from Python may choose anything that joblib knows, with `joblib.parallel_config`.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor
from itertools import islice
from typing import Any, TypeVar

from flappybird.errors import ConfigError, FlappyError, MissingPart, show
from flappybird.system.signals import held, out_of_reach_of_ctrl_c

BACKENDS = ("ray", "dask")
"""Clusters that commands can be pointed to; without one, work stays on this machine."""

AT_ONCE = 8
"""Tasks for each process that a backend is given at a time which returns their results together."""

T = TypeVar("T")
R = TypeVar("R")


def check_jobs(jobs: int | None, backend: str | None = None) -> None:
    """Raise ConfigError where `--jobs` or `--backend` is out of range."""
    if jobs is not None and jobs < 1:
        raise ConfigError(f"--jobs = {jobs}: must be at least 1")
    if backend is not None and backend not in BACKENDS:
        raise ConfigError(f"--backend = {show(backend)}: must be one of {', '.join(BACKENDS)}")


def spread(do: Callable[[T], R], tasks: Iterable[T], jobs: int | None = None, backend: str | None = None) -> Iterator[R]:
    """Yield `do(task)` for each of `tasks`, in their order.

    Tasks are taken as there is room for them, a few for each process, so that there may be more than memory holds.
    Ctrl-C and SIGTERM end the processes too; so does the end of this one.

    Args:
        do: a function of a module, which other processes import.
        tasks: what it is called with; must be picklable, as its results.
        jobs: processes; 1 for this one, None for one per processor, or as `joblib.parallel_config` says.
        backend: one of `BACKENDS`; None for this machine, or what `joblib.parallel_config` says.

    Raises:
        ConfigError: `jobs` or `backend` is out of range.
        MissingPart: the library of the backend is not installed.
        FlappyError: a process was ended from outside, or there is no such cluster.
    """
    check_jobs(jobs, backend)
    if jobs == 1 and backend is None:
        yield from map(do, tasks)
        return
    from joblib import Parallel, delayed, effective_n_jobs, parallel_config
    from joblib.parallel import get_active_backend

    with contextlib.ExitStack() as until_done:
        if backend is not None:
            until_done.enter_context(parallel_config(backend=_cluster(backend), n_jobs=-1))
        active, said = get_active_backend()
        options = {"n_jobs": jobs or said or -1, "batch_size": 1, "max_nbytes": None}
        if type(active).__name__ == "LokyBackend":
            yield from _on_this_machine(options, (delayed(do)(task) for task in tasks))
        elif active.supports_return_generator:
            yield from Parallel(return_as="generator", **options)(delayed(do)(task) for task in tasks)
        else:  # such as Ray's, which returns all results at once: so it is given some tasks at a time
            many = AT_ONCE * effective_n_jobs(options["n_jobs"])
            parallel, waiting = until_done.enter_context(Parallel(**options)), iter(tasks)
            while some := list(islice(waiting, many)):
                yield from parallel(delayed(do)(task) for task in some)


def _on_this_machine(options: dict[str, Any], calls: Iterable[Any]) -> Iterator[Any]:
    from joblib import Parallel
    from joblib.externals.loky.backend import resource_tracker

    resource_tracker.ensure_running()  # as `out_of_reach_of_ctrl_c` does with that of the standard library
    with held() as came, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "\\d+ tasks ", UserWarning)  # have not been used: of course, when it was told to stop
        results: Iterator[Any] = iter(())
        try:
            with out_of_reach_of_ctrl_c():
                results = Parallel(return_as="generator", initializer=_end_with, initargs=(os.getpid(),), **options)(calls)
            for result in results:
                yield result
                if came:
                    break
        except BrokenExecutor:
            raise FlappyError("a process was ended from outside; fewer need less memory: --jobs 1") from None
        finally:
            results.close()  # type: ignore[attr-defined]


def _end_with(parent: int) -> None:
    """Let this process end when its parent has; nothing else would tell it to."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    if os.name == "posix":
        threading.Thread(target=watch, daemon=True).start()


def _cluster(backend: str) -> str:
    """Connect to a cluster, once, or start one on this machine where none is named; return its name in joblib."""
    try:
        if backend == "ray":
            if "RAY_ADDRESS" not in os.environ:  # workers on this machine run in this environment, not in one that uv makes anew
                os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
            import ray
            from ray.util.joblib import register_ray

            if not ray.is_initialized():
                ray.init(log_to_driver=False, logging_level="error")
            register_ray()
        else:
            from distributed import Client, get_client

            try:
                get_client()
            except ValueError:
                Client()
    except ImportError:
        name = {"dask": "dask[distributed]"}.get(backend, backend)
        raise MissingPart(f"--backend {backend} needs {backend}: `pip install '{name}'`") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise FlappyError(f"--backend {backend}: {show(str(error), 200)}") from None
    return backend
