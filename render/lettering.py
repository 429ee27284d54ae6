"""Text on pictures: any string at all, in the font that ships with pygame and, for what that lacks, in those of the system.

Models write every script, emoji, control characters and halves of surrogate pairs. What no font has becomes a box that names the
code point, see `lacking`, and what has no picture (controls, direction marks) is left out; nothing raises.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Any

from render import fonts
from render.colors import Color
from render.fonts import BOX, EMOJI
from render.sdl import pygame

LONGEST = 4_000
"""Characters of a longer text that are looked at: more fit on no picture."""


def clean(text: str) -> str:
    """Return the start of `text` on one line, without what has no picture of its own."""
    kept = []
    for character in text[:LONGEST]:
        kind = unicodedata.category(character)
        if kind == "Cs":
            kept.append("\ufffd")
        elif character.isspace() or kind in ("Zl", "Zp"):
            kept.append(" ")
        elif kind not in ("Cc", "Cf", "Mn", "Me"):
            kept.append(character)
        elif kind in ("Mn", "Me") and kept:
            kept[-1] = unicodedata.normalize("NFC", kept[-1] + character)[0]
    return " ".join("".join(kept).split()) + ("…" if len(text) > LONGEST else "")


def wrap(text: str, size: int, width: int, lines: int) -> list[str]:
    """Return `text` in at most `lines` lines of at most `width` pixels, the last one cut with an ellipsis where it is longer."""
    words = clean(text).split(" ")
    found: list[str] = []
    line = ""
    while words:
        word = words.pop(0)
        longer = f"{line} {word}" if line else word
        if measure(longer, size) <= width:
            line = longer
            continue
        if line:
            found.append(line)
            words.insert(0, word)
            line = ""
        else:
            # A single word wider than the line is broken where the line ends; a line holds one character at least.
            fits = max(_fitting(word, size, width), 1)
            found.append(word[:fits])
            if word[fits:]:
                words.insert(0, word[fits:])
        if len(found) == lines and words:
            found[-1] = shorten(f"{found[-1]} {words[0]}…", size, width)
            return found
    return [*found, line][:lines] if line else found


def shorten(text: str, size: int, width: int) -> str:
    """Return `text` if it fits `width` pixels, else as much of it as does with an ellipsis."""
    text = _drawable(text)
    if measure(text, size) <= width:
        return text
    return text[: _fitting(text, size, width - measure("…", size))].rstrip(" …") + "…"


def _fitting(text: str, size: int, width: int) -> int:
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if measure(text[:middle], size) <= width:
            low = middle
        else:
            high = middle - 1
    return low


def measure(text: str, size: int) -> int:
    """Return how many pixels wide `text` is, in letters of `size` pixels."""
    return sum(_width(source, part, size) for source, part in _parts(text))


def _width(source: int, text: str, size: int) -> int:
    if source == BOX:
        return _box_width(size)
    if source == EMOJI:
        return line_height(size)
    return round(sum(map(_advances(source, size).__getitem__, text)))


class _Advances(dict[str, float]):
    """How far each letter moves the pen: asked of the font once."""

    def __init__(self, source: int, size: int) -> None:
        super().__init__()
        self._font, self._size = fonts.loaded()[source], size

    def __missing__(self, letter: str) -> float:
        if len(self) > 4096:
            self.clear()
        [metrics] = self._font.get_metrics(letter, size=self._size)
        self[letter] = metrics[4]
        return self[letter]


@lru_cache(maxsize=64)
def _advances(source: int, size: int) -> _Advances:
    return _Advances(source, size)


def line_height(size: int) -> int:
    """Return the height of a line of letters of `size` pixels."""
    return int(fonts.loaded()[0].get_sized_height(size))


@lru_cache(maxsize=2048)
def write(text: str, size: int, color: Color, ground: Color | None = None) -> Any:
    """Return a surface with `text` on it, on a clear ground or, quicker to draw, a plain one; the same one each time."""
    area = max(measure(text, size), 1), line_height(size)
    if ground is not None:
        plain = pygame.image.frombuffer(bytearray(ground * (area[0] * area[1])), area, "RGB")
        plain.blit(write(text, size, color), (0, 0))
        return plain
    surface = pygame.Surface(area, pygame.SRCALPHA)
    x, baseline = 0, fonts.loaded()[0].get_sized_ascender(size)
    for source, part in _parts(text):
        if source == BOX:
            _box(surface, x, part, size, color)
        elif source == EMOJI:
            picture, side = fonts.emoji(part), line_height(size)
            surface.blit(
                pygame.transform.smoothscale(picture, (side, side * picture.get_height() // picture.get_width())), (x, 0)
            )
        else:
            fonts.loaded()[source].render_to(surface, (x, baseline), part, color, size=size)
        x += _width(source, part, size)
    return surface


def _drawable(text: str) -> str:
    return text if text.isprintable() else clean(text)


def _parts(text: str) -> list[tuple[int, str]]:
    """Return `text` in pieces, each with the number of the font that has it; what is an emoji, or in no font, stands alone."""
    text = _drawable(text)
    if text.isascii():
        return [(0, text)]
    parts: list[tuple[int, str]] = []
    for character in text:
        source = fonts.source(character)
        if source == BOX:
            _lacking.add(character)
        if parts and source >= 0 and parts[-1][0] == source:
            parts[-1] = source, parts[-1][1] + character
        else:
            parts.append((source, character))
    return parts


_lacking: set[str] = set()


def lacking() -> str:
    """Return what was drawn as boxes so far, for people; nothing where all could be shown."""
    if not _lacking:
        return ""
    shown = " ".join(f"U+{ord(character):04X}" for character in sorted(_lacking)[:3])
    more = f" and {len(_lacking) - 3} more" if len(_lacking) > 3 else ""
    return f"no font here has {shown}{more}: boxes stand for them; install one, such as Noto Sans CJK or Noto Emoji"


def _box_width(size: int) -> int:
    return max(size * 7 // 8, 5)


def _box(surface: Any, x: int, character: str, size: int, color: Color) -> None:
    """Draw a box for a character that the font lacks; large enough, it holds the code point in hexadecimal."""
    height = line_height(size)
    frame = pygame.Rect(x, height // 10, _box_width(size) - 1, height * 8 // 10)
    pygame.draw.rect(surface, (*color, 190), frame, 1)
    if size >= 18:
        digits = f"{ord(character):04X}"
        half = len(digits) // 2
        for row, part in enumerate((digits[:half], digits[half:])):
            shown, _ = fonts.loaded()[0].render(part, color, size=size // 3)
            middle = frame.top + frame.height * (1 + 2 * row) // 4
            surface.blit(shown, (frame.centerx - shown.get_width() // 2, middle - shown.get_height() // 2))
