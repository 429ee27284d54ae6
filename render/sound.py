"""Sounds of a game, made of sine waves and noise as they are asked for: there are no files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from flappybird.errors import FlappyError
from render.sdl import pygame

RATE = 22_050
"""Samples per second."""

Wave = npt.NDArray[np.float64]


def _tone(start: float, stop: float, seconds: float) -> Wave:
    """A tone that slides from one pitch (Hz) to another and fades."""
    share = np.linspace(0, 1, int(RATE * seconds))
    pitch = start + (stop - start) * share
    wave: Wave = np.sin(2 * np.pi * np.cumsum(pitch) / RATE) * (1 - share) ** 1.5
    return wave


def waves() -> dict[str, Wave]:
    """Return each sound by what it is heard for, -1 to 1, `RATE` samples per second."""
    hiss = np.random.default_rng(1).uniform(-1, 1, int(RATE * 0.3)) * np.linspace(1, 0, int(RATE * 0.3)) ** 3
    crash: Wave = 0.5 * hiss + 0.5 * _tone(220, 60, 0.3)
    return {
        "flap": 0.35 * _tone(320, 640, 0.09),
        "point": 0.4 * np.concatenate([_tone(880, 880, 0.08), _tone(1320, 1320, 0.2)]),
        "crash": 0.8 * crash,
    }


class Sounds:
    """The sounds, ready to be played.

    Raises:
        FlappyError: there is nothing to play them on.
    """

    def __init__(self) -> None:
        try:
            with _quiet():
                pygame.mixer.init(RATE, -16, 1, 512)
        except (pygame.error, NotImplementedError) as error:
            raise FlappyError(f"no sound: {error}") from None
        self._sounds: dict[str, Any] = {
            name: pygame.mixer.Sound(buffer=(wave * 32_000).astype(np.int16).tobytes()) for name, wave in waves().items()
        }

    def play(self, name: str) -> None:
        """Begin to play a sound."""
        self._sounds[name].play()

    def close(self) -> None:
        """Give the device back."""
        pygame.mixer.quit()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what the system's sound library has to say about devices that it does not find off the terminal."""
    try:
        kept = os.dup(2)
    except OSError:  # stderr is closed
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
