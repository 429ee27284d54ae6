"""What is drawn once and then only moved: birds, pipes, grass, clouds and hills, figures.

The shapes are those of the report's player too: a bird is the circle that collides, with an outline around it and nothing beyond;
a pipe is as wide as what collides.
"""

from __future__ import annotations

from typing import Any

from render.colors import (
    BEAK,
    BELLY,
    BODY,
    CLOUD,
    GHOSTS,
    GRASS,
    GRASS_EDGE,
    HILLS,
    INK,
    PIPE,
    PIPE_EDGE,
    WHITE,
    WING,
    Color,
    mix,
)
from render.lettering import write
from render.sdl import pygame

GHOSTLY = 165
"""How solid a ghost is, of 255."""


def outline(radius: int) -> tuple[int, int]:
    """Return how wide a bird's outline is (pixels): the dark line, and the white one around it.

    Around a small bird they are what is seen of it.
    """
    return max(round(radius / 7), 1), max(round(radius / 8), 2 if radius >= 4 else 1)


def reach(radius: int) -> int:
    """Return the radius (pixels) of a bird with its outline."""
    return radius + sum(outline(radius))


def bird(radius: int, tilt: float, wing: int, plumage: int = 0) -> Any:
    """Return a bird, square: a circle of `radius` pixels, and its outline, dark and then white.

    Args:
        radius: of what collides, in pixels.
        tilt: degrees, up is positive.
        wing: 0 down, 1 level, 2 up.
        plumage: 0 for a bird of flesh, n for the n-th ghost's colour.
    """
    body = GHOSTS[plumage - 1] if plumage else BODY
    belly = mix(body, WHITE, 0.45) if plumage else BELLY
    many = 8 if radius < 40 else 3
    edge, halo = outline(radius)
    side = 2 * (radius + edge + halo + 1)
    big = pygame.Surface((side * many, side * many), pygame.SRCALPHA)
    big.fill((*WHITE, 0))
    middle, unit = side * many / 2, radius * many
    thin = max(many * edge / 3, 0.05 * unit) / unit

    def oval(color: Color, x: float, y: float, wide: float, high: float, rim: float = 0.0) -> None:
        if rim:
            oval(INK, x, y, wide + rim, high + rim)
        box = (middle + (x - wide) * unit, middle - (y + high) * unit, 2 * wide * unit, 2 * high * unit)
        pygame.draw.ellipse(big, color, box)

    around = 1 + (edge + halo) / radius
    oval(WHITE, 0, 0, around, around)
    oval(body, 0, 0, 1, 1, edge / radius)
    if radius >= 7:
        oval(belly, -0.08, -0.48, 0.64, 0.38)
        oval(BEAK, 0.66, -0.14, 0.32, 0.2, thin)
        oval(WHITE, 0.34, 0.4, 0.33, 0.33, thin)
        oval(INK, 0.46, 0.4, 0.15, 0.17)
        oval(WING, -0.46, (-0.3, 0.0, 0.24)[wing], 0.4, (0.3, 0.2, 0.27)[wing], thin)
    else:  # a few pixels: only what can be told apart
        oval(BEAK, 0.72, -0.12, 0.3, 0.34)
        oval(INK, 0.34, 0.4, 0.24, 0.24)
        oval(WING, -0.5, (-0.34, 0.0, 0.3)[wing], 0.38, 0.24)
    turned = pygame.transform.rotate(big, tilt)
    cut = pygame.Rect(0, 0, side * many, side * many)
    cut.center = turned.get_rect().center
    sprite = pygame.transform.smoothscale(turned.subsurface(cut), (side, side))
    if plumage:
        sprite.set_alpha(GHOSTLY)
    return sprite


def tube(width: int, height: int, canvas: Any, framed: bool = False) -> Any:
    """Return a piece of a pipe for `canvas`, its edges dark; with `framed`, those above and below too, as of a pipe's lip."""
    piece = pygame.Surface((width, height), 0, canvas)
    edge = max(width // 24, 1)
    start = 0
    for share, color in PIPE:
        stop = round(share * width)
        piece.fill(color, (start, 0, stop - start, height))
        start = stop
    for rect in ((0, 0, edge, height), (width - edge, 0, edge, height)):
        piece.fill(PIPE_EDGE, rect)
    if framed:
        for rect in ((0, 0, width, edge), (0, height - edge, width, edge)):
            piece.fill(PIPE_EDGE, rect)
    return piece


def pipe(width: int, height: int, canvas: Any) -> tuple[Any, Any]:
    """Return a pipe's body, `height` pixels high, and its lip, `width` pixels wide."""
    inset = max(width // 16, 1) if width > 6 else 0
    return tube(width - 2 * inset, height, canvas), tube(width, max(width * 2 // 5, 2), canvas, framed=True)


def turf(width: int, height: int, stripe: int, canvas: Any) -> Any:
    """Return grass of `width` pixels and one stripe more, so that it can slip left under the world."""
    grass = pygame.Surface((width + stripe, height), 0, canvas)
    grass.fill(GRASS[0])
    half = stripe // 2
    for x in range(-stripe, grass.get_width() + stripe, stripe):
        pygame.draw.polygon(grass, GRASS[1], ((x + half, 0), (x + 2 * half, 0), (x + half, height - 1), (x, height - 1)))
    grass.fill(GRASS_EDGE, (0, 0, grass.get_width(), max(height // 6, 1)))
    return grass


def scenery(width: int, height: int) -> Any:
    """Return clouds and hills, drawn at three times their size and shrunk so that their edges are smooth."""
    many = 3
    big = pygame.Surface((width * many, height * many), pygame.SRCALPHA)
    big.fill((*HILLS[0], 0))
    unit = height * many / 20

    def blob(color: Color, x: float, y: float, wide: float, high: float) -> None:
        pygame.draw.ellipse(big, color, (x - wide, y - high, 2 * wide, 2 * high))

    for at, low, reach in ((0.04, 17.6, 4.2), (0.3, 18.2, 5.0), (0.62, 17.4, 4.6), (0.93, 18.0, 5.4)):
        blob(HILLS[0], at * width * many, (low + reach / 2) * unit, reach * 1.6 * unit, reach * unit)
    for at, reach in ((0.16, 3.4), (0.46, 2.6), (0.78, 3.2), (1.02, 2.4)):
        blob(HILLS[1], at * width * many, 20.4 * unit, reach * 1.9 * unit, reach * unit)
    for at, y, wide in ((0.13, 5.2, 2.6), (0.44, 9.4, 2.0), (0.66, 3.6, 3.0), (0.9, 8.0, 2.2)):
        for shift, share in ((-0.62, 0.55), (-0.1, 0.85), (0.5, 0.62)):
            across = share * wide * unit
            blob(CLOUD, at * width * many + shift * wide * unit, y * unit - 0.2 * across, 0.62 * across, 0.48 * across)
        rect = pygame.Rect(0, 0, wide * 2.2 * unit, wide * 0.42 * unit)
        rect.center = round(at * width * many), round(y * unit)
        pygame.draw.rect(big, CLOUD, rect, border_radius=rect.height // 2)
    return pygame.transform.smoothscale(big, (width, height))


def figure(digit: str, size: int) -> Any:
    """Return a digit of the score: white letters of `size` pixels with a dark edge."""
    edge = max(size // 14, 1)
    dark, light = write(digit, size, INK), write(digit, size, WHITE)
    sprite = pygame.Surface((light.get_width() + edge, light.get_height() + 2 * edge), pygame.SRCALPHA)
    for dx in (0, edge, 2 * edge):
        for dy in (0, edge, 2 * edge):
            sprite.blit(dark, (dx - edge // 2, dy))
    sprite.blit(light, (edge - edge // 2, edge))
    return sprite
