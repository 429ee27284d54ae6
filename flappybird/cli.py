"""`flappybird …`: the only file that may import all the others, and imports each only when its command is asked for."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from flappybird.errors import ConfigError, FlappyError

Command = Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 for a failed run, 2 for a usage error, 130 after Ctrl-C."""
    parser = _parser()
    args = parser.parse_args(argv)
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
    print(f"flappybird: {error}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="flappybird", description="Flappy Bird as a world for language models.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    verify = commands.add_parser("verify", help="replay episodes or runs and say what agrees")
    verify.add_argument("paths", nargs="+", metavar="PATH", help="an episode file, a folder of them, or a saved run")
    verify.set_defaults(command=_verify)
    return parser


def _verify(args: argparse.Namespace) -> int:
    raise NotImplementedError


if __name__ == "__main__":
    sys.exit(main())
