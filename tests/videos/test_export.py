import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from PIL import Image

from flappybird.episodes.episode import save
from flappybird.errors import ConfigError
from flappybird.runs import load_run
from render.clip import Timing
from render.moment import Overlay
from tests.samples import Run, clean_environment, flown
from videos.__main__ import main
from videos.export import Job, choose, export, file_name, mark, whole
from videos.writer import playable

SMALL = (160, 120)
POLICIES = ("noop", "random", "heuristic", "planner")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of four episodes, whose rewards rise with their row."""
    folder = tmp_path / "run"
    folder.mkdir()
    for number, policy in enumerate(POLICIES):
        save(flown(policy, 3, 40 if policy == "heuristic" else 60), folder / f"{number}.json")
    return folder


def jobs(folder: Path, output: Path, kind: str = "mp4") -> list[Job]:
    return [
        Job(row.index, row.episode, output / file_name(row.index, kind), SMALL) for row in load_run(folder).rows if row.episode
    ]


def test_best_worst_and_median_are_chosen_by_reward(folder: Path) -> None:
    run = load_run(folder)
    rewards = [row.episode.outcome.reward for row in run.rows if row.episode]
    assert rewards == sorted(rewards)
    assert choose(run) == [0, 1, 2, 3]
    assert choose(run, best=1) == [3]
    assert choose(run, worst=2) == [0, 1]
    assert choose(run, median=2) == [1, 2]
    assert choose(run, best=1, worst=1) == [0, 3]
    assert choose(run, best=99, median=99) == [0, 1, 2, 3]


@pytest.mark.parametrize(("kind", "workers"), [("mp4", 2), ("gif", 1), ("png", 1)])
def test_every_episode_gets_its_file_and_what_is_whole_is_skipped(folder: Path, tmp_path: Path, kind: str, workers: int) -> None:
    output = tmp_path / "out"
    output.mkdir()
    done = list(export(jobs(folder, output, kind), workers))
    assert sorted(one.row for one in done) == [0, 1, 2, 3]
    assert all(one.problem is None and not one.skipped for one in done)
    assert all(whole(one.path) for one in done)
    assert sorted(path.name for path in output.iterdir()) == [f"episode-000{row}.{kind}" for row in range(4)]

    cut = output / file_name(1, kind)
    cut.write_bytes(cut.read_bytes()[:-20])
    again = {one.row: one.skipped for one in export(jobs(folder, output, kind))}
    assert again == {0: True, 1: False, 2: True, 3: True}
    assert whole(cut)


@pytest.mark.parametrize("workers", [1, 2])
def test_one_failure_does_not_stop_the_rest(folder: Path, tmp_path: Path, workers: int) -> None:
    all_jobs = jobs(folder, tmp_path)
    all_jobs[1] = all_jobs[1]._replace(path=tmp_path / "nowhere" / "x.mp4")
    done = {one.row: one.problem for one in export(all_jobs, workers)}
    assert done[0] is done[2] is done[3] is None
    assert "there is no folder" in str(done[1])


def test_a_worker_that_is_killed_is_told_and_the_rest_go_on(folder: Path, tmp_path: Path) -> None:
    some = jobs(folder, tmp_path)
    some[0] = some[0]._replace(episode=flown("planner", 3, 3_000), size=(576, 480))

    def kill() -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            listed = subprocess.run(["ps", "-ewwo", "ppid,args"], capture_output=True, text=True).stdout
            for line in listed.splitlines():
                if "ffmpeg" in line and f"{tmp_path}/.episode-0000" in line:
                    os.kill(int(line.split()[0]), signal.SIGKILL)
                    return
            time.sleep(0.05)

    killer = threading.Thread(target=kill)
    killer.start()
    done = {one.row: one.problem for one in export(some, 2)}
    killer.join()
    assert done == {0: "its process was killed", 1: None, 2: None, 3: None}


def test_a_number_of_workers_out_of_range_is_refused() -> None:
    with pytest.raises(ConfigError, match="workers = 0"):
        list(export([], 0))


def test_file_names_are_those_of_their_rows() -> None:
    assert [file_name(0), file_name(12), file_name(123_456, "gif")] == [
        "episode-0000.mp4",
        "episode-0012.mp4",
        "episode-123456.gif",
    ]


def test_the_command_writes_skips_and_makes_a_sheet(run: Run, folder: Path, tmp_path: Path) -> None:
    (folder / "9.json").write_text("{")
    done = run("videos", folder, "-o", "out", "--size", "160x120", "--sheet", "sheet.png")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "out: 4 of 4 episodes written"
    assert "row 4 left out" in done.stderr
    assert done.stderr.count("\n") == 1
    with Image.open(tmp_path / "sheet.png") as sheet:
        assert sheet.height > 4 * 120
    (folder / "9.json").unlink()
    done = run("videos", folder, "-o", "out", "--size", "120x100", "--best")
    assert done.stdout == "out: 1 of 1 episodes written\n"  # what is there shows the same at another size
    assert (
        run("videos", folder, "-o", "out", "--size", "160x120").stdout == "out: 1 of 4 episodes written, 3 were there already\n"
    )
    done = run("videos", folder, "-o", "out", "--size", "160x120", "--best", "2", "--worst")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "out: 0 of 3 episodes written, 3 were there already\n"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run"], 2, "nothing to write"),
        (["run", "-o", "out", "--format", "avi"], 2, "format = 'avi'"),
        (["run", "-o", "out", "--all", "--best"], 2, "only one of them"),
        (["run", "-o", "out", "--workers", "0"], 2, "workers = 0"),
        (["run", "--sheet", "s.gif"], 2, "a sheet is a .png"),
        (["run", "-o", "out", "--sheet", "s.jpg"], 2, "s.jpg: unknown extension '.jpg', a sheet is a .png"),
        (["run", "-o", "out", "--sheet", "no/s.png"], 1, "there is no folder no"),
        (["run", "-o", "out", "--fps", "0"], 2, "fps = 0: must be from 1 to 240"),
        (["run", "-o", "out", "--hold", "-1"], 2, "hold = -1"),
        (["run", "-o", "out", "--overlay", "all,none"], 2, "all and none stand alone"),
        (["nowhere", "-o", "out"], 1, "nowhere"),
        (["run", "-o", "out", "--quality", "best"], 2, "quality = 'best'"),
    ],
)
def test_a_mistake_is_one_clear_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    monkeypatch.chdir(folder.parent)
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1
    assert not (folder.parent / "out").exists()  # told before anything is made


def test_a_file_is_done_only_if_it_shows_the_same_in_the_same_way(folder: Path, tmp_path: Path) -> None:
    job = jobs(folder, tmp_path, "png")[0]
    list(export([job]))
    others = [
        job._replace(size=(120, 100)),
        job._replace(episode=flown("random", 3, 60)),
        job._replace(timing=Timing(hold=1.0)),
        job._replace(overlay=Overlay(hud=False)),
    ]
    assert [done.skipped for done in export([job])] == [True]
    for other in others:
        assert [done.skipped for done in export([other])] == [False], other
    assert len({mark(one) for one in [job, *others]}) == 5


def test_a_pipe_under_the_name_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.gif")
    assert not whole(tmp_path / "x.gif")


@pytest.mark.parametrize("module", ["pygame", "numpy", "imageio", "PIL"])
def test_without_its_extra_the_command_names_it(folder: Path, tmp_path: Path, module: str) -> None:
    hide = f"import sys; sys.modules['{module}'] = None; from videos.__main__ import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", hide, str(folder), "-o", "out"]
    done = subprocess.run(command, cwd=tmp_path, env=clean_environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the extra [videos]" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGKILL])
def test_B06_workers_end_with_their_parent(tmp_path: Path, which: signal.Signals) -> None:
    folder, output = tmp_path / "run", tmp_path / "out"
    folder.mkdir()
    for row in range(8):
        save(flown("planner", 3, 2_000), folder / f"{row}.json")
    command = [sys.executable, "-m", "videos", str(folder), "-o", str(output), "--workers", "4", "--size", "320x240"]
    process = subprocess.Popen(command, env=clean_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30
    while not list(output.glob(".*.mp4")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    workers = children(process.pid)
    process.send_signal(which)
    process.wait(20)
    assert process.returncode in (143, -which)
    deadline = time.monotonic() + 20
    while left := {line for pid in workers for line in running(pid)} | set(working(output)):
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    assert not list(output.glob(".*"))
    assert all(playable(path) for path in output.iterdir())
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()


def processes(*which: str) -> list[str]:
    """What `ps` says of the processes that run; one that has ended and that nobody has asked about does not."""
    listed = subprocess.run(["ps", *which, "-wwo", "pid=,stat=,args="], capture_output=True, text=True).stdout
    return [line for line in listed.splitlines() if not line.split()[1].startswith("Z")]


def children(pid: int) -> list[str]:
    return [line.split()[0] for line in processes("--ppid", str(pid))]


def running(pid: str) -> list[str]:
    return processes("-p", pid)


def working(output: Path) -> list[str]:
    """The encoders that still write to `output`."""
    return [line for line in processes("-e") if str(output) in line and "-m videos" not in line]
