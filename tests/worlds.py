"""Random legal worlds for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from flappybird.errors import ConfigError
from flappybird.world.config import FlappyConfig


def _steps(low: int, high: int, parts: int) -> st.SearchStrategy[float]:
    return st.integers(low, high).map(lambda whole: whole / parts)


@st.composite
def worlds(draw: st.DrawFn, **fixed: Any) -> FlappyConfig:
    """A legal config, often near the card's, sometimes far from it and as fine as is allowed."""
    fine = draw(st.sampled_from([10, 100, 10_000]))
    fields: dict[str, Any] = {
        "world_w": draw(_steps(8 * fine, 30 * fine, fine)),
        "world_h": draw(_steps(6 * fine, 24 * fine, fine)),
        "bird_x": draw(_steps(1 * fine, 5 * fine, fine)),
        "bird_radius": draw(_steps(1, fine, fine)),
        "gravity": -draw(_steps(max(fine // 10, 1), fine, fine)),
        "jump_impulse": draw(_steps(max(fine // 5, 1), 3 * fine, fine)),
        "pipe_speed": draw(_steps(max(fine // 10, 1), 2 * fine, fine)),
        "pipe_spawn_interval": draw(st.integers(1, 40)),
        "first_spawn_interval": draw(st.integers(1, 40)),
        "base_gap_height": draw(_steps(210, 900, 100)),
        "easy_gap_height": draw(_steps(210, 900, 100)),
        "easy_mode_pipes": draw(st.integers(0, 8)),
        "ramp_pipes": draw(st.integers(0, 12)),
        "gap_center_offset": draw(_steps(0, 400, 100)),
        "pipe_width": draw(_steps(1, 4 * fine, fine)),
    }
    try:
        return FlappyConfig(**{**fields, **fixed})
    except ConfigError:
        assume(False)
        raise
