"""Runs → charts, as data (see `figures`): what each mark stands for, and which episodes it opens, goes with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from flappybird.players.policies import POLICIES
from flappybird.protocol.reply import Status
from flappybird.report.causes import death_text
from flappybird.report.data import ENDS, Record, Records
from flappybird.report.figures import Axis, Chart, Key, Kind, Mark, axis, percent_axis
from flappybird.report.html import count, ordinal, percent
from flappybird.report.overview import Overview, end_name
from flappybird.report.palette import DASHES, look
from flappybird.world.game import Reason

MAX_POINTS = 750
"""The most episodes of which a chart shows each; of more it shows every second, every third, …"""

MAX_BINS = 60
"""The most groups that turns are put in."""


Found = TypeVar("Found")


def charts(overview: Overview) -> list[Chart]:
    """Return the charts for which there is anything to show."""
    drawn = (paint(overview) for paint in (_pipes, _survival, _deaths, _ends, _format, _rewards))
    return [chart for chart in drawn if chart]


def link(run: int, record: Record, tick: int | None = None) -> str:
    """Return the fragment that opens a record in the player."""
    return f"run={run}&episode={record.row.index}" + ("" if tick is None else f"&tick={tick}")


def _each(overview: Overview) -> Iterator[tuple[int, Records]]:
    """Yield the runs in the order of the leaderboard, the best last, so that it is drawn on top."""
    for place in reversed(overview.places):
        yield place.run, place.records


def _keys(overview: Overview, kind: Kind = "bar") -> tuple[Key, ...]:
    return tuple(Key(place.label, place.look, kind, run=place.run) for place in overview.places)


# --- the charts: each returns nothing where there is nothing to show --------------------------------------------------


def _pipes(overview: Overview) -> Chart | None:
    passed = {
        run: [r.scores["pipes_passed"] for r in records.clean if "pipes_passed" in r.scores] for run, records in _each(overview)
    }
    planner = [
        record.baselines["planner"].scores["pipes_passed"]
        for records in overview.runs
        for record in records.clean
        if record.baselines
    ]
    if not any(passed.values()):
        return None
    most = int(max(max(values, default=0) for values in (*passed.values(), planner)))
    marks: list[Mark] = []
    if len(passed) == 1:
        ((run, values),) = passed.items()
        step = max(-(-(most + 1) // 24), 1)
        for low in range(0, most + 1, step):
            here = sum(low <= value < low + step for value in values)
            if here:
                span = f"{low}" if step == 1 else f"{low} to {low + step - 1}"
                title = f"{count(here, 'episode')} of {len(values)} passed {span} {'pipe' if span == '1' else 'pipes'}"
                corners = ((low - 0.5 + 0.06 * step, 0.0), (low + step - 0.5 - 0.06 * step, here / len(values)))
                marks.append(Mark("bar", look(run), corners, title, f"show&run={run}&pipes={low}-{low + step - 1}"))
        if planner:
            points: list[tuple[float, float]] = []
            for low in range(0, most + 1, step):
                share = sum(low <= value < low + step for value in planner) / len(planner)
                points += [(low - 0.5, share), (low + step - 0.5, share)]
            marks.append(Mark("line", "mute", tuple(points), "built-in planner on the same seeds", width=1.4))
        x = Axis("pipes passed", -0.6, most + step - 0.4, axis("", [0, most], whole=True).ticks, grid=False)
        caption = "How many pipes the bird passed; the outline is the built-in planner on the same seeds."
        keys = (*_keys(overview), Key("built-in planner", "mute", "line")) if planner else _keys(overview)
        return Chart("pipes", "Pipes passed", caption, x, percent_axis("share of episodes"), tuple(marks), keys)
    for name, values, colour, width, where in (
        *([("built-in planner", planner, "mute", 1.2, "")] if planner else []),
        *((overview.runs[run].label, of_run, look(run), 2.0, f"show&run={run}") for run, of_run in passed.items()),
    ):
        if values:
            steps = [(float(n), sum(value >= n for value in values) / len(values)) for n in range(most + 1)]
            marks.append(Mark("line", colour, tuple(steps), name, where, width=width))
    keys = (*_keys(overview, "line"), *([Key("built-in planner", "mute", "line")] if planner else []))
    caption = "Share of episodes that passed at least so many pipes."
    x = axis("pipes", [0, most], whole=True)
    return Chart("pipes", "Pipes passed", caption, x, percent_axis("share of episodes"), tuple(marks), keys)


def _survival(overview: Overview) -> Chart | None:
    marks: list[Mark] = []
    keys = list(_keys(overview, "line"))
    for name in POLICIES:
        lives = [
            (record.baselines[name].outcome.tick, record.baselines[name].outcome.reason.crashed)
            for records in overview.runs
            for record in records.clean
            if record.baselines
        ]
        if lives:
            marks.append(Mark("step", "mute", _curve(lives), f"built-in {name}", dash=DASHES[name], width=1.1))
            keys.append(Key(f"built-in {name}", "mute", "line", DASHES[name]))
    drawn = False
    for run, records in _each(overview):
        lives = [(r.episode.outcome.ticks, r.episode.outcome.reason.crashed) for r in records.clean if r.episode]
        if lives:
            drawn = True
            marks.append(Mark("step", look(run), _curve(lives), records.label, f"show&run={run}", width=2.2))
    if not drawn:
        return None
    x = axis("tick", [mark.points[-1][0] for mark in marks], whole=True)
    caption = "Share of birds alive after each tick; thin lines are the built-in players on the same seeds."
    return Chart("survival", "Survival", caption, x, percent_axis("share still alive"), tuple(marks), tuple(keys))


def _deaths(overview: Overview) -> Chart | None:
    far = 2.6
    kinds: dict[Reason, Kind] = {Reason.PIPE: "dot", Reason.FLOOR: "down", Reason.CEILING: "up"}
    found = [
        (place, record)
        for place, (run, records) in enumerate(_each(overview))
        for record in records.clean
        if record.analysis and record.analysis.death
    ]
    if not found:
        return None
    order, runs = list(_each(overview)), len(overview.runs)
    marks = [
        Mark("band", "pipe", ((-1e6, 1), (1e6, far + 0.3))),
        Mark("band", "pipe", ((-1e6, -1), (1e6, -far - 0.3))),
    ]
    pipes = []
    for place, record in _thinned(found):
        run = order[place][0]
        death = record.analysis.death if record.analysis else None
        assert death is not None
        x = death.pipe + 1 + (place - (runs - 1) / 2) * min(0.5 / runs, 0.16)
        y = max(-far, min(far, 2 * death.offset / death.gap_height))
        pipes.append(x)
        title = (
            f"{order[place][1].label}, episode {record.row.index}: {death_text(death.reason, death.pipe)} at tick {death.tick}"
        )
        tick = record.cause.tick if record.cause else None
        marks.append(Mark(kinds.get(death.reason, "dot"), look(run), ((x, y),), title, link(run, record, tick)))
    last = max(max(pipes) + 0.6, 3.4)
    ticks = tuple((number, ordinal(int(number))) for number, _ in axis("", [1, last], start=1, whole=True).ticks if number >= 1)
    marks[:2] = [mark._replace(points=((0.4, mark.points[0][1]), (last, mark.points[1][1]))) for mark in marks[:2]]
    y_axis = Axis("", -far - 0.3, far + 0.3, ((-1, "lower edge"), (0, "centre"), (1, "upper edge")))
    keys = (
        *(_keys(overview, "dot") if runs > 1 else ()),
        Key("hit a pipe", "mute", "dot"),
        Key("the floor", "mute", "down"),
        Key("the ceiling", "mute", "up"),
    )
    caption = "Where the bird was when it died, measured in the gap of that pipe." + _of(found)
    return Chart(
        "deaths",
        "Where birds died",
        caption,
        Axis("pipe that was hit, or next to come", 0.4, last, ticks, False),
        y_axis,
        tuple(marks),
        keys,
    )


def _ends(overview: Overview) -> Chart | None:
    if not any(records.records for records in overview.runs):
        return None
    rows = len(overview.places)
    marks: list[Mark] = []
    seen: dict[str, None] = {}
    most = 0
    for row, place in enumerate(overview.places):
        total = len(place.records.records)
        most = max(most, total)
        at = 0.0
        for end, number in place.records.ends.items():
            seen[end] = None
            y = rows - 1 - row
            title = f"{place.label}: {number} of {total} ({percent(number / total)}) {ENDS[end]}"
            where = f"show&run={place.run}&end={end_name(end)}"
            marks.append(Mark("bar", f"end-{end_name(end)}", ((at, y - 0.36), (at + number, y + 0.36)), title, where))
            at += number
    keys = tuple(Key(ENDS[end], f"end-{end_name(end)}", "bar") for end in ENDS if end in seen)
    ticks = tuple((float(rows - 1 - row), str(place.number) if rows > 1 else "") for row, place in enumerate(overview.places))
    y_axis = Axis("", -0.6, rows - 0.4, ticks, False)
    caption = "How every row of each run ended, errors and missing transcripts included."
    return Chart(
        "ends", "How episodes ended", caption, axis("episodes", [0, most], whole=True), y_axis, tuple(marks), keys, 60 + 30 * rows
    )


def _format(overview: Overview) -> Chart | None:
    if len(overview.runs) > 1:
        return _format_compared(overview)
    by_turn = _statuses(overview.runs[0]) if overview.runs else []
    if not by_turn:
        return None
    size, shares = _binned(by_turn)
    marks: list[Mark] = []
    seen: dict[Status, None] = {}
    for index, share in enumerate(shares):
        low = 0.0
        for status in Status:
            if share.get(status):
                seen[status] = None
                first, last = index * size, min(index * size + size, len(by_turn)) - 1
                turns = f"turn {first}" if last == first else f"turns {first} to {last}"
                title = f"{turns}: {percent(share[status])} {status.value}"
                corners = ((index * size, low), ((index + 0.96) * size, low + share[status]))
                marks.append(Mark("bar", f"status-{status.value}", corners, title))
                low += share[status]
    keys = tuple(Key(status.value, f"status-{status.value}", "bar") for status in Status if status in seen)
    caption = "What became of the replies, turn by turn. All but “ok” flew as no-op."
    x = Axis("turn", 0, len(shares) * size, axis("", [0, len(by_turn)], whole=True).ticks, False)
    return Chart("format", "Format by turn", caption, x, percent_axis("share of replies"), tuple(marks), keys)


def _format_compared(overview: Overview) -> Chart | None:
    marks, last = [], 1
    for run, records in _each(overview):
        by_turn = _statuses(records)
        if by_turn:
            size, shares = _binned(by_turn)
            last = max(last, len(by_turn))
            points = tuple((index * size + (size - 1) / 2, share.get(Status.OK, 0.0)) for index, share in enumerate(shares))
            marks.append(
                Mark(
                    "line",
                    look(run),
                    points if len(points) > 1 else (*points, *points),
                    records.label,
                    f"show&run={run}",
                    width=2.0,
                )
            )
    if not marks:
        return None
    caption = "Share of replies with a legal action, turn by turn."
    x = axis("turn", [0, last], whole=True)
    return Chart(
        "format", "Format by turn", caption, x, percent_axis("share of valid replies"), tuple(marks), _keys(overview, "line")
    )


def _rewards(overview: Overview) -> Chart | None:
    scored = [(run, record) for run, records in _each(overview) for record in records.records if "reward" in record.scores]
    if not scored:
        return None
    longest = max(overview.runs, key=lambda records: len(records.records))
    planner = [(r.row.index, r.baselines["planner"].scores["reward"]) for r in longest.records if r.baselines]
    marks = [
        Mark("dash", "mute", ((index, reward),), f"built-in planner on the seed of episode {index}: {reward:.2f}")
        for index, reward in _thinned(planner)
    ]
    for run, record in _thinned(scored):
        reward = record.scores["reward"]
        errored = "" if record.clean else ", errored and no score"
        title = f"{overview.runs[run].label}, episode {record.row.index}: {reward:.2f}{errored}"
        place = ((float(record.row.index), reward),)
        marks.append(Mark("dot" if record.clean else "ring", look(run), place, title, link(run, record)))
    x = axis("episode", [mark.points[0][0] for mark in marks], start=None, whole=True, grid=False)
    y = axis("reward", [mark.points[0][1] for mark in marks])
    keys = [*_keys(overview, "dot")]
    if planner:
        keys.append(Key("built-in planner", "mute", "dash"))
    if any(not record.clean for _, record in scored):
        keys.append(Key("errored, no score", "mute", "ring"))
    caption = "Reward of every episode; dashes are the built-in planner on the same seed." + _of(scored)
    return Chart("rewards", "Reward by episode", caption, x, y, tuple(marks), tuple(keys))


# --- helpers ----------------------------------------------------------------------------------------------------------


def _thinned(found: Sequence[Found]) -> Sequence[Found]:
    return found[:: -(-len(found) // MAX_POINTS) or 1]


def _of(found: Sequence[object]) -> str:
    step = -(-len(found) // MAX_POINTS)
    return f" One of {step} is drawn." if step > 1 else ""


def _curve(lives: list[tuple[int, bool]]) -> tuple[tuple[float, float], ...]:
    """Return the share alive after each tick (Kaplan–Meier: those that left alive count until they left)."""
    ends: dict[int, list[bool]] = {}
    for ticks, died in lives:
        ends.setdefault(ticks, []).append(died)
    at_risk, share = len(lives), 1.0
    points = [(0.0, 1.0)]
    for tick in sorted(ends):
        deaths = sum(ends[tick])
        if at_risk and deaths:
            share *= 1 - deaths / at_risk
        points.append((float(tick), share))
        at_risk -= len(ends[tick])
    return tuple(points)


def _statuses(records: Records) -> list[dict[Status, int]]:
    """Return, for each turn, how many replies had which status; errored rollouts are left out."""
    by_turn: list[dict[Status, int]] = []
    for record in records.clean:
        for index, turn in enumerate(record.episode.turns if record.episode else ()):
            if index == len(by_turn):
                by_turn.append({})
            by_turn[index][turn.status] = by_turn[index].get(turn.status, 0) + 1
    return by_turn


def _binned(by_turn: list[dict[Status, int]]) -> tuple[int, list[dict[Status, float]]]:
    """Return the shares of statuses in at most `MAX_BINS` groups of turns, and how many turns a group has."""
    size = -(-len(by_turn) // MAX_BINS)
    shares = []
    for start in range(0, len(by_turn), size):
        group = by_turn[start : start + size]
        total = sum(sum(turn.values()) for turn in group)
        shares.append({status: sum(turn.get(status, 0) for turn in group) / total for status in Status})
    return size, shares
