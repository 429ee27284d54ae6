from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flappybird.episodes.episode import Episode, Player, replay
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.errors import ConfigError
from flappybird.protocol.reply import Status
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig
from flappybird.world.game import Reason
from render.clip import Clip, Timing
from render.frames import TICKS_PER_SECOND, Pace, Track, frames, grid_frames
from render.scene import Overlay
from render.sheet import sheet
from tests.samples import flown, replied

SMALL = (160, 120)


@given(st.integers(0, 3000), st.integers(1, 120), st.sampled_from([0.25, 0.5, 1.0, 1.5, 2.0, 8.0]))
def test_a_clip_lasts_as_long_as_its_ticks_and_ends_with_the_last(last: int, fps: int, speed: float) -> None:
    pace = Pace.of(last, fps, speed)
    assert list(pace.ticks) == sorted(pace.ticks)
    assert pace.ticks[-1] == last
    assert abs(pace.seconds - Fraction(last, TICKS_PER_SECOND) / Fraction(speed)) <= 1 / pace.fps
    assert all(0 <= tick <= last for tick in pace.ticks)


def test_at_the_normal_rate_there_is_one_picture_per_tick() -> None:
    pace = Pace.of(300)
    assert pace.ticks == tuple(range(1, 301))
    assert pace.seconds == 10


def test_an_episode_without_ticks_has_one_picture() -> None:
    assert Pace.of(0).ticks == (0,)


def test_a_part_of_an_episode_can_be_shown_and_its_end_held() -> None:
    assert Pace.of(300, start=10, stop=13).ticks == (11, 12, 13)
    assert Pace.of(300, start=10, stop=10).ticks == (10,)
    assert Pace.of(12, fps=10, start=9, hold=0.3).ticks == (12, 12, 12, 12)


@pytest.mark.parametrize(
    "wrong", [{"fps": 0}, {"fps": 1e9}, {"speed": 0}, {"hold": -1}, {"start": 5, "stop": 4}, {"start": -1}, {"start": 301}]
)
def test_a_pace_out_of_range_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter({"start": "from"}.get(name, name) for name in wrong))):
        Pace.of(300, **wrong)  # type: ignore[arg-type]


def test_a_moment_tells_what_the_replay_says(crash: Episode) -> None:
    track, played = Track(crash), replay(crash)
    assert track.last == crash.outcome.ticks
    for tick in range(track.last + 1):
        moment = track.moment(tick)
        assert moment.state == played.states[tick]
        assert (moment.ended is not None) == (tick == track.last)
        if tick:
            assert moment.thought == crash.turns[played.turn_at[tick - 1]].thought
            assert moment.tap == played.taps[tick - 1]
    assert track.moment(track.last).score == crash.outcome.pipes_passed
    assert track.moment(9_999) == track.moment(track.last)


def test_invalid_turns_are_marked_where_they_begin_to_fly() -> None:
    good = "<THINK>t</THINK><ACTIONS>[TAP]</ACTIONS>"
    track = Track(replied(good, "nonsense", good, ""))
    assert [track.moment(tick).status for tick in range(1, 5)] == [Status.OK, Status.MALFORMED, Status.OK, Status.EMPTY]
    assert track.invalid_ticks() == [2, 4]


def test_a_turn_of_several_ticks_keeps_its_thought() -> None:
    rollout = Rollout(FlappyConfig(), 3, Rules(ticks_per_turn=3))
    rollout.take("<THINK>first</THINK><ACTIONS>[TAP, NOOP, NOOP]</ACTIONS>")
    rollout.take("<THINK>second</THINK><ACTIONS>[NOOP, TAP]</ACTIONS>")
    track = Track(finish(rollout, Player(kind="model", name="m")))
    assert [track.moment(tick).thought for tick in range(7)] == ["first"] * 4 + ["second"] * 3
    assert [track.moment(tick).tap for tick in range(7)] == [False, True, False, False, False, True, False]


def test_an_aborted_episode_says_so_in_its_last_picture() -> None:
    track = Track(replied("<ACTIONS>[TAP]</ACTIONS>"))
    ended = track.moment(1).ended
    assert ended is not None
    assert ended.reason is Reason.ABORTED


def test_an_episode_without_turns_can_be_drawn() -> None:
    track = Track(replied())
    assert len(list(frames(track, Pace.of(track.last), SMALL))) == 1


def test_frames_are_the_pictures_of_their_ticks(survivor: Episode) -> None:
    track = Track(survivor)
    pace = Pace.of(track.last, start=20, stop=25)
    pictures = list(frames(track, pace, SMALL))
    assert len(pictures) == 5
    for tick, picture in zip(pace.ticks, pictures, strict=True):
        assert np.array_equal(picture, track.scene(SMALL).draw(track.moment(tick)))


def test_a_ghost_flies_along_and_stays_behind_where_it_ended(crash: Episode) -> None:
    track, ghost = Track(flown("planner", 3)), Track(flown("random", 3))
    pace = Pace(ticks=(10, 40), fps=Fraction(30))
    seen, alone = list(frames(track, pace, ghosts=[ghost])), list(frames(track, pace))
    assert not np.array_equal(seen[0], alone[0])
    assert np.array_equal(seen[1], alone[1])  # out of sight by then
    assert list(seen[0].shape) == [480, 576, 3]


def test_a_ghost_of_another_course_is_refused(crash: Episode) -> None:
    with pytest.raises(ConfigError, match="ghost planner: its course is not that of heuristic"):
        frames(Track(crash), Pace.of(1), ghosts=[Track(flown("planner", 4, 60))])


@pytest.mark.parametrize(("count", "size"), [(2, (400, 200)), (3, (600, 200)), (4, (400, 400)), (7, (600, 600))])
def test_a_grid_shows_every_episode_in_step(count: int, size: tuple[int, int]) -> None:
    tracks = [Track(flown(("planner", "heuristic", "random", "noop")[number % 4], 3)) for number in range(count)]
    pictures = list(grid_frames(tracks, Pace(ticks=(5, 20), fps=Fraction(30)), size))
    assert [picture.shape for picture in pictures] == [(size[1], size[0], 3)] * 2
    assert not np.array_equal(*pictures)


def test_an_episode_of_a_grid_freezes_where_it_died() -> None:
    tracks = [Track(flown("planner", 3)), Track(flown("noop", 3))]  # the second dies at tick 8
    pictures = list(grid_frames(tracks, Pace(ticks=(20, 30), fps=Fraction(30)), (400, 200)))
    assert not np.array_equal(pictures[0][:, :200], pictures[1][:, :200])
    assert np.array_equal(pictures[0][:, 200:], pictures[1][:, 200:])


def test_a_grid_of_cells_too_small_is_refused(crash: Episode) -> None:
    with pytest.raises(ConfigError, match="cell of 30 episodes"):
        grid_frames([Track(crash)] * 30, Pace.of(1), (200, 200))


def test_samples_are_a_few_pictures_from_all_over(crash: Episode) -> None:
    clip = Clip([Track(crash)], SMALL, Timing(), Overlay())
    samples = clip.samples()
    assert 2 <= len(samples) <= 12
    assert np.array_equal(samples[-1], list(clip.frames())[-1])


def test_a_sheet_has_a_strip_for_each_episode() -> None:
    tracks = [Track(flown(policy, 3)) for policy in ("planner", "noop")]
    one, two = sheet(tracks[:1]), sheet(tracks)
    assert two.shape[0] > one.shape[0]
    assert two.dtype == np.uint8
    assert np.array_equal(one[: one.shape[0] - 10], two[: one.shape[0] - 10])


def test_the_sheet_of_a_long_or_empty_episode_stays_bounded() -> None:
    assert sheet([Track(flown("planner", 3, 5_000))]).shape[1] < 9_000
    assert sheet([Track(replied())]).shape[0] > 100
    with pytest.raises(ConfigError, match="a sheet of 0 episodes"):
        sheet([])
