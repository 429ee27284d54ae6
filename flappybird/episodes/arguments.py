"""What an environment can be asked for, checked: the arguments that every verifiers door takes, and the games they mean.

A *row* is plain JSON: seed, config and rules of one game. Row and replies give the episode again, anywhere.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from flappybird._version import __version__
from flappybird.episodes.episode import PHYSICS
from flappybird.episodes.rollout import Rollout
from flappybird.errors import ConfigError, show, unknown_name
from flappybird.protocol.prompt import prompt_of
from flappybird.protocol.rules import Rules
from flappybird.system.files import read_json
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Physics
from flappybird.world.levels import level
from flappybird.world.seeds import EVALUATION_SEEDS, TRAINING_SEEDS, check_seed
from flappybird.world.solver import work

MAX_EXAMPLES = 1_000_000


@dataclass(frozen=True)
class Settings:
    """The checked arguments of an environment."""

    config: FlappyConfig
    rules: Rules
    num_examples: int = 10
    """Games in the evaluation set."""
    seed: int = 0
    """Seed of the first evaluation game; game i has seed `seed` + i."""
    turn_reward: bool = False
    """Whether each turn is given its share of the reward, see `rewards.turn_rewards`."""
    report: bool | str | None = None
    """Whether an evaluation writes a report, or the folder it goes to; None: where `vf-eval` runs it."""
    allow_impossible: bool = False
    """Whether courses are played that no bird can fly to the tick limit."""

    @classmethod
    def of(cls, **args: Any) -> Settings:
        """Return the settings that environment arguments mean.

        Args:
            args: any of `ARGUMENTS`.

        Raises:
            ConfigError: an argument is unknown, of the wrong type or out of range; the message names it.
        """
        for name in args:
            if name not in ARGUMENTS:
                raise ConfigError(unknown_name(name, ARGUMENTS, "an environment argument"))
        args = {name: value for name, value in args.items() if value is not None}
        config = FlappyConfig.of(world_of(args.get("difficulty"), args.get("config")), args.get("config_overrides"))
        rules = Rules(**{name: args[name] for name in RULES if name in args})
        num_examples = _count(args.get("num_examples", cls.num_examples), "num_examples")
        seed = check_seed(args.get("seed", cls.seed))
        report = args.get("report")
        if not isinstance(report, bool | str | None):
            raise ConfigError(f"report = {show(report)}: must be true, false or a folder")
        flags = {name: args.get(name, False) for name in ("turn_reward", "allow_impossible")}
        for name, value in flags.items():
            if not isinstance(value, bool):
                raise ConfigError(f"{name} = {show(value)}: must be true or false")
        settings = cls(config, rules, num_examples, seed, report=report, **flags)
        settings.evaluation_row(num_examples - 1)
        settings.certify(num_examples)
        return settings

    def certify(self, games: int) -> None:
        """Refuse an evaluation of `games` games some of which no bird can fly to the tick limit.

        Exact, for as many of the first `CERTIFIED` seeds as `EFFORT` reaches; the rest, and worlds so fine or games so long
        that it reaches for none, are taken as they are. So is everything with `allow_impossible`.

        Raises:
            ConfigError: such games are among them.
        """
        if self.allow_impossible:
            return
        tried, blocked = _impassable(self.config, self.seed, games, self.rules.max_turns)
        if blocked:
            named = f"{', '.join(map(str, blocked[:5]))}{', …' * (len(blocked) > 5)}"
            raise ConfigError(
                f"config: {len(blocked)} of {tried} seeds ({100 * len(blocked) / tried:.0f} %) cannot be flown to tick "
                f"{self.rules.max_turns} by any bird (seed {named}); change the world, or insist with allow_impossible = true"
            )

    def evaluation_row(self, index: int) -> dict[str, Any]:
        """Return row `index` of the evaluation set. Raises ConfigError where its seed would be one of training."""
        seed = self.seed + index
        if seed not in EVALUATION_SEEDS:
            raise ConfigError(
                f"seed = {self.seed}: evaluation seeds must stay below {EVALUATION_SEEDS.stop}, where training seeds start"
            )
        return self._row(seed)

    def training_row(self, index: int) -> dict[str, Any]:
        """Return row `index` of the endless training set."""
        return self._row(TRAINING_SEEDS[self.seed + index])

    def _row(self, seed: int) -> dict[str, Any]:
        return {
            "seed": seed,
            "config": dict(self.config),
            "rules": self.rules.model_dump(),
            "versions": {"flappybird": __version__, "physics": PHYSICS},
        }

    def same_games(self, other: Settings) -> bool:
        """Whether `other` plays the same games by the same rules, whatever their number and reports."""
        return (self.config, self.rules, self.seed) == (other.config, other.rules, other.seed)


CERTIFIED = 100
"""Seeds, from the first one on, that are solved before an evaluation, to see whether they can be flown."""

EFFORT = 50_000_000
"""The most work that this may be, see `solver.work`: a tenth of a second, and 20 seeds of the card's defaults."""

TICK_EFFORT = 5_000
"""What a tick of a course counts for beside that."""


@lru_cache(maxsize=64)
def _impassable(config: FlappyConfig, first: int, games: int, ticks: int) -> tuple[int, list[int]]:
    """Return how many seeds from `first` on were looked at, and those of them that cannot be flown to `ticks`."""
    from flappybird.world.certify import impassable

    through, _ = work(Physics.of(config), ticks)
    tried = min(games, CERTIFIED, EFFORT // (through + TICK_EFFORT * ticks))
    return tried, impassable(config, range(first, first + tried), ticks) if tried else []


RULES = tuple(Rules.model_fields)
ARGUMENTS = (
    "max_turns",
    "num_examples",
    "config",
    "config_overrides",
    "difficulty",
    "seed",
    "report",
    "turn_reward",
    "allow_impossible",
    *RULES[1:],
)
"""The names of all environment arguments."""


def start(row: dict[str, Any], record: dict[str, Any] | None = None) -> Rollout:
    """Return the rollout of a row: at its beginning, or where `record` left it. Raises ConfigError for a bad row."""
    try:
        config, rules = _world(tuple(row["config"].items()), tuple(row["rules"].items()))
        return Rollout(config, row["seed"], rules, record)
    except (AttributeError, KeyError, TypeError) as error:
        raise ConfigError(f"not a row of this environment: {show(str(error))}") from None


@lru_cache(maxsize=256)
def _world(config: tuple[tuple[str, Any], ...], rules: tuple[tuple[str, Any], ...]) -> tuple[FlappyConfig, Rules]:
    """Return config and rules of a row; kept, since every turn asks for them again and most rows share them."""
    return FlappyConfig(**dict(config)), Rules(**dict(rules))


def opening(rollout: Rollout) -> tuple[str, str]:
    """Return what a model reads first: the system prompt and the first observation."""
    return prompt_of(rollout.game.config, rollout.rules), rollout.message()


def world_of(difficulty: object, config: Any) -> Any:
    """Return the world that a difficulty names, or else `config`. Raises ConfigError where both are given."""
    if difficulty is None:
        return config
    if config is not None:
        raise ConfigError(
            f"difficulty = {show(difficulty)}: config names a world too; give one, and lay config_overrides over it"
        )
    return level(difficulty)


def _count(value: object, name: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_EXAMPLES:
        return value
    raise ConfigError(f"{name} = {show(value)}: must be a whole number from 1 to {MAX_EXAMPLES}")


MAX_CONFIG_BYTES = 1_000_000
"""The most bytes of a config file that are read."""


def parse_config(texts: list[str]) -> FlappyConfig:
    """Return the config that `texts` make up, each laid over those before it.

    Each is a JSON object, the path of a file that holds one, or `name=value` (several joined by commas).

    Raises:
        ConfigError: one is none of these, or the result is not a legal config.
        EpisodeError: the file cannot be read.
    """
    fields: dict[str, Any] = {}
    for text in texts:
        fields.update(_read_fields(text))
    return FlappyConfig(**fields)


def _read_fields(text: str) -> dict[str, Any]:
    stripped = text.strip()
    try:
        found = json.loads(stripped)
    except RecursionError:
        raise ConfigError(f"config = {show(text, 120)}: nested too deeply") from None
    except ValueError:
        if stripped.startswith("{") or stripped.endswith("}"):
            raise ConfigError(
                f"config = {show(text, 120)}: is not JSON; if you wrote quotes, the shell took them: "
                "write it as name=value, or name a file that holds the JSON"
            ) from None
        if "=" in stripped and not Path(stripped).exists():
            return dict(_pair(part) for part in stripped.split(","))
        if not Path(stripped).exists():
            raise ConfigError(
                f"config = {show(text, 120)}: neither JSON, nor a file, nor name=value, such as gravity=-0.25"
            ) from None
        found = read_json(Path(stripped), MAX_CONFIG_BYTES)
    if not isinstance(found, dict):
        raise ConfigError(f'config = {show(text, 120)}: must be an object of FlappyConfig fields, such as {{"gravity": -0.25}}')
    return found


def _pair(part: str) -> tuple[str, Any]:
    name, _, value = part.partition("=")
    try:
        return name.strip(), json.loads(value)
    except (RecursionError, ValueError):
        raise ConfigError(f"{name.strip()} = {show(value)}: must be a number, such as gravity=-0.25") from None
