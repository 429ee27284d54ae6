import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flappybird.errors import ConfigError
from flappybird.world.config import FlappyConfig

CARD = {
    "world_w": 24.0,
    "world_h": 20.0,
    "bird_x": 4.0,
    "bird_radius": 0.20,
    "gravity": -0.30,
    "jump_impulse": 1.6,
    "pipe_speed": 0.30,
    "pipe_spawn_interval": 30,
    "first_spawn_interval": 10,
    "base_gap_height": 8.0,
    "easy_gap_height": 6.0,
    "easy_mode_pipes": 6,
    "ramp_pipes": 12,
    "gap_center_offset": 2.0,
    "pipe_width": 2.0,
}


def test_defaults_are_the_cards():
    assert FlappyConfig().model_dump() == CARD


def test_whole_numbers_are_lengths_too():
    assert FlappyConfig(easy_gap_height=7) == FlappyConfig(easy_gap_height=7.0)


def test_configs_are_frozen_and_hashable():
    config = FlappyConfig()
    with pytest.raises(Exception, match="frozen"):
        config.gravity = -1.0
    assert len({config, FlappyConfig()}) == 1


def test_overrides_are_laid_over_a_config_or_its_dict():
    base = FlappyConfig(gravity=-0.25)
    for config in (base, base.model_dump(), {"gravity": -0.25}):
        merged = FlappyConfig.of(config, {"easy_gap_height": 7.0})
        assert merged == FlappyConfig(gravity=-0.25, easy_gap_height=7.0)
    assert FlappyConfig.of(None, None) == FlappyConfig()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"gravty": -0.2}, "'gravty' is not a field of FlappyConfig; did you mean 'gravity'?"),
        ({"zzz": 1}, "allowed: world_w"),
        ({"gravity": "x"}, "gravity = 'x'"),
        ({"gravity": 0.3}, "gravity = 0.3: input should be less than 0"),
        ({"gravity": math.nan}, "gravity = nan"),
        ({"world_w": math.inf}, "world_w = inf"),
        ({"gravity": True}, "gravity = True"),
        ({"gravity": -0.00001}, "gravity = -1e-05: must be a multiple of 0.0001"),
        ({"base_gap_height": 6.005}, "base_gap_height = 6.005: must be a multiple of 0.01"),
        ({"gap_center_offset": 0.005}, "gap_center_offset = 0.005: must be a multiple of 0.01"),
        ({"pipe_spawn_interval": 3.7}, "pipe_spawn_interval = 3.7"),
        ({"pipe_spawn_interval": 0}, "pipe_spawn_interval = 0"),
        ({"pipe_spawn_interval": True}, "pipe_spawn_interval = True"),
        ({"pipe_spawn_interval": 1, "pipe_speed": 0.01}, "more than 200 pipes"),
        ({"pipe_speed": 2.4}, "a pipe can jump over the bird in one tick"),
        ({"easy_gap_height": 0.4}, "easy_gap_height = 0.4: must exceed 2*bird_radius = 0.4"),
        ({"bird_radius": 10.0, "bird_x": 11.0}, "bird_radius = 10.0: must be below world_h/2"),
        ({"bird_x": 0.1}, "bird_x = 0.1: must be at least bird_radius"),
        ({"bird_x": 23.0}, "world_w = 24.0: must exceed"),
        ({"gap_center_offset": 9.8}, "gap_center_offset = 9.8: must be below"),
    ],
)
def test_a_bad_config_is_refused_in_one_line_that_names_the_field(fields, said):
    with pytest.raises(ConfigError) as caught:
        FlappyConfig(**fields)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", ["{}", [1], 3, "gravity"])
def test_what_is_no_object_of_fields_is_refused(value):
    with pytest.raises(ConfigError, match=r"config_overrides = .*must be an object"):
        FlappyConfig.of(None, value)


def test_the_fastest_speed_that_is_accepted_still_touches_the_bird():
    # Just below the limit every pipe is in the bird's x range for at least one tick, whatever its phase.
    from flappybird.world.course import Physics

    for bird_x in (4.0, 4.0001, 4.7, 5.3333):
        physics = Physics.of(FlappyConfig(pipe_speed=2.3999, bird_x=bird_x))
        assert physics.leave_age >= physics.enter_age


@given(st.dictionaries(st.sampled_from(sorted(CARD)), st.one_of(st.floats(), st.integers(), st.text(max_size=5), st.none())))
def test_any_fields_give_a_config_or_one_clear_line(fields):
    try:
        config = FlappyConfig(**fields)
    except ConfigError as error:
        line = str(error)
    else:
        line = ""
        assert FlappyConfig(**config.model_dump()) == config
    assert "\n" not in line
