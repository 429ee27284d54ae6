"""How much it holds: the full sizes of `tests/trust`.

The environment variable TRUST_SHARE takes a share of each size, such as 0.1, for a machine in a hurry.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path

from flappybird.demo import policy_server
from flappybird.protocol.reply import read_reply
from flappybird.runs import check, run_of_outputs
from tests.trust import hostile, kills, load, signals

SHARE = float(os.environ.get("TRUST_SHARE", "1"))


def sized(number: int) -> int:
    """The share of a size that is tried."""
    return max(int(number * SHARE), 1)


def main() -> None:
    """Print what was tried and what it took."""
    for part in (replies, long_replies, ticks, kill_nine, stop, kill_evaluations, episodes, rollouts):
        part()


def say(what: str, *figures: str) -> None:
    """Print a line of the table."""
    print(f"{what:<44} {'; '.join(figures)}", flush=True)


def replies() -> None:
    dice, count, statuses = random.Random(0), sized(1_000_000), Counter[str]()
    started, reading = time.perf_counter(), 0.0
    for _ in range(count):
        said, plan = hostile.said(dice), dice.choice((1, 1, 1, 4))
        before = time.thread_time()
        reply = read_reply(said.content, said.reasoning, cut=said.cut, ticks=plan)
        reading += time.thread_time() - before
        fault = hostile.fault_of(reply, said, plan)
        assert fault is None, (fault, said)
        statuses[reply.status.value] += 1
    shares = ", ".join(f"{statuses[status] / count:.0%} {status}" for status in sorted(statuses))
    say(f"{count:,} hostile replies", f"{time.perf_counter() - started:.0f} s, {reading:.0f} of them reading", shares)


def long_replies() -> None:
    dice, count, longest = random.Random(0), sized(1_000), 0.0
    for _ in range(count):
        text = hostile.megabyte(dice)
        before = time.thread_time()
        read_reply(text, cut=dice.random() < 0.5)
        longest = max(longest, time.thread_time() - before)
    say(f"{count:,} replies of a megabyte", f"the longest took {longest * 1e3:.1f} ms")


def ticks() -> None:
    count, sizes = sized(1_000_000), []
    load.fly(min(count, 100_000))
    started = time.process_time()
    games = load.fly(count, lambda _: sizes.append(load.resident()))
    growth = (sizes[-1] - sizes[0]) / 1e6 if sizes else 0.0
    say(f"{count:,} ticks through text", f"{games:,} games", f"{time.process_time() - started:.0f} CPU s", f"{growth:+.1f} MB")


def episodes() -> None:
    dice, count = random.Random(0), sized(10_000)
    played, turns, errors, started, cpu = 0, 0, 0, time.perf_counter(), time.process_time()
    while played < count:
        games = min(200, count - played)
        rows = hostile.evaluate(lambda _: hostile.said(dice), games, seed=played)
        run = run_of_outputs(rows, {}, Path("run"))
        assert len(run.rows) == games
        for row in run.rows:
            assert row.episode is not None, row.problem
            assert check(row) == [], check(row)
            turns += len(row.episode.turns)
            errors += row.error is not None
        played += games
    took = f"{time.perf_counter() - started:.0f} s, {time.process_time() - cpu:.0f} of CPU"
    say(f"{count:,} episodes of hostile replies", f"{turns:,} turns", took, f"all verified, {errors} told as errors")


def rollouts() -> None:
    count, limit = 1_000, sized(300)
    with policy_server() as url:
        load.evaluate(url, "planner", 2, 2)  # the library's own first start is not what is measured
        done = load.evaluate(url, "planner", count, limit)
    wrong = sum(bool(check(row)) for row in done.run.rows)
    errors = sum(row.error is not None for row in done.run.rows)
    say(
        f"{count:,} rollouts at once, {limit} turns",
        f"{done.turns:,} turns in {done.seconds:.0f} s: {done.turns / done.seconds:.0f}/s",
        f"CPU {done.cpu:.0f} s, {done.ours / done.cpu:.1%} of it ours",
        f"{done.memory / count / 1e6:.2f} MB a rollout",
        f"longest call of ours {done.longest * 1e3:.1f} ms, garbage collection {done.collected * 1e3:.0f} ms",
        f"latest event {done.stall * 1e3:.0f} ms",
        f"{errors} errors, {wrong} not verified",
    )


def kill_nine() -> None:
    count, dice = sized(50), random.Random(0)
    for what in (kills.episodes, kills.playing, kills.report, kills.videos):
        with tempfile.TemporaryDirectory() as folder:
            started = time.perf_counter()
            done = what(Path(folder), count, dice)
            took = f"{time.perf_counter() - started:.0f} s"
        say(
            f"{count} kill -9 on {what.__name__}",
            f"{done.killed} in the middle, {done.finished} too late",
            "all files whole",
            took,
        )


def stop() -> None:
    count = sized(50)
    for what in signals.ALL:
        for which in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)[: 3 if what is signals.playing else 2]:
            with tempfile.TemporaryDirectory() as folder:
                done = signals.stop_often(what, [which] * count, random.Random(0), Path(folder))
            say(
                f"{count} {which.name} on {what.__name__}",
                f"{done.stopped} in the middle, {done.finished} too late",
                "as expected",
            )


def kill_evaluations() -> None:
    count, started = sized(50), time.perf_counter()
    with policy_server() as url, tempfile.TemporaryDirectory() as folder:
        done = kills.evaluations(Path(folder), count, random.Random(0), url, games=3 * count)
    told = f"{done.killed} in the middle", f"{3 * count} games, none lost, none twice", f"{time.perf_counter() - started:.0f} s"
    say(f"{count} kill -9 on vf-eval -s, resumed", *told)
