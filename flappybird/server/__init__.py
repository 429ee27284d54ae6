"""Door: the built-in policies, or anybody's function, behind an OpenAI-compatible endpoint; no key and no network.

The `model` of a request picks the policy; it answers the last observation in the messages under the rules that the system
prompt states. Nothing is kept between requests, so any number of conversations run at once and their order does not matter.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import sys
import time
from collections.abc import Coroutine, Sequence
from typing import Any, Literal

import h11
import uvicorn
from pydantic.json_schema import models_json_schema
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from flappybird._version import __version__
from flappybird.errors import ConfigError, show, unknown_name
from flappybird.players.policies import POLICIES
from flappybird.server.answers import Batched, Options, ReplyFunction, answer
from flappybird.server.chat import ChatRequest, Error, Refusal, Reply, ReplyError, completion, events, read_request
from flappybird.system.signals import held

DEFAULT_PORT = 8765
"""The port that `configs/endpoints.toml` names."""

MAX_BODY = 8_000_000
"""The largest request body that is read; bytes. A conversation of 10,000 turns fits."""

SMALL_BODY = 100_000
"""Requests of fewer bytes are read and counted in a few milliseconds; larger ones in a thread, so that nobody waits for them."""

BODY_SECONDS = 30.0
"""How long a client may take to send a request."""

IDLE_SECONDS = 60
"""How long a connection may stay open with nothing asked on it."""

SLOW_SECONDS = 30.0
"""How long a client may leave an answer unread."""

HALF_SECONDS = 10.0
"""How long a client that has closed its side of the connection still gets an answer; nobody may be there to read it."""

LINGER_SECONDS = 1.0
"""How long a connection that was refused stays open for the rest of what the client was sending."""

# --- what it answers ----------------------------------------------------------------------------------------------


class PolicyServer:
    """The endpoint's routes; `app` is an ASGI application.

    Args:
        options: how policies answer, where a model's name says nothing else.
        reply: answers instead of the policies, whatever model is asked for.
    """

    def __init__(self, options: Options = Options(), reply: ReplyFunction | None = None) -> None:
        self.options = options
        self.reply = Batched(reply) if reply else None
        self.offers = [getattr(reply, "__name__", "model")] if reply else list(POLICIES)
        self.app = Starlette(
            routes=[
                Route("/", self.about),
                Route("/openapi.json", self.describe),
                Route("/v1/models", self.models),
                Route("/v1/models/{model:path}", self.model),
                Route("/v1/chat/completions", self.complete, methods=["POST"]),
            ],
            exception_handlers={Refusal: _refused, HTTPException: _http_error, Exception: _our_fault},
        )

    async def about(self, request: Request) -> Response:
        """Say what this is."""
        endpoints = ["/v1/models", "/v1/chat/completions", "/openapi.json"]
        return JSONResponse({"name": "flappybird policy server", "version": __version__, "endpoints": endpoints})

    async def describe(self, request: Request) -> Response:
        """Return the OpenAPI description."""
        return JSONResponse(openapi())

    async def models(self, request: Request) -> Response:
        """List the models."""
        return JSONResponse({"object": "list", "data": [_card(name) for name in self.offers]})

    async def model(self, request: Request) -> Response:
        """Describe one model."""
        self._pick(request.path_params["model"])
        return JSONResponse(_card(request.path_params["model"]))

    async def complete(self, request: Request) -> Response:
        """Answer a conversation."""
        body = await _body(request)
        work = self._complete(body)
        del body  # what was sent is kept no longer than it takes to answer it
        return await _while_there(request, work)

    async def _complete(self, body: bytes) -> Response:
        started, small = time.monotonic(), len(body) < SMALL_BODY
        asked = read_request(body) if small else await asyncio.to_thread(read_request, body)
        del body
        policy, options = self._pick(asked.model)
        if self.reply:
            try:
                replies = await asyncio.gather(*(self.reply(asked.messages) for _ in range(asked.n or 1)))
            except ReplyError as error:
                print(f"flappybird: {error}", file=sys.stderr)
                raise Refusal(500, str(error), "reply_failed") from None
        else:
            said = await asyncio.to_thread(answer, policy, options, asked.messages, asked.seed, asked.n or 1)
            replies = [Reply(text) for text in said]
        answered = completion(asked, replies) if small else await asyncio.to_thread(completion, asked, replies)
        with_usage = asked.stream_options is not None and bool(asked.stream_options.include_usage)
        stream = asked.stream
        del asked
        await asyncio.sleep(started + options.latency - time.monotonic())
        if stream:
            return StreamingResponse(events(answered, with_usage), media_type="text/event-stream")
        return JSONResponse(answered)

    def _pick(self, model: str) -> tuple[str, Options]:
        """Return policy and options that a model name means. Raises Refusal where it means none."""
        if self.reply:
            return model, self.options
        name, colon, suffix = model.partition(":")
        try:
            if name not in POLICIES:
                raise ConfigError(unknown_name(name, POLICIES, "a policy of this server"))
            return name, self.options.with_suffix(suffix) if colon else self.options
        except ConfigError as error:
            raise Refusal(404, str(error), "model_not_found", "model") from None


async def _body(request: Request) -> bytes:
    """Return what was sent. Raises Refusal where it is too much or takes too long."""
    chunks, size = [], 0
    too_large = Refusal(413, f"the body is larger than {MAX_BODY} bytes", "body_too_large", close=True)
    if int(request.headers.get("content-length", "0")) > MAX_BODY:  # digits, or the protocol had refused them
        raise too_large
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                chunks.append(chunk)
                size += len(chunk)
                if size > MAX_BODY:
                    raise too_large
    except TimeoutError:
        raise Refusal(408, f"the body did not arrive within {BODY_SECONDS:g} seconds", "timeout", close=True) from None
    except ClientDisconnect:
        raise Refusal(400, "the client has gone", "gone") from None
    return b"".join(chunks)


async def _while_there(request: Request, work: Coroutine[Any, Any, Response]) -> Response:
    """Return what `work` does, which ends when the client goes away."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, going = asyncio.create_task(work), asyncio.create_task(gone())
    try:
        await asyncio.wait((working, going), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else Response(status_code=400)  # which nobody reads
    finally:
        working.cancel()
        going.cancel()


def _card(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "flappybird"}


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return _response(error)


def _response(refusal: Refusal) -> Response:
    return JSONResponse(refusal.body, refusal.status, {"connection": "close"} if refusal.close else None)


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    path = request.url.path
    why, code = ("no such path", "not_found") if status == 404 else ("not with this method", "method_not_allowed")
    for known in ("/v1/chat/completions", "/v1/models"):
        if status == 404 and path.rstrip("/").endswith(known.removeprefix("/v1")):
            why = f"no such path; did you mean {known}? The base URL of a client ends in /v1"
    response = _response(Refusal(status, f"{request.method} {show(path, 200)[1:-1]}: {why}", code))
    response.headers.update(getattr(error, "headers", None) or {})
    return response


async def _our_fault(request: Request, error: Exception) -> Response:
    return _response(Refusal(500, f"{type(error).__name__}: {error}", "internal_error"))


def openapi() -> dict[str, Any]:
    """Return the server's OpenAPI description, made from the models that read requests and write errors."""
    models: list[tuple[Any, Literal["validation"]]] = [(ChatRequest, "validation"), (Error, "validation")]
    refer = "#/components/schemas/"
    _, schemas = models_json_schema(models, ref_template=refer + "{model}")
    failed = {"description": "Error", "content": {"application/json": {"schema": {"$ref": refer + "Error"}}}}

    def responses(*codes: int, ok: Sequence[str] = ("application/json",)) -> dict[str, Any]:
        return {"200": {"description": "OK", "content": {kind: {} for kind in ok}}} | {str(code): failed for code in codes}

    asked = {"required": True, "content": {"application/json": {"schema": {"$ref": refer + "ChatRequest"}}}}
    name = {"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}
    answered = responses(400, 404, 408, 413, 500, ok=("application/json", "text/event-stream"))
    return {
        "openapi": "3.1.0",
        "info": {"title": "flappybird policy server", "version": __version__},
        "paths": {
            "/": {"get": {"responses": responses()}},
            "/openapi.json": {"get": {"responses": responses()}},
            "/v1/models": {"get": {"responses": responses()}},
            "/v1/models/{model}": {"get": {"parameters": [name], "responses": responses(404)}},
            "/v1/chat/completions": {"post": {"requestBody": asked, "responses": answered}},
        },
        "components": {"schemas": schemas["$defs"]},
    }


# --- how it is run ------------------------------------------------------------------------------------------------


class Connection(H11Protocol):
    """HTTP/1.1 with what uvicorn has no setting for: who is given up, who still gets an answer, and refusals in JSON."""

    refused = ended = False
    """Whether the connection only waits for the client to hear why it ends; whether the client has nothing more to send."""
    unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Also closed if nothing is ever asked.
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def data_received(self, data: bytes) -> None:
        if self.refused:
            return
        waiting = self.timeout_keep_alive_task
        super().data_received(data)
        # A head that comes byte by byte is no request yet: the time for it goes on.
        begun = self.conn.their_state is h11.IDLE and not self.transport.is_closing()
        if waiting is not None and begun and self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_at(waiting.when(), self.timeout_keep_alive_handler)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep a connection whose client has only finished sending open for the answers that it waits for."""
        self.ended = self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body
        if self.ended:
            self.loop.call_later(HALF_SECONDS, self.transport.close)
        return self.ended

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.ended and self.cycle.response_complete:  # else another request had been sent ahead
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread = self.loop.call_later(SLOW_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.unread:
            self.unread.cancel()

    def send_400_response(self, msg: str) -> None:
        response = _response(Refusal(400, msg, "invalid_request", close=True))
        head = h11.Response(status_code=400, headers=response.raw_headers, reason=b"Bad Request")
        for event in (head, h11.Data(data=bytes(response.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        # Closed at once, with more of the request on its way, the connection would be reset, and the answer with it.
        self.refused = True
        self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)


class _Server(uvicorn.Server):
    def __init__(self, policies: PolicyServer) -> None:
        self.policies = policies
        config = uvicorn.Config(
            policies.app,
            http=Connection,
            ws="none",
            lifespan="off",
            log_level="error",
            access_log=False,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=5,
            backlog=2048,
        )
        super().__init__(config)

    came: Sequence[int] = ()
    """Signals that came before the server listened for them."""
    greeting = ""
    """What is printed once it serves."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.should_exit |= bool(self.came)
        if self.greeting:
            print(self.greeting, flush=True)


def make_server(options: Options = Options(), reply: ReplyFunction | None = None) -> _Server:
    """Return a server; `run(sockets=[listening socket])` serves until a signal or `should_exit`."""
    return _Server(PolicyServer(options, reply))


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 lets the system choose. Raises ConfigError where it cannot be had."""
    if not 0 <= port <= 65535:
        raise ConfigError(f"cannot listen on port {port}: must be from 0 to 65535")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, ValueError, TypeError) as error:  # the last two for names that cannot be encoded
        why = getattr(error, "strerror", None) or "no such host name"
        raise ConfigError(f"cannot listen on {show(host)[1:-1]} port {port}: {why}") from None


def serve(
    host: str = "127.0.0.1", port: int = DEFAULT_PORT, options: Options = Options(), reply: ReplyFunction | None = None
) -> None:
    """Serve the policies, or `reply`, until Ctrl-C or SIGTERM.

    Args:
        host: the address to listen on.
        port: 0 lets the system choose.
        options: how policies answer.
        reply: a function that gets a list of conversations and returns a reply for each, see `answers.ReplyFunction`.

    Raises:
        ConfigError: the address cannot be had, or the options are not for `reply`.
        KeyboardInterrupt: after Ctrl-C, when all answers under way have been given.
    """
    if reply and (options.malformed or options.seed is not None):
        raise ConfigError("malformed and seed are options of the built-in policies, and --reply answers instead of them")
    with listen(host, port) as bound:
        if not is_loopback(host):
            print(f"warning: {host} is not a loopback address: anyone who reaches it can use this server", file=sys.stderr)
        server = make_server(options, reply)
        url = f"http://{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}/v1"
        runner = "uv run " if "UV" in os.environ else ""  # as the reader types it
        who, model = (f"{getattr(reply, '__name__', 'a function')}", "NAME") if reply else (", ".join(POLICIES), "heuristic")
        server.greeting = (
            f"serving {who} on {url} (Ctrl-C stops)\nevaluate: {runner}vf-eval flappybird -m {model} -b {url} -k ANY"
        )
        with held() as server.came:  # until it hears of them itself
            server.run(sockets=[bound])


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
