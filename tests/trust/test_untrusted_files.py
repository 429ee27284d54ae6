"""Files from strangers: bounded in size and time, refused in one line, and never a way to anything else."""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from flappybird import cli
from flappybird.episodes.episode import from_dict, load, save
from flappybird.episodes.rollout import Rollout
from flappybird.episodes.verify import verify
from flappybird.errors import EpisodeError, FlappyError, TooMuchWork, printable, show
from flappybird.players.policies import make_policy
from flappybird.protocol.rules import Rules
from flappybird.runs import load_run
from flappybird.system import files
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course
from flappybird.world.observation import read_observation
from flappybird.world.solver import Survival, passable
from tests.conftest import ROOT, play
from tests.runs.test_load import METADATA, saved_row, write_run

NESTED: Any = 0
for _ in range(60):
    NESTED = [NESTED]


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


CHANGES = [
    (lambda d: d["turns"][0].update(waited=2**53), None),
    (lambda d: d["turns"][0].update(waited=2**53 + 1), "turns.0.waited"),
    (lambda d: d["turns"][0].update(tick=10**400), "turns.0.tick"),
    (lambda d: d.update(seed=10**400), "seed"),
    (lambda d: d["rules"].update(max_turns=10**400), "max_turns"),
    (lambda d: d["rules"].update(max_turns=1_000_000), None),
    (lambda d: d["rules"].update(latency_ticks=10**9), "latency_ticks"),
    (lambda d: d["rules"].update(ticks_per_turn=10**9), "ticks_per_turn"),
    (lambda d: d["outcome"].update(ticks=2**53), None),
    (lambda d: d["outcome"].update(pipe=10**30), "outcome.pipe"),
    (lambda d: d["config"].update(world_h=1e300), "world_h"),
    (lambda d: d["config"].update(gravity=-1e-300), "gravity"),
    (lambda d: d["config"].update(easy_mode_pipes=10**400), "easy_mode_pipes"),
    (lambda d: d.update(origin={"a": NESTED}), "origin"),
    (lambda d: d["player"].update(sampling={"a": NESTED}), "player.sampling"),
    (lambda d: d["player"].update(sampling=[1]), "player.sampling"),
    (lambda d: d["player"].update(name="\ud800\x1b[2J\u202e" * 1000), None),
    (lambda d: d["outcome"].update(error="\x00" * 100_000), None),
    (lambda d: d.update({"__class__": "os.system", "__reduce__": ["os.system", ["id"]]}), "__class__"),
]


@pytest.mark.parametrize(("change", "refused"), CHANGES)
def test_huge_numbers_and_deep_nesting_are_refused_or_cost_nothing(tmp_path, change, refused):
    data = play("noop").to_dict()
    change(data)
    (tmp_path / "e.json").write_text(json.dumps(data), encoding="utf-8")
    started = time.thread_time()
    if refused:
        with pytest.raises(EpisodeError, match=refused) as caught:
            load(tmp_path / "e.json")
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 1_000
    else:
        episode = load(tmp_path / "e.json")
        verify(episode)
        assert from_dict(json.loads(episode.to_json())) == episode
    assert time.thread_time() - started < 2


@pytest.mark.parametrize(
    "content",
    [
        '{"format": "flappybird-episode", "seed": 1e999}',
        '{"format": "flappybird-episode", "origin": {"a": -1e999}}',
        '{"format": ' + "9" * 5_000 + "}",
        '{"format": -Infinity}',
        *[f'{{"format": {nested(depth)}}}' for depth in (10, 200, 480, 700, 960, 3_000, 100_000)],
        *[
            f'{{"format": "flappybird-episode", "version": 1, "physics": 1, "config": {nested(depth)}}}'
            for depth in (200, 480, 960)
        ],
        "\ufeff{}",
        '{"format": "\\ud800"}',
    ],
)
def test_json_that_few_readers_survive_is_refused_in_one_line(tmp_path, content):
    (tmp_path / "e.json").write_text(content, encoding="utf-8")
    with pytest.raises(EpisodeError) as caught:
        load(tmp_path / "e.json")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1_000


def test_numbers_that_no_json_can_give_back_never_get_into_an_episode(tmp_path):
    metadata = {**METADATA, "sampling_args": {"temperature": float("nan"), "deep": NESTED}}
    run = load_run(write_run(tmp_path / "r", [saved_row(1)], metadata=metadata))
    assert any("sampling" in note for note in run.notes)
    save(run.rows[0].episode, tmp_path / "e.json")
    assert load(tmp_path / "e.json") == run.rows[0].episode


TOML = [
    "a = " + "[" * 3_000 + "]" * 3_000,
    "sampling = 1979-05-27T07:32:00Z",
    "[sampling]\ntemperature = nan\nsince = 1979-05-27",
    "[env.taskset]\nseed = 1979-05-27\nconfig = [[[[1]]]]\nmax_turns = inf",
    "model = 07:32:00",
    "num_tasks = 9223372036854775807\nnum_rollouts = -1",
]


@pytest.mark.parametrize("toml", TOML, ids=range(len(TOML)))
def test_a_saved_config_of_v1_may_hold_anything(tmp_path, toml, capsys):
    (tmp_path / "traces.jsonl").write_text('{"traces": [{"info": {"episode": {}}}, 7]}\n{"traces": 7}\n[]\n', encoding="utf-8")
    (tmp_path / "config.toml").write_text(toml, encoding="utf-8")
    assert cli.main(["verify", str(tmp_path)]) == 1
    assert cli.main(["report", str(tmp_path), "--json"]) in (0, 1)
    assert cli.main(["report", str(tmp_path), "-o", str(tmp_path / "page.html")]) in (0, 1)
    assert "Traceback" not in capsys.readouterr().err


def test_a_file_or_a_line_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    from flappybird.episodes import episode
    from flappybird.runs import lines

    monkeypatch.setattr(episode, "MAX_BYTES", 2_000)
    monkeypatch.setattr(lines, "MAX_BYTES", 2_000)
    save(play("noop"), tmp_path / "e.json")
    with pytest.raises(EpisodeError, match="the most that is read"):
        load(tmp_path / "e.json")
    with pytest.raises(EpisodeError, match="line 1 is larger than"):
        load_run(write_run(tmp_path / "r", [saved_row(1)]))
    if Path("/dev/zero").exists():
        with pytest.raises(EpisodeError, match="the most that is read"):
            files.read_bytes(Path("/dev/zero"), 1_000_000)


# --- worlds that are dear to search ---

EVIL = {
    "fine": {"gravity": -0.0001, "jump_impulse": 0.0003, "world_h": 1000.0},
    "slow": {"gravity": -0.0001, "world_w": 1000.0, "pipe_speed": 0.0125, "pipe_spawn_interval": 10_000},
    "crowded": {"gravity": -0.2999, "world_w": 100.0, "pipe_spawn_interval": 2, "pipe_width": 0.1},
}


@pytest.mark.parametrize("world", EVIL)
def test_an_evil_config_makes_no_command_slow(tmp_path, world):
    config = FlappyConfig(**EVIL[world])
    started = time.thread_time()
    with contextlib.suppress(TooMuchWork):
        passable(Course(config, 1), 1_000_000)
    episode = play("planner", 1, config, max_turns=12)
    data = episode.to_dict()
    data["rules"]["max_turns"] = 1_000_000  # a small file that promises a long course
    data["outcome"]["reason"] = "aborted"
    (tmp_path / "e.json").write_text(json.dumps(data), encoding="utf-8")
    assert cli.main(["verify", str(tmp_path / "e.json")]) in (0, 1)
    report = pytest.importorskip("flappybird.report", reason="there is no report")
    assert report.report([str(tmp_path)], tmp_path / "page.html", None, "html") == 0
    assert time.thread_time() - started < 30


def test_a_search_that_is_too_much_work_says_so_and_costs_nothing():
    course = Course(FlappyConfig(**EVIL["fine"]), 1)
    with pytest.raises(TooMuchWork, match="an exact search over 2000 ticks of .* heights each is too much work"):
        Survival.of(course, 2_000)
    assert issubclass(TooMuchWork, FlappyError)


def test_observations_that_are_made_up_cost_a_policy_nothing():
    config = FlappyConfig()
    seen = str(play("noop").config and Rollout(config, 1, Rules()).observation())
    for pipes in (
        "(999999999,0)",
        "(-999999999,0)",
        "(24.00,999999999)",
        ",".join(["(9.00,0.00)"] * 200),
        "(4,0),(4,0),(4.0001,1)",
    ):
        for other in ("birdY:0.00", "birdY:999999999", "birdY:-0.0001"):
            made_up = read_observation(seen.replace("pipes:[]", f"pipes:[{pipes}]").replace("birdY:0.00", other))
            assert made_up is not None
            for policy in ("noop", "random", "heuristic", "planner"):
                started = time.thread_time()
                make_policy(policy, config, 1)(made_up)
                assert time.thread_time() - started < 1
    assert read_observation(seen.replace("pipes:[]", f"pipes:[{','.join(['(9.00,0.00)'] * 201)}]")) is None


# --- nothing but data ---

SECRET = "the-secret-of-another-file"


def test_no_path_from_inside_a_file_is_ever_opened(tmp_path):
    secret = tmp_path / "outside" / "secret.json"
    secret.parent.mkdir()
    secret.write_text(f'"{SECRET}"', encoding="utf-8")
    row = saved_row(1)
    names = {"path": str(secret), "include": f"file://{secret}", "video": str(secret), "$ref": str(secret)}
    row.update(names, example_id=1, model=str(secret), state_columns=[str(secret)])
    row["info"].update(names)
    metadata = {
        **METADATA,
        **names,
        "num_examples": 1,
        "model": f"../../{secret}",
        "path_to_save": str(secret),
        "env_id": str(secret),
    }
    inside = tmp_path / "run"
    write_run(inside, [row], metadata=metadata)
    data = play("noop").to_dict()
    data["player"]["name"] = str(secret)
    data["origin"] = {"run": str(secret), **names}
    (tmp_path / "episodes").mkdir()
    (tmp_path / "episodes" / "e.json").write_text(json.dumps(data), encoding="utf-8")
    script = """
import sys
touched = []
files = ("open", "os.listdir", "os.scandir", "os.remove", "os.rename", "os.mkdir")
others = ("subprocess.Popen", "os.system", "socket.connect", "pickle.find_class")
sys.addaudithook(lambda event, args: touched.append((event, str(args[0]))) if event in files + others else None)
from flappybird import cli
import pathlib
out = pathlib.Path(sys.argv[3])
commands = [["verify", *sys.argv[1:3]], ["episodes", sys.argv[1], "-o", str(out / "eps")]]
try:
    import flappybird.report
    commands += [["report", sys.argv[1], "-o", str(out / "a.html")], ["report", sys.argv[2], "-o", str(out / "b.html")]]
except ImportError:
    pass
codes = [cli.main(command) for command in commands]
for event, name in touched:
    print("TOUCHED", event, name)
print("CODES", codes)
"""
    out = tmp_path / "out"
    out.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script, str(inside), str(tmp_path / "episodes"), str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "CODES [0" in done.stdout, done.stdout + done.stderr
    touched = [line for line in done.stdout.splitlines() if line.startswith("TOUCHED")]
    assert any("results.jsonl" in line for line in touched)  # the hook sees what is opened
    assert not [line for line in touched if "outside" in line]
    assert not [
        line for line in touched if line.split()[1] in ("subprocess.Popen", "os.system", "socket.connect", "pickle.find_class")
    ]
    assert all(SECRET not in file.read_text(encoding="utf-8") for file in out.rglob("*") if file.is_file())
    assert secret.read_text(encoding="utf-8") == f'"{SECRET}"'


def test_no_part_of_us_unpickles_or_evaluates_anything():
    for folder in ("flappybird", "render", "videos"):
        for file in (ROOT / folder).rglob("*.py"):
            text = file.read_text(encoding="utf-8")
            for word in ("pickle", "marshal", "shelve", "yaml", "eval(", "exec(", "os.system", "shell=True", "allow_pickle=True"):
                assert word not in text.replace("vf-eval(", "").replace("_eval(", ""), f"{file.name} says {word}"


def test_a_file_that_a_killed_process_left_behind_is_no_episode(tmp_path):
    save(play("noop"), tmp_path / "episode-0000.json")
    (tmp_path / ".episode-0001-x7f3.json").write_text('{"format": "flappy', encoding="utf-8")
    assert len(load_run(tmp_path).rows) == 1


# --- names that a terminal would obey ---

OBEYED = "\x1b]0;owned\x07\x1b[2J\u202egpj.exe\u2066\ud800\x9b31m\x00\u200b"


def test_what_is_printed_of_a_name_is_only_shown():
    assert printable("a\tb\nc é 🐦") == "a\tb\nc é 🐦"
    assert printable(OBEYED) == "\\x1b]0;owned\\x07\\x1b[2J\\u202egpj.exe\\u2066\\ud800\\x9b31m\\x00\\u200b"
    assert show(10**5_000) == "<int>"
    assert show(json.loads(nested(900))).startswith("[[[") or show(json.loads(nested(900))) == "<list>"


def _is_harmless(text: str) -> bool:
    return all(char.isprintable() or char in "\n\t\r" for char in text)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_control_characters_of_a_file_never_reach_the_terminal(tmp_path, encoding):
    name = "run\x1b[31m\u202e é"
    row = saved_row(1)
    row["completion"][0]["content"] = OBEYED
    row.update(error={"error": OBEYED, "message": OBEYED}, example_id=OBEYED)
    broken = {**saved_row(2), "info": {"seed": OBEYED, "config": {OBEYED: 1}}}
    folder = write_run(tmp_path / name, [row, broken, {"example_id": OBEYED}], metadata={**METADATA, "model": OBEYED})
    commands = [["verify", str(folder)], ["episodes", str(folder), "-o", str(tmp_path / name / "out")]]
    commands += [["verify", str(tmp_path / f"none{name}.json")]]
    if (ROOT / "flappybird" / "report").is_dir():
        commands += [["report", str(folder), "--text"], ["report", str(folder), "--json"]]
    env = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    for words in commands:
        command = [sys.executable, "-m", "flappybird", *words]
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, timeout=60, check=False)
        said = (done.stdout + done.stderr).decode(encoding)
        assert "Traceback" not in said, said[-1_500:]
        assert _is_harmless(said), [char for char in said if not char.isprintable() and char not in "\n\t\r"]
        assert done.returncode in (0, 1)
        assert said
