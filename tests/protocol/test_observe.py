"""What a model reads, of each kind."""

from __future__ import annotations

import itertools

import pytest

from flappybird.episodes.episode import replay
from flappybird.episodes.rollout import Rollout
from flappybird.players.policies import make_policy
from flappybird.protocol import observe
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Physics
from flappybird.world.observation import read_observation
from flappybird.world.units import from_text
from tests.conftest import play


def test_a_trail_tells_taps_from_the_velocities_alone():
    for policy, seed in itertools.product(("random", "planner"), range(3)):
        episode = play(policy, seed, ticks_per_turn=5, max_turns=100)
        states = replay(episode).states
        listed = observe.trail(states, Physics.of(episode.config))
        taps = [tick.split(",")[1] for tick in listed[len("trail:[(") : -2].split("),(")]
        asked = ["TAP" if tap else "NOOP" for turn in episode.turns for tap in turn.taps]
        assert taps == asked[: len(taps)]


@pytest.mark.parametrize("view", ["card", "signed", "text+image"])
@pytest.mark.parametrize("ticks", [1, 4])
def test_every_text_with_numbers_is_read_back_exactly(view, ticks):
    rollout = Rollout(FlappyConfig(), 3, Rules(observation=view, ticks_per_turn=ticks, max_turns=120))
    decide = make_policy("planner", FlappyConfig())
    while rollout.outcome is None:
        assert read_observation(rollout.message()) == rollout.observation()
        rollout.fly([decide(rollout.observation()).tap] + [False] * (ticks - 1))


def edges(text: str) -> dict[str, int]:
    listed = next(line for line in text.splitlines() if line.startswith("nextGap:"))
    pairs = [pair.split(":") for pair in listed[len("nextGap:[") : -1].split(",") if pair]
    return {name: from_text(value.removeprefix("+")) for name, value in pairs}


def test_signed_distances_tell_a_crash_from_a_flight():
    seen, inside = 0, 0
    for seed in range(4):
        rollout = Rollout(FlappyConfig(), seed, Rules(observation="signed", max_turns=160))
        decide = make_policy("heuristic", FlappyConfig())
        physics = Physics.of(FlappyConfig())
        while rollout.outcome is None:
            found = edges(rollout.message())
            ahead = [pipe for pipe in rollout.game.course.visible(rollout.game.tick) if pipe.number >= rollout.game.score]
            assert bool(found) == bool(ahead)
            if ahead:
                seen += 1
                touches = abs(ahead[0].x - physics.bird_x) * 2 < physics.width + 2 * physics.radius
                assert touches == (found["left"] < 0 < found["right"])
                if touches:
                    inside += 1
                    assert found["bottom"] <= 0 <= found["top"]
            rollout.fly([decide(rollout.observation()).tap])
    assert seen > inside > 50


def test_a_map_shows_bird_pipes_and_air_where_they_are():
    rollout = Rollout(FlappyConfig(), 7, Rules(observation="ascii", ticks_per_turn=10))
    for _ in range(7):
        taps = [rollout.game.y < 0] + [False] * 9
        rollout.fly(taps)
        if rollout.outcome:
            break
    text = rollout.message()
    rows = [line for line in text.splitlines() if set(line) <= set(".#@")]
    assert len(rows) == 20
    assert {len(row) for row in rows} == {24}
    assert sum(row.count("@") for row in rows) == 1
    for pipe in rollout.game.course.visible(rollout.game.tick):
        column = min(max(pipe.x // 10_000, 0), 23)
        for row, line in enumerate(rows):
            y = 10 * 10_000 - row * 10_000 - 5_000
            solid = abs(y - pipe.gap_y) * 2 > pipe.gap_height
            if abs(column * 10_000 + 5_000 - pipe.x) <= 10_000 and line[column] != "@":
                assert (line[column] == "#") == solid


def test_a_map_of_a_large_world_stays_small():
    config = FlappyConfig(world_w=900.0, world_h=900.0, pipe_speed=2.0)
    rollout = Rollout(config, 0, Rules(observation="ascii"))
    rows = [line for line in rollout.message().splitlines() if set(line) <= set(".#@")]
    assert (len(rows[0]), len(rows)) == observe.LARGEST_MAP
