import pytest
from hypothesis import given
from hypothesis import strategies as st

from flappybird.world.game import FlappyGame
from flappybird.world.observation import Observation, read_observation
from flappybird.world.units import from_text, to_text, to_units


def test_the_first_observation_reads_as_on_the_card():
    assert str(FlappyGame(seed=7).observation()) == (
        "<FLAPPY id=0>\n<OBS>\nbirdY:0.00\nbirdX:4.00\nvelY:0.00\ngapHeight:6.00\nbirdRadius:0.20\n"
        "pipes:[]\nscore:0\n</OBS>\n</FLAPPY>"
    )


@pytest.mark.parametrize(
    ("units", "text"),
    [(0, "0.00"), (-3000, "-0.30"), (61700, "6.17"), (12345, "1.2345"), (-1, "-0.0001"), (10, "0.001"), (240_000, "24.00")],
)
def test_numbers_are_exact_with_two_to_four_decimals_and_never_minus_zero(units, text):
    assert to_text(units) == text
    assert from_text(text) == units


@given(st.integers(-(10**9), 10**9))
def test_decimals_are_read_as_they_were_written(units):
    assert from_text(to_text(units)) == units
    assert to_units(float(to_text(units))) == units


@pytest.mark.parametrize("text", ["", "1.23456", "x", "nan", "inf", "1e-9"])
def test_what_is_no_exact_decimal_is_refused(text):
    with pytest.raises(ValueError, match="is not a number with at most four decimals"):
        from_text(text)


numbers = st.integers(-(10**7), 10**7)
observations = st.builds(
    Observation,
    tick=st.integers(0, 10**6),
    y=numbers,
    x=numbers,
    velocity=numbers,
    gap_height=numbers,
    radius=numbers,
    pipes=st.lists(st.tuples(numbers, numbers), max_size=5).map(tuple),
    score=st.integers(0, 1000),
)


@given(observations, st.text(max_size=30), st.text(max_size=30))
def test_an_observation_is_read_back_from_any_text_around_it(observation, before, after):
    assert read_observation(f"{before}{observation}{after}") == observation


@given(observations, observations)
def test_the_last_observation_counts(first, second):
    assert read_observation(f"{first}\n{second}") == second
    assert read_observation(f"{first}\n<FLAPPY id=9>\n<OBS>\nbirdY:") == first


@pytest.mark.parametrize("text", ["", "hello", "<FLAPPY id=1>", "<FLAPPY id=1>\n<OBS>\nbirdY:x\n</OBS></FLAPPY>"])
def test_no_observation_is_none(text):
    assert read_observation(text) is None
