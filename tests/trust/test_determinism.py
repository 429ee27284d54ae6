"""The same games everywhere: on every Python, under every hash seed, interleaved, in every engine.

`tests/golden/digests.json` holds the hashes. What changes them changes what was published: to renew them on purpose,
`python -m tests.trust.trajectories > tests/golden/digests.json`.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from flappybird.episode import from_dict, replay
from flappybird.game import FlappyGame
from flappybird.rollout import Rollout
from tests.conftest import ROOT, play
from tests.trust import trajectories

GOLDEN = json.loads((ROOT / "tests" / "golden" / "digests.json").read_text(encoding="utf-8"))
VERSIONS = ("3.11", "3.12", "3.13")


def test_A07_golden_trajectories_are_flown_to_the_last_byte():
    random.seed(1)
    assert trajectories.digests() == GOLDEN
    assert len(set(GOLDEN.values())) == len(GOLDEN) == 4 * 2 * 4 * 3


def test_A07_games_that_take_turns_do_not_know_of_each_other():
    random.seed(2)
    assert trajectories.digests(interleaved=True) == GOLDEN


def _asked(command: list[str], hash_seed: str) -> dict[str, str]:
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*command, "-m", "tests.trust.trajectories"], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        raise OSError(done.stderr[-500:])
    return json.loads(done.stdout)


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_A07_another_process_with_another_hash_seed_flies_the_same(hash_seed):
    assert _asked([sys.executable], hash_seed) == GOLDEN


def _interpreter(version: str) -> Path | None:
    """A Python of that version: uv's search, or where pyenv keeps them."""
    uv = shutil.which("uv")
    if uv is None:
        return None
    told = subprocess.run([uv, "python", "find", "--no-python-downloads", version], capture_output=True, text=True, check=False)
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [Path(line) for line in told.stdout.split("\n") if line] + sorted(kept.glob(f"{version}.*/bin/python3"))
    return next((path for path in found if path.exists()), None)


@pytest.mark.parametrize(
    "version", [version for version in VERSIONS if version != f"{sys.version_info.major}.{sys.version_info.minor}"]
)
def test_A07_another_python_flies_the_same(version):
    python = _interpreter(version)
    if python is None:
        pytest.skip(f"no uv, or no Python {version} on this machine")
    uv = str(shutil.which("uv"))
    command = [uv, "run", "-q", "--isolated", "--no-project", "--python", str(python), "--with", "pydantic>=2.11", "python"]
    try:
        flown = _asked(command, "7")
    except OSError as error:
        pytest.skip(f"no environment with pydantic could be made for Python {version}: {error}")
    assert flown == GOLDEN


def test_the_batch_engine_flies_the_golden_games_bit_for_bit():
    np = pytest.importorskip("numpy", reason="the batch engine needs numpy")
    batch_of = pytest.importorskip("flappybird.batch").FlappyBatch
    for config in trajectories.WORLDS.values():
        seeds = [*trajectories.SEEDS, *range(100, 120)]
        batch = batch_of(config, seeds, max_ticks=200)
        singles = [FlappyGame(config, seed, max_ticks=200) for seed in seeds]
        dice = random.Random(5)
        for tick in range(200):
            # Mostly what keeps a bird up, so that pipes are met.
            taps = [(game.y < game.course.gap(game.score).y / 10_000 - 0.6) != (dice.random() < 0.02) for game in singles]
            running = [game.outcome is None for game in singles]
            if not any(running):
                break
            batch.step(np.array(taps))
            for game, tap, runs in zip(singles, taps, running, strict=True):
                if runs:
                    game.step(tap)
            for index, (game, runs) in enumerate(zip(singles, running, strict=True)):
                if runs:
                    assert batch.state(index) == game.state, f"seed {seeds[index]} parts at tick {tick + 1}"
        assert [batch.outcome(index) for index in range(len(seeds))] == [game.outcome for game in singles]


@pytest.mark.parametrize("policy", ["heuristic", "planner"])
def test_an_episode_is_the_same_however_often_it_is_stored_and_taken_up_again(policy):
    episode = play(policy, 11, max_turns=120)
    for _ in range(3):
        episode = from_dict(json.loads(episode.to_json()))
    rollout = Rollout(episode.config, episode.seed, episode.rules)
    flown = [rollout.game.state]
    for turn in episode.turns:
        rollout = Rollout(episode.config, episode.seed, episode.rules, json.loads(json.dumps(rollout.record)))
        rollout.take(turn.reply)
        flown.append(rollout.game.state)
    assert flown == replay(episode).states
