"""How a reply is read: like a referee.

The action is what the last complete `<ACTIONS>` block outside the reasoning says; nothing is guessed from prose, and whatever
is not a legal action is named (`Status`) and flies as no-op.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple


class Status(StrEnum):
    """What became of a turn's reply. All but `ok` fly as no-op and are counted as invalid."""

    OK = "ok"
    """A legal action."""
    MALFORMED = "malformed"
    """Something was said, but the last complete ACTIONS block is no legal list, or there is none."""
    TRUNCATED = "truncated"
    """The model ran into its token limit before a complete ACTIONS block."""
    EMPTY = "empty"
    """Nothing was said."""


class Reply(NamedTuple):
    """A reply as the referee reads it."""

    status: Status
    actions: tuple[bool, ...]
    """One entry per tick of the turn, True for TAP; all False unless the status is ok."""
    thought: str
    """The reasoning, from its own field and from THINK."""
    format: float
    """1.0 for exactly one THINK, then exactly one legal ACTIONS, and nothing else; `LEGAL_FORMAT` for any other legal
    reply; else 0.0."""
    ignored: int = 0
    """Actions listed beyond the ticks of the turn."""


LEGAL_FORMAT = 0.5
"""Format score of a reply whose action is legal but that is not exactly one THINK and one ACTIONS."""

LONG = 10_000
"""What is longer, in characters, is neither a list of actions nor the space around one."""

SHORT = 2_000
"""Replies up to so many characters are remembered for a while, once read."""

MAX_TAGS = 5_000
"""Of a reply with more angle brackets than this, only the last so many are looked at: no reply takes long to read."""

_TAG = re.compile(r"<[ \t\r\n]{0,8}(/?)[ \t\r\n]{0,8}(think|actions)[ \t\r\n]{0,8}>", re.IGNORECASE)

_CUT_CLOSING = re.compile(r"(?:<(?:/(?:A(?:C(?:T(?:I(?:O(?:N(?:S)?)?)?)?)?)?)?)?)?\Z", re.IGNORECASE)

_FENCES = re.compile(r"```[A-Za-z]{0,12}|`")

_ITEM = re.compile(r"""(["']?)(tap|noop)\1""", re.IGNORECASE)


def read_reply(text: Any, reasoning: Any = None, *, cut: bool = False, ticks: int = 1) -> Reply:
    """Read a reply. Never raises, in time linear in the length of the reply.

    Args:
        text: the reply's content: text, a list of content parts, or None.
        reasoning: what came in a separate reasoning field, likewise.
        cut: whether the model ran into its token limit (finish reason `length`).
        ticks: how many ticks the reply is to plan. With one, a list of several actions is malformed; with more,
            missing ticks fly as no-op and those too many are ignored and counted.
    """
    text, aside = content_text(text), content_text(reasoning)
    read = _read_once if len(text) + len(aside) <= SHORT else _read
    return read(text, aside, cut, ticks)


def _read(text: str, aside: str, cut: bool, ticks: int) -> Reply:
    parts = _split(text, cut)
    thought = "\n".join(part.strip() for part in (aside, *parts.thoughts) if part.strip())
    noop = (False,) * ticks

    if parts.answer is None:
        if cut:
            status = Status.TRUNCATED
        elif not text.strip():
            status = Status.EMPTY
        else:
            status = Status.MALFORMED
        return Reply(status, noop, thought, 0.0)

    listed = _read_list(parts.answer)
    if listed is None or (ticks == 1 and len(listed) > 1):
        return Reply(Status.MALFORMED, noop, thought, 0.0)
    thinks = len(parts.thoughts) or bool(aside.strip())
    exact = thinks == 1 and parts.answers == 1 and parts.in_order and _is_nothing(parts.rest)
    actions = (listed + noop)[:ticks]
    return Reply(Status.OK, actions, thought, 1.0 if exact else LEGAL_FORMAT, max(len(listed) - ticks, 0))


def _is_nothing(rest: str) -> bool:
    """Whether what stands outside of all blocks is only space and code fences; more than a page of it is not."""
    return len(rest) <= LONG and not _FENCES.sub("", rest).strip()


# Scoring, checking and showing an episode read each reply again and again.
_read_once = lru_cache(maxsize=1024)(_read)


def content_text(content: Any) -> str:
    """Return the text of a message's content: as it is, or its text parts joined, or nothing."""
    if isinstance(content, str):
        return content
    if content is None or not isinstance(content, Iterable) or isinstance(content, (bytes, dict)):
        return ""
    texts = []
    for part in content:
        text = part.get("text") if isinstance(part, dict) else getattr(part, "text", part)
        if isinstance(text, str):
            texts.append(text)
    return "".join(texts)


class _Parts(NamedTuple):
    thoughts: list[str]
    answer: str | None
    """What stands in the last complete ACTIONS block outside the reasoning."""
    answers: int
    in_order: bool
    """Whether no THINK comes after the first ACTIONS block."""
    rest: str
    """What stands outside of all blocks."""


def _split(text: str, cut: bool) -> _Parts:
    """Split a reply into its THINK blocks, its ACTIONS blocks and the rest."""
    thoughts: list[str] = []
    answers: list[str] = []
    early: list[str] = []  # ACTIONS blocks before a closing THINK that was never opened
    rest: list[str] = []
    in_order = True
    done = 0  # everything before is accounted for
    think_at: int | None = None  # where the text of an open THINK begins
    answer_at: int | None = None  # where the text of an open ACTIONS begins
    tag_at = 0  # where its tag begins
    drafts: list[tuple[int, int, int]] = []  # the same and the end, of ACTIONS blocks since the open THINK

    for tag in _TAG.finditer(text, _start(text)):
        closes, name = bool(tag[1]), tag[2].lower()
        if name == "think":
            if not closes and think_at is None:
                if answer_at is None:
                    rest.append(text[done : tag.start()])
                think_at, answer_at, drafts = tag.end(), None, []
                done = tag.end()
                in_order = in_order and not answers
            elif closes and think_at is not None:
                thoughts.append(text[think_at : tag.start()])
                think_at, answer_at, drafts = None, None, []
                done = tag.end()
            elif closes and not thoughts:
                # The opening tag stood in the prompt: all so far was reasoning, and its blocks were drafts.
                thoughts.append(text[: tag.start()])
                early, answers, rest, answer_at = answers, [], [], None
                done = tag.end()
        elif not closes:
            if think_at is None and answer_at is None:
                rest.append(text[done : tag.start()])
            answer_at, tag_at = tag.end(), tag.start()
            if think_at is None:
                done = tag.end()
        elif answer_at is not None:
            if think_at is None:
                answers.append(text[answer_at : tag.start()])
                done = tag.end()
            else:
                drafts.append((tag_at, answer_at, tag.start()))
            answer_at = None

    ends_open = answer_at is not None and _ends_with_list(text[answer_at:])
    if think_at is not None:
        # A THINK that was never closed. If the model was cut off inside it, its blocks were drafts; if it
        # stopped by itself, it only forgot the tag, and what it said last is its action.
        if not cut:
            answers += [text[start:end] for _, start, end in drafts]
        ends = [at for at, _, _ in drafts] + ([tag_at] if ends_open else []) if not cut else []
        thoughts.append(text[think_at : ends[0] if ends else len(text)])
        in_order = False
        done = len(text)
    if ends_open and answer_at is not None and (think_at is None or not cut):
        # A stop sequence took the closing tag, and nothing else.
        answers.append(_CUT_CLOSING.sub("", text[answer_at:].rstrip()))
        done = len(text)
    elif answer_at is not None:
        in_order = False
    rest.append(text[done:])
    if early and not answers:
        # No answer came after them: then they were it, and the closing tag is a slip.
        answers, in_order = early, False
    return _Parts(thoughts, answers[-1] if answers else None, len(answers), in_order, "".join(rest))


def _start(text: str) -> int:
    """Return where to begin looking for tags: all of the text, or its last `MAX_TAGS` angle brackets."""
    if text.count("<") <= MAX_TAGS:
        return 0
    start = len(text)
    for _ in range(MAX_TAGS):
        start = text.rfind("<", 0, start)
    return start


def _ends_with_list(tail: str) -> bool:
    tail = _CUT_CLOSING.sub("", tail.rstrip()) if len(tail) < LONG else ""
    return tail.strip().startswith("[") and tail.rstrip().endswith("]") and tail.count("[") == 1 and tail.count("]") == 1


def _read_list(block: str) -> tuple[bool, ...] | None:
    """Return the actions of `[TAP]`, `[]`, `[NOOP, TAP]` …; None for anything else."""
    block = _FENCES.sub("", block).strip()
    if len(block) > LONG or not (block.startswith("[") and block.endswith("]")):
        return None
    inside = block[1:-1].strip()
    if not inside:
        return ()
    actions = []
    for item in inside.split(","):
        found = _ITEM.fullmatch(item.strip())
        if not found:
            return None
        actions.append(found[2].lower() == "tap")
    return tuple(actions)


def write_reply(taps: tuple[bool, ...], thought: str) -> str:
    """Return a reply in the environment's format; a plan of several ticks is listed tick by tick."""
    if len(taps) == 1:
        listed = "TAP" if taps[0] else ""
    else:
        listed = ", ".join("TAP" if tap else "NOOP" for tap in taps)
    return f"<THINK>{thought}</THINK>\n<ACTIONS>[{listed}]</ACTIONS>"
