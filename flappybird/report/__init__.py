"""A run → one page: what happened, why, and every episode to be watched again.

`data` checks and explains every rollout, `causes` says what lost it, `summary` and `overview` compute the numbers, `charts` says
what is drawn, `payload` packs what the player needs, `context` gathers it all and `page` fills the templates with it. The page is
one self-contained file. `export` writes the same charts and tables for a paper.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import sys
import webbrowser
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal

from flappybird._version import __version__
from flappybird.errors import ConfigError, printable, show
from flappybird.runs import Run, load_runs
from flappybird.runs.training import is_training
from flappybird.system.files import write_text

FOLDER = Path("environments/flappybird/reports")
"""Where reports are written when nothing else is said, from the folder in which the command runs."""


def write_report(runs: list[Run], path: Path, *, videos: Path | None = None, select: Collection[int] = ()) -> Path:
    """Write the report of `runs` under `path`, whole or not at all, and return `path`.

    Args:
        runs: one run, or several to compare.
        path: the HTML file; folders that are missing are made.
        videos: a folder of exported videos to link to; `videos` inside each run if not given.
        select: indices of rows whose replays the page holds, also where it has no room for all.
    """
    from flappybird.report.data import gather
    from flappybird.report.page import build

    path = Path(path)
    page = build(gather(runs, videos), path.parent, select=select)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, page)
    return path


def report_name(run: Run) -> str:
    """Return a file name for the report of `run`: environment, version, model, examples, rollouts, a hash of what tells it apart.

    That is its settings, the whole name of its model, where it lies and when it began: no two runs share a name.
    """
    examples = {row.example if row.example is not None else row.index for row in run.rows}
    rollouts = max((row.rollout for row in run.rows), default=0) + 1
    digest = _digest([run.model, run.versions, run.env_args, run.sampling, os.path.realpath(run.path), run.date])
    version = _safe(run.versions.get("flappybird") or __version__)
    return f"flappybird-{version}--{_safe(run.model)}--n{len(examples)}-r{rollouts}--{digest}.html"


def report(
    paths: list[str],
    output: Path | None,
    videos: Path | None,
    form: Literal["html", "text", "json"],
    exported: Path | None = None,
    select: str | None = None,
    progress: bool = False,
) -> int:
    """Do what `flappybird report` is asked to; return its exit code."""
    from flappybird.report.data import gather
    from flappybird.report.summary import to_dict
    from flappybird.report.terminal import text

    if output is not None and form != "html":
        raise ConfigError(f"-o {output}: goes with a page; --{form} prints and writes no file")
    if output is not None and not _takes_a_page(output):
        raise ConfigError(f"-o {output}: must be a file whose name ends in .html")
    if videos is not None and not videos.is_dir():
        raise ConfigError(f"--videos {videos}: no such folder")
    if select is not None and form != "html":
        raise ConfigError(f"--select {select}: goes with a page; --{form} prints and writes no file")
    if exported is not None and form != "html":
        raise ConfigError(f"--export {exported}: --{form} prints and writes no file; give one of the two")
    if progress or (len(paths) == 1 and is_training(paths[0])):
        for name, value in {"--videos": videos, "--export": exported, "--select": select}.items():
            if value is not None:
                raise ConfigError(f"{name} {value}: not for a training run; it goes with reports of evaluations")
        return _progress(paths, output, form)
    if exported is not None:
        from flappybird.report import export

        export.check(exported)
    runs = load_runs(paths, lambda line: print(printable(f"flappybird: {line}"), file=sys.stderr))
    chosen = _rows(select, runs)
    if exported is not None:
        export.export(gather(runs), exported)
        print(exported)
    if exported is not None and output is None:
        return 0
    if form == "text":
        print(text(gather(runs)), end="")
    elif form == "json":
        print(json.dumps(to_dict(gather(runs)), indent=1, allow_nan=False))
    else:
        path = write_report(runs, output or FOLDER / _name(runs), videos=videos, select=chosen)
        print(path)
        _offer(path)
    return 0


def _rows(select: str | None, runs: Sequence[Run]) -> frozenset[int]:
    """Return the rows that `--select` names. Raises ConfigError where one is no row of any run."""
    last = max(len(run.rows) for run in runs) - 1
    words = [] if select is None else select.split(",")
    for word in words:
        if not (word.isascii() and word.isdecimal() and len(word) < 10 and int(word) <= last):
            raise ConfigError(
                f"--select {select}: {show(word)} is no episode; must be whole numbers from 0 to {last}, with commas"
            )
    return frozenset(map(int, words))


def _progress(paths: list[str], output: Path | None, form: Literal["html", "text", "json"]) -> int:
    """Report a training run."""
    from flappybird.report.progress import progress_data
    from flappybird.report.progress_page import progress_page, progress_text

    data = progress_data(paths)
    if form == "text":
        print(printable(progress_text(data)), end="")
    elif form == "json":
        print(json.dumps(data.to_dict(), indent=1, allow_nan=False))
    else:
        where = "\n".join(map(os.path.realpath, paths))
        path = output or FOLDER / f"flappybird-{_safe(__version__)}--training-{_safe(data.title)}--{_digest(where)}.html"
        page = progress_page(data)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, page)
        print(path)
        _offer(path)
    return 0


def _takes_a_page(path: Path) -> bool:
    """Whether a page can be written to `path`: a new or old file of HTML, or a pipe or device of any name."""
    if path.suffix.lower() in (".html", ".htm"):
        return not path.is_dir()
    return path.exists() and not path.is_dir() and not path.is_file()


def _offer(path: Path) -> None:
    """Ask whether to open the page, where there is somebody to ask."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    print("Open it? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        webbrowser.open(path.resolve().as_uri())


def _name(runs: list[Run]) -> str:
    if len(runs) == 1:
        return report_name(runs[0])
    names = "\n".join(report_name(run) for run in runs)
    return f"flappybird-{_safe(__version__)}--comparison-of-{len(runs)}--{_digest(names)}.html"


def _digest(what: Any) -> str:
    """Return eight letters and digits, one of 10¹² words, that JSON values give."""
    text = json.dumps(what, sort_keys=True, default=str).encode("utf-8", "backslashreplace")
    return base64.b32encode(hashlib.sha256(text).digest())[:8].decode("ascii").lower()


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:60].rstrip("-.") or "unknown"
