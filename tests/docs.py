"""`python -m tests.docs` writes docs/api.md from what the package says of itself."""

from __future__ import annotations

import inspect
from importlib import import_module

import flappybird
from tests.conftest import ROOT

MODULES = ("analysis", "batch", "gymnasium_env", "runs", "sft", "baselines", "server", "cli")
"""Public modules beside the face."""


def api() -> str:
    """Return docs/api.md."""
    lines = [
        "# Public names",
        "",
        "What `flappybird` exports; each is loaded when it is touched. Anything else may change without notice.",
        "",
        "| name | what it is |",
        "|---|---|",
    ]
    lines += [
        f"| `flappybird.{name}` | {first_line(getattr(flappybird, name))} |"
        for name in sorted(flappybird.__all__)
        if name != "__version__"
    ]
    lines += ["", "Modules that are public beside it:", "", "| module | what it is for |", "|---|---|"]
    lines += [f"| `flappybird.{name}` | {first_line(import_module(f'flappybird.{name}'))} |" for name in MODULES]
    return "\n".join(lines) + "\n"


def first_line(thing: object) -> str:
    """Return the first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split()).replace("|", "\\|")


if __name__ == "__main__":
    (ROOT / "docs" / "api.md").write_text(api(), encoding="utf-8")
