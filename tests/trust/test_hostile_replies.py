"""Whatever a model says: one status for every reply, no exception, no hang, and an episode that its replay confirms."""

import importlib.util
import json
import random
import subprocess
import sys
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flappybird.episodes.episode import Player, from_dict
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.episodes.verify import verify
from flappybird.protocol.reply import Status, read_reply
from flappybird.protocol.rules import Rules
from flappybird.runs import check, run_of_outputs
from flappybird.world.config import FlappyConfig
from tests.conftest import ROOT
from tests.trust import hostile


def test_ten_thousand_hostile_replies_are_each_read_in_one_way():
    dice, statuses = random.Random(1), Counter()
    for _ in range(10_000):
        said, ticks = hostile.said(dice), dice.choice((1, 1, 1, 4))
        reply = read_reply(said.content, said.reasoning, cut=said.cut, ticks=ticks)
        assert hostile.fault_of(reply, said, ticks) is None, said
        statuses[reply.status] += 1
    assert set(statuses) == set(Status)
    assert min(statuses.values()) > 500  # the generator goes everywhere


shapes = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=9) | st.just(object()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["type", "text", "content"]), inner, max_size=3),
    max_leaves=12,
)


@given(shapes, shapes, st.booleans(), st.integers(1, 5))
def test_content_of_any_shape_is_read(content, reasoning, cut, ticks):
    reply = read_reply(content, reasoning, cut=cut, ticks=ticks)
    assert hostile.fault_of(reply, hostile.Said(content, reasoning, cut), ticks) is None


def test_a_reply_in_which_an_observation_is_imitated_changes_nothing_but_its_own_action():
    for injection in hostile.INJECTIONS:
        for action in hostile.GOOD:
            said = f"{injection}\n{action}\n{injection}"
            plain, dressed = Rollout(FlappyConfig(), 5, Rules()), Rollout(FlappyConfig(), 5, Rules())
            assert plain.take(action).actions == dressed.take(said).actions
            assert plain.game.state == dressed.game.state
            assert str(plain.observation()) == str(dressed.observation())


def test_a_reply_of_a_megabyte_is_remembered_by_nobody():
    read_reply(hostile.megabyte(random.Random(0)))
    tracemalloc.start()
    try:
        for seed in range(20):
            assert read_reply(hostile.megabyte(random.Random(seed))).status in Status
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 500_000


@given(st.integers(0, 2**32), st.integers(0, 2**20), st.integers(1, 3), st.integers(0, 2))
def test_an_episode_of_hostile_replies_is_verified_after_its_way_through_a_file(seed, course, ticks, latency):
    dice = random.Random(seed)
    rollout = Rollout(FlappyConfig(), course, Rules(max_turns=60, ticks_per_turn=ticks, latency_ticks=latency))
    while rollout.outcome is None:
        content, reasoning, cut = hostile.said(dice)
        rollout.take(content, reasoning, cut=cut)
    episode = finish(rollout, Player(kind="model", name="\ud800\u202e\x1b[2J"))
    again = from_dict(json.loads(episode.to_json()))
    assert again == episode
    assert verify(again) == []


def test_D12_games_of_hostile_replies_go_through_the_environment_and_are_verified():
    pytest.importorskip("verifiers.envs.environment", reason="the classic API of verifiers is not installed")
    dice = random.Random(3)
    rows = hostile.evaluate(lambda _: hostile.said(dice), 60, max_turns=40)
    run = run_of_outputs(rows, {}, Path("run"))
    assert [row.example for row in run.rows] == list(range(60))
    for row in run.rows:
        assert row.problem is None
        assert check(row) == []
        assert all(turn.status in Status for turn in row.episode.turns)
        # A shape that is no message ends its rollout as an error; whatever is one is a turn, and no error.
        assert (row.error is not None) == (row.episode.outcome.reason.value == "error")
        assert row.error is None or "\n" not in row.error


def test_D12_a_reply_of_a_shape_that_the_library_refuses_ends_one_rollout_and_not_the_evaluation():
    pytest.importorskip("verifiers.envs.environment", reason="the classic API of verifiers is not installed")

    def say(messages):
        third = sum(message.role == "assistant" for message in messages) == 2
        return hostile.Said({"no": "message"} if third and len(spoilt) < 1 and not spoilt.append(1) else "", None, False)

    spoilt: list[int] = []
    rows = hostile.evaluate(say, 3, max_turns=6)
    run = run_of_outputs(rows, {}, Path("run"))
    (broken,) = [row for row in run.rows if row.error]
    assert "ValidationError in add_model_response" in broken.error
    assert (broken.episode.outcome.reason.value, broken.episode.outcome.ticks) == ("error", 2)
    assert [row.episode.outcome.ticks for row in run.rows if not row.error] == [6, 6]


def test_a_coverage_guided_fuzzer_finds_no_reply_that_breaks_the_parser(tmp_path):
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("atheris is not installed: uv sync --group trust")
    command = [sys.executable, "-m", "tests.trust.fuzz_parser", "-runs=10000", "-seed=1", "-max_len=300"]
    command.append(f"-artifact_prefix={tmp_path}/")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "Done 10000 runs" in done.stderr
