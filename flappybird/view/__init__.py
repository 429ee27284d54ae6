"""`flappybird view`: every run below a folder in the browser, live, at any size.

Pages are made by the server and work without a script; a small one fetches the table again while a run goes on. An episode is
opened with the report's own page. Nothing is written but the index, see `runs.index`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from flappybird.errors import ConfigError
from flappybird.server import is_loopback, listen
from flappybird.system.signals import held
from flappybird.view.app import View


def default_folders() -> list[Path]:
    """Return where runs usually lie, from the folder in which the command runs."""
    return [path for path in (Path("environments/flappybird"), Path("outputs")) if path.is_dir()] or [Path()]


def view(folder: Path | None = None, host: str = "127.0.0.1", port: int = 0) -> None:
    """Serve the runs below `folder` until Ctrl-C or SIGTERM; below the usual folders if it is not given.

    Raises:
        ConfigError: there is no such folder, or the address cannot be had.
        KeyboardInterrupt: after Ctrl-C.
    """
    if folder is not None and not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder")
    folders = [folder] if folder is not None else default_folders()
    with listen(host, port) as bound:
        shown = View(folders, host, bound.getsockname()[1])
        if not is_loopback(host):
            print(f"warning: {host} is not a loopback address: whoever knows this address sees these runs", file=sys.stderr)
        greeting = f"runs below {', '.join(map(str, folders))} on {shown.url} (Ctrl-C stops)"
        with held() as came, shown.watched():
            shown.serve(bound, greeting, came)
