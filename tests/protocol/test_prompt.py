"""The system prompt: what it states is true and can be read back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flappybird.protocol.prompt import read_config, read_ticks, system_prompt
from flappybird.protocol.reply import Status, read_reply
from flappybird.world.config import FlappyConfig
from flappybird.world.game import FlappyGame
from flappybird.world.units import from_text
from tests.conftest import ROOT
from tests.worlds import worlds

GOLDEN = ROOT / "tests" / "golden"


def test_the_prompt_is_the_one_that_was_agreed_on():
    assert system_prompt(FlappyConfig()) == (GOLDEN / "prompt.txt").read_text(encoding="utf-8").removesuffix("\n")


@given(worlds(), st.integers(1, 20))
def test_every_example_in_the_prompt_parses_and_obeys_the_physics(config, ticks):
    prompt = system_prompt(config, ticks)
    examples = re.findall(r"<THINK>(.*?)</THINK>\n(<ACTIONS>.*?</ACTIONS>)", prompt)
    assert len(examples) == 2
    for thought, actions in examples:
        reply = read_reply(f"<THINK>{thought}</THINK>\n{actions}", ticks=ticks)
        assert reply.status is Status.OK
        assert reply.format == 1.0
        game = FlappyGame(config)
        game.step(reply.actions[0])
        velocity, y = re.search(r"velY (?:.*?)becomes (\S+), birdY 0.00 becomes ([^:]+):", thought).groups()
        assert (from_text(y), from_text(velocity)) == (game.state.y, game.state.velocity)


@given(worlds(), st.integers(1, 20))
def test_the_rules_can_be_read_back_from_the_prompt(config, ticks):
    prompt = system_prompt(config, ticks)
    assert read_config(f"before\n{prompt}\nafter") == config
    assert read_ticks(prompt) == ticks


@pytest.mark.parametrize("prompt", ["", "You are helpful.", "Physics: ", "Physics: gravity=3.00", "Physics: zzzzzz=1"])
def test_a_prompt_without_rules_states_none(prompt):
    assert read_config(prompt) is None


@given(
    view=st.sampled_from(["card", "signed", "ascii", "image", "text+image"]),
    ticks=st.integers(1, 6),
    late=st.integers(0, 3),
    gravity=st.sampled_from([-0.3, -0.25, -0.1]),
)
def test_every_prompt_states_the_world_and_shows_replies_that_parse(view, ticks, late, gravity):
    config = FlappyConfig(gravity=gravity)
    prompt = system_prompt(config, ticks, observation=view, latency_ticks=late)
    assert read_config(prompt) == config
    assert read_ticks(prompt) == ticks
    examples = [line for line in prompt.splitlines() if line.startswith("<ACTIONS>")]
    assert len(examples) == 2
    assert all(read_reply(f"<THINK>x</THINK>{example}", ticks=ticks).format == 1.0 for example in examples)
    assert ("tick late" in prompt or "ticks late" in prompt) == (late > 0)
    assert ("trail" in prompt) == (ticks > 1)
