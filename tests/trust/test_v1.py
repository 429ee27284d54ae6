"""The v1 door: the same hostile replies and failing servers, and the same promises."""

import random

import pytest

from flappybird import server
from flappybird.episodes.verify import verify
from flappybird.protocol.reply import Status
from flappybird.world.game import Reason
from tests.conftest import serving
from tests.test_taskset import harness, play_v1, taskset  # skips where there is no v1
from tests.trust import hostile
from tests.trust.faults import FaultProxy, once


def test_D12_games_of_hostile_replies_are_played_to_their_end_and_verified(monkeypatch):
    dice = random.Random(8)
    monkeypatch.setattr(server, "answer", lambda *_: [hostile.text(dice).encode("utf-8", "replace").decode("utf-8")])
    with serving() as url:
        for index in range(6):
            (trace,) = play_v1(url, index=index, max_turns=25).traces
            assert trace.ok
            episode = taskset.episode_of(trace)
            assert verify(episode) == []
            assert all(turn.status in Status for turn in episode.turns)
            assert trace.metrics["invalid_actions"] == sum(turn.status is not Status.OK for turn in episode.turns)


@pytest.mark.parametrize("fault", [500, 503, 429, "reset", "half", "no JSON", "choices null", "choices empty", "content object"])
def test_a_reply_that_never_came_is_an_error_and_no_score(policy_server, monkeypatch, fault):
    monkeypatch.setattr(harness, "RETRIES", 0)
    with FaultProxy(policy_server, once(fault)) as url:
        played = play_v1(url, max_turns=6)
    (trace,) = played.traces
    assert not played.ok
    assert (taskset.episode_of(trace).outcome.reason, taskset.episode_of(trace).outcome.ticks) == (Reason.ERROR, 2)
    assert not trace.metrics or set(trace.metrics.values()) == {None}


@pytest.mark.parametrize("fault", ["429 0", "503 0", "reset"])
def test_a_fault_that_passes_costs_nothing(policy_server, monkeypatch, fault):
    monkeypatch.setattr(harness, "BACKOFF", 0.0)
    proxy = FaultProxy(policy_server, once(fault))
    with proxy as url:
        (trace,) = play_v1(url, max_turns=6).traces
    (undisturbed,) = play_v1(policy_server, max_turns=6).traces
    assert trace.ok
    assert len(proxy.asked) == 7
    replies = [[turn.reply for turn in taskset.episode_of(one).turns] for one in (trace, undisturbed)]
    assert replies[0] == replies[1]
