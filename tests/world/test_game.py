import pytest
from hypothesis import given
from hypothesis import strategies as st

from flappybird.errors import ConfigError, GameOver
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course
from flappybird.world.game import FlappyGame, Outcome, Reason, State, tally
from flappybird.world.observation import read_observation
from tests.worlds import worlds

seeds = st.integers(0, 2**53 - 1)
taps = st.lists(st.booleans(), max_size=200)


def test_a_tap_sets_the_velocity_and_gravity_adds_to_it():
    game = FlappyGame(seed=7)
    game.step(True)
    assert (game.tick, game.y, game.velocity) == (1, 1.6, 1.6)
    game.step(False)
    assert (game.tick, game.y, game.velocity) == (2, 2.9, 1.3)
    game.step(True)
    assert (game.tick, game.y, game.velocity) == (3, 4.5, 1.6)


def test_the_bird_that_does_nothing_hits_the_floor_in_tick_8():
    game = FlappyGame()
    states = [game.state]
    while game.step(False) is None:
        states.append(game.state)
    assert game.outcome == Outcome(Reason.FLOOR, 8)
    assert [state.y for state in states] == [-1500 * n * (n + 1) for n in range(8)]
    assert game.terminated
    assert not game.truncated


def test_the_bounds_kill_at_equality():
    # Jump by exactly 10 - 0.2: the bird's edge lies on the bound.
    assert FlappyGame(FlappyConfig(jump_impulse=9.8)).step(True) == Outcome(Reason.CEILING, 1)
    assert FlappyGame(FlappyConfig(jump_impulse=9.7999)).step(True) is None
    assert FlappyGame(FlappyConfig(gravity=-9.8)).step(False) == Outcome(Reason.FLOOR, 1)
    assert FlappyGame(FlappyConfig(gravity=-9.7999)).step(False) is None


def test_the_first_pipe_appears_in_tick_10_at_the_right_edge_and_the_next_30_ticks_later():
    course = Course(FlappyConfig(), 1)
    assert [pipe.x for pipe in course.visible(9)] == []
    assert [pipe.x for pipe in course.visible(10)] == [240_000]
    assert [pipe.x for pipe in course.visible(11)] == [237_000]
    assert len(course.visible(39)) == 1
    assert [pipe.number for pipe in course.visible(40)] == [0, 1]
    # Its right edge is on x >= 0 for the last time at age 83: 24 - 24.9 + 1 = 0.1.
    assert 0 in [pipe.number for pipe in course.visible(93)]
    assert 0 not in [pipe.number for pipe in course.visible(94)]


def _at_pipe(offset_from_gap: int, tick: int = 73, config: FlappyConfig | None = None) -> FlappyGame:
    """A game one tick before `tick`, at a height from which holding leads to gap centre + offset."""
    config = config or FlappyConfig()
    gap = Course(config, 5).gap(0)
    return FlappyGame(config, 5, state=State(tick - 1, gap.y + offset_from_gap + 3000, 0))


def test_touching_the_edge_of_a_gap_exactly_is_safe_and_one_unit_more_is_not():
    edge = 30_000 - 2_000
    assert _at_pipe(edge).step(False) is None
    assert _at_pipe(edge + 1).step(False) == Outcome(Reason.PIPE, 73, 0)
    assert _at_pipe(-edge).step(False) is None
    assert _at_pipe(-edge - 1).step(False) == Outcome(Reason.PIPE, 73, 0)


def test_a_pipe_is_touched_in_ticks_73_to_80_and_scored_in_81():
    # 24 - 0.3*a is within 1.2 of the bird's 4.0 for the ages 63 to 70.
    outside = 40_000
    assert [_at_pipe(outside, tick).step(False) is not None for tick in range(71, 83)] == [False] * 2 + [True] * 8 + [False] * 2
    game = _at_pipe(0, 80)
    game.step(False)
    assert game.score == 0
    game.step(True)
    assert (game.tick, game.score) == (81, 1)


def test_A04_a_pipe_edge_that_lies_exactly_on_the_birds_edge_touches_nothing_and_is_not_passed():
    # Speed 0.4: 24 - 0.4*47 = 5.2 is exactly bird_x + 1.2, and 24 - 0.4*53 = 2.8 exactly bird_x - 1.2.
    config = FlappyConfig(pipe_speed=0.4)
    course = Course(config, 5)
    assert list(course.touching(57)) == []
    assert list(course.touching(58)) == [0]
    assert list(course.touching(62)) == [0]
    assert list(course.touching(63)) == []
    assert [course.passed(tick) for tick in (62, 63, 64)] == [0, 0, 1]


def test_the_tick_of_a_crash_scores_nothing():
    # Pipe 0 is passed in tick 81; the bird that hits the floor in that very tick has not passed it.
    low = FlappyGame(seed=5, state=State(80, -95_000, 0))
    assert low.step(False) == Outcome(Reason.FLOOR, 81)
    assert low.score == 0


def test_the_tick_limit_ends_a_game_that_lives_and_the_last_tick_counts():
    game = FlappyGame(seed=3, max_ticks=2)
    assert game.step(True) is None
    assert game.step(False) == Outcome(Reason.TICK_LIMIT, 2)
    assert game.truncated
    assert not game.terminated
    crash = FlappyGame(seed=3, max_ticks=8)
    while crash.step(False) is None:
        pass
    assert crash.outcome == Outcome(Reason.FLOOR, 8)


def test_a_finished_game_says_when_and_why_it_ended():
    game = FlappyGame(max_ticks=1)
    game.step(True)
    with pytest.raises(GameOver, match="tick limit at tick 1"):
        game.step(True)


def test_repr_tells_the_state():
    game = FlappyGame(seed=7)
    game.step(True)
    assert repr(game) == "FlappyGame(seed=7, tick=1, y=1.60, velocity=1.60, score=0)"
    while game.step(True) is None:
        pass
    assert "outcome='ceiling at tick 7'" in repr(game)


@pytest.mark.parametrize("limit", [0, -1, 1.5, "3", True, 2**41])
def test_a_bad_tick_limit_is_refused(limit):
    with pytest.raises(ConfigError, match=r"max_ticks = .*whole number of ticks"):
        FlappyGame(max_ticks=limit)


@pytest.mark.parametrize("every", [1, 2, 3])
def test_A01_flapping_on_above_the_world_scores_nothing(every):
    for seed in range(20):
        game = FlappyGame(seed=seed, max_ticks=2_000)
        tick = 0
        while game.outcome is None:
            game.step(tick % every == 0)
            tick += 1
        assert game.outcome.reason is Reason.CEILING
        assert game.score == 0


@pytest.mark.parametrize("speed", [0.3, 0.8, 1.2, 2.0, 2.3])
@pytest.mark.parametrize("interval", [7, 30, 200])
def test_A06_no_speed_or_spacing_leaves_an_observation_without_sense(speed, interval):
    config = FlappyConfig(pipe_speed=speed, pipe_spawn_interval=interval)
    game = FlappyGame(config, 1)
    assert "pipes:[]" in str(game.observation())
    spacings = set()
    for tick in range(400):
        probe = FlappyGame(config, 1, state=State(tick, 0, 0))
        seen = probe.observation()
        text = str(seen)
        assert not {"nan", "inf", "None"} & set(text.replace(":", "\n").split())
        assert read_observation(text) == seen
        spacings |= {b[0] - a[0] for a, b in zip(seen.pipes, seen.pipes[1:], strict=False)}
    assert len(spacings) <= 1


@given(worlds(), seeds, taps)
def test_the_game_agrees_with_a_straightforward_one_that_moves_every_pipe(config, seed, taps):
    """The rules once more, as the specification lists them: pipes that move, in fractions."""
    from fractions import Fraction

    def exact(value):
        return Fraction(str(value))

    course, game = Course(config, seed), FlappyGame(config, seed)
    y = velocity = Fraction(0)
    radius, half, width, bird_x = (
        exact(config.bird_radius),
        exact(config.world_h) / 2,
        exact(config.pipe_width),
        exact(config.bird_x),
    )
    pipes: list[list] = []  # [x, gap centre, gap height, passed]
    score = spawned = 0
    for tick, tap in enumerate(taps, start=1):
        velocity = exact(config.jump_impulse) if tap else velocity + exact(config.gravity)
        y += velocity
        for pipe in pipes:
            pipe[0] -= exact(config.pipe_speed)
        if tick >= config.first_spawn_interval and (tick - config.first_spawn_interval) % config.pipe_spawn_interval == 0:
            gap = course.gap(spawned)
            pipes.append([exact(config.world_w), Fraction(gap.y, 10_000), Fraction(gap.height, 10_000), False])
            spawned += 1
        crashed = y + radius >= half or y - radius <= -half
        for x, gap_y, height, _ in pipes:
            if abs(x - bird_x) < width / 2 + radius and (y + radius > gap_y + height / 2 or y - radius < gap_y - height / 2):
                crashed = True
        if not crashed:
            for pipe in pipes:
                if not pipe[3] and pipe[0] + width / 2 < bird_x - radius:
                    pipe[3] = True
                    score += 1
        outcome = game.step(tap)
        assert (Fraction(game.state.y, 10_000), Fraction(game.state.velocity, 10_000)) == (y, velocity)
        on_screen = [pipe[0] for pipe in pipes if pipe[0] + width / 2 >= 0]
        assert [Fraction(x, 10_000) for x, _ in game.observation().pipes] == on_screen
        assert (outcome is not None) == crashed
        assert game.score == score
        if crashed:
            return


@given(worlds(), seeds, taps)
def test_observing_changes_nothing_and_the_score_never_falls(config, seed, taps):
    watched, alone = FlappyGame(config, seed), FlappyGame(config, seed)
    score = 0
    for tap in taps:
        before = watched.state
        observation = watched.observation()
        repr(watched)
        assert watched.state == before
        assert read_observation(str(observation)) == observation
        assert watched.step(tap) == alone.step(tap)
        assert watched.state == alone.state
        assert watched.score >= score
        score = watched.score
        if watched.outcome:
            return


@given(worlds(), seeds, taps, st.integers(0, 200))
def test_a_game_goes_on_from_its_state_as_if_nothing_had_happened(config, seed, taps, cut):
    game = FlappyGame(config, seed)
    for tick, tap in enumerate(taps):
        if tick == cut:
            game = FlappyGame(config, seed, state=game.state)
        if game.step(tap):
            break
    again = FlappyGame(config, seed)
    for tap in taps:
        if again.step(tap):
            break
    assert (game.state, game.outcome, game.score) == (again.state, again.outcome, again.score)


def test_nothing_drifts_in_a_long_game():
    # Down by 2·0.3·… and up again: after 10,000 ticks the numbers are still exact tenths.
    from flappybird.players.policies import make_policy

    game = FlappyGame(seed=11, max_ticks=10_000)
    planner = make_policy("planner", game.config)
    while game.outcome is None:
        game.step(planner(game.observation()).tap)
    assert game.outcome.reason is Reason.TICK_LIMIT
    assert game.state.y % 1000 == 0
    assert game.score == Course(game.config, 11).passed(10_000)


@pytest.mark.parametrize("reason", Reason)
def test_every_ending_has_words_of_its_own(reason):
    others = [other for other in Reason if other is not reason]
    for words in ("words", "deed", "caption"):
        assert getattr(reason, words) not in [getattr(other, words) for other in others]


def test_an_ending_in_words_names_the_pipe_and_the_tick():
    hit, lived = Outcome(Reason.PIPE, 152, 4), Outcome(Reason.TICK_LIMIT, 300)
    assert (str(hit), hit.caption) == ("pipe 4 at tick 152", "Crashed into pipe 4, tick 152")
    assert (str(lived), lived.caption) == ("tick limit at tick 300", "Survived to the tick limit, tick 300")
    assert tally({"tick_limit": 2, "pipe": 1}) == "2 tick limit, 1 pipe"
