"""The walls of the house: which way imports point, what loads what, what is public."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import flappybird
from tests.conftest import ROOT

LAYERS = [
    ["units", "errors", "signals"],
    ["files", "config"],
    ["course", "levels", "options"],
    ["observation"],
    ["game"],
    ["text", "solver", "batch"],
    ["rollout", "policies", "certify"],
    ["episode", "views"],
    ["rewards"],
    ["records", "analysis"],
    ["settings", "solo"],
    ["pictures"],
    ["runs", "gymnasium_env"],
    ["cost"],
    ["report", "baselines", "sft"],
    ["classic", "server", "taskset"],
    ["demo"],
    ["cli"],
    ["__main__"],
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
HEAVY = ("verifiers", "numba", "numpy", "pygame", "pydantic", "starlette", "datasets", "tqdm", "imageio", "matplotlib")


def imports(path: Path) -> set[str]:
    """The modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("path", sorted((ROOT / "flappybird").glob("*.py")), ids=lambda path: path.stem)
def test_arrows_point_one_way(path):
    if path.stem == "__init__":
        return
    assert path.stem in RANK, f"{path.stem} has no place in the house"
    for module in imports(path):
        parts = module.split(".")
        if parts[0] == "flappybird" and len(parts) > 1 and parts[1] in RANK:
            assert RANK[parts[1]] < RANK[path.stem] or parts[1] == path.stem, f"{path.stem} imports {parts[1]}"


@pytest.mark.parametrize("path", sorted((ROOT / "flappybird" / "report").glob("*.py")), ids=lambda path: path.stem)
def test_the_report_knows_only_what_lies_below_it(path):
    for module in imports(path):
        parts = module.split(".")
        assert parts[0] not in ("render", "videos")
        if parts[0] == "flappybird" and len(parts) > 1 and parts[1] in RANK:
            assert RANK[parts[1]] <= RANK["report"], f"report/{path.stem} imports {parts[1]}"


@pytest.mark.parametrize("path", sorted((ROOT / "flappybird").rglob("*.py")), ids=lambda path: path.stem)
def test_only_the_doors_know_their_libraries(path):
    roots = {module.split(".")[0] for module in imports(path)}
    assert "pygame" not in roots
    assert "imageio" not in roots
    if path.stem not in ("classic", "taskset"):
        assert "verifiers" not in roots


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
    assert "pip install 'flappybird[classic]'" in told.stdout
    assert told.stdout.count("\n") == 1
