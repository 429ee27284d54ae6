"""Who may see the pages of `flappybird view`."""

from __future__ import annotations

import hmac
from typing import Protocol

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from flappybird.errors import show

COOKIE = "flappybird-view"


class Guarding(Protocol):
    """What a guard knows of what it guards."""

    url: str
    hosts: set[str]
    """What may stand in Host."""
    token: str | None
    anywhere: bool


class Guarded:
    """Lets through what comes from a page of ours: the right Host, nothing that another site sent for, and the token."""

    def __init__(self, app: ASGIApp, view: Guarding) -> None:
        self.app, self.view = app, view

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        answer: Response | None = None
        host, site = request.headers.get("host", ""), request.headers.get("sec-fetch-site", "none")
        if host.lower() not in self.view.hosts and not (self.view.token and self.view.anywhere):
            answer = PlainTextResponse(f"Host {show(host, 100)}: this server is {self.view.url}", 421)
        elif site not in ("none", "same-origin") and request.headers.get("sec-fetch-mode") != "navigate":
            answer = PlainTextResponse("a page of another site may not read these runs", 403)
        elif request.method not in ("GET", "HEAD"):
            answer = PlainTextResponse(f"{request.method}: nothing can be changed here", 405)
        elif self.view.token is not None:
            given = request.query_params.get("token") or request.cookies.get(COOKIE) or ""
            if not hmac.compare_digest(given.encode(), self.view.token.encode()):
                answer = PlainTextResponse("the address of these runs has a token; open the one that was printed", 403)
            elif "token" in request.query_params:
                answer = RedirectResponse(request.url.remove_query_params("token"))
                answer.set_cookie(COOKIE, self.view.token, httponly=True, samesite="strict")
        await (answer or self.app)(scope, receive, send)
