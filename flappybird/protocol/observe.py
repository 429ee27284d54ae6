"""What a player reads of a rollout: the card's block, and the variants of it that `Rules.observation` names.

`card` is the environment card's text. `signed` adds the distances to the edges of the next gap. `ascii` draws the world in
characters in place of the list of pipes. `image` leaves the world to a picture (see `pictures`) and keeps the tick;
`text+image` is the card's text with the picture. Where several ticks pass between two observations, all of them show what
happened in between.
"""

from __future__ import annotations

from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Physics, gap_height
from flappybird.world.game import State
from flappybird.world.observation import Observation
from flappybird.world.units import UNITS, signed_text, to_text, to_units

LARGEST_MAP = (60, 40)
"""The most columns and rows of an `ascii` map."""

SIZE = (288, 264)
"""Width and height of the picture in pixels: 12 a world unit at the card's world."""


def has_picture(rules: Rules) -> bool:
    """Whether observations hold a picture."""
    return rules.observation in ("image", "text+image")


def observe(seen: Observation, rules: Rules, config: FlappyConfig, states: list[State]) -> str:
    """Return what a model reads of a tick.

    Args:
        seen: what there is to see.
        rules: which form of it the model gets.
        config: the world.
        states: every state since the last observation, the first and the last included.
    """
    lines = []
    if rules.trail:
        lines.append(trail(states, Physics.of(config)))
    if rules.observation in ("card", "signed", "text+image"):
        if rules.observation == "signed":
            lines.insert(0, next_gap(seen, Physics.of(config)))
        block = str(seen)
        return block.replace("</OBS>", "\n".join([*lines, "</OBS>"])) if lines else block
    if rules.observation == "ascii":
        state = [f"birdY:{to_text(seen.y)}", f"velY:{to_text(seen.velocity)}", f"score:{seen.score}"]
        lines = [*state, *lines, *world_map(seen, config)]
    return "\n".join([f"<FLAPPY id={seen.tick}>", "<OBS>", *lines, "</OBS>", "</FLAPPY>"])


def card(seen: Observation, physics: Physics, states: list[State] | None = None) -> str:
    """Return the card's block, with the trail of `states` where several ticks can pass between two observations."""
    block = str(seen)
    return block if states is None else block.replace("</OBS>", f"{trail(states, physics)}\n</OBS>")


def next_gap(seen: Observation, physics: Physics) -> str:
    """Return the line of signed distances from the bird's edges to those of the next pipe that is not passed.

    `left` and `right` are the pipe's sides; left < 0 < right while the pipe is in the bird's x range. `top` and `bottom`
    are its gap's edges; the bird is inside the gap while bottom ≤ 0 ≤ top. Empty where no such pipe is on screen.
    """
    for x, gap_y in seen.pipes:
        # In half units, so that half a width is whole.
        left = 2 * (x - seen.x - seen.radius) - physics.width
        right = 2 * (x - seen.x + seen.radius) + physics.width
        if not physics.passed(x):
            top = 2 * (gap_y - seen.y - seen.radius) + seen.gap_height
            bottom = 2 * (gap_y - seen.y + seen.radius) - seen.gap_height
            edges = {"left": left, "right": right, "top": top, "bottom": bottom}
            return f"nextGap:[{','.join(f'{name}:{signed_text(halves)}' for name, halves in edges.items())}]"
    return "nextGap:[]"


def trail(states: list[State], physics: Physics) -> str:
    """Return the line that lists (tick, what was done in it, y and velocity after it) of the ticks since the last observation."""
    # Without a TAP a velocity always falls, so it is the jump impulse after a TAP and only then.
    ticks = (
        f"({tick},{'TAP' if velocity == physics.jump else 'NOOP'},{to_text(y)},{to_text(velocity)})"
        for tick, y, velocity in states[1:]
    )
    return f"trail:[{','.join(ticks)}]"


def map_size(config: FlappyConfig) -> tuple[int, int]:
    """Return columns and rows of the `ascii` map of a world: a cell is one world unit, larger where the world is large."""
    width, height = -(-to_units(config.world_w) // UNITS), -(-to_units(config.world_h) // UNITS)
    return min(width, LARGEST_MAP[0]), min(height, LARGEST_MAP[1])


def world_map(seen: Observation, config: FlappyConfig) -> list[str]:
    """Return the world in characters, ceiling first: `@` the bird, `#` a cell whose centre a pipe covers, `.` the air."""
    columns, rows = map_size(config)
    world_w, world_h, width = to_units(config.world_w), to_units(config.world_h), to_units(config.pipe_width)
    pipes = [(x, gap_y, height) for (x, gap_y), height in zip(seen.pipes, pipe_heights(seen, config), strict=True)]
    cells = []
    for row in range(rows):
        # Centres of cells, in units times twice the number of rows or columns.
        y = (rows - 2 * row - 1) * world_h
        line = ""
        for column in range(columns):
            x = (2 * column + 1) * world_w
            solid = any(
                abs(x - 2 * columns * pipe_x) <= columns * width and abs(y - 2 * rows * gap_y) > rows * height
                for pipe_x, gap_y, height in pipes
            )
            line += "#" if solid else "."
        cells.append(line)
    row = min(max((world_h - 2 * seen.y) * rows // (2 * world_h), 0), rows - 1)
    column = min(seen.x * columns // world_w, columns - 1)
    cells[row] = cells[row][:column] + "@" + cells[row][column + 1 :]
    return cells


def pipe_heights(seen: Observation, config: FlappyConfig) -> list[int]:
    """Return the gap height (units) of every pipe on screen, from the left."""
    physics = Physics.of(config)
    passed = sum(physics.passed(x) for x, _ in seen.pipes)
    return [gap_height(config, seen.score - passed + index) for index in range(len(seen.pipes))]
