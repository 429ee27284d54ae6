"""`python -m render` as it is used: another process, no display, files decoded again."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import imageio_ffmpeg
import pytest
from PIL import Image

from flappybird.episodes.episode import save
from render.__main__ import main
from tests.samples import Run, clean_environment, flown, replied
from videos.writer import boxes


def probe(path: Path) -> dict[str, object]:
    """What a decoder says of a video: its meta data, and how many frames it really holds."""
    reader = imageio_ffmpeg.read_frames(str(path))
    meta = next(reader)
    return meta | {"frames": sum(1 for _ in reader)}


def test_B01_an_episode_becomes_mp4_and_gif_without_a_display(run: Run, crash_file: Path, tmp_path: Path) -> None:
    # 253 ticks: one picture each in MP4, 25 a second in GIF.
    for name, told in (("out.mp4", "253 pictures, 8.43 s"), ("out.gif", "211 pictures, 8.44 s")):
        done = run("render", crash_file, "-o", name, "--size", "160x120")
        assert (done.returncode, done.stderr) == (0, ""), name
        assert done.stdout == f"{name}: {told}, 160x120\n"
    video = probe(tmp_path / "out.mp4")
    assert video["frames"] == 253
    assert video["source_size"] == (160, 120)
    assert video["fps"] == 30.0
    with Image.open(tmp_path / "out.gif") as gif:
        assert gif.n_frames == 211


@pytest.mark.parametrize("size", ["288x512", "300x500"])
def test_C01_even_sizes_come_back_as_asked(run: Run, short_file: Path, tmp_path: Path, size: str) -> None:
    done = run("render", short_file, "-o", "out.mp4", "--size", size)
    assert (done.returncode, done.stderr) == (0, "")
    assert "{}x{}".format(*probe(tmp_path / "out.mp4")["source_size"]) == size


def test_C01_odd_sizes_are_refused_and_a_scale_is_rounded_to_even(run: Run, short_file: Path, tmp_path: Path) -> None:
    done = run("render", short_file, "-o", "out.mp4", "--size", "121x250")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "121x250: width and height must be even" in done.stderr
    assert not (tmp_path / "out.mp4").exists()
    assert run("render", short_file, "-o", "out.mp4", "--scale", "0.37").returncode == 0
    assert probe(tmp_path / "out.mp4")["source_size"] == (214, 178)


def test_C03_a_gif_is_never_faster_than_browsers_play(run: Run, crash_file: Path, tmp_path: Path) -> None:
    for arguments, told in (([], ""), (["--fps", "60"], "--fps 60 lowered to 50")):
        done = run("render", crash_file, "-o", "out.gif", "--size", "120x100", *arguments)
        assert done.returncode == 0
        assert told in done.stderr
        assert bool(told) == bool(done.stderr)
        with Image.open(tmp_path / "out.gif") as gif:
            delays = []
            for index in range(gif.n_frames):
                gif.seek(index)
                delays.append(gif.info["duration"])
        assert min(delays) >= 20
        assert sum(delays) == pytest.approx(1000 * 253 / 30, abs=20)


@pytest.mark.parametrize("missing", ["wrong path", "not installed"])
def test_C05_without_ffmpeg_one_line_names_it_and_gif_still_works(short_file: Path, tmp_path: Path, missing: str) -> None:
    hide = "import sys; sys.modules['imageio_ffmpeg'] = None; " if missing == "not installed" else ""
    code = f"{hide}from render.__main__ import main; import sys; sys.exit(main(sys.argv[1:]))"
    env = clean_environment(**({"IMAGEIO_FFMPEG_EXE": "/nonexistent"} if missing == "wrong path" else {}))

    def render(name: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-c", code, str(short_file), "-o", name, "--size", "120x100"]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)

    done = render("x.mp4")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert ("IMAGEIO_FFMPEG_EXE=/nonexistent" if missing == "wrong path" else "the extra [videos]") in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["short.json"]
    assert render("x.gif").returncode == 0


def test_C06_a_damaged_episode_leaves_an_older_file_alone(
    crash_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.mp4").write_bytes(b"an older file")
    text = crash_file.read_text()
    for number, damaged in enumerate((text.replace('"tick": 50,', '"tick": "fifty",'), text[: len(text) // 2], "[]", "\x00")):
        (tmp_path / "bad.json").write_text(damaged)
        assert main(["bad.json", "-o", "x.mp4"]) == 1, number
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("flappybird: bad.json: ")
        assert err.count("\n") == 1
        assert (tmp_path / "x.mp4").read_bytes() == b"an older file"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.json", "crash.json", "x.mp4"]


def test_C06_an_episode_without_turns_makes_one_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    save(replied(), tmp_path / "empty.json")
    for name in ("x.mp4", "x.gif", "x.png"):
        assert main(["empty.json", "-o", name]) == 0
    assert probe(tmp_path / "x.mp4")["frames"] == 1


@pytest.mark.parametrize("quality", ["fast", "small"])
def test_C07_mp4_is_what_every_browser_plays(run: Run, short_file: Path, tmp_path: Path, quality: str) -> None:
    assert run("render", short_file, "-o", "x.mp4", "--quality", quality).returncode == 0
    video = probe(tmp_path / "x.mp4")
    assert video["codec"] == "h264"
    assert str(video["pix_fmt"]).startswith("yuv420p")
    order = boxes(tmp_path / "x.mp4")
    assert order.index("moov") < order.index("mdat")


def test_F06_what_is_said_can_be_read_by_programs(run: Run, short_file: Path, tmp_path: Path) -> None:
    done = run("render", short_file, "-o", "x.gif", "--json", "--fps", "30", "--size", "120x100", env={"PYTHONUNBUFFERED": "1"})
    assert done.stderr == ""
    told = json.loads(done.stdout)
    assert told == {
        "path": "x.gif",
        "frames": 14,
        "seconds": pytest.approx(14 / 30),
        "width": 120,
        "height": 100,
        "bytes": (tmp_path / "x.gif").stat().st_size,
    }


def test_F07_any_folder_and_any_path_will_do(run: Run, short_file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "dir é #1"
    folder.mkdir()
    shutil.copy(short_file, folder / "my ep.json")
    done = run("render", folder / "my ep.json", "-o", folder / "my %ep'.mp4", "--size", "120x100", cwd=Path("/"))
    assert (done.returncode, done.stderr) == (0, "")
    assert probe(folder / "my %ep'.mp4")["frames"] == 14


def test_F07_a_name_that_the_terminal_cannot_show_is_no_failure(run: Run, short_file: Path, tmp_path: Path) -> None:
    done = run("render", short_file, "-o", "\xe9.gif", "--size", "64x64", env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "1"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("\\xe9.gif: ")
    assert (tmp_path / "\xe9.gif").exists()


def test_closed_streams_are_no_failure(short_file: Path, tmp_path: Path) -> None:
    for stream in ("1", "2"):
        name = tmp_path / f"{stream}.gif"
        command = f"{sys.executable} -m render {short_file} -o {name} --size 64x64 {stream}>&-"
        assert subprocess.run(command, shell=True, env=clean_environment(), check=False).returncode == 0
        assert name.stat().st_size > 500


def test_a_number_in_a_name_that_is_none_is_part_of_the_name(run: Run, short_file: Path, tmp_path: Path) -> None:
    name = "f-%99999999999d.png"
    assert run("render", short_file, "-o", name, "--size", "64x64").returncode == 0
    assert (tmp_path / name).exists()


def test_any_names_of_players_stand_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for index, name in enumerate(("gpt\nfoo", "tab\t\x00", "\ud800", "\u202eevil")):
        save(replied("<ACTIONS>[TAP]</ACTIONS>", name=name), tmp_path / f"{index}.json")
    assert main(["0.json", "1.json", "2.json", "3.json", "--grid", "-o", "x.gif", "--size", "240x240"]) == 0


def test_without_a_display_and_without_a_file_one_line_says_what_to_do(run: Run, short_file: Path) -> None:
    done = run("render", short_file)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "flappybird: no display to open a window on; write a file instead: -o episode.mp4 (or .gif, .png)\n"


@pytest.mark.parametrize("display", [{"DISPLAY": ":991"}, {"WAYLAND_DISPLAY": "nowhere", "XDG_RUNTIME_DIR": "/nowhere"}])
def test_N31_a_display_that_nobody_answers_on_is_one_line(run: Run, short_file: Path, display: dict[str, str]) -> None:
    done = run("render", short_file, env=display)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("flappybird: no display to open a window on; write a file instead: -o episode.mp4")
    assert done.stderr.count("\n") == 1


def test_what_no_font_has_is_said_in_one_line(run: Run, tmp_path: Path) -> None:
    save(replied("<THINK>up \U0001dfff \u0e5e</THINK><ACTIONS>[TAP]</ACTIONS>", name="m"), tmp_path / "odd.json")
    done = run("render", "odd.json", "-o", "x.png", env={"PATH": ""})  # without fc-list there are no fonts of a system
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert done.stderr.startswith("flappybird: no font here has U+")
    assert done.stderr.count("\n") == 1


def test_a_rollout_of_a_run_is_named_by_its_number(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for number, policy in enumerate(("noop", "random")):
        save(flown(policy, 3), folder / f"{number}.json")
    assert "8 pictures" in run("render", "run:0", "-o", "x.mp4").stdout
    assert "14 pictures" in run("render", "run:1", "-o", "x.mp4").stdout
    done = run("render", "run:2", "-o", "x.gif")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


def test_pictures_grids_ghosts_and_sequences(
    crash_file: Path, short_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([str(crash_file), "-o", "one.png", "--tick", "40"]) == 0
    with Image.open(tmp_path / "one.png") as picture:
        assert picture.size == (576, 480)
    assert main([str(crash_file), str(short_file), "--grid", "-o", "grid.mp4", "--size", "400x200", "--to", "20"]) == 0
    assert probe(tmp_path / "grid.mp4")["frames"] == 20
    assert main([str(crash_file), "--ghost", str(short_file), "-o", "ghost.png", "--tick", "9"]) == 0
    assert main([str(crash_file), "-o", "f-%03d.png", "--from", "10", "--to", "13", "--size", "120x100"]) == 0
    assert sorted(path.name for path in tmp_path.glob("f-*.png")) == ["f-000.png", "f-001.png", "f-002.png"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["missing.json", "-o", "x.mp4"], 1, "missing.json"),
        (["crash.json", "-o", "x.avi"], 2, "unknown extension '.avi', must be one of .mp4, .gif, .png"),
        (["crash.json", "-o", "x"], 2, "unknown extension"),
        (["crash.json", "-o", "nowhere/x.mp4"], 1, "there is no folder nowhere"),
        (["crash.json", "-o", "x.mp4", "--tick", "3"], 2, "one picture is written as .png"),
        (["crash.json", "-o", "x.png", "--tick", "400"], 2, "the episode ends at tick 253"),
        (["crash.json", "-o", "x.mp4", "--quality", "best"], 2, "quality = 'best'"),
        (["crash.json", "-o", "x.mp4", "--speed", "0"], 2, "speed = 0"),
        (["crash.json", "-o", "x.mp4", "--overlay", "hat"], 2, "'hat' is not an overlay"),
        (["crash.json", "crash.json", "-o", "x.mp4"], 2, "add --grid"),
        (["-o", "x.mp4"], 2, "no episode given"),
        (["crash.json", "--ghost", "crash.json", "--grid"], 2, "only one of them"),
    ],
)
def test_a_mistake_is_one_clear_line_and_nothing_is_written(
    crash_file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["crash.json"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_to_is_named(run: Run, short_file: Path, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    done = run("render", short_file, "-o", "closed/x.mp4")
    assert done.returncode == 1
    assert "cannot be written to" in done.stderr
