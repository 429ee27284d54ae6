"""Runs in the browser: what is listed, what a run's page shows, who may see it, and that it is alive."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from flappybird.cli import main
from flappybird.episodes.episode import save
from flappybird.runs.index import Index
from flappybird.view.app import View
from tests.browser import Browser, browser, needs_a_browser  # noqa: F401
from tests.conftest import play, serving
from tests.runs.test_load import METADATA, saved_row, write_run

ROWS = [saved_row(seed, "random") for seed in range(7)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is complete, one that can be resumed, a folder of episodes, and two that are none of ours."""
    root = tmp_path_factory.mktemp("runs")
    done = write_run(root / "evals" / "model-a" / "1", ROWS, {**METADATA, "model": "a/model", "num_examples": 7})
    half = write_run(root / "evals" / "model-b" / "2", ROWS[:3], {**METADATA, "model": "b/model", "num_examples": 9})
    (root / "episodes").mkdir()
    save(play("planner", max_turns=30), root / "episodes" / "one.json")
    other = root / "other"
    other.mkdir()
    (other / "results.jsonl").write_text('{"example_id": 0, "reward": 1.0}\nno JSON\n')
    for age, run in enumerate((half, other, done)):
        os.utime(run / "results.jsonl", (time.time() - 1000 - age,) * 2)
    return root


@pytest.fixture(scope="module")
def shown(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[View, str]]:
    with showing(folder, tmp_path_factory.mktemp("index")) as found:
        yield found


class showing:
    """The runs below a folder on a port of this machine, for the length of a `with` block."""

    def __init__(self, folder: Path, index: Path) -> None:
        self.view = View([folder], index=Index(index / "index.sqlite"))
        self.server = serving(self.view.app)
        self.watching = self.view.watched()

    def __enter__(self) -> tuple[View, str]:
        url = self.server.__enter__().removesuffix("/v1")
        self.view.hosts.add(url.removeprefix("http://"))
        self.watching.__enter__()
        return self.view, url

    def __exit__(self, *ended: Any) -> None:
        self.watching.__exit__(*ended)
        self.server.__exit__(*ended)


def until(met: Any) -> None:
    deadline = time.monotonic() + 60
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def ask(url: str, path: str = "/", **more: Any) -> httpx.Response:
    return httpx.get(url + path, **more)


def test_every_run_is_listed_with_its_state_the_newest_first(shown):
    view, url = shown
    until(lambda: sum(run.rows for run in view.listed()) >= 12)
    listed = {run.name: run for run in view.listed()}
    assert list(listed) == ["episodes", "evals/model-b/2", "other", "evals/model-a/1"]
    assert {name: run.state for name, run in listed.items()} == {
        "episodes": "complete",
        "evals/model-b/2": "resumable",
        "other": "broken",
        "evals/model-a/1": "complete",
    }
    done = listed["evals/model-a/1"]
    assert (done.model, done.level, done.rows, done.asked) == ("a/model", "card", 7, 7)
    assert done.mean == pytest.approx(sum(row["reward"] for row in ROWS) / 7)
    text = ask(url).text
    assert "of another environment, or damaged" in text
    assert "a/model" not in ask(url, "/?q=b/model resumable").text
    assert "No run fits" in ask(url, "/?q=nobody").text


def test_rows_are_sorted_and_filtered_by_the_server(shown):
    _, url = shown
    page = "/run?path=0/evals/model-a/1"
    rewards = sorted((row["reward"] for row in ROWS), reverse=True)
    text = ask(url, f"{page}&sort=reward&down=1").text
    places = [text.index(f"<td>{reward:.2f}</td>") for reward in rewards]
    assert places == sorted(places)
    assert "1 of 7 rollouts: seed 3" in ask(url, f"{page}&seed=3").text
    least = rewards[2]
    many = sum(reward >= least for reward in rewards)
    assert f"{many} of 7 rollouts" in ask(url, f"{page}&number=reward&least={least}").text
    ended = ROWS[0]["info"]["outcome"]["reason"]
    many = sum(row["info"]["outcome"]["reason"] == ended for row in ROWS)
    assert f"{many} of 7 rollouts" in ask(url, f"{page}&ended={ended}").text
    assert "0 of 7 rollouts" in ask(url, f"{page}&text=said by nobody").text
    assert "7 of 7 rollouts" in ask(url, f"{page}&text=THINK").text


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/run?path=0/nothing", 404, "no such run"),
        ("/run?path=7/evals", 404, "no such run"),
        ("/run?path=0/../..", 400, "not below"),
        ("/run?path=0/%00", 400, "no path"),
        ("/run?path=0/evals/model-a/1&seed=x", 400, "must be a whole number"),
        ("/run?path=0/evals/model-a/1&number=reward&least=nan", 400, "must be a number"),
        ("/run?path=0/evals/model-a/1&number=salary&least=1", 400, "must be one of reward"),
        ("/episode?path=0/evals/model-a/1", 400, "must be a whole number"),
        ("/episode?path=0/evals/model-a/1&offset=0&part=3", 400, "no rollout 3"),
        ("/nowhere", 404, "no such page"),
    ],
)
def test_what_cannot_be_shown_is_one_line(shown, path, status, said):
    answer = ask(shown[1], path)
    assert (answer.status_code, said in answer.text) == (status, True)
    assert "Traceback" not in answer.text


def test_an_episode_and_a_comparison_are_the_reports_own_pages(shown):
    _, url = shown
    episode = ask(url, "/episode?path=0/evals/model-b/2&offset=0").text
    assert 'id="replay"' in episode
    assert "1 of 1" in episode
    both = ask(url, "/report?path=0/evals/model-a/1&path=0/evals/model-b/2").text
    assert "2 runs compared" in both


def test_a_trainers_folder_leads_to_its_page_by_step(tmp_path):
    pytest.importorskip("verifiers.v1", reason="verifiers 0.3 or newer")
    from flappybird.runs.training import is_training

    for step in (0, 10):
        where = tmp_path / "runs" / "grpo" / "rollouts" / f"step_{step}" / "eval" / "all"
        where.mkdir(parents=True)
        (where / "traces.jsonl").write_text("{}\n")
    assert is_training(tmp_path / "runs" / "grpo")
    with showing(tmp_path / "runs", tmp_path) as (_, url):
        assert 'href="/training?path=0/grpo"' in ask(url).text
        answer = ask(url, "/training?path=0/grpo")
    assert answer.status_code == 400  # nobody has flown yet
    assert "Traceback" not in answer.text


def test_only_pages_of_its_own_are_answered(shown):
    _, url = shown
    assert ask(url, headers={"host": "evil.example"}).status_code == 421
    assert ask(url, headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}).status_code == 403
    assert ask(url, headers={"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}).status_code == 200
    assert httpx.post(url).status_code == 405
    assert "default-src 'none'" in ask(url).headers["content-security-policy"]


def test_elsewhere_the_address_has_a_token(folder, tmp_path):
    view = View([folder], "0.0.0.0", 80, Index(tmp_path / "index.sqlite"))
    assert view.token
    with serving(view.app) as address:
        url = address.removesuffix("/v1")
        assert ask(url).status_code == 403
        assert ask(url, "/?token=wrong").status_code == 403
        with httpx.Client(follow_redirects=True) as client:
            assert client.get(f"{url}/?token={view.token}").status_code == 200
            assert client.get(url).status_code == 200  # the cookie


def test_a_run_that_goes_away_is_said_to_be_gone_and_the_rest_stays(folder, tmp_path):
    own = tmp_path / "runs"
    shutil.copytree(folder, own)
    with showing(own, tmp_path) as (_, url):
        until(lambda: ask(url, "/run?path=0/evals/model-b/2").status_code == 200)
        shutil.rmtree(own / "evals" / "model-b")
        assert ask(url, "/run?path=0/evals/model-b/2").status_code == 404
        assert "a/model" in ask(url).text


@needs_a_browser
def test_rows_appear_while_the_browser_watches(browser: Browser, tmp_path):  # noqa: F811
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    run = write_run(tmp_path / "runs" / "live", ROWS[:2], {**METADATA, "num_examples": 5})
    with showing(tmp_path / "runs", tmp_path) as (_, url):
        browser.get(f"{url}/run?path=0/live")
        until(lambda: "running, 2 of 5 rollouts" in browser.find_element(By.ID, "live").text)
        with open(run / "results.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(ROWS[2]) + "\n" + json.dumps(ROWS[3])[:200])  # the last one is not whole yet
            file.flush()
            until(lambda: "running, 3 of 5 rollouts" in browser.find_element(By.ID, "live").text)
            file.write(json.dumps(ROWS[3])[200:] + "\n" + json.dumps(ROWS[4]) + "\n")
        until(lambda: "complete, 5 of 5 rollouts" in browser.find_element(By.ID, "live").text)
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
        # By keyboard alone: to the first row, and into its replay.
        link = browser.find_element(By.CSS_SELECTOR, "#live tbody a")
        browser.execute_script("arguments[0].focus()", link)
        browser.switch_to.active_element.send_keys(Keys.ENTER)
        until(lambda: browser.execute_script("return document.documentElement.dataset.ready"))
        assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_the_command_says_where_and_stops_on_ctrl_c(folder, tmp_path):
    command = [sys.executable, "-m", "flappybird", "view", str(folder), "--port", "0"]
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout
        greeting = process.stdout.readline()
        assert greeting.startswith(f"runs below {folder} on http://127.0.0.1:")
        assert ask(greeting.split(" on ")[1].split("/ ")[0]).status_code == 200
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "")
    assert (tmp_path / "flappybird").is_dir()


def test_a_folder_that_is_none_is_refused(tmp_path, capsys):
    assert main(["view", str(tmp_path / "nothing")]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_runs_can_be_indexed_ahead(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    run = folder / "evals" / "model-a" / "1"
    assert main(["index", str(run), "--jobs", "1"]) == 0
    assert capsys.readouterr().out == f"{run}: 7 rollouts indexed\n"
    assert Index().numbers(run)["n"] == 7
    assert main(["index", str(folder / "nothing")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
