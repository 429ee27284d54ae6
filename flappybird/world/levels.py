"""The ladder of difficulty: a named world for each rung.

`card` is the card's defaults, whose gaps widen from 6 to 8. On the others the gaps really tighten over the pipes, and
lie further apart from level to level. Every seed from 0 to 9,999 can be
flown to its 300th tick on each of them: `certify.impassable` finds none that cannot.
"""

from __future__ import annotations

from flappybird.errors import ConfigError, unknown_name
from flappybird.world.config import FlappyConfig


def _tightening(easy: float, base: float, offset: float) -> FlappyConfig:
    # Tight from the seventh pipe on, so that an episode of 300 ticks (eight pipes) meets all of the ramp.
    return FlappyConfig(easy_gap_height=easy, base_gap_height=base, easy_mode_pipes=1, ramp_pipes=5, gap_center_offset=offset)


LEVELS: dict[str, FlappyConfig] = {
    "card": FlappyConfig(),
    "easy": _tightening(8.0, 6.0, 1.5),
    "medium": _tightening(7.0, 4.5, 3.0),
    "hard": _tightening(6.0, 4.0, 3.5),
    "expert": _tightening(5.0, 3.2, 4.0),
}
"""The worlds by name: the card's, then from easy to expert."""


def level(name: object) -> FlappyConfig:
    """Return the world of the difficulty `name`.

    Raises:
        ConfigError: there is no such level.
    """
    if not isinstance(name, str) or name not in LEVELS:
        raise ConfigError(f"difficulty: {unknown_name(name, LEVELS, 'a level')}")
    return LEVELS[name]
