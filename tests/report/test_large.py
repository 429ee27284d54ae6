"""A run of more episodes than the page has room for: the numbers of all, the replays of those that tell most."""

import re
from pathlib import Path

import pytest

from flappybird.cli import main
from flappybird.report import payload, write_report
from flappybird.report.data import gather
from flappybird.report.overview import Overview
from flappybird.report.summary import Summary
from tests.browser import Browser, needs_a_browser
from tests.report.cases import play, policy, repeat, row, run
from tests.report.test_browser import console_without_errors, open_page, text
from tests.runs.test_load import saved_row, write_run

__all__ = ["console_without_errors"]

ROWS = 130


@pytest.fixture(scope="module")
def large():
    """A run of many short games: floors, a ceiling, a format fault, an errored one, one without a transcript."""
    hold = "<THINK>wait</THINK><ACTIONS>[]</ACTIONS>"
    games = [
        play(repeat(hold)),
        play(repeat("<ACTIONS>[TAP]</ACTIONS>")),
        play(repeat("hm")),
        play(policy("planner", 3), 3, turns=30),
    ]
    rows = [row(index, games[index % 3]) for index in range(ROWS)]
    rows[77] = row(77, games[3])
    rows[78] = row(78, play(repeat(hold), turns=4, error="HTTP 500"))
    rows[79] = row(79, None, problem="nothing was saved")
    return run(rows)


@pytest.fixture(scope="module")
def page(large, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(payload, "ROOM", 20_000)
        return write_report([large], tmp_path_factory.mktemp("large") / "page.html", select=[100])


@pytest.fixture(scope="module")
def of(large):
    gathered = gather([large])
    return Overview(gathered, [Summary(one) for one in gathered])


def test_the_telling_replays_come_first_and_every_episode_once(of):
    order = [row for row, _, _ in payload.by_worth(of, wanted=[111])]
    assert sorted(order) == list(range(ROWS))
    ranked = [record.scores["reward"] for records in of.runs for record in records.clean]
    first = [record for _, _, record in payload.by_worth(of, wanted=[111])][:30]
    assert first[0].row.index == 111
    scores = [record.scores.get("reward") for record in first]
    assert min(ranked) in scores
    assert max(ranked) in scores
    assert {record.cause.name for record in first if record.cause} == set(of.runs[0].causes)


def test_a_page_has_room_for_all_of_a_small_run_and_for_a_choice_of_a_large_one(of, monkeypatch, tmp_path):
    every = payload.payload(of, tmp_path)
    assert [one["row"] for one in every["episodes"]] == list(range(ROWS))
    monkeypatch.setattr(payload, "ROOM", 20_000)
    some = payload.payload(of, tmp_path, wanted=[100, 101])
    assert {100, 101} < {one["index"] for one in some["episodes"]}
    assert len(payload.embed(some["episodes"])) < 22_000 + len(payload.embed(some["episodes"][:2]))
    assert some["rows"] == ROWS


def test_what_a_page_shows_as_an_example_can_be_replayed(page):
    html = page.read_text(encoding="utf-8")
    shown = {
        int(number)
        for number in re.findall(
            r'href="#run=0&amp;episode=(\d+)&amp;tick', html.partition('id="causes"')[2].partition("</section>")[0]
        )
    }
    there = {int(number) for number in re.findall(r'"index":(\d+)', html)}
    assert shown
    assert shown <= there


def reward(browser: Browser) -> list[float]:
    told = browser.execute_script("return Array.from(document.querySelectorAll('#rows tr'), (row) => row.cells[6].dataset.v)")
    return [float(value) for value in told if value]


@needs_a_browser
def test_the_table_of_a_large_run_turns_its_pages_sorts_and_filters_all_rows(browser: Browser, page: Path, large):
    open_page(browser, page)
    assert f"of {ROWS} episodes are in this page" in text(browser, "episodes")
    every = sorted(one.claims["reward"] for one in large.rows if one.claims)

    def click(selector: str) -> None:
        browser.execute_async_script(
            "const done = arguments[1]; document.querySelector(arguments[0]).click(); setTimeout(done, 0)", selector
        )

    click("thead th:nth-child(7) button")
    assert reward(browser) == pytest.approx(every[:100])
    assert text(browser, "page-said") == "1 to 100 of 130"
    click("#page-on")
    assert reward(browser) == pytest.approx(every[100:])
    assert text(browser, "page-said") == "101 to 130 of 130"
    assert browser.execute_script("return document.getElementById('page-on').disabled")
    click(".filters button[data-value=error]")
    assert text(browser, "shown") == "1 of 130 shown"
    assert browser.execute_script("return document.querySelector('#rows tr').dataset.end") == "error"
    assert browser.execute_script("return document.getElementById('pager').hidden")


@needs_a_browser
def test_a_replay_that_is_left_out_is_named_with_the_command_that_has_it(browser: Browser, page: Path):
    open_page(browser, page, "#episode=100&tick=3")
    assert browser.execute_script("return flappybird.player.episode.index") == 100
    there = browser.execute_script(
        "return JSON.parse(document.getElementById('data').textContent).episodes.map((one) => one.index)"
    )
    left_out = next(index for index in range(ROWS) if index not in there)
    open_page(browser, page, f"#episode={left_out}")
    said = text(browser, "player-notice")
    assert said.startswith(f"The replay of episode {left_out} is not in this page, which holds {len(there)} of 130.")
    assert said.endswith(f"flappybird report RUN --select {left_out}")


@pytest.mark.parametrize("words", [["--select", "9"], ["--select", "a"], ["--select", "1,"], ["--select", "0", "--text"]])
def test_episodes_that_are_not_there_cannot_be_selected(words, tmp_path, capsys):
    folder = write_run(tmp_path / "run", [saved_row(seed, max_turns=5) for seed in range(2)])
    assert main(["report", str(folder), *words, *([] if "--text" in words else ["-o", str(tmp_path / "page.html")])]) == 2
    told = capsys.readouterr()
    assert told.err.startswith("flappybird: --select ")
    assert told.err.count("\n") == 1
    assert not (tmp_path / "page.html").exists()
