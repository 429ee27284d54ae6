"""The system prompt: the exact rules of a world for a model, and the world that a prompt states."""

from __future__ import annotations

import re

from flappybird.errors import ConfigError
from flappybird.protocol.rules import MAX_PLAN, Rules
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Physics
from flappybird.world.units import half_text, to_text, to_units


def prompt_of(config: FlappyConfig, rules: Rules) -> str:
    """Return the system prompt of a world played by `rules`."""
    return system_prompt(
        config,
        rules.ticks_per_turn,
        observation=rules.observation,
        latency_ticks=rules.latency_ticks,
        realtime=rules.realtime,
    )


def system_prompt(
    config: FlappyConfig,
    ticks_per_turn: int = 1,
    *,
    observation: str = "card",
    latency_ticks: int = 0,
    realtime: float = 0.0,
) -> str:
    """Return the rules of `config` for a model.

    Args:
        config: the world.
        ticks_per_turn: how many ticks each reply plans.
        observation: what the model sees, one of `rules.ObservationKind`.
        latency_ticks: how many ticks late an action lands.
        realtime: ticks that pass in each second that a reply takes; 0 where the game waits.
    """
    physics = Physics.of(config)
    jump, gravity = to_text(physics.jump), to_text(physics.gravity)
    top = half_text(to_units(config.world_h))
    every = "tick" if ticks_per_turn == 1 else f"{ticks_per_turn} ticks"
    if realtime:
        waits = f"the game does not wait: {realtime:g} ticks pass, without TAP, in each second until your reply is there"
    else:
        waits = "the game waits for your reply"
    if ticks_per_turn == 1:
        answer = "[TAP] flaps in the next tick, [] does nothing in it."
        example_tap, example_noop = "[TAP]", "[]"
    else:
        answer = (
            f"The list holds one action per tick, TAP or NOOP, for the next {ticks_per_turn} ticks in order; "
            "ticks that you leave out fly as NOOP, and [] is NOOP throughout."
        )
        example_tap, example_noop = f"[TAP, {', '.join(['NOOP'] * (ticks_per_turn - 1))}]", "[]"
    if latency_ticks:
        answer += f" Every action lands {latency_ticks} tick{'s' * (latency_ticks > 1)} late; until then earlier ones do."
    return (
        f"You fly the bird in Flappy Bird. You are asked once per {every}, and {waits}.\n"
        "\n"
        "Reply with exactly one THINK and one ACTIONS block:\n"
        f"<THINK>velY becomes {jump}, birdY 0.00 becomes {jump}: up, towards the gap</THINK>\n"
        f"<ACTIONS>{example_tap}</ACTIONS>\n"
        "or\n"
        f"<THINK>velY 0.00 becomes {gravity}, birdY 0.00 becomes {gravity}: still inside the gap</THINK>\n"
        f"<ACTIONS>{example_noop}</ACTIONS>\n"
        f"{answer} Keep THINK short.\n"
        "\n"
        "What happens in a tick, in this order:\n"
        f"1. TAP sets velY to {jump}; without TAP, {gravity} is added to velY (positive is up).\n"
        "2. velY is added to birdY.\n"
        f"3. Every pipe moves {to_text(physics.speed)} to the left; one that has left the screen is gone, "
        f"a new one may appear at x={to_text(physics.world_w)}.\n"
        f"4. You crash if birdY+birdRadius >= {top} or birdY-birdRadius <= -{top}. "
        f"While |x-birdX| < pipe_width/2+birdRadius = {half_text(physics.width + 2 * physics.radius)} for a pipe, you crash if "
        "birdY+birdRadius > gapY+gapHeight/2 or birdY-birdRadius < gapY-gapHeight/2 of that pipe.\n"
        "5. If you live, each pipe whose right edge has just gone left of birdX-birdRadius scores 1.\n"
        "\n"
        f"What you see: <FLAPPY id=K> is tick K. {_seen(config, observation, ticks_per_turn > 1 or realtime > 0)}\n"
        "\n"
        f"Physics: {' '.join(f'{name}={_value(value)}' for name, value in config)}"
    )


def _seen(config: FlappyConfig, observation: str, trail: bool) -> str:
    """Return what the system prompt says of an observation."""
    numbers = (
        "birdY and velY are now. gapHeight is that of the next pipe not yet passed. "
        "pipes lists (x,gapY) of every pipe on screen, left to right, passed ones too: x is the pipe's centre, "
        "gapY its gap's centre. "
        "score is the number of pipes passed. All numbers are exact."
    )
    top, width = half_text(to_units(config.world_h)), to_text(to_units(config.world_w))
    said = {
        "card": numbers,
        "signed": numbers
        + " nextGap gives signed distances from the bird's edges to the next pipe not yet passed, [] where none "
        "is on screen: left and right to its sides (left<0<right while it is in the bird's way), top and bottom to the edges of "
        "its gap (bottom<=0<=top while the bird is inside the gap).",
        "ascii": "birdY, velY and score (pipes passed) are now, and exact. Below them is the world in characters, from the "
        f"ceiling y={top} down to the floor y=-{top} and from x=0.00 at the left to x={width} at the right, in rows and columns "
        "of equal size: @ is the bird, # a pipe, . the air; a character tells what is at the centre of its cell.",
        "image": f"The picture shows the world, from the ceiling y={top} down to the floor y=-{top} and from x=0.00 at the left "
        f"to x={width} at the right, with the number of pipes passed.",
        "text+image": numbers + " The picture shows the same.",
    }[observation]
    if trail:
        said += " trail lists (tick,action,birdY,velY) of every tick since your last reply."
    return said


def _value(value: float | int) -> str:
    return str(value) if isinstance(value, int) else to_text(to_units(value))


def read_config(prompt: str) -> FlappyConfig | None:
    """Return the config that a system prompt states, None where it states none (or none that is legal)."""
    found = prompt.rfind("Physics: ")
    if found < 0:
        return None
    stated = dict(re.findall(r"([a-z_]{5,24})=(-?\d{1,9}(?:\.\d{1,4})?)", prompt[found : found + 1_000]))
    fields = {
        name: (float if "." in value else int)(value) for name, value in stated.items() if name in FlappyConfig.model_fields
    }
    try:
        return FlappyConfig(**fields) if fields else None
    except ConfigError:
        return None


def read_ticks(prompt: str) -> int:
    """Return how many ticks a system prompt asks a reply to plan, `MAX_PLAN` at the most."""
    found = re.search(r"for the next (\d{1,3}) ticks in order", prompt)
    return min(max(int(found[1]), 1), MAX_PLAN) if found else 1
