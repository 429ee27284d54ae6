"""From a rollout to a scored episode, and from an episode to what is true of it."""

from __future__ import annotations

from typing import Any, NamedTuple

from flappybird.episodes import rewards
from flappybird.episodes.episode import Episode, fly
from flappybird.episodes.rollout import Rollout
from flappybird.errors import show
from flappybird.protocol.reply import read_reply
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


def verify(episode: Episode) -> list[Difference]:
    """Compare everything that `episode` claims with its replay; return what differs, in the order of the ticks."""
    found: list[Difference] = []
    rollout = Rollout(episode.config, episode.seed, episode.rules)
    for index, turn in enumerate(episode.turns):
        tick = rollout.game.tick
        if rollout.outcome is not None:
            found.append(Difference(f"turns[{index}]", tick, "a turn", f"the game had ended: {rollout.outcome}"))
            break
        claims: list[tuple[str, Any, Any]] = [("tick", turn.tick, tick)]
        if turn.reply is not None:
            reply = read_reply(turn.reply, turn.reasoning, cut=turn.cut, ticks=episode.rules.ticks_per_turn)
            claims += [
                ("status", turn.status.value, reply.status.value),
                ("actions", turn.actions, ["TAP" if tap else "NOOP" for tap in reply.actions]),
                ("ignored", turn.ignored, reply.ignored),
            ]
        found += [Difference(f"turns[{index}].{name}", tick, stored, given) for name, stored, given in claims if stored != given]
        fly(rollout, turn)

    claimed = episode.outcome
    if rollout.outcome is None and claimed.reason in CUT_SHORT:
        rollout.end(claimed.reason)
    outcome, tick = rollout.outcome, rollout.game.tick
    if outcome is None:
        found.append(Difference("outcome.reason", tick, claimed.reason.value, "the game goes on"))
        outcome = Outcome(claimed.reason, tick, claimed.pipe)
    scores = rewards.scores(episode.turns, episode.rules, outcome, rollout.game.score)
    given = {"reason": outcome.reason.value, "ticks": outcome.tick, "pipe": outcome.pipe, **scores}
    for name, value in given.items():
        stored = getattr(claimed, name)
        if stored != value and not (isinstance(value, float) and abs(stored - value) < 1e-9):
            found.append(Difference(f"outcome.{name}", tick, stored, value))
    return found
