"""Calls to this machine itself, which no proxy can make."""

from __future__ import annotations

import os
from collections.abc import MutableMapping

NAMES = ("localhost", "127.0.0.1", "::1")


def spare_loopback(environ: MutableMapping[str, str] = os.environ) -> None:
    """Have HTTP clients that start with `environ` call this machine directly; all other calls go as the user's settings say."""
    spared = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    listed = [name.strip() for name in spared.split(",") if name.strip()]
    if "*" not in listed:
        spared = ",".join(listed + [name for name in NAMES if name not in listed])
    environ["NO_PROXY"] = environ["no_proxy"] = spared
