"""Advice about what to install names this copy, never the index, where the package of this name is somebody else's."""

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from flappybird.errors import MissingPart
from flappybird.system import install
from tests.conftest import ROOT

BARE = re.compile(
    r"(?:pip install|uv add|uv tool install|uvx|pipx install)(?:[^\n`]*?[\s'\"=])flappybird(?:\[[^\]\n]*\])?+(?![\w.-]*/| @ )"
)
"""A command that would ask an index for `flappybird`: the name not followed by ` @ ADDRESS`."""


def test_the_pattern_knows_what_asks_an_index():
    for line in ("pip install flappybird", "pip install -U 'flappybird[videos]'", "uv add flappybird", "uvx flappybird demo"):
        assert BARE.search(line), line
    for line in (
        "pip install '.[videos]'",
        "pip install 'flappybird[videos] @ git+https://example.org/x'",
        "uv sync --extra videos",
    ):
        assert not BARE.search(line), line


def test_nothing_anywhere_names_flappybird_to_an_index():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    found = []
    for name in filter(None, listed):
        path = ROOT / name
        if (
            path.suffix in (".py", ".md", ".toml", ".html", ".js", ".yml", ".j2", "")
            and path.is_file()
            and path != Path(__file__)
        ):
            text = path.read_text(encoding="utf-8", errors="replace")
            found += [f"{name}: {match[0]}" for match in BARE.finditer(text)]
    assert not found


def stated(monkeypatch, tmp_path, direct_url):
    """Let this copy be one installed into site-packages, with that `direct_url.json`."""
    monkeypatch.setattr(install, "HOME", tmp_path / "site-packages")

    class Distribution:
        def read_text(self, name):
            assert name == "direct_url.json"
            return None if direct_url is None else json.dumps(direct_url)

    monkeypatch.setattr(metadata, "distribution", lambda name: Distribution())


@pytest.mark.parametrize(
    ("direct_url", "advice"),
    [
        ({"url": "file:///home/me/my%20flappy", "dir_info": {}}, "`pip install '/home/me/my flappy[videos]'`"),
        (
            {"url": "https://example.org/f.git", "vcs_info": {"vcs": "git", "commit_id": "1" * 40}},
            "`pip install 'flappybird[videos] @ git+https://example.org/f.git'`",
        ),
        (
            {"url": "https://example.org/f.git", "vcs_info": {"vcs": "git", "requested_revision": "v1", "commit_id": "1" * 40}},
            "`pip install 'flappybird[videos] @ git+https://example.org/f.git@v1'`",
        ),
        (
            {"url": "https://example.org/flappybird-0.1.0.tar.gz", "archive_info": {}},
            "`pip install 'flappybird[videos] @ https://example.org/flappybird-0.1.0.tar.gz'`",
        ),
    ],
)
def test_advice_names_where_this_copy_came_from(monkeypatch, tmp_path, direct_url, advice):
    stated(monkeypatch, tmp_path, direct_url)
    assert install.how_to_add("videos") == advice


@pytest.mark.parametrize("direct_url", [None, {}, {"url": 3}])
def test_where_nothing_is_known_no_command_is_made_up(monkeypatch, tmp_path, direct_url):
    stated(monkeypatch, tmp_path, direct_url)
    advice = install.how_to_add("videos")
    assert "pip install" not in advice
    assert "`videos`" in advice


def test_in_a_checkout_advice_names_the_checkout():
    assert install.how_to_add("videos").startswith(f"`uv sync --extra videos` in {ROOT}")


def test_the_version_says_where_it_runs_from():
    told = subprocess.run([sys.executable, "-m", "flappybird", "--version"], capture_output=True, text=True, check=True, cwd=ROOT)
    assert str(ROOT / "flappybird") in told.stdout


@pytest.mark.parametrize("shape", ["module", "package"])
def test_a_render_of_the_users_own_is_named(tmp_path, shape):
    if shape == "module":
        (tmp_path / "render.py").write_text("")
    else:
        (tmp_path / "render").mkdir()
        (tmp_path / "render" / "__init__.py").write_text("")
    mine = tmp_path / ("render.py" if shape == "module" else "render")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); sys.path.append({str(ROOT)!r})\n"
        "from flappybird.system.install import sibling\n"
        "from flappybird.errors import MissingPart\n"
        "try: sibling('render.scene', 'pictures need the renderer', 'render')\n"
        "except MissingPart as error: print(error)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert told.stdout.startswith(f"{mine} shadows this package's render")
    assert told.stdout.count("\n") == 1


def test_a_part_that_is_missing_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "render.scene", None)
    with pytest.raises(MissingPart, match=r"pictures need pygame; the extra \[render\] brings it: "):
        install.sibling("render.scene", "pictures need pygame", "render")
