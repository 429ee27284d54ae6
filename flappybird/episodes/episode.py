"""An episode: what went in, from which everything else is derived.

An episode file holds seed, config, rules and the turns as they were said. States are never stored: `replay` gives them
again, and what a file claims of them can be checked (`records.verify`). The format is one JSON object, see `Episode`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, PlainValidator, ValidationError

from flappybird.episodes.rollout import Rollout
from flappybird.errors import ConfigError, EpisodeError, GameOver, show
from flappybird.protocol.observe import observe
from flappybird.protocol.reply import Reply, Status, read_reply
from flappybird.protocol.rules import Rules
from flappybird.system.files import read_json, write_text
from flappybird.world.config import FlappyConfig, one_line
from flappybird.world.course import Course
from flappybird.world.game import Outcome, Reason, State, look, passed_by
from flappybird.world.seeds import MAX_SEED

FORMAT: Final = "flappybird-episode"
VERSION: Final = 1
"""Version of the file format; a file of a newer one is refused."""
PHYSICS: Final = 1
"""Version of the rules; a file of another one cannot be replayed here."""
MAX_BYTES = 64_000_000
"""The largest episode file that is read."""


def _text(value: Any) -> str:
    # Not pydantic's str: a hostile reply can hold lone surrogates, which pydantic refuses and JSON keeps.
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value


MAX_DEPTH = 20
"""How deep the lists and objects of settings and origin may be nested."""


def _plain(value: Any, depth: int = 0) -> None:
    """Raise ValueError where `value` is not what a JSON file holds and gives back."""
    if depth > MAX_DEPTH:
        raise ValueError(f"must not be nested deeper than {MAX_DEPTH}")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{show(key)} must be text, as all names in JSON are")
            _plain(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _plain(item, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is not a JSON number")
    elif not isinstance(value, str | int | float | None):
        raise ValueError(f"{show(value)} is not a JSON value")


def _plain_object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("must be an object")
    _plain(value)
    return value


PlainObject = Annotated[dict[str, Any], PlainValidator(_plain_object)]
Text = Annotated[str, PlainValidator(_text)]
Natural = Annotated[int, Field(ge=0, le=2**53)]
Amount = Annotated[float, Field(ge=0)]


def _from_words(value: Any) -> Any:
    if not isinstance(value, list):
        raise ValueError("must be a list of TAP and NOOP")
    for word in value:
        if word not in ("TAP", "NOOP"):
            raise ValueError(f"{show(word)} must be TAP or NOOP")
    return tuple(word == "TAP" for word in value)


def words(taps: Iterable[bool]) -> list[str]:
    """Return actions as files spell them: `TAP` and `NOOP`."""
    return ["TAP" if tap else "NOOP" for tap in taps]


Taps = Annotated[tuple[bool, ...], BeforeValidator(_from_words), PlainSerializer(words)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class Player(_Part):
    """Who played."""

    kind: Literal["model", "policy", "human"]
    name: Text
    sampling: PlainObject = {}
    """Sampling settings of a model, options of a policy."""


class Turn(_Part):
    """One reply and what was known of it."""

    tick: Natural
    """Tick of the observation that was answered."""
    taps: Taps = Field(alias="actions")
    """What the bird was to do, one entry per tick of the turn, True for TAP; a list of `TAP` and `NOOP` in files."""
    status: Status = Field(strict=False)
    reply: Text | None = None
    """The raw reply; None where a key was pressed."""
    reasoning: Text | None = None
    """What came in a separate reasoning field."""
    cut: bool = False
    """Whether the model ran into its token limit."""
    ignored: Natural = 0
    """Actions listed beyond the ticks of the turn."""
    waited: Natural = 0
    """Ticks that passed before the reply came."""
    prompt_tokens: Natural | None = None
    completion_tokens: Natural | None = None
    seconds: Amount | None = None
    """How long the reply took."""

    @classmethod
    def of(cls, fields: Mapping[str, Any], read: Reply | None = None) -> Self:
        """Return the turn with these fields; `read` is its reply as it was read, where that has been done."""
        turn = cls(**fields)
        if read is not None:
            vars(turn)["read"] = read  # where `cached_property` keeps it
        return turn

    @cached_property
    def read(self) -> Reply | None:
        """The reply as the referee reads it, once; None where a key was pressed."""
        if self.reply is None:
            return None
        return read_reply(self.reply, self.reasoning, cut=self.cut, ticks=len(self.taps))

    @property
    def thought(self) -> str:
        """The reasoning, from its own field and from THINK."""
        return self.read.thought if self.read else ""

    @property
    def format(self) -> float:
        """The format score of the reply; 0.0 where nothing was written."""
        return self.read.format if self.read else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the turn as plain JSON values; what is not known is left out."""
        known = {name: value for name, default in _UNKNOWN.items() if (value := getattr(self, name)) != default}
        return {"tick": self.tick, "actions": words(self.taps), "status": self.status.value} | known


_UNKNOWN = {name: field.default for name, field in Turn.model_fields.items() if not field.is_required()}


class Ending(_Part):
    """How the episode ended and what it scored, as claimed; `records.verify` compares it with the replay."""

    reason: Reason = Field(strict=False)
    ticks: Natural
    pipe: Natural | None = None
    """Number (from 0) of the pipe that was hit."""
    pipes_passed: Natural
    survival_score: Amount
    format: Amount
    reward: Amount
    error: Text | None = None
    """What broke, where the reason is `error`."""


class Episode(_Part):
    """One episode, whole.

    Raises:
        pydantic.ValidationError: the fields are not those of an episode. `load` and `from_dict` raise EpisodeError instead.
    """

    format: Literal["flappybird-episode"] = FORMAT
    version: Literal[1] = VERSION
    physics: Literal[1] = PHYSICS
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)]
    config: FlappyConfig
    rules: Rules
    player: Player
    turns: list[Turn]
    outcome: Ending
    origin: PlainObject = {}
    """Where it comes from: run, row, rollout, date."""

    def to_dict(self) -> dict[str, Any]:
        """Return the episode as plain JSON values; what is not known is left out."""
        data = self.model_dump(exclude_none=True, exclude={"turns"})
        origin = data.pop("origin")
        outcome = data.pop("outcome")
        data |= {"turns": [turn.to_dict() for turn in self.turns], "outcome": outcome, "origin": origin}
        data["outcome"]["reason"] = self.outcome.reason.value
        return data

    def to_json(self) -> str:
        """Return the episode file's text: JSON in ASCII, a line per turn."""
        data = self.to_dict()
        turns = data.pop("turns")
        head = json.dumps(data, allow_nan=False, indent=1)
        lines = ",\n  ".join(json.dumps(turn, allow_nan=False) for turn in turns)
        return f'{head[:-2]},\n "turns": [{chr(10) + "  " if turns else ""}{lines}]\n}}\n'

    def _repr_html_(self) -> str:
        """Return the page's player for a notebook. The report stands above this floor, so it is only asked for here."""
        shown: str = import_module("flappybird.report.notebook").player(self)
        return shown


def from_dict(data: Any, name: str = "episode") -> Episode:
    """Return the episode that plain JSON values stand for.

    Raises:
        EpisodeError: they are not an episode, or one of a newer version; the message begins with `name`.
    """
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = show(data.get("format")) if isinstance(data, dict) else "no JSON object"
        raise EpisodeError(f"{name}: not an episode file: format is {found}, must be {FORMAT!r}")
    for field, known in (("version", VERSION), ("physics", PHYSICS)):
        if data.get(field) != known:
            raise EpisodeError(f"{name}: {field} is {show(data.get(field))}, this release reads {known}")
    try:
        episode = Episode(**data)
    except ConfigError as error:
        raise EpisodeError(f"{name}: {error}") from None
    except (ValidationError, TypeError) as error:
        line = one_line(error) if isinstance(error, ValidationError) else str(error)
        raise EpisodeError(f"{name}: {line}") from None
    for turn in episode.turns:
        if len(turn.taps) != episode.rules.ticks_per_turn:
            raise EpisodeError(
                f"{name}: the turn at tick {turn.tick} has {len(turn.taps)} actions, must have {episode.rules.ticks_per_turn}"
            )
    return episode


def load(path: str | Path) -> Episode:
    """Return the episode in the file `path`.

    Raises:
        EpisodeError: the file is missing, damaged, too large, or of a newer version.
    """
    return from_dict(read_json(Path(path), MAX_BYTES), str(path))


def save(episode: Episode, path: str | Path) -> None:
    """Write `episode` under `path`, whole or not at all."""
    write_text(Path(path), episode.to_json())


class Replay(NamedTuple):
    """An episode, played again. Made once, it carries what checking, scoring, explaining and showing the episode need."""

    states: list[State]
    """The state at tick 0, 1, …: one more than ticks were flown. Units, see `game.State`."""
    turn_at: list[int]
    """For tick t, the index of the turn during which the tick that follows state t was flown; as long as ticks were flown."""
    taps: list[bool]
    """What was flown in each tick, late and missing actions included; entry t leads from state t to state t + 1."""
    outcome: Outcome | None
    """How the game ended; None where the turns stop before it does (aborted, error)."""
    course: Course
    used: int
    """Turns that were flown; those after the end are left over."""

    @property
    def crashed(self) -> bool:
        """Whether the bird died."""
        return self.outcome is not None and self.outcome.reason.crashed

    @property
    def pipes_passed(self) -> int:
        """Pipes passed in the end."""
        return passed_by(self.course, self.states[-1].tick, self.crashed)

    def starts(self) -> list[int]:
        """Return the tick at which each turn that was flown began."""
        # A turn flies one tick at the least.
        return [tick for tick, turn in enumerate(self.turn_at) if tick == 0 or self.turn_at[tick - 1] != turn]


def replay(episode: Episode) -> Replay:
    """Play `episode` again from its seed, config, rules and actions."""
    rollout = Rollout(episode.config, episode.seed, episode.rules)
    states, turn_at, taps, used = [rollout.game.state], [], [], 0
    for index, turn in enumerate(episode.turns):
        try:
            fly(rollout, turn)
        except GameOver:
            break
        states += rollout.trail[1:]
        taps += rollout.flown
        turn_at += [index] * len(rollout.flown)
        used += 1
    return Replay(states, turn_at, taps, rollout.outcome, rollout.game.course, used)


def fly(rollout: Rollout, turn: Turn) -> None:
    """Fly `turn`, as it was written down, in `rollout`."""
    rollout.fly(turn.taps, turn.status, waited=turn.waited)


def observations(episode: Episode, replayed: Replay) -> Iterator[str]:
    """Yield the text that a model was shown before each turn that was flown, to the byte; `replayed` is the episode's replay."""
    before = 0
    for start in replayed.starts():
        state = replayed.states[start]
        seen = look(replayed.course, state, replayed.course.passed(state.tick))
        yield observe(seen, episode.rules, episode.config, replayed.states[before : start + 1])
        before = start


def summary_line(episode: Episode) -> str:
    """Return, on one line, how `episode` ended."""
    ending = episode.outcome
    ended = Outcome(ending.reason, ending.ticks, ending.pipe)
    passed = f"{ending.pipes_passed} pipe{'s' * (ending.pipes_passed != 1)} passed"
    return f"{episode.player.name}, seed {episode.seed}: {passed}, {ended}, reward {ending.reward:g}"
