"""`flappybird report`, as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from flappybird.cli import main
from flappybird.episodes.episode import save
from tests.report.cases import play, policy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three episode files."""
    path = tmp_path / "episodes"
    path.mkdir()
    for seed in range(3):
        save(play(policy("heuristic", seed), seed), path / f"episode-{seed:04d}.json")
    return path


def test_a_report_goes_where_the_card_says_and_its_path_is_all_that_is_printed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(folder)]) == 0
    told = capsys.readouterr()
    path = Path(told.out.strip())
    assert path.parent == Path("environments/flappybird/reports")
    assert path.name.startswith("flappybird-0.1.0--test-model--n3-r1--")
    assert path.read_text("utf-8").startswith("<!doctype html>")
    assert told.err == ""


def test_a_report_goes_where_it_is_sent(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = tmp_path / "new" / "my report.html"
    assert main(["report", str(folder), "-o", str(wanted)]) == 0
    assert capsys.readouterr().out == f"{wanted}\n"
    assert wanted.exists()


def test_several_runs_become_one_comparison(folder: Path, tmp_path: Path) -> None:
    wanted = tmp_path / "both.html"
    assert main(["report", str(folder), str(folder / "episode-0001.json"), "-o", str(wanted)]) == 0
    assert 'id="comparison"' in wanted.read_text("utf-8")


def test_the_summary_is_printed_as_text_and_no_file_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(folder.parent.iterdir())
    assert main(["report", str(folder), "--text"]) == 0
    assert "3 of 3 transcripts verified by replay" in capsys.readouterr().out
    assert sorted(folder.parent.iterdir()) == before


def test_the_numbers_are_printed_as_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"][0]["verified"] == 3
    assert told["runs"][0]["metrics"]["reward"]["n"] == 3


def test_what_is_no_run_is_one_line_and_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "nothing"), "-o", str(tmp_path / "page.html")]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_of_the_folder_is_one_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["report", str(folder), "-o", str(tmp_path / "file" / "page.html")]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_damaged_episode_is_listed_and_does_not_stop_the_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "episode-0009.json").write_text('{"format": "flappybird-ep')
    assert main(["report", str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["runs"][0]
    assert (told["rows"], told["ok"], told["without_transcript"]) == (4, 3, 1)
    assert sum(told["ends"].values()) == 4


def test_a_changed_reply_is_named_by_its_tick(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = folder / "episode-0000.json"
    data = json.loads(file.read_text())
    data["turns"][7]["reply"] = "<ACTIONS>[]</ACTIONS>"
    file.write_text(json.dumps(data))
    assert main(["report", str(folder), "--text"]) == 0
    out = capsys.readouterr().out
    assert "2 of 3 transcripts verified by replay" in out
    assert "episode 0 differs first at tick 7" in out


def test_importing_the_report_loads_neither_numpy_nor_matplotlib() -> None:
    code = "import flappybird.report, sys; print(sorted({'numpy', 'matplotlib', 'verifiers', 'pygame'} & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
