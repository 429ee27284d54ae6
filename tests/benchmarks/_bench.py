"""What the benchmarks share: the machine's name, and an environment of their own for peers."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def machine() -> str:
    """Return what the figures were measured on."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    return f"{model}, {os.cpu_count()} processors, Python {platform.python_version()}"


@contextlib.contextmanager
def peers(*requirements: str) -> Iterator[Path]:
    """Give the interpreter of a throw-away environment with `requirements` installed."""
    with tempfile.TemporaryDirectory(prefix="flappybird-peers-") as folder:
        python = Path(folder) / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        uv = shutil.which("uv")
        if uv:
            subprocess.run([uv, "venv", "-q", "--python", sys.executable, f"{folder}/venv"], check=True)
            subprocess.run([uv, "pip", "install", "-q", "--python", str(python), *requirements], check=True)
        else:
            subprocess.run([sys.executable, "-m", "venv", f"{folder}/venv"], check=True)
            subprocess.run([str(python), "-m", "pip", "install", "-q", *requirements], check=True)
        yield python


def ask(python: Path, script: str, *arguments: object) -> Any:
    """Run `script`, a file beside this one, with `python` and return the JSON value that its last line is."""
    command = [str(python), "-W", "ignore", str(Path(__file__).parent / script), *map(str, arguments)]
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(told.stdout.splitlines()[-1])
