"""The colours of everything that is drawn: one palette for windows, videos and pictures."""

from __future__ import annotations

Color = tuple[int, int, int]
"""Red, green and blue, 0 to 255."""

SKY: tuple[Color, Color] = ((78, 168, 222), (202, 236, 240))
"""At the ceiling and at the floor."""
SKY_BANDS = 96
CLOUD: Color = (240, 249, 250)
HILLS: tuple[Color, Color] = ((150, 205, 196), (116, 186, 150))
ROOF: Color = (52, 84, 128)
GRASS: tuple[Color, Color] = ((126, 200, 80), (106, 178, 66))
GRASS_EDGE: Color = (74, 124, 50)
SOIL: tuple[Color, Color] = ((222, 206, 148), (204, 184, 124))
PIPE: tuple[tuple[float, Color], ...] = (
    (0.28, (172, 226, 100)),
    (0.74, (124, 186, 60)),
    (1.00, (94, 150, 42)),
)
"""Across a pipe from its left edge to its right: where each shade ends, as a share of the width. Few and flat,
because what is flat does not change as it moves, and what does not change takes no room in a video."""
PIPE_EDGE: Color = (48, 84, 28)
BODY: Color = (250, 200, 50)
BELLY: Color = (252, 228, 140)
WING: Color = (255, 244, 214)
BEAK: Color = (238, 108, 48)
INK: Color = (58, 44, 40)
WHITE: Color = (255, 255, 255)
GHOSTS: tuple[Color, ...] = ((86, 128, 240), (226, 92, 150), (150, 96, 220), (60, 160, 150))
"""Body colours of other birds on the same course."""
PAPER: Color = (24, 32, 48)
"""Ground of everything around the game."""
RULE: Color = (52, 66, 92)
SAID: Color = (232, 238, 246)
FAINT: Color = (148, 164, 190)
ALARM: Color = (228, 74, 62)
AMBER: Color = (244, 172, 54)

FLAT: tuple[Color, ...] = (
    *(SKY + HILLS + GRASS + SOIL),
    *(CLOUD, ROOF, GRASS_EDGE, PIPE_EDGE, *(color for _, color in PIPE)),
    *(BODY, BELLY, WING, BEAK, INK, WHITE, *GHOSTS),
    *(PAPER, RULE, SAID, FAINT, ALARM, AMBER),
)
"""All colours of flat areas, except those between the two of the sky: what a picture with few colours has to have."""


def mix(one: Color, other: Color, share: float) -> Color:
    """Return the colour that lies `share` of the way from `one` to `other`."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue
