import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flappybird.episodes import episode as episodes
from flappybird.episodes import rewards
from flappybird.episodes import rollout as rollouts
from flappybird.episodes.episode import Episode, Player, from_dict, load, observations, replay, save
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.episodes.verify import verify
from flappybird.errors import EpisodeError, GameOver
from flappybird.protocol.reply import Status, read_reply
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig
from flappybird.world.game import FlappyGame, Reason, State
from tests.conftest import ROOT, play
from tests.worlds import worlds

GOLDEN = ROOT / "tests" / "golden"
MODEL = Player(kind="model", name="m")
said = st.one_of(
    st.sampled_from(
        [
            "<THINK>a</THINK><ACTIONS>[TAP]</ACTIONS>",
            "<ACTIONS>[]</ACTIONS>",
            "<ACTIONS>[TAP, NOOP, TAP]</ACTIONS>",
            "",
            "hm",
            "\ud800",
        ]
    ),
    st.text(max_size=20),
)
rules = st.builds(
    Rules,
    max_turns=st.integers(1, 80),
    ticks_per_turn=st.integers(1, 4),
    latency_ticks=st.integers(0, 3),
    stop_on_malformed=st.sampled_from([0, 0, 2]),
)
turns = st.lists(st.tuples(said, st.booleans(), st.sampled_from([0, 0, 0, 2])), max_size=60)


def _played(config, seed, rules, turns) -> tuple[Episode, list[State]]:
    rollout, states = Rollout(config, seed, rules), [State()]
    for text, cut, waited in turns:
        if rollout.outcome is not None:
            break
        # A rollout goes on from its record as if nothing had happened.
        rollout = Rollout(config, seed, rules, json.loads(json.dumps(rollout.record)))
        rollout.take(text, cut=cut, waited=waited, seconds=0.25, completion_tokens=7)
        states += rollout.trail[1:]
    return finish(rollout, MODEL), states


@given(worlds(), st.integers(0, 2**53 - 1), rules, turns)
def test_any_episode_is_saved_loaded_replayed_and_verified(config, seed, rules, turns):
    episode, states = _played(config, seed, rules, turns)
    assert from_dict(json.loads(episode.to_json())) == episode
    assert verify(episode) == []
    again = replay(episode)
    assert again.states == states
    assert len(again.turn_at) == len(states) - 1
    assert again.used == len(episode.turns)
    assert all(len(turn.taps) == rules.ticks_per_turn for turn in episode.turns)


def test_load_of_save_is_the_episode(tmp_path):
    episode = play("heuristic", 2)
    save(episode, tmp_path / "episode.json")
    assert load(tmp_path / "episode.json") == episode
    assert [file.name for file in tmp_path.iterdir()] == ["episode.json"]
    assert (tmp_path / "episode.json").read_bytes().isascii()


@pytest.mark.parametrize(("policy", "seed"), [("noop", 0), ("random", 4), ("heuristic", 3), ("planner", 7)])
def test_golden_episodes_are_played_again_to_the_last_digit(policy, seed):
    golden = GOLDEN / f"{policy}-{seed}.json"
    assert play(policy, seed).to_json() == golden.read_text(encoding="utf-8")
    assert verify(load(golden)) == []


def test_replies_that_fail_fly_as_no_op_and_keep_what_was_said():
    rollout = Rollout(FlappyConfig(), 1, Rules(max_turns=4))
    for text, cut in (("what?", False), ("so then", True), ("", False), ("<ACTIONS>[TAP]</ACTIONS>", False)):
        rollout.take(text, cut=cut)
    episode = finish(rollout, MODEL)
    assert [turn.status for turn in episode.turns] == [Status.MALFORMED, Status.TRUNCATED, Status.EMPTY, Status.OK]
    assert [turn.taps for turn in episode.turns] == [(False,), (False,), (False,), (True,)]
    assert [turn.reply for turn in episode.turns] == ["what?", "so then", "", "<ACTIONS>[TAP]</ACTIONS>"]
    assert episode.outcome.reason is Reason.TICK_LIMIT
    assert rollout.game.state == State(4, -18_000 + 16_000, 16_000)


def test_a_plan_flies_tick_by_tick_and_is_cut_at_the_limit():
    rollout = Rollout(FlappyConfig(), 1, Rules(max_turns=5, ticks_per_turn=3))
    rollout.take("<ACTIONS>[TAP, NOOP]</ACTIONS>")
    assert [state.y for state in rollout.trail] == [0, 16_000, 29_000, 39_000]
    rollout.take("<ACTIONS>[TAP, TAP, TAP, TAP]</ACTIONS>")
    assert [state.tick for state in rollout.trail] == [3, 4, 5]
    assert rollout.outcome.reason is Reason.TICK_LIMIT
    assert rollout.turns[1]["ignored"] == 1


def test_with_latency_an_action_lands_late():
    rollout = Rollout(FlappyConfig(), 1, Rules(latency_ticks=2))
    for _ in range(4):
        rollout.take("<ACTIONS>[TAP]</ACTIONS>")
    falls = FlappyGame(FlappyConfig(), 1)
    for tap in (False, False, True, True):
        falls.step(tap)
    assert rollout.game.state == falls.state


def test_ticks_that_pass_while_the_player_thinks_fly_as_no_op():
    rollout = Rollout(FlappyConfig(), 1, Rules())
    rollout.take("<ACTIONS>[TAP]</ACTIONS>", waited=3)
    assert rollout.game.tick == 4
    assert rollout.game.state.velocity == 16_000
    assert verify(finish(rollout, MODEL)) == []


def test_too_many_bad_replies_in_a_row_end_an_episode_where_that_is_asked_for():
    rollout = Rollout(FlappyConfig(), 1, Rules(stop_on_malformed=2))
    for text in ("a", "<ACTIONS>[TAP]</ACTIONS>", "b", "c"):
        assert rollout.outcome is None
        rollout.take(text)
    assert rollout.outcome.reason is Reason.MALFORMED
    with pytest.raises(GameOver, match="malformed at tick 4"):
        rollout.take("d")
    assert verify(finish(rollout, MODEL)) == []


def test_an_episode_that_was_left_is_marked_as_aborted_or_as_an_error():
    rollout = Rollout(FlappyConfig(), 1, Rules())
    rollout.take("<ACTIONS>[TAP]</ACTIONS>")
    aborted = finish(Rollout(FlappyConfig(), 1, Rules(), dict(rollout.record)), MODEL)
    assert (aborted.outcome.reason, aborted.outcome.ticks) == (Reason.ABORTED, 1)
    broken = finish(Rollout(FlappyConfig(), 1, Rules(), dict(rollout.record)), MODEL, error="server down")
    assert (broken.outcome.reason, broken.outcome.error) == (Reason.ERROR, "server down")
    assert verify(aborted) == verify(broken) == []


RULES = [
    {},
    {"ticks_per_turn": 4},
    {"latency_ticks": 3},
    {"realtime": 30.0},
    {"observation": "signed"},
    {"observation": "ascii", "ticks_per_turn": 7},
    {"observation": "image", "realtime": 10.0, "latency_ticks": 2},
]


@pytest.mark.parametrize("rules", RULES, ids=str)
@given(
    seed=st.integers(0, 50),
    replies=st.lists(st.tuples(st.sampled_from(["[TAP]", "[]", "[TAP, NOOP]", "what?"]), st.integers(0, 9)), max_size=60),
)
def test_a_replay_gives_each_observation_to_the_byte_and_each_action_flown(rules, seed, replies):
    rollout = Rollout(FlappyConfig(), seed, Rules(**rules))
    shown, flown = [], []
    for reply, waited in replies:
        if rollout.outcome is None:
            shown.append(rollout.message())
            rollout.take(f"<ACTIONS>{reply}</ACTIONS>", waited=waited if rollout.rules.realtime else 0)
            flown += rollout.flown
    episode = finish(rollout, MODEL)
    replayed = replay(from_dict(episode.to_dict()))
    assert list(observations(episode, replayed)) == shown
    assert replayed.taps == flown
    assert replayed.used == len(shown)
    assert verify(episode, replayed) == verify(episode) == []
    again = FlappyGame(FlappyConfig(), seed)
    for tap, state in zip(replayed.taps, replayed.states[1:], strict=True):
        again.step(tap)
        assert again.state == state
    assert replayed.pipes_passed == again.score == episode.outcome.pipes_passed


def test_a_reply_is_read_once_however_often_its_episode_is_scored_checked_and_shown(monkeypatch):
    read = []
    monkeypatch.setattr(rollouts, "read_reply", lambda *said, **known: read.append(said) or read_reply(*said, **known))
    monkeypatch.setattr(episodes, "read_reply", lambda *said, **known: read.append(said) or read_reply(*said, **known))
    episode = play("planner", 7, max_turns=20)
    for _ in range(2):
        assert verify(episode) == []
        assert rewards.format_score(episode) == 1.0
        assert len([turn.thought for turn in episode.turns if turn.thought]) == 20
    assert len(read) == 20
    loaded = from_dict(episode.to_dict())
    for _ in range(2):
        assert verify(loaded) == []
        assert rewards.reward(loaded) == rewards.reward(episode)
    assert len(read) == 40
    assert loaded == episode


CHANGES = [
    (lambda d: d["turns"][40].update(reply="<THINK>x</THINK><ACTIONS>[TAP]</ACTIONS>"), "turns[40].actions", 40),
    (lambda d: d["turns"][40].update(actions=["TAP"]), "turns[40].actions", 40),
    (lambda d: d["turns"][40].update(status="malformed"), "turns[40].status", 40),
    (lambda d: d["turns"][40].update(tick=41), "turns[40].tick", 40),
    (lambda d: d["turns"].pop(), "outcome.reason", 299),
    (lambda d: d["turns"].append(d["turns"][-1]), "turns[300]", 300),
    (lambda d: d.update(seed=8), "turns[", None),
    (lambda d: d["config"].update(gravity=-0.29), "", None),
    (lambda d: d["outcome"].update(reward=100.0), "outcome.reward", 300),
    (lambda d: d["outcome"].update(pipes_passed=9), "outcome.pipes_passed", 300),
    (lambda d: d["outcome"].update(format=0.9), "outcome.format", 300),
    (lambda d: d["outcome"].update(survival_score=404.3), "outcome.survival_score", 300),
    (lambda d: d["outcome"].update(reason="floor"), "outcome.reason", 300),
    (lambda d: d["rules"].update(max_turns=299), "turns[299]", 299),
]


@pytest.mark.parametrize(("change", "where", "tick"), CHANGES)
def test_whatever_is_changed_in_an_episode_is_found_and_named_by_tick(change, where, tick):
    data = play("planner", 7).to_dict()
    change(data)
    found = verify(from_dict(data))
    assert found
    if tick is not None:
        assert any(difference.where.startswith(where) and difference.tick == tick for difference in found), found
        assert "replay gives" in str(found[0])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d.clear(), "format is None"),
        (lambda d: d.update(format="chess"), "format is 'chess'"),
        (lambda d: d.update(version=2), "version is 2, this release reads 1"),
        (lambda d: d.update(physics=2), "physics is 2"),
        (lambda d: d.update(seed=-1), "seed = -1"),
        (lambda d: d.update(seed="1"), "seed = '1'"),
        (lambda d: d.update(surprise=1), "surprise"),
        (lambda d: d["config"].update(gravty=1), "gravty"),
        (lambda d: d["config"].update(gravity="x"), "gravity"),
        (lambda d: d["rules"].update(max_turns=0), "max_turns"),
        (lambda d: d["turns"][3].update(actions=["FLAP"]), "turns.3.actions"),
        (lambda d: d["turns"][3].update(actions=[]), "the turn at tick 3 has 0 actions, must have 1"),
        (lambda d: d["turns"][3].update(status="fine"), "turns.3.status"),
        (lambda d: d["turns"][3].update(reply=7), "turns.3.reply"),
        (lambda d: d["turns"][3].pop("tick"), "turns.3.tick"),
        (lambda d: d["outcome"].pop("reward"), "outcome.reward"),
        (lambda d: d["outcome"].update(reason="boredom"), "outcome.reason"),
        (lambda d: d.pop("turns"), "turns"),
        (lambda d: d.update(turns={}), "turns"),
    ],
)
def test_a_damaged_or_newer_episode_is_refused_in_one_line(tmp_path, change, said):
    data = play("noop").to_dict()
    change(data)
    (tmp_path / "bad.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(EpisodeError) as caught:
        load(tmp_path / "bad.json")
    assert said in str(caught.value)
    assert "bad.json" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"format": NaN}', "NaN is not a JSON number"),
        (b"[]", "no JSON object"),
    ],
)
def test_a_file_that_is_no_episode_is_refused_in_one_line(tmp_path, content, said):
    (tmp_path / "bad.json").write_bytes(content)
    with pytest.raises(EpisodeError, match=said) as caught:
        load(tmp_path / "bad.json")
    assert "\n" not in str(caught.value)


def test_a_missing_or_huge_file_is_refused(tmp_path, monkeypatch):
    with pytest.raises(EpisodeError, match="No such file"):
        load(tmp_path / "none.json")
    monkeypatch.setattr(episodes, "MAX_BYTES", 1_000)
    save(play("noop"), tmp_path / "large.json")
    with pytest.raises(EpisodeError, match="larger than 0.001 MB"):
        load(tmp_path / "large.json")


def test_a_file_that_cannot_be_written_leaves_the_old_one_as_it_was(tmp_path, monkeypatch):
    target = tmp_path / "episode.json"
    save(play("noop"), target)
    before = target.read_bytes()
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save(play("planner"), target)
    assert target.read_bytes() == before
    assert list(tmp_path.iterdir()) == [target]
