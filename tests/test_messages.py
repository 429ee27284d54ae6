"""An observation as message content."""

from __future__ import annotations

import struct
import sys

import pytest

from flappybird import messages
from flappybird.episodes.rollout import Rollout
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig

TAP, NOOP = "<THINK>x</THINK><ACTIONS>[TAP]</ACTIONS>", "<THINK>x</THINK><ACTIONS>[]</ACTIONS>"


def test_a_picture_is_a_small_png_beside_the_text():
    pytest.importorskip("render.scene", reason="the renderer")
    rollout = Rollout(FlappyConfig(), 7, Rules(observation="text+image"))
    text, picture = messages.content(rollout)
    assert text["text"] == rollout.message()
    url = picture["image_url"]["url"]
    assert url.startswith("data:image/png;base64,")
    data = messages.png(rollout)
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == messages.SIZE
    assert len(data) < 20_000
    before = rollout.game.state
    rollout.take(TAP)
    assert messages.png(rollout) != data
    assert before.tick == 0


def test_without_the_renderer_one_line_says_what_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "render", None)
    monkeypatch.setitem(sys.modules, "render.scene", None)
    with pytest.raises(ImportError, match=r"the extra \[render\] brings it") as refused:
        messages.require_renderer(Rules(observation="image"))
    assert "\n" not in str(refused.value)
    messages.require_renderer(Rules())
