import copy
import pickle
import subprocess
import sys
import warnings
from importlib.util import find_spec

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RecordEpisodeStatistics
from gymnasium.wrappers.vector import RecordEpisodeStatistics as RecordVectorStatistics
from hypothesis import given, settings
from hypothesis import strategies as st

from flappybird.episodes.rewards import WEIGHTS, survival
from flappybird.errors import ConfigError, GameOver, MissingPart
from flappybird.gymnasium_env import ENV_ID, FlappyBirdEnv, FlappyBirdVectorEnv
from flappybird.players.games import play
from flappybird.world.config import FlappyConfig
from flappybird.world.game import State
from flappybird.world.levels import LEVELS, level
from flappybird.world.seeds import EVALUATION_SEEDS, GYMNASIUM_SEEDS, SEED_RANGES
from tests.worlds import worlds

PICTURES = find_spec("render.scene") is not None
needs_pictures = pytest.mark.skipif(not PICTURES, reason="render.scene is not there")


@pytest.mark.parametrize("name", LEVELS)
def test_gymnasiums_checker_passes_every_level_without_a_warning(name, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")  # it opens windows, too
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(ENV_ID, difficulty=name).unwrapped, skip_render_check=not PICTURES)


@given(worlds(), st.integers(0, 1000), st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_single_and_vector_environments_give_the_same_numbers(config, seed, dice):
    single, many = FlappyBirdEnv(config=config, max_turns=60), FlappyBirdVectorEnv(3, config=config, max_turns=60)
    (seen, info), (all_seen, infos) = single.reset(seed=seed), many.reset(seed=seed)
    score = 0.0
    while True:
        assert seen.dtype == all_seen.dtype == np.float32
        assert (seen == all_seen[0]).all()
        assert seen in single.observation_space
        assert all_seen in many.observation_space
        assert (info["seed"], info["tick"], info["score"]) == tuple(int(infos[name][0]) for name in ("seed", "tick", "score"))
        action = int((seen[1] < 0 and seen[0] < 0) != (dice.random() < 0.05))
        seen, reward, terminated, truncated, info = single.step(action)
        all_seen, rewards, crashed, cut, infos = many.step(np.array([action, 0, 1]))
        assert (reward, terminated, truncated) == (rewards[0], crashed[0], cut[0])
        score += reward
        if terminated or truncated:
            break
    assert (seen == all_seen[0]).all()
    assert seen in single.observation_space
    expected = WEIGHTS["pipes_passed"] * info["score"] + WEIGHTS["survival_score"] * survival(info["tick"] - terminated)
    assert score == pytest.approx(expected)


def test_the_last_info_says_how_the_game_ended():
    env = gymnasium.make(ENV_ID)
    env.reset(seed=0)
    for _ in range(8):
        _, reward, terminated, truncated, info = env.step(0)
    assert (terminated, truncated, reward) == (True, False, 0.0)
    assert info == {"seed": 0, "tick": 8, "score": 0, "reason": "floor"}
    with pytest.raises(GameOver):
        env.step(0)


def test_the_tick_limit_truncates_and_does_not_terminate():
    env = gymnasium.make(ENV_ID, max_turns=3)
    env.reset(seed=0)
    ends = [env.step(1 if tick == 0 else 0)[2:4] for tick in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]


def test_A07_a_seed_is_the_course_and_without_one_courses_come_from_gymnasiums_range():
    env = gymnasium.make(ENV_ID)
    assert env.reset(seed=12)[1]["seed"] == 12
    first = [env.reset()[1]["seed"] for _ in range(3)]
    np.random.seed(1)
    env.reset(seed=12)
    assert [env.reset()[1]["seed"] for _ in range(3)] == first
    assert all(seed in GYMNASIUM_SEEDS for seed in first)
    assert len(set(first)) == 3


def test_games_of_a_vector_begin_anew_in_the_step_after_their_end_on_training_courses():
    envs = gymnasium.make_vec(ENV_ID, num_envs=2, max_turns=4)
    _, infos = envs.reset(seed=5)
    assert infos["seed"].tolist() == [5, 6]
    ticks, rewards, cuts = [], [], []
    for _ in range(6):
        _, reward, _, truncated, infos = envs.step(np.array([0, 0]))
        ticks.append(int(infos["tick"][0]))
        rewards.append(reward[0] > 0)
        cuts.append(bool(truncated[0]))
    assert ticks == [1, 2, 3, 4, 0, 1]
    assert rewards == [True, True, True, True, False, True]
    assert cuts == [False, False, False, True, False, False]
    assert all(seed in GYMNASIUM_SEEDS for seed in infos["seed"].tolist())
    assert envs.reset(seed=[7, 3])[1]["seed"].tolist() == [7, 3]


def test_a_vector_can_reset_some_of_its_games():
    envs = FlappyBirdVectorEnv(3)
    envs.reset(seed=0)
    envs.step(np.zeros(3, int))
    _, infos = envs.reset(seed=10, options={"reset_mask": np.array([True, False, True])})
    assert infos["seed"].tolist() == [10, 1, 12]
    assert infos["tick"].tolist() == [0, 1, 0]


@pytest.mark.parametrize("mask", [[1, 0, 1], np.array([1, 0, 1]), np.array([1, 0, 1], np.uint8), [True, False, True]])
def test_a_mask_of_0_and_1_is_a_mask(mask):
    envs = gymnasium.make_vec(ENV_ID, num_envs=3)
    envs.reset(seed=0)
    envs.step(np.zeros(3, int))
    _, infos = envs.reset(seed=[7, None, 9], options={"reset_mask": mask})
    assert infos["seed"].tolist() == [7, 1, 9]
    assert infos["tick"].tolist() == [0, 1, 0]


@pytest.mark.parametrize("mask", [[2, 0, 1], [1, 0], [0.5, 0, 1], "all", 1])
def test_what_is_no_mask_is_refused(mask):
    envs = gymnasium.make_vec(ENV_ID, num_envs=3)
    envs.reset(seed=0)
    with pytest.raises(ConfigError, match="reset_mask = .*: must be 3 times true or false, or 1 or 0"):
        envs.reset(options={"reset_mask": mask})


def test_seeds_may_be_numpys_and_none_among_them_is_drawn():
    env, envs = gymnasium.make(ENV_ID), gymnasium.make_vec(ENV_ID, num_envs=3)
    assert env.unwrapped.reset(seed=np.int64(12))[1]["seed"] == 12
    assert envs.reset(seed=np.int64(5))[1]["seed"].tolist() == [5, 6, 7]
    assert envs.reset(seed=np.array([4, 2, 8]))[1]["seed"].tolist() == [4, 2, 8]
    first = envs.reset(seed=[None, np.int64(3), None])[1]["seed"].tolist()
    assert first[1] == 3
    assert {first[0] in GYMNASIUM_SEEDS, first[2] in GYMNASIUM_SEEDS} == {True}
    assert envs.reset(seed=[None, 3, None])[1]["seed"].tolist() == first


@pytest.mark.parametrize(
    ("seed", "message"),
    [
        (-1, "seed = -1: must be a whole number"),
        (True, "seed = True: must be"),
        (1.5, "seed = 1.5: must be"),
        ([1, "2", 3], "seed = '2': must be"),
        ([[1, 2, 3]] * 3, r"seed = \[1, 2, 3\]: must be"),
        ([1, 2], "seed: 2 seeds given for 3 games"),
    ],
)
def test_what_is_no_seed_is_refused(seed, message):
    with pytest.raises(ConfigError, match=message):
        gymnasium.make_vec(ENV_ID, num_envs=3).reset(seed=seed)


def test_the_seeds_of_a_large_vector_stay_in_their_range():
    for seeds in SEED_RANGES:
        envs = gymnasium.make_vec(ENV_ID, num_envs=1000)
        assert envs.reset(seed=seeds[-1000])[1]["seed"].tolist() == list(seeds[-1000:])
        with pytest.raises(ConfigError, match=f"seed = {seeds[-999]}: 1000 games reach past {seeds[-1]}"):
            envs.reset(seed=seeds[-999])


def test_games_that_begin_anew_never_leave_gymnasiums_range():
    envs = gymnasium.make_vec(ENV_ID, num_envs=500, max_turns=1)
    envs.reset(seed=EVALUATION_SEEDS[-500])
    met = set()
    for _ in range(40):
        met |= set(envs.step(np.zeros(500, int))[4]["seed"].tolist())
    met -= set(EVALUATION_SEEDS[-500:])
    assert len(met) == 20 * 500
    assert all(seed in GYMNASIUM_SEEDS for seed in met)


def test_gymnasiums_own_limit_is_one_more_limit():
    for limits in (
        {"max_episode_steps": 3},
        {"max_turns": 3, "max_episode_steps": 5},
        {"max_turns": None, "max_episode_steps": 3},
    ):
        ends = []
        for mode in (None, "sync"):
            envs = gymnasium.make_vec(ENV_ID, num_envs=2, vectorization_mode=mode, **limits)
            envs.reset(seed=1)
            ends.append([envs.step(np.ones(2, int))[3].tolist() for _ in range(3)])
        assert ends[0] == ends[1] == [[False, False], [False, False], [True, True]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": True}, "num_envs = True: must be a whole number from 1 on"),
        ({"num_envs": 0}, "num_envs = 0"),
        ({"max_episode_steps": 0}, "max_episode_steps = 0: must be"),
        ({"observe": "pixels"}, "observe = 'pixels': this vector draws no pictures; vectorization_mode='sync' does"),
        ({"observe": "pixel"}, "observe: 'pixel' is not a kind of observation; did you mean 'pixels'"),
        ({"render_mode": "rgb_array"}, "render_mode = 'rgb_array': this vector draws no pictures"),
        ({"size": (96, 80)}, r"size = \(96, 80\): this vector draws no pictures"),
        ({"difficulty": "hard", "config": {}}, "difficulty = 'hard': config names a world too"),
    ],
)
def test_arguments_that_make_no_vector_are_refused_by_name(arguments, message):
    with pytest.raises(ConfigError, match=message):
        gymnasium.make_vec(ENV_ID, **{"num_envs": 2, **arguments})


@pytest.mark.parametrize("action", [2, -1, 7])
def test_N18_actions_outside_of_the_space_are_refused_alike(action):
    env, envs = gymnasium.make(ENV_ID, disable_env_checker=True), gymnasium.make_vec(ENV_ID, num_envs=2)
    env.reset(seed=0)
    envs.reset(seed=0)
    with pytest.raises(ConfigError, match=rf"action = {action}: must be 0 \(nothing\) or 1 \(flap\)"):
        env.step(action)
    with pytest.raises(ConfigError, match=rf"taps\[1\] = {action}: must be 0 \(nothing\) or 1 \(flap\)"):
        envs.step(np.array([1, action]))
    with pytest.raises(ConfigError, match="action = array"):
        env.step(np.array([0, 1]))
    assert env.step(np.int64(1))[4]["tick"] == 1
    assert envs.step(np.array([1, 0]))[4]["tick"].tolist() == [1, 1]


def test_gymnasiums_statistics_count_the_same():
    game = play("planner", level("hard"), 3, 100)
    env = RecordEpisodeStatistics(gymnasium.make(ENV_ID, difficulty="hard", max_turns=100))
    envs = RecordVectorStatistics(gymnasium.make_vec(ENV_ID, num_envs=2, difficulty="hard", max_turns=100))
    env.reset(seed=3)
    envs.reset(seed=3)
    from flappybird.players.policies import make_policy

    policy = make_policy("planner", level("hard"))
    while True:
        tap = int(policy(env.unwrapped.game.observation()).tap)
        *_, truncated, info = env.step(tap)
        *_, infos = envs.step(np.array([tap, 0]))
        if truncated:
            break
    assert info["episode"]["l"] == infos["episode"]["l"][0] == game.tick == 100
    assert info["episode"]["r"] == pytest.approx(2 * game.score + 0.2 * survival(100), abs=1e-3)
    assert info["episode"]["r"] == pytest.approx(infos["episode"]["r"][0], abs=1e-3)


def test_a_game_can_begin_anywhere():
    env = gymnasium.make(ENV_ID)
    seen, info = env.reset(seed=4, options={"state": State(100, -5000, 4000)})
    assert (seen[0], seen[1], info["tick"], info["score"]) == (-0.5, np.float32(0.4), 100, 1)
    assert seen in env.observation_space


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ((0, 98_000, 0), "state: y = 98000: must be from -97999 to 97999 units at tick 0"),
        ((75, 80_000, 0), "state: y = 80000: .* or it is a crash"),  # in a pipe
        ((0, 0, 10**6), "state: velocity = 1000000: must be from"),
        ((-1, 0, 0), "state: tick = -1: must be from 0 to 299, before the tick limit"),
        ((300, 0, 0), "state: tick = 300: must be from 0 to 299"),
        ((0, 0.5, 0), r"state = \(0, 0.5, 0\): must be a game.State"),
        ((0, 0), r"state = \(0, 0\): must be a game.State"),
        (5, "state = 5: must be a game.State"),
    ],
)
def test_a_state_that_no_bird_can_be_in_is_refused(state, message):
    env = gymnasium.make(ENV_ID)
    with pytest.raises(ConfigError, match=message):
        env.reset(seed=4, options={"state": state})
    with pytest.raises(ConfigError, match="options: 'stat' is not an option of this reset; did you mean 'state'"):
        env.reset(options={"stat": state})
    with pytest.raises(ConfigError, match="options: 'state' is not an option of this reset; allowed: reset_mask"):
        gymnasium.make_vec(ENV_ID, num_envs=2).reset(options={"state": state})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": (0, 0)}, r"size = \(0, 0\): must be width and height in pixels"),
        ({"size": (96, 0)}, r"size = \(96, 0\): must be"),
        ({"size": 96}, "size = 96: must be"),
        ({"size": (True, True)}, r"size = \(True, True\): must be"),
        ({"difficulty": "hard", "config": FlappyConfig()}, "difficulty = 'hard': config names a world too; give one"),
        ({"difficulty": "harder"}, "difficulty: 'harder' is not a level; did you mean 'hard'"),
        ({"config_overrides": {"gravty": -0.2}}, "'gravty' is not a field of FlappyConfig"),
        ({"observe": "words"}, "observe: 'words' is not a kind of observation"),
        ({"render_mode": "ansi"}, "render_mode: 'ansi' is not a render mode"),
        ({"max_turns": 0}, "max_turns = 0"),
    ],
)
def test_arguments_that_make_no_environment_are_refused_by_name(arguments, message):
    with pytest.raises(ConfigError, match=message):
        gymnasium.make(ENV_ID, **arguments)


def test_misuse_is_refused():
    env, envs = FlappyBirdEnv(), FlappyBirdVectorEnv(2)
    for step in (lambda: env.step(0), lambda: envs.step(np.zeros(2, int)), env.render):
        with pytest.raises(gymnasium.error.ResetNeeded):
            step()
    env.reset(seed=0)


def test_overrides_are_laid_over_a_level():
    env = FlappyBirdEnv(difficulty="hard", config_overrides={"gravity": -0.25})
    assert env.config == FlappyConfig(**{**level("hard").model_dump(), "gravity": -0.25})


def test_B01_numbers_need_no_pygame():
    code = (
        "import sys, gymnasium, flappybird.gymnasium_env as door\n"
        "env = gymnasium.make(door.ENV_ID); env.reset(seed=1); env.step(1)\n"
        "print(sorted({'numba', 'pygame', 'verifiers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.skipif(PICTURES, reason="render.scene is there")
def test_without_the_pictures_part_a_picture_is_refused_in_one_line():
    env = FlappyBirdEnv(render_mode="rgb_array")
    env.reset(seed=0)
    with pytest.raises(MissingPart, match=r"pictures of the game need the renderer; the extra \[render\] brings it"):
        env.render()


@needs_pictures
def test_pictures_are_arrays_of_their_own():
    env = gymnasium.make(ENV_ID, render_mode="rgb_array", size=(288, 240))
    env.reset(seed=0)
    before = env.render()
    kept = before.copy()
    env.step(1)
    after = env.render()
    assert (before.shape, before.dtype) == ((240, 288, 3), np.uint8)
    assert after.flags["C_CONTIGUOUS"]
    assert (before == kept).all()
    assert (before != after).any()
    env.close()
    env.close()


@needs_pictures
def test_pictures_can_be_what_is_observed():
    env = FlappyBirdEnv(observe="pixels", size=(96, 80))
    seen, _ = env.reset(seed=0)
    assert seen in env.observation_space
    assert env.step(1)[0].shape == (80, 96, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env, skip_render_check=True)


@needs_pictures
def test_rendering_leaves_the_game_unchanged():
    plain, drawn = FlappyBirdEnv(), FlappyBirdEnv(render_mode="rgb_array", size=(96, 80))
    plain.reset(seed=2)
    drawn.reset(seed=2)
    for tick in range(20):
        drawn.render()
        a, b = plain.step(tick % 7 == 0), drawn.step(tick % 7 == 0)
        assert (a[0] == b[0]).all()
        assert a[1:] == b[1:]
        if a[2]:
            break


DUPLICATES = [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))]


@needs_pictures
@pytest.mark.parametrize("duplicate", DUPLICATES)
@pytest.mark.parametrize("observe", ["numbers", "pixels"])
def test_a_copy_made_after_a_picture_plays_on_and_draws_the_same(duplicate, observe):
    env = gymnasium.make(ENV_ID, render_mode="rgb_array", size=(96, 80), observe=observe)
    env.reset(seed=3)
    env.step(1)
    env.render()
    twin = duplicate(env)
    for action in (0, 1, 0):
        mine, theirs = env.step(action), twin.step(action)
        assert (mine[0] == theirs[0]).all()
        assert mine[1:] == theirs[1:]
        assert (env.render() == twin.render()).all()
    env.close()
    assert twin.step(0)[4]["tick"] == 5
    assert twin.render().any()
    twin.close()


@pytest.mark.parametrize("duplicate", DUPLICATES)
def test_a_copy_of_a_vector_draws_the_same_courses(duplicate):
    envs = gymnasium.make_vec(ENV_ID, num_envs=3, max_turns=2)
    envs.reset(seed=3)
    envs.step(np.zeros(3, int))
    twin = duplicate(envs)
    for _ in range(7):
        mine, theirs = envs.step(np.zeros(3, int)), twin.step(np.zeros(3, int))
        assert (mine[0] == theirs[0]).all()
        assert (mine[4]["seed"] == theirs[4]["seed"]).all()
    assert mine[4]["seed"].min() >= GYMNASIUM_SEEDS[0]
