import os
import random
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flappybird.episodes.arguments import Settings
from flappybird.errors import ConfigError
from flappybird.sft import Plan
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course, gap_height
from flappybird.world.seeds import EVALUATION_SEEDS, GYMNASIUM_SEEDS, MAX_SEED, SEED_RANGES, TRAINING_SEEDS, VALIDATION_SEEDS
from tests.worlds import worlds

seeds = st.integers(0, 2**53 - 1)


def test_the_first_pipes_of_seed_7_never_change():
    # Golden: every engine, release and machine must draw these.
    course = Course(FlappyConfig(), 7)
    assert [course.gap(number).y for number in range(6)] == GOLDEN_SEED_7
    assert [course.gap(number).height for number in range(6)] == [60000] * 6


GOLDEN_SEED_7 = [8900, 6000, 2000, 4200, -6100, -12700]


def test_gap_heights_ramp_from_easy_to_base():
    heights = [gap_height(FlappyConfig(), number) for number in range(20)]
    assert heights[:7] == [60000] * 7
    assert heights[7] == 61700  # 6 + 2/12, rounded to 0.01
    assert heights[12] == 70000
    assert heights[18:] == [80000, 80000]
    assert heights == sorted(heights)


def test_without_a_ramp_the_base_height_follows_at_once():
    config = FlappyConfig(easy_mode_pipes=2, ramp_pipes=0)
    assert [gap_height(config, number) for number in range(4)] == [60000, 60000, 80000, 80000]


@given(seeds, st.integers(0, 10_000), st.integers(0, 300).map(lambda n: n / 100))
def test_gap_centres_are_hundredths_within_the_offset(seed, number, offset):
    gap = Course(FlappyConfig(gap_center_offset=offset), seed).gap(number)
    assert abs(gap.y) <= round(offset * 10_000)
    assert gap.y % 100 == 0
    assert gap.height % 100 == 0


def test_gap_centres_are_spread_evenly():
    ys = [Course(FlappyConfig(), seed).gap(number).y for seed in range(100) for number in range(100)]
    tenths = [sum(low <= y < low + 4_000 for y in ys) for low in range(-20_000, 20_000, 4_000)]
    assert min(tenths) > 850
    assert max(tenths) < 1150


@given(worlds(), seeds, st.integers(0, 1_000))
def test_the_band_is_that_of_every_tick_until_it_changes(config, seed, tick):
    course = Course(config, seed)
    band = course.band(tick)
    assert band.until > tick
    for later in range(tick, min(band.until, tick + 50)):
        assert course.band(later)[:2] == band[:2]


@given(worlds(), seeds, st.integers(0, 1_000))
def test_A03_the_next_pipe_is_the_first_that_can_still_be_hit(config, seed, tick):
    course = Course(config, seed)
    pipes = course.visible(tick)
    assert [pipe.x for pipe in pipes] == sorted(pipe.x for pipe in pipes)
    assert [pipe.number for pipe in pipes] == list(range(pipes[0].number, pipes[-1].number + 1)) if pipes else True
    physics = course.physics
    reach = physics.width + 2 * physics.radius
    hittable = [pipe.number for pipe in pipes if 2 * (physics.bird_x - pipe.x) < reach]
    if hittable:
        # The pipe that is named, tested and counted is the same at every tick. Where a pipe's edge lies
        # exactly on the bird's, it is neither hit nor passed.
        assert course.passed(tick) in (hittable[0], hittable[0] - 1)
    touching = [pipe.number for pipe in pipes if 2 * abs(pipe.x - physics.bird_x) < reach]
    assert list(course.touching(tick)) == touching


def test_every_seed_has_one_purpose():
    assert [seeds.start for seeds in SEED_RANGES] == [0, *(seeds.stop for seeds in SEED_RANGES[:-1])]
    assert SEED_RANGES[-1][-1] == MAX_SEED
    assert all(len(seeds[: 2**40]) == 2**40 for seeds in SEED_RANGES)
    assert {*SEED_RANGES} == {EVALUATION_SEEDS, TRAINING_SEEDS, GYMNASIUM_SEEDS, VALIDATION_SEEDS}


def test_no_row_leaves_the_range_of_its_purpose():
    # The last seed that an environment or a plan can be asked for, and as many games as it can have.
    last = Settings.of(seed=EVALUATION_SEEDS[-10])
    assert last.evaluation_row(9)["seed"] == EVALUATION_SEEDS[-1]
    with pytest.raises(ConfigError, match="evaluation seeds must stay below"):
        last.evaluation_row(10)
    assert last.training_row(10**12)["seed"] in TRAINING_SEEDS
    with pytest.raises(IndexError):
        last.training_row(2**51)
    plan = Plan(seed=2**50, games=10_000_000).check()
    for seeds in (TRAINING_SEEDS, VALIDATION_SEEDS):
        assert seeds[plan.seed] + plan.games in seeds
    for seed in (2**50 + 1, -1):
        with pytest.raises(ConfigError, match="--seed"):
            Plan(seed=seed).check()


def test_seeds_of_numpy_are_whole_numbers_too():
    np = pytest.importorskip("numpy")
    assert type(Course(FlappyConfig(), np.int64(7)).seed) is int
    for wrong in (np.float64(7), np.bool_(True), np.int64(-1)):
        with pytest.raises(ConfigError, match="must be a whole number"):
            Course(FlappyConfig(), wrong)


@pytest.mark.parametrize("seed", [-1, 2**53, 1.5, "7", None, True])
def test_a_bad_seed_is_refused(seed):
    with pytest.raises(ConfigError, match=r"seed = .*must be a whole number"):
        Course(FlappyConfig(), seed)


def test_A07_courses_ignore_global_randomness_hash_seeds_and_each_other():
    config = FlappyConfig()
    alone = [[Course(config, seed).gap(number) for number in range(20)] for seed in range(8)]
    courses = [Course(config, seed) for seed in range(8)]
    mixed = [[] for _ in courses]
    for number in range(20):
        random.seed(1)
        for gaps, course in zip(mixed, courses, strict=True):
            gaps.append(course.gap(number))
    assert mixed == alone
    code = "from flappybird import Course, FlappyConfig; print([Course(FlappyConfig(), 3).gap(n).y for n in range(9)])"
    for hash_seed in ("0", "4242"):
        told = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert told.stdout.strip() == str([gap.y for gap in alone[3][:9]])


@given(worlds(), st.integers(0, 10_000), st.lists(st.integers(0, 200_000), max_size=30))
def test_what_is_visible_is_the_same_whichever_ticks_were_asked_for_before(config, seed, ticks):
    course = Course(config, seed)
    for tick in ticks:
        seen = course.visible(tick)
        assert seen == Course(config, seed).visible(tick)
        assert seen == [course.pipe(pipe.number, tick) for pipe in seen]
