import asyncio
import os
import resource
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flappybird.episodes.episode import Episode, from_dict
from flappybird.errors import ConfigError
from flappybird.protocol.reply import Status
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course
from flappybird.world.game import FlappyGame, Outcome, Reason, State
from flappybird.world.units import UNITS, to_units
from render.frames import Track
from render.scene import BODY, GRASS, PAPER, PIPE, SKY, SOIL, Moment, Overlay, Scene, View, read_size
from render.sdl import pygame
from tests.samples import clean_environment, flown, replied

NOTHING = Overlay(*[False] * 6)


def near(one: object, other: object, by: int = 12) -> bool:
    return bool(np.abs(np.asarray(one, int) - np.asarray(other, int)).max() <= by)


@pytest.mark.parametrize("size", [(320, 240), (576, 480), (288, 512), (800, 480), (64, 64), (1920, 1080), (300, 500)])
def test_a_frame_is_an_owned_contiguous_array_of_the_size_asked_for(size: tuple[int, int], crash: Episode) -> None:
    track = Track(crash)
    frame = track.scene(size).draw(track.moment(120))
    assert frame.shape == (size[1], size[0], 3)
    assert frame.dtype == np.uint8
    assert frame.flags.c_contiguous
    assert frame.flags.owndata


def test_a_frame_that_was_handed_out_stays_as_it_is(crash: Episode) -> None:
    track = Track(crash)
    scene = track.scene()
    first = scene.draw(track.moment(40))
    kept = first.copy()
    scene.draw(track.moment(200))
    assert np.array_equal(first, kept)
    first[:] = 0
    assert np.array_equal(scene.draw(track.moment(40)), kept)


def test_rendering_leaves_the_game_unchanged() -> None:
    game = FlappyGame(seed=5)
    scene = Scene(game.course)
    for tick in range(40):
        before = game.state, game.score, str(game.observation()), game.outcome
        scene.draw(Moment(game.state, game.score))
        assert (game.state, game.score, str(game.observation()), game.outcome) == before
        if game.step(tap=tick % 9 == 0):
            break


def test_rendering_leaves_the_episode_unchanged(crash: Episode) -> None:
    before = crash.to_json()
    track = Track(crash)
    scene = track.scene()
    for tick in range(0, track.last, 7):
        scene.draw(track.moment(tick))
    assert crash.to_json() == before


@given(
    st.lists(st.integers(0, 253), min_size=1, max_size=8), st.sampled_from([(320, 240), (420, 240), (240, 420)]), st.booleans()
)
@settings(max_examples=25, deadline=None)
def test_a_picture_depends_on_its_moment_alone(ticks: list[int], size: tuple[int, int], ghost: bool) -> None:
    track, ghosts = Track(flown("heuristic")), [Track(flown("planner"))] if ghost else []
    used = track.scene(size, Overlay(hitbox=True), ghosts)
    for tick in ticks:
        last = used.draw(track.moment(tick, ghosts))
    fresh = track.scene(size, Overlay(hitbox=True), ghosts).draw(track.moment(ticks[-1], ghosts))
    assert np.array_equal(last, fresh)


@given(
    st.integers(32, 500),
    st.integers(32, 500),
    st.sampled_from([FlappyConfig(), FlappyConfig(world_w=60.0), FlappyConfig(world_h=60.0, pipe_width=3.0)]),
    st.booleans(),
)
@settings(deadline=None)
def test_the_world_keeps_its_aspect_and_stays_inside_the_picture(
    half_w: int, half_h: int, config: FlappyConfig, panel: bool
) -> None:
    size = 2 * half_w, 2 * half_h
    view = View.of(config, size, panel)
    assert abs((view.x(10 * UNITS) - view.x(0)) - (view.y(0) - view.y(10 * UNITS))) <= 1
    left, top, width, height = view.game
    assert left >= 0
    assert top >= 0
    assert left + width <= size[0] + 1
    assert top + height <= size[1] + 1
    half = to_units(config.world_h) // 2
    assert top <= view.y(half) < view.y(-half) <= top + height
    assert view.x(0) == pytest.approx(left, abs=1)
    assert view.x(to_units(config.world_w)) == pytest.approx(left + width, abs=1)


@pytest.mark.parametrize("size", [(320, 240), (576, 480), (800, 480), (1920, 1080)])
def test_bird_pipes_and_ground_are_where_the_world_says(size: tuple[int, int]) -> None:
    track = Track(flown("planner"))
    scene, tick = track.scene(size, NOTHING), 141
    frame, view, course = scene.draw(track.moment(tick)), scene.view, track.course
    x, y, reach = view.x(course.physics.bird_x), view.y(track.state(tick).y), max(scene.drawn_radius // 3, 1)
    bird = frame[y - reach : y + reach + 1, x - reach : x + reach + 1].reshape(-1, 3)
    assert any(near(pixel, BODY, 70) for pixel in bird)  # at small sizes it blends with its outline
    assert not any(near(pixel, shade, 20) for pixel in bird for shade in SKY)
    for pipe in course.visible(tick):
        x = view.x(pipe.x)
        if not view.game[0] <= x < view.game[0] + view.game[2]:
            continue
        shades = [shade for _, shade in PIPE]
        for y in (pipe.gap_y + pipe.gap_height // 2 + UNITS, pipe.gap_y - pipe.gap_height // 2 - UNITS):
            assert any(near(frame[view.y(y), x], shade) for shade in shades)
        open_air = frame[view.y(pipe.gap_y), x]
        assert not any(near(open_air, shade) for shade in shades)
    half = to_units(course.config.world_h) // 2
    floor = view.y(-half)
    middle = view.x(to_units(course.config.world_w) // 2)
    assert any(near(frame[floor + 2, middle], shade, 60) for shade in GRASS)
    assert near(frame[view.game[1] + view.game[3] - 3, middle], SOIL[0])
    assert near(frame[view.y(half) + 4, middle - 2 * view.length(UNITS)], SKY[0])


def test_what_is_left_of_the_picture_is_letterbox() -> None:
    frame = Scene(Course(FlappyConfig(), 1), (900, 240), NOTHING).draw(Moment())
    assert near(frame[:, :20], PAPER, 0)
    assert near(frame[:, -20:], PAPER, 0)


def test_the_bird_tilts_with_its_velocity_and_flaps_on_tap() -> None:
    scene = Scene(Course(FlappyConfig(), 1), overlay=NOTHING)
    jump, gravity = scene.course.physics.jump, scene.course.physics.gravity
    seen = {scene.draw(Moment(State(5, 0, velocity))).tobytes() for velocity in (jump, jump + gravity, 0, -8000, -20000)}
    assert len(seen) == 5


def test_overlays_can_be_switched() -> None:
    track = Track(replied(*["<THINK>up we go</THINK><ACTIONS>[TAP]</ACTIONS>"] * 3, "no idea"))
    moment = track.moment(4)
    assert moment.status is Status.MALFORMED
    everything = track.scene(overlay=Overlay(hitbox=True)).draw(moment)
    for name in Overlay._fields:
        less = track.scene(overlay=Overlay(hitbox=True)._replace(**{name: False})).draw(moment)
        if name == "thought":
            moment = track.moment(3)
            assert not np.array_equal(
                track.scene(overlay=Overlay()).draw(moment), track.scene(overlay=Overlay(thought=False)).draw(moment)
            )
        else:
            assert not np.array_equal(less, everything), name


def test_overlay_lists_are_read() -> None:
    assert Overlay.of("hud, score") == NOTHING._replace(hud=True, score=True)
    assert Overlay.of("none") == NOTHING
    assert Overlay.of("all").hitbox
    assert Overlay.of("-thought,-hud") == Overlay(thought=False, hud=False)
    with pytest.raises(ConfigError, match="did you mean 'thought'"):
        Overlay.of("tought")


def test_the_last_picture_tells_the_cause() -> None:
    scene = Scene(Course(FlappyConfig(), 1))
    state = State(9, 0, 0)
    pictures = {
        scene.draw(Moment(state, ended=Outcome(reason, 9, 0 if reason is Reason.PIPE else None))).tobytes() for reason in Reason
    }
    assert len(pictures) == len(Reason)


@pytest.mark.parametrize("thought", ["", "漢字 🐤 \x00 \u202e \ud800 مرحبا", "x" * 1_000_000, "\n" * 500, "a " * 5000])
@pytest.mark.parametrize("size", [(64, 64), (320, 240), (800, 480), (240, 480)])
def test_any_thought_and_name_can_be_drawn(thought: str, size: tuple[int, int]) -> None:
    scene = Scene(Course(FlappyConfig(), 2**53 - 1), size, player=thought)
    scene.draw(Moment(State(12, 10**4, -3000), 123456, thought, Status.MALFORMED))


@pytest.mark.parametrize("text", ["121x250", "120x251", "0x0", "62x64", "9000x64", "x", "12", "-4x4", "٣x٤", "1e3x400"])
def test_a_size_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="size = "):
        read_size(text)


@given(st.integers(0, 2000), st.integers(-120_000, 120_000), st.integers(-60_000, 16_000))
@settings(max_examples=40, deadline=None)
def test_any_state_can_be_drawn(tick: int, y: int, velocity: int) -> None:
    _SMALL.draw(Moment(State(tick, y, velocity), tick // 30))


_SMALL = Scene(Course(FlappyConfig(), 11), (160, 120))


@pytest.mark.parametrize(
    "config",
    [
        FlappyConfig(pipe_width=0.05, pipe_speed=0.2, bird_radius=0.1),
        FlappyConfig(world_w=900.0, world_h=900.0),
        FlappyConfig(
            world_h=1.0, bird_radius=0.01, easy_gap_height=0.5, base_gap_height=0.5, gap_center_offset=0.1, jump_impulse=0.1
        ),
        FlappyConfig(bird_radius=3.0, easy_gap_height=8.0),
        FlappyConfig(pipe_spawn_interval=1, pipe_width=0.5),
    ],
)
def test_any_world_can_be_drawn(config: FlappyConfig) -> None:
    scene = Scene(Course(config, 4), (200, 160))
    for tick in (0, 1, 50, 400):
        scene.draw(Moment(State(tick, 0, 0)))


# --- what others reported ---------------------------------------------------------------------------------------------


def test_B01_drawing_needs_no_display_and_leaves_the_environment_as_it_was(tmp_path: object) -> None:
    code = (
        "import os, sys, flappybird\n"
        "assert 'pygame' not in sys.modules\n"
        "before = dict(os.environ)\n"
        "from flappybird.world.course import Course\n"
        "from flappybird.world.config import FlappyConfig\n"
        "from render.scene import Scene, Moment\n"
        "from render.sdl import pygame\n"
        "Scene(Course(FlappyConfig(), 1)).draw(Moment())\n"
        "assert dict(os.environ) == before\n"
        "assert not pygame.display.get_init() and not pygame.mixer.get_init()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_B04_renderers_do_not_break_each_other(crash: Episode) -> None:
    track = Track(crash)
    one, two = track.scene(), track.scene()
    expected = one.draw(track.moment(90))
    assert np.array_equal(two.draw(track.moment(90)), expected)
    del one
    pygame.quit()
    pygame.font.quit()
    assert np.array_equal(two.draw(track.moment(90)), expected)
    third = track.scene()
    assert np.array_equal(third.draw(track.moment(90)), expected)


def test_B06_drawing_works_in_threads_and_after_a_fork(crash: Episode) -> None:
    track = Track(crash)
    expected = track.scene().draw(track.moment(77))

    async def threads() -> list[np.ndarray]:
        return await asyncio.gather(*[asyncio.to_thread(lambda: track.scene().draw(track.moment(77))) for _ in range(4)])

    assert all(np.array_equal(frame, expected) for frame in asyncio.run(threads()))

    code = (
        "import os, signal, sys, time\n"
        "from flappybird.world.course import Course\n"
        "from flappybird.world.config import FlappyConfig\n"
        "from render.scene import Scene, Moment\n"
        "scene = Scene(Course(FlappyConfig(), 1))\n"
        "one = scene.draw(Moment())\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    assert (scene.draw(Moment()) == one).all() and (Scene(Course(FlappyConfig(), 1)).draw(Moment()) == one).all()\n"
        "    print('drawn', flush=True)\n"
        "    time.sleep(60)\n"
        "else:\n"
        "    time.sleep(0.5)\n"
        "    os.kill(child, signal.SIGTERM)\n"
        "    assert os.waitpid(child, 0)[1] == signal.SIGTERM\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, "drawn\n", "")


def test_B06_memory_stays_flat_over_thousands_of_frames(survivor: Episode) -> None:
    track = Track(survivor)
    scene = track.scene((320, 240))
    for tick in range(60):
        scene.draw(track.moment(tick))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for number in range(5_000):
        scene.draw(track.moment(number % 60))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KB


def test_an_episode_from_a_file_draws_like_the_one_it_was_saved_from(crash: Episode) -> None:
    again = Track(from_dict(crash.to_dict()))
    track = Track(crash)
    assert np.array_equal(again.scene().draw(again.moment(99)), track.scene().draw(track.moment(99)))
    assert "SDL_VIDEODRIVER" not in os.environ or os.environ["SDL_VIDEODRIVER"]
