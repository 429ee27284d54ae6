from collections.abc import Sequence
from pathlib import Path

import pytest

from flappybird.errors import FlappyError
from render.frames import TICKS_PER_SECOND, Track
from render.moment import Overlay
from render.sdl import pygame
from render.viewer import SPEEDS, STRIP, Deck, view
from tests.samples import flown


def test_a_deck_plays_to_the_end_and_stops_there() -> None:
    deck = Deck(60)
    deck.pass_time(1.0)
    assert deck.tick == TICKS_PER_SECOND
    deck.pass_time(5.0)
    assert (deck.tick, deck.playing) == (60, False)
    deck.toggle()
    assert (deck.tick, deck.playing) == (0, True)


def test_a_deck_steps_both_ways_and_stays_inside() -> None:
    deck = Deck(3)
    deck.step(1)
    assert (deck.tick, deck.playing) == (1, False)
    deck.step(10)
    assert deck.tick == 3
    deck.step(-1)
    deck.step(-10)
    assert deck.tick == 0


def test_speeds_go_up_and_down_one_by_one() -> None:
    deck = Deck(100)
    deck.faster(1)
    assert deck.speed == 2.0
    for _ in range(20):
        deck.faster(-1)
    assert deck.speed == SPEEDS[0]
    deck.pass_time(1.0)
    assert deck.at == TICKS_PER_SECOND * SPEEDS[0]


def test_an_episode_is_watched_by_keys_and_mouse(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.chdir(tmp_path)
    size, titles, recorded = (320, 240), [], []

    def key(which: int) -> object:
        return pygame.event.Event(pygame.KEYDOWN, key=which, mod=0)

    def click(x: int, y: int) -> object:
        return pygame.event.Event(pygame.MOUSEBUTTONDOWN, button=1, pos=(x, y))

    width = size[0] - 2 * STRIP - 150
    steps = [
        key(pygame.K_SPACE),
        key(pygame.K_HOME),
        key(pygame.K_RIGHT),
        key(pygame.K_RIGHT),
        key(pygame.K_LEFT),
        key(pygame.K_END),
        click(STRIP + width // 2, size[1] + STRIP // 2),
        pygame.event.Event(pygame.MOUSEMOTION, buttons=(1, 0, 0), pos=(STRIP, size[1] + STRIP // 2), rel=(0, 0)),
        key(pygame.K_PLUS),
        key(pygame.K_r),
        key(pygame.K_t),
        key(pygame.K_r),
        key(pygame.K_ESCAPE),
    ]
    waiting = iter(steps)
    monkeypatch.setattr(pygame.event, "get", lambda: [next(waiting)])
    monkeypatch.setattr(pygame.display, "set_caption", titles.append)

    def record(track: Track, ticks: Sequence[int], fps: int, overlay: Overlay, path: Path) -> None:
        recorded.append((list(ticks), overlay.thought, path.name))

    track = Track(flown("planner", 3, 60))
    view(track, size, record=record)
    ticks = [int(title.split("tick ")[1].split("/")[0]) for title in titles[1:]]
    assert ticks[1:8] == [0, 1, 2, 1, 60, 30, 0]
    assert all("planner - seed 3" in title for title in titles)
    assert "2x" in titles[-1]
    assert recorded == [([0, 0], False, "clip-seed3-tick0-0.mp4")]
    assert "saved clip-seed3-tick0-0.mp4" in titles[-1]


def test_without_a_display_the_hint_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(FlappyError, match=r"-o episode\.mp4"):
        view(Track(flown("noop")), (320, 240))
