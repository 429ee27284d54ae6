"""What is not a regular file is written to or refused, never replaced; links keep pointing and modes stay."""

import os
import socket
import stat

import pytest

from flappybird.cli import main
from flappybird.errors import FlappyError
from flappybird.system.files import read_bytes, write_text
from tests.conftest import run_command


def test_a_link_keeps_pointing_and_what_it_points_to_changes(tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "t.json", tmp_path / "l.json"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert (target.read_text(), sorted(p.name for p in tmp_path.iterdir())) == ("new", ["l.json", "real"])
    link.unlink()
    link.symlink_to(tmp_path / "real" / "later.json")  # points to nothing yet
    write_text(link, "first")
    assert (tmp_path / "real" / "later.json").read_text() == "first"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_mode_stays(tmp_path, mode):
    path = tmp_path / "secret.json"
    path.write_text("old")
    path.chmod(mode)
    write_text(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)


def test_a_pipe_gets_what_is_written_and_one_that_nobody_reads_is_refused(tmp_path):
    pipe = tmp_path / "page.html"
    os.mkfifo(pipe)
    with pytest.raises(FlappyError, match="a pipe that nobody reads"):
        write_text(pipe, "x")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "text")
    assert os.read(reader, 100) == b"text"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]
    assert read_bytes(pipe, 10) == b""  # and reading one does not wait


def test_a_device_is_written_to_and_stays_one(tmp_path):
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        write_text(device, "text")
    except PermissionError:
        pytest.skip("only root makes devices")
    assert stat.S_ISCHR(device.stat().st_mode)


def test_a_socket_is_refused(tmp_path):
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))
        with pytest.raises(FlappyError, match="is a socket"):
            write_text(path, "x")
        assert stat.S_ISSOCK(path.stat().st_mode)


def test_a_pipe_among_episodes_hangs_nothing(tmp_path):
    assert main(["play", "--policy", "noop", "--save", str(tmp_path / "b.json")]) == 0
    os.mkfifo(tmp_path / "a.json")
    done = run_command("flappybird", "verify", str(tmp_path), cwd=tmp_path, timeout=60)
    assert done.stdout == f"{tmp_path}: 1 of 1 verified\n"
