"""Runs → pictures, as inline SVG whose colours and type come from the page, so that they look right in light and dark.

Matplotlib draws with marker colours; each becomes a class of the page's style sheet. No style attribute, no identifier
that another picture could share and no date is left in what it wrote.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from xml.etree import ElementTree

from flappybird.players.policies import POLICIES
from flappybird.protocol.reply import Status
from flappybird.report.data import ENDS, Records
from flappybird.world.game import Reason


class Chart(NamedTuple):
    """One picture."""

    title: str
    caption: str
    svg: str


TOKENS = {
    "#000001": "ink",
    "#000002": "mute",
    "#000003": "grid",
    "#000004": "paper",
    "#000005": "pipe",
    "#00000b": "ok",
    "#00000c": "malformed",
    "#00000d": "truncated",
    "#00000e": "empty",
    "#000015": "noop",
    "#000016": "random",
    "#000017": "heuristic",
    "#000018": "planner",
    **{f"#0000{32 + index:02x}": f"run{index}" for index in range(8)},
}
"""Marker colours and the style sheet's names for them: class f-NAME fills, s-NAME strokes."""

COLOUR = {name: colour for colour, name in TOKENS.items()}
RUN_COLOURS = [COLOUR[f"run{index}"] for index in range(8)]

RC = {
    "svg.fonttype": "none",
    "svg.hashsalt": "flappybird",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": COLOUR["mute"],
    "axes.labelcolor": COLOUR["mute"],
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": COLOUR["grid"],
    "grid.linewidth": 0.6,
    "xtick.color": COLOUR["mute"],
    "ytick.color": COLOUR["mute"],
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "text.color": COLOUR["ink"],
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.constrained_layout.use": True,
    "path.simplify": False,
    "text.parse_math": False,
}


def draw(runs: Sequence[Records]) -> list[Chart]:
    """Return the pictures of `runs` for which there is anything to show."""
    import matplotlib

    found: list[Chart] = []
    if not runs:
        return found
    with matplotlib.rc_context(RC), warnings.catch_warnings():
        # A name in letters that matplotlib's own font lacks is laid out a little off; the page's font shows it.
        warnings.simplefilter("ignore", UserWarning)
        for name, (title, paint) in _CHARTS.items():
            figure = _figure()
            caption = paint(figure.add_subplot(), runs)
            if caption:
                found.append(Chart(title, caption, _svg(figure, name, f"{title}. {caption}")))
    return found


# --- the pictures: each paints on an axis and returns its caption, or nothing where there is nothing to show -----------


def _pipes(axis: Any, runs: Sequence[Records]) -> str | None:
    values = [[record.scores["pipes_passed"] for record in run.clean if "pipes_passed" in record.scores] for run in runs]
    planner = [record.baselines["planner"].scores["pipes_passed"] for run in runs for record in run.clean if record.baselines]
    if not any(values):
        return None
    highest = int(max(max(of_run, default=0) for of_run in values + [planner]))
    step = max(-(-(highest + 1) // 24), 1)
    edges = [edge - 0.5 for edge in range(0, highest + 1 + step, step)]
    centres = [edge + step / 2 for edge in edges[:-1]]
    width = 0.82 * step / len(runs)
    for index, of_run in enumerate(values):
        shares = _histogram(of_run, edges)
        places = [centre + (index - (len(runs) - 1) / 2) * width for centre in centres]
        axis.bar(places, shares, width=width * 0.94, color=_colour(index), label=_name(runs[index]))
    if planner:
        axis.stairs(_histogram(planner, edges), edges, color=COLOUR["planner"], linewidth=1.4, label="planner")
    axis.set_xlabel("pipes passed")
    axis.set_ylabel("share of episodes")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.grid(axis="x", visible=False)
    _percent(axis)
    axis.set_ylim(0, 1.02)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=4)
    return "How many pipes the bird passed; the outline is the planner on the same seeds."


def _survival(axis: Any, runs: Sequence[Records]) -> str | None:
    last = 0
    for index, run in enumerate(runs):
        lives = [(record.episode.outcome.ticks, record.episode.outcome.reason) for record in run.clean if record.episode]
        last = max(last, _curve(axis, lives, _colour(index), _name(run), 2.0))
    if not last:
        return None
    for name in POLICIES:
        lives = [
            (record.baselines[name].outcome.tick, record.baselines[name].outcome.reason)
            for run in runs
            for record in run.clean
            if record.baselines
        ]
        label = f"{name} (built-in)" if any(_name(run) == name for run in runs) else name
        last = max(last, _curve(axis, lives, COLOUR[name], label, 1.0, zorder=1.5))
    axis.set_xlim(0, last * 1.01)
    axis.set_ylim(-0.02, 1.04)
    axis.set_xlabel("tick")
    axis.set_ylabel("share still alive")
    _percent(axis)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, 1.22), ncols=3)
    return "Share of birds alive after each tick; thin lines are the built-in policies on the same seeds."


def _deaths(axis: Any, runs: Sequence[Records]) -> str | None:
    far = 2.6
    drawn = 0
    for index, run in enumerate(runs):
        deaths = [record.analysis.death for record in run.clean if record.analysis and record.analysis.death]
        for reason, marker in ((Reason.PIPE, "o"), (Reason.FLOOR, "v"), (Reason.CEILING, "^")):
            places = [(death.pipe, 2 * death.offset / death.gap_height) for death in deaths if death.reason is reason]
            if places:
                jitter = (index - (len(runs) - 1) / 2) * 0.18
                xs, ys = [pipe + jitter for pipe, _ in places], [max(-far, min(far, offset)) for _, offset in places]
                axis.scatter(xs, ys, s=22, marker=marker, color=_colour(index), alpha=0.6, linewidths=0, clip_on=False)
                drawn += len(places)
    if not drawn:
        return None
    left, right = axis.get_xlim()
    left, right = min(left, -0.6), max(right, 2.6)
    for low, high in ((1, far + 0.3), (-far - 0.3, -1)):
        axis.axhspan(low, high, color=COLOUR["pipe"], alpha=0.22, linewidth=0)
    axis.axhline(0, color=COLOUR["mute"], linewidth=0.6, linestyle=(0, (4, 3)))
    axis.set_xlim(left, right)
    axis.set_ylim(-far - 0.3, far + 0.3)
    axis.set_yticks([-1, 0, 1], ["lower edge", "centre", "upper edge"])
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_xlabel("pipe that was hit, or next to come")
    axis.grid(visible=False)
    return "Where the bird was when it died, measured in its gap: dots hit a pipe, triangles the floor ▾ or the ceiling ▴."


def _causes(axis: Any, runs: Sequence[Records]) -> str | None:
    ends = [end for end in ENDS if any(run.ends.get(end) for run in runs)]
    if not ends:
        return None
    height = 0.78 / len(runs)
    for index, run in enumerate(runs):
        counts = [run.ends.get(end, 0) for end in ends]
        places = [place + (index - (len(runs) - 1) / 2) * height for place in range(len(ends))]
        axis.barh(places, counts, height=height * 0.92, color=_colour(index), label=_name(run))
        for place, count in zip(places, counts, strict=True):
            if count:
                axis.text(count, place, f" {count}", va="center", fontsize=9, color=COLOUR["ink"])
    axis.set_yticks(range(len(ends)), [ENDS[end] for end in ends])
    axis.set_ylim(len(ends) - 0.4, -0.6)
    axis.set_xlabel("episodes")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.grid(axis="y", visible=False)
    axis.margins(x=0.12)
    if len(runs) > 1:
        axis.legend(loc="lower right")
    return "How every row of the run ended, errors and missing transcripts included."


def _format(axis: Any, runs: Sequence[Records]) -> str | None:
    if len(runs) > 1:
        return _format_compared(axis, runs)
    by_turn = _statuses(runs[0])
    if not by_turn:
        return None
    places, shares = _binned(by_turn)
    bottom = [0.0] * len(places)
    width = (places[1] - places[0] if len(places) > 1 else 1) * 0.96
    for status in Status:
        heights = [share.get(status, 0.0) for share in shares]
        if any(heights):
            axis.bar(places, heights, width=width, bottom=bottom, color=COLOUR[status.value], label=status.value)
            bottom = [low + high for low, high in zip(bottom, heights, strict=True)]
    axis.set_ylim(0, 1)
    axis.set_xlabel("turn")
    axis.set_ylabel("share of replies")
    axis.grid(visible=False)
    _percent(axis)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=4)
    return "What became of the replies, turn by turn. All but “ok” flew as no-op."


def _format_compared(axis: Any, runs: Sequence[Records]) -> str | None:
    drawn = False
    for index, run in enumerate(runs):
        by_turn = _statuses(run)
        if by_turn:
            places, shares = _binned(by_turn)
            axis.plot(
                places, [share.get(Status.OK, 0.0) for share in shares], color=_colour(index), linewidth=1.8, label=_name(run)
            )
            drawn = True
    if not drawn:
        return None
    axis.set_ylim(-0.02, 1.04)
    axis.set_xlabel("turn")
    axis.set_ylabel("share of valid replies")
    _percent(axis)
    axis.legend(loc="lower left")
    return "Share of replies with a legal action, turn by turn."


def _rewards(axis: Any, runs: Sequence[Records]) -> str | None:
    drawn = False
    for index, run in enumerate(runs):
        scored = [record for record in run.records if "reward" in record.scores]
        for clean in (True, False):
            places = [(record.row.index, record.scores["reward"]) for record in scored if record.clean is clean]
            if places:
                look: dict[str, Any] = (
                    {"color": _colour(index), "linewidths": 0} if clean else {"facecolors": "none", "edgecolors": _colour(index)}
                )
                axis.scatter(
                    *zip(*places, strict=True), s=20, zorder=3, label=_name(run) if clean else None, clip_on=False, **look
                )
                drawn = True
    longest = max(runs, key=lambda run: len(run.records))
    planner = [(record.row.index, record.baselines["planner"].scores["reward"]) for record in longest.records if record.baselines]
    if not drawn:
        return None
    if planner:
        axis.scatter(
            *zip(*planner, strict=True),
            s=60 if len(planner) < 150 else 12,
            marker="_",
            color=COLOUR["planner"],
            linewidths=1.2,
            label="planner",
        )
    axis.set_xlabel("episode")
    axis.set_ylabel("reward")
    axis.set_ylim(bottom=0)
    axis.grid(axis="x", visible=False)
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=4)
    return "Reward of every episode; dashes are the planner on the same seed, open circles errored and are no score."


_CHARTS: dict[str, tuple[str, Callable[[Any, Sequence[Records]], str | None]]] = {
    "pipes": ("Pipes passed", _pipes),
    "survival": ("Survival", _survival),
    "deaths": ("Where birds died", _deaths),
    "causes": ("How episodes ended", _causes),
    "format": ("Format by turn", _format),
    "rewards": ("Reward by episode", _rewards),
}


def _name(run: Records) -> str:
    """Return the run's name for a legend: short, printable, and not hidden by a leading underscore."""
    name = "".join(letter if letter.isprintable() else "\ufffd" for letter in run.label).lstrip("_") or "unknown"
    return name if len(name) <= 30 else f"{name[:29]}…"


def _colour(index: int) -> str:
    return RUN_COLOURS[index % len(RUN_COLOURS)]


def _percent(axis: Any) -> None:
    axis.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")


def _histogram(values: Sequence[float], edges: Sequence[float]) -> list[float]:
    counts = [0] * (len(edges) - 1)
    for value in values:
        counts[min(int((value - edges[0]) / (edges[1] - edges[0])), len(counts) - 1)] += 1
    return [count / max(len(values), 1) for count in counts]


def _curve(axis: Any, lives: list[tuple[int, Reason]], colour: str, label: str, width: float, zorder: float = 2.5) -> int:
    """Draw the share alive after each tick (Kaplan–Meier: those that left alive count until they left); return the last tick."""
    ends: dict[int, list[bool]] = {}
    for ticks, reason in lives:
        ends.setdefault(ticks, []).append(reason.crashed)
    at_risk, share = len(lives), 1.0
    xs, ys = [0], [1.0]
    for tick in sorted(ends):
        died = sum(ends[tick])
        if at_risk and died:
            share *= 1 - died / at_risk
        xs.append(tick)
        ys.append(share)
        at_risk -= len(ends[tick])
    if lives:
        axis.step(xs, ys, where="post", color=colour, linewidth=width, label=label, zorder=zorder)
    return xs[-1]


def _statuses(run: Records) -> list[dict[Status, int]]:
    """Return, for each turn, how many replies had which status; errored rollouts are left out."""
    by_turn: list[dict[Status, int]] = []
    for record in run.clean:
        for index, turn in enumerate(record.episode.turns if record.episode else ()):
            if index == len(by_turn):
                by_turn.append({})
            by_turn[index][turn.status] = by_turn[index].get(turn.status, 0) + 1
    return by_turn


def _binned(by_turn: list[dict[Status, int]], bins: int = 60) -> tuple[list[float], list[dict[Status, float]]]:
    """Return centres and shares of at most `bins` groups of turns."""
    size = -(-len(by_turn) // bins)
    places, shares = [], []
    for start in range(0, len(by_turn), size):
        group = by_turn[start : start + size]
        total = sum(sum(turn.values()) for turn in group)
        places.append(start + (size - 1) / 2)
        shares.append({status: sum(turn.get(status, 0) for turn in group) / total for status in Status})
    return places, shares


# --- from matplotlib's SVG to the page's -------------------------------------------------------------------------------

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "http://www.w3.org/1999/xlink"
_KEPT = (
    "font-size",
    "opacity",
    "fill-opacity",
    "stroke-opacity",
    "stroke-width",
    "stroke-dasharray",
    "stroke-dashoffset",
    "text-anchor",
)


def _figure() -> Any:
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.5))
    FigureCanvasSVG(figure)
    figure.patch.set_visible(False)
    return figure


def _svg(figure: Any, name: str, description: str) -> str:
    """Return `figure` as an SVG element for the page."""
    for axis in figure.axes:
        axis.patch.set_visible(False)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    root = ElementTree.fromstring(buffer.getvalue())
    used = set(re.findall(r"#([\w-]+)", " ".join(_references(root))))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}style", f"{{{_SVG}}}metadata"):
                parent.remove(child)
    for element in root.iter():
        _clean(element, name, used)
    for unwanted in ("width", "height", "version"):
        root.attrib.pop(unwanted, None)
    root.set("class", "chart")
    root.set("role", "img")
    root.set("aria-label", description)
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)


def _references(root: ElementTree.Element) -> list[str]:
    return [value for element in root.iter() for key, value in element.items() if key != "id" and "#" in value]


def _clean(element: ElementTree.Element, name: str, used: set[str]) -> None:
    """Turn one element's style into classes and attributes, and make its identifiers the picture's own."""
    classes = []
    if element.tag.endswith("}text"):
        classes.append("label")
    for part in element.attrib.pop("style", "").split(";"):
        key, _, value = (side.strip() for side in part.partition(":"))
        if key in ("fill", "stroke"):
            token = TOKENS.get(value.lower())
            if token:
                classes.append(f"{key[0]}-{token}")
            else:
                element.set(key, value)
        elif key in _KEPT:
            element.set(key, value)
        elif key == "font":
            size = re.search(r"([\d.]+)px", value)
            if size:
                element.set("font-size", size[1])
    for key in ("fill", "stroke"):
        token = TOKENS.get(element.attrib.get(key, "").lower())
        if token:
            del element.attrib[key]
            classes.append(f"{key[0]}-{token}")
    if classes:
        element.set("class", " ".join(classes))
    identifier = element.attrib.pop("id", None)
    if identifier in used:
        element.set("id", f"{name}-{identifier}")
    for key, value in list(element.items()):
        if "#" in value and key not in ("id", "class"):
            element.set(key, re.sub(r"#([\w-]+)", rf"#{name}-\1", value))
