"""Door: Gymnasium. Importing this module registers `flappybird/FlappyBird-v0`.

    import gymnasium, flappybird.gymnasium_env
    env = gymnasium.make("flappybird/FlappyBird-v0", difficulty="hard")
    envs = gymnasium.make_vec("flappybird/FlappyBird-v0", num_envs=1024)

One environment plays a `FlappyGame`, a vector of them a `FlappyBatch`; both give the same numbers, bit for bit. Rewards are
the card's without the part for the format of replies. `reset(seed=s)` plays the course `s`; a reset without a seed draws
one from `seeds.GYMNASIUM_SEEDS`, so evaluation seeds (those below 2**40) are only played when they are asked for. Pictures
are drawn by `render`, which is loaded when the first one is asked for, and many games need numba, which is loaded with them.
"""

from __future__ import annotations

from flappybird.system.install import missing

try:
    import gymnasium
except ImportError:
    raise missing("this door needs gymnasium", "gymnasium") from None

from flappybird.batch import FEATURES
from flappybird.gymnasium_env.arguments import make_config, number_space, top_speed
from flappybird.gymnasium_env.single import FlappyBirdEnv
from flappybird.gymnasium_env.vector import FlappyBirdVectorEnv

__all__ = ["ENV_ID", "FEATURES", "FlappyBirdEnv", "FlappyBirdVectorEnv", "make_config", "number_space", "top_speed"]

ENV_ID = "flappybird/FlappyBird-v0"

gymnasium.register(
    ENV_ID,
    entry_point="flappybird.gymnasium_env:FlappyBirdEnv",
    vector_entry_point="flappybird.gymnasium_env:FlappyBirdVectorEnv",
)
