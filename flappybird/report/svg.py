"""A chart → an inline SVG whose colours and type are the page's, so that it looks right in light, dark and print."""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup

from flappybird.report.figures import Axis, Chart, Mark
from flappybird.report.html import clean

WIDTH = 440
LETTER = 6.3
"""Rough width of a letter, for the room beside the axis."""
FILLED = ("bar", "dot", "down", "up", "band")


def draw(chart: Chart) -> Markup:
    """Return `chart` as an SVG element. Marks carry what they stand for as title, and a link where they have one."""
    plot = _Plot(chart)
    body = Markup("").join((*plot.axes(), *plot.marks()))
    return Markup('<svg class="chart" viewBox="0 0 {} {}" role="group" aria-label="{}">{}</svg>').format(
        WIDTH, chart.height, clean(f"{chart.title}. {chart.caption}"), body
    )


class _Plot:
    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.left = 26 + LETTER * max((len(label) for _, label in chart.y.ticks), default=0) + (14 if chart.y.label else 0)
        self.left = max(self.left, 20)
        self.right, self.top, self.bottom = WIDTH - 12, 10, chart.height - (42 if chart.x.label else 26)

    def x(self, value: float) -> float:
        axis = self.chart.x
        return self.left + (self.right - self.left) * (value - axis.low) / ((axis.high - axis.low) or 1)

    def y(self, value: float) -> float:
        axis = self.chart.y
        return self.bottom - (self.bottom - self.top) * (value - axis.low) / ((axis.high - axis.low) or 1)

    def axes(self) -> Iterator[Markup]:
        x, y = self.chart.x, self.chart.y
        line = Markup('<path class="s-grid" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>')
        text = Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>')
        for value, label in y.ticks:
            if y.grid:
                yield line.format(self.left, self.y(value), self.right, self.y(value))
            yield text.format(self.left - 7, self.y(value) + 4, "end", clean(label))
        for value, label in self._shown(x):
            if x.grid:
                yield line.format(self.x(value), self.top, self.x(value), self.bottom)
            yield text.format(self.x(value), self.bottom + 16, "middle", clean(label))
        yield Markup('<path class="s-mute" d="M{:.1f} {:.1f}H{:.1f}"/>').format(self.left, self.bottom, self.right)
        yield text.format((self.left + self.right) / 2, self.chart.height - 6, "middle", clean(x.label))
        if y.label:
            middle = (self.top + self.bottom) / 2
            yield Markup('<text x="12" y="{0:.1f}" text-anchor="middle" transform="rotate(-90 12 {0:.1f})">{1}</text>').format(
                middle, clean(y.label)
            )

    def _shown(self, axis: Axis) -> Iterator[tuple[float, str]]:
        """Yield the ticks of the x axis that do not overlap."""
        end = -1e9
        for value, label in axis.ticks:
            half = LETTER * len(label) / 2 + 3
            if self.x(value) - half >= end:
                end = self.x(value) + half
                yield value, label

    def marks(self) -> Iterator[Markup]:
        for mark in self.chart.marks:
            shape = self._shape(mark)
            title = Markup("<title>{}</title>").format(clean(mark.title)) if mark.title else ""
            paint = f"f-{mark.look}" if mark.kind in FILLED else f"s-{mark.look}"
            shape = Markup('<{0} class="m-{1} {2}"{4}>{3}</{5}>').format(
                shape, mark.kind, paint, title, self._stroke(mark), shape.split(" ", 1)[0]
            )
            yield Markup('<a href="#{}" tabindex="-1">{}</a>').format(mark.link, shape) if mark.link else shape

    def _stroke(self, mark: Mark) -> Markup:
        if mark.kind not in ("line", "step"):
            return Markup("")
        dash = Markup(' stroke-dasharray="{}"').format(mark.dash) if mark.dash else Markup("")
        return Markup(' stroke-width="{:g}"{}').format(mark.width, dash)

    def _shape(self, mark: Mark) -> Markup:
        points = [(self.x(x), self.y(y)) for x, y in mark.points]
        (x, y), (last_x, last_y) = points[0], points[-1]
        if mark.kind in ("bar", "band"):
            return Markup('rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"').format(
                min(x, last_x), min(y, last_y), abs(last_x - x), abs(last_y - y)
            )
        if mark.kind in ("line", "step"):
            path = [f"M{x:.1f} {y:.1f}"]
            for at_x, at_y in points[1:]:
                path.append(f"H{at_x:.1f}V{at_y:.1f}" if mark.kind == "step" else f"L{at_x:.1f} {at_y:.1f}")
            return Markup('path d="{}"').format("".join(path))
        if mark.kind in ("dot", "ring"):
            return Markup('circle cx="{:.1f}" cy="{:.1f}" r="4"').format(x, y)
        if mark.kind == "dash":
            return Markup('path d="M{:.1f} {:.1f}h9"').format(x - 4.5, y)
        sign = 1 if mark.kind == "down" else -1
        return Markup('path d="M{:.1f} {:.1f}h9l-4.5 {:.1f}z"').format(x - 4.5, y - 3.5 * sign, 8 * sign)
