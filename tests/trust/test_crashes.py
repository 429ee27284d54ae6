"""Killed or asked to stop at random moments, once or twice each. Fifty times each: `python -m tests.benchmarks trust`."""

import importlib.util
import random
import signal

import pytest

from tests.trust import kills, signals


@pytest.mark.parametrize("what", [kills.episodes, kills.report, kills.playing, kills.videos], ids=lambda what: what.__name__)
def test_C06_F04_a_process_that_is_killed_leaves_nothing_half_written_under_a_final_name(what, tmp_path):
    needs = {"report": "flappybird.report", "videos": "imageio_ffmpeg"}.get(what.__name__)
    if needs and importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    times = 1 if what is kills.videos else 2
    done = what(tmp_path, times, random.Random(what.__name__))
    assert done.killed == times  # what it leaves behind was looked at after each


def test_D10_an_evaluation_that_is_killed_loses_no_finished_episode_and_is_completed_by_resuming(policy_server, tmp_path):
    pytest.importorskip("verifiers.envs.environment", reason="the classic API of verifiers is not installed")
    done = kills.evaluations(tmp_path, 1, random.Random(4), policy_server)
    assert done.killed == 1


@pytest.mark.parametrize("what", signals.ALL, ids=lambda what: what.__name__)
def test_F04_a_command_that_is_asked_to_stop_does_so_in_one_line_and_leaves_what_is_whole(what, tmp_path):
    needs = {"playing": "pygame", "mp4": "imageio_ffmpeg", "gif": "PIL", "report": "flappybird.report"}.get(what.__name__)
    if needs and importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed")
    sent = [signal.SIGINT, signal.SIGTERM, *[signal.SIGKILL] * (what is signals.playing)]
    done = signals.stop_often(what, sent, random.Random(what.__name__), tmp_path)
    assert done.stopped == len(sent)  # what it says and leaves behind was looked at after each
