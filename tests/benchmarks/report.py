"""What a report costs: `python -m tests.benchmarks.report [EPISODES] [TICKS]`.

Prints the time to solve a course and to analyse an episode beside the time to play one by the heuristic, the peer of this
run, what reading, checking and scoring a saved episode takes, with and without its explanation, and then writing time, size
and (where Chromium is installed) time until the page is ready and until its table is sorted.
"""

from __future__ import annotations

import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from flappybird.analysis import analyse
from flappybird.episodes.episode import Episode, Player, replay
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.players.games import play
from flappybird.players.policies import make_policy
from flappybird.protocol.reply import write_reply
from flappybird.protocol.rules import Rules
from flappybird.report import reference, write_report
from flappybird.report.causes import cause_of
from flappybird.runs import Row, Run, check, open_run
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course
from flappybird.world.solver import Survival
from tests.runs.test_load import saved_row, write_run

READY = "return document.documentElement.dataset.ready"
"""What the page sets once the first episode is drawn: milliseconds since it was asked for."""


def episode(seed: int, ticks: int, dice: random.Random) -> Episode:
    """An episode of the planner to the tick limit, with a thought of about 120 characters in every turn."""
    config = FlappyConfig()
    decide, rollout = make_policy("planner", config), Rollout(config, seed, Rules(max_turns=ticks))
    while rollout.outcome is None:
        decision = decide(rollout.observation())
        thought = f"{decision.thought} ({dice.randrange(10**6)})"
        rollout.take(
            write_reply((decision.tap,), thought), prompt_tokens=dice.randrange(9_000), completion_tokens=60, seconds=0.5
        )
    return finish(rollout, Player(kind="model", name="benchmark"))


def median(task: Callable[[], object], times: int) -> float:
    """Seconds."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        task()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


SORT = """
const done = arguments[0], begun = performance.now();
document.querySelector("#episodes thead th:nth-child(7) button").click();
requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun), 0));
"""
"""Sorts the table of episodes; milliseconds until the next picture."""

DISTINCT = 500
"""The most games that a run of the benchmark is made of; a larger one has each of them several times."""


def ready(page: Path) -> tuple[float, float] | None:
    """Seconds until the page is ready in headless Chromium, as it counts them itself, and of a sort; None without a browser."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        return None
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import WebDriverWait

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    with tempfile.TemporaryDirectory() as profile:
        for flag in (
            "headless=new",
            "no-sandbox",
            "disable-gpu",
            "disable-quic",
            "no-first-run",
            "disable-background-networking",
        ):
            options.add_argument(f"--{flag}")
        options.add_argument(f"--user-data-dir={profile}")
        browser = webdriver.Chrome(options=options, service=Service(driver))
        try:
            taken = []
            for _ in range(3):
                browser.get("about:blank")
                browser.get(page.resolve().as_uri())
                told = WebDriverWait(browser, 60).until(lambda here: here.execute_script(READY))
                taken.append(float(told) / 1000)
            time.sleep(2)  # the rows that came packed are there, as they are for whoever sorts them
            sorts = [float(browser.execute_async_script(SORT)) / 1000 for _ in range(5)]
            return statistics.median(taken), statistics.median(sorts)
        finally:
            browser.quit()


def main(episodes: int = 60, ticks: int = 300) -> None:
    """Print the figures for a report of `episodes` episodes of `ticks` ticks."""
    dice = random.Random(0)
    course = Course(FlappyConfig(), 0)
    one = episode(0, ticks, dice)
    played = median(lambda: play("heuristic", one.config, one.seed, ticks), 5)
    solve = median(lambda: Survival.of(course, ticks), 20)
    explain = median(lambda: analyse(one), 20)
    print(f"solve a {ticks}-tick course: {solve * 1e3:.2f} ms, {played / solve:.1f} × as fast as the heuristic plays it")
    print(
        f"analyse an episode of {ticks} ticks: {explain * 1e3:.2f} ms, {played / explain:.1f} × as fast as the heuristic plays it"
    )

    with tempfile.TemporaryDirectory() as folder:
        saved = open_run(write_run(Path(folder), [saved_row(seed, "planner", ticks) for seed in range(10)]))
        pieces = list(saved.pieces())

        def checked(explained: bool) -> float:
            begun = time.process_time()
            for piece in saved.pieces():
                (row,) = saved.rows_of(piece)
                assert row.episode is not None
                flown = replay(row.episode)
                check(row, flown)
                if explained:
                    cause_of(row.episode, flown, analyse(row.episode, flown))
            return (time.process_time() - begun) / len(pieces) * 1e3

        without, explained = (min(checked(also) for _ in range(5)) for also in (False, True))
    print(f"read, check and score a saved episode of {ticks} ticks: {without:.1f} CPU-ms, with its explanation {explained:.1f}")

    games = [episode(seed, ticks, dice) for seed in range(min(episodes, DISTINCT))]
    rows = [Row(at, games[at % DISTINCT], example=at % DISTINCT, rollout=at // DISTINCT) for at in range(episodes)]
    run = Run(Path("benchmark"), "classic", "benchmark", rows, asked=episodes, date=datetime(2026, 1, 1, tzinfo=UTC))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        reference._play.cache_clear()
        start, cpu = time.perf_counter(), time.process_time()
        write_report([run], page)
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu
        print(
            f"report of {episodes} episodes × {ticks} ticks: {wall:.2f} s ({cpu:.2f} CPU-s), {page.stat().st_size / 1e6:.2f} MB"
        )
        seen = ready(page)
        told = f"{seen[0]:.2f} s, a sort {seen[1]:.2f} s" if seen else "not measured, no chromium"
        print(f"ready in headless Chromium: {told}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
