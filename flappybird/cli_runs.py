"""The commands on saved runs: `episodes`, `index`, `report`, `verify`, `view`; each imports what it needs when it is called."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from flappybird.errors import ConfigError, printable

if TYPE_CHECKING:
    from flappybird.runs import Run

VIEW_PORT = 8780
"""The port of `flappybird view`."""


def add_jobs(command: Any) -> None:
    """Add the options of `system.jobs.spread`."""
    command.add_argument("--jobs", type=int, metavar="N", help="processes (default: one per processor)")
    command.add_argument(
        "--backend", metavar="NAME", help="spread them over a cluster instead: ray or dask, see docs/training.md"
    )


def add_episodes(commands: Any) -> None:
    """Add `episodes`."""
    episodes = commands.add_parser("episodes", help="write an episode file for each rollout of a saved run")
    episodes.add_argument("run", metavar="RUN", help="the folder that vf-eval -s saved to")
    episodes.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="where the files go")
    episodes.set_defaults(command=_episodes)


def _episodes(args: argparse.Namespace) -> int:
    from flappybird.episodes.episode import save
    from flappybird.runs import file_name, load_run
    from flappybird.runs.folder import episode_files

    run = load_run(args.run)
    names = {row.index: file_name(row.index, rows=len(run.rows)) for row in run.rows if row.episode is not None}
    others = [file.name for file in episode_files(args.output) if file.name not in names.values()]
    if others:
        one = f"{others[0]}, which is" if len(others) == 1 else f"{len(others)} files such as {others[0]}, which are"
        raise ConfigError(f"-o {args.output}: holds {one} not of this run and would be counted with it; name another folder")
    args.output.mkdir(parents=True, exist_ok=True)
    for row in run.rows:
        if row.episode is None:
            print(printable(f"flappybird: row {row.index}: {row.problem}"), file=sys.stderr)
        else:
            save(row.episode, args.output / names[row.index])
    print(printable(f"{len(names)} of {len(run.rows)} episodes written to {args.output}") + _damaged(run.damaged))
    return 0 if run.rows and len(names) == len(run.rows) else 1


def add_report(commands: Any) -> None:
    """Add `report`."""
    report = commands.add_parser(
        "report", help="one page per run, or a comparison of several: why each bird died, every episode replayable"
    )
    report.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="what vf-eval -s saved, a folder of episode files, one of them, or a trainer's output folder",
    )
    report.add_argument("--progress", action="store_true", help="the RUNs are the checkpoints of one training: show it by step")
    report.add_argument(
        "-o", "--output", type=Path, metavar="FILE.html", help="default: named after the run, in environments/flappybird/reports"
    )
    report.add_argument("--videos", type=Path, metavar="DIR", help="exported videos to link to (default: videos inside each run)")
    report.add_argument(
        "--select", metavar="N[,N…]", help="episodes whose replays the page must hold; of a large run it holds the telling ones"
    )
    report.add_argument(
        "--export",
        type=Path,
        metavar="DIR",
        help="write charts (SVG, PDF, PNG) and tables (CSV, Parquet, Markdown, LaTeX) for a paper",
    )
    form = report.add_mutually_exclusive_group()
    form.add_argument("--text", action="store_true", help="print the summary and write no file")
    form.add_argument("--json", action="store_true", help="print the numbers as JSON and write no file")
    report.set_defaults(command=_report)


def _report(args: argparse.Namespace) -> int:
    from flappybird.report import report

    form: Literal["html", "text", "json"] = "text" if args.text else "json" if args.json else "html"
    return report(args.runs, args.output, args.videos, form, args.export, args.select, args.progress)


def add_index(commands: Any) -> None:
    """Add `index`."""
    index = commands.add_parser("index", help="read large runs once, side by side, so that `view` shows them at once")
    index.add_argument("runs", nargs="+", metavar="RUN", help="what vf-eval -s saved, or a folder of episode files")
    add_jobs(index)
    index.set_defaults(command=_index)


def _index(args: argparse.Namespace) -> int:
    from tqdm import tqdm

    from flappybird.report.data import explain
    from flappybird.runs.index import Index

    index = Index()
    for path in args.runs:
        with tqdm(desc=str(path), unit="B", unit_scale=True, disable=None, leave=False) as bar:
            for done, whole in index.update(path, args.jobs, args.backend, explain):
                bar.total = whole
                bar.update(done - bar.n)
        numbers = index.numbers(path)
        unverified = f", {numbers['unverified']} differ from their replay" if numbers["unverified"] else ""
        print(printable(f"{path}: {numbers['n']} rollouts indexed{unverified}"))
    return 0


def add_view(commands: Any) -> None:
    """Add `view`."""
    view = commands.add_parser("view", help="every run below a folder in the browser, live, at any size")
    view.add_argument(
        "folder", nargs="?", type=Path, metavar="FOLDER", help="default: where vf-eval saves, and outputs/, or the present folder"
    )
    view.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1; elsewhere the address gets a random token")
    view.add_argument("--port", type=int, default=VIEW_PORT, help=f"0 lets the system choose (default: {VIEW_PORT})")
    view.set_defaults(command=_view)


def _view(args: argparse.Namespace) -> int:
    from flappybird.view import view

    view(args.folder, args.host, args.port)
    return 0


def add_verify(commands: Any) -> None:
    """Add `verify`."""
    verify = commands.add_parser("verify", help="replay episodes or runs and say what agrees; exit 1 when anything differs")
    verify.add_argument("paths", nargs="+", metavar="PATH", help="an episode file, a folder of them, or a saved run")
    verify.set_defaults(command=_verify)


def _verify(args: argparse.Namespace) -> int:
    from flappybird.errors import EpisodeError
    from flappybird.runs import load_run
    from flappybird.runs.load import is_empty

    several = len(args.paths) > 1
    sound: list[bool] = []
    for path in args.paths:
        try:
            # Of several, one that was interrupted before its first rollout says nothing of the others.
            run = None if several and is_empty(path) else load_run(path)
        except EpisodeError as error:
            if not several:
                raise
            print(printable(f"flappybird: {error}"), file=sys.stderr)
            sound.append(False)
            continue
        if run is None or (several and not run.rows and not run.damaged):
            print(f"{printable(path)}: left out: no rollout was finished")
        else:
            sound.append(_is_sound(path, run))
    return 0 if sound and all(sound) else 1


def _is_sound(path: str, run: Run) -> bool:
    """Print what `verify` finds at `path`; return whether all that it promises holds, see `runs.check`."""
    from flappybird.runs import check, check_run

    verified = 0
    for row in run.rows:
        name = printable(f"{path}:{row.index}" if len(run.rows) > 1 else path)
        if row.episode is None:
            print(f"{name}: cannot be replayed: {printable(row.problem)}")
            continue
        differences = check(row)
        for difference in differences:
            print(f"{name}: {printable(difference)}")
        verified += not differences
    wrong = check_run(run)
    for line in wrong:
        print(f"{printable(path)}: {printable(line)}")
    errored = sum(row.error is not None for row in run.rows)
    rest = f", {errored} ended by an error" if errored else ""
    rest += f", {run.missing} of {run.asked} asked for are missing" if run.missing else ""
    print(f"{printable(path)}: {verified} of {len(run.rows)} verified{rest}{_damaged(run.damaged)}")
    return bool(run.rows) and verified == len(run.rows) and not (wrong or run.missing or run.damaged)


def _damaged(count: int) -> str:
    return f" ({count} damaged line{'s' * (count > 1)} skipped)" if count else ""
