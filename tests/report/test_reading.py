"""What a reader of the page meets in a real Chromium: what fits, what is said, what can be clicked, and staying inside."""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import Iterator
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from flappybird.analysis import analyse
from flappybird.episodes.episode import Episode
from flappybird.episodes.rollout import Rollout
from flappybird.protocol.prompt import prompt_of
from flappybird.protocol.rules import Rules
from flappybird.report import write_report
from flappybird.runs import Run
from flappybird.world.config import FlappyConfig
from tests.browser import Browser, needs_a_browser
from tests.report.cases import heuristics, play, policy, repeat, row, run
from tests.report.test_browser import at, open_page, text

pytestmark = needs_a_browser

LONG = "organisation/some-model-with-a-name-of-sixty-letters-2026-07"


@pytest.fixture(autouse=True)
def console_without_errors(browser: Browser) -> Iterator[None]:
    browser.get_log("browser")
    yield
    assert browser.get_log("browser") == []


@pytest.fixture
def screen(browser: Browser) -> Iterator[Any]:
    """Sets the size of the screen."""

    def to(width: int, height: int, media: str = "") -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media})

    yield to
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def ten() -> list[Run]:
    """Ten runs, most with names of sixty letters, one named like a policy."""
    players = ["planner", "heuristic", "random", "noop"]
    names = [f"{LONG[:57]}-{index:02d}" for index in range(9)] + ["planner"]
    return [heuristics(2, players[index % 4], model=name) for index, name in enumerate(names)]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reading")
    mixed = [row(seed, play(policy("heuristic", seed), seed, prompt_tokens=70, completion_tokens=7)) for seed in range(5)]
    mixed.append(row(5, play(repeat("<THINK>hop</THINK><ACTIONS>[TAP]</ACTIONS>", "no idea", ""), 4)))
    return {
        "one": write_report([run(mixed)], folder / "one.html"),
        "ten": write_report(ten(), folder / "ten.html"),
    }


@pytest.mark.parametrize("fragment", ["#run=1&episode=0&tick=40", "#run=1&episode=0&tick=40&race=1"])
@pytest.mark.parametrize("size", [(1366, 768), (1400, 1000), (390, 844)])
def test_picture_and_controls_fit_the_screen_together(
    browser: Browser, screen: Any, pages: dict[str, Path], fragment: str, size: tuple[int, int]
) -> None:
    if size[0] < 500 and "race" in fragment:
        pytest.skip("six lanes on a telephone are scrolled")
    screen(*size)
    open_page(browser, pages["ten"], fragment)
    box = "const box = (id) => document.getElementById(id).getBoundingClientRect(); "
    top, bottom = browser.execute_script(box + "return [box('whose').top, box('controls').bottom]")
    assert top >= 0
    assert bottom <= size[1]


SPILLS = """
const wide = document.documentElement.clientWidth, found = [];
if (document.documentElement.scrollWidth > wide) found.push("the page itself");
for (const one of document.querySelectorAll("main *")) {
  if (one.closest(".scroll, svg, .lanes, pre, [hidden], .unseen") || !one.getClientRects().length) continue;
  const box = one.getBoundingClientRect();
  if (box.right > wide + 1 || box.left < -1) found.push(one.outerHTML.slice(0, 120));
}
return found;
"""

OVERLAPS = """
const found = [];
for (const chart of document.querySelectorAll("svg.chart")) {
  const drawn = Array.from(chart.querySelectorAll("text"));
  const texts = drawn.map((one) => [one.textContent, one.getBoundingClientRect()]);
  texts.forEach(([a, one], index) => { for (const [b, two] of texts.slice(index + 1)) {
    const beside = one.left >= two.right - 1 || two.left >= one.right - 1;
    const below = one.top >= two.bottom - 2 || two.top >= one.bottom - 2;
    if (a && b && !beside && !below) found.push([a, b]);
  } });
}
return found;
"""


@pytest.mark.parametrize(("width", "media"), [(390, ""), (1400, ""), (1030, "print")])
def test_ten_runs_with_long_names_spill_and_overlap_nowhere(
    browser: Browser, screen: Any, pages: dict[str, Path], width: int, media: str
) -> None:
    screen(width, 900, media)
    open_page(browser, pages["ten"])
    assert browser.execute_script(SPILLS) == []
    assert browser.execute_script(OVERLAPS) == []


def test_print_loses_nothing(browser: Browser, screen: Any, pages: dict[str, Path]) -> None:
    screen(1000, 800)
    open_page(browser, pages["one"], "#show&cause=early")
    hidden = "return Array.from(document.querySelectorAll('#rows tr')).filter((one) => !one.getClientRects().length).length"
    assert browser.execute_script(hidden) > 0, "the filter hides rows on the screen"
    screen(1000, 800, "print")
    assert browser.execute_script(hidden) == 0
    boxes = "Array.from(document.querySelectorAll('.scroll, .turn, pre'))"
    clipped = f"return {boxes}.filter((one) => one.scrollHeight > one.clientHeight + 2).map((one) => one.className)"
    assert browser.execute_script(clipped) == []


def test_everywhere_it_says_whose_flight_it_is(browser: Browser, pages: dict[str, Path]) -> None:
    open_page(browser, pages["ten"], "#run=9&episode=1&tick=3")
    assert text(browser, "whose").startswith("1planner") or "planner" in text(browser, "whose")
    assert "Episode 1 · seed 1" in text(browser, "whose")
    open_page(browser, pages["ten"], "#run=3&episode=1&tick=3&race=1")
    lanes = browser.find_elements(By.CSS_SELECTOR, ".lane-pick")
    assert len(lanes) == 6
    lanes[1].click()
    assert browser.execute_script("return flappybird.player.episode.run") == 1
    assert text(browser, "lane-name").endswith(f"{LONG[:57]}-01")
    assert browser.execute_script("return document.getElementById('choice').selectedOptions[0].value") == "3"
    assert browser.execute_script(
        "return document.querySelector('.lane.chosen').contains(document.querySelectorAll('.lane-pick')[1])"
    )


def test_a_finished_lane_stays_where_it_ended_and_says_why(browser: Browser, pages: dict[str, Path]) -> None:
    open_page(browser, pages["ten"], "#run=0&episode=0&tick=8&race=1")
    shot = "return document.querySelectorAll('.lane canvas')[3].toDataURL()"
    ended = browser.execute_script(shot)
    for _ in range(3):
        browser.find_element(By.ID, "forward").click()
    assert browser.execute_script(shot) == ended
    assert "hit the floor at tick 8" in browser.find_elements(By.CSS_SELECTOR, ".lane figcaption")[3].text


def test_marks_of_the_timeline_can_be_clicked(browser: Browser, pages: dict[str, Path]) -> None:
    blunder = analyse(play(policy("heuristic", 0), 0)).blunder
    assert blunder is not None
    open_page(browser, pages["one"], "#episode=0&tick=0")
    track = browser.find_element(By.ID, "track")
    width = track.size["width"]
    end = browser.execute_script("return flappybird.player.end")
    x = 8 + (width - 16) * blunder.tick / end
    click = (
        "const [track, x, kind] = arguments; const left = track.getBoundingClientRect().left; "
        "track.dispatchEvent(new MouseEvent(kind, {bubbles: true, clientX: left + x}))"
    )
    browser.execute_script(click, track, x + 4, "pointermove")
    assert "point of no return" in text(browser, "track-tip")
    browser.execute_script(click, track, x + 4, "click")
    assert at(browser) == blunder.tick


def test_the_transcript_shows_what_was_sent_and_said(browser: Browser, pages: dict[str, Path]) -> None:
    open_page(browser, pages["one"], "#episode=5&tick=0")
    browser.find_element(By.ID, "tab-transcript").click()
    shown = text(browser, "transcript")
    assert prompt_of(FlappyConfig(), Rules()) in shown
    rollout = Rollout(FlappyConfig(), 4, Rules())
    entries = browser.execute_script(
        "return Array.from(document.querySelectorAll('#transcript [data-turn]'), (one) => one.textContent)"
    )
    for index, reply in enumerate(["<THINK>hop</THINK><ACTIONS>[TAP]</ACTIONS>", "no idea", ""]):
        assert rollout.message() in entries[index]
        rollout.take(reply)
        assert (reply or "The reply is empty.") in entries[index]
    browser.find_element(By.ID, "next-invalid").click()
    assert at(browser) == 1
    browser.find_element(By.TAG_NAME, "body").send_keys("i")
    assert at(browser) == 2
    search = browser.find_element(By.ID, "search")
    search.send_keys("NO IDEA")
    turns = browser.execute_script("return flappybird.player.lanes[0].flight.body.turns.map((turn) => turn.reply)")
    assert text(browser, "found") == f"{turns.count('no idea')} of {len(turns)} turns"
    search.send_keys(" at all")
    assert "No turn holds these words" in text(browser, "transcript")


def test_the_transcript_jumps_to_the_point_of_no_return(browser: Browser, pages: dict[str, Path]) -> None:
    blunder = analyse(play(policy("heuristic", 0), 0)).blunder
    assert blunder is not None
    open_page(browser, pages["one"], "#episode=0&tick=0")
    browser.find_element(By.ID, "tab-transcript").click()
    browser.find_element(By.ID, "to-lost").click()
    assert at(browser) == blunder.tick
    current = browser.find_element(By.CSS_SELECTOR, "#transcript .current")
    assert current.get_attribute("data-turn") == str(blunder.turn)
    assert "point of no return" in current.text
    assert "70 in, 7 out tokens" in current.text


@pytest.mark.skipif(find_spec("pygame") is None, reason="needs the extra render")
def test_pictures_are_shown_as_they_were_sent(browser: Browser, tmp_path: Path) -> None:
    from flappybird.messages import png

    rules = Rules(observation="text+image", max_turns=30)
    episode = play(policy("noop", 0), rules=rules)
    open_page(browser, write_report([run([row(0, episode)])], tmp_path / "page.html"), "#episode=0&tick=0")
    browser.find_element(By.ID, "tab-transcript").click()
    images = browser.execute_script("return Array.from(document.querySelectorAll('#transcript img'), (one) => one.src)")
    first = base64.b64decode(images[0].removeprefix("data:image/png;base64,"))
    assert first == png(Rollout(FlappyConfig(), 0, rules))
    pictures = browser.find_elements(By.CSS_SELECTOR, "#transcript .seen-picture")
    assert len(pictures) == len(episode.turns)


def test_a_reply_of_400_000_letters_in_both_directions_is_opened_piece_by_piece(browser: Browser, tmp_path: Path) -> None:
    reply = "<THINK>" + "abc אבג \u202e" * 44_000 + "</THINK><ACTIONS>[]</ACTIONS>"
    episode = play(repeat(reply), turns=2)
    open_page(browser, write_report([run([row(0, episode)])], tmp_path / "page.html"), "#episode=0&tick=0")
    length = "return document.getElementById('reply').textContent.length"
    assert browser.execute_script(length) < 10_000
    more = browser.find_elements(By.CSS_SELECTOR, "#reply button.more")
    assert more
    assert "more of" in more[0].text
    before = browser.execute_script(length)
    browser.execute_script("arguments[0].click()", more[0])
    assert before + 15_000 < browser.execute_script(length) < before + 25_000


def test_a_point_says_what_it_is_and_opens_its_episode(browser: Browser, pages: dict[str, Path]) -> None:
    open_page(browser, pages["one"])
    point = browser.find_element(By.CSS_SELECTOR, "[data-chart=rewards] a[href='#run=0&episode=3']")
    assert "test-model, episode 3: " in point.get_attribute("textContent")
    browser.execute_script("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))", point)
    WebDriverWait(browser, 5).until(lambda _: browser.execute_script("return flappybird.player.episode.index") == 3)
    bar = browser.find_element(By.CSS_SELECTOR, "[data-chart=ends] a[href='#show&run=0&end=pipe']")
    browser.execute_script("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))", bar)
    rows = "return Array.from(document.querySelectorAll('#rows tr:not([hidden])'), (row) => row.dataset.end)"
    assert set(browser.execute_script(rows)) == {"pipe"}
    strip = browser.find_element(By.CSS_SELECTOR, ".strips a")
    tick = int(str(strip.get_attribute("href")).rpartition("tick=")[2])
    browser.execute_script("arguments[0].click()", strip)
    WebDriverWait(browser, 5).until(lambda _: at(browser) == tick)
    assert "Point of no return" in text(browser, "verdict")


def test_letters_work_on_every_keyboard_layout(browser: Browser, pages: dict[str, Path]) -> None:
    open_page(browser, pages["one"], "#episode=1&tick=5")
    press = "document.body.dispatchEvent(new KeyboardEvent('keydown', {code: arguments[0], key: arguments[1], bubbles: true}))"
    browser.execute_script(press, "KeyJ", "о")
    WebDriverWait(browser, 5).until(lambda _: browser.execute_script("return flappybird.player.episode.index") == 2)
    browser.execute_script(press, "KeyK", "л")
    WebDriverWait(browser, 5).until(lambda _: browser.execute_script("return flappybird.player.episode.index") == 1)
    browser.execute_script(press, "KeyT", "е")
    assert browser.find_element(By.ID, "transcript").is_displayed()
    browser.find_element(By.TAG_NAME, "body").send_keys("?")
    assert browser.find_element(By.ID, "help").is_displayed()
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.ESCAPE)


HOSTS = {
    "srcdoc": '<iframe id="frame" srcdoc="{attribute}"></iframe>',
    "data": '<iframe id="frame" src="data:text/html;base64,{encoded}"></iframe>',
    "blob": '<iframe id="frame"></iframe><script>document.getElementById("frame").src = URL.createObjectURL(new Blob('
    '[Uint8Array.from(atob("{encoded}"), (letter) => letter.charCodeAt(0))], {{type: "text/html"}}))</script>',
}


@pytest.mark.parametrize("kind", HOSTS)
def test_in_a_frame_links_stay_inside_and_copying_never_raises(
    browser: Browser, tmp_path: Path, pages: dict[str, Path], kind: str
) -> None:
    page = pages["one"].read_text("utf-8")
    encoded = base64.b64encode(page.encode()).decode()
    host = tmp_path / "host.html"
    host.write_text(
        f"<!doctype html><title>host</title><p>HOST</p>{HOSTS[kind].format(attribute=escape(page), encoded=encoded)}", "utf-8"
    )
    browser.get(host.as_uri())
    address = browser.current_url
    browser.switch_to.frame("frame")
    try:
        WebDriverWait(browser, 10).until(lambda _: browser.execute_script("return document.documentElement.dataset.ready"))
        for selector in ("nav a[href='#episodes']", "#row-2 a", ".strips a", ".run-name a"):
            browser.execute_script("document.querySelector(arguments[0]).click()", selector)
            assert browser.execute_script("return Boolean(document.getElementById('rows')) && document.title !== 'host'")
        browser.execute_script("document.getElementById('link').click()")
        WebDriverWait(browser, 5).until(lambda _: text(browser, "link") != "Copy link")
    finally:
        browser.switch_to.default_content()
    assert browser.current_url == address


def test_embed_shows_the_player_alone(browser: Browser, pages: dict[str, Path]) -> None:
    open_page(browser, pages["one"], "#episode=2&tick=9&embed")
    assert browser.find_element(By.ID, "player").is_displayed()
    for identifier in ("overview", "causes", "episodes", "details"):
        assert not browser.find_element(By.ID, identifier).is_displayed()
    browser.find_element(By.ID, "forward").click()
    WebDriverWait(browser, 5).until(lambda _: browser.current_url.endswith("tick=10&embed"))


def test_an_episode_shows_its_player_in_a_notebook(browser: Browser, tmp_path: Path) -> None:
    episode: Episode = play(policy("heuristic", 0), 0, name='"><script>alert(1)</script>')
    host = tmp_path / "notebook.html"
    host.write_text(f"<!doctype html><title>notebook</title>{episode._repr_html_()}", "utf-8")
    browser.get(host.as_uri())
    browser.switch_to.frame(browser.find_element(By.TAG_NAME, "iframe"))
    try:
        WebDriverWait(browser, 10).until(lambda _: browser.execute_script("return document.documentElement.dataset.ready"))
        assert browser.find_element(By.CSS_SELECTOR, ".lane canvas").is_displayed()
        assert not browser.find_element(By.ID, "overview").is_displayed()
    finally:
        browser.switch_to.default_content()


def test_a_moment_and_a_chart_are_saved_as_pictures(browser: Browser, tmp_path: Path, pages: dict[str, Path]) -> None:
    folder = tmp_path / "saved"
    browser.execute_cdp_cmd("Page.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
    open_page(browser, pages["ten"], "#run=1&episode=1&tick=33")
    browser.find_element(By.TAG_NAME, "body").send_keys("s")
    WebDriverWait(browser, 10).until(lambda _: list(folder.glob("*episode-1-tick-33.png")))
    for kind in ("svg", "png"):
        browser.execute_script("document.querySelector(arguments[0]).click()", f"[data-chart=forest] [data-save={kind}]")
        WebDriverWait(browser, 10).until(lambda _, kind=kind: (folder / f"flappybird-forest.{kind}").exists())
    assert (folder / "flappybird-forest.png").read_bytes().startswith(b"\x89PNG")
    drawing = (folder / "flappybird-forest.svg").read_text("utf-8")
    assert drawing.startswith("<svg")
    assert "var(" not in drawing
    assert "class=" not in drawing or "rgb(" in drawing


def test_axe_finds_no_serious_violation(browser: Browser, tmp_path: Path, pages: dict[str, Path]) -> None:
    """axe-core is fetched for the test by npm, where there is one, and nothing of it is kept."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm")
    install = [npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "axe-core@4"]
    if subprocess.run(install, cwd=tmp_path, capture_output=True, check=False, timeout=120).returncode:
        pytest.skip("npm cannot install axe-core here")
    source = (tmp_path / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
    browser.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})
    try:
        for page, tab in (("one", "tab-transcript"), ("ten", "tab-turn")):
            open_page(browser, pages[page], "#run=0&episode=1&tick=20")
            browser.find_element(By.ID, tab).click()
            browser.execute_script(source)
            found = browser.execute_async_script(
                "axe.run(document, {resultTypes: ['violations']}).then((result) => arguments[0]("
                "result.violations.filter((one) => ['serious', 'critical'].includes(one.impact))"
                ".map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 150))])))"
            )
            assert found == []
    finally:
        browser.execute_cdp_cmd("Page.setBypassCSP", {"enabled": False})
