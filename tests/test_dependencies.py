"""What is imported is declared, and what is declared is imported."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib import metadata

import pytest

from tests.conftest import ROOT

OURS = ("flappybird", "render", "videos")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GIVEN = PROJECT["project"]["dependencies"]
EXTRAS = PROJECT["project"]["optional-dependencies"]

CLUSTERS = {"ray", "distributed"}
"""Whoever has a cluster has its library, in its release."""


def named(needs: list[str]) -> set[str]:
    """The distributions that requirements name, as the index spells them."""
    found = {re.match(r"[\w.-]+", need)[0].lower().replace("_", "-") for need in needs if isinstance(need, str)}
    return found - {"flappybird"}


DECLARED = named(GIVEN) | named([need for needs in EXTRAS.values() for need in needs])


def imported(folder: str) -> dict[str, set[str]]:
    """The modules of others that the files of a folder import, anywhere in them, each with those files."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "import_module":
                names = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            for name in names:
                top = name.partition(".")[0]
                if top not in sys.stdlib_module_names and top not in (*OURS, "examples", "tests"):
                    found.setdefault(top, set()).add(str(path.relative_to(ROOT)))
    return found


INSTALLED = cache(metadata.packages_distributions)


def distributions(module: str) -> set[str]:
    """The distributions that bring a module, by the names that are declared."""
    return {name.lower().replace("_", "-") for name in INSTALLED().get(module, [module])}


@pytest.mark.parametrize("folder", [*OURS, "examples"])
def test_every_library_that_is_imported_is_declared(folder):
    declared = DECLARED | CLUSTERS
    undeclared = {module: files for module, files in imported(folder).items() if not distributions(module) & declared}
    assert undeclared == {}


def test_every_library_that_the_tests_import_is_declared_or_theirs():
    groups = PROJECT["dependency-groups"]
    allowed = DECLARED | named(groups["dev"]) | named(groups["trust"])
    # A peer that benchmarks install for themselves; openai comes with verifiers, and its client is asked for where it is there.
    allowed |= {"flappy-bird-gymnasium", "openai"}
    undeclared = {module: files for module, files in imported("tests").items() if not distributions(module) & allowed}
    assert undeclared == {}


def test_every_library_that_is_declared_is_imported():
    used = {name for folder in (*OURS, "examples") for module in imported(folder) for name in distributions(module)}
    assert used | {"pyarrow"} >= DECLARED  # pandas asks for it by name as it writes Parquet
