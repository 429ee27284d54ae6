"""`flappybird …`: the only file that may import all the others, and imports each only when its command is asked for."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from flappybird.errors import ConfigError, FlappyError, printable

DEFAULT_PORT = 8765
"""The port of `flappybird serve`, which `configs/endpoints.toml` names."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 for a failed run, 2 for a usage error, 130 after Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever a name holds, printing it is no reason to fail
    args = _parser().parse_args(argv)
    return guarded(lambda: args.command(args))


def guarded(command: Callable[[], int]) -> int:
    """Run `command` and return its exit code; whatever goes wrong on the user's side is one line on stderr."""
    try:
        code = command()
        sys.stdout.flush()
        return code
    except ConfigError as error:
        return _complain(error, 2)
    except FlappyError as error:
        return _complain(error, 1)
    except BrokenPipeError:
        # Whoever read our output has gone (`| head`): that is no failure. Nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _complain(error, 1)
    except KeyboardInterrupt:
        return 130


def _complain(error: Exception, code: int) -> int:
    print(printable(f"flappybird: {error}"), file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    from flappybird import __version__

    parser = argparse.ArgumentParser(prog="flappybird", description="Flappy Bird as a world for language models.")
    parser.add_argument("--version", action="version", version=f"flappybird {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_demo(commands)
    _add_episodes(commands)
    _add_serve(commands)
    _add_verify(commands)
    return parser


def _add_demo(commands: Any) -> None:
    demo = commands.add_parser("demo", help="evaluate the built-in policies with the real vf-eval: no key, no network")
    demo.add_argument("-n", "--num-examples", type=int, default=3, metavar="N", help="games per policy (default: 3)")
    demo.add_argument("-o", "--output", type=Path, default=Path("outputs/demo"), metavar="DIR", help="default: outputs/demo")
    demo.set_defaults(command=_demo)


def _demo(args: argparse.Namespace) -> int:
    from flappybird.demo import demo

    return demo(args.num_examples, args.output)


def _add_episodes(commands: Any) -> None:
    episodes = commands.add_parser("episodes", help="write an episode file for each rollout of a saved run")
    episodes.add_argument("run", metavar="RUN", help="the folder that vf-eval -s saved to")
    episodes.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="where the files go")
    episodes.set_defaults(command=_episodes)


def _episodes(args: argparse.Namespace) -> int:
    from flappybird.episode import save
    from flappybird.runs import load_run

    run = load_run(args.run)
    args.output.mkdir(parents=True, exist_ok=True)
    written = 0
    for row in run.rows:
        if row.episode is None:
            print(printable(f"flappybird: row {row.index}: {row.problem}"), file=sys.stderr)
            continue
        save(row.episode, args.output / f"episode-{row.index:04d}.json")
        written += 1
    print(printable(f"{written} of {len(run.rows)} episodes written to {args.output}") + _damaged(run.damaged))
    return 0 if written == len(run.rows) else 1


def _add_serve(commands: Any) -> None:
    serve = commands.add_parser("serve", help="serve the built-in policies as an OpenAI-compatible endpoint")
    serve.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1")
    serve.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"0 lets the system choose (default: {DEFAULT_PORT})")
    serve.add_argument("--latency", type=float, default=0.0, metavar="SECONDS", help="how long each answer takes")
    serve.add_argument("--malformed", type=float, default=0.0, metavar="SHARE", help="share of answers that are spoilt")
    serve.add_argument("--seed", type=int, default=None, help="make `random` and spoilt answers repeatable")
    serve.set_defaults(command=_serve)


def _serve(args: argparse.Namespace) -> int:
    from flappybird.server import Options, serve

    serve(args.host, args.port, Options(args.latency, args.malformed, args.seed))
    return 0


def _add_verify(commands: Any) -> None:
    verify = commands.add_parser("verify", help="replay episodes or runs and say what agrees; exit 1 when anything differs")
    verify.add_argument("paths", nargs="+", metavar="PATH", help="an episode file, a folder of them, or a saved run")
    verify.set_defaults(command=_verify)


def _verify(args: argparse.Namespace) -> int:
    from flappybird.runs import check, load_run

    failed = False
    for path in args.paths:
        run = load_run(path)
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
        errored = sum(row.error is not None for row in run.rows)
        told = f", {errored} ended by an error" if errored else ""
        print(f"{printable(path)}: {verified} of {len(run.rows)} verified{told}{_damaged(run.damaged)}")
        failed = failed or verified < len(run.rows) or run.damaged > 0
    return int(failed)


def _damaged(count: int) -> str:
    return f" ({count} damaged line{'s' * (count > 1)} skipped)" if count else ""


if __name__ == "__main__":
    sys.exit(main())
