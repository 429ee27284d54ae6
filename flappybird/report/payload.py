"""Records → what the page's player is given: inputs, from which it rebuilds every state itself.

Per episode that is a small head, and a body that is packed (deflate, base64) until the episode is opened, so that a page
of a thousand episodes stays small and opens at once. Nothing derived that a line of the script can derive is stored.
"""

from __future__ import annotations

import base64
import json
import math
import os
import zlib
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

from flappybird.analysis import Blunder
from flappybird.episodes.episode import FORMAT, PHYSICS, VERSION, Episode, Replay
from flappybird.episodes.rewards import SURVIVAL_BASE, SURVIVAL_RAMP, SURVIVAL_RAMP_TICKS, WEIGHTS
from flappybird.episodes.rollout import Rollout
from flappybird.errors import MissingPart
from flappybird.messages import png, require_renderer
from flappybird.protocol.observe import has_picture, observe
from flappybird.protocol.prompt import prompt_of
from flappybird.report.causes import CAUSES
from flappybird.report.data import ENDS, Record
from flappybird.report.overview import Overview
from flappybird.report.palette import look
from flappybird.report.reference import Task
from flappybird.world.course import Physics
from flappybird.world.game import FlappyGame
from flappybird.world.units import to_units

T = TypeVar("T")

ROOM = 1_800_000
"""Characters that the replays of a page may take; the rest of it is some 0.5 MB, and 0.3 MB for every 10,000 episodes."""

OF_A_CAUSE = 6
"""Episodes of each cause whose replays go before others."""

MAX_PICTURES = 300
"""The most pictures of observations in a page, some 6 kB each; the page draws the others itself."""

AFTERLIFE = 60
"""How many ticks past the end of an episode the ghost of what would have saved the bird is shown."""


def payload(overview: Overview, folder: Path, wanted: Collection[int] = ()) -> dict[str, Any]:
    """Return the data of the page, as plain JSON values; links to videos are relative to `folder`.

    Its `episodes` are all of them where `ROOM` is enough, else the first of `by_worth`; `row` says which row of the page's table
    each of them is. `wanted` are the indices of episodes that are there in any case.
    """
    lists: dict[str, dict[Any, int]] = {name: {} for name in ("worlds", "rules", "tasks", "players", "prompts")}

    def number(name: str, value: Any) -> int:
        return lists[name].setdefault(value, len(lists[name]))

    pictures = Pictures()
    found = {}
    room = ROOM
    for row, run, record in by_worth(overview, wanted):
        asked_for = record.row.index in wanted
        if room <= 0 and not asked_for:
            break
        head: dict[str, Any] = {"row": row, "run": run, "index": record.row.index, "end": record.end}
        if record.row.error is not None:
            head["error"] = record.row.error
        if record.video:
            head["video"] = Path(os.path.relpath(record.video, folder)).as_posix()
        episode, played, analysis = record.episode, record.played, record.analysis
        if episode is None or played is None or analysis is None:
            head["problem"] = record.row.problem or "nothing was saved of it"
        else:
            ghost = _ghost(analysis.blunder, len(analysis.taps))
            head |= {
                "seed": episode.seed,
                "world": number("worlds", episode.config),
                "rules": number("rules", episode.rules),
                "prompt": number("prompts", prompt_of(episode.config, episode.rules)),
                "player": number("players", _json(episode.player.model_dump())),
                "task": number("tasks", Task.of(episode)),
                "ticks": len(analysis.taps),
                "crashed": analysis.death is not None,
                "horizon": analysis.horizon,
                "lost": analysis.blunder.tick if analysis.blunder else None,
                "reward": episode.outcome.reward,
                "pipe": episode.outcome.pipe,
                "body": pack(_body(record, episode, played, ghost, pictures)),
            }
            if record.cause:
                head["cause"] = record.cause.name
        room -= len(_json(head))
        if room >= 0 or asked_for:
            found[row] = head
    episodes = [found[row] for row in sorted(found)]
    return {
        "runs": [
            {"label": records.label, "number": overview.number[run], "look": look(run)}
            for run, records in enumerate(overview.runs)
        ],
        "worlds": [
            {**Physics.of(config)._asdict(), "world_h": to_units(config.world_h), "config": config.model_dump()}
            for config in lists["worlds"]
        ],
        "rules": [rules.model_dump() | {"observation": rules.observation} for rules in lists["rules"]],
        "prompts": list(lists["prompts"]),
        "players": [json.loads(player) for player in lists["players"]],
        "ends": ENDS,
        "causes": {name: label for name, (label, _) in CAUSES.items()},
        "scoring": {
            "weights": WEIGHTS,
            "base": SURVIVAL_BASE,
            "ramp": SURVIVAL_RAMP,
            "ramp_ticks": SURVIVAL_RAMP_TICKS,
        },
        "file": {"format": FORMAT, "version": VERSION, "physics": PHYSICS},
        "episodes": episodes,
        "rows": sum(len(records.records) for records in overview.runs),
    }


def by_worth(overview: Overview, wanted: Collection[int] = ()) -> Iterator[tuple[int, int, Record]]:
    """Yield (row, run, record) of every episode, those first whose replay is worth most.

    That is the wanted ones, then the worst and the best of each run, some of each cause, of those that differ from their replay
    and of those that are no scores, then the other scores evenly from worst to best: the middle, the quarters, and so on.
    """
    rows = [(run, record) for run, records in enumerate(overview.runs) for record in records.records]
    order = [row for row, (_, record) in enumerate(rows) if record.row.index in wanted]
    by_run: dict[int, list[int]] = {}
    groups: dict[str, list[int]] = {}
    for row, (run, record) in enumerate(rows):
        if record.clean:
            by_run.setdefault(run, []).append(row)
        else:
            groups.setdefault(record.end, []).append(row)
        if record.cause and record.clean:
            groups.setdefault(record.cause.name, []).append(row)
        if record.differences:
            groups.setdefault("differs", []).append(row)
    ranked: list[int] = []
    for scored in by_run.values():
        scored.sort(key=lambda row: rows[row][1].scores.get("reward", -math.inf))
        order += [scored[0], scored[-1]]
        ranked += scored
    # As `context.causes` shows them: evenly, in the order of the rows.
    order += [row for group in groups.values() for row in evenly(group, OF_A_CAUSE)]
    step = 1 << len(ranked).bit_length()
    while step:
        order += ranked[step // 2 :: step]
        step //= 2
    for row in dict.fromkeys([*order, *range(len(rows))]):
        yield row, *rows[row]


def evenly(found: Sequence[T], most: int) -> list[T]:
    """Return at most `most` of `found`, evenly from first to last."""
    if len(found) <= most:
        return list(found)
    return [found[index * (len(found) - 1) // (most - 1)] for index in range(most)]


class Pictures:
    """The pictures that models were sent, made again: those around what lost a game, no more than `MAX_PICTURES` in all."""

    def __init__(self) -> None:
        self.left = MAX_PICTURES

    def of(self, episode: Episode, played: Replay, starts: list[int], lost: int | None) -> dict[int, str]:
        """Return base64 PNG files by turn; none where the renderer is not installed."""
        if not has_picture(episode.rules) or not self.left:
            return {}
        try:
            require_renderer(episode.rules)
        except MissingPart:
            return {}
        middle = next((turn for turn, start in enumerate(starts) if lost is not None and start >= lost), len(starts) - 1)
        wanted = sorted({0, *range(max(middle - 4, 0), min(middle + 3, len(starts)))} & set(range(len(starts))))[: self.left]
        self.left -= len(wanted)
        found = {}
        for turn in wanted:
            state = played.states[starts[turn]]
            record = {"tick": state.tick, "y": state.y, "velocity": state.velocity, "ended": None, "turns": []}
            rollout = Rollout(episode.config, episode.seed, episode.rules, record)
            found[turn] = base64.b64encode(png(rollout)).decode("ascii")
        return found


def seen(record: Record, episode: Episode, played: Replay, starts: list[int]) -> list[str]:
    """Return what the model read in each turn: as it was saved, else as this environment sends it."""
    saved = record.row.observations or []
    texts = []
    for turn, start in enumerate(starts):
        if turn < len(saved):
            texts.append(saved[turn])
            continue
        state = played.states[start]
        game = FlappyGame(episode.config, episode.seed, state=state)
        trail = played.states[starts[turn - 1] if turn else start : start + 1]
        texts.append(observe(game.observation(), episode.rules, episode.config, trail))
    return texts


def _body(record: Record, episode: Episode, played: Replay, ghost: dict[str, Any] | None, pictures: Pictures) -> dict[str, Any]:
    analysis = record.analysis
    assert analysis is not None
    flown = [0] * len(episode.turns)
    for index in played.turn_at:
        flown[index] += 1
    starts = [0, *accumulate(flown)][:-1]
    turns = []
    for turn, ticks in zip(episode.turns, flown, strict=True):
        entry: dict[str, Any] = {"ticks": ticks, "status": turn.status.value, "actions": _marks(turn.taps)}
        reply = turn.read
        if turn.reply is not None and reply is not None:
            start = turn.reply.find(reply.thought) if reply.thought else -1
            thought: Any = reply.thought
            if start >= 0:  # it stands in the reply: only where
                thought = [_utf16(turn.reply[:start]), _utf16(reply.thought)]
            known = {
                "reply": turn.reply,
                "reasoning": turn.reasoning,
                "thought": thought,
                "format": reply.format,
                "cut": turn.cut,
            }
            entry.update((name, value) for name, value in known.items() if value or name == "reply")
        for name in ("waited", "ignored", "prompt_tokens", "completion_tokens", "seconds"):
            value = getattr(turn, name)
            if value:
                entry[name] = value
        turns.append(entry)
    death, blunder = analysis.death, analysis.blunder
    texts = seen(record, episode, played, [start for start, ticks in zip(starts, flown, strict=True) if ticks])
    for entry, text in zip(turns, texts, strict=False):
        entry["seen"] = text
    for index, picture in pictures.of(episode, played, starts, blunder.tick if blunder else None).items():
        turns[index]["picture"] = picture
    return {
        "taps": _marks(analysis.taps),
        "margins": analysis.margins,
        "forced": "".join(" " if must is None else "T" if must else "." for must in analysis.forced),
        "blunder": {"tick": blunder.tick, "tap": blunder.tap, "turn": blunder.turn, "doomed": blunder.doomed}
        if blunder
        else None,
        "death": death._asdict() if death else None,
        "ghost": ghost,
        "turns": turns,
        "slips": [str(slip) for slip in record.cause.slips] if record.cause else [],
        "differences": [str(difference) for difference in record.differences],
    }


def _ghost(blunder: Blunder | None, ticks: int) -> dict[str, Any] | None:
    if blunder is None:
        return None
    return {"from": blunder.tick, "taps": _marks(blunder.rescue[: ticks - blunder.tick + AFTERLIFE])}


def _marks(taps: Any) -> str:
    """One character per tick: T for TAP."""
    return "".join("T" if tap else "." for tap in taps)


def _utf16(text: str) -> int:
    """Length of `text` as JavaScript counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def pack(value: Any) -> str:
    """Return plain JSON values as text that holds only letters, digits, +, / and =."""
    return base64.b64encode(zlib.compress(_json(value).encode("ascii"), 9)).decode("ascii")


def unpack(text: str) -> Any:
    """Return what was packed."""
    return json.loads(zlib.decompress(base64.b64decode(text)))


def embed(value: Any) -> str:
    """Return plain JSON values as text that is safe inside a script element: ASCII, and nothing that could end it."""
    return _json(value).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _json(value: Any) -> str:
    # ASCII throughout: line separators and lone surrogates are escaped.
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
