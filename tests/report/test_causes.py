"""What lost a game, and what was said wrong when it was lost."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flappybird.analysis import analyse
from flappybird.episodes.episode import Player, replay
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.players.policies import POLICIES
from flappybird.protocol.rules import Rules
from flappybird.report.arithmetic import slips
from flappybird.report.causes import cause_of
from flappybird.report.context import causes
from flappybird.report.data import gather
from flappybird.report.html import ordinal
from flappybird.report.overview import Overview
from flappybird.report.summary import Summary
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Physics
from flappybird.world.game import State
from tests.report.cases import Say, play, policy, repeat, row, run

TAP, HOLD = "<THINK>x</THINK><ACTIONS>[TAP]</ACTIONS>", "<THINK>x</THINK><ACTIONS>[]</ACTIONS>"


def cause(say: Say, rules: Rules | None = None, **facts: object) -> str | None:
    episode = play(say, rules=rules, **facts)
    played = replay(episode)
    found = cause_of(episode, played, analyse(episode, played))
    return found.name if found else None


@pytest.mark.parametrize(
    ("said", "name"),
    [
        (repeat(TAP), "early"),
        (repeat(HOLD), "held"),
        (repeat("I tap"), "malformed"),
        (repeat(""), "empty"),
        (repeat("<THINK>0.00 + 1.60 = 2.60</THINK><ACTIONS>[TAP]</ACTIONS>"), "arithmetic"),
        (repeat("<THINK>velY becomes 9.00</THINK><ACTIONS>[]</ACTIONS>"), "arithmetic"),
    ],
)
def test_a_death_is_put_down_to_the_reply_that_lost_it(said: Say, name: str) -> None:
    assert cause(said) == name


def test_a_reply_that_was_cut_off_is_a_cause_of_its_own() -> None:
    assert cause(repeat("<THINK>well"), cut=True) == "truncated"


def test_a_flight_that_lives_has_no_cause() -> None:
    assert cause(policy("planner", 0)) is None


def test_a_reply_that_had_not_come_yet_is_not_blamed() -> None:
    assert cause(repeat(TAP), Rules(realtime=10.0), waited=20) == "late"
    assert cause(repeat(TAP), Rules(latency_ticks=9)) in ("late", "early")


def test_a_late_action_is_blamed_only_once_it_has_landed() -> None:
    rollout = Rollout(FlappyConfig(), 0, Rules(latency_ticks=50))
    while rollout.outcome is None:
        rollout.take(TAP)
    episode = finish(rollout, Player(kind="model", name="late"))
    played = replay(episode)
    found = cause_of(episode, played, analyse(episode, played))
    assert found is not None
    assert found.name == "late", "it fell to the floor before anything that it asked for landed"


def test_causes_add_up_to_the_deaths_with_their_shares_and_examples() -> None:
    rows = [row(seed, play(policy("heuristic", seed), seed)) for seed in range(6)]
    rows += [row(6 + seed, play(repeat("hm"), seed)) for seed in range(3)]
    rows += [row(9, play(repeat(HOLD), error="HTTP 500"))]
    gathered = gather([run(rows)])
    listed = causes(Overview(gathered, [Summary(records) for records in gathered]))
    deaths = sum(record.episode.outcome.reason.crashed for record in gathered[0].clean if record.episode)
    assert sum(entry["count"] for entry in listed) == deaths == sum(gathered[0].causes.values())
    assert sum(entry["share"] for entry in listed) == pytest.approx(1)
    assert [entry["count"] for entry in listed] == sorted((entry["count"] for entry in listed), reverse=True)
    for entry in listed:
        assert 1 <= len(entry["examples"]) <= entry["count"]
        assert all(example["svg"].startswith("<svg") for example in entry["examples"])


@pytest.mark.parametrize(
    ("thought", "wrong"),
    [
        ("1.30 + 1.60 = 2.90", []),
        ("1.30 + 1.60 = 3.10", ["2.9"]),
        ("-0.30 − 0.30 = -0.60", []),
        ("2 * 0.3 + 1 = 1.6", []),
        ("1.0 + 2.0 + 3.0 = 6.0", []),
        ("1.0 + 2.0 + 3.0 = 5.0", ["6"]),
        ("0.333 + 0.333 = 0.67", []),
        ("y = 3.00", []),
        ("pipe 3 - 2 = left? x=1", []),
        ("gap 2.05 to 3.95, 10 + 10 = 20%", []),
        ("5 / 2 = 3", []),
    ],
)
def test_only_sums_that_are_written_out_are_judged(thought: str, wrong: list[str]) -> None:
    assert [slip.right for slip in slips(thought)] == wrong


@given(st.lists(st.decimals(-50, 50, places=2), min_size=2, max_size=4), st.sampled_from("+-"))
def test_a_right_sum_is_never_called_wrong_and_a_wrong_one_always(terms: list[Decimal], sign: str) -> None:
    right = terms[0] + sum(terms[1:]) if sign == "+" else terms[0] - sum(terms[1:])
    text = f" {sign} ".join(f"({term})" if index and term < 0 else f"{term}" for index, term in enumerate(terms))
    assert slips(f"So {text} = {right}, fine") == []
    assert len(slips(f"So {text} = {right + 1}, fine")) == 1


def test_what_a_bird_becomes_is_what_an_action_leads_to() -> None:
    physics, state = Physics.of(FlappyConfig()), State(5, 10_000, -3_000)
    assert slips("velY becomes 1.60, birdY becomes 2.60", state, physics) == []
    assert slips("velY becomes -0.60, birdY 1.00 becomes 0.40", state, physics) == []
    assert [str(slip) for slip in slips("birdY becomes 2.00", state, physics)] == [
        "says birdY becomes 2.00; it is 2.6 with a TAP, 0.4 without"
    ]


def test_no_thought_takes_long_to_read() -> None:
    for piece in ("1+", "1 + ", "(1", "=", "birdY becomes ", "1.0 * 1.0 = "):
        slips(piece * 200_000)


def test_the_thoughts_of_the_built_in_players_are_right() -> None:
    for name in POLICIES:
        for seed in range(3):
            episode = play(policy(name, seed), seed)
            states = replay(episode).states
            for turn, state in zip(episode.turns, states, strict=False):
                assert slips(turn.thought, state, Physics.of(episode.config)) == []


def test_pipes_are_counted_as_people_count() -> None:
    assert [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 101, 111)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "101st", "111th",
    ]  # fmt: skip
