"""How a reply is read: like a referee.

The action is what the last complete `<ACTIONS>` block outside the reasoning says; nothing is guessed from prose, and whatever
is not a legal action is named (`Status`) and flies as no-op.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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

SHORT = 500
"""What is no longer, in characters, is remembered: a policy says the same again and again."""

LONG = 10_000
"""What is longer, in characters, is neither a list of actions nor the space around one."""

MAX_TAGS = 5_000
"""Of a reply with more angle brackets, only the last ones, this many, are looked at: no reply takes long to read."""

_TAG = re.compile(r"<[ \t\r\n]{0,8}(/?)[ \t\r\n]{0,8}(think|actions)[ \t\r\n]{0,8}>", re.IGNORECASE)

_CUT_CLOSING = re.compile(r"(?:<(?:/(?:A(?:C(?:T(?:I(?:O(?:N(?:S)?)?)?)?)?)?)?)?)?\Z", re.IGNORECASE)

_BEGINNING = re.compile(r"[\s\ufeff\u200b-\u200f\u2060]{0,100}")

_FENCES = re.compile(r"```[A-Za-z]{0,12}|`")

_QUOTES = ('"', "'", "“”„‟«»＂", "‘’‚‛‹›＇")
"""Characters that close what another of the same group has opened."""

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]+"
)
"""Characters that nobody sees: byte-order marks, zero-width spaces and joiners, marks of direction, variation selectors."""

_NATIVE = ("<think>", "</think>")
"""How templates of reasoning models mark the reasoning, in exactly these letters."""


def read_reply(text: Any, reasoning: Any = None, *, cut: bool = False, ticks: int = 1) -> Reply:
    """Read a reply. Never raises, in time linear in the length of the reply.

    Args:
        text: the reply's content: text, a list of content parts (those of reasoning count as such), or None.
        reasoning: what came in a separate reasoning field, likewise.
        cut: whether the model ran into its token limit (finish reason `length`).
        ticks: how many ticks the reply is to plan. With one, a list of several actions is malformed; with more,
            missing ticks fly as no-op and those too many are ignored and counted.
    """
    said, aside = said_and_thought(text, reasoning)
    read = _known if len(said) + len(aside) <= SHORT else _read
    return read(said, aside, cut, ticks)


def _read(said: str, aside: str, cut: bool, ticks: int) -> Reply:
    native, said = _native_reasoning(said)
    parts = _split(said, cut)
    thought = "\n".join(part.strip() for part in (aside, native, *parts.thoughts) if _visible(part))
    noop = (False,) * ticks

    if parts.answer is None:
        if cut:
            status = Status.TRUNCATED
        elif not _visible(said):
            status = Status.EMPTY
        else:
            status = Status.MALFORMED
        return Reply(status, noop, thought, 0.0)

    listed = _read_list(parts.answer)
    if listed is None or (ticks == 1 and len(listed) > 1):
        return Reply(Status.MALFORMED, noop, thought, 0.0)
    thinks = len(parts.thoughts) - parts.native or bool(thought)  # a model's own reasoning stands for THINK
    exact = thinks == 1 and parts.answers == 1 and parts.in_order and _is_nothing(parts.rest)
    actions = (listed + noop)[:ticks]
    return Reply(Status.OK, actions, thought, 1.0 if exact else LEGAL_FORMAT, max(len(listed) - ticks, 0))


_known = lru_cache(maxsize=4096)(_read)


def _is_nothing(rest: str) -> bool:
    """Whether what stands outside of all blocks is only space and code fences; more than a page of it is not."""
    return len(rest) <= LONG and not _visible(_FENCES.sub("", rest))


def _visible(text: str) -> str:
    """Return `text` without the space around it and without what nobody sees."""
    return (text if text.isascii() else _INVISIBLE.sub("", text)).strip()


def said_and_thought(content: Any, reasoning: Any = None) -> tuple[str, str]:
    """Return what a message says and what was thought for it, however the server splits the two.

    Args:
        content: text, a list of content parts, or None. Parts of the types `thinking` and `reasoning` are thought.
        reasoning: what came in a separate field, likewise.
    """
    if isinstance(content, str):
        return content, content_text(reasoning) if reasoning is not None else ""
    parts = list(_parts_of(content))
    thoughts = [content_text(reasoning), *(_thinking(part) for part in parts if _field(part, "type") in _THINKING)]
    said = content_text([part for part in parts if _field(part, "type") not in _THINKING])
    return said, "\n".join(thought for thought in thoughts if thought)


def content_text(content: Any) -> str:
    """Return the text of a message's content: as it is, or its text parts joined, or nothing."""
    if isinstance(content, str):
        return content
    texts = (part if isinstance(part, str) else _field(part, "text") for part in _parts_of(content))
    return "".join(text for text in texts if isinstance(text, str))


_THINKING = ("thinking", "reasoning")
"""Types of content parts that hold reasoning, in a field of that name or as text."""


def _parts_of(content: Any) -> Iterable[Any]:
    """The parts of a message's content, none where it has no list of them."""
    return content if isinstance(content, Iterable) and not isinstance(content, (str, bytes, dict)) else ()


def _field(part: Any, name: str) -> Any:
    return part.get(name) if isinstance(part, dict) else getattr(part, name, None)


def _thinking(part: Any) -> str:
    """Return the reasoning in a content part: text, or parts in their turn."""
    found = (content_text(_field(part, name)) for name in (*_THINKING, "text"))
    return next((text for text in found if text), "")


def _native_reasoning(text: str) -> tuple[str, str]:
    """Split off a `<think>` block that a reasoning model begins with, as its server would: (reasoning, the rest)."""
    opening, closing = _NATIVE
    if closing not in text:
        return "", text
    start = _BEGINNING.match(text)
    begins = start.end() if start else 0
    ends = text.find(closing, begins)
    if ends < 0 or not text.startswith(opening, begins):
        return "", text
    return text[begins + len(opening) : ends], text[ends + len(closing) :]


class _Parts(NamedTuple):
    thoughts: list[str]
    answer: str | None
    """What stands in the last complete ACTIONS block outside the reasoning."""
    answers: int
    in_order: bool
    """Whether no THINK comes after the first ACTIONS block."""
    rest: str
    """What stands outside of all blocks."""
    native: int
    """Thoughts that are a reasoning model's own, closed by its tag; the prompt had opened it."""


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
    native = 0

    for tag in _TAG.finditer(text, _start(text)):
        closes, name = bool(tag[1]), tag[2].lower()
        if name == "think":
            if not closes and think_at is None:
                rest.append(text[done if answer_at is None else tag_at : tag.start()])
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
                native = int(tag[0] == _NATIVE[1])
                done = tag.end()
        elif not closes:
            if think_at is None:
                # What follows an ACTIONS that was never closed stands outside of all blocks, its tag with it.
                rest.append(text[done if answer_at is None else tag_at : tag.start()])
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
    if ends_open and answer_at is not None and not cut:
        # A stop sequence took the closing tag, and nothing else. At its token limit the model had more to say.
        answers.append(_CUT_CLOSING.sub("", _visible(text[answer_at:])))
        done = len(text)
    elif answer_at is not None:
        in_order = False
    rest.append(text[done:])
    if early and not answers:
        # No answer came after them: then they were it, and the closing tag is a slip.
        answers, in_order = early, False
    return _Parts(thoughts, answers[-1] if answers else None, len(answers), in_order, "".join(rest), native)


def _start(text: str) -> int:
    """Return where to begin looking for tags: all of the text, or its last `MAX_TAGS` angle brackets."""
    if text.count("<") <= MAX_TAGS:
        return 0
    start = len(text)
    for _ in range(MAX_TAGS):
        start = text.rfind("<", 0, start)
    return start


def _ends_with_list(tail: str) -> bool:
    tail = _CUT_CLOSING.sub("", _visible(tail)) if len(tail) < LONG else ""
    return tail.strip().startswith("[") and tail.rstrip().endswith("]") and tail.count("[") == 1 and tail.count("]") == 1


def _read_list(block: str) -> tuple[bool, ...] | None:
    """Return the actions of `[TAP]`, `[]`, `[NOOP, TAP]` …; None for anything else."""
    block = _visible(_FENCES.sub("", block)) if len(block) <= LONG else ""
    if not (block.startswith("[") and block.endswith("]")):
        return None
    inside = block[1:-1].strip()
    if not inside:
        return ()
    actions = [_unquoted(item.strip()).lower() for item in inside.split(",")]
    return tuple(action == "tap" for action in actions) if all(action in ("tap", "noop") for action in actions) else None


def _unquoted(item: str) -> str:
    quoted = len(item) > 2 and any(item[0] in quotes and item[-1] in quotes for quotes in _QUOTES)
    return item[1:-1] if quoted else item


def list_actions(taps: Sequence[bool]) -> str:
    """Return actions as a reply lists them: `[TAP]` or `[]` for one tick, a plan of several tick by tick."""
    if len(taps) == 1:
        return "[TAP]" if taps[0] else "[]"
    return f"[{', '.join('TAP' if tap else 'NOOP' for tap in taps)}]"


def write_reply(taps: Sequence[bool], thought: str) -> str:
    """Return a reply in the environment's format."""
    return f"<THINK>{thought}</THINK>\n<ACTIONS>{list_actions(taps)}</ACTIONS>"
