"""How replies and ticks meet, and how much of the past a model sees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flappybird.errors import ConfigError
from flappybird.protocol.rules import Rules
from flappybird.protocol.window import first_kept


def test_the_defaults_are_the_cards_and_are_not_written_down():
    assert Rules().model_dump() == {"max_turns": 300, "ticks_per_turn": 1, "latency_ticks": 0, "stop_on_malformed": 0}
    rules = Rules(observation="signed", history_turns=8, realtime=True)
    assert rules.model_dump()["realtime"] == 30.0
    assert Rules(**rules.model_dump()) == rules


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ({"observation": "pixels"}, "observation = 'pixels'"),
        ({"history_turns": -2}, "history_turns = -2"),
        ({"realtime": -1.0}, "realtime = -1.0"),
        ({"realtime": float("nan")}, "realtime = nan"),
        ({"realtime": "fast"}, "realtime = 'fast'"),
        ({"ticks_per_turn": 0}, "ticks_per_turn = 0"),
        ({"latency_ticks": 1.5}, "latency_ticks = 1.5"),
        ({"history": 3}, "did you mean 'history_turns'"),
    ],
)
def test_a_bad_rule_is_refused_by_name(rule, told):
    with pytest.raises(ConfigError, match=told) as refused:
        Rules(**rule)
    assert "\n" not in str(refused.value)


@given(turns=st.integers(0, 2_000), k=st.integers(1, 300))
def test_a_window_holds_k_to_2k_less_one_turns_and_moves_only_when_full(turns, k):
    shown = turns - first_kept(turns, k)
    assert shown == turns or k <= shown < 2 * k
    moved = first_kept(turns + 1, k) - first_kept(turns, k)
    assert moved in (0, k)
    assert moved == 0 or shown == 2 * k - 1


def test_all_of_the_history_is_kept_by_default():
    assert {first_kept(turns, 0) for turns in range(1_000)} == {0}
