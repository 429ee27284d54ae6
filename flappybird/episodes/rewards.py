"""One function per reward and metric, over an episode: the same in the rubric, in the report and in the tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flappybird.episodes.episode import Ending, Episode, Player, Turn, replay
from flappybird.episodes.rollout import Rollout
from flappybird.protocol.reply import Status, read_reply
from flappybird.protocol.rules import Rules
from flappybird.world.game import Outcome, Reason

WEIGHTS = {"pipes_passed": 2.0, "survival_score": 0.2, "format": 0.2}
"""The card's weights: reward = 2.0 × pipes + 0.2 × survival + 0.2 × format."""

SURVIVAL_BASE = 1.0
SURVIVAL_RAMP = 0.005
SURVIVAL_RAMP_TICKS = 80


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
    return _format(episode.turns, episode.rules)


def reward(episode: Episode) -> float:
    """2.0 × pipes + 0.2 × survival + 0.2 × format."""
    return _reward(pipes_passed(episode), survival_score(episode), format_score(episode))


def turn_rewards(episode: Episode) -> list[float]:
    """Return what each turn added to the reward: pipes passed and ticks survived while it flew, and its share of the format.

    They add up to `reward`. A turn that crashes gets nothing for the tick of the crash.
    """
    turns, flown = episode.turns, replay(episode)
    shares = [WEIGHTS["format"] * _turn_format(turn, episode.rules) / len(turns) for turn in turns]
    crashed = flown.outcome is not None and flown.outcome.reason.crashed
    for tick, turn in enumerate(flown.turn_at[:-1] if crashed else flown.turn_at, start=1):
        passed = flown.course.passed(tick) - flown.course.passed(tick - 1)
        lived = SURVIVAL_BASE * (1 + SURVIVAL_RAMP * min(tick, SURVIVAL_RAMP_TICKS))
        shares[turn] += WEIGHTS["pipes_passed"] * passed + WEIGHTS["survival_score"] * lived
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


def scores(turns: Sequence[Turn], rules: Rules, outcome: Outcome, pipes: int) -> dict[str, Any]:
    """Return the scores of an `Ending`, from how the game went."""
    survived, formatted = _survival(outcome.reason, outcome.tick), _format(turns, rules)
    return {
        "pipes_passed": pipes,
        "survival_score": survived,
        "format": formatted,
        "reward": _reward(pipes, survived, formatted),
    }


def scored(episode: Episode) -> Ending:
    """Return the ending of `episode` with its scores filled in from its turns."""
    ending = episode.outcome
    outcome = Outcome(ending.reason, ending.ticks, ending.pipe)
    return ending.model_copy(update=scores(episode.turns, episode.rules, outcome, ending.pipes_passed))


def _survival(reason: Reason, ticks: int) -> float:
    return survival(ticks - 1 if reason.crashed else ticks)


def _format(turns: Sequence[Turn], rules: Rules) -> float:
    if not turns:
        return 0.0
    return sum(_turn_format(turn, rules) for turn in turns) / len(turns)


def _turn_format(turn: Turn, rules: Rules) -> float:
    if turn.reply is None:
        return 0.0
    return read_reply(turn.reply, turn.reasoning, cut=turn.cut, ticks=rules.ticks_per_turn).format


def _reward(pipes: float, survived: float, formatted: float) -> float:
    return WEIGHTS["pipes_passed"] * pipes + WEIGHTS["survival_score"] * survived + WEIGHTS["format"] * formatted


def finish(rollout: Rollout, player: Player, *, origin: dict[str, Any] | None = None, error: str | None = None) -> Episode:
    """Return the episode that `rollout` has become; one that has not ended is marked as aborted, or as an error."""
    if rollout.outcome is None:
        rollout.end(Reason.ABORTED if error is None else Reason.ERROR)
    outcome = rollout.outcome
    assert outcome is not None
    turns = [Turn(**turn) for turn in rollout.turns]
    episode = Episode(
        seed=rollout.game.seed,
        config=rollout.game.config,
        rules=rollout.rules,
        player=player,
        turns=turns,
        outcome=Ending(
            reason=outcome.reason,
            ticks=outcome.tick,
            pipe=outcome.pipe,
            pipes_passed=rollout.game.score,
            survival_score=0.0,
            format=0.0,
            reward=0.0,
            error=error,
        ),
        origin=origin or {},
    )
    return episode.model_copy(update={"outcome": scored(episode)})
