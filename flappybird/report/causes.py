"""What lost a game: deaths grouped by the action, or the reply, after which nothing could save the bird."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flappybird.analysis import Analysis
from flappybird.episodes.episode import Episode, Replay
from flappybird.protocol.reply import Status
from flappybird.report.arithmetic import Slip, slips
from flappybird.report.html import ordinal
from flappybird.world.game import Reason

CAUSES = {
    "early": ("Tapped too early", "a TAP lost the game; holding would have lived"),
    "held": ("Held too long", "holding lost the game; a TAP would have lived"),
    "arithmetic": ("Wrong arithmetic in THINK", "the thought of the reply that lost the game states a number that is wrong"),
    "malformed": ("Malformed reply", "the reply was no legal action and flew as no-op"),
    "truncated": ("Truncated reply", "the reply ran into its token limit and flew as no-op"),
    "empty": ("Empty reply", "nothing was said, which flew as no-op"),
    "late": ("No reply had come yet", "the game did not wait, or actions land late"),
    "hopeless": ("No bird could have lived", "the course cannot be flown further than this"),
}
"""Causes of a death by name: what they are called, and what they mean."""


class Cause(NamedTuple):
    """Why a bird died."""

    name: str
    """A key of `CAUSES`."""
    tick: int
    """The tick to look at: the point of no return, or the last one alive."""
    slips: tuple[Slip, ...] = ()
    """What was wrong in the thought of the reply that lost the game."""


def cause_of(episode: Episode, played: Replay, analysis: Analysis) -> Cause | None:
    """Return why the bird of `episode` died; None where it did not."""
    if analysis.death is None:
        return None
    blunder = analysis.blunder
    if blunder is None:
        return Cause("hopeless", max(analysis.death.tick - 1, 0))
    if blunder.turn is None or _before_the_reply(episode, played, blunder.tick, blunder.turn):
        return Cause("late", blunder.tick)
    turn = episode.turns[blunder.turn]
    if turn.status is not Status.OK:
        return Cause(turn.status.value, blunder.tick)
    rules = episode.rules
    decides_a_tick = (rules.ticks_per_turn, rules.latency_ticks, turn.waited) == (1, 0, 0)
    wrong = slips(turn.thought, played.states[blunder.tick] if decides_a_tick else None, played.course.physics)
    name = "arithmetic" if wrong else "early" if blunder.tap else "held"
    return Cause(name, blunder.tick, tuple(wrong[:3]))


def _before_the_reply(episode: Episode, played: Replay, tick: int, turn: int) -> bool:
    """Whether what flew at `tick` was asked for before the reply of `turn` had come: it was one of the ticks that waited."""
    asked = tick - episode.rules.latency_ticks
    return asked - played.turn_at.index(turn) < episode.turns[turn].waited


def death_text(reason: Reason, pipe: int | None) -> str:
    """Return what the bird hit, pipes counted as people count.

    >>> death_text(Reason.PIPE, 5)
    'hit the 6th pipe'
    """
    return f"hit the {ordinal(pipe + 1)} pipe" if reason is Reason.PIPE and pipe is not None else reason.deed


def shares(counts: Sequence[int]) -> list[float]:
    """Return each of `counts` as a share of their sum."""
    total = sum(counts)
    return [count / total if total else 0.0 for count in counts]
