"""What a reader wants first: who won, by how much, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from flappybird.players.policies import POLICIES
from flappybird.report.causes import CAUSES
from flappybird.report.data import ENDS, Records
from flappybird.report.figures import Axis, Chart, Key, Mark, axis
from flappybird.report.html import count, minus, number, percent, span
from flappybird.report.palette import DASHES, look
from flappybird.report.summary import Interval, Stats, Summary, of_means, ranking

Words = list[tuple[str, bool]]
"""A sentence in parts; True for the names of runs, whose writing direction stays their own."""


class End(NamedTuple):
    """A part of the bar that shows how the rollouts of a run ended."""

    name: str
    label: str
    number: int
    start: float
    """Where the part begins, as a share of the whole bar."""
    share: float


@dataclass(frozen=True)
class Place:
    """A line of the leaderboard."""

    number: int
    """From 1; it also names the run in charts and tables."""
    run: int
    """Index of the run."""
    summary: Summary
    ends: list[End]

    @property
    def records(self) -> Records:
        """The run."""
        return self.summary.records

    @property
    def label(self) -> str:
        """Its name."""
        return self.records.label

    @property
    def look(self) -> str:
        """Its colour, see `palette`."""
        return look(self.run)

    def stats(self, metric: str) -> Stats | None:
        """Return a metric's numbers."""
        return self.summary.metrics.get(metric)


class Overview:
    """Runs in order, best first."""

    def __init__(self, runs: Sequence[Records], summaries: Sequence[Summary]) -> None:
        self.runs, self.summaries = runs, summaries
        self.common, self.ranked = ranking(runs)
        """Tasks that all runs played, and the runs on them, see `summary.ranking`."""
        self.places = [
            Place(number, index, summaries[index], _ends(runs[index])) for number, index in enumerate(self._order(), 1)
        ]
        self.number = {place.run: place.number for place in self.places}
        """Of each run, by its index: the number that names it in charts and tables."""

    def _order(self) -> list[int]:
        if self.ranked:
            return [index for index, _, _ in self.ranked]
        rewards = [summary.metrics["reward"] for summary in self.summaries]
        return sorted(range(len(rewards)), key=lambda index: (-(stats.mean if (stats := rewards[index]) else -1.0), index))

    # --- the verdict ----------------------------------------------------------------------------------------------

    def verdict(self) -> Words:
        """Return, in one sentence, who won and how sure that is."""
        if not self.places:
            return [("There are no runs in this report.", False)]
        if len(self.places) == 1:
            return self._one(self.places[0])
        if not self.ranked:
            return [("These runs have no seed with the same settings in common, so none of them can be said to lead.", False)]
        best, second = self.places[0], self.places[1]
        lead = self.ranked[1][2]
        assert lead is not None
        seeds = count(len(self.common), "seed" if len({(one.config, one.rules) for one in self.common}) == 1 else "task")
        mean = of_means(self.runs[best.run], self.common)
        words: Words = [(best.label, True)]
        if abs(lead.difference) < 5e-3:
            words += [(" and ", False), (second.label, True), (f" are level at {_mean(mean)} on {seeds}.", False)]
            return words
        words += [(f" leads with a mean reward of {_mean(mean)}; ahead of ", False), (second.label, True)]
        by = f" by {number(lead.difference, 'reward')}"
        if lead.interval is None:
            words.append((f"{by}, on {seeds}: too few to tell them apart.", False))
        elif lead.interval.low <= 0:
            words.append((f"{by} {span(lead.interval, 'reward')}, not separable on {seeds}.", False))
        else:
            words.append((f"{by} {span(lead.interval, 'reward')} on {seeds}.", False))
        return words

    def _one(self, place: Place) -> Words:
        reward, pipes, records = place.stats("reward"), place.stats("pipes_passed"), place.records
        if reward is None:
            return [("No rollout of ", False), (place.label, True), (" was scored.", False)]
        seeds = len({record.task for record in records.clean if record.task}) or reward.n
        said = f" scores {_mean((reward.mean, reward.interval))} on {count(seeds, 'seed')}"
        if place.summary.share:
            said += f", {percent(place.summary.share[0])} of what the built-in planner reaches"
        if pipes:
            said += f"; it passes {minus(f'{pipes.mean:.1f}')} {'pipe' if pipes.mean == 1 else 'pipes'} on average"
        words: Words = [(place.label, True), (said + ".", False)]
        if records.causes:
            cause, lost = max(records.causes.items(), key=lambda item: item[1])
            deaths = sum(records.causes.values())
            words.append((f" Most often lost by: {CAUSES[cause][0].lower()} ({lost} of {count(deaths, 'death')}).", False))
        return words

    # --- the forest -----------------------------------------------------------------------------------------------

    def forest(self, metric: str = "reward") -> Chart | None:
        """Return one line per run, its mean and interval of `metric`, with the built-in players as lines from top to bottom."""
        shown = [(place, stats) for place in self.places if (stats := place.stats(metric))]
        if not shown:
            return None
        marks: list[Mark] = []
        values: list[float] = []
        legend: list[Key] = []
        rows = len(shown)
        for policy in POLICIES:
            known = [stats for summary in self.summaries if (stats := summary.baselines[policy].get(metric))]
            if known:
                mean = sum(one.mean * one.n for one in known) / sum(one.n for one in known)
                values.append(mean)
                points = ((mean, -0.6), (mean, rows - 0.4))
                title = f"built-in {policy}: {number(mean, metric)}"
                marks.append(Mark("line", "mute", points, title, dash=DASHES[policy], width=1.2))
                legend.append(Key(f"built-in {policy}", "mute", "line", DASHES[policy]))
        ticks = []
        for row, (place, stats) in enumerate(shown):
            y = rows - 1 - row
            low, high = stats.interval or Interval(stats.mean, stats.mean)
            values += [low, high]
            title = f"{place.label}: {number(stats.mean, metric)} {span(stats.interval, metric)}"
            link = f"show&run={place.run}"
            marks += [
                Mark("line", place.look, ((low, y), (high, y)), title, link, width=3.5),
                Mark("dot", place.look, ((stats.mean, y),), title, link),
            ]
            ticks.append((float(y), str(place.number)))
        label = "mean reward, 95 % interval" if metric == "reward" else metric
        x = axis(label, values)
        y_axis = Axis("", -0.6, rows - 0.4, tuple(ticks), grid=False)
        return Chart(
            "forest",
            "Mean reward of each run",
            "Mean reward of clean rollouts with its 95 % interval; lines are the built-in players on the same seeds.",
            x,
            y_axis,
            tuple(marks),
            tuple(legend),
            height=64 + 26 * rows,
        )


def _ends(records: Records) -> list[End]:
    total = len(records.records) + records.missing
    counts = list(records.ends.items()) + ([("missing", records.missing)] if records.missing else [])
    found, at = [], 0.0
    for name, of_it in counts:
        label = ENDS.get(name, "asked for, but not in the run")
        found.append(End(end_name(name), label, of_it, at, of_it / total))
        at += of_it / total
    return found


def end_name(end: str) -> str:
    """Return a key of `data.ENDS` as one word, for classes and links."""
    return "none" if " " in end else end


def _mean(of: tuple[float, Interval | None]) -> str:
    mean, interval = of
    return " ".join(filter(None, (number(mean, "reward"), span(interval, "reward"))))


def notices(records: Records, named: bool, most: int) -> Iterator[tuple[str, bool]]:
    """Yield what a reader has to know about a run, and whether it is bad; at most `most` differences are listed."""
    run, prefix = records.run, f"{records.label}: " if named else ""
    for note in run.notes:
        yield prefix + note, False
    if run.damaged:
        yield f"{prefix}{count(run.damaged, 'damaged line')} skipped: not one JSON object each", True
    if run.asked is not None and len(records.records) > run.asked:
        yield f"{prefix}the run has {count(len(records.records), 'row')}, but {run.asked} were asked for", True
    differing = [record for record in records.records if record.differences]
    for record in differing[:most]:
        more = f" (and {len(record.differences) - 1} more)" if len(record.differences) > 1 else ""
        yield f"{prefix}episode {record.row.index} differs from its replay first at {record.differences[0]}{more}", True
    if len(differing) > most:
        yield f"{prefix}{len(differing) - most} more episodes differ from their replay", True
    if records.without_baselines:
        without = count(records.without_baselines, "episode")
        yield f"{prefix}the built-in policies were not played for {without}: too many ticks in all", False
    claimed = sum(record.episode is None for record in records.clean)
    if claimed:
        yield f"{prefix}{count(claimed, 'score')} without a transcript: as the run claims, not verified", False
