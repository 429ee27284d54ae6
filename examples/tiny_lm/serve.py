"""Checkpoints behind an OpenAI-compatible endpoint: `python -m examples.tiny_lm.serve FOLDER [PORT]`.

`FOLDER/seed0/rl.npz` is the model `seed0-rl`. Requests that wait are answered together in one batch, at most 64 of one model.
Only the last observation is read: the system prompt is one token whatever it says, and earlier turns are cut.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jax
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from flappybird.protocol.reply import content_text

from . import model, tokens
from .play import BATCHES, Player


class Desk:
    """Where requests wait until the model is free, then go in together."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tokenizer = tokens.load(folder / "tokenizer.json")
        self.players: dict[str, Player] = {}
        self.waiting: asyncio.Queue[tuple[str, str, float, int, asyncio.Future[Any]]] = asyncio.Queue()

    def names(self) -> list[str]:
        return sorted(f"{path.parent.name}-{path.stem}" for path in self.folder.glob("seed*/*.npz"))

    def player(self, name: str) -> Player:
        if name not in self.players:
            shape, weights, _ = model.load(self.folder / f"{name.replace('-', '/', 1)}.npz")
            self.players[name] = Player(self.tokenizer, shape, weights)
        return self.players[name]

    async def work(self) -> None:
        """Answer what waits, again and again."""
        while True:
            jobs = [await self.waiting.get()]
            await asyncio.sleep(0.002)  # those who were answered together ask again together
            while not self.waiting.empty() and len(jobs) < BATCHES[-1]:
                jobs.append(self.waiting.get_nowait())
            for name, longest in sorted({(job[0], job[3]) for job in jobs}):
                mine = [job for job in jobs if (job[0], job[3]) == (name, longest)]
                try:
                    seen, warmth = [job[1] for job in mine], [job[2] for job in mine]
                    said = await asyncio.to_thread(self.player(name).answer, seen, warmth, longest)
                    for job, one in zip(mine, said, strict=True):
                        if not job[4].done():
                            job[4].set_result(one)
                except Exception as error:
                    for job in mine:
                        if not job[4].done():
                            job[4].set_exception(error)


def application(desk: Desk) -> Starlette:
    """Return the server of the checkpoints that lie in the desk's folder."""

    async def models(request: Request) -> JSONResponse:
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "tiny_lm"} for name in desk.names()]
        return JSONResponse({"object": "list", "data": data})

    async def chat(request: Request) -> JSONResponse:
        try:
            body = await request.json()
            name, last = str(body["model"]), content_text(body["messages"][-1]["content"])
            temperature = float(body.get("temperature") or 0.0)
            asked = body.get("max_completion_tokens") or body.get("max_tokens") or 0
            if name not in desk.names():
                return _refused(404, f"model {name!r}: there is {', '.join(desk.names())}")
        except (ValueError, KeyError, IndexError, TypeError) as error:
            return _refused(400, f"not a chat completion request: {error!r}")
        # A short limit is kept; a long one never matters, since a demonstrated reply has six tokens.
        longest = desk.player(name).shape.reply + 2
        longest = min(int(asked), longest) if asked else longest
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        await desk.waiting.put((name, last, temperature, longest, future))
        said = await future
        read, written = int((said.prompt != 0).sum()), int((said.reply != 0).sum())
        message = {"role": "assistant", "content": said.text}
        return JSONResponse(
            {
                "id": f"chatcmpl-{time.monotonic_ns()}",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": name,
                "choices": [{"index": 0, "message": message, "finish_reason": "length" if said.cut else "stop"}],
                "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
            }
        )

    @asynccontextmanager
    async def working(app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(desk.work())
        yield
        task.cancel()

    routes = [Route("/v1/models", models), Route("/v1/chat/completions", chat, methods=["POST"])]
    return Starlette(routes=routes, lifespan=working)


def _refused(status: int, message: str) -> JSONResponse:
    return JSONResponse({"error": {"message": message, "type": "invalid_request_error"}}, status)


def main(folder: Path, port: int = 8000) -> None:
    """Serve the checkpoints in `folder` on `port` (0: one that the system chooses) and print which port that is."""
    jax.config.update("jax_compilation_cache_dir", str(folder.resolve() / "compiled"))
    with socket.create_server(("127.0.0.1", port)) as listening:
        print(listening.getsockname()[1], flush=True)
        server = uvicorn.Server(uvicorn.Config(application(Desk(folder)), log_level="warning"))
        server.run(sockets=[listening])


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
