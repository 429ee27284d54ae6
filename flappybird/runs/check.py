"""What `verify` promises of a saved run, and the check of it.

A row is **verified** where all of this holds:

1. Seed, config, rules and replies, played again, give the actions, statuses, ticks, ending and scores that were saved, and every
   reply is in the transcript as it is in the episode.
2. What the model read is what it had to read: the system prompt of this world and these rules, every observation to the byte,
   in this order and nothing else between, before or after them.
3. Reward, every metric, its column and its weight are there, are finite numbers, and are those of the replay.
4. The stop condition, a summary of the ending and rewards by turn, where they were saved, are those of the replay.
5. The row was played by these rules of motion and this release, and is the game that its run's settings and its place ask for.

A run is verified where all its rows are, all that were asked for are there, none is there twice or beyond those asked for, no
line is damaged, and its averages are those of its rows.

Not covered, since nothing in a run can tell: words of a reply that change nothing of how it is read, where the transcript is all
there is of it (the classic door); when things happened and how long they took, token counts, the words of an error,
the model's name and its sampling settings, pictures and tool calls in messages, columns and metrics of other packages,
`pass_at_k`, identifiers and hashes of the library, and the release of the library.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Any

from flappybird.episodes import rewards
from flappybird.episodes.episode import Episode, Replay, Turn, observations, replay
from flappybird.episodes.verify import CUT_SHORT, Difference, true_ending, verify
from flappybird.errors import show
from flappybird.protocol.prompt import prompt_of
from flappybird.runs.results import TIMED_OUT
from flappybird.runs.run import Contradiction, Row, Run
from flappybird.runs.saved import number
from flappybird.world.game import Outcome, Reason

CLOSE = 1e-9
"""How far a score may be from the true one: the last digits of a sum depend on its order."""

STOPS = {
    Reason.TICK_LIMIT: "tick_limit_reached",
    Reason.MALFORMED: "too_many_malformed",
} | {reason: "crashed" for reason in Reason if reason.crashed}
"""The stop condition of a game that came to its own end; any other is the library's."""

BEFORE_THE_GAME = ("max_total_completion_tokens_reached",)
"""Stop conditions of the library that it looks at before those of the game, so that both can hold."""


def check(row: Row, replayed: Replay | None = None) -> list[Difference]:
    """Compare all that `row` claims with the replay of its episode; return what differs, in the order of the ticks.

    `replayed` is the episode's replay, where there already is one.
    """
    episode = row.episode
    if episode is None:
        return []
    flown = replayed or replay(episode)
    found = [*row.contradictions, *verify(episode, flown)]
    for index, (tick, given) in enumerate(zip(flown.starts(), observations(episode, flown), strict=True)):
        if difference := _transcript_difference(row, index, episode.turns[index], tick, given):
            found.append(difference)
            break  # the others follow from the first
    true = episode.model_copy(update={"outcome": true_ending(episode, flown)})
    last, truth = flown.states[-1].tick, _scores(true)
    for name, value in row.claims.items():
        if name in truth and abs(value - truth[name]) > CLOSE:
            found.append(Difference(name, last, value, truth[name]))
    found += [Difference(name, last, stored, given) for name, stored, given in _facts(row, true, flown)]
    if episode.outcome.reason is Reason.ERROR and row.error is None:
        found.append(Contradiction("error", last, None, "an error, since one ended the game"))
    return sorted(found, key=lambda difference: difference.tick)


def check_run(run: Run) -> list[str]:
    """Return what is wrong with `run` as a whole, in a line each; nothing where it is what was asked for."""
    wrong = [*_copies(run), *_surplus(run), *_misplaced(run)]
    if not wrong and not run.missing and not run.damaged:
        wrong += _averages(run)
    return wrong


# --- a row ---


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
    return f"{len(old)} lines, {len(stored)} characters", f"{len(new)} lines, {len(given)} characters"


def _scores(true: Episode) -> dict[str, float]:
    """Return every score and metric of an episode by the name that a run saves it under."""
    scores = {function.__name__: function(true) for function in (rewards.reward, *rewards.ALL_METRICS)}
    formatted = rewards.format_score(true)
    return scores | {
        "flappy_reward_func": scores["pipes_passed"],
        "flappy_survival_reward": scores["survival_score"],
        "format": formatted,
        "format_reward_func": formatted,
        "num_turns": float(len(true.turns)),
    }


def _facts(row: Row, true: Episode, flown: Replay) -> Iterator[tuple[str, Any, Any]]:
    """Yield what a row states beside its scores and its replay denies: name, what it states, what is true."""
    ending, stated = true.outcome, row.stated
    if "system_prompt" in stated:
        prompt, given = stated["system_prompt"] or "", prompt_of(true.config, true.rules)
        if prompt != given:
            yield "system_prompt", *_first_difference(prompt, given)
    if "stop_condition" in stated and not _stopped_so(stated["stop_condition"], ending.reason):
        yield "stop_condition", stated["stop_condition"], STOPS.get(ending.reason, "one of the library's")
    if "info.ending" in stated:
        outcome = Outcome(ending.reason, ending.ticks, ending.pipe)
        given = f"{outcome}, {ending.pipes_passed} pipes passed, format {ending.format:.2f}"
        if stated["info.ending"] != given:
            yield "info.ending", stated["info.ending"], given
    if "info.turn_rewards" in stated and not _same(stated["info.turn_rewards"], rewards.turn_rewards(true, flown)):
        yield "info.turn_rewards", stated["info.turn_rewards"], "the share of each turn"


def _stopped_so(condition: Any, reason: Reason) -> bool:
    if reason in CUT_SHORT:
        return condition not in STOPS.values() and (condition is None or isinstance(condition, str))
    return condition == STOPS[reason] or condition in BEFORE_THE_GAME


def _same(stored: Any, given: list[float]) -> bool:
    return (
        isinstance(stored, list)
        and len(stored) == len(given)
        and all(isinstance(a, int | float) and math.isclose(a, b, abs_tol=CLOSE) for a, b in zip(stored, given, strict=True))
    )


# --- a run ---


def _copies(run: Run) -> Iterator[str]:
    first: dict[str, int] = {}
    for row in run.rows:
        if row.mark is not None and first.setdefault(row.mark, row.index) != row.index:
            yield f"row {row.index} is a copy of row {first[row.mark]}"


def _surplus(run: Run) -> Iterator[str]:
    for row in run.surplus:
        if run.each and row.rollout >= run.each:
            yield f"row {row.index} is rollout {row.rollout + 1} of example {row.example}, of which {run.each} were asked for"
        else:
            yield f"row {row.index} is of example {row.example}, beyond the {run.asked} rollouts that were asked for"


def _misplaced(run: Run) -> Iterator[str]:
    """Yield the rows whose seed is not the one that their example has by most other rows."""
    if run.kind == "episodes":
        return
    firsts = {row.index: row.episode.seed - row.example for row in run.rows if row.episode and isinstance(row.example, int)}
    usual = Counter(firsts.values()).most_common(1)
    for index, first in firsts.items():
        if first != usual[0][0]:
            row = run.rows[index]
            yield f"row {index} is of example {row.example}, but plays seed {first + int(row.example or 0)}"


def _averages(run: Run) -> Iterator[str]:
    """Yield the averages that are not those of the rows."""
    if not run.averages or not run.rows:
        return
    truth: dict[str, float] = {"avg_reward": _mean([row.claims.get("reward", math.nan) for row in run.rows])}
    if all(row.error != TIMED_OUT for row in run.rows):
        truth["avg_error"] = _mean([float(row.error is not None) for row in run.rows])
    for name in run.averages:
        metric = name.removeprefix("avg_metrics.")
        if metric != name:
            truth[name] = _mean([row.claims[metric] for row in run.rows if metric in row.claims])
    for name, value in truth.items():
        stored = run.averages[name]
        if isinstance(value, float) and math.isnan(value) and stored != "missing":
            continue  # the rows have none, and say so themselves
        claimed = number(stored)
        if claimed is None or not math.isclose(claimed, value, rel_tol=CLOSE, abs_tol=CLOSE):
            yield f"metadata.json: {name} is {show(stored)}, the rows give {value:g}"


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
