"""A row against its replay: everything that was saved of it."""

from __future__ import annotations

from flappybird.episodes import rewards
from flappybird.episodes.episode import Episode, Turn, fly
from flappybird.episodes.rollout import Rollout
from flappybird.episodes.verify import Difference, verify
from flappybird.runs.run import Row


def check(row: Row) -> list[Difference]:
    """Compare all that `row` claims, its episode, its observations, its scores, with the replay; return what differs."""
    episode = row.episode
    if episode is None:
        return []
    found = verify(episode)
    rollout = Rollout(episode.config, episode.seed, episode.rules)
    compared = True  # up to the first difference, of which the others follow
    for index, turn in enumerate(episode.turns):
        if rollout.outcome is not None:
            break
        if compared and (difference := _transcript_difference(row, index, turn, rollout)):
            found.append(difference)
            compared = False
        fly(rollout, turn)
    truth = _scores(episode, rollout)
    for name, value in row.claims.items():
        if name in truth and abs(value - truth[name]) > 1e-9:
            found.append(Difference(name, rollout.game.tick, value, truth[name]))
    return sorted(found, key=lambda difference: difference.tick)


def _transcript_difference(row: Row, index: int, turn: Turn, rollout: Rollout) -> Difference | None:
    """Return what is not, in the transcript of turn `index`, as `turn` and the replay have it."""
    tick, seen, replies = rollout.game.tick, row.observations, row.replies
    if seen is not None:
        given = rollout.message()
        if index >= len(seen):
            return Difference(f"observation[{index}]", tick, "none", given)
        if seen[index] != given:
            return Difference(f"observation[{index}]", tick, *_first_difference(seen[index], given))
    if replies is not None:
        said = (turn.reply or "", turn.reasoning or "")
        if index >= len(replies) or replies[index] != said:
            return Difference(f"turns[{index}].reply", tick, said, replies[index] if index < len(replies) else "none")
    return None


def _first_difference(stored: str, given: str) -> tuple[str, str]:
    """Return the first lines in which two texts differ."""
    old, new = stored.splitlines(), given.splitlines()
    for a, b in zip(old, new, strict=False):
        if a != b:
            return a, b
    return f"{len(old)} lines", f"{len(new)} lines"


def _scores(episode: Episode, rollout: Rollout) -> dict[str, float]:
    """Return every score and metric of the episode as its replay gives it."""
    claimed = episode.outcome
    if rollout.outcome is None:
        rollout.end(claimed.reason)
    outcome = rollout.outcome
    assert outcome is not None
    ending = claimed.model_copy(
        update={
            "reason": outcome.reason,
            "ticks": outcome.tick,
            "pipe": outcome.pipe,
            **rewards.scores(episode.turns, episode.rules, outcome, rollout.game.score),
        }
    )
    true = episode.model_copy(update={"outcome": ending})
    scores = {function.__name__: function(true) for function in (rewards.reward, *rewards.ALL_METRICS)}
    return scores | {
        "flappy_reward_func": scores["pipes_passed"],
        "flappy_survival_reward": scores["survival_score"],
        "format": rewards.format_score(true),
        "format_reward_func": rewards.format_score(true),
        "num_turns": float(len(episode.turns)),
    }
