"""A context → one HTML page that needs nothing but itself.

Templates escape every string; the page's own style and script are allowed by their hashes, and nothing else is allowed at all.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from flappybird.report import html
from flappybird.report.context import page_context
from flappybird.report.data import Records
from flappybird.report.palette import look
from flappybird.report.payload import embed, pack

SCRIPTS = (
    "course",
    "flight",
    "scene",
    "state",
    "timeline",
    "lanes",
    "turn",
    "transcript",
    "stick",
    "links",
    "table",
    "save",
    "main",
)
"""The modules of the page's script in the order in which it inlines them; they share one scope."""

ROWS_FIRST = 100
"""Rows of the table of episodes that stand in the page as such; the others are packed, and the script shows as many at a time."""

STYLES = ("base", "player", "tables", "print")


def build(runs: Sequence[Records], folder: Path, built: datetime | None = None, **wanted: Any) -> str:
    """Return the page for `runs`; arguments are those of `context.page_context`."""
    return render(page_context(runs, folder, built, **wanted))


def render(context: dict[str, Any]) -> str:
    """Return the page of a context."""
    rows = templates().get_template("rows.html").make_module({**context, "rows_first": ROWS_FIRST})
    rest = [str(rows.line(row, ROWS_FIRST + place)) for place, row in enumerate(context["episodes"][ROWS_FIRST:])]  # type: ignore[attr-defined]
    data = context["data"] | ({"rest": pack(rest)} if rest else {})
    context = {**context, "data": Markup(embed(data)), "rows_first": ROWS_FIRST}
    looks = style(context["tokens"])
    policy = (
        f"default-src 'none'; script-src {content_hash(script())}; style-src {content_hash(looks)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return templates().get_template("page.html").render(context, style=Markup(looks), script=Markup(script()), policy=policy)


@lru_cache(maxsize=1)
def templates() -> Environment:
    """Return the environment of the page's templates."""
    made = environment(lambda name: _own(f"templates/{name}"))
    made.globals["look"] = look
    return made


def environment(load: Callable[[str], str]) -> Environment:
    """Return an environment of templates that `load` reads: all strings are escaped, and a name that is not there is an error."""
    made = Environment(
        loader=FunctionLoader(load),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=html.clean,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for function in (html.number, html.span, html.percent, html.count, html.ordinal, html.moment, html.as_json, html.minus):
        made.filters[function.__name__] = function
    return made


@lru_cache(maxsize=1)
def script() -> str:
    """Return the page's script: its modules, one after the other, in a scope of their own."""
    modules = "\n".join(_own(f"player/{name}.js") for name in SCRIPTS)
    return f'"use strict";\n(() => {{\n{modules}\n}})();\n'


def style(tokens: Mapping[str, tuple[str, str]]) -> str:
    """Return the page's style sheet for colours by name: (light, dark)."""
    return _style(tuple((name, *pair) for name, pair in tokens.items()))


@lru_cache(maxsize=8)
def _style(tokens: tuple[tuple[str, str, str], ...]) -> str:
    light = "".join(f"--{name}:{one};" for name, one, _ in tokens)
    dark = "".join(f"--{name}:{other};" for name, _, other in tokens)
    classes = "".join(
        f".f-{name}{{fill:var(--{name})}}.s-{name}{{stroke:var(--{name})}}.b-{name}{{background:var(--{name})}}"
        for name, _, _ in tokens
    )
    own = "\n".join(_own(f"styles/{name}.css") for name in STYLES)
    return f":root{{{light}}}\n@media screen and (prefers-color-scheme: dark){{:root{{{dark}}}}}\n{own}\n{classes}\n"


def _own(name: str) -> str:
    return files(__package__).joinpath(*name.split("/")).read_text("utf-8")


def content_hash(text: str) -> str:
    """Return what a content security policy allows `text` by."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
