import copy
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flappybird import kernel
from flappybird.batch import FEATURES, FlappyBatch, Pay
from flappybird.errors import ConfigError, GameOver
from flappybird.players.policies import make_policy
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course
from flappybird.world.game import FlappyGame, Reason
from flappybird.world.levels import LEVELS, level
from flappybird.world.seeds import EVALUATION_SEEDS, MAX_SEED, SEED_RANGES
from tests.conftest import ROOT
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


def _following(seed: int, by: int) -> int:
    seeds = next(seeds for seeds in SEED_RANGES if seed in seeds)
    return seeds[(seed - seeds.start + by) % (seeds.stop - seeds.start)]


def _through(game: FlappyGame) -> bool:
    """Passes a pipe or two, and hits one in the end."""
    return 10_000 * (game.y + game.velocity) < game.course.gap(game.score).y - 22_000


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
@example(FlappyConfig(), [0, MAX_SEED, EVALUATION_SEEDS[-1]], 7, True, random.Random(1))
def test_every_game_of_a_batch_is_the_single_game_of_its_seed(config, seeds, limit, autoreset, dice):
    batch = FlappyBatch(config, seeds, max_ticks=limit, autoreset=autoreset)
    games = [FlappyGame(config, seed, max_ticks=limit) for seed in seeds]
    for _ in range(120):
        if dice.random() < 0.03:  # some begin anew, whether they have ended or not
            chosen = [index for index in range(len(games)) if dice.random() < 0.5]
            fresh = [dice.randint(0, MAX_SEED) for _ in chosen]
            batch.reset(np.isin(np.arange(len(games)), chosen) if dice.random() < 0.5 else chosen, fresh)
            for index, seed in zip(chosen, fresh, strict=True):
                games[index] = FlappyGame(config, seed, max_ticks=limit)
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
                game = games[index] = FlappyGame(config, _following(game.seed, len(seeds)), max_ticks=limit)
            assert batch.seeds[index] == game.seed
            gap = game.course.gap(game.score)
            assert (batch.gap_y[index], batch.gap_height[index]) == (gap.y, gap.height)
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
    config = FlappyConfig(easy_gap_height=14.0, base_gap_height=14.0, gap_center_offset=1.0)
    batch, game = FlappyBatch(config, [7]), FlappyGame(config, 7)
    for _ in range(20_000):
        tap = game.y + game.velocity - 0.3 < -2
        game.step(tap)
        batch.step(np.array([tap]))
        assert batch.gap_y[0] == game.course.gap(game.score).y
    assert game.outcome is None
    assert batch.state(0) == game.state
    assert batch.scores[0] == game.score == 1 + (20_000 - 81) // 30


@pytest.mark.parametrize("name", LEVELS)
def test_all_levels_are_flown_alike_to_the_tick_limit(name):
    config, seeds = level(name), range(8)
    policies = [make_policy(policy, config) for policy in ["planner", "heuristic"] * 4]
    batch = FlappyBatch(config, seeds, max_ticks=300)
    games = [FlappyGame(config, seed, max_ticks=300) for seed in seeds]
    while any(game.outcome is None for game in games):
        taps = [policy(game.observation()).tap for policy, game in zip(policies, games, strict=True)]
        batch.step(np.array(taps))
        for game, tap in zip(games, taps, strict=True):
            if game.outcome is None:
                game.step(tap)
        assert [batch.state(index) for index in seeds] == [game.state for game in games]
        assert batch.scores.tolist() == [game.score for game in games]
    assert [batch.outcome(index) for index in seeds] == [game.outcome for game in games]
    assert max(game.score for game in games) == 8


def test_a_truncated_game_stays_truncated_while_others_are_reset_and_fly_on():
    batch = FlappyBatch(seeds=[1, 2], max_ticks=2)
    batch.step(np.ones(2, bool))
    batch.reset([1])
    batch.step(np.ones(2, bool))
    ended = batch.state(0)
    for _ in range(2):
        assert batch.truncated.tolist()[0]
        assert batch.outcome(0) == (Reason.TICK_LIMIT, 2, None)
        batch.reset([1])
        batch.step(np.ones(2, bool))
        assert batch.state(0) == ended
        assert batch.rewards.tolist() == [0.0, 0.0]


def test_rewards_are_paid_for_ticks_and_pipes_and_for_no_crash():
    pay = Pay((1.0, 2.0, 3.0), pipe=100.0)
    game, batch = FlappyGame(seed=5), FlappyBatch(seeds=[5], pay=pay)
    while game.outcome is None:
        scored = game.score
        tap = _through(game)
        game.step(tap)
        batch.step(np.array([tap]))
        assert batch.rewards[0] == (0 if game.terminated else min(game.tick, 3) + 100 * (game.score - scored))
    assert game.score > 0


@pytest.mark.parametrize("taps", [[0, 2, 0], [0, -1, 0], [0, 7, 1]])
def test_taps_that_are_neither_0_nor_1_are_refused_and_nothing_moves(taps):
    batch = FlappyBatch(seeds=range(3))
    with pytest.raises(ConfigError, match=rf"taps\[1\] = {taps[1]}: must be 0 \(nothing\) or 1 \(flap\)"):
        batch.step(np.array(taps))
    assert batch.ticks.tolist() == [0, 0, 0]
    batch.step(np.array([0, 1, 0]))
    assert batch.ticks.tolist() == [1, 1, 1]


@pytest.mark.parametrize("games", [[3], [-4], [0.5], np.ones(2, bool), "all", [[0]], {1}])
def test_games_that_are_not_there_cannot_be_reset(games):
    batch = FlappyBatch(seeds=range(3))
    with pytest.raises(ConfigError, match="must be a mask of 3 games, or some of their numbers"):
        batch.reset(games)
    batch.reset([-1], [9])
    batch.reset([])
    assert batch.seeds.tolist() == [0, 1, 9]


def test_a_function_chooses_the_courses_on_which_games_begin_anew():
    asked = []

    def choose(seeds):
        asked.append(seeds.tolist())
        return seeds * 10

    batch = FlappyBatch(seeds=[3, 4], max_ticks=2, autoreset=choose)
    for _ in range(3):
        batch.step(np.zeros(2, bool))
    assert (asked, batch.seeds.tolist()) == ([[3, 4]], [30, 40])
    batch.autoreset = lambda seeds: [-1, 0]
    batch.step(np.zeros(2, bool))
    batch.step(np.zeros(2, bool))
    with pytest.raises(ConfigError, match="seed = -1"):
        batch.step(np.zeros(2, bool))
    batch.autoreset = lambda seeds: [0]
    with pytest.raises(ConfigError, match="autoreset: 1 seeds given for 2 games"):
        batch.step(np.zeros(2, bool))


def test_seeds_wrap_within_their_range():
    for seeds in SEED_RANGES:
        batch = FlappyBatch(seeds=seeds[-2:], max_ticks=1, autoreset=True)
        for _ in range(3):
            batch.step(np.zeros(2, bool))
        assert batch.seeds.tolist() == [seeds[0], seeds[1]]
        batch.reset()
        assert batch.seeds.tolist() == [seeds[2], seeds[3]]


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda batch: pickle.loads(pickle.dumps(batch))])
def test_a_copy_of_a_batch_flies_on_by_itself(duplicate):
    batch = FlappyBatch(seeds=range(4), max_ticks=5, autoreset=True)
    batch.step(np.array([1, 0, 1, 0]))
    twin = duplicate(batch)
    for _ in range(9):
        batch.step(np.zeros(4, bool))
    assert twin.ticks.tolist() == [1, 1, 1, 1]
    for _ in range(9):
        twin.step(np.zeros(4, bool))
    assert (twin.observe() == batch.observe()).all()
    assert (twin.y == batch.y).all()


# --- compiling ----------------------------------------------------------------------------------------------------


def test_no_kind_of_actions_has_the_loop_compiled_again():
    batch = FlappyBatch(seeds=range(4))
    batch.step(np.zeros(4, bool))
    compiled = list(kernel.compiled().step.signatures)
    fixed = np.zeros(4, np.int64)
    fixed.flags.writeable = False  # as JAX hands them over
    for taps in (
        np.zeros(8, np.int64)[::2],
        fixed,
        np.zeros(4, np.uint8),
        np.zeros(4, np.int32),
        [0, 1, 0, 1],
        np.zeros((2, 4), bool)[1],
    ):
        batch.step(taps)
    assert kernel.compiled().step.signatures == compiled


def _blocked(folder: Path) -> Path:
    """A path below which nothing can be made, not even by root."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "file"
    file.touch()
    return file / "below"


def test_machine_code_goes_to_the_first_folder_that_can_be_written(tmp_path, monkeypatch):
    package, home, temporary = tmp_path / "package", tmp_path / "home", tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr(kernel, "__file__", str(package / "kernel.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert kernel.cache_folder(str(tmp_path / "users")).parent == tmp_path / "users"
    assert kernel.cache_folder(str(_blocked(tmp_path))).parent == package / "__pycache__"
    monkeypatch.setattr(kernel, "__file__", str(_blocked(tmp_path) / "kernel.py"))
    assert kernel.cache_folder().parent == home
    monkeypatch.setenv("XDG_CACHE_HOME", str(_blocked(tmp_path)))
    private = kernel.cache_folder().parent
    assert private.parent == temporary
    # What lies there is run, so nobody else may have put it there.
    assert private.stat().st_mode & 0o777 == 0o700
    private.chmod(0o777)
    assert kernel.cache_folder() is None
    shutil.rmtree(private)
    (temporary / "elsewhere").mkdir()
    private.symlink_to(temporary / "elsewhere")
    assert kernel.cache_folder() is None


def test_the_folder_is_another_one_once_any_of_the_rules_is_edited(tmp_path, monkeypatch):
    copies = [Path(shutil.copy(source, tmp_path)) for source in kernel._SOURCES]
    assert {"kernel.py", "course.py", "game.py", "units.py"} == {file.name for file in copies}
    monkeypatch.setattr(kernel, "_SOURCES", [str(file) for file in copies])
    folders = {kernel.cache_folder(str(tmp_path))}
    for file in copies:
        file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")
        folders.add(kernel.cache_folder(str(tmp_path)))
    assert len(folders) == 5
    copies[0].unlink()
    assert kernel.cache_folder(str(tmp_path)) is None


SCRIPT = """
import numpy as np
from flappybird import batch, kernel
from flappybird.world import game
many, one = batch.FlappyBatch(seeds=[3]), game.FlappyGame(seed=3)
many.step(np.array([True])), one.step(True)
assert many.state(0) == one.state, (many.state(0), one.state)
assert many.gap_y[0] == one.course.gap(0).y, (many.gap_y[0], one.course.gap(0))
print(one.state.y, one.course.gap(0).y, sum(kernel.compiled().step.stats.cache_hits.values()))
"""


def test_an_edited_rule_is_compiled_anew_also_where_only_the_temporary_folder_can_be_written(tmp_path):
    package, temporary = tmp_path / "installed" / "flappybird", tmp_path / "tmp"
    temporary.mkdir()
    shutil.copytree(ROOT / "flappybird", package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__pycache__").touch()
    nowhere = str(_blocked(tmp_path))
    env = {**os.environ, "PYTHONPATH": str(package.parent), "HOME": nowhere, "XDG_CACHE_HOME": nowhere, "TMPDIR": str(temporary)}
    env |= {"NUMBA_CACHE_DIR": "", "NUMBA_OPT": "0"}

    def run() -> list[int]:
        done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return [int(word) for word in done.stdout.split()]

    y, gap, hits = run()
    assert hits == 0
    assert run() == [y, gap, 1]
    for name, rule, other in (
        ("game.py", "return y + velocity, velocity", "return y + velocity + 7, velocity"),
        ("course.py", "(drawn - self.gap_choices // 2)", "(1 + drawn - self.gap_choices // 2)"),
    ):
        source = (package / "world" / name).read_text(encoding="utf-8")
        assert source.count(rule) == 1
        (package / "world" / name).write_text(source.replace(rule, other), encoding="utf-8")
    assert run() == [y + 7, gap + 100, 0]


def test_numba_is_loaded_when_a_batch_is_made_and_its_absence_says_what_to_install():
    code = (
        "import sys, flappybird.batch as batch\n"
        "assert 'numba' not in sys.modules\n"
        "sys.modules['numba'] = None\n"
        "try: batch.FlappyBatch()\n"
        "except ImportError as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.startswith("MissingPart many games at once need numba; the extra [gymnasium] brings it: ")
    assert done.stdout.count("\n") == 1


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


def test_a_batch_begins_in_the_states_it_is_given():
    dice, config = random.Random(1), level("easy")
    games = [FlappyGame(config, seed, max_ticks=200) for seed in range(40)]
    for game in games:
        for _ in range(dice.randrange(120)):
            if game.outcome is None and game.step(_pilot(game, False)) is not None:
                break
    games = [FlappyGame(config, game.seed, max_ticks=200, state=game.state) for game in games if game.outcome is None]
    assert any(game.score for game in games)
    batch = FlappyBatch(config, [game.seed for game in games], max_ticks=200, states=[game.state for game in games])
    for _ in range(30):
        assert [batch.state(index) for index in range(len(games))] == [game.state for game in games]
        assert batch.scores.tolist() == [game.score for game in games]
        taps = np.array([_pilot(game, False) for game in games])
        batch.step(taps)
        for game, tap in zip(games, taps, strict=True):
            if game.outcome is None:
                game.step(bool(tap))
    with pytest.raises(ConfigError, match="states: 1 given for 2 games"):
        FlappyBatch(config, [0, 1], states=[games[0].state])
