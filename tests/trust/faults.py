"""A proxy in front of a model that fails in every way in which servers fail, over real sockets."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

RETRY_NEVER = {"x-should-retry": "false"}
"""What tells the OpenAI client not to ask again."""

WRONG = {
    "half a JSON": '{"id": "x", "choices": [{"index": 0, "mess',
    "no JSON": "<html><h1>502 Bad Gateway</h1></html>",
    "no object": "[]",
    "null": "null",
    "no choices": '{"id": "x", "object": "chat.completion", "created": 1, "model": "m"}',
    "choices null": '{"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": null}',
    "choices empty": '{"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": []}',
    "message null": '{"id": "x", "model": "m", "choices": [{"index": 0, "message": null, "finish_reason": "stop"}]}',
    "content object": '{"id": "x", "model": "m", "choices": [{"index": 0, "message": {"content": {"a": 1}}}]}',
    "error in 200": '{"error": {"message": "overloaded", "type": "server_error", "code": 503}}',
}
"""Bodies that come with a 200 and are no completion."""


class FaultProxy:
    """Passes requests on to `upstream`, except those for which `fault` names a fault; a context manager that gives its URL.

    Args:
        upstream: the URL of a real endpoint, ending in `/v1`.
        fault: for the turn (from 0) of a request, the fault or None: a status such as `500` or `"429 0"` (with Retry-After),
            `"reset"`, `"stall"`, `"half"`, `"context"`, or a key of `WRONG`.
    """

    def __init__(self, upstream: str, fault: Callable[[int], Any]) -> None:
        self.upstream, self.fault = urlsplit(upstream), fault
        self.asked: list[tuple[int, Any]] = []
        """(turn, fault) of every request."""
        self.loop = asyncio.new_event_loop()
        self.ready = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> str:
        self.thread.start()
        self.ready.wait(10)
        return f"http://127.0.0.1:{self.port}/v1"

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**24))
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        self.loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                fields = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:] if ": " in line)
                body = await reader.readexactly(int(fields.get("content-length", "0")))
                turn = sum(message["role"] == "assistant" for message in json.loads(body)["messages"])
                fault = self.fault(turn)
                self.asked.append((turn, fault))
                if not await self._answer(fault, head, body, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, fault: Any, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection goes on."""
        if fault == "reset":
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
            return False
        if fault == "stall":
            await asyncio.sleep(3600)
        if fault is None:
            writer.write(await self._passed_on(head, body))
        elif fault in WRONG:
            writer.write(_response(200, WRONG[fault], RETRY_NEVER))
        elif fault == "half":
            writer.write(_response(200, WRONG["no choices"] + " " * 1000, RETRY_NEVER)[:-900])
        elif fault == "context":
            told = {"message": "This model's maximum context length is 4096 tokens", "code": "context_length_exceeded"}
            writer.write(_response(400, json.dumps({"error": told}), RETRY_NEVER))
        else:
            status, _, wait = str(fault).partition(" ")
            headers = {"retry-after": wait} if wait else RETRY_NEVER
            writer.write(_response(int(status), json.dumps({"error": {"message": f"told {status}"}}), headers))
        await writer.drain()
        return fault != "half"

    async def _passed_on(self, head: bytes, body: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(self.upstream.hostname, self.upstream.port)
        kept = [line for line in head.split(b"\r\n") if line and not line.lower().startswith(b"connection:")]
        writer.write(b"\r\n".join([*kept, b"connection: close", b"", body]))
        answer = await reader.read()
        writer.close()
        return answer.replace(b"connection: close\r\n", b"", 1)


def _response(status: int, body: str, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Told", "content-type: application/json", f"content-length: {len(body.encode())}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def once(fault: Any, at: int = 2) -> Callable[[int], Any]:
    """The fault in the first rollout that comes to turn `at`, and only there."""
    left = [fault]
    return lambda turn: left.pop() if turn == at and left else None


def always(fault: Any, at: int = 2) -> Callable[[int], Any]:
    """The fault in every rollout from turn `at` on."""
    return lambda turn: fault if turn >= at else None
