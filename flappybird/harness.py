"""How v1 asks the model: turn by turn, from within this process.

The harness is our own because the stock one for plain chat starts a Python program for every turn. Ours keeps one connection
and posts from within; all model calls still go through the library's interception, which is the contract.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import ssl
from functools import lru_cache
from typing import Any

from flappybird.errors import MissingPart
from flappybird.protocol.rules import Rules
from flappybird.protocol.window import first_kept
from flappybird.system.install import found_verifiers

try:
    import httpx
    import verifiers.v1 as vf

    vf.HarnessSession, vf.Interaction  # noqa: B018 - touched, so that a release without them is noticed here
except (ImportError, AttributeError):
    raise MissingPart(
        f"the taskset needs v1 of verifiers, release 0.3 or newer, and {found_verifiers('has none of it')}"
    ) from None

RETRIES = 5
"""How often a call that failed for a passing reason is made again."""

BACKOFF = 0.5
"""Seconds before the first of them; twice as many before each next one."""

PASSING = (408, 429, *range(500, 600))
"""HTTP statuses after which it is worth asking again."""


class FlappyHarness(vf.Harness[vf.HarnessConfig]):  # type: ignore[misc]
    """Asks the model turn by turn, from within this process: no tools, one connection, and only the turns that the rules show."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def session(self, *args: Any, **kwargs: Any) -> FlappySession:
        return FlappySession(self, *args, **kwargs)

    async def launch(self, *args: Any, **kwargs: Any) -> vf.ProgramResult:
        session = await self.session(*args, **kwargs)
        try:
            return await session._run(None)
        finally:
            await session.close()


class FlappySession(vf.HarnessSession):  # type: ignore[misc]
    """One conversation: what was said, as it goes over the wire, and the connection it goes over."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.client = httpx.AsyncClient(timeout=None, headers={"authorization": f"Bearer {self.secret}"}, verify=_certificates())
        system, _ = self.harness.resolve_prompt(self.data)
        self.head = [_wire({"role": "system", "content": system})] if system else []
        rules = getattr(self.data, "rules", None)
        self.window = rules.history_turns if isinstance(rules, Rules) else 0
        self.turns = 0
        """Turns that are over."""
        self.shown: list[list[bytes]] = []
        """The messages of each turn that the model is still shown."""

    async def _run(self, messages: Any | None) -> vf.ProgramResult:
        said = [_wire({"role": m.role, "content": _content(m.content)}) for m in self._said(messages)]
        kept = first_kept(self.turns, self.window)
        self.shown = self.shown[len(self.shown) - (self.turns - kept) :]
        conversation = b",".join([*self.head, *itertools.chain.from_iterable(self.shown), *said])
        body = b'{"model":%s,"messages":[%s]}' % (_wire(self.ctx.model), conversation)
        response = await self._ask(body)
        if response.status_code != 200:
            return vf.ProgramResult(exit_code=1, stdout="", stderr=response.text)
        reply = response.json()["choices"][0]["message"]
        reply = {name: value for name, value in reply.items() if value is not None} | {"content": reply.get("content") or ""}
        self.shown.append([*said, _wire(reply)])
        self.turns += 1
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    def _said(self, messages: Any | None) -> list[Any]:
        if messages is not None:
            return list(messages)
        prompt = self.data.prompt
        return [vf.UserMessage(content=prompt)] if isinstance(prompt, str) else list(prompt or ())

    async def _ask(self, body: bytes) -> httpx.Response:
        for attempt in itertools.count():
            # The count tells the library which calls are the same one again.
            headers = {"content-type": "application/json", "x-stainless-retry-count": str(attempt)}
            response = await self.client.post(f"{self.endpoint}/chat/completions", content=body, headers=headers)
            if response.status_code not in PASSING or attempt == RETRIES:
                return response
            await asyncio.sleep(BACKOFF * 2**attempt)
        raise AssertionError("unreachable")

    async def close(self) -> None:
        await super().close()
        await self.client.aclose()


@lru_cache(maxsize=1)
def _certificates() -> ssl.SSLContext:
    """Return what remote interception is verified against; loading it takes longer than many turns do, so it is kept."""
    return ssl.create_default_context()


def _wire(value: Any) -> bytes:
    return json.dumps(value).encode()


def _content(content: Any) -> Any:
    return content if isinstance(content, str) else [part.model_dump() for part in content]
