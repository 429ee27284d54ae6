"""The commands that README and docs/ tell people to type."""

from __future__ import annotations

import re
import shlex

from tests.conftest import ROOT

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {"README.md": TEXT} | {
    f"docs/{path.name}": path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))
}
"""Every page by its path."""


def commands() -> list[str]:
    """Every command in the bash blocks of all pages, one line each, in the order of the pages."""
    found = []
    for block in re.findall(r"```bash\n(.*?)```", "\n".join(PAGES.values()), re.DOTALL):
        lines = re.sub(r" *\\\n *", " ", block)
        # A quoted argument may go over several lines.
        while lines.strip():
            end = 0
            while True:
                end = lines.find("\n", end + 1)
                candidate = lines if end < 0 else lines[:end]
                try:
                    shlex.split(candidate, comments=True)
                except ValueError:
                    continue
                break
            lines = "" if end < 0 else lines[end + 1 :]
            if candidate.strip():
                found.append(candidate.strip())
    return found


def words(command: str) -> list[str]:
    """The words of a command, without `uv run`, which the tests are under already."""
    split = shlex.split(command, comments=True)
    return split[2:] if split[:2] == ["uv", "run"] else split


def command(beginning: str) -> list[str]:
    """The words of the one command that begins so."""
    (found,) = [line for line in commands() if line.startswith(beginning)]
    return words(found)
