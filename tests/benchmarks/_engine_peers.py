"""The peers' side of `engines`, run in an environment of their own: rates as JSON."""

import json
import time
from statistics import median

import flappy_bird_gymnasium  # noqa: F401 - registers its environment
import gymnasium

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


rates = {
    "cartpole": single("CartPole-v1", lambda seen: int(seen[2] + seen[3] > 0)),
    "flappy": single("FlappyBird-v0", flap, use_lidar=False),
    "flappy lidar": single("FlappyBird-v0", lambda seen: 0, steps=500, use_lidar=True),
}
print(json.dumps(rates))
