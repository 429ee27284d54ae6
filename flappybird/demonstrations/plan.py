"""What to demonstrate, and how it is written down."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

from flappybird.episodes.arguments import RULES
from flappybird.errors import ConfigError, show, unknown_name
from flappybird.players.policies import CHOICES
from flappybird.protocol.observe import has_picture
from flappybird.protocol.rules import Rules
from flappybird.world.levels import level

Think = Literal["none", "short", "arithmetic"]
"""How much is said before acting: nothing, the reason, or the numbers of both next states with it."""

Form = Literal["messages", "prompt-completion"]
"""`messages`: one line for each window of turns. `prompt-completion`: one line for each reply, with the request it answers."""


class Plan(NamedTuple):
    """What to demonstrate; see `flappybird sft --help`."""

    games: int = 1000
    policy: str = "planner"
    levels: tuple[str, ...] = ("card",)
    """Played in turn, game by game."""
    seed: int = 0
    """Game i of the training part has the seed `TRAINING_SEEDS[seed + i]`."""
    rules: Rules = Rules()
    """As an environment has them: requests are the ones that it would send."""
    perturbed: float = 0.0
    """Share of the games that begin off course, in a state that the policy did not choose and that can be survived."""
    think: Think = "arithmetic"
    form: Form = "messages"
    marks: bool = False
    """Whether lines say how decisive each turn is, see `games.Mark`."""
    max_tokens: int | None = None
    """No line has more tokens than this. Where the model sees all turns, games are cut into pieces that begin anew."""
    tokenizer: str | None = None
    """Whose tokens count, see `system.tokens.tokenizer_of`; None for the bundled one and a margin (`tokens.MARGIN`)."""
    validation: float = 0.0
    """Share of the games that is kept apart, on seeds of their own."""

    def check(self) -> Plan:
        """Return the plan. Raises ConfigError where it cannot be carried out; the message names the option."""
        for name in self.levels:
            level(name)
        if self.policy not in CHOICES:
            raise ConfigError(unknown_name(self.policy, CHOICES, "a policy that demonstrates anything"))
        for option, value, allowed in (("--think", self.think, get_args(Think)), ("--form", self.form, get_args(Form))):
            if value not in allowed:
                raise ConfigError(f"{option} = {show(value)}: must be one of {', '.join(allowed)}")
        if has_picture(self.rules):
            raise ConfigError(f"observation = {self.rules.observation}: demonstrations are text; card, signed or ascii")
        if self.rules.realtime:
            raise ConfigError(f"realtime = {self.rules.realtime:g}: a demonstration takes no time; leave it at 0")
        if not 1 <= self.games <= 10_000_000:
            raise ConfigError(f"-n = {self.games}: must be from 1 to 10000000 games")
        if not 0 <= self.seed <= 2**50:
            raise ConfigError(f"--seed = {self.seed}: must be a whole number from 0 to {2**50}")
        for option, share in (("--perturbed", self.perturbed), ("--validation", self.validation)):
            if not 0 <= share <= 1:
                raise ConfigError(f"{option} = {share}: must be a share from 0 to 1")
        if self.validation > 0 and round(self.games * self.validation) == 0:
            raise ConfigError(
                f"--validation = {self.validation}: is no game of {self.games}; ask for more games, or a larger share"
            )
        if self.tokenizer is not None and self.max_tokens is None:
            raise ConfigError(f"--tokenizer = {show(self.tokenizer)}: counts for --max-tokens; give both")
        return self


def rules_of(args: dict[str, Any]) -> Rules:
    """Return the rules that environment arguments mean, spelt as the doors spell them.

    Raises:
        ConfigError: an argument is unknown, or no rule of how a game is played and seen, or out of range.
    """
    for name in args:
        if name not in RULES:
            hint = "a rule that demonstrations are made by (--difficulty and --seed name worlds and courses)"
            raise ConfigError(unknown_name(name, RULES, hint))
    return Rules(**{name: value for name, value in args.items() if value is not None})
