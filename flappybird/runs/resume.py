"""Going on with a saved run of classic verifiers: what may be resumed, by whom, and what is played again."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flappybird.episodes.arguments import Settings
from flappybird.episodes.episode import MAX_BYTES
from flappybird.errors import ConfigError, EpisodeError, show
from flappybird.runs.results import FILE, error_of
from flappybird.system.files import parse_json, read_bytes, write_bytes

try:
    import fcntl
except ImportError:  # Windows, where verifiers does not run either
    fcntl = None  # type: ignore[assignment]

ERRORED = "errored.jsonl"
"""Where a resumed run keeps the rows that ended by an error and are played again."""

LOCK = ".playing"
"""The file that a run's folder has while somebody plays for it."""


def is_saved(results: Path) -> bool:
    """Whether `results` is a run that the library would resume."""
    return (results / "metadata.json").is_file() and (results / FILE).is_file()


@contextlib.contextmanager
def alone(results: Path) -> Iterator[None]:
    """Keep others from playing for the run `results` during the block; the system ends it with the process, however that ends.

    Raises:
        ConfigError: somebody does. Their rows and ours would stand in one file, each game twice.
    """
    path = results / LOCK
    try:
        results.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:  # nothing can be written here: the library says so, and there is nothing to keep from mixing
        handle = -1
    if fcntl is None or handle < 0:
        yield
        return
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"cannot resume {results.name}: another process is playing for it; wait for it, or end it"
            ) from None
        except OSError:  # a file system without locks
            yield
            return
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(handle)


def refuse_to_mix(results: Path, settings: Settings, env_args: dict[str, Any], sampling: dict[str, Any] | None) -> None:
    """Refuse to resume a run of other settings, which the library would continue without a word.

    Raises:
        ConfigError: the run was played or sampled with other settings, or does not say with which.
    """
    name = results.name
    try:
        saved = parse_json(read_bytes(results / "metadata.json", MAX_BYTES), "metadata.json", constants=True)
    except EpisodeError as error:
        raise ConfigError(f"cannot resume {name}: {error}") from None
    if not isinstance(saved, dict):
        raise ConfigError(f"cannot resume {name}: metadata.json holds no object")
    played = saved.get("env_args", {})
    try:
        same = isinstance(played, dict) and Settings.of(**played).same_games(settings)
    except ConfigError:
        same = False
    if not same:
        raise ConfigError(
            f"cannot resume {name}: it was played with env args {show(json.dumps(played), 500)}, "
            f"not {json.dumps(env_args, default=str)}; use the same, or start a new run"
        )
    before = saved.get("sampling_args")
    old, new = ({k: v for k, v in s.items() if v is not None} if isinstance(s, dict) else {} for s in (before, sampling))
    changed = sorted(name for name in new.keys() | (old.keys() - {"n", "extra_body"}) if old.get(name) != new.get(name))
    if changed:
        how = ", ".join(f"{setting} = {show(old.get(setting))}, not {new.get(setting)!r}" for setting in changed)
        raise ConfigError(f"cannot resume {name}: it was sampled with {how}; use the same, or start a new run")


def set_errors_aside(results: Path) -> int:
    """Move the errored rows of a saved run to `ERRORED`, so that resuming plays them again; return how many they are.

    The library takes a row that ended by an error for a finished one. Every row is in one of the two files at any moment;
    one that is in both, since the process was killed in between, is not written twice.
    """
    saved, errored = results / FILE, results / ERRORED
    kept: list[bytes] = []
    moved: list[bytes] = []
    for line in saved.read_bytes().splitlines(keepends=True):
        (moved if _ended_by_error(line) else kept).append(line)
    if moved:
        known = errored.read_bytes().splitlines(keepends=True) if errored.is_file() else []
        whole = [line if line.endswith(b"\n") else line + b"\n" for line in (*known, *moved)]
        write_bytes(errored, b"".join(dict.fromkeys(whole)))
        write_bytes(saved, b"".join(kept))
    return len(moved)


def _ended_by_error(line: bytes) -> bool:
    try:
        row = parse_json(line, "line", constants=True)
    except EpisodeError:
        return False  # a damaged line stays where it is, and is counted there
    return isinstance(row, dict) and error_of(row) is not None
