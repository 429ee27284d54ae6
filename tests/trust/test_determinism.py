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
from collections import defaultdict
from pathlib import Path

import pytest

from flappybird.episodes.episode import from_dict, replay
from flappybird.episodes.rollout import Rollout
from flappybird.world.game import FlappyGame
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


def test_A07_the_batch_engine_flies_the_golden_games_bit_for_bit():
    np = pytest.importorskip("numpy", reason="the batch engine needs numpy")
    batch_of = pytest.importorskip("flappybird.batch").FlappyBatch
    by_world = defaultdict(list)
    for game in trajectories.played():
        by_world[game.config, game.rules.max_turns].append(game.episode)
    for (config, limit), episodes in by_world.items():
        flights = [replay(episode).states for episode in episodes]
        batch = batch_of(config, [episode.seed for episode in episodes], max_ticks=limit)
        jump = FlappyGame(config).course.physics.jump
        for tick in range(max(map(len, flights)) - 1):
            # After a TAP, and only then, the velocity is the jump impulse.
            flown = [states[min(tick + 1, len(states) - 1)] for states in flights]
            batch.step(np.array([state.velocity == jump for state in flown]))
            assert [batch.state(index) for index in range(len(flights))] == flown, f"after tick {tick + 1}"
        assert [batch.outcome(index).reason for index in range(len(flights))] == [episode.outcome.reason for episode in episodes]


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
