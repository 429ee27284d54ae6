"""A person takes the stick in a real Chromium: by keys, from a tick of a model's flight, and what comes of it verifies."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from flappybird.cli import main
from flappybird.episodes.episode import Episode, from_dict, load, replay
from flappybird.episodes.verify import verify
from flappybird.protocol.rules import Rules
from flappybird.report import write_report
from flappybird.world.config import FlappyConfig
from tests.browser import Browser, needs_a_browser
from tests.report.cases import play, policy, repeat, row, run
from tests.report.test_browser import open_page, text

pytestmark = needs_a_browser

STEER = """
// A person who plays by the rules of the page: each tick is decided by what `wants` says of it, and flown at once.
const [wants, ticks] = arguments;
const page = flappybird.player;
for (let n = 0; n < ticks && page.stick; n++) { page.stick.tap = wants[n % wants.length] === "T"; flappybird.tick(); }
"""


@pytest.fixture(autouse=True)
def console_without_errors(browser: Browser) -> Iterator[None]:
    browser.get_log("browser")
    yield
    assert browser.get_log("browser") == []


def flown(browser: Browser) -> Any:
    return browser.execute_script("return flappybird.landed()")


def test_a_flight_from_tick_100_by_keys_ends_as_a_file_that_verifies(browser: Browser, tmp_path: Path) -> None:
    model = play(policy("planner", 3), 3, name="org/model", prompt_tokens=9, seconds=0.25)
    open_page(browser, write_report([run([row(0, model)], "org/model")], tmp_path / "page.html"), "#episode=0&tick=100")
    browser.execute_cdp_cmd("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path / "downloads")})
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys("f")
    assert "from tick 100" in text(browser, "whose")
    Select(browser.find_element(By.ID, "pace")).select_by_visible_text("4 ticks/s")
    browser.execute_script("document.activeElement.blur()")
    body.send_keys(" ")
    WebDriverWait(browser, 10).until(lambda _: browser.execute_script("return flappybird.player.at > 101"))
    body.send_keys(" ")
    WebDriverWait(browser, 30).until(lambda _: flown(browser))
    assert "You lived" in text(browser, "stick-said")
    assert len(browser.find_elements(By.CSS_SELECTOR, ".lane canvas")) == 2
    browser.find_element(By.ID, "stick-save").click()
    folder = tmp_path / "downloads"
    WebDriverWait(browser, 10).until(lambda _: list(folder.glob("*.json")))
    (file,) = folder.glob("*.json")
    assert main(["verify", str(file)]) == 0
    episode = load(file)
    assert episode.player.kind == "human"
    assert episode.origin["took_over"]["tick"] == 100
    assert episode.origin["took_over"]["from"] == {"kind": "model", "name": "org/model"}
    assert episode.turns[:100] == model.turns[:100]
    assert episode.turns[100].reply is None
    assert episode.turns[100].taps[0]
    assert sum(turn.taps[0] for turn in episode.turns[100:]) >= 2
    assert episode.outcome.reason.crashed


WORLDS: list[tuple[Episode, int]] = [
    (play(policy("heuristic", 0), 0), 30),
    (play(policy("planner", 1), 1, rules=Rules(max_turns=60)), 40),
    (play(policy("planner", 5), 5, rules=Rules(latency_ticks=3)), 20),
    (play(repeat("<ACTIONS>[NOOP, TAP, NOOP, NOOP, NOOP, NOOP]</ACTIONS>"), 5, rules=Rules(ticks_per_turn=6)), 7),
    (play(repeat("<THINK>a</THINK><ACTIONS>[TAP]</ACTIONS>", "no", ""), 2, rules=Rules(realtime=10.0), waited=2), 5),
    (play(policy("noop", 0), config=FlappyConfig(gravity=-0.2999, jump_impulse=1.6001, bird_radius=0.1999)), 3),
    (play(policy("planner", 2**53 - 1), 2**53 - 1, rules=Rules(max_turns=120)), 0),
]


@pytest.mark.parametrize("wants", ["T......", ".....T", "T", "."])
def test_what_a_person_flies_is_what_the_game_would_have_flown(browser: Browser, tmp_path: Path, wants: str) -> None:
    """The page's physics are bit-exact: whatever is pressed, the episode that it writes down agrees with its replay."""
    for index, (model, tick) in enumerate(WORLDS):
        page = write_report([run([row(0, model)])], tmp_path / f"{index}.html")
        open_page(browser, page, f"#episode=0&tick={tick}")
        browser.find_element(By.ID, "stick").click()
        browser.execute_script(STEER, wants, 150)
        told = flown(browser)
        if told is None:
            browser.find_element(By.ID, "stick-go").click()  # stops a flight that goes on
            told = flown(browser)
        episode = from_dict(json.loads(json.dumps(told)))
        assert verify(episode) == []
        start = episode.origin["took_over"]["tick"]
        assert replay(episode).states[: start + 1] == replay(model).states[: start + 1]
        assert start <= tick


def test_the_stick_can_be_given_back_and_taken_again(browser: Browser, tmp_path: Path) -> None:
    page = write_report([run([row(0, play(policy("heuristic", 0), 0))])], tmp_path / "page.html")
    open_page(browser, page, "#episode=0&tick=60")
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys("f")
    body.send_keys(Keys.ESCAPE)
    WebDriverWait(browser, 5).until(lambda _: browser.find_element(By.ID, "controls").is_displayed())
    assert browser.execute_script("return flappybird.player.at") == 60
    body.send_keys("f")
    canvas = browser.find_element(By.CSS_SELECTOR, ".lane canvas")
    canvas.click()
    WebDriverWait(browser, 5).until(lambda _: browser.execute_script("return flappybird.player.stick.flying"))
    time.sleep(0.5)
    body.send_keys(Keys.ESCAPE)
    told = flown(browser)
    assert told["outcome"]["reason"] in ("aborted", "floor", "ceiling", "pipe")
    assert told["turns"][60]["actions"] == ["TAP"], "the click that began the flight was a flap"
    browser.find_element(By.ID, "stick-go").click()
    assert "From tick 60" in text(browser, "stick-said")
