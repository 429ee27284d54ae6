"""What `vf-eval` needs beside the environment: usage errors in one line, a run to go on with, a server that answers, a report."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from flappybird.episodes.arguments import Settings
from flappybird.errors import ConfigError, printable
from flappybird.report import FOLDER
from flappybird.runs import run_of_outputs
from flappybird.runs.resume import alone, is_saved, refuse_to_mix, set_errors_aside
from flappybird.system.network import why_unreachable


def under_vf_eval() -> bool:
    """Whether this process is the command `vf-eval`."""
    return Path(sys.argv[0]).stem == "vf-eval" or sys.argv[0].endswith("legacy/scripts/eval.py")


def refused(error: ConfigError) -> BaseException:
    """Return what to raise for a usage error: under `vf-eval`, which would bury it in a traceback, one line and exit 2."""
    if not under_vf_eval():
        return error
    print(f"flappybird: {error}", file=sys.stderr)
    return SystemExit(2)


def make_folder(settings: Settings) -> None:
    """Under `vf-eval`, make the folder of runs and reports, unless `settings` say where the report goes or want none."""
    if settings.report is None and under_vf_eval():
        # vf-eval saves below this folder where it exists: made now, runs and reports lie together from the first run on.
        with contextlib.suppress(OSError):  # not ours to write in: the games are played all the same
            FOLDER.parent.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def saved(settings: Settings, env_args: Any, asked: dict[str, Any]) -> Iterator[None]:
    """Keep the run that is being saved, new or resumed, to ourselves during the block.

    Args:
        settings: the environment's.
        env_args: its arguments, as the library keeps them.
        asked: the arguments of the library's `generate`: `results_path`, `save_results`, `sampling_args`.

    Raises:
        ConfigError: somebody plays for the run, or it is one of other settings. Under `vf-eval` SystemExit, see `refused`.
    """
    results, saving = _results(asked), bool(asked.get("save_results"))
    with contextlib.ExitStack() as until_the_end:
        if results is not None:
            try:
                if saving:
                    until_the_end.enter_context(alone(results))
                if is_saved(results):
                    refuse_to_mix(results, settings, env_args, asked.get("sampling_args"))
            except ConfigError as error:
                raise refused(error) from None
            if saving and is_saved(results):
                set_errors_aside(results)
        yield


async def require_server(client: Any) -> None:
    """End `vf-eval` in one line, with exit 1, where no model can be asked: the library would try for a minute in each rollout."""
    if not under_vf_eval():
        return
    for endpoint in getattr(client, "endpoint_configs", None) or [client]:
        url, key = getattr(endpoint, "api_base_url", None), getattr(endpoint, "api_key_var", "")
        problem = await asyncio.to_thread(why_unreachable, url, key) if url else None
        if problem is not None:
            print(printable(f"flappybird: {problem}"), file=sys.stderr)
            raise SystemExit(1)


@contextlib.contextmanager
def reported(settings: Settings, asked: dict[str, Any], plain: Callable[[Any], Any]) -> Iterator[None]:
    """Report on the rows that come during the block, where `settings` want it; under `vf-eval` also where they say nothing.

    Args:
        settings: the environment's.
        asked: the arguments of the library's `generate`; its `on_progress` gets a callback of ours.
        plain: the library's own way to turn what JSON does not know into JSON.
    """
    if settings.report is False or (settings.report is None and not under_vf_eval()):
        yield
        return
    watch = _Watch(plain)
    asked["on_progress"] = watch.beside(asked.get("on_progress"))
    try:
        yield
    finally:
        # Whatever ends the run, Ctrl-C included: what was finished is reported.
        watch.report(_results(asked) or Path("run"), settings.report, bool(asked.get("save_results")))


def _results(asked: dict[str, Any]) -> Path | None:
    path = asked.get("results_path")
    return None if path is None else Path(path)


class _Watch:
    """Sees the rows of an evaluation as they come, and reports on them in the end."""

    def __init__(self, plain: Callable[[Any], Any]) -> None:
        self.plain = plain
        self.outputs: list[Any] = []
        self.metadata: dict[str, Any] = {}

    def _see(self, outputs: list[Any], _: list[Any], metadata: dict[str, Any]) -> None:
        self.outputs, self.metadata = outputs, dict(metadata)

    def beside(self, others: Any) -> Any:
        """Return callbacks for the library with ours among them: a list runs beside its progress bar, a single one instead."""
        if others is None or isinstance(others, list):
            return [*(others or []), self._see]

        def both(*seen: Any) -> None:
            others(*seen)
            self._see(*seen)

        return both

    def report(self, run: Path, folder: bool | str | None, kept: bool) -> None:
        """Write the report and say where it is. A report that fails costs the run nothing but one line."""
        if not self.outputs:
            return
        try:
            from flappybird.report import report_name, write_report

            rows = json.loads(json.dumps([dict(output) for output in self.outputs], default=self.plain))
            about = json.loads(json.dumps(self.metadata, default=self.plain))
            read = run_of_outputs(rows, about, run)
            path = write_report([read], (Path(folder) if isinstance(folder, str) else FOLDER) / report_name(read))
            line = f"report: {path}" + (" (all runs, live: flappybird view)" if kept else "")
        except OSError as error:
            line = f"flappybird: no report: {error.filename or FOLDER}: {error.strerror or error}"
        except Exception as error:
            line = f"flappybird: no report: {type(error).__name__}: {error}"
        # After the library's own summary, which would paint over it.
        atexit.register(print, printable(line), flush=True)
