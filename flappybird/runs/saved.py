"""What strangers saved, as models that nothing can break: a value of the wrong type is read as one that is not there."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator, ValidationError, model_validator

from flappybird.episodes import rewards
from flappybird.episodes.episode import Player
from flappybird.protocol.reply import content_text, said_and_thought
from flappybird.runs.run import MAX_ROWS, Contradiction
from flappybird.world.config import one_line

MAX_ERROR = 1_000
"""Characters of an error that are kept; a server can send pages of it."""

OURS = tuple(metric.__name__ for metric in rewards.ALL_METRICS)
"""The metrics that both doors save of every rollout."""

REWARDS = {
    "flappy_reward_func": rewards.WEIGHTS["pipes_passed"],
    "flappy_survival_reward": rewards.WEIGHTS["survival_score"],
    "format_reward_func": rewards.WEIGHTS["format"],
}
"""The reward functions that both doors save of every rollout, with their weights."""


def number(value: Any) -> float | None:
    """Return a finite number as one, anything else as None.

    >>> [number(value) for value in (1, 2.5, True, "3", float("nan"), 10**400)]
    [1.0, 2.5, None, None, None, None]
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if abs(found) <= LARGEST else None


LARGEST = 1e15
"""No score, time or count of tokens is larger; sums of what is stay numbers."""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_ROWS else None


def _words(value: Any) -> str | None:
    # Not pydantic's str, which refuses the lone surrogates that JSON can hold.
    return value if isinstance(value, str) else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


Number = Annotated[float | None, PlainValidator(number)]
Count = Annotated[int | None, PlainValidator(_count)]
Words = Annotated[str | None, PlainValidator(_words)]
Object = Annotated[dict[str, Any], PlainValidator(_object)]
Items = BeforeValidator(_items)
"""Put on a list of models: what is no list is an empty one."""


class Saved(BaseModel):
    """A JSON object as somebody saved it: any value gives one, what is not there has its default."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _of_anything(cls, value: Any) -> Any:
        return value if isinstance(value, dict) else {}


class Message(Saved):
    """One message of a conversation."""

    role: Any = None
    content: Any = None
    reasoning_content: Any = None

    @property
    def text(self) -> str:
        """What is written in it, pictures left out."""
        return content_text(self.content)

    @property
    def said(self) -> tuple[str, str]:
        """The text of a reply, and its reasoning."""
        return said_and_thought(self.content, self.reasoning_content)


class Versions(Saved):
    """What a row was played with, as its data says."""

    flappybird: Words = None
    physics: Any = None


def product(*factors: int | None) -> int | None:
    """Return the product, None where a factor is unknown."""
    known = [factor for factor in factors if factor is not None]
    return math.prod(known) if len(known) == len(factors) else None


def player(model: str, sampling: Mapping[str, Any], notes: list[str]) -> Player:
    """Return who played; settings that no episode could keep are left out, and noted."""
    settings = {name: value for name, value in sampling.items() if value not in (None, {})}
    try:
        return Player(kind="model", name=model, sampling=settings)
    except ValidationError as error:
        notes.append(one_line(error))
        return Player(kind="model", name=model)


def short(error: str) -> str:
    """Return an error on one line, at most `MAX_ERROR` characters of it."""
    line = " ".join(error.split())
    return line if len(line) <= MAX_ERROR else f"{line[: MAX_ERROR - 1]}…"


def finite(scores: Mapping[str, Any]) -> dict[str, float]:
    """Return the scores that are finite numbers."""
    return {name: found for name, value in scores.items() if (found := number(value)) is not None}


def bad_numbers(scores: Mapping[str, Any], required: Iterable[str]) -> list[Contradiction]:
    """Return what is wrong with scores as such: those that are missing, and those that are no finite numbers."""
    names = dict.fromkeys((*required, *scores))
    return [
        Contradiction(name, 0, scores.get(name, "missing"), "a finite number")
        for name in names
        if number(scores.get(name)) is None
    ]


def mark(*parts: Any) -> str:
    """Return a digest of JSON values."""
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()
