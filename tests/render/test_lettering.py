import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from render.lettering import LONGEST, clean, line_height, measure, shorten, wrap, write
from render.sdl import pygame
from tests.samples import clean_environment

ANYTHING = st.text(st.characters(codec=None), max_size=80)  # lone surrogates too


@given(ANYTHING, st.integers(6, 40))
@settings(max_examples=60, deadline=None)
def test_any_text_at_all_can_be_drawn(text: str, size: int) -> None:
    for line in wrap(text, size, 200, 4):
        surface = write(line, size, (255, 255, 255))
        assert surface.get_height() == line_height(size)


@given(ANYTHING, st.integers(6, 40))
@settings(max_examples=60, deadline=None)
def test_any_text_can_be_measured_and_written_as_it_is(text: str, size: int) -> None:
    assert write(text, size, (255, 255, 255)).get_width() == max(measure(text, size), 1)
    assert measure(shorten(text, size, 60), size) <= 60


@given(ANYTHING, st.integers(8, 24), st.integers(40, 300), st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_wrapped_lines_fit_their_room(text: str, size: int, width: int, lines: int) -> None:
    found = wrap(text, size, width, lines)
    assert len(found) <= lines
    assert all(measure(line, size) <= width for line in found)


def test_a_text_that_fits_is_kept_whole() -> None:
    assert wrap("up and away", 14, 400, 3) == ["up and away"]
    assert " ".join(wrap("one two three four five", 14, 80, 9)) == "one two three four five"


def test_a_long_text_ends_in_an_ellipsis() -> None:
    lines = wrap("word " * 200, 14, 120, 3)
    assert len(lines) == 3
    assert lines[-1].endswith("…")
    assert shorten("a rather long name of a model", 14, 90).endswith("…")


def test_what_has_no_picture_is_left_out() -> None:
    assert clean("a\x00b\u202ec\ufeffd") == "abcd"
    assert clean("one\n\ttwo\u2028three") == "one two three"
    assert clean("\ud800") == "\ufffd"
    assert clean("e\u0301") == "é"


@pytest.mark.parametrize("missing", ["漢", "ع", "🐤", "\U0010fffd"])
def test_what_the_font_lacks_becomes_a_box(missing: str) -> None:
    alpha = pygame.surfarray.array_alpha(write(missing, 24, (255, 255, 255)))
    assert alpha.any()
    assert measure(missing, 24) > 0
    known = pygame.surfarray.array_alpha(write("A", 24, (255, 255, 255)))
    assert not np.array_equal(alpha, known)


def test_a_thought_of_a_megabyte_takes_no_longer_than_a_page() -> None:
    began = time.process_time()
    lines = wrap("深い思考 🤔 " * 200_000, 14, 500, 3)
    assert len(lines) == 3
    assert len(clean("x" * 1_000_000)) == LONGEST + 1
    assert time.process_time() - began < 20  # no timing: a megabyte that is looked at takes minutes


def test_text_survives_somebody_quitting_pygame() -> None:
    before = pygame.image.tobytes(write("score 12", 20, (9, 9, 9)), "RGBA")
    write.cache_clear()
    pygame.quit()
    assert pygame.image.tobytes(write("score 12", 20, (9, 9, 9)), "RGBA") == before


def test_importing_pygame_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    subprocess.run([sys.executable, "-c", "import render.sdl"], check=True)
    assert capfd.readouterr() == ("", "")


def test_what_the_system_has_a_font_for_is_shown_and_the_rest_is_said(tmp_path: Path) -> None:
    code = (
        "from render.fonts import BOX, source\n"
        "from render.lettering import lacking, measure\n"
        "assert source('a') == 0 and lacking() == ''\n"
        "measure('a \u6f22\u6f22\u5b57', 20)\n"
        "print(source('\u6f22') == BOX, lacking())\n"
    )
    for path in (os.environ.get("PATH", ""), ""):  # with and without fc-list, which lists the system's fonts
        done = subprocess.run([sys.executable, "-c", code], env=clean_environment(PATH=path), capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        boxed, _, said = done.stdout.strip().partition(" ")
        assert said.startswith("no font here has U+5B57 U+6F22: boxes stand for them") == (boxed == "True")
    assert boxed == "True"
