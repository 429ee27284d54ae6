"""A row against its replay: everything that was saved of it."""

from __future__ import annotations

from flappybird.episodes import rewards
from flappybird.episodes.episode import Episode, Replay, Turn, observations, replay
from flappybird.episodes.verify import Difference, true_ending, verify
from flappybird.runs.run import Row


def check(row: Row, replayed: Replay | None = None) -> list[Difference]:
    """Compare all that `row` claims, its episode, its observations, its scores, with the replay; return what differs."""
    episode = row.episode
    if episode is None:
        return []
    flown = replayed or replay(episode)
    found = verify(episode, flown)
    for index, (tick, given) in enumerate(zip(flown.starts(), observations(episode, flown), strict=True)):
        if difference := _transcript_difference(row, index, episode.turns[index], tick, given):
            found.append(difference)
            break  # the others follow from the first
    truth = _scores(episode, flown)
    for name, value in row.claims.items():
        if name in truth and abs(value - truth[name]) > 1e-9:
            found.append(Difference(name, flown.states[-1].tick, value, truth[name]))
    return sorted(found, key=lambda difference: difference.tick)


def _transcript_difference(row: Row, index: int, turn: Turn, tick: int, given: str) -> Difference | None:
    """Return what is not, in the transcript of turn `index`, as `turn` and the replay have it; `given` was to be read."""
    seen, replies = row.observations, row.replies
    if seen is not None:
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


def _scores(episode: Episode, replayed: Replay) -> dict[str, float]:
    """Return every score and metric of the episode as its replay gives it."""
    true = episode.model_copy(update={"outcome": true_ending(episode, replayed)})
    scores = {function.__name__: function(true) for function in (rewards.reward, *rewards.ALL_METRICS)}
    return scores | {
        "flappy_reward_func": scores["pipes_passed"],
        "flappy_survival_reward": scores["survival_score"],
        "format": rewards.format_score(true),
        "format_reward_func": rewards.format_score(true),
        "num_turns": float(len(episode.turns)),
    }
