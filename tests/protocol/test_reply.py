"""A reply, read as a referee would."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flappybird.protocol.reply import Status, read_reply
from tests.conftest import ROOT

TAP, NOOP = "<ACTIONS>[TAP]</ACTIONS>", "<ACTIONS>[]</ACTIONS>"


GOLDEN = ROOT / "tests" / "golden"


OK, MALFORMED, TRUNCATED, EMPTY = Status.OK, Status.MALFORMED, Status.TRUNCATED, Status.EMPTY


@pytest.mark.parametrize(
    ("text", "status", "tap", "score"),
    [
        # The two forms of the card.
        (f"<THINK>up</THINK>\n{TAP}", OK, True, 1.0),
        (f"<THINK>down</THINK>\n{NOOP}", OK, False, 1.0),
        # Spaces, quotes, case, NOOP.
        ("<think>a</think><actions> [ tap ] </actions>", OK, True, 1.0),
        ("<Think>a</THINK><Actions>['TAP']</aCTIONS>", OK, True, 1.0),
        ('<THINK>a</THINK><ACTIONS>["Tap"]</ACTIONS>', OK, True, 1.0),
        ("<THINK>a</THINK><ACTIONS>[NOOP]</ACTIONS>", OK, False, 1.0),
        ("<THINK>a</THINK>< actions >\n[TAP]\n</ ACTIONS >", OK, True, 1.0),
        (f"<THINK>a</THINK>\n```xml\n{TAP}\n```", OK, True, 1.0),
        # The last complete block counts.
        (f"<THINK>a</THINK>{TAP}{NOOP}", OK, False, 0.5),
        (f"<THINK>a</THINK>{NOOP}{TAP}", OK, True, 0.5),
        (f"<THINK>a</THINK>{TAP}<ACTIONS>[FLAP]</ACTIONS>", MALFORMED, False, 0.0),
        (f"<THINK>a</THINK><ACTIONS>[FLAP]</ACTIONS>{TAP}", OK, True, 0.5),
        (f"{TAP} and then <ACTIONS>[]", OK, False, 0.5),
        (f"{TAP} and then <ACTIONS>[] or not", OK, True, 0.5),
        ("<ACTIONS><ACTIONS>[TAP]</ACTIONS></ACTIONS>", OK, True, 0.5),
        (f"<ACTIONS>[TAP] or\n{NOOP}", OK, False, 0.5),
        # A stop sequence takes the closing tag.
        ("<THINK>a</THINK><ACTIONS>[TAP]", OK, True, 1.0),
        ("<THINK>a</THINK><ACTIONS>[TAP]\n", OK, True, 1.0),
        ("<THINK>a</THINK><ACTIONS>[TA", MALFORMED, False, 0.0),
        ("<THINK>a</THINK><ACTIONS>[TAP] I think", MALFORMED, False, 0.0),
        # Drafts inside the reasoning are no answer.
        (f"<THINK>maybe {NOOP}</THINK>{TAP}", OK, True, 1.0),
        (f"<THINK>maybe {TAP}</THINK>", MALFORMED, False, 0.0),
        (f"maybe {NOOP}</THINK>{TAP}", OK, True, 1.0),
        (f"{TAP}</THINK>", OK, True, 0.5),
        # A forgotten closing tag is no reason not to fly.
        (f"<THINK>up {TAP}", OK, True, 0.5),
        ("<THINK>up <ACTIONS>[TAP]", OK, True, 0.5),
        # Extra text, order, number.
        (f"{TAP}", OK, True, 0.5),
        (f"Sure! <THINK>a</THINK>{TAP}", OK, True, 0.5),
        (f"<THINK>a</THINK>{TAP} Good luck!", OK, True, 0.5),
        (f"<THINK>a</THINK><THINK>b</THINK>{TAP}", OK, True, 0.5),
        (f"{TAP}<THINK>late</THINK>", OK, True, 0.5),
        # Nothing is guessed.
        ("TAP", MALFORMED, False, 0.0),
        ("[TAP]", MALFORMED, False, 0.0),
        ("<ACTION>[TAP]</ACTION>", MALFORMED, False, 0.0),
        ("<ACTIONS>TAP</ACTIONS>", MALFORMED, False, 0.0),
        ("<ACTIONS></ACTIONS>", MALFORMED, False, 0.0),
        ("<ACTIONS>[FLAP]</ACTIONS>", MALFORMED, False, 0.0),
        ("<ACTIONS>[TAP], [TAP]</ACTIONS>", MALFORMED, False, 0.0),
        ("<ACTIONS>[TAP, TAP]</ACTIONS>", MALFORMED, False, 0.0),
        ("<ACTIONS>[TAP,]</ACTIONS>", MALFORMED, False, 0.0),
        ("<ACTIONS>['TAP\"]</ACTIONS>", MALFORMED, False, 0.0),
        ("<ACTIONS>[[TAP]]</ACTIONS>", MALFORMED, False, 0.0),
        ("</ACTIONS>[TAP]<ACTIONS>", MALFORMED, False, 0.0),
        # Nothing at all.
        ("", EMPTY, False, 0.0),
        (" \n\t ", EMPTY, False, 0.0),
        (None, EMPTY, False, 0.0),
        ([], EMPTY, False, 0.0),
        (17, EMPTY, False, 0.0),
        # Content parts.
        ([{"type": "text", "text": "<THINK>a</THINK>"}, {"type": "text", "text": TAP}], OK, True, 1.0),
        ([{"type": "image_url", "image_url": {"url": "x"}}], EMPTY, False, 0.0),
    ],
)
def test_a_reply_is_read_as_a_referee_would(text, status, tap, score):
    reply = read_reply(text)
    assert (reply.status, reply.actions, reply.format) == (status, (tap,), score)


@pytest.mark.parametrize(
    ("text", "status", "tap"),
    [
        ("I would like to", TRUNCATED, False),
        ("", TRUNCATED, False),
        ("<THINK>if I now", TRUNCATED, False),
        ("<THINK>a</THINK><ACTIONS>[TA", TRUNCATED, False),
        (f"<THINK>maybe {TAP} but", TRUNCATED, False),
        (f"<THINK>a</THINK>{TAP} and fur", OK, True),
        ("<THINK>a</THINK><ACTIONS>[TAP]", OK, True),
        ("<THINK>a</THINK><ACTIONS>[TAP]</ACT", OK, True),
        ("<THINK>a</THINK><ACTIONS>[FLAP]</ACTIONS> the", MALFORMED, False),
    ],
)
def test_a_reply_that_was_cut_off_counts_only_what_was_complete(text, status, tap):
    reply = read_reply(text, cut=True)
    assert (reply.status, reply.actions) == (status, (tap,))


def test_D05_reasoning_in_a_field_of_its_own_counts_as_think():
    assert read_reply(TAP, "go up") == (OK, (True,), "go up", 1.0, 0)
    assert read_reply(f"because</think>{TAP}") == (OK, (True,), "because", 1.0, 0)
    only = read_reply(None, "go up")
    assert (only.status, only.thought) == (EMPTY, "go up")
    assert read_reply(f"<THINK>now</THINK>{TAP}", "before").thought == "before\nnow"


@pytest.mark.parametrize(
    ("block", "taps", "ignored"),
    [
        ("[]", (False, False, False), 0),
        ("[TAP]", (True, False, False), 0),
        ("[NOOP, tap, 'NOOP']", (False, True, False), 0),
        ("[NOOP, NOOP, NOOP, TAP, TAP]", (False, False, False), 2),
    ],
)
def test_a_plan_is_filled_up_with_no_op_and_what_is_too_much_is_counted(block, taps, ignored):
    reply = read_reply(f"<THINK>a</THINK><ACTIONS>{block}</ACTIONS>", ticks=3)
    assert (reply.status, reply.actions, reply.ignored) == (OK, taps, ignored)


def test_real_replies_of_small_models_get_the_status_that_a_careful_person_gives():
    lines = (GOLDEN / "replies.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) > 80
    for line in lines:
        expected = json.loads(line)
        reply = read_reply(expected["reply"], cut=expected["finish_reason"] == "length")
        assert (reply.status.value, reply.actions, reply.format) == (
            expected["status"],
            (expected["tap"],),
            expected["format"],
        ), line


pieces = st.sampled_from(
    [
        "<THINK>",
        "</THINK>",
        "<think>",
        "<ACTIONS>",
        "</ACTIONS>",
        "</actions>",
        "[TAP]",
        "[]",
        "[NOOP, TAP]",
        "TAP",
        "[",
        "]",
        "```",
    ]
    + [" ", "\n", "<", ">", "/", "é", "\ud800", "\u202e", "\x00", "<FLAPPY id=3>", "NaN", "'", '"', ","]
)


replies = st.lists(st.one_of(pieces, st.text(max_size=8)), max_size=40).map("".join)


@given(replies, st.one_of(st.none(), replies), st.booleans(), st.integers(1, 4))
def test_any_reply_has_one_status_and_only_a_legal_one_acts(text, reasoning, cut, ticks):
    reply = read_reply(text, reasoning, cut=cut, ticks=ticks)
    assert len(reply.actions) == ticks
    assert (reply.format > 0) == (reply.status is OK)
    assert reply.format in (0.0, 0.5, 1.0)
    if reply.status is not OK:
        assert not any(reply.actions)
    if not text.strip():
        assert reply.status is (TRUNCATED if cut else EMPTY)
    if reply.status is TRUNCATED:
        assert cut
    assert reply == read_reply([{"type": "text", "text": text}], reasoning, cut=cut, ticks=ticks)


@given(replies)
def test_a_tap_is_never_read_where_no_complete_list_in_a_block_says_so(text):
    if read_reply(text).actions[0]:
        assert re.search(r"(?i)<\s*actions\s*>[\s`a-z]*\[\s*['\"]?tap['\"]?\s*\]", text)


@given(replies)
def test_what_comes_before_a_complete_reply_never_changes_its_action(text):
    for tap in (True, False):
        reply = read_reply(f"{text}</THINK>{TAP if tap else NOOP}")
        assert (reply.status, reply.actions) == (OK, (tap,))


@pytest.mark.parametrize("piece", ["<", "< ", "<think>", "<actions>[TAP", TAP, "[TAP],", "a", "\n", "</think>", f"<think>{TAP}"])
def test_a_reply_of_a_megabyte_is_read_like_any_other(piece):
    reply = read_reply(piece * (1_000_000 // len(piece)) + f"</think>{TAP}")
    assert (reply.status, reply.actions) == (OK, (True,))
