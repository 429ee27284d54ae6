"""The peers' side of `engines`, run in an environment of their own: rates as JSON. Arguments: sizes of CartPole vectors."""

import json
import sys
import time
from statistics import median

import flappy_bird_gymnasium  # noqa: F401 - registers its environment
import gymnasium
import numpy as np

RUNS = 5


def rate(steps, run):
    took = []
    for _ in range(RUNS):
        begun = time.process_time()
        run()
        took.append(time.process_time() - begun)
    return steps / median(took)


def single(name, policy, steps=20_000, **options):
    """Return steps per second, and deaths per run."""
    env = gymnasium.make(name, **options)
    deaths = 0

    def run():
        nonlocal deaths
        seen, _ = env.reset(seed=1)
        for _ in range(steps):
            seen, _, terminated, truncated, _ = env.step(policy(seen))
            if terminated or truncated:
                deaths += terminated
                seen, _ = env.reset()

    return rate(steps, run), deaths / RUNS


def flap(seen):
    """Flap when the bird is lower than a little above the lower edge of the next gap."""
    lower = seen[5] if seen[0] < 0.1 else seen[2]
    return int(seen[9] > lower - 0.08)


def vector(games, survive, steps):
    envs = gymnasium.make_vec("CartPole-v1", num_envs=games, vectorization_mode="vector_entry_point")
    dice = np.random.default_rng(0)
    actions = [dice.integers(0, 2, games) for _ in range(64)]
    seen, _ = envs.reset(seed=1)
    rates = []
    for _ in range(RUNS):
        took = 0.0
        for step in range(steps):
            chosen = (seen[:, 2] + seen[:, 3] > 0).astype(np.int64) if survive else actions[step % 64]
            begun = time.process_time()
            seen = envs.step(chosen)[0]
            took += time.process_time() - begun
        rates.append(games * steps / took)
    return median(rates)


told = {
    "cartpole": single("CartPole-v1", lambda seen: int(seen[2] + seen[3] > 0)),
    "flappy": single("FlappyBird-v0", flap, use_lidar=False),
    "flappy lidar": single("FlappyBird-v0", lambda seen: 0, steps=500, use_lidar=True),
}
for size in map(int, sys.argv[1:]):
    for survive in (True, False):
        told[f"vector {size} {survive}"] = vector(size, survive, max(40, min(400, 2_000_000 // size)))
print(json.dumps(told))
