"""Fonts: the one that ships with pygame, and those of the system for what it lacks.

None is looked for before a text needs it. What is written in Latin letters looks the same on every machine.
"""

from __future__ import annotations

import unicodedata
import warnings
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from render.sdl import freetype, pygame

BOX, EMOJI = -2, -1
"""Instead of a font's number: no font has the character; it is a picture in colour."""

FAMILIES = (
    *("notosanscjksc", "notosanscjkjp", "notosanscjktc", "notosanscjkkr", "sourcehansanssc", "sourcehansansjp"),
    *("wenquanyizenhei", "wenquanyimicrohei", "droidsansfallback", "ipaexgothic", "ipagothic", "takaogothic", "vlgothic"),
    *("microsoftyahei", "simsun", "yugothic", "meiryo", "msgothic", "malgungothic"),
    *("pingfangsc", "pingfang", "hiraginosansgb", "hiraginosans", "applesdgothicneo", "arialunicodems"),
    *("dejavusans", "notosans", "freesans", "unifont", "segoeuisymbol", "segoeuiemoji", "applesymbols", "symbola", "notoemoji"),
)
"""Families that are tried in turn, as pygame spells them."""

COLOURED = ("notocoloremoji", "applecoloremoji")
"""Emoji as pictures, which FreeType alone does not draw."""

_ABSENT = "\ufffe"  # a code point that no font has: what it looks like is what a missing glyph looks like


@cache
def loaded() -> list[Any]:
    """Return the fonts in use so far, pygame's own first."""
    # FreeType, not pygame.font: its fonts outlive a pygame.quit() of somebody else in the process, and one serves all sizes.
    if not freetype.was_init():
        freetype.init()
    return [_load(str(Path(pygame.__file__).with_name(freetype.get_default_font())))]


def _load(path: str) -> Any:
    font = freetype.Font(path)
    font.origin = True  # positions are those of the baseline
    return font


@lru_cache(maxsize=4096)
def source(character: str) -> int:
    """Return the number of the font that has `character`, or `EMOJI`, or `BOX`."""
    found = loaded()
    if _has(found[0], character):
        return 0
    if unicodedata.category(character) == "So" and emoji(character) is not None:
        return EMOJI
    for number, font in enumerate(found):
        if _has(font, character):
            return number
    waiting = _waiting()
    while waiting:  # each is loaded once, and stays
        path = _path(waiting.pop(0))
        if path is None:
            continue
        try:
            found.append(_load(path))
            if _has(found[-1], character):
                return len(found) - 1
        except (pygame.error, OSError):  # a font that FreeType cannot size, or cannot read
            found.pop()
    return BOX


@cache
def _waiting() -> list[str]:
    return list(FAMILIES)


def _has(font: Any, character: str) -> bool:
    # What a font lacks has no metrics, or those of a code point that no font has.
    found, absent = font.get_metrics(f"{character}{_ABSENT}", size=240)
    return found is not None and found != absent


@lru_cache(maxsize=512)
def emoji(character: str) -> Any:
    """Return a picture of `character` in colour, None where there is none."""
    shown, absent = _picture(character), _picture(_ABSENT)
    if shown is None or absent is None or shown.get_bounding_rect().width == 0:
        return None
    return None if pygame.image.tobytes(shown, "RGBA") == pygame.image.tobytes(absent, "RGBA") else shown


def _picture(character: str) -> Any:
    path = next(filter(None, map(_path, COLOURED)), None)
    if path is None:
        return None
    from pygame import font

    try:
        font.init()  # somebody's pygame.quit() may have ended it
        return font.Font(path, 109).render(character, True, (255, 255, 255)).convert_alpha(_like())
    except pygame.error:
        return None


@cache
def _like() -> Any:
    return pygame.Surface((1, 1), pygame.SRCALPHA)


@cache
def _path(family: str) -> str | None:
    """Return the file of a family of the system, None where it has none."""
    from pygame import font

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a system that cannot list its fonts has none
        try:
            found: str | None = font.match_font(family)
        except (OSError, pygame.error):
            return None
    return found
