"""`python -m videos RUN -o DIR`: the episodes of a run as videos, or as one sheet."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from flappybird.errors import ConfigError, FlappyError, show
from flappybird.system.command import Parser, guarded
from flappybird.system.install import missing


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, 1 where a file could not be written, 2 for a usage error, 130 after Ctrl-C."""
    return guarded(lambda: _main(argv), alone=argv is None)


def _main(argv: Sequence[str] | None) -> int:
    args = _parser().parse_args(argv)
    if args.output is None and args.sheet is None:
        raise ConfigError("nothing to write: name a folder with -o DIR, a picture with --sheet FILE.png, or both")
    if args.sheet is not None:
        _check_sheet(args.sheet)
    if bool(args.progress) == (args.run is not None):
        raise ConfigError("name one RUN, or several with --progress RUN...")
    for name in ("best", "worst", "median"):
        number = getattr(args, name)
        if number is not None and number < 1:
            raise ConfigError(f"--{name} = {number}: must be 1 or more")
    if args.all and (args.best or args.worst or args.median):
        raise ConfigError("--all and --best, --worst or --median: only one of them at a time")

    _check_parts()
    if args.progress:
        return _progress(args)
    from flappybird.runs import load_run
    from videos.export import choose

    run = load_run(args.run)
    chosen = choose(run, args.best or 0, args.worst or 0, args.median or 0)
    missing = [row for row in run.rows if row.episode is None]
    for row in missing:
        print(f"flappybird: row {row.index} left out: {row.problem}", file=sys.stderr)
    if not chosen:
        raise FlappyError(f"{args.run}: no episode to show")
    code = _files(args, run, chosen) if args.output is not None else 0
    if args.sheet is not None:
        _sheet(args.sheet, run, chosen)
    return code or int(bool(missing))


def _check_parts() -> None:
    """Raise MissingPart where what this command needs is not installed; its extra brings what draws, too."""
    for module in ("numpy", "render.sdl", "imageio", "PIL"):
        try:
            import_module(module)
        except ImportError:
            name = {"render.sdl": "pygame", "PIL": "pillow"}.get(module, module)
            raise missing(f"videos need {name}", "videos") from None


def _files(args: argparse.Namespace, run: Any, chosen: Sequence[int]) -> int:
    from tqdm import tqdm

    from render.clip import Timing
    from render.frames import Pace
    from render.layout import read_size
    from render.moment import Overlay
    from videos.export import FORMATS, Job, check_workers, export, file_name
    from videos.writer import check_quality, check_target, choose_fps

    if args.format not in FORMATS:
        raise ConfigError(f"format = {args.format!r}: must be one of {', '.join(FORMATS)}")
    check_quality(args.quality)
    size = read_size(args.size)
    timing = Timing(choose_fps(args.fps, f".{args.format}"), args.speed, hold=args.hold)
    Pace.of(0, *timing)  # what is wrong with it is wrong for all
    check_workers(args.workers)
    overlay = Overlay.of(args.overlay) if args.overlay is not None else Overlay()
    args.output.mkdir(parents=True, exist_ok=True)
    check_target(args.output / file_name(0, args.format))

    by_index = {row.index: row.episode for row in run.rows}
    jobs = [
        Job(index, by_index[index], args.output / file_name(index, args.format), size, timing, overlay, args.quality)
        for index in chosen
    ]
    done = list(tqdm(export(jobs, args.workers), total=len(jobs), unit="episode", leave=False, disable=None, file=sys.stderr))
    failed = sorted((one for one in done if one.problem is not None), key=lambda one: one.row)
    skipped = sum(one.skipped for one in done)
    already = f", {skipped} were there already" if skipped else ""
    print(f"{args.output}: {len(done) - len(failed) - skipped} of {len(done)} episodes written{already}")
    for lacking in sorted({one.lacking for one in done if one.lacking})[:1]:
        print(f"flappybird: {lacking}", file=sys.stderr)
    for one in failed:
        print(f"flappybird: row {one.row} failed: {one.problem}", file=sys.stderr)
    return int(bool(failed))


def _progress(args: argparse.Namespace) -> int:
    from render.clip import Timing
    from render.layout import read_size
    from render.moment import Overlay
    from videos.progress import film, write_film
    from videos.writer import check_quality, check_target, choose_fps

    if args.output is None or args.sheet is not None:
        raise ConfigError("--progress needs a file to write, and makes no sheet: -o film.mp4")
    suffix = check_target(args.output)
    if suffix == ".png":
        raise ConfigError(f"{args.output}: a film is an .mp4 or a .gif")
    check_quality(args.quality)
    timing = Timing(choose_fps(args.fps, suffix), args.speed, hold=args.hold or 1.0)
    overlay = Overlay.of(args.overlay) if args.overlay is not None else Overlay()
    print(write_film(args.output, film(args.progress, args.seed, read_size(args.size), timing, overlay), args.quality))
    return 0


def _check_sheet(path: Path) -> None:
    from videos.writer import check_target

    if path.suffix.lower() != ".png":
        raise ConfigError(f"{path}: unknown extension {show(path.suffix)}, a sheet is a .png")
    check_target(path)


def _sheet(path: Path, run: Any, chosen: Sequence[int]) -> None:
    from fractions import Fraction

    from render.frames import Track
    from render.sheet import sheet
    from videos.writer import write

    by_index = {row.index: row.episode for row in run.rows}
    tracks = [Track(by_index[index]) for index in chosen]
    names = [f"row {index}, {track.name}, seed {track.course.seed}" for index, track in zip(chosen, tracks, strict=True)]
    picture = sheet(tracks, names)
    print(write(path, [picture], (picture.shape[1], picture.shape[0]), Fraction(1)))


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m videos",
        description="Write the episodes of a run as videos. Row N goes to episode-000N.mp4; "
        "what is there already, whole and made in the same way, is skipped. A GIF loops for ever.",
    )
    parser.add_argument(
        "run", metavar="RUN", nargs="?", help="what vf-eval -s saved, a folder of episode files, or an episode file"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="where the files go")
    parser.add_argument("--sheet", type=Path, metavar="FILE", help="one picture (.png) with a strip for each episode")
    parser.add_argument(
        "--progress", nargs="+", metavar="RUN", help="a film of one seed through several runs, such as checkpoints: -o film.mp4"
    )
    parser.add_argument("--seed", type=int, default=0, help="the course of the film (default: 0)")
    parser.add_argument("--best", type=int, nargs="?", const=1, metavar="N", help="the N with the best reward (default: 1)")
    parser.add_argument("--worst", type=int, nargs="?", const=1, metavar="N", help="the N with the worst")
    parser.add_argument("--median", type=int, nargs="?", const=1, metavar="N", help="the N in the middle")
    parser.add_argument("--all", action="store_true", help="all of them, as if none of these is given")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="files written at the same time (default: 1)")
    parser.add_argument("--format", default="mp4", metavar="KIND", help="mp4, gif or png (default: mp4)")
    parser.add_argument("--size", default="576x480", metavar="WxH", help="pixels, both even (default: 576x480)")
    parser.add_argument("--fps", type=float, metavar="N", help="pictures per second (default: 30, of a GIF 25)")
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help="2 is twice as fast (default: 1)")
    parser.add_argument("--hold", type=float, default=0.0, metavar="SECONDS", help="let the last picture stay on (default: 0)")
    parser.add_argument("--overlay", metavar="LIST", help="what is drawn beside the world, see python -m render --help")
    parser.add_argument("--quality", default="fast", metavar="NAME", help="of MP4: fast or small (default: fast)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
