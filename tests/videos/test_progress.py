from pathlib import Path

import numpy as np
import pytest

from flappybird.episodes.episode import save
from flappybird.errors import FlappyError
from render.clip import Timing
from render.frames import Track
from tests.samples import flown
from videos.__main__ import main
from videos.progress import film
from videos.writer import playable

SMALL = (160, 120)


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs of growing skill; in each, two seeds."""
    monkeypatch.chdir(tmp_path)
    for step, policy in enumerate(("noop", "random", "heuristic")):
        folder = Path(f"step_{step * 10}")
        folder.mkdir()
        for seed in (2, 3):
            save(flown(policy, seed, 30), folder / f"{seed}.json")
    return ["step_0", "step_10", "step_20"]


def test_a_film_shows_one_seed_through_all_runs_titled_by_step(steps: list[str]) -> None:
    shown = film(steps, 3, SMALL, Timing(hold=0.1))
    assert [clip.tracks[0].name for clip in shown.clips] == ["step_0: noop", "step_10: random", "step_20: heuristic"]
    assert {clip.tracks[0].course.seed for clip in shown.clips} == {3}
    pictures = list(shown.frames())
    assert len(pictures) == sum(Track(flown(policy, 3, 30)).last + 3 for policy in ("noop", "random", "heuristic"))
    assert np.array_equal(pictures[0], next(iter(shown.clips[0].frames())))


def test_a_film_of_a_trainers_folder_needs_the_seed_in_each_step(tmp_path: Path) -> None:
    (tmp_path / "rollouts/step_0/eval/all").mkdir(parents=True)
    (tmp_path / "rollouts/step_0/eval/all/traces.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(FlappyError, match="no episode of seed 3"):
        film([str(tmp_path)], 3)


def test_a_run_without_the_seed_is_named(steps: list[str]) -> None:
    with pytest.raises(FlappyError, match="step_0: no episode of seed 9"):
        film(steps, 9)


def test_the_command_writes_the_film(steps: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--progress", *steps, "--seed", "3", "-o", "film.mp4", "--size", "160x120"]) == 0
    assert playable(Path("film.mp4"))
    out, err = capsys.readouterr()
    assert out.startswith("film.mp4: ")
    assert err == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--progress", "step_0"], "nothing to write"),
        (["--progress", "step_0", "-o", "x.png"], "a film is an .mp4 or a .gif"),
        (["--progress", "step_0", "-o", "x.mp4", "--seed", "9"], "step_0: no episode of seed 9"),
        (["-o", "out"], "name one RUN"),
    ],
)
def test_a_mistake_is_one_line(steps: list[str], capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert main(arguments) in (1, 2)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err
