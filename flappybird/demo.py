"""`flappybird demo`: the main job from end to end, with nothing but the package.

It starts the policy server on a free loopback port, runs the real `vf-eval` against it once per policy, turns what was
saved into episode files, verifies each by replay, prints what came out, and makes a report and a video of it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from tqdm import tqdm

from flappybird.episodes.episode import save
from flappybird.errors import ConfigError, FlappyError
from flappybird.report import write_report
from flappybird.runs import Row, Run, check, file_name, load_run
from flappybird.system.loopback import spare_loopback

DEMO_POLICIES = ("random", "heuristic", "planner")


MAX_GAMES = 1_000
"""The most games per policy: a demonstration is no evaluation."""


class DemoError(FlappyError):
    """A step of the demo failed; the message says which and where its output is."""


def demo(games: int, output: Path) -> int:
    """Play `games` games with each policy, save everything under `output`, print a table; return the exit code.

    Raises:
        ConfigError: `games` is not from 1 to `MAX_GAMES`.
        DemoError: the server or `vf-eval` failed.
    """
    if not 1 <= games <= MAX_GAMES:
        raise ConfigError(f"--num-examples = {games}: must be from 1 to {MAX_GAMES}")
    output.mkdir(parents=True, exist_ok=True)
    runs: dict[str, Run] = {}
    with policy_server() as url:
        print(f"policy server on {url}", flush=True)
        with tqdm(total=games * len(DEMO_POLICIES), unit="game", disable=None, leave=False) as progress:
            for policy in DEMO_POLICIES:
                progress.set_description(policy)
                started = time.monotonic()
                runs[policy] = evaluate(policy, url, games, output, progress)
                took = time.monotonic() - started
                progress.write(f"vf-eval flappybird -m {policy} -n {games} -r 1 -s: {took:.0f} s", file=sys.stdout)
    rows = []
    failed = False
    for policy, run in runs.items():
        folder = output / "episodes" / policy
        verified = write_episodes(run, folder)
        failed = failed or verified < games
        rows.append(_table_row(policy, run, verified, games))
    print(f"\n{table(('policy', 'pipes', 'ticks', 'reward', 'format', 'how it ended', 'verified'), rows)}\n")
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
        print(
            f"flappybird: not every game was played and verified; what vf-eval said is in {output}/vf-eval-*.log", file=sys.stderr
        )
    return int(failed)


def film(rows: list[Row], path: Path) -> str:
    """Film the games of `rows` side by side; return where the video is, or what is missing for one."""
    try:
        from render.clip import Clip, Timing
        from render.frames import Track
        from videos.writer import write
    except ImportError as error:
        return f"none: {error.name} is not installed (pip install 'flappybird[videos]')"
    clip = Clip([Track(row.episode) for row in rows if row.episode], (960, 320), Timing(hold=1))
    pictures = tqdm(clip.frames(), total=len(clip.pace.ticks), desc="video", unit="picture", disable=None, leave=False)
    return str(write(path, pictures, clip.size, clip.fps).path)


@contextlib.contextmanager
def policy_server() -> Iterator[str]:
    """Run the policy server as a process of its own on a free loopback port; give its URL, and end it afterwards."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "flappybird", "serve", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            _wait_until_served(process, port)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()


def _wait_until_served(process: subprocess.Popen[str], port: int) -> None:
    direct = build_opener(ProxyHandler({}))
    for _ in range(600):
        if process.poll() is not None:
            said = process.stderr.read().strip() if process.stderr else ""
            raise DemoError(f"the policy server did not start: {said}")
        with contextlib.suppress(URLError, ConnectionError), direct.open(f"http://127.0.0.1:{port}/v1/models", timeout=1):
            return
        time.sleep(0.1)
    raise DemoError("the policy server did not answer within 60 seconds")


def evaluate(policy: str, url: str, games: int, output: Path, progress: Any) -> Run:
    """Run `vf-eval flappybird` on a policy and return what it saved. Raises DemoError where it failed."""
    evals = output / "evals" / f"flappybird--{policy}"
    before = set(evals.glob("*")) if evals.is_dir() else set()
    log = output / f"vf-eval-{policy}.log"
    scripts = Path(sysconfig.get_path("scripts"))
    command = [str(scripts / "vf-eval"), "flappybird", "-m", policy, "-b", url, "-k", "FLAPPYBIRD_API_KEY"]
    command += ["-n", str(games), "-r", "1", "-s", "-o", str(output), "--disable-tui", "--disable-env-server"]
    command += ["-a", '{"report": false}']  # one report of all, below
    environ = os.environ.copy()
    spare_loopback(environ)
    with open(log, "w", encoding="utf-8") as file:
        try:
            with subprocess.Popen(
                command, stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environ
            ) as process:
                try:
                    code = _watched(process, evals, before, progress)
                except KeyboardInterrupt:
                    process.send_signal(signal.SIGINT)
                    process.wait(20)
                    raise
        except FileNotFoundError:
            raise DemoError(f"{command[0]} is missing: install verifiers below 0.4 (pip install 'flappybird[classic]')") from None
    found = [path for path in evals.glob("*") if path not in before and (path / "results.jsonl").is_file()]
    if code != 0 or len(found) != 1:
        raise DemoError(f"vf-eval ended with exit code {code}; its output is in {log}")
    return load_run(found[0])


def _watched(process: subprocess.Popen[bytes], evals: Path, before: set[Path], progress: Any) -> int:
    """Wait for `vf-eval` and move `progress` on with every game it saves; return its exit code."""
    shown = 0
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(0.5)
            break
        saved = [path / "results.jsonl" for path in evals.glob("*") if path not in before]
        done = sum(file.read_bytes().count(b"\n") for file in saved if file.is_file())
        progress.update(done - shown)
        shown = done
    return code


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
    reasons = Counter("error" if row.error or row.episode is None else row.episode.outcome.reason.value for row in rows)
    return ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in reasons.most_common())


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a plain table, its columns padded."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (head, *rows)
    )
