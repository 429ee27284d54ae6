"""Figures and tables for a paper, read back as others would read them."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from flappybird.cli import main
from flappybird.episodes.episode import save
from flappybird.report.data import gather
from flappybird.report.tables import latex, markdown
from flappybird.runs import load_run, to_frame
from tests.report.cases import heuristics, play, policy, repeat, row, run

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")

FIGURES = ["deaths", "ends", "forest", "format", "pipes", "rewards", "survival"]


@pytest.fixture(scope="module")
def gathered() -> Any:
    rows = [row(seed, play(policy("heuristic", seed), seed, completion_tokens=9)) for seed in range(4)]
    rows.append(row(4, play(repeat("<THINK>50 % & $x_1$ \ud800</THINK><ACTIONS>[TAP]</ACTIONS>"), 4)))
    rows.append(row(5, None, problem="no trace | was saved", error="HTTP 500"))
    return gather([run(rows, "50%_of & $a^b$ {c} <i>"), heuristics(3, "random", model="模型 " * 20)])


@pytest.fixture(scope="module")
def exported(gathered: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from flappybird.report.export import export

    folder = tmp_path_factory.mktemp("export") / "for a paper"
    export(gathered, folder)
    return folder


def test_every_chart_is_a_vector_drawing_a_document_and_a_picture(exported: Path) -> None:
    assert sorted({path.stem for path in (exported / "figures").iterdir()}) == FIGURES
    for name in FIGURES:
        drawing = ElementTree.parse(exported / "figures" / f"{name}.svg").getroot()
        assert drawing.tag.endswith("svg")
        assert len(list(drawing.iter())) > 20
        document = (exported / "figures" / f"{name}.pdf").read_bytes()
        assert document.startswith(b"%PDF-")
        assert document.rstrip().endswith(b"%%EOF")
        assert b"/Subtype /Type3" not in document, "journals refuse these fonts"
        picture = (exported / "figures" / f"{name}.png").read_bytes()
        assert picture.startswith(b"\x89PNG")
        assert int.from_bytes(picture[16:20], "big") >= 900, "three hundred dots an inch, a column wide"


def test_csv_and_parquet_say_the_same(exported: Path) -> None:
    for name in ("leaderboard", "metrics", "causes", "episodes", "turns"):
        table = pandas.read_parquet(exported / "tables" / f"{name}.parquet")
        with open(exported / "tables" / f"{name}.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == list(table.columns)
        assert len(rows) == len(table)
    assert len(pandas.read_parquet(exported / "tables" / "episodes.parquet")) == 9


def test_there_is_a_row_per_episode_and_a_row_per_turn(exported: Path) -> None:
    episodes = pandas.read_parquet(exported / "tables" / "episodes.parquet")
    turns = pandas.read_parquet(exported / "tables" / "turns.parquet")
    assert len(turns) == episodes["turns"].sum()
    broken = episodes[episodes["problem"].notna()].iloc[0]
    assert (broken["verified"], broken["error"]) == ("no transcript", "HTTP 500")
    assert set(episodes["cause"].dropna()) <= {"held", "early"}


def test_markdown_and_latex_hold_what_names_hold(exported: Path) -> None:
    text = (exported / "tables" / "leaderboard.md").read_text("utf-8")
    lines = text.splitlines()
    assert len({re.sub(r"\\\|", "", line).count("|") for line in lines}) == 1
    paper = (exported / "tables" / "leaderboard.tex").read_text("utf-8")
    assert r"50\%\_of \& \$a\textasciicircum{}b\$ \{c\} \textless{}i\textgreater{}" in paper
    assert paper.count(r"\begin{tabular}") == paper.count(r"\end{tabular}") == 1
    for line in paper.splitlines():
        if line.endswith(r"\\"):
            assert len(re.findall(r"(?<!\\)&", line)) == len(lines[0].split(" | ")) - 1
    assert r"\begin{longtable}" in (exported / "tables" / "episodes.tex").read_text("utf-8")


def test_no_rows_are_a_table_too() -> None:
    assert markdown([]).count("\n") == 2
    assert r"\end{tabular}" in latex([])


def test_the_same_run_gives_the_same_files(gathered: Any, exported: Path, tmp_path: Path) -> None:
    from flappybird.report.export import export

    again = export(gathered, tmp_path)
    assert len(again) == len([path for path in exported.rglob("*") if path.is_file()])
    for file in again:
        if file.suffix != ".png":
            assert file.read_bytes() == (exported / file.relative_to(tmp_path)).read_bytes(), file.name


def test_a_run_is_a_data_frame(tmp_path: Path) -> None:
    for seed in range(3):
        save(play(policy("heuristic", seed), seed), tmp_path / f"episode-{seed:04d}.json")
    loaded = load_run(tmp_path)
    frame = to_frame(loaded)
    assert list(frame["seed"]) == [0, 1, 2]
    assert list(frame["reward"]) == [one.episode.outcome.reward for one in loaded.rows if one.episode]
    turns = to_frame(loaded, by="turn")
    assert len(turns) == frame["turns"].sum()
    assert set(turns["status"]) == {"ok"}
    with pytest.raises(ValueError, match="must be 'episode' or 'turn'"):
        to_frame(loaded, by="tick")  # type: ignore[arg-type]


def test_the_command_exports_and_prints_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "episode-0000.json"
    save(play(policy("noop", 0)), file)
    assert main(["report", str(file), "--export", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out'}\n"
    assert (tmp_path / "out" / "tables" / "episodes.csv").exists()


def test_what_cannot_be_exported_is_one_line_before_anything_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    for arguments in (["--export", str(tmp_path / "file")], ["--export", str(tmp_path / "out"), "--json"]):
        assert main(["report", str(tmp_path / "nothing"), *arguments]) != 0
        error = capsys.readouterr().err
        assert "--export" in error
        assert len(error.splitlines()) == 1
    assert json.dumps(sorted(path.name for path in tmp_path.iterdir())) == '["file"]'
