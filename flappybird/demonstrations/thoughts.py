"""What a demonstration says before it acts, and whether what is said is so."""

from __future__ import annotations

import re

from flappybird.demonstrations.plan import Think
from flappybird.errors import show
from flappybird.players.policies import Choice
from flappybird.players.sight import Sight
from flappybird.world.game import State, move
from flappybird.world.units import from_text, to_text


def thought(think: Think, state: State, sight: Sight, choice: Choice, late: int = 0) -> str:
    """Return the thought of a demonstration.

    Args:
        think: how much is said.
        state: where the bird is when the action lands.
        sight: what is known of the pipes then.
        choice: what is done, and why.
        late: how many ticks after the observation the action lands.
    """
    if think == "none":
        return ""
    reason = f"{choice.why[0].upper()}{choice.why[1:]}: {'TAP' if choice.tap else 'no TAP'}."
    return reason if think == "short" else f"{arithmetic(state, sight, late)} {reason}"


def arithmetic(state: State, sight: Sight, late: int = 0) -> str:
    """Return both states that can follow, and the edges of the next gap."""
    physics, (tick, y, velocity) = sight.physics, state
    rises = move(y, velocity, True, physics.jump, physics.gravity)
    falls = move(y, velocity, False, physics.jump, physics.gravity)
    if sight.ahead:
        appeared, gap_y, height = sight.ahead[0]
        edges = f"{to_text(gap_y - height // 2)} to {to_text(gap_y + height // 2)}"
        gap = f"Next gap {edges}, pipe at x {to_text(physics.world_w - (tick - appeared) * physics.speed)}."
    else:
        gap = "No pipe ahead."
    lands = f"In {late} tick{'s' * (late > 1)}: " if late else ""
    return (
        f"{lands}birdY {to_text(y)}, velY {to_text(velocity)}. "
        f"TAP: velY {to_text(rises[1])}, birdY {to_text(rises[0])}. "
        f"No TAP: velY {to_text(falls[1])}, birdY {to_text(falls[0])}. {gap}"
    )


_NUMBERS = re.compile(
    r"(?:In (\d+) ticks?: )?birdY (\S+), velY (\S+)\. TAP: velY (\S+), birdY (\S+)\. No TAP: velY (\S+), birdY (\S+)\. "
    r"(?:No pipe ahead\.|Next gap (\S+) to (\S+), pipe at x (\S+)\.)"
)
_STATED = ("ticks", "birdY", "velY", "velY with TAP", "birdY with TAP", "velY without", "birdY without", "edge", "edge", "pipe")
"""What they are, in their order."""

_ENDS = re.compile(r": (TAP|no TAP)\.$")


def untrue(said: str, right: str, tap: bool) -> list[str]:
    """Return what a thought says that is not so.

    Args:
        said: the thought.
        right: what it should be.
        tap: the first action of its reply.
    """
    faults, stated, true = [], _NUMBERS.match(said), _NUMBERS.match(right)
    if stated and true:
        for name, a, b in zip(_STATED, true.groups(), stated.groups(), strict=True):
            if a != b:
                faults.append(f"{name} is {_units(a)}, the thought says {_units(b)}")
    ending = _ENDS.search(said)
    if ending and (ending[1] == "TAP") != tap:
        faults.append("the thought ends in another action than the reply")
    return faults if faults or said == right else [f"the thought is {show(said)}, not {show(right)}"]


def _units(text: str | None) -> str:
    try:
        return "None" if text is None else show(from_text(text))
    except ValueError:
        return show(text)
