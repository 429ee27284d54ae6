"""Who answers a conversation: a built-in policy, or anybody's function, which gets all conversations that wait at once."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import queue
import random
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from flappybird.errors import ConfigError, show, unknown_name
from flappybird.players.policies import make_policy, plan
from flappybird.protocol.prompt import read_config, read_ticks
from flappybird.protocol.reply import content_text, write_reply
from flappybird.server.chat import Message, Reply, ReplyError
from flappybird.world.config import FlappyConfig
from flappybird.world.observation import read_observation

MAX_BATCH = 256
"""The most conversations that a function is given at once."""


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


# --- a built-in policy --------------------------------------------------------------------------------------------

_SPOILT = (
    "I think the bird should flap now.",
    "<THINK>{thought}</THINK>",
    "<THINK>{thought}</THINK>\n<ACTIONS>[FLAP]</ACTIONS>",
    "<THINK>{thought}</THINK>\n<ACTIONS>TAP</ACTIONS>",
    "<ACTION>[TAP]</ACTION>",
    "<THINK>{thought}",
)
"""Faults that real models make, one of which takes the place of a spoilt answer."""


def answer(policy: str, options: Options, messages: Sequence[Message], seed: int | None = None, n: int = 1) -> list[str]:
    """Return `n` replies of `policy` to the last observation of a conversation, under the rules that its system prompt states."""
    texts = [content_text(message.content) for message in messages]
    last = next((text for text in reversed(texts) if "<FLAPPY id=" in text), "")
    seen = read_observation(last)
    if seen is None:
        return [write_reply((False,), "There is no observation here to act on.")] * n
    prompt = "\n".join(text for message, text in zip(messages, texts, strict=True) if message.role in ("system", "developer"))
    config = read_config(prompt) or FlappyConfig()
    ticks = read_ticks(prompt)
    seed = options.seed if seed is None else seed
    player = make_policy(policy, config, seed)

    replies: list[str] = []
    for _ in range(n):
        if not replies or (policy == "random" and seed is None):  # the others would say the same again
            taps, thought = plan(player, seen, config, ticks)
        dice = random.SystemRandom() if seed is None else random.Random(f"spoil/{seed}/{seen}")
        spoilt = dice.random() < options.malformed
        replies.append(dice.choice(_SPOILT).format(thought=thought) if spoilt else write_reply(taps, thought))
    return replies


# --- anybody's function -------------------------------------------------------------------------------------------


ReplyFunction = Callable[[list[list[dict[str, Any]]]], Sequence[Any]]
"""Gets conversations, each a list of {"role": …, "content": …}, and returns a reply for each: text, or what `Reply` holds."""


class Batched:
    """A function behind a queue: it is called in one thread, always the same, with all conversations that wait by then."""

    def __init__(self, function: ReplyFunction) -> None:
        self.function = function
        self._waiting: queue.SimpleQueue[tuple[list[dict[str, Any]], Future[Reply]]] = queue.SimpleQueue()
        threading.Thread(target=self._work, name="replies", daemon=True).start()

    async def __call__(self, messages: Sequence[Message]) -> Reply:
        """Return the reply to one conversation. Cancelled before its turn, the function never sees it. Raises ReplyError."""
        future: Future[Reply] = Future()
        self._waiting.put(([{"role": message.role, "content": message.content} for message in messages], future))
        return await asyncio.wrap_future(future)

    def _work(self) -> None:
        while True:
            waiting = [self._waiting.get()]
            while len(waiting) < MAX_BATCH and not self._waiting.empty():
                waiting.append(self._waiting.get())
            self._reply([(messages, future) for messages, future in waiting if future.set_running_or_notify_cancel()])

    def _reply(self, waiting: list[tuple[list[dict[str, Any]], Future[Reply]]]) -> None:
        if not waiting:
            return
        try:
            returned = self.function([messages for messages, _ in waiting])
            if isinstance(returned, str) or not isinstance(returned, Sequence) or len(returned) != len(waiting):
                what = f"{len(returned)} replies" if isinstance(returned, (list, tuple)) else show(returned)
                raise ReplyError(f"the function returned {what} for {len(waiting)} conversation{'s' * (len(waiting) > 1)}")
        except BaseException as error:  # a function that calls sys.exit() ends nothing but its replies
            failed = error if isinstance(error, ReplyError) else ReplyError(_where(error))
            for _, future in waiting:
                future.set_exception(failed)
            return
        for (_, future), reply in zip(waiting, returned, strict=True):
            try:
                future.set_result(Reply.of(reply))
            except ReplyError as error:
                future.set_exception(error)


def _where(error: BaseException) -> str:
    """Return what went wrong in a function on one line, with the place in its file."""
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is ours
    place = f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    return f"the function failed: {type(error).__name__}: {show(str(error), 200)[1:-1]}{place}"


def load_function(name: str) -> ReplyFunction:
    """Return the function that `module:function` names; modules are found where Python finds them, and in the current folder.

    Raises:
        ConfigError: there is none, or it cannot be imported.
    """
    module, colon, path = name.partition(":")
    if not (module and colon and path):
        raise ConfigError(f"--reply = {show(name)}: must be module:function, such as my_model:reply")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:  # whatever the module does when it is imported
        raise ConfigError(f"--reply = {show(name)}: {type(error).__name__}: {show(str(error), 200)[1:-1]}") from None
    if not callable(found) or inspect.iscoroutinefunction(found):
        raise ConfigError(f"--reply = {show(name)}: {show(found)} is not a plain function")
    function: ReplyFunction = found
    return function
