"""The walls of the house: which way imports point, what loads what, what is public."""

import ast
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import flappybird
from tests.conftest import ROOT

FLOORS = """
errors _version
system world
protocol kernel
batch
episodes
players runs analysis
render messages baselines cost demonstrations server
videos gymnasium_env report sft
vf_eval view
classic taskset harness demo rollouts
cli_runs
cli
__main__
"""
"""The house from the ground up: rooms of one floor do not know each other, none knows one above it."""

RANK = {room: floor for floor, rooms in enumerate(FLOORS.strip().splitlines()) for room in rooms.split()}

INSIDE = """
world: units seeds | config | levels course observation | game | solver | certify
protocol: rules window | prompt reply observe
episodes: rollout | episode | rewards arguments | verify
players: sight | policies | games
runs: run | saved lines | trace | folder results traces | check resume load frame training | entries | index | __init__
system: signals install loopback memory network table | files command jobs tokens
server: chat | answers | __init__
demonstrations: plan tokens | thoughts | games | lines check arrays | many
view: listing guard | app | __init__
gymnasium_env: arguments pictures | single vector | __init__
"""
"""The floors within a wing."""

HONEST = {("render/__main__.py", "videos")}
"""`render` hands its frames to `videos` when it is asked for a file."""

HEAVY = (
    "verifiers",
    "numba",
    "numpy",
    "pygame",
    "pydantic",
    "starlette",
    "datasets",
    "tqdm",
    "imageio",
    "matplotlib",
    "jinja2",
    "pandas",
    "joblib",
)


def imports(path: Path) -> set[str]:
    """The modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def room_of(parts: Sequence[str]) -> str:
    """The room or wing that a path or a module belongs to: `world`, `server`, `render`."""
    return parts[1] if parts[0] == "flappybird" and len(parts) > 1 else parts[0]


PATHS = sorted(path for top in ("flappybird", "render", "videos") for path in (ROOT / top).rglob("*.py"))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_arrow_runs_back_up(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    room = room_of(parts)
    if parts == ("flappybird", "__init__"):
        return  # the face: it loads all of them, each when it is touched
    assert room in RANK, f"{room} has no place in the house"
    for module in imports(path):
        there = module.split(".")
        if there[0] not in ("flappybird", "render", "videos") or (str(path.relative_to(ROOT)), there[0]) in HONEST:
            continue
        other = room_of(there)
        if other in RANK and other != room:
            assert RANK[other] < RANK[room], f"{room} imports {other}"
        assert other in RANK or other in ("flappybird", *flappybird.__all__), f"{room} imports {other}, which has no place"


@pytest.mark.parametrize("wing", INSIDE.strip().splitlines(), ids=lambda line: line.split(":")[0])
def test_no_arrow_runs_back_up_within_a_wing(wing):
    name, floors = wing.split(":")
    rank = {room: floor for floor, rooms in enumerate(floors.split("|")) for room in rooms.split()}
    for path in (ROOT / "flappybird" / name).glob("*.py"):
        if path.stem == "__init__" and "__init__" not in rank:
            assert not imports(path)
            continue
        assert path.stem in rank, f"{name}/{path.stem} has no place in its wing"
        for module in imports(path):
            there = module.split(".")
            if there[:2] == ["flappybird", name] and len(there) > 2:
                assert there[2] in rank, f"{name}/{path.stem} imports {module}"
                assert rank[there[2]] < rank[path.stem], f"{name}/{path.stem} imports {module}"


def test_the_ground_floor_knows_no_library_but_pydantic():
    known = {*sys.stdlib_module_names, "flappybird", "pydantic"}
    for path in (ROOT / "flappybird" / "world").glob("*.py"):
        assert {module.split(".")[0] for module in imports(path)} <= known, path.name


@pytest.mark.parametrize("path", sorted((ROOT / "flappybird").rglob("*.py")), ids=lambda path: path.stem)
def test_only_the_doors_know_their_libraries(path):
    roots = {module.split(".")[0] for module in imports(path)}
    assert "pygame" not in roots
    assert "imageio" not in roots
    if path.stem not in ("classic", "taskset", "harness"):
        assert "verifiers" not in roots


def test_the_classic_door_knows_no_command_line_no_saved_run_and_no_report():
    known = imports(ROOT / "flappybird" / "classic.py")
    assert not known & {"sys", "atexit", "flappybird.runs", "flappybird.report"}


def loaded_by(code: str) -> set[str]:
    script = f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(json.loads(told.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "code",
    [
        "import flappybird",
        "from flappybird import cli\ntry: cli.main(['--help'])\nexcept SystemExit: pass",
        "from flappybird import cli\ntry: cli.main(['serve', '--help'])\nexcept SystemExit: pass",
    ],
)
def test_importing_the_package_and_asking_for_help_load_nothing_heavy(code):
    assert not loaded_by(code) & set(HEAVY)


def test_playing_a_game_loads_neither_verifiers_nor_numpy_nor_pygame():
    assert not loaded_by("from flappybird import FlappyGame\nFlappyGame().step(True)") & {
        "verifiers",
        "numpy",
        "pygame",
        "datasets",
    }


def test_everything_public_is_there():
    for name in flappybird.__all__:
        assert getattr(flappybird, name) is not None
    assert set(flappybird.__all__) <= set(dir(flappybird))
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = flappybird.nothing


def test_without_the_classic_api_one_line_says_what_to_install(tmp_path):
    # A stand-in for a release of verifiers that dropped it.
    (tmp_path / "verifiers.py").write_text("__version__ = '0.4.0'\n", encoding="utf-8")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\nimport flappybird\n"
        "try: flappybird.load_environment()\nexcept ImportError as error: print(error)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert "the extra [classic] brings it" in told.stdout
    assert told.stdout.count("\n") == 1
