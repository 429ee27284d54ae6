"""A run → one page: what happened, why, and every episode to be watched again.

`data` checks and explains every rollout, `summary` computes the numbers, `charts` draws, `payload` packs what the player
needs, `page` puts it together. The page is one file that fetches nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from flappybird import __version__
from flappybird.files import write_text
from flappybird.runs import Run

FOLDER = Path("environments/flappybird/reports")
"""Where reports are written when nothing else is said, from the folder in which the command runs."""


def write_report(runs: list[Run], path: Path, *, videos: Path | None = None) -> Path:
    """Write the report of `runs` under `path`, whole or not at all, and return `path`.

    Args:
        runs: one run, or several to compare.
        path: the HTML file; folders that are missing are made.
        videos: a folder of exported videos to link to; `videos` inside each run if not given.
    """
    from flappybird.report.data import gather
    from flappybird.report.page import build

    path = Path(path)
    page = build(gather(runs, videos), path.parent)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, page)
    return path


def report_name(run: Run) -> str:
    """Return a file name for the report of `run`: environment, version, model, examples, rollouts, a hash of the settings."""
    examples = {row.example if row.example is not None else row.index for row in run.rows}
    rollouts = max((row.rollout for row in run.rows), default=0) + 1
    settings = json.dumps([run.env_args, run.sampling], sort_keys=True, default=str)
    digest = hashlib.sha256(settings.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    version = _safe(run.versions.get("flappybird") or __version__)
    return f"flappybird-{version}--{_safe(run.model)}--n{len(examples)}-r{rollouts}--{digest}.html"


def summarise(runs: list[Run]) -> dict[str, Any]:
    """Return the numbers of the report of `runs` as plain JSON values."""
    from flappybird.report.data import gather
    from flappybird.report.summary import to_dict

    return to_dict(gather(runs))


def _safe(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:60].rstrip("-.") or "unknown"
