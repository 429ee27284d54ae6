"""`python -m render …`: an episode in a window or, with `-o`, in a file. The one place here that reaches for `videos`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flappybird.errors import ConfigError
from flappybird.system.command import Parser, guarded
from flappybird.system.install import sibling

if TYPE_CHECKING:
    from render.clip import Clip
    from render.layout import Size


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, 1 for a failure, 2 for a usage error, 130 after Ctrl-C."""
    return guarded(lambda: _main(argv), alone=argv is None)


def _main(argv: Sequence[str] | None) -> int:
    args = _parser().parse_args(argv)
    if not args.episodes:
        raise ConfigError("no episode given; name an episode file or RUN:N (to play yourself: flappybird play)")

    from flappybird.runs import load_episode_at
    from render.frames import Track
    from render.layout import check_size, read_size
    from render.moment import Overlay

    if len(args.episodes) > 1 and not args.grid:
        raise ConfigError(f"{len(args.episodes)} episodes given: add --grid to see them side by side")
    if args.ghost and args.grid:
        raise ConfigError("--ghost and --grid: only one of them at a time")
    if args.tick is not None and args.tick < 0:
        raise ConfigError(f"tick = {args.tick}: must be 0 or more")
    size = read_size(args.size)
    if args.scale != 1.0:
        if not 0.01 <= args.scale <= 100:
            raise ConfigError(f"scale = {args.scale:g}: must be from 0.01 to 100")
        size = check_size((2 * round(size[0] * args.scale / 2), 2 * round(size[1] * args.scale / 2)))
    overlay = Overlay.of(args.overlay) if args.overlay is not None else Overlay()
    if args.output is not None:
        _check_output(args)
    tracks = [Track(load_episode_at(where)) for where in args.episodes]
    ghosts = [Track(load_episode_at(where)) for where in args.ghost]
    clip = _clip(args, tracks, size, overlay, ghosts)
    if args.output is not None:
        return _export(args, clip)
    if args.grid:
        raise ConfigError("--grid needs a file to write: -o grid.mp4")

    from render.viewer import view

    view(tracks[0], size, overlay, ghosts, args.speed, _recorder(size, ghosts))
    return 0


def _clip(args: argparse.Namespace, tracks: Sequence[Any], size: Size, overlay: Any, ghosts: Sequence[Any]) -> Clip:
    from render.clip import Clip, Timing
    from render.frames import TICKS_PER_SECOND

    start, stop = args.start, args.stop
    if args.tick is not None:
        last = max(track.last for track in tracks)
        if args.tick > last:
            raise ConfigError(f"tick = {args.tick}: the episode ends at tick {last}")
        start = stop = args.tick
    fps = TICKS_PER_SECOND if args.fps is None else args.fps
    return Clip(tracks, size, Timing(fps, args.speed, start, stop, args.hold), overlay, ghosts)


def _check_output(args: argparse.Namespace) -> None:
    writer = _writer()
    suffix = writer.check_target(args.output)
    if args.tick is not None and suffix != ".png":
        raise ConfigError(f"--tick {args.tick}: one picture is written as .png, not {suffix}; for a clip use --from and --to")
    writer.check_quality(args.quality)
    args.fps = writer.choose_fps(args.fps, suffix)


def _export(args: argparse.Namespace, clip: Clip) -> int:
    from tqdm import tqdm

    from render.lettering import lacking

    writer = _writer()
    if args.output.suffix.lower() == ".png" and not writer.numbered(args.output):
        # One picture: that of the tick asked for, or the last.
        clip.pace = clip.pace._replace(ticks=clip.pace.ticks[-1:])
    samples = clip.samples() if args.output.suffix.lower() == ".gif" else ()
    pictures = tqdm(clip.frames(), total=len(clip.pace.ticks), unit="picture", leave=False, disable=None, file=sys.stderr)
    written = writer.write(args.output, pictures, clip.size, clip.fps, samples, args.quality)
    print(json.dumps(written.facts()) if args.json else written)
    if lacking():
        print(f"flappybird: {lacking()}", file=sys.stderr)
    return 0


def _recorder(size: Size, ghosts: Sequence[Any]) -> Any:
    """Return what writes the clips that are recorded in the window."""

    def record(track: Any, ticks: Sequence[int], fps: int, overlay: Any, path: Path) -> None:
        from fractions import Fraction

        from render.frames import Pace, frames

        pace = Pace(tuple(ticks), Fraction(fps))
        _writer().write(path, frames(track, pace, size, overlay, ghosts), size, pace.fps)

    return record


def _writer() -> Any:
    return sibling("videos.writer", "files need imageio", "videos")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m render",
        description="Show an episode in a window, or write it as a video or a picture. "
        "In the window: space pauses, arrows step (with shift by ten), + and - change the speed, home and end jump, "
        "the timeline scrubs, T toggles thoughts, R records a clip, F fills the screen, Esc leaves.",
    )
    parser.add_argument("episodes", nargs="*", metavar="EPISODE", help="an episode file, or RUN:N for the N-th rollout of a run")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="write .mp4, .gif (which loops for ever) or .png instead; no display needed",
    )
    parser.add_argument("--size", default="576x480", metavar="WxH", help="pixels, both even (default: 576x480)")
    parser.add_argument("--scale", type=float, default=1.0, metavar="X", help="multiply the size, rounded to even pixels")
    parser.add_argument(
        "--fps",
        type=float,
        metavar="N",
        help="pictures per second (default: 30, of a GIF 25; a tick is 1/30 s); of a GIF equally long where N divides 100",
    )
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help="2 is twice as fast (default: 1)")
    parser.add_argument("--from", dest="start", type=int, metavar="TICK", help="begin after this tick")
    parser.add_argument("--to", dest="stop", type=int, metavar="TICK", help="end at this tick")
    parser.add_argument("--tick", type=int, metavar="K", help="one picture, of tick K (as .png)")
    parser.add_argument("--hold", type=float, default=0.0, metavar="SECONDS", help="let the last picture stay on (default: 0)")
    parser.add_argument(
        "--overlay",
        metavar="LIST",
        help="what is drawn beside the world: score,hud,thought,status,ending,hitbox; all; none; --overlay=-NAME takes one off",
    )
    parser.add_argument("--quality", default="fast", metavar="NAME", help="of MP4: fast to write, or small (default: fast)")
    parser.add_argument("--grid", action="store_true", help="several episodes side by side, in step")
    parser.add_argument("--ghost", action="append", default=[], metavar="EPISODE", help="a see-through bird of another episode")
    parser.add_argument("--json", action="store_true", help="say what was written as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
