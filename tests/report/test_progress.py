"""A training run as a page: read from a trainer's folder or from checkpoints, and looked at in a real Chromium."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from flappybird.cli import main
from flappybird.episodes.episode import save
from flappybird.report.progress import Progress, progress_data
from flappybird.report.progress_page import progress_charts, progress_page
from flappybird.runs import load_run
from tests.browser import Browser, needs_a_browser
from tests.report.test_browser import open_page
from tests.report.training import GROUP, SKILL, TICKS, make_output
from tests.samples import flown

pytest.importorskip("verifiers.v1", reason="verifiers 0.3 or newer")


@pytest.fixture(scope="module")
def output(policy_server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_output(tmp_path_factory.mktemp("training") / "outputs", policy_server)


@pytest.fixture(scope="module")
def data(output: Path) -> Progress:
    return progress_data(output)


@pytest.fixture
def copied(output: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(output, tmp_path / "outputs"))


def traces(folder: Path, step: int, kind: str = "train") -> Path:
    return folder / "rollouts" / f"step_{step}" / kind / "all" / "traces.jsonl"


def test_steps_are_read_in_order_with_the_means_of_their_episodes(data: Progress, output: Path) -> None:
    assert [point.step.number for point in data.points] == list(SKILL)
    assert [point.eval is None for point in data.points] == [False, True, False, False]
    for point in data.points:
        rows = load_run(traces(output, point.step.number)).rows
        rewards = [row.episode.outcome.reward for row in rows if row.episode]
        assert point.train is not None
        assert point.train.rollouts == GROUP == len(rewards)
        assert point.train.means["reward"].mean == pytest.approx(sum(rewards) / GROUP)
    last = data.points[-1].eval
    assert last is not None
    assert last.means["ticks"].mean == TICKS
    assert last.causes == {}
    assert last.means["reward"].interval is not None


def test_groups_whose_rewards_are_all_the_same_are_counted(data: Progress) -> None:
    first = data.points[0].train
    assert first is not None
    assert (first.groups, first.flat) == (1, 1)


def test_the_race_is_of_one_task(data: Progress) -> None:
    flights = [row.episode for run in data.race for row in run.rows]
    assert [run.model for run in data.race] == [f"step {step}" for step in SKILL]
    assert len({(episode.seed, episode.config, episode.rules) for episode in flights if episode}) == 1


def test_every_chart_that_can_be_drawn_is_drawn(data: Progress) -> None:
    assert {chart.name for chart in progress_charts(data)} >= {"reward", "pipes_passed", "format", "ticks", "causes", "flat"}


def test_the_later_layout_of_the_folder_is_read_too(copied: Path, data: Progress) -> None:
    for step in SKILL:
        for kind in ("train", "eval"):
            if traces(copied, step, kind).exists():
                target = copied / "traces" / f"step_{step}" / kind / "traces.jsonl"
                target.parent.mkdir(parents=True)
                traces(copied, step, kind).rename(target)
    shutil.rmtree(copied / "rollouts")
    assert progress_data(copied).to_dict()["steps"] == data.to_dict()["steps"]


def test_checkpoints_are_put_in_order_by_their_numbers(tmp_path: Path) -> None:
    for step, policy in ((100, "heuristic"), (20, "random"), (3, "noop")):
        (tmp_path / f"step_{step}").mkdir()
        save(flown(policy, 3, 60), tmp_path / f"step_{step}" / "3.json")
    found = progress_data([tmp_path / f"step_{step}" for step in (100, 20, 3)])
    assert [point.step.name for point in found.points] == ["step_3", "step_20", "step_100"]


def test_what_is_broken_is_named_and_the_rest_is_shown(copied: Path) -> None:
    with traces(copied, 0).open("a", encoding="utf-8") as file:
        file.write('{"traces": [{"half')
    traces(copied, 20).write_text('{"traces": [{"ok": true, "info": {}}]}\n', encoding="utf-8")
    shutil.rmtree(copied / "rollouts" / "step_10")
    found = progress_data(copied)
    assert [point.step.number for point in found.points] == [0, 20, 30]
    assert "step 0, train: 1 line half written or damaged, left out" in found.notes
    assert "step 20, train: 1 rollout without an episode of this environment, left out" in found.notes
    assert "Learning" in progress_page(found)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--progress", "empty"], "empty: an empty folder"),
        (["--progress", "gone"], "gone: no such file or folder"),
        (["bare"], "bare: none of its 1 steps has a traces.jsonl yet"),
        (["bare", "--export", "x"], "--export x: not for a training run"),
        (["--progress", "bare", "empty"], "a trainer's output folder stands alone"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("bare/rollouts/step_0").mkdir(parents=True)
    assert main(["report", *arguments]) in (1, 2)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err


def test_the_command_recognises_the_folder_by_itself(output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(output), "--json"]) == 0
    assert [step["step"] for step in json.loads(capsys.readouterr().out)["steps"]] == list(SKILL)
    assert main(["report", str(output), "--text"]) == 0
    assert "Mean reward went from" in capsys.readouterr().out
    assert main(["report", str(output), "-o", str(tmp_path / "page.html")]) == 0
    assert "training report" in (tmp_path / "page.html").read_text(encoding="utf-8")


@needs_a_browser
def test_the_page_races_the_checkpoints_and_nothing_spills(data: Progress, browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(progress_page(data), encoding="utf-8")
    browser.get_log("browser")
    for width in (1400, 390):
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        )
        open_page(browser, page)
        assert browser.execute_script("return document.querySelectorAll('#lanes .lane').length") == len(SKILL)
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert browser.get_log("browser") == []
