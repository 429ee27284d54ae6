"""From a rollout to a scored episode, and from an episode to what is true of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from flappybird.episodes import rewards
from flappybird.episodes.episode import Ending, Episode, Replay, replay, words
from flappybird.errors import show
from flappybird.world.game import Outcome, Reason

CUT_SHORT = (Reason.ABORTED, Reason.CONTEXT, Reason.ERROR)
"""Endings that come from outside of the game, so that a replay cannot give them."""


class Difference(NamedTuple):
    """Something that an episode claims and its replay denies."""

    where: str
    """What differs, such as `turns[12].actions` or `outcome.reward`."""
    tick: int
    """The tick to look at."""
    stored: Any
    replayed: Any

    def __str__(self) -> str:
        return f"tick {self.tick}: {self.where} is {show(self.stored)}, replay gives {show(self.replayed)}"


def verify(episode: Episode, replayed: Replay | None = None) -> list[Difference]:
    """Compare everything that `episode` claims with its replay; return what differs, in the order of the ticks.

    `replayed` is the episode's replay, where there already is one.
    """
    flown = replayed or replay(episode)
    found: list[Difference] = []
    for index, (turn, tick) in enumerate(zip(episode.turns, flown.starts(), strict=False)):
        claims: list[tuple[str, Any, Any]] = [("tick", turn.tick, tick)]
        if turn.read is not None:
            claims.append(("status", turn.status, turn.read.status))
            claims.append(("actions", turn.taps, turn.read.actions))
            claims.append(("ignored", turn.ignored, turn.read.ignored))
        for name, stored, given in claims:
            if stored != given:
                found.append(Difference(f"turns[{index}].{name}", tick, *_in_words(name, stored, given)))
    last = flown.states[-1].tick
    if flown.used < len(episode.turns):
        found.append(Difference(f"turns[{flown.used}]", last, "a turn", f"the game had ended: {flown.outcome}"))

    if flown.outcome is None and episode.outcome.reason not in CUT_SHORT:
        found.append(Difference("outcome.reason", last, episode.outcome.reason.value, "the game goes on"))
    for name, value in true_ending(episode, flown):
        stored = getattr(episode.outcome, name)
        if stored != value and not (isinstance(value, float) and abs(stored - value) < 1e-9):
            found.append(Difference(f"outcome.{name}", last, stored, value))
    return found


def _in_words(name: str, stored: Any, given: Any) -> tuple[Any, Any]:
    """Return two values as the file spells them."""
    if name == "actions":
        return words(stored), words(given)
    return (stored.value, given.value) if name == "status" else (stored, given)


def true_ending(episode: Episode, replayed: Replay) -> Ending:
    """Return how `episode` ended and what it scored by its replay; where its turns stop before the game does, as it claims."""
    claimed = episode.outcome
    outcome = replayed.outcome
    if outcome is None:
        pipe = None if claimed.reason in CUT_SHORT else claimed.pipe
        outcome = Outcome(claimed.reason, replayed.states[-1].tick, pipe)
    return rewards.ending(episode.turns, outcome, replayed.pipes_passed, claimed.error)
