"""`flappybird demo`: the main job from end to end, with nothing but the package.

It starts the policy server on a free loopback port, runs the real `vf-eval` against it, all policies side by side, turns
what was saved into episode files, verifies each by replay, prints what came out, and makes a report and a video of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from statistics import mean
from typing import Any

from tqdm import tqdm

from flappybird.episodes.episode import save
from flappybird.errors import ConfigError, FlappyError, MissingPart
from flappybird.report import write_report
from flappybird.runs import Row, Run, check, file_name, load_run
from flappybird.system.install import missing_api, sibling
from flappybird.system.loopback import spare_loopback
from flappybird.system.table import table
from flappybird.world.game import Reason, tally

DEMO_POLICIES = ("random", "heuristic", "planner")

SEED = 0
"""What `random` draws from, so that every demo prints the same table."""

MAX_GAMES = 1_000
"""The most games per policy: a demonstration is no evaluation."""


class DemoError(FlappyError):
    """A step of the demo failed; the message says which and where its output is."""


def demo(games: int, output: Path) -> int:
    """Play `games` games with each policy, save everything under `output`, print a table; return the exit code.

    Raises:
        ConfigError: `games` is not from 1 to `MAX_GAMES`.
        MissingPart: the installed verifiers has no `vf-eval` of the classic API.
        DemoError: the server or `vf-eval` failed.
    """
    if not 1 <= games <= MAX_GAMES:
        raise ConfigError(f"--num-examples = {games}: must be from 1 to {MAX_GAMES}")
    require_classic()
    output.mkdir(parents=True, exist_ok=True)
    with policy_server(output / "serve.log") as url:
        print(f"policy server on {url}", flush=True)
        started = time.monotonic()
        runs = evaluate(DEMO_POLICIES, url, games, output)
    took = time.monotonic() - started
    print(f"vf-eval {output / CONFIG}: {games} games with each of {', '.join(DEMO_POLICIES)} in {took:.0f} s", flush=True)
    rows = []
    failed = False
    for policy, run in runs.items():
        folder = output / "episodes" / policy
        verified = write_episodes(run, folder)
        failed = failed or verified < games
        rows.append(_table_row(policy, run, verified, games))
    head = ("policy", "pipes", "ticks", "reward", "format", "how it ended", "verified")
    print(f"\n{table(head, rows, words=range(len(head)))}\n", flush=True)
    lies = {
        "saved runs": output / "evals",
        "episode files": output / "episodes",
        "report": write_report(list(runs.values()), output / "report.html"),
        "video": film([run.rows[0] for run in runs.values()], output / "seed-0.mp4"),
    }
    for what, where in lies.items():
        print(f"{what:<14}{where}")
    runner = "uv run " if "UV" in os.environ else ""  # as the reader types it
    print(f"look closer   {runner}flappybird verify {output / 'episodes' / 'planner'}")
    if failed:
        print(f"flappybird: not every game was played and verified; what vf-eval said is in {output / LOG}", file=sys.stderr)
    return int(failed)


def require_classic() -> None:
    """Raise MissingPart where the installed verifiers is none that has the classic API and its `vf-eval`."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        if [int(part) for part in re.findall(r"\d+", metadata.version("verifiers"))[:2]] < [0, 4]:
            return
    raise missing_api("the demo runs the vf-eval of verifiers below 0.4", "has another", "classic")


def film(rows: list[Row], path: Path) -> str:
    """Film the games of `rows` side by side; return where the video is, or why there is none."""
    try:
        need = "a video needs the renderer and an encoder"
        clips, frames = sibling("render.clip", need, "videos"), sibling("render.frames", need, "videos")
        writer = sibling("videos.writer", need, "videos")
        clip = clips.Clip([frames.Track(row.episode) for row in rows if row.episode], (960, 320), clips.Timing(hold=1))
        pictures = tqdm(clip.frames(), total=len(clip.pace.ticks), desc="video", unit="picture", disable=None, leave=False)
        return str(writer.write(path, pictures, clip.size, clip.fps).path)
    except MissingPart as error:
        return f"none: {error}"


@contextlib.contextmanager
def policy_server(log: Path) -> Iterator[str]:
    """Run the policy server as a process of its own on a free loopback port; give its URL, and end it afterwards.

    Raises:
        DemoError: it did not start.
    """
    command = [sys.executable, "-m", "flappybird", "serve", "--port", "0", "--seed", str(SEED)]
    with open(log, "w", encoding="utf-8") as errors, running(command, stdout=subprocess.PIPE, stderr=errors) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(rb"http://127\.0\.0\.1:\d+", line):
                yield f"{found[0].decode()}/v1"
                return
        raise DemoError(f"the policy server did not start: {last_line(log) or f'its output is in {log}'}")


@contextlib.contextmanager
def running(command: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run `command` for the length of a `with` block, at whose end, however it comes, it is asked to stop and then made to."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, **options) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
                process.kill()


CONFIG = "eval.toml"
LOG = "vf-eval.log"


def evaluate(policies: Iterable[str], url: str, games: int, output: Path) -> dict[str, Run]:
    """Run one `vf-eval` on all `policies` side by side and return what it saved. Raises DemoError where it failed."""
    log, config = output / LOG, output / CONFIG
    environment = dict(os.environ)
    spare_loopback(environment)
    evals = {policy: output / "evals" / f"flappybird--{policy}" for policy in policies}
    before = {path for folder in evals.values() for path in folder.glob("*")}
    config.write_text(evaluations(evals, url, games, output), encoding="utf-8")
    command = [str(Path(sysconfig.get_path("scripts")) / "vf-eval"), str(config), "--disable-tui"]

    def new() -> dict[str, list[Path]]:
        files = {policy: sorted(folder.glob("*/results.jsonl")) for policy, folder in evals.items()}
        return {policy: [file.parent for file in found if file.parent not in before] for policy, found in files.items()}

    try:
        with (
            open(log, "w", encoding="utf-8") as file,
            running(command, stdout=file, stderr=subprocess.STDOUT, env=environment) as process,
            tqdm(total=games * len(evals), desc="vf-eval", unit="game", disable=None, leave=False) as progress,
        ):
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.5)
                saved = (run / "results.jsonl" for runs in new().values() for run in runs)
                progress.n = sum(file.read_bytes().count(b"\n") for file in saved)
                progress.refresh()
    except FileNotFoundError:
        raise DemoError(f"{command[0]} is missing, though verifiers is installed: install it again") from None
    found = new()
    if process.returncode != 0 or any(len(runs) != 1 for runs in found.values()):
        raise DemoError(f"vf-eval ended with exit code {process.returncode}: {last_line(log)}; all of its output is in {log}")
    return {policy: load_run(run) for policy, (run,) in found.items()}


def evaluations(policies: Iterable[str], url: str, games: int, output: Path) -> str:
    """Return the configuration by which `vf-eval` plays all `policies` in one go, as TOML."""
    lines = [
        "# Written by `flappybird demo`. To run it again: `flappybird serve`, its address below, and `vf-eval` with this file.",
        f"api_base_url = {json.dumps(url)}",
        'api_key_var = "FLAPPYBIRD_API_KEY"  # may be unset: the server wants none',
        f"num_examples = {games}",
        "rollouts_per_example = 1",
        "save_results = true",
        f"output_dir = {json.dumps(str(output))}",
        "disable_env_server = true  # one process is enough for games as few as these",
    ]
    for policy in policies:
        lines += ["", "[[eval]]", 'id = "flappybird"', f"model = {json.dumps(policy)}"]
        lines += ["args = { report = false, history_turns = 8 }  # one report of all, afterwards; short prompts, a fast demo"]
    return "\n".join([*lines, ""])


def last_line(log: Path) -> str:
    """Return the last line of a log that says anything."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def write_episodes(run: Run, folder: Path) -> int:
    """Write an episode file for each rollout of `run`; return how many of them came to an end that their replay confirms."""
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("episode-[0-9]*.json"):  # of an earlier demo
        stale.unlink()
    verified = 0
    for row in run.rows:
        if row.episode is not None:
            save(row.episode, folder / file_name(row.index))
            verified += row.error is None and not check(row)
    return verified


def _table_row(policy: str, run: Run, verified: int, games: int) -> tuple[str, ...]:
    clean = [row for row in run.rows if row.error is None and row.episode is not None]

    def average(name: str) -> str:
        return f"{mean(row.claims[name] for row in clean):.2f}" if clean else "-"

    names = ("pipes_passed", "ticks", "reward", "format_reward_func")
    return (policy, *(average(name) for name in names), how_they_ended(run.rows), f"{verified} of {games}")


def how_they_ended(rows: list[Row]) -> str:
    """Return how often rollouts ended in which way, most often first: `2 floor, 1 pipe`."""
    reasons = Counter(Reason.ERROR if row.error or row.episode is None else row.episode.outcome.reason for row in rows)
    return tally(dict(reasons.most_common()))
