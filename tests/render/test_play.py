import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flappybird.cli import main
from flappybird.episodes.episode import load, save
from flappybird.episodes.verify import verify
from flappybird.errors import ConfigError, FlappyError
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig
from flappybird.world.game import Reason
from flappybird.world.levels import level
from render.frames import Track
from render.play import play
from render.sdl import letter, pygame
from render.session import REST, Phase, Session
from render.sound import RATE, waves
from tests.samples import Run, clean_environment, flown

CONFIG = FlappyConfig()


def flap_at(
    ticks: set[int], frame: float, stalls: Callable[[int], float] = lambda number: 0.0, speed: float = 2.0
) -> tuple[Session, float]:
    """Play with flaps in the given ticks on a display whose pictures last `frame` seconds; return the session and its length."""
    session = Session(CONFIG, 3, speed=speed)
    session.press()
    length, number = 0.0, 0
    while session.phase is Phase.FLYING and number < 100_000:
        number += 1
        seconds = frame + stalls(number)
        # One tick at a time, so that each key falls into the tick that it is meant for.
        while seconds > 0 and session.phase is Phase.FLYING:
            step = min(seconds, frame / 4)
            if session.rollout.game.tick in ticks:
                session.press()
            session.pass_time(step)
            seconds -= step
            length += step
    return session, length


def test_a_session_waits_for_the_first_press() -> None:
    session = Session(CONFIG, 3)
    assert session.pass_time(10.0) == 0
    session.press()
    assert session.pass_time(0.1) == 1
    assert session.rollout.game.velocity == CONFIG.jump_impulse


def test_time_passes_in_whole_ticks() -> None:
    session = Session(CONFIG, 3)
    session.press()
    assert [session.pass_time(0.04) for _ in range(5)] == [0, 0, 1, 0, 1]


def test_a_press_counts_once() -> None:
    session = Session(CONFIG, 3)
    session.press()
    session.press()
    session.pass_time(0.2)
    assert [turn["actions"] for turn in session.rollout.turns] == [["TAP"], ["NOOP"]]


def test_losing_the_focus_pauses_and_a_press_goes_on() -> None:
    session = Session(CONFIG, 3)
    session.press()
    session.pass_time(0.1)
    session.focus(False)
    assert session.phase is Phase.PAUSED
    assert session.pass_time(5.0) == 0
    session.press()
    assert session.pass_time(0.1) == 1


def test_the_best_score_of_a_seed_is_remembered() -> None:
    session, _ = flap_at(set(), 1 / 60)
    assert session.phase is Phase.OVER
    assert session.best == {3: 0}
    session.next_seed()
    assert (session.seed, session.phase) == (4, Phase.WAITING)
    assert session.best == {3: 0}


def test_no_game_of_a_session_is_lost(tmp_path: Path) -> None:
    session = Session(CONFIG, 3, path=tmp_path / "me.json")
    for _ in range(2):
        session.press()
        session.pass_time(0.2)
        session.restart()
    session.quit()
    assert [path.name for path in session.saved] == ["me.json", "me-2.json"]
    assert all(load(path).outcome.reason is Reason.ABORTED for path in session.saved)


@given(st.lists(st.integers(0, 120), max_size=30), st.integers(0, 50))
@settings(max_examples=30, deadline=None)
def test_whatever_is_played_verifies(presses: list[int], seed: int) -> None:
    session = Session(CONFIG, seed, Rules(max_turns=80), speed=2)
    session.press()
    for number in range(160):
        if number in presses:
            session.press()
        session.pass_time(0.025)
    episode = session.episode()
    assert verify(episode) == []
    assert episode.player.kind == "human"


@pytest.mark.parametrize("speed", [0, -1, 1000, float("nan")])
def test_a_speed_out_of_range_is_refused(speed: float) -> None:
    with pytest.raises(ConfigError, match=r"speed = .*: must be from 0\.1 to 10"):
        Session(CONFIG, 3, speed=speed)


def test_a_press_begins_again_after_a_death_but_not_at_once() -> None:
    session, _ = flap_at(set(), 1 / 60)
    session.press()
    assert session.phase is Phase.OVER  # whoever hammers at the key sees what happened
    session.pass_time(REST)
    session.press()
    assert (session.phase, session.seed, session.rollout.game.tick) == (Phase.WAITING, 3, 0)


def test_P_pauses_and_goes_on_without_a_flap() -> None:
    session = Session(CONFIG, 3)
    session.pause()
    assert session.phase is Phase.WAITING
    session.press()
    session.pass_time(0.1)
    session.pause()
    assert session.pass_time(3.0) == 0
    session.pause()
    assert session.pass_time(0.1) == 1
    assert [turn["actions"] for turn in session.rollout.turns] == [["TAP"], ["NOOP"]]


@given(st.lists(st.floats(0, 0.2), min_size=1, max_size=40))
@settings(max_examples=40, deadline=None)
def test_between_two_ticks_a_picture_lies_between_two_states(steps: list[float]) -> None:
    session = Session(CONFIG, 3)
    session.press()
    shown = []
    for step in steps:
        session.pass_time(step)
        moment = session.moment()
        assert moment.state == session.rollout.game.state
        if moment.before is not None:
            low, high = sorted((moment.before.y, moment.state.y))
            assert low <= moment.height() <= high
            assert 0 <= moment.share <= 1
            assert (moment.ended is None) == (moment.share < 1 or session.rollout.outcome is None)
        shown.append(moment.time)
    assert shown == sorted(shown)  # time does not go back


def test_the_last_tick_is_flown_to_its_end() -> None:
    session, _ = flap_at(set(), 1 / 60)
    assert session.moment().ended is None
    session.pass_time(1 / session.tps)
    moment = session.moment()
    assert (moment.share, moment.ended, moment.height()) == (1.0, session.rollout.outcome, session.rollout.game.state.y)


def against(policy: str, seed: int = 3) -> Session:
    return Session(CONFIG, seed, rival=Track(flown(policy, seed)))


@pytest.mark.parametrize(
    ("rival", "flaps", "said"),
    [
        ("heuristic", False, "heuristic beat you: 6 to 0 pipes"),
        ("noop", True, "you beat noop: 16 to 8 ticks"),
        ("noop", False, "a draw with noop: 0 pipes each"),
    ],
)
def test_a_race_says_who_has_won(rival: str, flaps: bool, said: str) -> None:
    session = against(rival)
    assert session.verdict() == ""
    while session.rollout.outcome is None:
        session.rollout.fly([flaps and session.rollout.game.tick == 0])
    assert session.verdict() == said
    assert session.summary().endswith(f"; {said}")


def test_a_rival_of_another_course_is_refused() -> None:
    with pytest.raises(ConfigError, match="heuristic flew seed 3: you have to fly the same course"):
        Session(CONFIG, 4, rival=Track(flown("heuristic", 3)))


def test_the_rival_is_where_it_was_at_the_same_tick() -> None:
    session = against("heuristic")
    session.press()
    session.pass_time(0.24)
    moment, rival = session.moment(), Track(flown("heuristic", 3))
    assert (moment.ghosts, moment.ghosts_before) == ((rival.state(2),), (rival.state(1),))
    session.next_seed()
    assert session.seed == 3


def test_what_happens_is_heard_once() -> None:
    session = Session(CONFIG, 3)
    session.press()
    session.pass_time(0.1)
    assert session.heard == ["flap"]
    session.heard.clear()
    for _ in range(40):
        session.pass_time(0.1)
    assert session.heard == ["crash"]


def test_sounds_are_made_and_do_not_clip() -> None:
    for name, wave in waves().items():
        assert 0.2 < abs(wave).max() <= 1.0, name
        assert 0.05 * RATE < len(wave) < RATE, name
        assert abs(wave[-1]) < 0.05, name  # no click at the end


@pytest.mark.parametrize(
    ("key", "place", "expected"),
    [
        (pygame.K_r, pygame.KSCAN_R, "r"),
        (pygame.K_a, pygame.KSCAN_Q, "a"),  # French: what the key types counts
        (0x43A, pygame.KSCAN_R, "r"),  # Russian: its place does
        (0x442, pygame.KSCAN_N, "n"),
        (pygame.K_UP, pygame.KSCAN_UP, ""),
        (pygame.K_7, pygame.KSCAN_7, ""),
        (0x44D, pygame.KSCAN_APOSTROPHE, ""),
    ],
)
def test_N27_a_letter_is_found_on_every_layout(key: int, place: int, expected: str) -> None:
    assert letter(pygame.event.Event(pygame.KEYDOWN, key=key, scancode=place)) == expected


# --- in a window, on SDL's dummy display --------------------------------------------------------------------------


@pytest.fixture
def dummy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")


def key(which: int) -> None:
    pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=which, mod=0))


class Clock:
    """Seconds that pass only when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def script(*steps: Callable[[], None], clock: Clock | None = None, frame: float = 0.05) -> Callable[[Session], None]:
    """Do one of `steps` per picture, then close the window."""
    waiting = list(steps)

    def each(session: Session) -> None:
        if clock is not None:
            clock.now += frame
        if waiting:
            waiting.pop(0)()
        else:
            pygame.event.post(pygame.event.Event(pygame.QUIT))

    return each


@pytest.mark.usefixtures("dummy")
def test_a_game_can_be_played_by_keyboard_and_mouse(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "me.json"
    presses = [
        lambda: key(pygame.K_SPACE),
        lambda: key(pygame.K_UP),
        lambda: pygame.event.post(pygame.event.Event(pygame.MOUSEBUTTONDOWN, button=1, pos=(5, 5))),
    ]
    session = play(CONFIG, 3, speed=2, path=path, size=(160, 120), fps=1000, clock=clock, each=script(*presses, clock=clock))
    episode = load(path)
    assert [turn.taps for turn in episode.turns] == [(True,)] * 3
    assert episode.outcome.reason is Reason.ABORTED
    assert verify(episode) == []
    assert "aborted at tick 3" in session.summary()
    assert not pygame.display.get_init()


@pytest.mark.usefixtures("dummy")
def test_R_begins_again_and_N_takes_the_next_seed(tmp_path: Path) -> None:
    clock = Clock()
    steps = [lambda: key(pygame.K_SPACE), lambda: key(pygame.K_r), lambda: key(pygame.K_SPACE), lambda: key(pygame.K_n)]
    played = script(*steps, clock=clock)
    session = play(CONFIG, 3, speed=2, path=tmp_path / "me.json", size=(160, 120), fps=1000, clock=clock, each=played)
    assert session.seed == 4
    assert [(load(path).seed, load(path).outcome.reason.value) for path in session.saved] == [(3, "aborted"), (3, "aborted")]


@pytest.mark.usefixtures("dummy")
def test_F01_the_display_rate_and_stalls_change_neither_the_game_nor_its_speed(tmp_path: Path) -> None:
    flaps = {4, 9, 15, 22, 28, 33, 41, 47, 55, 60, 66, 72}
    games, lengths = [], []
    for rate, stalls in ((30, False), (60, False), (144, False), (60, True)):
        stall = (lambda number: 0.2 if number % 40 == 0 else 0.0) if stalls else (lambda number: 0.0)
        session, length = flap_at(flaps, 1 / rate, stall)
        episode = session.episode()
        games.append((episode.outcome, [turn.taps for turn in episode.turns]))
        lengths.append(length / episode.outcome.ticks)
        assert verify(episode) == []
    assert all(game == games[0] for game in games)
    assert all(length == pytest.approx(1 / 20, rel=0.05) for length in lengths)


def test_F01_a_stall_of_the_whole_machine_is_caught_up_within_limits() -> None:
    session = Session(CONFIG, 3, speed=2)
    session.press()
    assert session.pass_time(0.2) == 4
    assert session.pass_time(60.0) == 5  # a quarter of a second, not a minute
    assert [turn["tick"] for turn in session.rollout.turns] == list(range(9))


@pytest.mark.usefixtures("dummy")
@pytest.mark.parametrize("moment", ["before the first flap", "in flight", "game over", "paused"])
def test_F03_closing_the_window_ends_at_once_and_keeps_what_was_played(tmp_path: Path, moment: str) -> None:
    clock, path = Clock(), tmp_path / "me.json"
    pictures = 0
    steps: list[Callable[[], None]] = [lambda: None]
    if moment != "before the first flap":
        steps.append(lambda: key(pygame.K_SPACE))
    if moment == "game over":
        steps += [lambda: None] * 30
    if moment == "paused":
        steps += [lambda: pygame.event.post(pygame.event.Event(pygame.WINDOWFOCUSLOST)), lambda: None]
    scripted = script(*steps, clock=clock)

    def each(session: Session) -> None:
        nonlocal pictures
        pictures += 1
        scripted(session)

    session = play(CONFIG, 3, speed=2, path=path, size=(160, 120), fps=1000, clock=clock, each=each)
    assert pictures == len(steps) + 1  # QUIT is posted in the last one, and ends it
    assert not pygame.display.get_init()
    episode = load(path)
    assert verify(episode) == []
    assert len(session.saved) == 1
    assert episode.outcome.reason is (Reason.FLOOR if moment == "game over" else Reason.ABORTED)
    assert (episode.outcome.ticks == 0) == (moment == "before the first flap")


@pytest.mark.usefixtures("dummy")
def test_F03_a_game_that_nobody_plays_goes_on_waiting() -> None:
    clock = Clock()
    session = play(CONFIG, 3, size=(160, 120), fps=1000, clock=clock, each=script(*[lambda: None] * 40, clock=clock, frame=0.25))
    assert session.rollout.game.tick == 0


def test_B02_playing_makes_no_noise(tmp_path: Path) -> None:
    code = (
        "from flappybird.world.config import FlappyConfig\n"
        "from render.play import play\n"
        "from render.sdl import pygame\n"
        "shown = []\n"
        "def each(session):\n"
        "    shown.append(session)\n"
        "    if len(shown) > 5: pygame.event.post(pygame.event.Event(pygame.QUIT))\n"
        "play(FlappyConfig(), each=each)\n"
        "assert not pygame.mixer.get_init()\n"
    )
    env = clean_environment(SDL_VIDEODRIVER="dummy")
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("display", [{}, {"DISPLAY": ":991"}, {"WAYLAND_DISPLAY": "nowhere"}])
def test_F06_N31_playing_without_a_display_is_one_line(run: Run, display: dict[str, str]) -> None:
    done = run("flappybird", "play", env={"PYTHONUNBUFFERED": "1", **display})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "no display" in done.stderr


def test_without_a_display_a_window_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(FlappyError, match="no display to play on"):
        play(CONFIG)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--config", "{gravity:-0.2}"], "the shell took them"),
        (["--config", "gravity=low"], "gravity = 'low': must be a number"),
        (["--config", "gravty=-0.2"], "did you mean 'gravity'"),
        (["--config", "[1]"], "must be an object"),
        (["--seed", "-1"], "seed = -1"),
        (["--max-turns", "0"], "max_turns = 0"),
        (["--policy", "plannr"], "did you mean 'planner'"),
        (["--difficulty", "esay"], "did you mean 'easy'"),
        (["--difficulty", "easy", "--config", "gravity=-0.2"], "only one of them"),
        (["--save", "x.xyz"], "x.xyz: unknown extension '.xyz'; an episode is a .json"),
        (["--against", "x.json"], "only one of them"),
    ],
)
def test_F07_a_mangled_option_is_told_in_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert main(["play", "--policy", "noop", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


def test_F07_a_config_comes_as_json_as_a_file_or_as_pairs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my config.json").write_text('{"gravity": -0.2}')
    said = set()
    for text in ('{"gravity": -0.2}', "my config.json", "gravity=-0.2", "gravity=-0.2,pipe_speed=0.3"):
        assert main(["play", "--policy", "noop", "--config", text]) == 0
        said.add(capsys.readouterr().out)
    assert len(said) == 1
    assert "floor at tick 10" in said.pop()


def test_a_policy_plays_without_a_window(run: Run, tmp_path: Path) -> None:
    done = run("flappybird", "play", "--policy", "heuristic", "--seed", "3", "--save", "episode.json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "heuristic, seed 3: 6 pipes passed, pipe 6 at tick 253, reward 79.6\n"
    assert verify(load(tmp_path / "episode.json")) == []


def test_a_policy_plays_where_pygame_is_not_installed(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['pygame'] = None; from flappybird.cli import main; raise SystemExit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", hide, "play"]
    done = subprocess.run([*command, "--policy", "noop"], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1
    assert "uv sync --extra render" in done.stderr
    assert done.stderr.count("\n") == 1


# --- in a real window ---------------------------------------------------------------------------------------------


class Desk:
    """A screen, and hands on its keyboard."""

    def __init__(self) -> None:
        self._reading, writing = os.pipe()
        self._server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(writing), "-screen", "0", "900x760x24"], pass_fds=[writing], stderr=subprocess.DEVNULL
        )
        os.close(writing)
        self.env = clean_environment(DISPLAY=f":{os.read(self._reading, 16).decode().strip()}")
        self._games: list[subprocess.Popen[str]] = []

    def start(self, *arguments: object) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", *map(str, arguments)]
        game = subprocess.Popen(command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._games.append(game)
        return game

    def press(self, *keys: str) -> None:
        subprocess.run(["xdotool", "key", *keys], env=self.env, check=True)

    def title(self) -> str:
        command = ["xdotool", "getwindowfocus", "getwindowname"]
        return subprocess.run(command, env=self.env, capture_output=True, text=True).stdout.strip()

    def until(self, said: str) -> None:
        deadline = time.monotonic() + 60
        while said not in self.title():
            assert time.monotonic() < deadline, self.title()
            time.sleep(0.05)

    def leave(self) -> None:
        for process in (*self._games, self._server):
            process.terminate()
            process.wait(10)
        os.close(self._reading)


@pytest.fixture
def desk() -> Iterator[Desk]:
    if not (shutil.which("Xvfb") and shutil.which("xdotool")):
        pytest.skip("needs Xvfb and xdotool")
    desk = Desk()
    yield desk
    desk.leave()


def test_a_person_can_play_in_a_real_window(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "me.json"
    game = desk.start("flappybird", "play", "--seed", 5, "--speed", 0.3, "--difficulty", "easy", "--save", path)
    desk.until("seed 5 - tick 0 - waiting")
    desk.press("question")
    desk.until("help")
    desk.press("F1")
    desk.until("waiting")
    desk.press("space")
    desk.until("tick 2")
    desk.press("p")
    desk.until("paused")
    desk.press("Up")
    desk.until("flying")
    desk.until("tick 4")
    desk.press("f")  # fills the screen, which pauses
    desk.until("paused")
    desk.press("f")
    time.sleep(1.0)  # the screen changes, and the focus with it
    desk.press("p")
    desk.until("over")  # it falls
    time.sleep(REST + 0.5)
    desk.press("space")
    desk.until("seed 5 - tick 0 - waiting - best 0")
    desk.press("n")
    desk.until("seed 6 - tick 0 - waiting")
    desk.press("Escape")
    out, err = game.communicate(timeout=20)
    assert (game.returncode, err) == (0, "")
    assert "seed 6" in out
    episode = load(path)
    assert verify(episode) == []
    assert episode.outcome.reason is Reason.FLOOR
    assert episode.config == level("easy")
    assert episode.turns[0].taps == (True,)
    assert sum(turn.taps[0] for turn in episode.turns) == 2


def test_a_person_flies_against_a_model(desk: Desk, tmp_path: Path) -> None:
    save(flown("heuristic", 3), tmp_path / "model.json")
    game = desk.start("flappybird", "play", "--against", tmp_path / "model.json", "--speed", 2)
    desk.until("seed 3 - tick 0")
    desk.press("space")
    desk.until("over")
    desk.press("q")
    out, err = game.communicate(timeout=20)
    assert (game.returncode, err) == (0, "")
    assert out.rstrip().endswith("; heuristic beat you: 6 to 0 pipes")
