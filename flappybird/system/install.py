"""Where this copy of the package came from, how to add what it lacks, and whether the parts beside it are ours.

The name of this package belongs to somebody else on the public index, so no advice here ever sends anybody there: an extra
is added to the copy that runs, from where that copy came (PEP 610, `direct_url.json`).
"""

from __future__ import annotations

import json
import sys
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from flappybird.errors import MissingPart

HOME = Path(__file__).resolve().parents[2]
"""The folder in which `flappybird`, `render` and `videos` lie side by side."""


class Origin(NamedTuple):
    """Where the installed copy came from."""

    kind: str
    """`checkout`, `folder`, `git`, `archive`, or `unknown`."""
    where: str
    """The folder or address; empty where it is unknown."""


def origin() -> Origin:
    """Return where this copy came from: a folder of its sources that it runs from or was built from, or an address."""
    if (HOME / "pyproject.toml").is_file() and not _installed_in(HOME):
        return Origin("checkout", str(HOME))
    try:
        stated = json.loads(metadata.distribution("flappybird").read_text("direct_url.json") or "{}")
        url = stated["url"]
        if not isinstance(url, str):
            raise ValueError(url)
    except (metadata.PackageNotFoundError, KeyError, TypeError, ValueError):
        return Origin("unknown", "")
    if "vcs_info" in stated:
        revision = stated["vcs_info"].get("requested_revision")
        return Origin("git", f"{stated['vcs_info'].get('vcs', 'git')}+{url}" + (f"@{revision}" if revision else ""))
    if "dir_info" in stated:
        return Origin("folder", url2pathname(unquote(urlsplit(url).path)))
    return Origin("archive", url)


def _installed_in(folder: Path) -> bool:
    return folder.name in ("site-packages", "dist-packages")


def how_to_add(extra: str) -> str:
    """Return, in words, how to add the optional part `extra` to this copy."""
    kind, where = origin()
    if kind == "checkout":
        return f"`uv sync --extra {extra}` in {where}, or `pip install -e '{where}[{extra}]'`"
    if kind == "folder":
        return f"`pip install '{where}[{extra}]'`"
    if kind in ("git", "archive"):
        requirement = f"flappybird[{extra}] @ {where}"
        return f"`pip install '{requirement}'`"
    return (
        f"install the extra `{extra}` from where this copy came from, its checkout or Git address "
        "(the package of this name on the index is another one)"
    )


def missing(need: str, extra: str) -> MissingPart:
    """Return the error for an optional part that is not installed; `need` says who needs what: `MP4 needs imageio-ffmpeg`."""
    return MissingPart(f"{need}; the extra [{extra}] brings it: {how_to_add(extra)}")


def missing_api(need: str, lacks: str, extra: str) -> MissingPart:
    """Return the error for an API that the installed release of verifiers does not have, or that is not installed at all."""
    return missing(f"{need}, and {found_verifiers(lacks)}", extra)


def found_verifiers(lacks: str) -> str:
    """Return, in words, which release of verifiers is there: `verifiers 0.4.0 has none`."""
    try:
        return f"verifiers {metadata.version('verifiers')} {lacks}"
    except metadata.PackageNotFoundError:
        return "verifiers is not installed"


def sibling(module: str, need: str, extra: str) -> Any:
    """Return the module `render…` or `videos…` that lies beside this package.

    Args:
        module: its name, such as `render.scene`.
        need: who needs it, for the message: `observations with a picture need the renderer`.
        extra: the extra that brings the libraries it imports.

    Raises:
        MissingPart: a library is not installed, or a module of that name elsewhere shadows ours.
    """
    top = module.partition(".")[0]
    try:
        found = import_module(module)
    except ImportError as error:
        refuse_shadow(top)
        if isinstance(error, MissingPart):
            raise
        raise missing(need, extra) from None
    refuse_shadow(top)
    return found


def refuse_shadow(top: str) -> None:
    """Raise MissingPart where the `render` or `videos` that Python finds is not the one beside this package."""
    known = sys.modules.get(top)
    if known is None:
        return
    file = getattr(known, "__file__", None) or next(iter(getattr(known, "__path__", ())), None)
    if file is None:
        return
    path = Path(file).resolve()
    if not path.is_relative_to(HOME / top):
        found = path.parent if path.name == "__init__.py" else path
        raise MissingPart(
            f"{found} shadows this package's {top}: rename it, or run from another folder; `import {top}` must find {HOME / top}"
        )
