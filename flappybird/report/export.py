"""Charts and tables as files, fit for a paper: SVG, PDF and PNG; CSV, Parquet, Markdown and LaTeX."""

from __future__ import annotations

import logging
import textwrap
import warnings
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from flappybird.errors import ConfigError
from flappybird.report.charts import charts
from flappybird.report.data import Records
from flappybird.report.figures import Chart, Key, Mark
from flappybird.report.html import clean
from flappybird.report.overview import Overview
from flappybird.report.palette import TOKENS
from flappybird.report.summary import Summary
from flappybird.report.tables import latex, markdown, tables
from flappybird.system import install
from flappybird.system.files import replacing, write_text

NEEDED = ("matplotlib", "pandas", "pyarrow")

WIDTH = 3.4
"""Inches: a column of a paper."""

DPI = 300
"""Of PNG files."""

FONTS = ["DejaVu Sans", "Noto Sans CJK SC", "Noto Sans CJK JP", "WenQuanYi Zen Hei", "Noto Sans", "Noto Emoji"]
"""The first has nearly all letters; of the others those that are installed add theirs."""

STYLE = {
    "svg.fonttype": "path",
    "svg.hashsalt": "flappybird",
    "pdf.fonttype": 42,
    "font.size": 7.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "grid.color": TOKENS["grid"][0],
    "grid.linewidth": 0.5,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "text.parse_math": False,
    "figure.constrained_layout.use": True,
}

MARKERS = {"dot": "o", "ring": "o", "down": "v", "up": "^", "dash": "_"}


def check(folder: Path) -> None:
    """Raise where nothing could be exported to `folder`, before anything is read.

    Raises:
        ConfigError: `folder` is there and is no folder.
        MissingPart: what draws figures and writes tables is not installed.
    """
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--export {folder}: is a file; name a folder")
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise install.missing(f"--export needs {', '.join(missing)}", "export")


def export(runs: Sequence[Records], folder: Path) -> list[Path]:
    """Write every chart and table of `runs` below `folder` and return the files; each is whole.

    Figures are `figures/NAME.{svg,pdf,png}`, tables `tables/NAME.{csv,parquet,md,tex}`; turns, of which there are thousands, are
    CSV and Parquet alone.
    """
    check(folder)
    overview = Overview(runs, [Summary(run) for run in runs])
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    (folder / "tables").mkdir(exist_ok=True)
    forest = overview.forest()
    written = []
    for chart in [*([forest] if forest else []), *charts(overview)]:
        written += _figure(chart, folder / "figures", overview)
    for name, rows in tables(overview).items():
        written += _table(name, rows, folder / "tables")
    return written


def _table(name: str, rows: list[dict[str, Any]], folder: Path) -> list[Path]:
    import pandas

    frame = pandas.DataFrame(rows).convert_dtypes()
    texts = {"csv": frame.to_csv(index=False)}
    if name != "turns":
        texts |= {"md": markdown(rows), "tex": latex(rows, long=name == "episodes")}
    paths = []
    for kind, text in texts.items():
        paths.append(folder / f"{name}.{kind}")
        write_text(paths[-1], text)
    paths.append(folder / f"{name}.parquet")
    with replacing(paths[-1]) as temporary:
        frame.to_parquet(temporary, index=False)
    return paths


def _figure(chart: Chart, folder: Path, overview: Overview) -> list[Path]:
    import matplotlib
    from matplotlib.figure import Figure

    paths = []
    metadata: dict[str, dict[str, Any]] = {
        "svg": {"Date": None, "Creator": "flappybird"},
        "pdf": {"CreationDate": None, "Creator": "flappybird", "Title": clean(chart.title)},
        "png": {"Software": "flappybird"},
    }
    with matplotlib.rc_context({**STYLE, "font.family": _fonts()}), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a name in letters that no font here has; the run's number is before it
        legend = [] if len(chart.legend) == 1 and chart.legend[0].run is not None else list(chart.legend)
        names = [_name(key, overview) for key in legend]
        columns = 1 if max(map(len, names), default=0) > 26 else 2
        names = [textwrap.fill(name, 27 if columns == 2 else 56, break_on_hyphens=False) for name in names]
        rows = sum(name.count("\n") + 1 for name in names) / columns
        figure = Figure(figsize=(WIDTH, WIDTH * chart.height / 440 + 0.15 * rows + 0.1))
        axes = figure.add_subplot()
        for mark in chart.marks:
            _draw(axes, mark)
        _axes(axes, chart)
        if legend:
            handles = [_handle(key) for key in legend]
            figure.legend(handles, names, loc="outside lower center", ncols=columns, fontsize=6.5, handlelength=1.8)
        for kind, facts in metadata.items():
            paths.append(folder / f"{chart.name}.{kind}")
            with replacing(paths[-1]) as temporary:
                figure.savefig(temporary, format=kind, dpi=DPI, metadata=facts)
    return paths


def _fonts() -> list[str]:
    from matplotlib import font_manager

    # It says for each font whose weights have other names that it takes another weight.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    known = set(font_manager.get_font_names())
    return [name for name in FONTS if name in known]


def _name(key: Key, overview: Overview) -> str:
    number = f"{overview.number[key.run]}  " if key.run is not None and len(overview.runs) > 1 else ""
    return number + "".join(letter if letter.isprintable() else "\ufffd" for letter in key.label)


def _colour(look: str) -> str:
    return TOKENS[look][0]


def _dashes(dash: str) -> Any:
    return (0, tuple(float(part) / 2 for part in dash.split())) if dash else "-"


def _draw(axes: Any, mark: Mark) -> None:
    from matplotlib.patches import Rectangle

    xs, ys = zip(*mark.points, strict=True)
    colour = _colour(mark.look)
    if mark.kind in ("bar", "band"):
        low = (min(xs), min(ys))
        look: dict[str, Any] = {"alpha": 0.2, "zorder": 0.5, "linewidth": 0} if mark.kind == "band" else {"linewidth": 0.3}
        axes.add_patch(Rectangle(low, max(xs) - low[0], max(ys) - low[1], facecolor=colour, edgecolor="white", **look))
    elif mark.kind in ("line", "step"):
        style = "steps-post" if mark.kind == "step" else "default"
        axes.plot(xs, ys, color=colour, linewidth=0.6 * mark.width, linestyle=_dashes(mark.dash), drawstyle=style, clip_on=False)
    else:
        fill = "none" if mark.kind == "ring" else colour
        size = 14 if mark.kind == "dash" else 9
        axes.scatter(
            xs, ys, s=size, marker=MARKERS[mark.kind], facecolors=fill, edgecolors=colour, linewidths=0.6, zorder=3, clip_on=False
        )


def _handle(key: Key) -> Any:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    colour = _colour(key.look)
    if key.kind in ("bar", "band"):
        return Patch(facecolor=colour)
    if key.kind in ("line", "step"):
        return Line2D([], [], color=colour, linewidth=1.2, linestyle=_dashes(key.dash))
    fill = "none" if key.kind == "ring" else colour
    return Line2D([], [], color=colour, linestyle="none", marker=MARKERS[key.kind], markerfacecolor=fill, markersize=3.5)


def _axes(axes: Any, chart: Chart) -> None:
    for axis, ticks, limit, label, which in (
        (chart.x, axes.set_xticks, axes.set_xlim, axes.set_xlabel, "x"),
        (chart.y, axes.set_yticks, axes.set_ylim, axes.set_ylabel, "y"),
    ):
        placed: Callable[..., Any] = ticks
        placed([value for value, _ in axis.ticks], [text for _, text in axis.ticks])
        limit(axis.low, axis.high)
        label(axis.label)
        axes.grid(axis.grid, axis=which)
