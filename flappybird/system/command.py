"""A command of this package: its parser, its exit codes, and one line for whatever goes wrong."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, NoReturn

from flappybird.errors import ConfigError, FlappyError, printable
from flappybird.system.signals import terminate


class Parser(argparse.ArgumentParser):
    """Tells what is wrong with a command line in one line."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Read the words of this command alone; words too many are its own fault, whose help is the one to name."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """End with 2."""
        self.exit(2, printable(f"flappybird: {message}; see {self.prog} --help\n"))


def guarded(command: Callable[[], int], alone: bool = False) -> int:
    """Run `command` and return its exit code; whatever goes wrong on the user's side is one line on stderr.

    SIGTERM ends it like Ctrl-C does, cleaning up behind itself, with 143.

    Args:
        command: what is to be done.
        alone: whether the process ends with it: a signal that comes when all is done is then too late to be heard.
    """
    _mend_streams()
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    came: list[int] = []

    def stop(number: int, _: object) -> NoReturn:
        came.append(number)
        if number == signal.SIGTERM:
            terminate()
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if ours:
        signal.signal(signal.SIGTERM, stop)
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, stop)
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
        name = error.filename2 or error.filename
        return _complain(f"{name}: {error.strerror}" if name and error.strerror else error.strerror or error, 1)
    except KeyboardInterrupt:
        return 130
    except BaseException:
        if came:  # a library caught the exception of a signal in its own code, and made another of it
            return 128 + came[0]
        raise
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_IGN if alone else signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN if alone else before)


def _mend_streams() -> None:
    """Let anything be printed: whatever a name holds, and also where the caller closed a stream."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _complain(error: object, code: int) -> int:
    print(printable(f"flappybird: {error}"), file=sys.stderr)
    return code
