from hypothesis import given, settings
from hypothesis import strategies as st

from flappybird.system.memory import remembered
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course
from flappybird.world.game import FlappyGame, State
from flappybird.world.solver import Survival, passable
from tests.worlds import worlds


def _forward(course: Course, last: int) -> list[set[tuple[int, int]]]:
    """Every state that a living bird can be in, tick by tick: brute force."""
    alive = [{(0, 0)}]
    for tick in range(1, last + 1):
        low, high, _ = course.band(tick)
        moves = {(y + v, v) for y, velocity in alive[-1] for v in (course.physics.jump, velocity + course.physics.gravity)}
        alive.append({(y, v) for y, v in moves if low <= y <= high})
    return alive


def _survivors(course: Course, alive: list[set[tuple[int, int]]]) -> list[set[tuple[int, int]]]:
    """Of those, the ones from which the last tick can be reached."""
    good = [alive[-1]]
    for states in reversed(alive[:-1]):
        jump, gravity = course.physics.jump, course.physics.gravity
        good.append({(y, v) for y, v in states if (y + jump, jump) in good[-1] or (y + v + gravity, v + gravity) in good[-1]})
    return good[::-1]


@settings(max_examples=40)
@given(worlds(), st.integers(0, 2**53 - 1), st.integers(1, 45))
def test_the_solver_agrees_with_brute_force_on_every_reachable_state(config, seed, last):
    course = Course(config, seed)
    alive = _forward(course, last)
    if sum(map(len, alive)) > 60_000:
        return
    good = _survivors(course, alive)
    survival = Survival.of(course, last)
    for tick, states in enumerate(alive):
        for y, velocity in states:
            assert survival.survives(State(tick, y, velocity)) == ((y, velocity) in good[tick])
    assert passable(course, last) == bool(good[0])


@settings(max_examples=30)
@given(worlds(), st.integers(0, 1000), st.integers(-50_000, 50_000), st.integers(-30_000, 30_000))
def test_states_off_the_games_own_grid_are_solved_on_a_finer_one(config, seed, y, velocity):
    from math import gcd

    course = Course(config, seed)
    last = 14
    state = State(0, y, velocity)
    survival = Survival.of(course, last)
    fine = Survival(course.physics, survival._bands, 1, gcd(y, velocity))
    alive = [{(y, velocity)}]
    for tick in range(1, last + 1):
        low, high, _ = course.band(tick)
        moves = {(a + v, v) for a, b in alive[-1] for v in (course.physics.jump, b + course.physics.gravity)}
        alive.append({(a, v) for a, v in moves if low <= a <= high})
    assert fine.survives(state) == bool(alive[-1])


def test_a_course_with_an_impossible_pipe_is_not_passable():
    # Gaps 8 apart in 4 ticks: no bird climbs that fast.
    config = FlappyConfig(gap_center_offset=9.0, pipe_spawn_interval=10, easy_gap_height=1.0, base_gap_height=1.0)
    assert not any(passable(Course(config, seed), 300) for seed in range(20))
    assert all(passable(Course(FlappyConfig(), seed), 300) for seed in range(20))


def test_what_keeps_a_bird_alive_is_what_the_game_says():
    course = Course(FlappyConfig(), 4)
    survival = Survival.of(course, 120)
    game = FlappyGame(course.config, 4, max_ticks=120)
    while game.outcome is None:
        keeps = [survival.keeps(game.state, tap) for tap in (False, True)]
        assert any(keeps)
        game.step(keeps[1])
    assert game.truncated


def test_what_is_remembered_is_bounded_by_its_bytes_and_not_by_its_number():
    solved = []
    size = Survival.of(Course(FlappyConfig(), 0), 100).size
    assert 3_000 < size < 20_000

    @remembered(3 * size)
    def solve(seed, last=100):
        solved.append((seed, last))
        return Survival.of(Course(FlappyConfig(), seed), last)

    for seed in (0, 1, 0, 1):
        solve(seed)
    assert solved == [(0, 100), (1, 100)]
    for _ in range(2):
        assert solve(0, 5_000).last == 5_000  # larger than all that is to be kept: solved, and not kept
    assert solved[2:] == [(0, 5_000)] * 2
    for seed in range(20):
        solve(seed)
    solve(0)
    assert solved[-1] == (0, 100)


def test_a_solution_says_how_much_memory_it_takes():
    import tracemalloc

    course = Course(FlappyConfig(gravity=-0.3001), 0)
    tracemalloc.start()
    try:
        survival = Survival.of(course, 200)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert survival.size <= taken <= 1.1 * survival.size + 50_000
