"""A game as lines of a data set: cut as the environment cuts what a model sees of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from flappybird.demonstrations.games import Demonstration
from flappybird.demonstrations.plan import Plan
from flappybird.demonstrations.tokens import TOKENS_PER_LINE, counter
from flappybird.errors import ConfigError
from flappybird.protocol.prompt import prompt_of
from flappybird.protocol.window import first_kept
from flappybird.world.levels import level

Message = dict[str, Any]


class Piece(NamedTuple):
    """Turns whose requests begin alike."""

    first: int
    """The first turn that a request holds."""
    answered: range
    """The turns whose replies are learnt; those before are there to be read."""


def lines(plan: Plan, game: Demonstration) -> Iterator[dict[str, Any]]:
    """Yield the lines of a game, in the form that `plan` asks for. Raises ConfigError where one exceeds the token cap."""
    for piece in pieces(plan, game):
        if plan.form == "messages":
            said = _said(plan, game, piece.first, piece.answered.stop)
            if piece.first < piece.answered.start:
                for at, message in enumerate(said[2::2]):
                    message["weight"] = int(piece.first + at in piece.answered)
            yield _line(plan, game, piece.first, piece.answered.stop, {"messages": said})
        else:
            for turn in piece.answered:
                *prompt, reply = _said(plan, game, piece.first, turn + 1)
                yield _line(plan, game, piece.first, turn + 1, {"prompt": prompt, "completion": [reply]})


def preferences(plan: Plan, game: Demonstration) -> Iterator[dict[str, Any]]:
    """Yield, for each decisive turn of a game, a reply that keeps the bird alive and one after which nothing can save it."""
    for piece in pieces(plan, game):
        for turn in piece.answered:
            if game.rejected[turn]:
                *prompt, chosen = _said(plan, game, piece.first, turn + 1)
                rejected = {"role": "assistant", "content": game.rejected[turn]}
                pair = {"prompt": prompt, "chosen": [chosen], "rejected": [rejected]}
                yield _line(plan, game, piece.first, turn + 1, pair)


def pieces(plan: Plan, game: Demonstration) -> Iterator[Piece]:
    """Yield the pieces of a game: cut as `first_kept` cuts, and where all turns are kept, by the token cap."""
    window = plan.rules.history_turns
    for first, turns in groupby(range(len(game.replies)), lambda turn: first_kept(turn, window)):
        answered = list(turns)
        if plan.max_tokens is None:
            yield Piece(first, range(answered[0], answered[-1] + 1))
        else:
            yield from _capped(plan, game, Piece(first, range(answered[0], answered[-1] + 1)))


def _capped(plan: Plan, game: Demonstration, piece: Piece) -> Iterator[Piece]:
    """Yield a piece cut so that none exceeds the token cap: into parts that begin anew, where the model sees all turns."""
    count, most, window = counter(plan.tokenizer), plan.max_tokens or 0, plan.rules.history_turns
    head = count([prompt_of(level(game.level), plan.rules)]) + TOKENS_PER_LINE
    tokens, first, start = head, piece.first, piece.answered.start
    for turn in range(piece.first, piece.answered.stop):
        replies = (game.replies[turn], *game.rejected[turn : turn + 1])
        more = count([game.seen[turn]]) + max(count([reply]) for reply in replies)
        if tokens + more > most and window == 0 and turn > first:
            yield Piece(first, range(start, turn))
            tokens, first, start = head, turn, turn
        tokens += more
        if tokens > most:
            what = f"a window of {window} turns" if window > 0 else "the prompt and one turn"
            raise ConfigError(
                f"--max-tokens = {most}: must be at least {_least(tokens, turn, piece)}, for {what} on {game.level}"
            )
    yield Piece(first, range(start, piece.answered.stop))


def _least(tokens: int, turn: int, piece: Piece) -> int:
    """Return about how many tokens a piece is that is `tokens` long up to `turn`."""
    done = turn + 1 - piece.first
    return tokens if piece.first == turn else tokens * (piece.answered.stop - piece.first) // done


def _said(plan: Plan, game: Demonstration, first: int, end: int) -> list[Message]:
    said: list[Message] = [{"role": "system", "content": prompt_of(level(game.level), plan.rules)}]
    for seen, reply in zip(game.seen[first:end], game.replies[first:end], strict=True):
        said += [{"role": "user", "content": seen}, {"role": "assistant", "content": reply}]
    return said


def _line(plan: Plan, game: Demonstration, first: int, end: int, said: dict[str, Any]) -> dict[str, Any]:
    line = said | {
        "seed": game.seed,
        "difficulty": game.level,
        "config": level(game.level).model_dump(),
        "rules": plan.rules.model_dump(),
        "policy": plan.policy,
        "think": plan.think,
        "perturbed": game.perturbed,
        "turn": first,
        "start": game.moments[first].to_dict(),
    }
    if plan.marks:
        line["marks"] = [mark._asdict() for mark in game.marks[first:end]]
    return line
