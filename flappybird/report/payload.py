"""Records → what the page's player is given: inputs, from which it rebuilds every state itself.

Per episode that is a small head, and a body that is packed (deflate, base64) until the episode is opened, so that a page
of a thousand episodes stays small and opens at once. Nothing derived that a line of the script can derive is stored.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flappybird.analysis import Blunder
from flappybird.episodes.episode import Episode, Replay
from flappybird.report.data import Record, Records
from flappybird.report.reference import Task
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course, Physics
from flappybird.world.units import to_units

AFTERLIFE = 60
"""How many ticks past the end of an episode the ghost of what would have saved the bird is shown."""


def payload(runs: Sequence[Records], folder: Path) -> dict[str, Any]:
    """Return the data of the page, as plain JSON values; links to videos are relative to `folder`."""
    worlds: dict[FlappyConfig, int] = {}
    courses: dict[tuple[FlappyConfig, int], tuple[int, Course]] = {}
    last: dict[int, int] = {}
    tasks: dict[Task, int] = {}
    episodes = []
    for number, run in enumerate(runs):
        for record in run.records:
            head: dict[str, Any] = {"run": number, "index": record.row.index, "end": record.end, "rollout": record.row.rollout}
            if record.row.error is not None:
                head["error"] = record.row.error
            if record.video:
                head["video"] = Path(os.path.relpath(record.video, folder)).as_posix()
            episode, played, analysis = record.episode, record.played, record.analysis
            if episode is None or played is None or analysis is None:
                head["problem"] = record.row.problem or "nothing was saved of it"
                episodes.append(head)
                continue
            course, _ = courses.setdefault((episode.config, episode.seed), (len(courses), played.course))
            ghost = _ghost(analysis.blunder, len(analysis.taps))
            last[course] = max(last.get(course, 0), len(analysis.taps), (ghost["from"] + len(ghost["taps"])) if ghost else 0)
            head |= {
                "seed": episode.seed,
                "world": worlds.setdefault(episode.config, len(worlds)),
                "course": course,
                "task": tasks.setdefault(Task.of(episode), len(tasks)),
                "ticks": len(analysis.taps),
                "crashed": analysis.death is not None,
                "horizon": analysis.horizon,
                "lost": analysis.blunder.tick if analysis.blunder else None,
                "reward": episode.outcome.reward,
                "body": pack(_body(record, episode, played, ghost)),
            }
            episodes.append(head)
    return {
        "runs": [run.label for run in runs],
        "worlds": [{**Physics.of(config)._asdict(), "world_h": to_units(config.world_h)} for config in worlds],
        "courses": [
            [tuple(course.gap(pipe)) for pipe in range(course.physics.newest(last[index]) + 2)]
            for index, course in courses.values()
        ],
        "episodes": episodes,
    }


def _body(record: Record, episode: Episode, played: Replay, ghost: dict[str, Any] | None) -> dict[str, Any]:
    analysis = record.analysis
    assert analysis is not None
    flown = [0] * len(episode.turns)
    for index in played.turn_at:
        flown[index] += 1
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
