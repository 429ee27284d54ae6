"""Validated environment arguments."""

from __future__ import annotations

import pytest

from flappybird.episodes.arguments import Settings
from flappybird.errors import ConfigError


def test_settings_take_every_option_and_refuse_bad_ones_by_name():
    checked = Settings.of(history_turns=8, observation="ascii", realtime=True, turn_reward=True)
    assert (checked.rules.history_turns, checked.rules.realtime, checked.turn_reward) == (8, 30.0, True)
    with pytest.raises(ConfigError, match="turn_reward = 1"):
        Settings.of(turn_reward=1)
    with pytest.raises(ConfigError, match="did you mean 'history_turns'"):
        Settings.of(history_turn=1)
