"""Chat completions on the wire: what a request may hold, and how replies are sent back. Knows no HTTP beyond a status."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from flappybird.errors import FlappyError, show
from flappybird.protocol.reply import content_text
from flappybird.world.config import one_line

MAX_BRACKETS = 100_000
"""The most objects and lists in a body: making them takes time, during which nobody is answered. Enough for 25,000 turns."""

MAX_CHOICES = 128


# --- what a client may ask for ------------------------------------------------------------------------------------


class Asked(BaseModel):
    """Part of a request: wrong types are refused, unknown fields ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)


class Message(Asked):
    """One message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Any] | None = None


class StreamOptions(Asked):
    """Options of a streamed answer."""

    include_usage: bool | None = None


class ResponseFormat(Asked):
    """The form of an answer: text, which is the environment's own format."""

    type: Literal["text"]


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)
"""Reads a whole number as JSON has it, where 3.0 is one too."""


class ChatRequest(Asked):
    """A chat completion request. Null is as good as absent.

    What cannot be had is refused: logprobs, an answer by tool call, JSON or audio instead of text. All other fields of the API
    are ignored, among them temperature, top_p, penalties, logit_bias, tools, reasoning_effort, user and metadata.
    """

    model: str
    messages: Annotated[list[Message], Field(min_length=1)]
    n: Annotated[int, Field(ge=1, le=MAX_CHOICES), WHOLE] | None = None
    stop: str | list[str] | None = None
    max_tokens: Annotated[int, Field(ge=1), WHOLE] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1), WHOLE] | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: Annotated[int, WHOLE] | None = None
    """Makes `random` and spoilt answers repeatable."""
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    logprobs: Literal[False] | None = None
    top_logprobs: Literal[0] | None = None
    tool_choice: Literal["none", "auto"] | None = None
    function_call: Literal["none", "auto"] | None = None
    response_format: ResponseFormat | None = None
    modalities: list[Literal["text"]] | None = None


class Fault(BaseModel):
    """What was wrong."""

    message: str
    type: str
    code: str
    param: str | None = None


class Error(BaseModel):
    """The body of every answer that is an error."""

    error: Fault


class Refusal(Exception):
    """A request that gets no completion: what its answer says."""

    def __init__(self, status: int, message: str, code: str, param: str | None = None, close: bool = False) -> None:
        super().__init__(message)
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.status = status
        self.body = Error(error=Fault(message=message, type=kind, code=code, param=param)).model_dump()
        self.close = close
        """Whether the connection ends with it."""


def read_request(body: bytes) -> ChatRequest:
    """Return the request that was sent. Raises Refusal where it cannot be read."""
    if body.count(b"{") + body.count(b"[") > MAX_BRACKETS:
        raise Refusal(400, f"the body holds more than {MAX_BRACKETS} objects and lists", "too_many_values")
    try:
        sent = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"the body is not JSON: {error}", "invalid_json") from None
    if not isinstance(sent, dict):
        raise Refusal(400, "the body must be a JSON object", "invalid_json")
    try:
        return ChatRequest.model_validate(sent)
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors(include_url=False)[0]["loc"])
        raise Refusal(400, one_line(error), "invalid_value", field or None) from None


# --- what it is answered ------------------------------------------------------------------------------------------


class ReplyError(FlappyError):
    """A function that was to reply failed, or returned what is no reply; the message says how, and where."""


class Reply(NamedTuple):
    """What a function replies to one conversation. It may return the text alone, such a tuple, or a dict with these names."""

    text: str
    reasoning: str | None = None
    prompt_tokens: int | None = None
    """None has them estimated, here and below."""
    completion_tokens: int | None = None
    cut: bool = False
    """Whether the token limit cut it off."""
    note: Any = None
    """What a trainer wants back with the turn, such as token ids and their log probabilities; nobody else looks at it."""

    @classmethod
    def of(cls, returned: Any) -> Reply:
        """Return the reply that a function meant. Raises ReplyError where it is none."""
        if isinstance(returned, str):
            return cls(returned)
        try:
            if isinstance(returned, dict):
                reply = cls(**returned)
            else:
                reply = cls(*returned) if isinstance(returned, tuple) else cls(returned)
        except TypeError:
            reply = cls(returned)
        text, reasoning, *counts, cut, _ = reply
        if (
            isinstance(text, str)
            and (reasoning is None or isinstance(reasoning, str))
            and all(count is None or (isinstance(count, int) and count >= 0) for count in counts)
            and isinstance(cut, bool)
        ):
            return reply
        names = ", ".join(cls._fields)
        raise ReplyError(f"the reply {show(returned)} is neither text nor a tuple or dict of ({names})")


_TOKEN = re.compile(r"\w{1,6}|[^\w\s]|\n")


def count_tokens(text: str) -> int:
    """Return about how many tokens `text` has: a stand-in for a model's tokenizer, close to it for English."""
    return sum(1 for _ in _TOKEN.finditer(text))


def limited(text: str, stops: Sequence[str], limit: int | None) -> tuple[str, str]:
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


def completion(asked: ChatRequest, replies: Sequence[Reply]) -> dict[str, Any]:
    """Return the chat completion that consists of these replies."""
    stops = [asked.stop] if isinstance(asked.stop, str) else asked.stop or []
    limit = asked.max_completion_tokens or asked.max_tokens
    choices, written = [], 0
    for index, reply in enumerate(replies):
        counted = reply.completion_tokens
        text, reason = limited(reply.text, stops, limit if limit and (counted is None or counted > limit) else None)
        reason = "length" if reply.cut and text == reply.text else reason
        written += counted if counted is not None and text == reply.text else count_tokens(text)
        message = {"role": "assistant", "content": text, "refusal": None}
        if reply.reasoning is not None:
            message["reasoning_content"] = reply.reasoning
        choices.append({"index": index, "message": message, "logprobs": None, "finish_reason": reason})
    prompt = replies[0].prompt_tokens
    if prompt is None:
        prompt = sum(count_tokens(content_text(message.content)) for message in asked.messages)
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": asked.model,
        "choices": choices,
        "usage": {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written},
    }


async def events(completion: dict[str, Any], with_usage: bool) -> AsyncIterator[str]:
    """Give a completion in pieces, as server-sent events."""
    head = {name: completion[name] for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}

    def event(data: dict[str, Any]) -> str:
        return f"data: {json.dumps({**head, **data})}\n\n"

    def piece(index: int, delta: dict[str, Any], reason: str | None = None) -> str:
        return event({"choices": [{"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}]})

    for choice in completion["choices"]:
        index, message = choice["index"], choice["message"]
        yield piece(index, {"role": "assistant", "content": ""})
        if "reasoning_content" in message:
            yield piece(index, {"reasoning_content": message["reasoning_content"]})
        for word in re.findall(r"\S+\s*|\s+", message["content"]):
            yield piece(index, {"content": word})
        yield piece(index, {}, choice["finish_reason"])
    if with_usage:
        yield event({"choices": [], "usage": completion["usage"]})
    yield "data: [DONE]\n\n"
