"""pygame, loaded quietly: the only door to it.

Drawing needs neither a display nor sound, so `pygame.init` is never called (it would open both, and install signal handlers);
fonts start when text is first drawn and the display when a window is opened. `pygame.quit` is never called either: it
would take the fonts of others in the process with it.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator
from typing import Any

from flappybird.errors import FlappyError
from flappybird.system.install import missing

NO_DISPLAY = "no display to open a window on; write a file instead: -o episode.mp4 (or .gif, .png)"


def _load() -> Any:
    # pygame greets on stdout as it is imported, which would spoil output that a program reads. The wish for
    # silence is set for just as long, so that the caller's environment stays as it was.
    asked = os.environ.get("PYGAME_HIDE_SUPPORT_PROMPT")
    os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = "1"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pygame
            import pygame.freetype
    except ImportError:
        raise missing("pictures need pygame", "render") from None
    finally:
        if asked is None:
            del os.environ["PYGAME_HIDE_SUPPORT_PROMPT"]
        else:
            os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = asked
    return pygame


pygame = _load()
freetype = pygame.freetype


def letter(event: Any) -> str:
    """Return the letter that a key stands for: the one it types, and on layouts without Latin letters the one at its place.

    Empty for any other key.
    """
    if pygame.K_a <= event.key <= pygame.K_z:
        return chr(event.key)
    place = getattr(event, "scancode", 0) - pygame.KSCAN_A
    return chr(ord("a") + place) if event.key > 127 and 0 <= place < 26 else ""


class Window:
    """The one window of a program, without sound. A context manager: the window is gone when the block ends.

    Args:
        size, title: of the window; size in pixels.
        hint: what to do where there is no display.
        repeat: whether a key that is held down is pressed again and again.

    Raises:
        FlappyError: there is no display; the message is `hint`.
    """

    def __init__(self, size: tuple[int, int], title: str, hint: str = NO_DISPLAY, repeat: bool = True) -> None:
        self._size = size
        with _drivers(hint):
            try:
                pygame.display.init()
                pygame.display.set_mode(size, pygame.RESIZABLE)
            except pygame.error as error:
                pygame.display.quit()
                raise FlappyError(f"{hint} ({error})") from None
        # SDL hands Ctrl-C and SIGTERM on as a QUIT event: both end the window's loop, which saves and leaves.
        pygame.display.set_caption(title)
        if repeat:
            pygame.key.set_repeat(300, 30)

    def __enter__(self) -> Window:
        return self

    def __exit__(self, *_: object) -> None:
        pygame.display.quit()

    def title(self, title: str) -> None:
        """Set the window's title."""
        pygame.display.set_caption(title)

    def size(self) -> tuple[int, int]:
        """Return width and height as they are now, in pixels."""
        size: tuple[int, int] = pygame.display.get_surface().get_size()
        return size

    def toggle_full_screen(self) -> None:
        """Fill the screen, or go back into a window."""
        full = bool(pygame.display.get_surface().get_flags() & pygame.FULLSCREEN)
        if not full:
            self._size = self.size()
        try:
            pygame.display.set_mode(self._size if full else (0, 0), pygame.RESIZABLE if full else pygame.FULLSCREEN)
        except pygame.error:  # this display cannot: the window stays
            pygame.display.set_mode(self._size, pygame.RESIZABLE)

    def show(self, picture: Any) -> None:
        """Show the surface `picture`, fitted into the window with its aspect kept."""
        screen = pygame.display.get_surface()
        (width, height), (room_x, room_y) = picture.get_size(), screen.get_size()
        scale = min(room_x / width, room_y / height)
        if scale != 1.0:
            screen.fill((0, 0, 0))
            picture = pygame.transform.smoothscale(picture, (max(int(width * scale), 1), max(int(height * scale), 1)))
        screen.blit(picture, ((room_x - picture.get_width()) // 2, (room_y - picture.get_height()) // 2))
        pygame.display.flip()

    def to_picture(self, at: tuple[int, int], size: tuple[int, int]) -> tuple[int, int]:
        """Return which pixel of a picture of `size` lies at `at` in the window."""
        room_x, room_y = pygame.display.get_surface().get_size()
        scale = min(room_x / size[0], room_y / size[1])
        left, top = (room_x - size[0] * scale) / 2, (room_y - size[1] * scale) / 2
        return int((at[0] - left) / scale), int((at[1] - top) / scale)


@contextlib.contextmanager
def _drivers(hint: str) -> Iterator[None]:
    """Let SDL open a window only where somebody sees it: where a display cannot be had it takes, else, one in memory, and waits.

    Raises:
        FlappyError: nothing in the environment names a display.
    """
    asked = "SDL_VIDEODRIVER"
    if os.environ.get(asked) or os.name != "posix" or os.uname().sysname == "Darwin":
        yield
        return
    drivers = ["x11"] if os.environ.get("DISPLAY") else []
    socket = os.path.join(os.environ.get("XDG_RUNTIME_DIR", ""), os.environ.get("WAYLAND_DISPLAY", ""))
    if os.environ.get("WAYLAND_DISPLAY") and os.path.exists(socket):  # its library complains on stderr where there is none
        drivers.append("wayland")
    if not drivers:
        raise FlappyError(hint)
    os.environ[asked] = ",".join(drivers)
    try:
        yield
    finally:
        del os.environ[asked]
