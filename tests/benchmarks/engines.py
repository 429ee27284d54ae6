"""Steps per second: one game, the Gymnasium shape, and many games at once, beside flappy-bird-gymnasium, CartPole and plain C.

Rates are per second of processor time, medians of several runs. "Survives" is a policy whose birds live on, "random"
taps with a chance of 0.15 (CartPole: 0.5), so that games end and begin all the time. Vector environments are made by
`gymnasium.make_vec` and give observations; ours and CartPole take turns, so that a busy machine slows both alike.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import gymnasium
import numba
import numpy as np

from flappybird.batch import FlappyBatch
from flappybird.gymnasium_env import ENV_ID
from flappybird.players.policies import CHOICES
from flappybird.players.sight import Sight
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Physics
from flappybird.world.game import FlappyGame
from tests.benchmarks._bench import ask, machine, peers

RUNS = 5
SIZES = (1, 64, 1_024, 4_096, 65_536, 262_144)
BESIDE_PEERS = (64, 1_024, 4_096, 65_536)
OPEN = FlappyConfig(easy_gap_height=14.0, base_gap_height=14.0)
"""A world in which a rule of one line survives; its pipes pass as often as the card's."""


def rate(steps: int, run: Callable[[], Any], runs: int = RUNS) -> float:
    """Return steps per second of processor time of `run`, which makes `steps`: the median of several runs."""
    took = []
    for _ in range(runs):
        begun = time.process_time()
        run()
        took.append(time.process_time() - begun)
    return steps / median(took)


def single_game(steps: int = 100_000) -> float:
    """One `FlappyGame` on the card's world, by the taps of the planner."""
    game, taps = FlappyGame(seed=1), []
    until = 0
    while len(taps) < steps // 10:
        if game.tick >= until:
            sight, until = Sight.at(game.course, game.tick)
            survival = sight.survival(game.state)
        taps.append(CHOICES["planner"](sight, game.state, survival).tap)  # type: ignore[call-arg]
        game.step(taps[-1])
    assert game.outcome is None

    def run() -> None:
        for _ in range(10):
            step = FlappyGame(seed=1).step
            for tap in taps:
                step(tap)

    return rate(steps, run)


def gymnasium_step(steps: int = 20_000) -> float:
    """One environment through `gymnasium.make`, by a rule that survives in an open world."""
    env = gymnasium.make(ENV_ID, config=OPEN, max_turns=None)

    def run() -> None:
        seen, _ = env.reset(seed=1)
        for _ in range(steps):
            seen, _, terminated, _, _ = env.step(int(seen[0] + seen[1] < -2.3))
            assert not terminated

    return rate(steps, run)


def steps_of(games: int) -> int:
    """How many steps a run of so many games takes."""
    return max(40, min(1_000, 2_000_000 // games))


def random_taps(games: int, chance: float = 0.15) -> list[Any]:
    """Taps with a chance."""
    dice = np.random.default_rng(0)
    return [(dice.random(games) < chance).astype(np.int64) for _ in range(64)]


def batch_rate(games: int) -> float:
    """Rate of `FlappyBatch.step` alone, random taps."""
    batch, taps, steps = FlappyBatch(seeds=range(games), autoreset=True), random_taps(games), steps_of(games)

    def run() -> None:
        for number in range(steps):
            batch.step(taps[number % len(taps)])

    return rate(games * steps, run)


def vector_rate(envs: Any, choose: Callable[[Any, int], Any]) -> float:
    """Rate of one run of a vector environment, without what choosing actions takes."""
    seen, _ = envs.reset(seed=1)
    steps, took = steps_of(envs.num_envs), 0.0
    for number in range(steps):
        actions = choose(seen, number)
        begun = time.process_time()
        seen = envs.step(actions)[0]
        took += time.process_time() - begun
    return float(envs.num_envs * steps / took)


def beside_cartpole(games: int, survive: bool) -> tuple[float, float, list[float]]:
    """Median rates of our vector environment and of CartPole's, and the ratios of all runs; they take turns."""
    ours = gymnasium.make_vec(ENV_ID, num_envs=games, **({"config": OPEN, "max_turns": None} if survive else {}))
    cartpole = gymnasium.make_vec("CartPole-v1", num_envs=games, vectorization_mode="vector_entry_point")
    taps, pushes = random_taps(games), random_taps(games, 0.5)

    def fly(seen: Any, number: int) -> Any:
        return (seen[:, 0] + seen[:, 1] < -2.3).astype(np.int64) if survive else taps[number % len(taps)]

    def balance(seen: Any, number: int) -> Any:
        return (seen[:, 2] + seen[:, 3] > 0).astype(np.int64) if survive else pushes[number % len(pushes)]

    rates = [(vector_rate(ours, fly), vector_rate(cartpole, balance)) for _ in range(RUNS)]
    mine, theirs = zip(*rates, strict=True)
    return median(mine), median(theirs), sorted(one / other for one, other in rates)


def cold_start() -> tuple[float, float]:
    """Seconds from a new process to the first step of a vector environment: compiling, and compiled before."""
    code = (
        "import gymnasium, numpy, flappybird.gymnasium_env as door\n"
        "envs = gymnasium.make_vec(door.ENV_ID, num_envs=64); envs.reset(); envs.step(numpy.zeros(64, int))"
    )
    took = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            begun = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "NUMBA_CACHE_DIR": folder})
            took.append(time.perf_counter() - begun)
    return took[0], took[1]


class Reference:
    """The same games in C, one thread. Raises FileNotFoundError where there is no gcc."""

    def __init__(self, folder: Path, config: FlappyConfig, games: int) -> None:
        if shutil.which("gcc") is None:
            raise FileNotFoundError("gcc")
        library = folder / "reference.so"
        source = Path(__file__).parent / "_reference.c"
        subprocess.run(["gcc", "-O3", "-march=native", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
        self._c = ctypes.CDLL(str(library))
        physics = Physics.of(config)
        assert physics.pass_age - physics.enter_age <= physics.interval
        fields = (physics.low, physics.high, physics.jump, physics.gravity, physics.radius, physics.first_spawn)
        fields += (physics.interval, physics.enter_age, physics.leave_age, physics.pass_age, physics.gap_choices, 100)
        fields += (physics.easy_height, physics.base_height, physics.easy_pipes, physics.ramp_pipes)
        self._physics = np.array(fields, np.int64)
        self.games = ctypes.c_int64(games)
        self.over = np.zeros(games, np.uint8)
        self.seed = np.arange(games, dtype=np.int64)
        self.y, self.v, self.low, self.high = (np.zeros(games, np.int32) for _ in range(4))
        self.tick, self.until = np.zeros(games, np.int64), np.zeros(games, np.int64)
        self._state = [self._at(each) for each in (self.seed, self.y, self.v, self.low, self.high, self.tick, self.until)]
        self._c.begin(self._at(self._physics), self.games, *self._state)

    @staticmethod
    def _at(array: Any) -> Any:
        return array.ctypes.data_as(ctypes.c_void_p)

    def step(self, taps: Any) -> None:
        """One tick of all games."""
        self._c.step(self._at(self._physics), self.games, self._at(taps), self._at(self.over), *self._state)


def c_rate(games: int) -> float:
    """Rate of plain C on what the batch does with random taps, but for observations; its states are checked to be the same."""
    steps, taps, config = steps_of(games), random_taps(games), FlappyConfig()
    flaps = [each.astype(bool) for each in taps]
    with tempfile.TemporaryDirectory() as folder:
        reference, twin = Reference(Path(folder), config, games), FlappyBatch(config, range(games), autoreset=True)
        begun = time.process_time()
        for number in range(steps):
            reference.step(flaps[number % len(flaps)])
        took = time.process_time() - begun
    for number in range(steps):
        twin.step(taps[number % len(taps)])
    assert (twin.y == reference.y).all()
    assert (twin.seeds == reference.seed).all()
    assert (twin.ticks == reference.tick).all()
    return games * steps / took


def main() -> None:
    """Print all figures."""
    busy = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"{machine()}{busy}, numpy {np.__version__}, numba {numba.__version__}, gymnasium {gymnasium.__version__}\n")
    with peers("flappy-bird-gymnasium", f"gymnasium=={gymnasium.__version__}", f"numpy=={np.__version__}") as python:
        rates = ask(python, "_engine_peers.py")
    flappy, lidar, cartpole = rates["flappy"][0], rates["flappy lidar"][0], rates["cartpole"][0]
    one, shaped = single_game(), gymnasium_step()
    print("One game                                          steps/s   × flappy-bird-gymnasium")
    for name, steps in (
        ("flappy-bird-gymnasium, numbers", flappy),
        ("flappy-bird-gymnasium, lidar (its default)", lidar),
        ("gymnasium CartPole-v1", cartpole),
        ("ours, gymnasium.make", shaped),
        ("ours, FlappyGame.step", one),
    ):
        print(f"  {name:<44} {steps:>10,.0f} {steps / flappy:>8.1f}")
    print(f"  (deaths per 20,000 steps: flappy-bird-gymnasium {rates['flappy'][1]:.0f}, ours 0)")

    print("\nVector environments, gymnasium.make_vec, million steps/s")
    print(f"  {'':<14} {'N':>8} {'ours':>8} {'CartPole':>9} {'ratio':>7}   ratios of single runs")
    for survive in (False, True):
        for games in BESIDE_PEERS:
            mine, theirs, ratios = beside_cartpole(games, survive)
            spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
            name = "both survive" if survive else "both random"
            cells = f"{mine / 1e6:>8.2f} {theirs / 1e6:>9.2f} {mine / theirs:>7.2f}"
            print(f"  {name:<14} {games:>8,} {cells}   {spread}", flush=True)

    print("\nFlappyBatch.step, random taps, million steps/s")
    print(f"  {'N':>8} {'ours':>8} {'µs per step':>12} {'C, one thread, no observations':>31}")
    for games in SIZES:
        mine = batch_rate(games)
        try:
            c = f"{c_rate(games) / 1e6:.2f}"
        except FileNotFoundError:
            c = "no gcc"
        print(f"  {games:>8,} {mine / 1e6:>8.2f} {games / mine * 1e6:>12.1f} {c:>31}", flush=True)
    first, cached = cold_start()
    print(f"  from a new process to the first step: {first:.1f} s, compiled before: {cached:.1f} s")


if __name__ == "__main__":
    main()
