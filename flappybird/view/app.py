"""The pages of `flappybird view`, and who may see them."""

from __future__ import annotations

import contextlib
import json
import math
import secrets
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import uvicorn
from jinja2 import Environment
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from flappybird.errors import ConfigError, EpisodeError, FlappyError, show
from flappybird.report.causes import CAUSES
from flappybird.report.data import ENDS, explain, gather
from flappybird.report.overview import end_name
from flappybird.report.page import build, content_hash, environment, style
from flappybird.report.palette import TOKENS
from flappybird.report.progress import progress_data
from flappybird.report.progress_page import progress_page
from flappybird.runs import load_run, open_run
from flappybird.runs.entries import file_of
from flappybird.runs.folder import episode_files
from flappybird.runs.index import Index, Where
from flappybird.server import is_loopback
from flappybird.view.guard import Guarded
from flappybird.view.listing import Listed, Stamp, duration, find, listed, progress, stamp, trainings, within

PAGE = 100
"""Rows of a page of the table."""

EVERY_SECONDS = 2.0
"""How often the index looks for new rows, and an open page for new numbers."""

NUMBERS = ("reward", "pipes", "ticks", "format", "invalid", "tokens", "turns")
"""Columns that can be filtered by a range."""

SHOWN = {
    "offset": "Row",
    "seed": "Seed",
    "level": "Level",
    "ended": "Ended",
    "cause": "Lost by",
    "ticks": "Ticks",
    "pipes": "Pipes",
    "reward": "Reward",
    "format": "Format",
    "invalid": "Invalid",
    "tokens": "Tokens",
    "verified": "Verified",
}
"""Columns of the table."""


class View:
    """The application that shows the runs below some folders.

    Args:
        folders: where to look.
        host: the address that it is bound to; where that is no loopback address, pages want a random token.
        port: the port.
        index: where rows are kept; the user's own if not given.
    """

    def __init__(self, folders: Sequence[Path], host: str = "127.0.0.1", port: int = 0, index: Index | None = None) -> None:
        self.folders, self.index = [folder.resolve() for folder in folders], index or Index()
        self.token = None if is_loopback(host) else secrets.token_urlsafe(16)
        self.anywhere = host in ("0.0.0.0", "::", "")
        """Whether it listens on every address, so that any name may stand in Host."""
        shown = f"[{host}]" if ":" in host else host
        self.hosts = {f"{name}:{port}" for name in (shown, "localhost", "127.0.0.1", "[::1]")}
        self.url = f"http://{shown}:{port}/" + (f"?token={self.token}" if self.token else "")
        self.problems: dict[Path, str] = {}
        """Of each run that cannot be indexed, why."""
        self._read: dict[Path, Stamp] = {}
        """As what each run was indexed last."""
        self._listed: dict[Path, tuple[Stamp, Listed]] = {}
        """Runs that are over, as the list shows them."""
        self._stop = threading.Event()
        routes = [
            Route("/", self.runs),
            Route("/run", self.run),
            Route("/rows", self.run),
            Route("/episode", self.episode),
            Route("/report", self.report),
            Route("/training", self.training),
        ]
        handlers: Any = {HTTPException: _not_there, FlappyError: _failed, OSError: _failed}
        self.app: ASGIApp = Guarded(Starlette(routes=routes, exception_handlers=handlers), self)

    # --- reading ---

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Keep the index true during the block, in a thread of its own."""
        watching = threading.Thread(target=self._watch, daemon=True)
        watching.start()
        try:
            yield
        finally:
            self._stop.set()
            watching.join(5)

    def _watch(self) -> None:
        while not self._stop.is_set():
            for folder in self.folders:
                for path in find(folder):
                    self.read(path)
                    if self._stop.is_set():
                        return
            self._stop.wait(EVERY_SECONDS)

    def read(self, path: Path) -> None:
        """Index what is new of a run."""
        now = stamp(path)
        if now is not None and self._read.get(path) == now:
            return
        try:
            for _ in self.index.update(path, explain=explain):
                if self._stop.is_set():
                    return
            self.problems.pop(path, None)
            if now is not None:
                self._read[path] = now
        except (FlappyError, OSError) as error:
            self.problems[path] = str(error)

    def listed(self) -> list[Listed]:
        """Return all runs, the newest first."""
        found = [self._of(path, folder, number) for number, folder in enumerate(self.folders) for path in find(folder)]
        return sorted(found, key=lambda run: -run.changed)

    def _of(self, path: Path, folder: Path, number: int) -> Listed:
        now = stamp(path)
        settled = now is not None and self._read.get(path) == now
        before = self._listed.get(path)
        if settled and before and before[0] == now:
            return before[1]
        run = listed(path, folder, self.index, number)
        problem = self.problems.get(path)
        if problem and not run.rows:
            return replace(run, state="broken", problem=problem)
        if now is not None and settled and run.state != "running":
            self._listed[path] = now, run
        return run

    def _path(self, key: str) -> tuple[Path, int]:
        """Return the run that `key` names, and the number of its folder."""
        number, _, name = key.partition("/")
        if (place := _whole(number)) is not None and place < len(self.folders):
            path = within(name, self.folders[place])
            if path.exists():
                return path, place
        raise HTTPException(404, f"{show(key, 200)}: there is no such run, or it has gone")

    # --- pages ---

    async def runs(self, request: Request) -> Response:
        """The list of runs."""
        wanted = request.query_params.get("q", "")
        found = await run_in_threadpool(self.listed)
        trained = await run_in_threadpool(trainings, found, self.folders)
        fit = [run for run in found if all(word in run.found_by for word in wanted.lower().split())]
        return _page("runs.html", runs=fit, total=len(found), q=wanted, folders=self.folders, trained=trained, live=True)

    async def run(self, request: Request) -> Response:
        """One run, or only what changes of its page."""
        return await run_in_threadpool(self._run, request)

    def _run(self, request: Request) -> Response:
        asked = request.query_params
        path, number = self._path(asked.get("path", ""))
        run = listed(path, self.folders[number], self.index, number)
        where, filters = _where(asked)
        if text := asked.get("text", ""):
            now = stamp(path)
            where["offset"] = _found(path, now, text) if now else offsets(path, text)
        sort = asked.get("sort", "offset") if asked.get("sort") in SHOWN else "offset"
        down, start = asked.get("down") == "1", max(_whole(asked.get("start")) or 0, 0)
        count = self.index.count(path, where)
        start = min(start, max(count - 1, 0) // PAGE * PAGE)
        entries = self.index.entries(path, where, sort, down, start, PAGE)
        ends, causes = self.index.values(path, "ended"), self.index.values(path, "cause")
        kept = {name: value for name, value in asked.items() if value and name not in ("start", "token")}

        def link(**changes: Any) -> str:
            return "/run?" + urlencode({**kept, **{name: str(value) for name, value in changes.items()}})

        return _page(
            "rows.html" if request.url.path == "/rows" else "run.html",
            run=run,
            progress=progress(run),
            numbers=self.index.numbers(path),
            entries=entries,
            count=count,
            start=start,
            page=PAGE,
            columns=SHOWN,
            sort=sort,
            down=down,
            asked={name: asked.get(name, "") for name in ("path", "ended", "cause", "seed", "text", "number", "least", "most")},
            filters=filters,
            ends={end: ENDS.get(end, end) for end in ends if end},
            ended=[(end_name(end), ENDS.get(end, end), number) for end, number in ends.items() if end],
            causes={cause: CAUSES[cause][0] for cause in causes if cause in CAUSES},
            lost={cause: words for cause, (words, _) in CAUSES.items()},
            number_names=NUMBERS,
            link=link,
            live=run.state == "running",
        )

    async def episode(self, request: Request) -> Response:
        """One episode, with the report's page."""
        asked = request.query_params
        path, _ = self._path(asked.get("path", ""))
        offset, part = _whole(asked.get("offset")), _whole(asked.get("part")) or 0
        if offset is None:
            raise HTTPException(400, "offset: must be a whole number")

        def made() -> str:
            opened = open_run(path)
            rows = opened.rows_at(offset)
            if part >= len(rows):
                raise EpisodeError(f"{path.name}: no rollout {part} at {offset}")
            row = replace(rows[part], index=0)
            return build(gather([replace(opened.head, rows=[row], asked=1)]), path)

        return HTMLResponse(await run_in_threadpool(made))

    async def training(self, request: Request) -> Response:
        """A training run by step, as the report shows it."""
        path, _ = self._path(request.query_params.get("path", ""))
        return HTMLResponse(await run_in_threadpool(lambda: progress_page(progress_data(path))))

    async def report(self, request: Request) -> Response:
        """The report of one run, or of several side by side."""
        names = request.query_params.getlist("path")
        if not names:
            return RedirectResponse("/")
        paths = [self._path(name)[0] for name in names]

        def made() -> str:
            return build(gather([load_run(path) for path in paths]), paths[0])

        return HTMLResponse(await run_in_threadpool(made))

    def serve(self, bound: socket.socket, greeting: str, came: Sequence[int] = ()) -> None:
        """Serve on a listening socket until a signal; `came` are those that came before."""
        config = uvicorn.Config(
            self.app, ws="none", lifespan="off", log_level="error", access_log=False, timeout_graceful_shutdown=2
        )
        server = _Server(config)
        server.greeting, server.came = greeting, came
        server.run(sockets=[bound])


class _Server(uvicorn.Server):
    greeting = ""
    came: Sequence[int] = ()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.should_exit |= bool(self.came)
        print(self.greeting, flush=True)


# --- what pages are made of -------------------------------------------------------------------------------------------


def _page(name: str, **context: Any) -> Response:
    look, script = _look(), _own("live.js")
    policy = (
        f"default-src 'none'; style-src {content_hash(look)}; script-src {content_hash(script)}; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'"
    )
    text = _templates().get_template(name).render(context, style=Markup(look), script=Markup(script), policy=policy)
    return HTMLResponse(text, headers={"content-security-policy": policy, "cache-control": "no-store"})


@cache
def _templates() -> Environment:
    made = environment(_own)
    made.filters["ago"] = ago
    return made


@cache
def _look() -> str:
    return style(TOKENS) + _own("view.css")


@cache
def _own(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text("utf-8")


def ago(seconds: float) -> str:
    """Return how long ago a moment is, given in seconds since 1970."""
    return f"{duration(max(time.time() - seconds, 0.0))} ago"


def _where(asked: Any) -> tuple[Where, list[str]]:
    """Return the filters of an address, and what they say. Raises ConfigError where one is no filter."""
    where: Where = {}
    said = []
    for name in ("ended", "cause", "level"):
        if value := asked.get(name):
            where[name] = value
            said.append(f"{name} {value}")
    if seed := asked.get("seed"):
        if (number := _whole(seed)) is None:
            raise ConfigError(f"seed = {show(seed)}: must be a whole number")
        where["seed"] = number
        said.append(f"seed {number}")
    if (name := asked.get("number")) and (asked.get("least") or asked.get("most")):
        if name not in NUMBERS:
            raise ConfigError(f"number = {show(name)}: must be one of {', '.join(NUMBERS)}")
        least, most = (_number(asked.get(end), end) for end in ("least", "most"))
        where[name] = (least, most)
        said.append(f"{name} from {'any' if least is None else f'{least:g}'} to {'any' if most is None else f'{most:g}'}")
    return where, said


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 19 else None


def _number(text: str | None, name: str) -> float | None:
    try:
        value = float(text) if text else None
    except ValueError:
        value = math.nan
    if value is not None and not math.isfinite(value):
        raise ConfigError(f"{name} = {show(text)}: must be a number")
    return value


@lru_cache(maxsize=16)
def _found(path: Path, now: Stamp, text: str) -> list[int]:
    """Return `offsets` of a file as it is `now`, so that a page which asks again and again has it read once."""
    return offsets(path, text)


def offsets(path: Path, text: str) -> list[int]:
    """Return where the lines or files of a run stand that hold `text` in a reply, an observation or anywhere else.

    What is looked through are the bytes of the file, so that nothing has to be understood first.
    """
    needles = {json.dumps(text)[1:-1].encode(), json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")}
    found, file = [], file_of(path)
    if file is None:
        for number, one in enumerate(episode_files(path)):
            data = one.read_bytes()
            if any(needle in data for needle in needles):
                found.append(number)
        return found
    at = 0
    with open(file, "rb") as lines:
        for line in lines:
            if any(needle in line for needle in needles):
                found.append(at)
            at += len(line)
    return found


async def _not_there(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    said = error.detail if isinstance(error, HTTPException) and error.detail != "Not Found" else "there is no such page"
    return _error(status, said)


async def _failed(request: Request, error: Exception) -> Response:
    return _error(400, str(error))


def _error(status: int, said: str) -> Response:
    response = _page("error.html", said=said, live=False)
    response.status_code = status
    return response
