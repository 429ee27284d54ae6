"""The page in a real Chromium: it plays, jumps, sorts, filters, and its states are those of the replay."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from flappybird.analysis import analyse
from flappybird.episodes.episode import Episode, replay
from flappybird.protocol.rules import Rules
from flappybird.report import write_report
from flappybird.report.data import gather
from flappybird.runs import Run
from flappybird.world.config import FlappyConfig
from flappybird.world.game import FlappyGame
from tests.browser import Browser, needs_a_browser
from tests.report.cases import changed, heuristics, play, policy, repeat, row, run
from tests.trust import trajectories

pytestmark = needs_a_browser


@pytest.fixture(autouse=True)
def console_without_errors(browser: Browser) -> Iterator[None]:
    browser.get_log("browser")
    yield
    assert browser.get_log("browser") == []


def varied() -> Run:
    """A run with most things that can happen."""
    rows = [
        row(seed, play(policy("heuristic", seed), seed, prompt_tokens=900, completion_tokens=31, seconds=0.4))
        for seed in range(4)
    ]
    rows.append(row(4, play(repeat("<THINK>hop</THINK><ACTIONS>[TAP]</ACTIONS>", "", "no idea", "<ACTIONS>[]</ACTIONS>"), 4)))
    rows.append(row(5, play(policy("planner", 5), 5, turns=20, error="the server answered 500")))
    rows.append(row(6, None, problem="the row has no info"))
    rows.append(row(7, play(policy("planner", 7), 7, turns=0, error="no reply ever came")))
    return run(rows)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report([varied()], tmp_path_factory.mktemp("page") / "report.html")


def open_page(browser: Browser, path: Path, fragment: str = "") -> None:
    browser.get("about:blank")
    browser.get(path.as_uri() + fragment)
    WebDriverWait(browser, 10).until(lambda _: browser.execute_script("return document.documentElement.dataset.ready"))


def text(browser: Browser, identifier: str) -> str:
    # As JSON, since a driver cannot carry every string that JavaScript can hold.
    return str(
        json.loads(browser.execute_script("return JSON.stringify(document.getElementById(arguments[0]).textContent)", identifier))
    )


def at(browser: Browser) -> float:
    return float(browser.execute_script("return flappybird.player.at"))


def trajectory(browser: Browser, position: int) -> Any:
    return browser.execute_async_script("const done = arguments[1]; flappybird.trajectory(arguments[0]).then(done)", position)


EPISODES: list[Episode] = [
    play(policy("heuristic", 0), 0),
    play(policy("planner", 11), 11),
    play(policy("random", 3), 3),
    play(policy("heuristic", 2**53 - 1), 2**53 - 1, rules=Rules(latency_ticks=1, max_turns=150)),
    play(repeat("<ACTIONS>[NOOP, TAP, NOOP, NOOP, NOOP, NOOP]</ACTIONS>"), 5, rules=Rules(ticks_per_turn=6)),
    play(
        policy("planner", 8, FlappyConfig(gravity=-0.25, pipe_speed=0.4321, pipe_width=1.0001)),
        8,
        config=FlappyConfig(gravity=-0.25, pipe_speed=0.4321, pipe_width=1.0001),
    ),
    play(policy("noop", 0), turns=4),
    play(policy("noop", 0), turns=0),
]
EPISODES += [game.episode for game in trajectories.played() if game.episode is not None]


def test_A07_the_page_rebuilds_every_state_as_the_replay_does(browser: Browser, tmp_path: Path) -> None:
    rows = [row(index, episode) for index, episode in enumerate(EPISODES)]
    # Episodes of several settings come as several runs, see `split`.
    order = [record.row.index for records in gather([run(rows)]) for record in records.records]
    open_page(browser, write_report([run(rows)], tmp_path / "page.html"))
    for position, index in enumerate(order):
        episode = EPISODES[index]
        played, seen = replay(episode), trajectory(browser, position)
        assert [(state["tick"], state["y"], state["velocity"]) for state in seen] == [tuple(state) for state in played.states]
        for state, shown in zip(played.states, seen, strict=True):
            game = FlappyGame(episode.config, episode.seed, state=state)
            visible = [[pipe.x, pipe.gap_y, pipe.gap_height] for pipe in game.course.visible(state.tick)]
            assert shown["pipes"] == visible
            if state.tick < episode.outcome.ticks:
                assert shown["score"] == game.score
        assert seen[-1]["score"] == episode.outcome.pipes_passed
        assert seen[-1]["reward"] == pytest.approx(episode.outcome.reward, abs=1e-9)


def test_a_deep_link_opens_just_there(browser: Browser, page: Path) -> None:
    open_page(browser, page, "#episode=2&tick=87")
    assert at(browser) == 87
    assert text(browser, "turn-title") == "Turn 87"
    assert "Tick 87" in text(browser, "clock")


def test_a_link_that_leads_nowhere_says_so(browser: Browser, page: Path) -> None:
    open_page(browser, page, "#episode=99&tick=1")
    assert "There is no episode 99" in text(browser, "player-notice")
    open_page(browser, page, "#episode=1&tick=nonsense")
    assert at(browser) == 0


def test_the_point_of_no_return_is_one_key_or_click_away(browser: Browser, page: Path) -> None:
    episode = play(policy("heuristic", 0), 0)
    blunder = analyse(episode).blunder
    assert blunder is not None
    open_page(browser, page, "#episode=0")
    browser.find_element(By.ID, "turning").click()
    assert at(browser) == blunder.tick
    assert "Point of no return" in text(browser, "verdict")
    browser.find_element(By.ID, "first").click()
    assert at(browser) == 0
    browser.find_element(By.TAG_NAME, "body").send_keys("n")
    assert at(browser) == blunder.tick
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.ARROW_RIGHT)
    assert "Doomed" in text(browser, "verdict")
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.END)
    assert re.match(r"Hit the \d+(st|nd|rd|th) pipe, ", text(browser, "verdict"))


def test_an_episode_that_was_never_lost_has_no_such_button(browser: Browser, page: Path) -> None:
    open_page(browser, page, "#episode=1")
    assert not browser.find_element(By.ID, "turning").is_enabled()
    assert not browser.find_element(By.ID, "ghost-label").is_displayed()


def test_it_plays_and_pauses_and_steps_and_scrubs(browser: Browser, page: Path) -> None:
    open_page(browser, page, "#episode=1&tick=0")
    Select(browser.find_element(By.ID, "speed")).select_by_visible_text("1×")  # it is far from its end when it is paused
    play_button = browser.find_element(By.ID, "play")
    play_button.click()
    WebDriverWait(browser, 10).until(lambda _: at(browser) > 5)
    play_button.click()
    paused = at(browser)
    assert paused == int(paused)
    browser.find_element(By.ID, "forward").click()
    assert at(browser) == paused + 1
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.SHIFT, Keys.ARROW_LEFT)
    assert at(browser) == max(paused + 1 - 10, 0)
    browser.execute_script("const s = document.getElementById('scrub'); s.value = 120; s.dispatchEvent(new Event('input'))")
    assert at(browser) == 120
    assert text(browser, "turn-title") == "Turn 120"
    WebDriverWait(browser, 5).until(lambda _: browser.current_url.endswith("#episode=1&tick=120"))


def test_playing_stops_at_the_end(browser: Browser, page: Path) -> None:
    open_page(browser, page, "#episode=4&tick=0")
    Select(browser.find_element(By.ID, "speed")).select_by_visible_text("12×")
    browser.find_element(By.TAG_NAME, "body").send_keys(" ")
    WebDriverWait(browser, 15).until(lambda _: not browser.execute_script("return flappybird.player.playing"))
    assert at(browser) == browser.execute_script("return flappybird.player.end")
    assert "The episode is over" in text(browser, "verdict")


def test_drawing_shows_something_else_at_every_tick(browser: Browser, page: Path) -> None:
    open_page(browser, page, "#episode=0&tick=60")
    shot = "return document.querySelector('.lane canvas').toDataURL()"
    first = browser.execute_script(shot)
    browser.find_element(By.ID, "forward").click()
    second = browser.execute_script(shot)
    browser.find_element(By.ID, "back").click()
    assert first != second
    assert first == browser.execute_script(shot), "the same tick is drawn the same"


def test_what_was_said_and_what_became_of_it_stand_beside_the_game(browser: Browser, page: Path) -> None:
    open_page(browser, page, "#episode=4&tick=0")
    assert (text(browser, "status"), text(browser, "action"), text(browser, "thought")) == ("ok", "TAP", "hop")
    browser.find_element(By.ID, "forward").click()
    assert (text(browser, "status"), text(browser, "action"), text(browser, "reply")) == ("empty", "NOOP", "The reply is empty.")
    browser.find_element(By.ID, "forward").click()
    assert (text(browser, "status"), text(browser, "reply")) == ("malformed", "no idea")
    open_page(browser, page, "#episode=0&tick=3")
    facts = text(browser, "facts")
    for fact in ("Prompt tokens900", "Reply tokens31", "Seconds0.40"):
        assert fact in facts


def test_E02_replies_are_shown_literally_tags_and_whitespace_included(browser: Browser, tmp_path: Path) -> None:
    replies = ("<think>go</think><action>flap</action>", "<acton>flap</acton>\n\n  <ACTIONS>[TAP]</ACTIONS>\t<b>bold</b>")
    open_page(browser, write_report([run([row(0, play(repeat(*replies)))])], tmp_path / "page.html"), "#episode=0&tick=0")
    for reply in replies:
        element = browser.find_element(By.ID, "reply")
        assert element.get_property("textContent") == reply
        assert element.value_of_css_property("white-space-collapse") in (
            "preserve",
            "",
        ) or "pre" in element.value_of_css_property("white-space")
        assert not element.find_elements(By.CSS_SELECTOR, "b, think, action, acton")
        browser.find_element(By.ID, "forward").click()


def test_hostile_runs_run_nothing(browser: Browser, tmp_path: Path) -> None:
    hostile = (
        "</script><script>window.hit=1</script><img src=x onerror='window.hit=1'>\u2028\ud800\x00<svg onload=window.hit=1>😀"
    )
    episode = play(repeat(f"<THINK>{hostile}</THINK><ACTIONS>[]</ACTIONS>{hostile}"), name=hostile)
    rows = [
        row(0, episode),
        row(1, None, problem=hostile, error=hostile),
        row(2, play(policy("noop", 2), 2, name=hostile), error=hostile),
    ]
    odd = run(rows, hostile, env_args={"a": hostile}, notes=[hostile])
    open_page(browser, write_report([odd, odd], tmp_path / "page.html"), "#run=0&episode=0&tick=1")
    assert browser.execute_script("return window.hit === undefined")
    assert text(browser, "reply") == f"<THINK>{hostile}</THINK><ACTIONS>[]</ACTIONS>{hostile}"
    assert text(browser, "thought") == hostile.strip()
    assert browser.execute_script("return document.querySelectorAll('main img').length") == 0


def test_E05_a_row_without_a_transcript_says_so_instead_of_a_broken_player(browser: Browser, page: Path) -> None:
    open_page(browser, page, "#episode=6")
    assert "Episode 6 has no transcript: the row has no info" in text(browser, "player-notice")
    assert not browser.find_element(By.ID, "player").is_displayed()
    browser.find_element(By.ID, "next").click()
    WebDriverWait(browser, 5).until(lambda _: browser.find_element(By.ID, "player").is_displayed())
    assert text(browser, "turn-title") == "No turns"
    assert "no reply ever came" in text(browser, "player-notice")


def test_D07_an_errored_rollout_is_not_shown_as_a_death(browser: Browser, page: Path) -> None:
    open_page(browser, page, "#episode=5&tick=20")
    assert "ended by an error and is no score: the server answered 500" in text(browser, "player-notice")
    assert "The episode stopped here: errored." in text(browser, "verdict")


def test_the_table_sorts_both_ways_and_filters_by_cause(browser: Browser, page: Path) -> None:
    open_page(browser, page)
    head = next(one for one in browser.find_elements(By.CSS_SELECTOR, "#episodes th") if "Reward" in one.text)
    column = "return Array.from(document.querySelectorAll('#rows tr:not([hidden])'), (row) => row.cells[6].dataset.v)"
    for direction, ordered in (("ascending", sorted), ("descending", lambda values: sorted(values, reverse=True))):
        head.find_element(By.TAG_NAME, "button").click()
        assert head.get_attribute("aria-sort") == direction
        values = browser.execute_script(column)
        known = [float(value) for value in values if value != ""]
        assert known == ordered(known)
        assert values[len(known) :] == [""] * (len(values) - len(known)), "what is not known comes last"
    browser.find_element(By.CSS_SELECTOR, ".filters [data-value=error]").click()
    assert len(browser.execute_script(column)) == 2
    assert text(browser, "shown") == "2 of 8 shown"
    browser.find_element(By.CSS_SELECTOR, ".filters [data-by='']").click()
    assert len(browser.execute_script(column)) == 8


def test_a_row_opens_its_episode(browser: Browser, page: Path) -> None:
    open_page(browser, page)
    browser.find_element(By.CSS_SELECTOR, "#row-3 a").click()
    WebDriverWait(browser, 5).until(lambda _: browser.execute_script("return flappybird.player.episode.index") == 3)
    assert "current" in str(browser.find_element(By.ID, "row-3").get_attribute("class"))


def test_runs_are_watched_side_by_side_on_one_seed(browser: Browser, tmp_path: Path) -> None:
    runs = [heuristics(3, model="one"), heuristics(3, "random", model="two")]
    open_page(browser, write_report(runs, tmp_path / "page.html"), "#run=1&episode=2&tick=10&race=1")
    assert len(browser.find_elements(By.CSS_SELECTOR, ".lane canvas")) == 2
    assert browser.execute_script("return flappybird.player.lanes.map((lane) => lane.flight.episode.run)") == [0, 1]
    assert browser.execute_script("return flappybird.player.chosen") == 1
    browser.find_element(By.ID, "race").click()
    WebDriverWait(browser, 5).until(lambda _: len(browser.find_elements(By.CSS_SELECTOR, ".lane canvas")) == 1)


def test_a_difference_is_shown_with_its_episode(browser: Browser, tmp_path: Path) -> None:
    lying = changed(row(0, play(policy("noop", 0))), claims={"reward": 50.0})
    open_page(browser, write_report([run([lying])], tmp_path / "page.html"), "#episode=0")
    assert "reward is 50.0" in text(browser, "differences")


@pytest.mark.parametrize("width", [320, 390, 768, 1600])
def test_the_page_is_never_wider_than_the_screen(browser: Browser, page: Path, width: int) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    )
    try:
        open_page(browser, page)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_every_control_has_a_name(browser: Browser, page: Path) -> None:
    open_page(browser, page)
    nameless = browser.execute_script(
        """
        const named = (one) => one.getAttribute("aria-label") || one.textContent.trim() || one.closest("label");
        const controls = Array.from(document.querySelectorAll("button, select, input"));
        return controls.filter((one) => !named(one)).map((one) => one.outerHTML);
        """
    )
    assert nameless == []


PAIRS = [
    *(("--ink", under) for under in ("--paper", "--card", "--accent-soft", "--warn-soft", "--danger-soft", "--good-soft")),
    *(("--mute", under) for under in ("--paper", "--card")),
    *(("--accent", under) for under in ("--paper", "--card", "--accent-soft")),
    *(("--good", under) for under in ("--card", "--good-soft")),
    *(("--warn", under) for under in ("--card", "--warn-soft")),
    ("--danger", "--card"),
    ("--accent-ink", "--accent"),
]
"""Colours of the style sheet that text and its background have."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_background(browser: Browser, page: Path, scheme: str) -> None:
    """Contrast of at least 4.5 to 1, as WCAG 2.1 AA asks for."""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    try:
        open_page(browser, page)
        value = "return getComputedStyle(document.documentElement).getPropertyValue(arguments[0]).trim()"
        for text_colour, background in PAIRS:
            lighter, darker = sorted(luminance(browser.execute_script(value, name)) for name in (text_colour, background))[::-1]
            assert (lighter + 0.05) / (darker + 0.05) >= 4.5, (text_colour, background)
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`, as WCAG 2.1 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
