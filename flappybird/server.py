"""Door: the built-in policies behind an OpenAI-compatible endpoint, for runs without a key and without a network.

The `model` of a request picks the policy; it answers the last observation in the messages under the rules that the system
prompt states. Nothing is kept between requests, so any number of conversations run at once and their order does not matter.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import random
import re
import socket
import sys
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import h11
import uvicorn
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from flappybird._version import __version__
from flappybird.errors import ConfigError, show, unknown_name
from flappybird.players.policies import POLICIES, make_policy, plan
from flappybird.protocol.prompt import read_config, read_ticks
from flappybird.protocol.reply import content_text, write_reply
from flappybird.system.signals import held
from flappybird.world.config import FlappyConfig, one_line
from flappybird.world.observation import read_observation

DEFAULT_PORT = 8765
"""The port that `configs/endpoints.toml` names."""

MAX_BODY = 32_000_000
"""The largest request body that is read; bytes. A conversation of 10,000 turns fits."""

LONG_TEXT = 200_000
"""Texts of more characters than this are counted beside the event loop, so that nobody waits for them."""

BODY_SECONDS = 30.0
"""How long a client may take to send a request."""

IDLE_SECONDS = 60
"""How long a connection may stay open with nothing asked on it."""

LINGER_SECONDS = 1.0
"""How long a connection that was refused stays open for the rest of what the client was sending."""

MAX_CHOICES = 128


# --- what a client may ask for ------------------------------------------------------------------------------------


class Message(BaseModel):
    """One message of a conversation."""

    model_config = ConfigDict(extra="ignore", strict=True)
    role: str
    content: str | list[Any] | None = None


class StreamOptions(BaseModel):
    """Options of a streamed answer."""

    model_config = ConfigDict(extra="ignore", strict=True)
    include_usage: bool | None = None


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""Reads a whole number as JSON has it, where 3.0 is one too."""


class ChatRequest(BaseModel):
    """The fields of a chat completion request that matter here; unknown ones are ignored, and null is as good as absent."""

    model_config = ConfigDict(extra="ignore", strict=True)
    model: str
    messages: Annotated[list[Message], Field(min_length=1)]
    n: Annotated[int, Field(ge=1, le=MAX_CHOICES), WHOLE] | None = None
    stop: str | list[str] | None = None
    max_tokens: Annotated[int, Field(ge=1), WHOLE] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1), WHOLE] | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: Annotated[int, WHOLE] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None


@dataclass(frozen=True)
class Options:
    """How a policy answers: `planner:malformed=0.05,latency=0.2,seed=7` after its name, or flags for all."""

    latency: float = 0.0
    """Seconds that each answer takes."""
    malformed: float = 0.0
    """Share of answers that are spoilt, to practise on."""
    seed: int | None = None
    """Makes `random` and the spoilt answers repeatable: the same conversation then always gets the same answer."""

    def with_suffix(self, suffix: str) -> Options:
        """Return these options with those of a name suffix laid over them. Raises ConfigError for a bad one."""
        given: dict[str, Any] = {"latency": self.latency, "malformed": self.malformed, "seed": self.seed}
        for part in suffix.split(","):
            name, _, value = part.partition("=")
            if name not in given:
                raise ConfigError(unknown_name(name, given, "an option of a policy"))
            try:
                given[name] = int(value) if name == "seed" else float(value)
            except ValueError:
                raise ConfigError(f"{name} = {show(value)}: must be a number") from None
        return Options(**given)

    def __post_init__(self) -> None:
        if not 0 <= self.latency <= 3600:
            raise ConfigError(f"latency = {self.latency}: must be from 0 to 3600 seconds")
        if not 0 <= self.malformed <= 1:
            raise ConfigError(f"malformed = {self.malformed}: must be a share from 0 to 1")


# --- what it answers ----------------------------------------------------------------------------------------------

_SPOILT = (
    "I think the bird should flap now.",
    "<THINK>{thought}</THINK>",
    "<THINK>{thought}</THINK>\n<ACTIONS>[FLAP]</ACTIONS>",
    "<THINK>{thought}</THINK>\n<ACTIONS>TAP</ACTIONS>",
    "<ACTION>[TAP]</ACTION>",
    "<THINK>{thought}",
)
"""Faults that real models make, one of which takes the place of a spoilt answer."""


def answer(policy: str, options: Options, messages: list[Message], seed: int | None = None) -> str:
    """Return what `policy` replies to a conversation."""
    texts = [content_text(message.content) for message in messages]
    last = next((text for text in reversed(texts) if "<FLAPPY id=" in text), "")
    seen = read_observation(last)
    if seen is None:
        return write_reply((False,), "There is no observation here to act on.")
    prompt = "\n".join(text for message, text in zip(messages, texts, strict=True) if message.role in ("system", "developer"))
    config = read_config(prompt) or FlappyConfig()
    ticks = read_ticks(prompt)
    seed = options.seed if seed is None else seed
    taps, thought = plan(make_policy(policy, config, seed), seen, config, ticks)
    dice = random.SystemRandom() if seed is None else random.Random(f"spoil/{seed}/{seen}")
    if dice.random() < options.malformed:
        return dice.choice(_SPOILT).format(thought=thought)
    return write_reply(taps, thought)


_TOKEN = re.compile(r"\w{1,6}|[^\w\s]|\n")


def count_tokens(text: str) -> int:
    """Return about how many tokens `text` has: a stand-in for a model's tokenizer, close to it for English."""
    return sum(1 for _ in _TOKEN.finditer(text))


def _limited(text: str, stops: list[str], limit: int | None) -> tuple[str, str]:
    """Return `text` up to the first stop sequence and the token limit, and the finish reason."""
    ends = [end for stop in stops if stop and (end := text.find(stop)) >= 0]
    reason = "stop"
    if ends:
        text = text[: min(ends)]
    if limit is not None:
        tokens = list(_TOKEN.finditer(text))
        if len(tokens) > limit:
            text, reason = text[: tokens[limit - 1].end()], "length"
    return text, reason


class PolicyServer:
    """The endpoint's routes; `app` is an ASGI application."""

    def __init__(self, options: Options = Options()) -> None:
        self.options = options
        self.app = Starlette(
            routes=[
                Route("/", self.about),
                Route("/openapi.json", self.describe),
                Route("/v1/models", self.models),
                Route("/v1/models/{model:path}", self.model),
                Route("/v1/chat/completions", self.complete, methods=["POST"]),
            ],
            exception_handlers={HTTPException: _http_error, Exception: _our_fault},
        )

    async def about(self, request: Request) -> Response:
        """Say what this is."""
        endpoints = ["/v1/models", "/v1/chat/completions", "/openapi.json"]
        return JSONResponse({"name": "flappybird policy server", "version": __version__, "endpoints": endpoints})

    async def describe(self, request: Request) -> Response:
        """Return the OpenAPI description."""
        return JSONResponse(openapi())

    async def models(self, request: Request) -> Response:
        """List the policies."""
        return JSONResponse({"object": "list", "data": [_card(name) for name in POLICIES]})

    async def model(self, request: Request) -> Response:
        """Tell of one policy."""
        try:
            self._pick(request.path_params["model"])
        except ConfigError as error:
            return _error(404, str(error), "model_not_found", "model")
        return JSONResponse(_card(request.path_params["model"]))

    async def complete(self, request: Request) -> Response:
        """Answer a conversation."""
        body = await _body(request)
        if isinstance(body, Response):
            return body
        try:
            asked = ChatRequest.model_validate(body)
        except ValidationError as error:
            field = ".".join(str(part) for part in error.errors(include_url=False)[0]["loc"])
            return _error(400, one_line(error), "invalid_value", field or None)
        try:
            policy, options = self._pick(asked.model)
        except ConfigError as error:
            return _error(404, str(error), "model_not_found", "model")

        stops = [asked.stop] if isinstance(asked.stop, str) else asked.stop or []
        limit = asked.max_completion_tokens or asked.max_tokens
        await asyncio.sleep(options.latency)
        choices = []
        for _ in range(asked.n or 1):
            choices.append(_limited(answer(policy, options, asked.messages, asked.seed), stops, limit))
            await asyncio.sleep(0)  # others have their turn in between
        prompt = 0
        for message in asked.messages:
            text = content_text(message.content)
            prompt += await asyncio.to_thread(count_tokens, text) if len(text) > LONG_TEXT else count_tokens(text)
        written = sum(count_tokens(text) for text, _ in choices)
        usage = {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}
        head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": asked.model}
        if asked.stream:
            with_usage = asked.stream_options is not None and bool(asked.stream_options.include_usage)
            return StreamingResponse(_events(head, choices, usage if with_usage else None), media_type="text/event-stream")
        return JSONResponse(
            {
                **head,
                "object": "chat.completion",
                "choices": [
                    {
                        "index": index,
                        "message": {"role": "assistant", "content": text, "refusal": None},
                        "logprobs": None,
                        "finish_reason": reason,
                    }
                    for index, (text, reason) in enumerate(choices)
                ],
                "usage": usage,
            }
        )

    def _pick(self, model: str) -> tuple[str, Options]:
        """Return policy and options that a model name means. Raises ConfigError where it means none."""
        name, colon, suffix = model.partition(":")
        if name not in POLICIES:
            raise ConfigError(unknown_name(name, POLICIES, "a policy of this server"))
        return name, self.options.with_suffix(suffix) if colon else self.options


async def _events(head: dict[str, Any], choices: list[tuple[str, str]], usage: dict[str, int] | None) -> AsyncIterator[str]:
    def event(data: dict[str, Any]) -> str:
        return f"data: {json.dumps({**head, 'object': 'chat.completion.chunk', **data})}\n\n"

    def piece(index: int, delta: dict[str, Any], reason: str | None = None) -> str:
        return event({"choices": [{"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}]})

    for index, (text, reason) in enumerate(choices):
        yield piece(index, {"role": "assistant", "content": ""})
        for word in re.findall(r"\S+\s*|\s+", text):
            yield piece(index, {"content": word})
        yield piece(index, {}, reason)
    if usage is not None:
        yield event({"choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


async def _body(request: Request) -> Any:
    """Return the JSON object that was sent, or the response that says why it cannot be read."""
    chunks, size = [], 0
    too_large = _error(413, f"the body is larger than {MAX_BODY} bytes", "body_too_large", close=True)
    if int(request.headers.get("content-length", "0")) > MAX_BODY:  # digits, or the protocol had refused them
        return too_large
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                chunks.append(chunk)
                size += len(chunk)
                if size > MAX_BODY:
                    return too_large
    except TimeoutError:
        return _error(408, f"the body did not arrive within {BODY_SECONDS:g} seconds", "timeout", close=True)
    except ClientDisconnect:
        return Response(status_code=400)
    try:
        body = json.loads(b"".join(chunks))
    except (ValueError, RecursionError) as error:
        return _error(400, f"the body is not JSON: {error}", "invalid_json")
    return body if isinstance(body, dict) else _error(400, "the body must be a JSON object", "invalid_json")


def _card(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "flappybird"}


def _error(status: int, message: str, code: str, param: str | None = None, close: bool = False) -> Response:
    kind = "invalid_request_error" if status < 500 else "server_error"
    body = {"error": {"message": message, "type": kind, "code": code, "param": param}}
    return JSONResponse(body, status_code=status, headers={"connection": "close"} if close else None)


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    told = f"{request.method} {show(request.url.path, 200)[1:-1]}: " + (
        "no such path" if status == 404 else "not with this method"
    )
    response = _error(status, told, "not_found" if status == 404 else "method_not_allowed")
    response.headers.update(getattr(error, "headers", None) or {})
    return response


async def _our_fault(request: Request, error: Exception) -> Response:
    return _error(500, f"{type(error).__name__}: {error}", "internal_error")


def openapi() -> dict[str, Any]:
    """Return the server's OpenAPI description."""
    schema = ChatRequest.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas = {**schema.pop("$defs", {}), "ChatRequest": schema, "Error": _ERROR_SCHEMA}

    def responses(*codes: int) -> dict[str, Any]:
        error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
        told = {200: {"description": "OK", "content": {"application/json": {}}}}
        return {str(code): told.get(code, {"description": "Error", "content": error}) for code in codes}

    body = {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ChatRequest"}}}}
    chat_ok = {"description": "OK", "content": {"application/json": {}, "text/event-stream": {}}}
    name = {"name": "model", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "flappybird policy server", "version": __version__},
        "paths": {
            "/": {"get": {"responses": responses(200)}},
            "/openapi.json": {"get": {"responses": responses(200)}},
            "/v1/models": {"get": {"responses": responses(200)}},
            "/v1/models/{model}": {"get": {"parameters": [name], "responses": responses(200, 404)}},
            "/v1/chat/completions": {
                "post": {"requestBody": body, "responses": {**responses(400, 404, 408, 413), "200": chat_ok}}
            },
        },
        "components": {"schemas": schemas},
    }


_ERROR_SCHEMA = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "code": {"type": "string"},
                "param": {"type": ["string", "null"]},
            },
        }
    },
}


# --- how it is run ------------------------------------------------------------------------------------------------


class _Impatient(H11Protocol):
    """HTTP/1.1 that also closes a connection on which nothing was ever asked, or a request only begun, and refuses in JSON."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    refused = False
    """Whether the connection only waits for the client to hear why it ends."""

    def data_received(self, data: bytes) -> None:
        if self.refused:
            return
        waiting = self.timeout_keep_alive_task
        super().data_received(data)
        # A head that comes byte by byte is no request yet: the time for it goes on.
        begun = self.conn.their_state is h11.IDLE and not self.transport.is_closing()
        if waiting is not None and begun and self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_at(waiting.when(), self.timeout_keep_alive_handler)

    def send_400_response(self, msg: str) -> None:
        refused = _error(400, msg, "invalid_request", close=True)
        head = h11.Response(status_code=400, headers=refused.raw_headers, reason=b"Bad Request")
        for event in (head, h11.Data(data=bytes(refused.body)), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        # Closed at once, with more of the request on its way, the connection would be reset, and the answer with it.
        self.refused = True
        self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, host: str, quiet: bool) -> None:
        super().__init__(config)
        self.host, self.quiet = host, quiet
        self.came: Sequence[int] = ()
        """Signals that came before the server listened for them."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.should_exit |= bool(self.came)
        if not self.quiet and sockets:
            print(f"serving {', '.join(POLICIES)} on {_url(self.host, sockets[0])} (Ctrl-C stops)", flush=True)


def _url(host: str, bound: socket.socket) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}/v1"


def make_server(bound: socket.socket, host: str, options: Options = Options(), quiet: bool = False) -> _Server:
    """Return a server for the listening socket `bound`; `run(sockets=[bound])` serves until a signal or `should_exit`."""
    config = uvicorn.Config(
        PolicyServer(options).app,
        http=_Impatient,
        ws="none",
        lifespan="off",
        log_level="error",
        access_log=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=5,
        backlog=2048,
    )
    return _Server(config, host, quiet)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 lets the system choose. Raises ConfigError where it cannot be had."""
    if not 0 <= port <= 65535:
        raise ConfigError(f"cannot listen on port {port}: must be from 0 to 65535")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise ConfigError(f"cannot listen on {host} port {port}: {error.strerror or error}") from None


def serve(host: str = "127.0.0.1", port: int = DEFAULT_PORT, options: Options = Options()) -> None:
    """Serve the policies until Ctrl-C or SIGTERM.

    Raises:
        ConfigError: the address cannot be had.
        KeyboardInterrupt: after Ctrl-C, when all answers under way have been given.
    """
    with listen(host, port) as bound:
        if not _is_loopback(host):
            print(f"warning: {host} is not a loopback address: anyone who reaches it can use this server", file=sys.stderr)
        server = make_server(bound, host, options)
        with held() as server.came:  # until it hears of them itself
            server.run(sockets=[bound])


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
