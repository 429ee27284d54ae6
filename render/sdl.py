"""pygame, loaded quietly: the only door to it.

Drawing needs neither a display nor sound, so `pygame.init` is never called (it would open both, and install signal handlers);
fonts start when text is first drawn and the display when a window is opened. `pygame.quit` is never called either: it
would take the fonts of others in the process with it.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

from flappybird.errors import FlappyError, MissingPart

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
        raise MissingPart(
            "pygame is not installed, and pictures need it: install the extra [render], such as by uv sync --extra render"
        ) from None
    finally:
        if asked is None:
            del os.environ["PYGAME_HIDE_SUPPORT_PROMPT"]
        else:
            os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = asked
    return pygame


pygame = _load()
freetype = pygame.freetype


class Window:
    """The one window of a program, without sound. A context manager: the window is gone when the block ends.

    Raises:
        FlappyError: there is no display; the message is `hint`.
    """

    def __init__(self, size: tuple[int, int], title: str, hint: str = NO_DISPLAY) -> None:
        dummy = os.environ.get("SDL_VIDEODRIVER") in ("dummy", "offscreen")  # asked for by name, as tests do
        on_x = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        if not dummy and not on_x and os.name == "posix" and os.uname().sysname != "Darwin":
            raise FlappyError(hint)
        try:
            pygame.display.init()
            self.screen = pygame.display.set_mode(size, pygame.RESIZABLE)
        except pygame.error as error:
            pygame.display.quit()
            raise FlappyError(f"{hint} ({error})") from None
        # SDL hands Ctrl-C and SIGTERM on as a QUIT event: both end the window's loop, which saves and leaves.
        pygame.display.set_caption(title)
        pygame.key.set_repeat(300, 30)

    def __enter__(self) -> Window:
        return self

    def __exit__(self, *_: object) -> None:
        pygame.display.quit()

    def title(self, title: str) -> None:
        """Set the window's title."""
        pygame.display.set_caption(title)

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
