"""Demonstrations: what a policy does, as chat transcripts in exactly the prompt format of the environment.

A line of the file is one transcript: `messages` (system, user, assistant, …) as trainers and `datasets.load_dataset("json")`
read them, and beside them what it takes to play it again: seed, config, rules, and the state it begins in. Thoughts state
the arithmetic of the next tick, and `problems` checks every word of a line by replay. Seeds come from the training range.
"""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from tqdm import tqdm

from flappybird.episodes.rewards import PIPE_REWARD, TICK_REWARDS
from flappybird.errors import ConfigError, EpisodeError, FlappyError, show, unknown_name
from flappybird.players.policies import CHOICES, Choice
from flappybird.players.sight import Sight, imagine
from flappybird.protocol.observe import card
from flappybird.protocol.prompt import system_prompt
from flappybird.protocol.reply import Status, read_reply, write_reply
from flappybird.protocol.rules import Rules
from flappybird.system.files import parse_json, replacing
from flappybird.system.jobs import check_jobs, spread
from flappybird.world.config import FlappyConfig
from flappybird.world.course import TRAINING_SEEDS, VALIDATION_SEEDS, Course, Physics
from flappybird.world.game import FlappyGame, Reason, State, move
from flappybird.world.levels import level
from flappybird.world.observation import Observation
from flappybird.world.solver import Survival
from flappybird.world.units import from_text, to_text

AT_ONCE = 1024
"""Games that are turned into numbers together."""

CHUNK = 8
"""Games that a process flies at a time: enough to be worth the way, few enough for memory and a lively progress bar."""

FEW = 50
"""Up to this many games are flown in this process: starting others would take longer."""

TRIES = 20
"""Games that are tried for each one asked for: a policy that crashes more often than that demonstrates nothing."""

CHARACTERS_PER_TOKEN = 2.5
"""Of prompts and replies that are mostly numbers; an estimate on the safe side for common tokenizers, which keep digits apart."""
TOKENS_PER_MESSAGE = 6
"""What a chat template puts around a message, at the most."""

LONGEST_SLIP = 8
"""Ticks of random flying before a perturbed start, at the most."""


class Plan(NamedTuple):
    """What to demonstrate; see `flappybird sft --help`."""

    games: int = 1000
    policy: str = "planner"
    levels: tuple[str, ...] = ("card",)
    """Played in turn, game by game."""
    seed: int = 0
    """Game i of the training part has the seed `TRAINING_SEEDS[seed + i]`."""
    max_turns: int = 300
    ticks_per_turn: int = 1
    perturbed: float = 0.0
    """Share of the games that begin off course, in a state that the policy did not choose and that can be survived."""
    max_tokens: int | None = None
    """Transcripts are cut into pieces of at most about this many tokens, each with the system prompt before it."""
    validation: float = 0.0
    """Share of the games that is kept apart, on seeds of their own."""

    def check(self) -> Plan:
        """Return the plan. Raises ConfigError where it cannot be carried out; the message names the option."""
        for name in self.levels:
            level(name)
        if self.policy not in CHOICES:
            raise ConfigError(unknown_name(self.policy, CHOICES, "a policy that demonstrates anything"))
        Rules(max_turns=self.max_turns, ticks_per_turn=self.ticks_per_turn)
        if not 1 <= self.games <= 10_000_000:
            raise ConfigError(f"-n = {self.games}: must be from 1 to 10000000 games")
        if not 0 <= self.seed <= 2**50:
            raise ConfigError(f"--seed = {self.seed}: must be a whole number from 0 to {2**50}")
        for option, value in (("--perturbed", self.perturbed), ("--validation", self.validation)):
            if not 0 <= value <= 1:
                raise ConfigError(f"{option} = {value}: must be a share from 0 to 1")
        if self.validation > 0 and round(self.games * self.validation) == 0:
            raise ConfigError(
                f"--validation = {self.validation}: is no game of {self.games}; ask for more games, or a larger share"
            )
        for name in self.levels:
            least = _tokens(system_prompt(level(name), self.ticks_per_turn)) + 250 + 20 * self.ticks_per_turn
            if self.max_tokens is not None and self.max_tokens < least:
                raise ConfigError(f"--max-tokens = {self.max_tokens}: must be at least {least}, the prompt and one turn")
        return self


# --- making them --------------------------------------------------------------------------------------------------


def write(plan: Plan, output: Path, numbers: Path | None = None, jobs: int | None = 1, backend: str | None = None) -> str:
    """Write the demonstrations of `plan` to `output` (and `…validation.jsonl` beside it) and return what was written, in words.

    Args:
        plan: what to demonstrate.
        output: the file of the training part.
        numbers: where to write the same games as arrays, see `save_numbers`.
        jobs: processes; None for one per processor. They change nothing in the files.
        backend: the cluster that they run on, see `system.jobs.spread`; None for this machine.

    Raises:
        ConfigError: the plan cannot be carried out.
        FlappyError: the policy crashes too often to demonstrate anything.
    """
    plan.check()
    check_jobs(jobs, backend)
    held_out = round(plan.games * plan.validation)
    beside = output.with_name(f"{output.stem}.validation{output.suffix}")
    files = {"-o": output, "--numbers": numbers} | ({"the validation part": beside} if held_out else {})
    _check_apart({option: path for option, path in files.items() if path is not None})
    parts = [(output, TRAINING_SEEDS[plan.seed], plan.games - held_out)]
    if held_out:
        parts.append((beside, VALIDATION_SEEDS[plan.seed], held_out))
    lines_written, flown = [], []
    with ExitStack() as written, tqdm(total=plan.games, unit="game", disable=None, leave=False) as progress:
        for path, first, count in parts:
            temporary = written.enter_context(replacing(path))
            lines = turns = 0
            with open(temporary, "w", encoding="utf-8", newline="\n") as file:
                for one in _games(plan, first, count, True, jobs, backend):
                    file.writelines(f"{line}\n" for line in one.lines)
                    lines += len(one.lines)
                    turns += one.turns
                    if numbers is not None:
                        flown.append(one.game)
                    progress.update()
            lines_written.append(f"{path}: {count} games, {turns} turns in {lines} lines")
        if numbers is not None:
            with replacing(numbers) as temporary:
                save_numbers(flown, temporary)
            lines_written.append(f"{numbers}: the same as arrays")
    return "\n".join(lines_written)


def _check_apart(files: dict[str, Path]) -> None:
    """Raise ConfigError where two of the files to be written are one."""
    for option, path in files.items():
        for other, taken in files.items():
            if option != other and os.path.realpath(path) == os.path.realpath(taken):
                raise ConfigError(f"{other} {taken}: is the file of {option} too; name another")


class Demonstration(NamedTuple):
    """One game as it was demonstrated."""

    level: str
    seed: int
    perturbed: bool
    start: State
    """Where it begins; units."""
    seen: list[str]
    """What was read before each reply."""
    replies: list[str]
    taps: list[bool]
    """What was flown, tick by tick."""


def demonstrations(plan: Plan, validation: bool = False) -> Iterator[Demonstration]:
    """Yield the games of a plan: the training part, or the one kept apart. Raises as `write` does."""
    plan.check()
    held_out = round(plan.games * plan.validation)
    first = (VALIDATION_SEEDS if validation else TRAINING_SEEDS)[plan.seed]
    for flown in _games(plan, first, held_out if validation else plan.games - held_out):
        yield flown.game


class _Flown(NamedTuple):
    """A game as other processes hand it over: its lines already written, its words no longer needed."""

    game: Demonstration
    lines: list[str]
    turns: int


class _Task(NamedTuple):
    """Seeds to try one after the other, the levels in turn from that of game `made`."""

    plan: Plan
    seeds: range
    made: int
    written: bool


def _fly(task: _Task) -> tuple[_Task, list[_Flown]]:
    plan, flown = task.plan, list[_Flown]()
    for seed in task.seeds:
        # The level goes by the games made, so that the levels are mixed evenly however often each is crashed on.
        game = _demonstrate(plan, plan.levels[(task.made + len(flown)) % len(plan.levels)], seed)
        if game is not None and task.written:
            lines = [json.dumps(line) for line in _lines(plan, game)]
            flown.append(_Flown(game._replace(seen=[], replies=[]), lines, len(game.replies)))
        elif game is not None:
            flown.append(_Flown(game, [], len(game.replies)))
    return task, flown


def _games(
    plan: Plan, first: int, count: int, written: bool = False, jobs: int | None = 1, backend: str | None = None
) -> Iterator[_Flown]:
    """Yield `count` games from seed `first` on, the same ones however many processes fly them."""
    tried = crashed = 0

    def tasks(seeds: range) -> Iterator[_Task]:
        for at in range(0, len(seeds), CHUNK):
            some = seeds[at : at + CHUNK]
            # As if what is still in the air lands: so it does with a policy that is worth demonstrating, and else is flown again.
            yield _Task(plan, some, some.start - first - crashed, written)

    while tried - crashed < count and tried < count * TRIES:
        seeds = range(first + tried, first + min(count + crashed, count * TRIES))
        tried += len(seeds)
        for task, flown in spread(_fly, tasks(seeds), *((1, None) if len(seeds) <= FEW else (jobs, backend))):
            made = task.seeds.start - first - crashed
            if (task.made - made) % len(plan.levels):
                _, flown = _fly(task._replace(made=made))
            crashed += len(task.seeds) - len(flown)
            yield from flown
    if tried - crashed < count:
        where, made = ", ".join(plan.levels), tried - crashed
        raise FlappyError(f"{plan.policy} got through only {made} of {count * TRIES} games on {where}: choose a better one")


def _demonstrate(plan: Plan, name: str, seed: int) -> Demonstration | None:
    """Return the game `seed` as the policy flies it, None where it crashes."""
    config, dice = level(name), random.Random(seed)
    perturbed = dice.random() < plan.perturbed
    start = _off_course(plan, config, seed, dice) if perturbed else State()
    game = FlappyGame(config, seed, max_ticks=plan.max_turns, state=start)
    seen, replies, flown = [], [], []
    physics, choose = game.course.physics, CHOICES[plan.policy]
    known_until = 0
    trail = [start]
    while game.outcome is None:
        observation = game.observation()
        if game.tick >= known_until:
            sight, known_until = Sight.at(game.course, game.tick)
        choice = choose(sight, game.state)
        thought = explain(observation, sight, choice)
        taps = [choice.tap]
        ahead = observation
        while len(taps) < plan.ticks_per_turn:
            ahead = imagine(ahead, taps[-1], config)
            taps.append(choose(Sight.of(ahead, physics), State(ahead.tick, ahead.y, ahead.velocity)).tap)
        seen.append(card(observation, physics, trail if plan.ticks_per_turn > 1 else None))
        replies.append(write_reply(tuple(taps), thought))
        trail = [game.state]
        for tap in taps:
            flown.append(tap)
            if game.step(tap) is not None:
                break
            trail.append(game.state)
    return None if game.terminated else Demonstration(name, seed, start.tick > 0, start, seen, replies, flown)


def _off_course(plan: Plan, config: FlappyConfig, seed: int, dice: random.Random) -> State:
    """Return a survivable state that random flying has led to on the course `seed`; the beginning if none is found."""
    course = Course(config, seed)
    survival = Survival.of(course, plan.max_turns)
    game, choose = FlappyGame(config, seed), CHOICES[plan.policy]
    for _ in range(dice.randrange(max(plan.max_turns - LONGEST_SLIP, 1))):
        tap = choose(Sight.at(course, game.tick)[0], game.state).tap
        if game.step(tap) is not None:
            return State()
    for _ in range(TRIES):
        slip = FlappyGame(config, seed, state=game.state)
        for _ in range(dice.randint(1, LONGEST_SLIP)):
            slip.step(dice.random() < 0.5)
            if slip.outcome is not None:
                break
        if slip.outcome is None and slip.tick < plan.max_turns and survival.survives(slip.state):
            return slip.state
    return State()


def explain(seen: Observation, sight: Sight, choice: Choice) -> str:
    """Return the thought of a demonstration: both next states, the gap's edges, the choice and its reason."""
    physics = sight.physics
    rises = move(seen.y, seen.velocity, True, physics.jump, physics.gravity)
    falls = move(seen.y, seen.velocity, False, physics.jump, physics.gravity)
    if sight.ahead:
        appeared, gap_y, height = sight.ahead[0]
        edges = f"{to_text(gap_y - height // 2)} to {to_text(gap_y + height // 2)}"
        gap = f"Next gap {edges}, pipe at x {to_text(physics.world_w - (seen.tick - appeared) * physics.speed)}."
    else:
        gap = "No pipe ahead."
    return (
        f"birdY {to_text(seen.y)}, velY {to_text(seen.velocity)}. "
        f"TAP: velY {to_text(rises[1])}, birdY {to_text(rises[0])}. "
        f"No TAP: velY {to_text(falls[1])}, birdY {to_text(falls[0])}. "
        f"{gap} {choice.why[0].upper()}{choice.why[1:]}: {'TAP' if choice.tap else 'no TAP'}."
    )


_TRAIL = re.compile(r"trail:\[.*\]")


def _lines(plan: Plan, game: Demonstration) -> Iterator[dict[str, Any]]:
    """Yield the transcripts of a game: one, or as many pieces as the token cap makes of it."""
    config = level(game.level)
    system = system_prompt(config, plan.ticks_per_turn)
    messages: list[dict[str, str]] = []
    tokens, first, state = 0, 0, game.start
    starts = _states_of_turns(game, config, plan)
    for turn, (seen, reply) in enumerate(zip(game.seen, game.replies, strict=True)):
        cost = _tokens(seen) + _tokens(reply)
        if messages and plan.max_tokens is not None and tokens + cost > plan.max_tokens:
            yield _line(plan, game, config, first, state, messages)
            messages = []
        if not messages:
            messages, first, state = [{"role": "system", "content": system}], turn, starts[turn]
            seen = _TRAIL.sub("trail:[]", seen)  # of turns that are not in this piece
            tokens = _tokens(system)
        messages += [{"role": "user", "content": seen}, {"role": "assistant", "content": reply}]
        tokens += cost
    if messages:
        yield _line(plan, game, config, first, state, messages)


def _states_of_turns(game: Demonstration, config: FlappyConfig, plan: Plan) -> list[State]:
    if plan.max_tokens is None:
        return [game.start]
    replay, states = FlappyGame(config, game.seed, state=game.start), []
    for at, tap in enumerate(game.taps):
        if at % plan.ticks_per_turn == 0:
            states.append(replay.state)
        replay.step(tap)
    return states


def _line(
    plan: Plan, game: Demonstration, config: FlappyConfig, turn: int, state: State, messages: list[dict[str, str]]
) -> dict[str, Any]:
    return {
        "messages": messages,
        "seed": game.seed,
        "difficulty": game.level,
        "config": config.model_dump(),
        "rules": {"max_turns": plan.max_turns, "ticks_per_turn": plan.ticks_per_turn},
        "policy": plan.policy,
        "perturbed": game.perturbed,
        "turn": turn,
        "start": state._asdict(),
    }


def _tokens(text: str) -> int:
    return int(len(text) / CHARACTERS_PER_TOKEN) + TOKENS_PER_MESSAGE


# --- checking them ------------------------------------------------------------------------------------------------

_THOUGHT = re.compile(
    r"birdY (\S+), velY (\S+)\. TAP: velY (\S+), birdY (\S+)\. No TAP: velY (\S+), birdY (\S+)\. "
    r"(?:No pipe ahead\.|Next gap (\S+) to (\S+), pipe at x (\S+)\.) [^.:]+: (TAP|no TAP)\."
)


def problems(line: str | dict[str, Any]) -> list[str]:
    """Return what is wrong with a line of demonstrations, replayed word by word; nothing for a true one.

    Raises:
        EpisodeError: it is no line of demonstrations at all.
    """
    data = parse_json(line, "line") if isinstance(line, str) else line
    try:
        config, rules = FlappyConfig(**data["config"]), Rules(**data["rules"])
        messages, start = data["messages"], State(**data["start"])
        game = FlappyGame(config, data["seed"], max_ticks=rules.max_turns, state=start)
        roles, words = [said["role"] for said in messages], [said["content"] for said in messages]
    except (KeyError, TypeError, ConfigError) as error:
        raise EpisodeError(f"not a line of demonstrations: {show(str(error))}") from None
    found = []
    if game.seed not in TRAINING_SEEDS and game.seed not in VALIDATION_SEEDS:
        found.append(f"seed {game.seed} is not one of training or validation")
    if roles != ["system", *["user", "assistant"] * (len(words) // 2)]:
        return [*found, f"roles are {show(roles)}"]
    if words[0] != system_prompt(config, rules.ticks_per_turn):
        found.append("the system prompt is another")
    trail = [start]
    for turn, (seen, said) in enumerate(zip(words[1::2], words[2::2], strict=True)):
        if game.outcome is not None:
            return [*found, f"turn {turn}: the game had ended ({game.outcome})"]
        if seen != card(game.observation(), game.course.physics, trail if rules.trail else None):
            found.append(f"turn {turn}: the observation is another")
        reply = read_reply(said, ticks=rules.ticks_per_turn)
        if reply.status is not Status.OK or reply.format < 1:
            found.append(f"turn {turn}: the reply is {reply.status.value}, format {reply.format}")
        found += [f"turn {turn}: {fault}" for fault in _untrue(reply.thought, reply.actions[0], game.observation(), game)]
        trail = [game.state]
        for tap in reply.actions:
            if game.step(tap) is not None:
                break
            trail.append(game.state)
    if game.outcome is not None and game.outcome.reason is not Reason.TICK_LIMIT:
        found.append(f"the bird crashes: {game.outcome}")
    return found


def _untrue(thought: str, tap: bool, seen: Observation, game: FlappyGame) -> list[str]:
    """Return what a thought says that is not so."""
    said = _THOUGHT.fullmatch(thought)
    if said is None:
        return [f"the thought is {show(thought)}"]
    physics: Physics = game.course.physics
    rises = move(seen.y, seen.velocity, True, physics.jump, physics.gravity)
    falls = move(seen.y, seen.velocity, False, physics.jump, physics.gravity)
    coming = [(x, gap_y) for x, gap_y in seen.pipes if not physics.passed(x)]
    gap: tuple[int | None, ...] = (None, None, None)
    if coming:
        x, gap_y = coming[0]
        gap = (gap_y - seen.gap_height // 2, gap_y + seen.gap_height // 2, x)
    true = (seen.y, seen.velocity, *reversed(rises), *reversed(falls), *gap)
    try:
        stated = tuple(None if value is None else from_text(value) for value in said.groups()[:9])
    except ValueError as error:
        return [str(error)]
    names = ("birdY", "velY", "velY with TAP", "birdY with TAP", "velY without", "birdY without", "edge", "edge", "pipe")
    faults = [
        f"{name} is {show(a)}, the thought says {show(b)}" for name, a, b in zip(names, true, stated, strict=True) if a != b
    ]
    if (said[10] == "TAP") != tap:
        faults.append("the thought ends in another action than the reply")
    return faults


# --- the same as numbers ------------------------------------------------------------------------------------------


def save_numbers(games: list[Demonstration], path: Path) -> None:
    """Write games as one .npz file of arrays, game after game, for offline reinforcement learning.

    `observations` float32 (ticks + games, 8), see `batch.FEATURES`: those before each action and the last one of each game;
    `actions` int8 (ticks,); `rewards` float64 (ticks,): the card's without format, as in `gymnasium_env`;
    `lengths` int64 (games,): ticks per game; `seeds` int64 (games,); `levels` text (games,). Every game ends by its tick
    limit, none by a crash.

    Raises:
        MissingPart: numpy or numba is not installed.
    """
    import numpy as np

    from flappybird.batch import FEATURES, FlappyBatch, Pay

    pay = Pay(tuple(TICK_REWARDS), PIPE_REWARD)
    observations: list[Any] = [np.zeros((0, len(FEATURES)))] * len(games)
    rewards: list[Any] = [np.zeros(0)] * len(games)
    for name in dict.fromkeys(game.level for game in games):
        of_level = [place for place, game in enumerate(games) if game.level == name]
        for first in range(0, len(of_level), AT_ONCE):
            places = of_level[first : first + AT_ONCE]
            flown = [games[place] for place in places]
            taps = np.zeros((max(len(game.taps) for game in flown), len(flown)), bool)
            for column, game in enumerate(flown):
                taps[: len(game.taps), column] = game.taps
            batch = FlappyBatch(level(name), [game.seed for game in flown], pay=pay, states=[game.start for game in flown])
            seen, paid = [batch.observe()], []
            for row in taps:  # games that are over fly on, unseen
                batch.step(row)
                seen.append(batch.observe())
                paid.append(batch.rewards)
            for column, (place, game) in enumerate(zip(places, flown, strict=True)):
                observations[place] = np.array([numbers[column] for numbers in seen[: len(game.taps) + 1]])
                rewards[place] = np.array([reward[column] for reward in paid[: len(game.taps)]])
    with open(path, "wb") as file:
        np.savez_compressed(
            file,
            observations=np.concatenate(observations),
            actions=np.array([tap for game in games for tap in game.taps], np.int8),
            rewards=np.concatenate(rewards),
            lengths=np.array([len(game.taps) for game in games], np.int64),
            seeds=np.array([game.seed for game in games], np.int64),
            levels=np.array([game.level for game in games]),
        )
