"""What an evaluation will cost, before anything is spent, and what one has cost.

An estimate is not a formula: it plays one game with a built-in policy, builds every request as the doors would send it, and
counts its tokens. So every option, prompt and reply is what it is in a real run; only the model's own words are stood in for
by a policy's, and its skill by the policy's (an episode that crashes early costs less).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from statistics import mean
from typing import Any, NamedTuple

from flappybird.episodes.arguments import ARGUMENTS, Settings, start
from flappybird.errors import ConfigError, MissingPart, show, unknown_name
from flappybird.players.policies import make_policy, plan
from flappybird.protocol.observe import SIZE, has_picture
from flappybird.protocol.prompt import prompt_of
from flappybird.protocol.reply import write_reply
from flappybird.protocol.window import first_kept
from flappybird.runs import Run
from flappybird.system.table import table
from flappybird.system.tokens import TOKENIZER, tokenizer

MESSAGE_TOKENS = 4
"""Tokens that a chat template puts around each message: about as many in every family."""

CACHED_FROM, CACHED_BY = 1024, 128
"""Providers cache a prompt from this many tokens on, in steps of that many (OpenAI's prompt caching guide)."""

PATCH = 32
"""Pixels of the square patches that vision models of the GPT-4.1-mini kind count a picture in, one token each …"""
PATCH_FACTOR = 1.62
"""… times this."""


class Price(NamedTuple):
    """Dollars for a million tokens."""

    prompt: float
    cached: float
    """Of prompt tokens that the provider still has from the call before."""
    completion: float


PRICES_OF = "OpenAI's list prices of mid-2025; --price sets your own"
PRICES = {
    "gpt-4.1": Price(2.00, 0.50, 8.00),
    "gpt-4.1-mini": Price(0.40, 0.10, 1.60),
    "gpt-4.1-nano": Price(0.10, 0.025, 0.40),
    "gpt-4o": Price(2.50, 1.25, 10.00),
    "gpt-4o-mini": Price(0.15, 0.075, 0.60),
}
"""What some models cost; see `PRICES_OF`."""

OPTIONS: dict[str, dict[str, Any]] = {
    "as asked": {},
    "history_turns = 8": {"history_turns": 8},
    "history_turns = 1": {"history_turns": 1},
    "history_turns = -1": {"history_turns": -1},
    "ticks_per_turn = 5": {"ticks_per_turn": 5},
    "history_turns = 8, ticks_per_turn = 5": {"history_turns": 8, "ticks_per_turn": 5},
    "observation = signed": {"observation": "signed"},
    "observation = ascii": {"observation": "ascii"},
    "observation = image": {"observation": "image"},
    "observation = text+image": {"observation": "text+image"},
}
"""What is set side by side: each is laid over what was asked for."""


class Tokens(NamedTuple):
    """The tokens of one episode."""

    turns: int
    prompt: int
    """Of all requests together."""
    cached: int
    """Of these, how many stood at the beginning of the request before and are remembered by a provider that caches."""
    completion: int

    def dollars(self, price: Price, cached: bool) -> float:
        """Return what they cost, with or without a provider that remembers the request before."""
        known = self.cached if cached else 0
        return ((self.prompt - known) * price.prompt + known * price.cached + self.completion * price.completion) / 1e6


def episode_tokens(settings: Settings, count: Callable[[str], int], policy: str = "planner") -> Tokens:
    """Return the tokens of the first evaluation game, played by `policy` under `settings`.

    Every request is the system prompt, the turns that the model still sees, and the observation. A provider's cache is taken
    to hold the request before and its reply, and nothing else.
    """
    rollout, rules = start(settings.evaluation_row(0)), settings.rules
    config = rollout.game.config
    decide = make_policy(policy, config, settings.seed)
    picture = picture_tokens(*SIZE) if has_picture(rules) else 0
    head = count(prompt_of(config, rules)) + MESSAGE_TOKENS
    turns: list[int] = []  # of each turn: observation and reply
    prompt = cached = completion = before = 0
    while rollout.outcome is None:
        asked = count(rollout.message()) + picture + MESSAGE_TOKENS
        said = write_reply(*plan(decide, rollout.observation(), config, rules.ticks_per_turn))
        kept = first_kept(len(turns), rules.history_turns)
        request = head + sum(turns[kept:]) + asked
        cut = kept != first_kept(len(turns) - 1, rules.history_turns)
        prompt += request
        cached += remembered((head if cut else before) if turns else 0)
        before = request + count(said)
        completion += count(said)
        turns.append(asked + count(said) + MESSAGE_TOKENS)
        rollout.take(said)
    return Tokens(len(turns), prompt, cached, completion)


def remembered(shared: int) -> int:
    """Return how many of `shared` tokens, the same as at the beginning of the request before, a provider still has."""
    return shared // CACHED_BY * CACHED_BY if shared >= CACHED_FROM else 0


def picture_tokens(width: int, height: int) -> int:
    """Return about how many tokens a picture of this size is."""
    return round(-(-width // PATCH) * -(-height // PATCH) * PATCH_FACTOR)


def measured(run: Run) -> Tokens | None:
    """Return the mean tokens of an episode of a run, as its provider counted them; `cached` is not saved. None where unknown."""
    used = [row for row in run.rows if row.episode and row.error is None and row.usage.get("prompt_tokens")]
    if not used:
        return None
    prompt, completion = (mean(row.usage.get(name, 0.0) for row in used) for name in ("prompt_tokens", "completion_tokens"))
    turns = mean(len(row.episode.turns) for row in used if row.episode)
    return Tokens(round(turns), round(prompt), 0, round(completion))


def facts(run: Run) -> Iterator[tuple[str, str]]:
    """Yield, for a report, what an episode of `run` cost and what was to be expected, in tokens and money, where known."""
    price, used = price_of(run.model), measured(run)
    if used is None:
        return
    yield "Tokens an episode, measured", _fact(used, price)
    try:
        settings = Settings.of(**{name: value for name, value in run.env_args.items() if name in ARGUMENTS})
        expected = _fact(episode_tokens(settings, tokenizer()), price)
        yield "Tokens an episode, estimated", f"{expected} ({TOKENIZER}, played by planner)"
    except (ConfigError, MissingPart) as error:
        yield "Tokens an episode, estimated", f"unknown: {error}"


def _fact(tokens: Tokens, price: Price | None) -> str:
    money = f", ${tokens.dollars(price, cached=False):.3f} uncached" if price else ""
    return f"{tokens.prompt:,} prompt and {tokens.completion:,} completion in {tokens.turns} turns{money}"


def price_of(model: str, given: str | None = None) -> Price | None:
    """Return what `model` costs: as `given` (`PROMPT,CACHED,COMPLETION` in dollars a million tokens), or as known, or None.

    Raises:
        ConfigError: `given` is no such three numbers.
    """
    if given is not None:
        try:
            prompt, cached, completion = (float(part) for part in given.split(","))
        except ValueError:
            prompt = cached = completion = -1.0
        if not all(0 <= value < 1e6 for value in (prompt, cached, completion)):
            raise ConfigError(
                f"--price = {given!r}: must be PROMPT,CACHED,COMPLETION in dollars a million tokens, such as 0.4,0.1,1.6"
            )
        return Price(prompt, cached, completion)
    return PRICES.get(model.rpartition("/")[2])


class Estimate(NamedTuple):
    """What one way to play costs."""

    name: str
    tokens: Tokens


def estimates(args: Mapping[str, Any], policy: str = "planner", names: tuple[str, ...] = tuple(OPTIONS)) -> list[Estimate]:
    """Return the estimate for the arguments `args` and for each saving option laid over them.

    Raises:
        ConfigError: an argument is no legal one.
        MissingPart: the tokenizer is not installed.
    """
    for name in names:
        if name not in OPTIONS:
            raise ConfigError(unknown_name(name, OPTIONS, "an option to compare"))
    count = tokenizer()
    found: list[Estimate] = []
    for name in names:
        settings = Settings.of(**{**args, **OPTIONS[name]})
        tokens = episode_tokens(settings, count, policy)
        found.append(Estimate(name, tokens))
    return found


def read_args(text: str) -> dict[str, Any]:
    """Return the environment arguments that a JSON object stands for. Raises ConfigError where it is none."""
    try:
        args = json.loads(text)
    except (RecursionError, ValueError) as error:
        raise ConfigError(f"--env-args: not JSON: {error}") from None
    if not isinstance(args, dict):
        raise ConfigError(f'--env-args = {show(text)}: must be a JSON object, such as {{"max_turns": 100}}')
    return args


def report(
    model: str, games: int, rollouts: int, args: Mapping[str, Any], price: str | None, policy: str, run: Run | None
) -> str:
    """Return the page that `flappybird cost` prints: what `games` × `rollouts` episodes would cost, option by option.

    Args:
        model: the model's name.
        games: how many games.
        rollouts: how often each.
        args: environment arguments.
        price: as in `price_of`.
        policy: who plays in the model's place.
        run: a run whose true figures are shown beside the estimate.

    Raises:
        ConfigError: an argument is no legal one.
        MissingPart: the tokenizer is not installed.
    """
    for name, value in (("-n", games), ("-r", rollouts)):
        if value < 1:
            raise ConfigError(f"{name} = {value}: must be at least 1")
    found, costs = estimates(args, policy), price_of(model, price)
    episodes = games * rollouts
    head = ("tokens of an episode", "turns", "prompt", "cached", "completion", "$ uncached", "$ cached")
    rows = [_line(estimate.name, estimate.tokens, costs, episodes, known=True) for estimate in found]
    if run is not None and (true := measured(run)) is not None:
        rows.append(_line(f"measured in {run.path.name}", true, costs, episodes, known=False))
    notes = [
        f"{episodes} episodes ({games} games x {rollouts}) with {model}; the $ columns are for all of them.",
        f"Estimated from one game of `{policy}`, counted in {TOKENIZER} (other tokenizers differ by 10 to 20 %).",
        "A model that reasons at length writes more, one that crashes early pays less.",
        f"cached: what a provider that remembers the request before charges less for (from {CACHED_FROM} tokens on).",
    ]
    if any("image" in estimate.name for estimate in found):
        width, height = SIZE
        notes.append(f"A picture of {width}x{height} is taken for {picture_tokens(width, height)} tokens; models differ widely.")
    if costs is None:
        notes.append(f"No price is known for {model}: pass --price PROMPT,CACHED,COMPLETION in dollars a million tokens.")
    else:
        source = "as given" if price is not None else PRICES_OF
        prices = f"prompt {costs.prompt:g}, cached {costs.cached:g}, completion {costs.completion:g}"
        notes.append(f"Dollars a million tokens: {prices} ({source}).")
    return f"{table(head, rows)}\n\n" + "\n".join(notes)


def _line(name: str, tokens: Tokens, price: Price | None, episodes: int, known: bool) -> tuple[str, ...]:
    money = ("-", "-")
    if price is not None:
        full, cached = (episodes * tokens.dollars(price, cached) for cached in (False, True))
        money = (f"{full:,.2f}", f"{cached:,.2f}" if known else "-")
    counts = (tokens.turns, tokens.prompt, tokens.cached, tokens.completion)
    shown = [f"{value:,}" for value in counts]
    return (name, *shown[:2], shown[2] if known else "-", shown[3], *money)
