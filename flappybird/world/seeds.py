"""Which seeds there are, and what each range of them is for."""

from __future__ import annotations

from numbers import Integral

from flappybird.errors import ConfigError, show

MAX_SEED = 2**53 - 1
"""Seeds run from 0 to this: every whole number that JSON and JavaScript keep exactly."""

EVALUATION_SEEDS = range(2**40)
"""What models and policies are compared on: the only seeds that a person asks for by name."""

TRAINING_SEEDS = range(2**40, 2**51)
"""What language models train on, by reinforcement or from demonstrations."""

GYMNASIUM_SEEDS = range(2**51, 2**52)
"""What Gymnasium's environments draw from when they are reset without a seed."""

VALIDATION_SEEDS = range(2**52, MAX_SEED + 1)
"""What demonstrations are validated on."""

SEED_RANGES = (EVALUATION_SEEDS, TRAINING_SEEDS, GYMNASIUM_SEEDS, VALIDATION_SEEDS)
"""Every seed lies in exactly one of these, and counting on from a seed never leaves its range, so nothing that was
trained on is ever validated or evaluated on."""


def check_seed(seed: object) -> int:
    """Return `seed` as an int, also one of numpy's. Raises ConfigError where it is no whole number from 0 to `MAX_SEED`."""
    whole = int(seed) if not isinstance(seed, bool) and isinstance(seed, Integral) else -1
    if not 0 <= whole <= MAX_SEED:
        raise ConfigError(f"seed = {show(seed)}: must be a whole number from 0 to {MAX_SEED}")
    return whole
