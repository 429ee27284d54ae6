import os
import signal
import sys
import threading

import pytest

from flappybird.system.command import guarded
from flappybird.system.files import replacing
from flappybird.system.signals import held, out_of_reach_of_ctrl_c

pytestmark = pytest.mark.usefixtures("signals_of_a_new_process")


def interrupted(block):
    """Run `block` with what it can write down what it did in, expect it to end in Ctrl-C, and return what it wrote down."""
    done = []
    with pytest.raises(KeyboardInterrupt):
        block(done)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return done


def test_a_signal_waits_for_the_end_of_the_block():
    def block(done):
        with held() as came:
            signal.raise_signal(signal.SIGINT)
            done.append(list(came))
        done.append("never")

    assert interrupted(block) == [[signal.SIGINT]]


def test_it_waits_whichever_thread_the_system_gives_it_to():
    def block(done):
        with held():
            other = threading.Thread(target=lambda: os.kill(os.getpid(), signal.SIGINT))
            other.start()
            other.join()
            done.append("all")

    assert interrupted(block) == ["all"]


def test_blocks_within_blocks_wait_for_the_outermost():
    def block(done):
        with held():
            with held():
                signal.raise_signal(signal.SIGINT)
            done.append("outer")

    assert interrupted(block) == ["outer"]


def test_nothing_is_done_in_another_thread():
    before, seen = signal.getsignal(signal.SIGINT), []

    def work():
        with held() as came:
            seen.append((signal.getsignal(signal.SIGINT), came))

    other = threading.Thread(target=work)
    other.start()
    other.join()
    assert seen == [(before, [])]


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="masks are POSIX")
def test_processes_are_started_out_of_reach_and_the_mask_is_as_before():
    from multiprocessing import resource_tracker

    before = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    with out_of_reach_of_ctrl_c():
        resource_tracker.ensure_running()  # as the first process does, and with it lifts the mask if it is not running yet
        assert signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, set())
    assert signal.pthread_sigmask(signal.SIG_BLOCK, set()) == before


@pytest.mark.parametrize(("which", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_that_a_library_makes_another_error_of_is_still_told_as_one(which, code, capsys):
    def command():
        try:
            signal.raise_signal(which)
        except BaseException as error:
            raise RuntimeError("Error calling __set_name__") from error
        return 0

    assert guarded(command) == code
    assert capsys.readouterr() == ("", "")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_of_our_own_is_not_hidden():
    with pytest.raises(ZeroDivisionError):
        guarded(lambda: 1 // 0)


def test_what_stops_the_writing_of_a_file_names_the_file_that_was_asked_for(tmp_path, capsys):
    def command():
        with replacing(tmp_path / "mine.json"):
            raise OSError(28, "No space left on device")

    assert guarded(command) == 1
    assert capsys.readouterr().err == f"flappybird: {tmp_path / 'mine.json'}: No space left on device\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
def test_a_signal_between_a_temporary_file_and_its_name_leaves_nothing(tmp_path, monkeypatch):
    import tempfile

    make = tempfile.mkstemp

    def interrupted(*args, **kwargs):
        made = make(*args, **kwargs)
        signal.raise_signal(signal.SIGINT)
        return made

    monkeypatch.setattr(tempfile, "mkstemp", interrupted)
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "mine.json"):
        pass
    assert list(tmp_path.iterdir()) == []
