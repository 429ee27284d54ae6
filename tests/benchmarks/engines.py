"""Steps per second: one game, the Gymnasium shape, and many games at once, beside flappy-bird-gymnasium, CartPole and plain C.

Rates are per second of processor time, medians of several runs. "Survives" is a policy whose birds live on, "random"
taps with a chance of 0.15 (CartPole: 0.5), so that games end and begin all the time.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import gymnasium
import numpy as np

from flappybird.batch import FlappyBatch
from flappybird.gymnasium_env import ENV_ID, FlappyBirdVectorEnv
from flappybird.players.policies import CHOICES
from flappybird.players.sight import Sight
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Physics
from flappybird.world.game import FlappyGame
from tests.benchmarks._bench import ask, machine, peers

RUNS = 5
SIZES = (1, 64, 1_024, 4_096, 16_384, 65_536, 262_144)
BESIDE_PEERS = (1_024, 4_096, 65_536)
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


def surviving(games: int, steps: int) -> tuple[FlappyBatch, list[Any]]:
    """A batch of games at different ages, and taps by which all of them live for `steps` ticks."""

    def batch() -> FlappyBatch:
        made = FlappyBatch(OPEN, range(games), autoreset=True)
        for tick in range(60):
            made.reset(np.arange(tick, games, 60), seeds=np.arange(tick, games, 60))
            made.step(rule(made))
        return made

    def rule(made: FlappyBatch) -> Any:
        return made.y + made.velocity + made.physics.gravity < -20_000

    scout, taps = batch(), []
    for _ in range(steps):
        taps.append(rule(scout))
        assert not scout.step(taps[-1])[0].any()
    return batch(), taps


def random_taps(games: int) -> list[Any]:
    """Taps with a chance of 0.15."""
    dice = np.random.default_rng(0)
    return [dice.random(games) < 0.15 for _ in range(64)]


def batch_rates(games: int) -> dict[str, float]:
    """Rates of the batch alone and of the vector environment, surviving and random."""
    steps = max(40, min(400, 2_000_000 // games))
    told: dict[str, float] = {}

    def drive(step: Callable[[Any], Any], taps: list[Any]) -> Callable[[], None]:
        def run() -> None:
            for number in range(steps):
                step(taps[number % len(taps)])

        return run

    rates = []
    for _ in range(RUNS):
        batch, taps = surviving(games, steps)
        rates.append(rate(games * steps, drive(batch.step, taps), 1))
    told["survives"] = median(rates)
    batch, taps = surviving(games, steps)

    def step_and_observe(tapped: Any) -> None:
        batch.step(tapped)
        batch.observe()

    told["survives, observed"] = rate(games * steps, drive(step_and_observe, taps), 1)
    many = FlappyBatch(seeds=range(games), autoreset=True)
    told["random"] = rate(games * steps, drive(many.step, random_taps(games)))
    envs = FlappyBirdVectorEnv(games)
    envs.reset(seed=1)
    told["vector env, random"] = rate(games * steps, drive(envs.step, [taps.astype(np.int64) for taps in random_taps(games)]))
    return told


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


def c_rates(games: int) -> dict[str, float]:
    """Rates of plain C on what the batch does; its states are checked to be the same."""
    steps = max(40, min(400, 2_000_000 // games))
    told = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, config in (("survives", OPEN), ("random", FlappyConfig())):
            reference = Reference(Path(folder), config, games)
            if name == "random":
                taps = random_taps(games)
            else:
                scout, taps = FlappyBatch(config, range(games)), []
                for _ in range(steps):
                    taps.append(scout.y + scout.velocity + scout.physics.gravity < -20_000)
                    scout.step(taps[-1])
            twin = FlappyBatch(config, range(games), autoreset=True)
            begun = time.process_time()
            for number in range(steps):
                reference.step(taps[number % len(taps)])
            told[name] = games * steps / (time.process_time() - begun)
            for number in range(steps):
                twin.step(taps[number % len(taps)])
            assert (twin.y == reference.y).all()
            assert (twin.seeds == reference.seed).all()
            assert (twin.ticks == reference.tick).all()
    return told


def bytes_per_game(games: int = 4_096) -> float:
    """Memory that a batch keeps per game."""
    batch = FlappyBatch(seeds=range(games))
    return sum(value.nbytes for value in vars(batch).values() if isinstance(value, np.ndarray)) / games


def main() -> None:
    """Print all figures."""
    print(f"{machine()}, numpy {np.__version__}, gymnasium {gymnasium.__version__}\n")
    with peers("flappy-bird-gymnasium", f"gymnasium=={gymnasium.__version__}", f"numpy=={np.__version__}") as python:
        told = ask(python, "_engine_peers.py", *BESIDE_PEERS)
    flappy, lidar, cartpole = told["flappy"][0], told["flappy lidar"][0], told["cartpole"][0]
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
    print(f"  (deaths per 20,000 steps: flappy-bird-gymnasium {told['flappy'][1]:.0f}, ours 0)")

    print("\nMany games, million steps/s")
    columns = ("survives", "survives, observed", "random", "vector env, random")
    print(f"  {'N':>8} {''.join(f'{column:>20}' for column in columns)} {'µs per step':>12}")
    rates = {}
    for games in SIZES:
        rates[games] = batch_rates(games)
        cells = "".join(f"{rates[games][column] / 1e6:>20.2f}" for column in columns)
        print(f"  {games:>8,} {cells} {games / rates[games]['survives'] * 1e6:>12.1f}", flush=True)
    print(f"  memory per game: {bytes_per_game():.0f} bytes")

    print("\nBeside peers, million steps/s             N   ours   peer   ratio")
    for games in BESIDE_PEERS:
        for name, ours, peer in (
            ("vector CartPole, both survive", "survives", told[f"vector {games} True"]),
            ("the same, ours with observations", "survives, observed", told[f"vector {games} True"]),
            ("vector CartPole, both random", "random", told[f"vector {games} False"]),
            ("the same, through our vector env", "vector env, random", told[f"vector {games} False"]),
        ):
            print(
                f"  {name:<34} {games:>7,} {rates[games][ours] / 1e6:>6.1f} {peer / 1e6:>6.1f} {rates[games][ours] / peer:>7.2f}"
            )
    try:
        for games in BESIDE_PEERS:
            for name, limit in c_rates(games).items():
                ours = rates[games][name]
                print(f"  {'C, one thread, ' + name:<34} {games:>7,} {ours / 1e6:>6.1f} {limit / 1e6:>6.1f} {ours / limit:>7.2f}")
    except FileNotFoundError:
        print("  no gcc: C is left out")


if __name__ == "__main__":
    main()
