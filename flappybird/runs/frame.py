"""A run as a table: one row per rollout, or one per turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from flappybird.episodes.rewards import ALL_METRICS
from flappybird.runs.run import Row, Run
from flappybird.system.install import missing

if TYPE_CHECKING:
    import pandas


def to_frame(run: Run, by: Literal["episode", "turn"] = "episode") -> pandas.DataFrame:
    """Return `run` as a pandas DataFrame.

    Args:
        run: what `load_run` gives.
        by: `episode` for a row per rollout, those without a transcript too; `turn` for a row per reply.

    Raises:
        MissingPart: pandas is not installed.
        ValueError: `by` is neither.
    """
    if by not in ("episode", "turn"):
        raise ValueError(f"by = {by!r}: must be 'episode' or 'turn'")
    try:
        import pandas
    except ImportError:
        raise missing("data frames need pandas", "export") from None
    return pandas.DataFrame([*(episode_rows(run) if by == "episode" else turn_rows(run))])


def episode_rows(run: Run) -> Iterator[dict[str, Any]]:
    """Yield what is known of each rollout: scores are those that its episode claims, None where there is none."""
    for row in run.rows:
        yield {"run": run.path.name, "model": run.model, **_key(row), **_of_episode(row)}


def turn_rows(run: Run) -> Iterator[dict[str, Any]]:
    """Yield every turn of every rollout with a transcript."""
    for row in run.rows:
        for index, turn in enumerate(row.episode.turns if row.episode else ()):
            yield {
                "run": run.path.name,
                "model": run.model,
                **_key(row),
                "turn": index,
                "tick": turn.tick,
                "actions": " ".join("TAP" if tap else "NOOP" for tap in turn.taps),
                "status": turn.status.value,
                "reply": _plain(turn.reply),
                "reasoning": _plain(turn.reasoning),
                "cut": turn.cut,
                "ignored": turn.ignored,
                "waited": turn.waited,
                "prompt_tokens": turn.prompt_tokens,
                "completion_tokens": turn.completion_tokens,
                "seconds": turn.seconds,
            }


def _key(row: Row) -> dict[str, Any]:
    example = None if row.example is None else str(row.example)
    return {"row": row.index, "example": example, "rollout": row.rollout, "seed": row.episode.seed if row.episode else None}


def _of_episode(row: Row) -> dict[str, Any]:
    episode = row.episode
    names = [metric.__name__ for metric in ALL_METRICS]
    if episode is None:
        scores = {name: row.claims.get(name) for name in ("reward", "format", *names)}
        return {"player": None, "ended": None, "pipe": None, "turns": None, **scores, **_problems(row)}
    return {
        "player": _plain(episode.player.name),
        "ended": episode.outcome.reason.value,
        "pipe": episode.outcome.pipe,
        "turns": len(episode.turns),
        "reward": episode.outcome.reward,
        "format": episode.outcome.format,
        **{metric.__name__: metric(episode) for metric in ALL_METRICS},
        **_problems(row),
    }


def _problems(row: Row) -> dict[str, Any]:
    return {"error": _plain(row.error), "problem": _plain(row.problem)}


def _plain(text: str | None) -> str | None:
    """Return `text` as files of tables can hold it: lone surrogates, which UTF-8 has no place for, as question marks."""
    return None if text is None else text.encode("utf-8", "replace").decode("utf-8")
