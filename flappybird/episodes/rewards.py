"""One function per reward and metric, over an episode: the same in the rubric, in the report and in the tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flappybird.episodes.episode import Ending, Episode, Player, Replay, Turn, replay
from flappybird.episodes.rollout import Rollout
from flappybird.protocol.reply import Status
from flappybird.world.game import Outcome, Reason

WEIGHTS = {"pipes_passed": 2.0, "survival_score": 0.2, "format": 0.2}
"""The card's weights: reward = 2.0 × pipes + 0.2 × survival + 0.2 × format."""

SURVIVAL_BASE = 1.0
SURVIVAL_RAMP = 0.005
SURVIVAL_RAMP_TICKS = 80


def survived(tick: int) -> float:
    """Return what a tick that the bird survives adds to the survival score; `tick` is counted from 1."""
    return SURVIVAL_BASE * (1 + SURVIVAL_RAMP * min(tick, SURVIVAL_RAMP_TICKS))


def survival(ticks: int) -> float:
    """Return the survival score after `ticks` ticks survived: the sum of 1.0 × (1 + 0.005 × min(tick, 80)).

    >>> survival(300)
    404.2
    """
    ramped = min(ticks, SURVIVAL_RAMP_TICKS)
    # In thousandths, so that the sum is exact.
    thousandths = 1000 * ticks + 5 * (ramped * (ramped + 1) // 2 + SURVIVAL_RAMP_TICKS * (ticks - ramped))
    return thousandths / 1000


def pipes_passed(episode: Episode) -> float:
    """Number of pipes passed."""
    return float(episode.outcome.pipes_passed)


def survival_score(episode: Episode) -> float:
    """Accumulated survival bonus; the tick of a crash adds nothing."""
    return _survival(episode.outcome.reason, episode.outcome.ticks)


def format_score(episode: Episode) -> float:
    """Mean over the turns of `Reply.format`; 0.0 where nothing was written."""
    return _format(episode.turns)


def reward(episode: Episode) -> float:
    """2.0 × pipes + 0.2 × survival + 0.2 × format."""
    return _reward(pipes_passed(episode), survival_score(episode), format_score(episode))


def turn_rewards(episode: Episode, replayed: Replay | None = None) -> list[float]:
    """Return what each turn added to the reward: pipes passed and ticks survived while it flew, and its share of the format.

    They add up to `reward`. A turn that crashes gets nothing for the tick of the crash. `replayed` is the episode's replay,
    where there already is one.
    """
    turns, flown = episode.turns, replayed or replay(episode)
    shares = [WEIGHTS["format"] * turn.format / len(turns) for turn in turns]
    for tick, turn in enumerate(flown.turn_at[:-1] if flown.crashed else flown.turn_at, start=1):
        passed = flown.course.passed(tick) - flown.course.passed(tick - 1)
        shares[turn] += WEIGHTS["pipes_passed"] * passed + WEIGHTS["survival_score"] * survived(tick)
    return shares


def done(episode: Episode) -> float:
    """1.0 after a crash."""
    return float(episode.outcome.reason.crashed)


def ticks(episode: Episode) -> float:
    """Ticks played."""
    return float(episode.outcome.ticks)


def invalid_actions(episode: Episode) -> float:
    """Turns whose status is not `ok`."""
    return float(sum(turn.status is not Status.OK for turn in episode.turns))


def death_floor(episode: Episode) -> float:
    """1.0 where the bird hit the floor."""
    return float(episode.outcome.reason is Reason.FLOOR)


def death_ceiling(episode: Episode) -> float:
    """1.0 where the bird hit the ceiling."""
    return float(episode.outcome.reason is Reason.CEILING)


def death_pipe(episode: Episode) -> float:
    """1.0 where the bird hit a pipe."""
    return float(episode.outcome.reason is Reason.PIPE)


METRICS = (ticks, invalid_actions, death_floor, death_ceiling, death_pipe)
"""Our metrics beside the card's `pipes_passed`, `survival_score`, `done` and `reward`."""

ALL_METRICS = (pipes_passed, survival_score, done, *METRICS)
"""Every metric of a rollout beside its reward."""


def scores(outcome: Outcome, pipes: int, formatted: float) -> dict[str, float]:
    """Return the scores of a game that ended like this with `pipes` passed; `formatted` is its mean format score."""
    lived = _survival(outcome.reason, outcome.tick)
    return {
        "pipes_passed": pipes,
        "survival_score": lived,
        "format": formatted,
        "reward": _reward(pipes, lived, formatted),
    }


def ending(turns: Sequence[Turn], outcome: Outcome, pipes: int, error: str | None = None) -> Ending:
    """Return how an episode of these turns ended, with its scores; `pipes` were passed, `error` is what broke."""
    scored: dict[str, Any] = scores(outcome, pipes, _format(turns))
    return Ending(reason=outcome.reason, ticks=outcome.tick, pipe=outcome.pipe, **scored, error=error)


def _survival(reason: Reason, ticks: int) -> float:
    return survival(ticks - 1 if reason.crashed else ticks)


def _format(turns: Sequence[Turn]) -> float:
    return sum(turn.format for turn in turns) / len(turns) if turns else 0.0


def _reward(pipes: float, lived: float, formatted: float) -> float:
    return WEIGHTS["pipes_passed"] * pipes + WEIGHTS["survival_score"] * lived + WEIGHTS["format"] * formatted


def finish(rollout: Rollout, player: Player, *, origin: dict[str, Any] | None = None, error: str | None = None) -> Episode:
    """Return the episode that `rollout` has become; one that has not ended is marked as aborted, or as an error."""
    if rollout.outcome is None:
        rollout.end(Reason.ABORTED if error is None else Reason.ERROR)
    outcome = rollout.outcome
    assert outcome is not None
    turns = [Turn.of(turn, rollout.read.get(index)) for index, turn in enumerate(rollout.turns)]
    return Episode(
        seed=rollout.game.seed,
        config=rollout.game.config,
        rules=rollout.rules,
        player=player,
        turns=turns,
        outcome=ending(turns, outcome, rollout.game.score, error),
        origin=origin or {},
    )
