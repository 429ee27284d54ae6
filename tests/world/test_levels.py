from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flappybird.errors import ConfigError
from flappybird.players.games import play
from flappybird.world.certify import impassable
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course, gap_height
from flappybird.world.levels import LEVELS, level
from flappybird.world.solver import passable
from tests.worlds import worlds

LADDER = ("easy", "medium", "hard", "expert")


def test_card_is_the_cards_defaults():
    assert level("card") == FlappyConfig()


@pytest.mark.parametrize("name", LADDER)
def test_on_the_ladder_gaps_tighten_over_the_pipes_of_an_episode(name):
    heights = [gap_height(level(name), number) for number in range(9)]
    assert heights == sorted(heights, reverse=True)
    assert heights[0] > heights[4] > heights[8]
    # Eight pipes are passed in 300 ticks: the ramp ends before.
    assert heights[7] == gap_height(level(name), 10_000)


def test_each_level_is_tighter_than_the_one_before():
    for below, above in pairwise(LADDER):
        for number in range(20):
            assert gap_height(level(above), number) < gap_height(level(below), number)
        assert level(above).gap_center_offset > level(below).gap_center_offset


def test_the_heuristics_score_falls_by_a_clear_factor_from_level_to_level():
    def mean(name: str) -> float:
        return sum(play("heuristic", level(name), seed, 300).score for seed in range(150)) / 150

    scores = [mean(name) for name in LADDER]
    assert all(above < below / 1.5 for below, above in pairwise(scores))


@pytest.mark.parametrize("name", LEVELS)
def test_the_first_10_000_seeds_of_every_level_can_all_be_flown(name):
    assert impassable(level(name), range(10_000)) == []


@pytest.mark.parametrize("name", LEVELS)
def test_the_planner_reaches_the_end_of_nearly_every_course(name):
    flown = [play("planner", level(name), seed, 300) for seed in range(20)]
    assert sum(game.score for game in flown) >= 0.98 * 20 * 8


@given(worlds(base_gap_height=2.5, easy_gap_height=3.0), st.integers(1, 120))
@settings(max_examples=30)
def test_the_certificate_says_what_the_solver_says(config, ticks):
    expected = [seed for seed in range(4) if not passable(Course(config, seed), ticks)]
    assert impassable(config, range(4), ticks) == expected


def test_a_course_that_cannot_be_flown_is_found():
    # Gaps as high as the bird and a half, far apart: only a flat course could be flown.
    config = FlappyConfig(easy_gap_height=0.6, base_gap_height=0.6, gap_center_offset=6.0)
    assert impassable(config, range(3)) == [0, 1, 2]
    assert impassable(config, []) == []


def test_an_unknown_level_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match=r"difficulty: 'hrad' is not a level; did you mean 'hard'\?"):
        level("hrad")
    with pytest.raises(ConfigError, match="difficulty: 3 is not a level; "):
        level(3)
