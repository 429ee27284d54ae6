"""The numbers of a report: means with their uncertainty, shares of the planner's score, rankings on common seeds.

Intervals are 95 % bootstrap intervals of the mean, drawn with a fixed seed. What is drawn are tasks, not rollouts: several
rollouts of one seed say less than as many seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from flappybird.players.policies import POLICIES
from flappybird.report.data import Record, Records
from flappybird.report.reference import Task

if TYPE_CHECKING:
    import numpy as np

RESAMPLES = 2_000
"""Bootstrap samples."""

DRAWS_AT_ONCE = 1_000_000
"""Tasks drawn at a time: what bounds the memory of a large run."""

METRICS = {
    "reward": "Reward",
    "pipes_passed": "Pipes passed",
    "survival_score": "Survival score",
    "ticks": "Ticks",
    "format": "Format",
    "invalid_actions": "Invalid actions",
    "tokens_per_turn": "Tokens per turn",
    "seconds_per_turn": "Seconds per turn",
}
"""What the summary lists, in this order."""


class Interval(NamedTuple):
    """A 95 % bootstrap interval of a mean."""

    low: float
    high: float


class Stats(NamedTuple):
    """One metric over the rollouts in which it is known."""

    n: int
    mean: float
    interval: Interval | None
    """Of the mean; None where there are not two tasks to draw from."""
    median: float
    low: float
    high: float


class Pair(NamedTuple):
    """One run against another on the tasks that both played."""

    tasks: int
    difference: float
    """Mean over the tasks of the difference in mean reward."""
    interval: Interval | None
    wins: int
    ties: int
    losses: int


class Summary:
    """What can be said of one run in numbers. Rollouts that errored are no scores."""

    def __init__(self, records: Records) -> None:
        self.records = records
        clean = records.clean
        self.metrics = {
            name: _stats([(record, record.scores[name]) for record in clean if name in record.scores]) for name in METRICS
        }
        """By name; None where a metric is not known of any rollout."""
        compared = [record for record in clean if record.baselines]
        self.baselines = {
            policy: {
                name: _stats([(record, record.baselines[policy].scores[name]) for record in compared if record.baselines])
                for name in ("reward", "pipes_passed", "survival_score", "ticks", "format", "invalid_actions")
            }
            for policy in POLICIES
        }
        """The built-in policies on the same tasks, as often as the run played each."""

    @cached_property
    def with_errored(self) -> Stats | None:
        """The reward with errored rollouts counted as they were scored, as 0 where they were not."""
        scored = [(record, record.scores.get("reward", 0.0)) for record in (*self.records.clean, *self.records.errored)]
        return _stats(scored)

    @cached_property
    def share(self) -> tuple[float, Interval | None] | None:
        """(mean reward ÷ the planner's on the same tasks, its interval); None where there is nothing to compare."""
        compared = [
            (record, record.scores["reward"], record.baselines["planner"].scores["reward"])
            for record in self.records.clean
            if record.baselines and "reward" in record.scores
        ]
        best = sum(planner for _, _, planner in compared)
        if not best:
            return None
        groups = _by_task([(record, (reward, planner)) for record, reward, planner in compared])
        ratio = sum(reward for _, reward, _ in compared) / best
        import numpy as np

        sums = np.array([np.sum(group, axis=0) for group in groups])
        return ratio, interval_of(sums[:, 0], sums[:, 1])

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain JSON values."""
        records, run = self.records, self.records.run
        share = self.share
        return {
            "run": str(run.path),
            "model": run.model,
            "asked": run.asked,
            "rows": len(records.records),
            "missing": records.missing,
            "damaged_lines": run.damaged,
            "ok": len(records.clean),
            "errored": len(records.errored),
            "without_transcript": len(records.records) - len(records.replayed),
            "ends": records.ends,
            "transcripts": len(records.replayed),
            "checked": len(records.checked),
            "causes": records.causes,
            "verified": records.verified,
            "differences": [
                {"row": record.row.index, "first": str(record.differences[0]), "number": len(record.differences)}
                for record in records.records
                if record.differences
            ],
            "metrics": {name: _plain(stats) for name, stats in self.metrics.items() if stats},
            "reward_with_errored": _plain(self.with_errored),
            "baselines": {
                policy: {name: _plain(stats) for name, stats in metrics.items() if stats}
                for policy, metrics in self.baselines.items()
            },
            "share_of_planner": share and {"ratio": share[0], "interval": share[1] and list(share[1])},
            "notes": run.notes,
        }


def ranking(runs: Sequence[Records]) -> tuple[list[Task], list[tuple[int, float, Pair | None]]]:
    """Return the tasks that all `runs` played, and the runs from best to worst on them.

    Each run is (its index, its mean over the common tasks of the mean reward, the best run's lead over it; None for the best).
    """
    rewards = [_rewards(records) for records in runs]
    common = [task for task in rewards[0] if all(task in of_run for of_run in rewards)] if rewards else []
    if not common:
        return [], []
    means = [sum(of_run[task] for task in common) / len(common) for of_run in rewards]
    order = sorted(range(len(runs)), key=lambda index: (-means[index], index))
    best = rewards[order[0]]
    return common, [
        (index, means[index], compare(best, rewards[index], common) if index != order[0] else None) for index in order
    ]


def compare(one: dict[Task, float], other: dict[Task, float], tasks: Sequence[Task]) -> Pair:
    """Return how `one` did against `other` (mean reward by task) on `tasks`."""
    import numpy as np

    differences = np.array([one[task] - other[task] for task in tasks])
    return Pair(
        tasks=len(tasks),
        difference=float(differences.mean()),
        interval=interval_of(differences, np.ones(len(tasks))),
        wins=int((differences > 1e-9).sum()),
        ties=int((abs(differences) <= 1e-9).sum()),
        losses=int((differences < -1e-9).sum()),
    )


def of_means(records: Records, tasks: Sequence[Task]) -> tuple[float, Interval | None]:
    """Return the mean over `tasks` of a run's mean reward, and its interval."""
    import numpy as np

    by_task = _rewards(records)
    values = np.array([by_task[task] for task in tasks])
    return float(values.mean()), interval_of(values, np.ones(len(values)))


def _rewards(records: Records) -> dict[Task, float]:
    """Return the mean reward of each task."""
    found: dict[Task, list[float]] = {}
    for record in records.clean:
        if record.task is not None:
            found.setdefault(record.task, []).append(record.scores["reward"])
    return {task: sum(values) / len(values) for task, values in found.items()}


def _stats(values: list[tuple[Record, float]]) -> Stats | None:
    if not values:
        return None
    import numpy as np

    numbers = np.array([value for _, value in values])
    groups = _by_task(values)
    sums, counts = np.array([sum(group) for group in groups]), np.array([len(group) for group in groups])
    return Stats(
        n=len(numbers),
        mean=float(numbers.mean()),
        interval=interval_of(sums, counts),
        median=float(np.median(numbers)),
        low=float(numbers.min()),
        high=float(numbers.max()),
    )


def _by_task(values: Sequence[tuple[Record, Any]]) -> list[list[Any]]:
    """Group values by the task of their record; a record without a transcript by its example, without that by itself."""
    groups: dict[Any, list[Any]] = {}
    for record, value in values:
        row = record.row
        key = record.task or (("example", row.example) if row.example is not None else ("row", row.index))
        groups.setdefault(key, []).append(value)
    return list(groups.values())


def interval_of(sums: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> Interval | None:
    """Return the interval of sum(sums) / sum(weights) when their entries are drawn again and again."""
    if len(sums) < 2:
        return None
    import numpy as np

    random, ratios = np.random.default_rng(0), []
    block = max(DRAWS_AT_ONCE // len(sums), 1)
    for done in range(0, RESAMPLES, block):
        drawn = random.integers(len(sums), size=(min(block, RESAMPLES - done), len(sums)))
        totals = weights[drawn].sum(axis=1)
        ratios.append(sums[drawn].sum(axis=1)[totals != 0] / totals[totals != 0])
    low, high = np.quantile(np.concatenate(ratios), (0.025, 0.975))
    return Interval(float(low), float(high))


def _plain(stats: Stats | None) -> dict[str, Any] | None:
    if stats is None:
        return None
    names = {"n": stats.n, "mean": stats.mean, "median": stats.median, "min": stats.low, "max": stats.high}
    return names | {"interval": list(stats.interval) if stats.interval else None}


def to_dict(runs: Sequence[Records]) -> dict[str, Any]:
    """Return the numbers of a whole report as plain JSON values."""
    report: dict[str, Any] = {"runs": [{"label": run.label, **Summary(run).to_dict()} for run in runs]}
    if len(runs) > 1:
        common, ranked = ranking(runs)
        report["common_tasks"] = len(common)
        report["ranking"] = [
            {"label": runs[index].label, "reward": mean, "behind": pair and _plain_pair(pair)} for index, mean, pair in ranked
        ]
    return report


def _plain_pair(pair: Pair) -> dict[str, Any]:
    return pair._asdict() | {"interval": list(pair.interval) if pair.interval else None}
