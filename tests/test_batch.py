import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flappybird.batch import FEATURES, FlappyBatch
from flappybird.errors import ConfigError, GameOver
from flappybird.world.config import FlappyConfig
from flappybird.world.course import MAX_SEED, Course
from flappybird.world.game import FlappyGame, Reason
from tests.worlds import worlds

GOLDEN = json.loads((Path(__file__).parent / "golden" / "trajectories.json").read_text())


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda golden: golden["name"])
def test_golden_trajectories_are_flown_by_both_engines_to_the_last_unit(golden):
    config, seed = FlappyConfig(**golden["config"]), golden["seed"]
    game, batch = FlappyGame(config, seed, max_ticks=150), FlappyBatch(config, [seed], max_ticks=150)
    single, many = [game.state], [batch.state(0)]
    for tap in golden["taps"]:
        game.step(tap == "1")
        batch.step(np.array([tap == "1"]))
        single.append(game.state)
        many.append(batch.state(0))
    states = [(tick, *state) for tick, state in enumerate(golden["states"])]
    assert single == many == states
    assert game.outcome == batch.outcome(0)
    assert (game.outcome.reason, game.outcome.pipe) == (golden["reason"], golden["pipe"])
    assert game.score == batch.scores[0] == golden["score"]
    assert [list(game.course.gap(number)) for number in range(10)] == golden["gaps"]


def _pilot(game: FlappyGame, noise: bool) -> bool:
    """Keeps near the middle of the world, so that games last, but for some noise."""
    return (game.velocity < 0 and game.y < 0) != noise


@given(
    worlds(),
    st.lists(st.integers(0, MAX_SEED), min_size=1, max_size=5),
    st.sampled_from([None, 1, 7, 40]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
@settings(max_examples=80)
def test_every_game_of_a_batch_is_the_single_game_of_its_seed(config, seeds, limit, autoreset, dice):
    batch = FlappyBatch(config, seeds, max_ticks=limit, autoreset=autoreset)
    games = [FlappyGame(config, seed, max_ticks=limit) for seed in seeds]
    for _ in range(120):
        taps = np.array([_pilot(game, dice.random() < 0.05) for game in games])
        if not autoreset and all(game.outcome for game in games):
            break
        scores = [game.score for game in games]
        terminated, truncated = batch.step(taps)
        for index, game in enumerate(games):
            if game.outcome is None:
                game.step(bool(taps[index]))
                assert batch.scored[index] == (game.score > scores[index])
            elif autoreset:
                game = games[index] = FlappyGame(config, (game.seed + len(seeds)) % (MAX_SEED + 1), max_ticks=limit)
            assert batch.seeds[index] == game.seed
            assert batch.state(index) == game.state
            assert batch.outcome(index) == game.outcome
            assert (terminated[index], truncated[index]) == (game.terminated, game.truncated)
            assert batch.scores[index] == game.score
            assert batch.observation(index) == game.observation()


@given(worlds(), st.integers(0, 1000), st.integers(0, 100))
@settings(max_examples=60)
def test_what_is_observed_as_numbers_is_what_the_text_says(config, seed, ticks):
    game, batch = FlappyGame(config, seed), FlappyBatch(config, [seed])
    for _ in range(ticks):
        tap = _pilot(game, False)
        batch.step(np.array([tap]))
        if game.step(tap):
            return
    seen, numbers = game.observation(), dict(zip(FEATURES, batch.observe()[0], strict=True))
    physics = game.course.physics
    next_one = game.score
    shown = [pipe for pipe in game.course.visible(game.tick) if pipe.number >= next_one]
    expected = {"birdY": seen.y, "velY": seen.velocity}
    for place in (1, 2):
        pipe = shown[place - 1] if len(shown) >= place else None
        expected[f"x{place}"] = (pipe.x if pipe else physics.world_w) - physics.bird_x
        expected[f"gapY{place}"] = pipe.gap_y if pipe else 0
        expected[f"gapHeight{place}"] = game.course.gap(next_one + place - 1).height
    assert numbers == {name: np.float32(value / 10_000) for name, value in expected.items()}


def test_an_ended_game_stands_still_while_the_others_go_on():
    batch = FlappyBatch(seeds=[1, 2])
    for tick in range(1, 10):
        terminated, _ = batch.step(np.array([False, tick % 5 == 1]))
        if tick >= 8:
            assert terminated.tolist() == [True, False]
            assert batch.outcome(0).tick == 8
    assert batch.ticks.tolist() == [8, 9]
    assert batch.seeds.tolist() == [1, 2]


def test_stepping_on_when_all_have_ended_says_so():
    batch = FlappyBatch(seeds=range(3), max_ticks=1)
    assert batch.step(np.zeros(3, bool))[1].all()
    with pytest.raises(GameOver, match="all 3 games have ended; reset them to play on"):
        batch.step(np.zeros(3, bool))


def test_single_games_can_be_reset_by_mask_or_number_with_a_seed_of_choice():
    batch = FlappyBatch(seeds=[10, 11, 12], max_ticks=2)
    batch.step(np.zeros(3, bool))
    batch.reset([1], seeds=[99])
    assert (batch.ticks.tolist(), batch.seeds.tolist()) == ([1, 0, 1], [10, 99, 12])
    batch.step(np.zeros(3, bool))
    assert batch.truncated.tolist() == [True, False, True]
    batch.reset(batch.truncated)
    assert (batch.ticks.tolist(), batch.seeds.tolist()) == ([0, 1, 0], [13, 99, 15])
    assert not batch.truncated.any()
    batch.reset()
    assert batch.ticks.tolist() == [0, 0, 0]


def test_what_a_step_returned_does_not_change_with_the_next_one():
    batch = FlappyBatch(seeds=range(4), max_ticks=3, autoreset=True)
    kept = []
    for _ in range(8):
        _, truncated = batch.step(np.zeros(4, bool))
        kept.append((truncated, truncated.copy(), batch.observe(), batch.ticks))
    assert all((now == then).all() for now, then, _, _ in kept)
    assert [ticks[0] for *_, ticks in kept] == [1, 2, 3, 0, 1, 2, 3, 0]
    assert len({seen.tobytes() for _, _, seen, _ in kept}) == 4


def test_A07_the_course_of_a_game_depends_on_its_seed_alone():
    np.random.seed(1)
    alone = [FlappyBatch(seeds=[seed]).gap_y[0] for seed in range(8)]
    np.random.seed(2)
    assert FlappyBatch(seeds=range(8)).gap_y.tolist() == alone
    assert alone == [Course(FlappyConfig(), seed).gap(0).y for seed in range(8)]


def test_a_long_game_does_not_drift():
    # A flap whenever the bird would sink below -2: it bounces between two pipes' edges for ever in a world this open.
    config = FlappyConfig(easy_gap_height=16.0, base_gap_height=16.0, gap_center_offset=0.0)
    batch, game = FlappyBatch(config, [7]), FlappyGame(config, 7)
    for _ in range(20_000):
        tap = game.y + game.velocity - 0.3 < -2
        game.step(tap)
        batch.step(np.array([tap]))
    assert game.outcome is None
    assert batch.state(0) == game.state
    assert batch.scores[0] == game.score == 1 + (20_000 - 81) // 30


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": [1, -1]}, "seed = -1: must be a whole number from 0"),
        ({"seeds": [0.5]}, "seed = 0.5: must be"),
        ({"seeds": np.array([2**53])}, f"seed = {2**53}: must be"),
        ({"seeds": 5}, "seeds = 5: must be a list of whole numbers, one per game"),
        ({"max_ticks": 0}, "max_ticks = 0: must be"),
    ],
)
def test_arguments_that_make_no_batch_are_refused_by_name(arguments, message):
    with pytest.raises(ConfigError, match=message):
        FlappyBatch(**arguments)


def test_actions_of_another_shape_or_type_are_refused():
    batch = FlappyBatch(seeds=range(3))
    with pytest.raises(ConfigError, match=r"taps: bool of shape \(2,\); must be bool, or 0 and 1, of shape \(3,\)"):
        batch.step(np.zeros(2, bool))
    with pytest.raises(ConfigError, match="taps: float64"):
        batch.step(np.zeros(3))
    batch.step(np.array([0, 1, 0]))
    assert batch.velocity.tolist() == [-3000, 16000, -3000]
    assert batch.outcome(0) is None
    assert Reason.FLOOR not in [batch.outcome(game) for game in range(3)]
