"""A model that costs nothing: a process of its own that gives every chat request the same reply. Prints its port."""

from __future__ import annotations

import json
import socket
import sys
from typing import Any

import uvicorn

REPLY = "<THINK>no TAP: velY 0.00, birdY 0.00->0.00: still inside the gap.</THINK>\n<ACTIONS>[]</ACTIONS>"


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer any request with `REPLY`."""
    while (await receive()).get("more_body"):
        pass
    body = json.dumps(
        {
            "id": "stub",
            "object": "chat.completion",
            "created": 0,
            "model": "stub",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": REPLY}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 30, "total_tokens": 1030},
        }
    ).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    bound = socket.create_server(("127.0.0.1", 0))
    print(bound.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off")
    sys.exit(uvicorn.Server(config).run(sockets=[bound]))
