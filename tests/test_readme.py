"""README is true: every command in it is run by a test, and what it says of the environment is what the code says."""

import json
import re
import shutil
import tomllib

import pytest

from flappybird.episodes.arguments import ARGUMENTS, Settings
from flappybird.episodes.episode import save
from flappybird.errors import ConfigError
from flappybird.protocol.prompt import system_prompt
from flappybird.protocol.rules import Rules
from flappybird.server import DEFAULT_PORT
from flappybird.world.config import FlappyConfig
from tests import docs, readme
from tests.conftest import ROOT, play, run_command
from tests.readme import PAGES, TEXT
from tests.test_vf_eval import endpoints

# Which test runs which command. A command without one fails `test_every_command_is_run_by_a_test`.
RUN_BY = {
    "pip install uv": ".ci/run",
    "uv run pytest": ".ci/run",
    "uv run flappybird demo": "test_readme.test_the_demo_does_what_readme_shows",
    "uv run vf-eval flappybird": "test_vf_eval.test_the_cards_first_command_plays_ten_games",
    "uv run vf-eval flappybird -m gpt-4.1-mini": "test_vf_eval.test_the_cards_long_command_word_for_word",
    "uv run vf-eval flappybird -m my-model": "test_vf_eval.test_any_openai_compatible_server_will_do",
    "uv run flappybird serve": "test_server.test_the_command_prints_its_port_and_stops_on_a_signal",
    "uv run vf-eval flappybird -m planner": "test_readme.test_a_run_is_taken_apart_and_filmed_as_readme_says",
    "uv run flappybird view": "view.test_view.test_the_command_says_where_and_stops_on_ctrl_c",
    "uv run flappybird": "test_readme.test_a_run_is_taken_apart_and_filmed_as_readme_says",
    "uv run python -m": "test_readme.test_a_run_is_taken_apart_and_filmed_as_readme_says",
    "uv run --extra examples python -m examples.tiny_lm": "examples.test_tiny_lm.test_from_nothing_to_a_curve_in_a_minute",
    "uv run eval": "test_readme.test_the_v1_command_plays_the_same_games",
}


def test_every_command_is_run_by_a_test():
    for command in readme.commands():
        beginnings = [known for known in RUN_BY if command == known or command.startswith(f"{known} ")]
        assert beginnings, f"no test runs: {command}"
        runner = RUN_BY[max(beginnings, key=len)]
        if runner == ".ci/run":
            script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
            assert command.removeprefix("pip ") in script.replace("--quiet --disable-pip-version-check ", "")
        else:
            # Read, not imported: what a test needs may be an extra that is not installed.
            module, _, name = runner.rpartition(".")
            assert f"\ndef {name}(" in (ROOT / "tests" / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")


def test_the_demo_does_what_readme_shows(tmp_path):
    # Nobody listens there: what runs on this machine is reached without a proxy.
    nobody = {f"{kind}_proxy": "http://127.0.0.1:9" for kind in ("http", "https", "all")}
    done = run_command(*readme.command("uv run flappybird demo"), cwd=tmp_path, no_proxy="", NO_PROXY="", **nobody)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stderr == ""  # not a terminal: no progress bar
    table = [line for line in done.stdout.splitlines() if line.startswith(("policy  ", "random  ", "heuristic  ", "planner  "))]
    shown = [line for line in TEXT.splitlines() if line.startswith(("policy  ", "random  ", "heuristic  ", "planner  "))]
    assert table == shown
    episodes = sorted((tmp_path / "outputs" / "demo" / "episodes").rglob("*.json"))
    assert len(episodes) == 9
    hint = next(line for line in done.stdout.splitlines() if line.startswith("look closer"))
    again = run_command(*hint.removeprefix("look closer").removeprefix("   uv run").split(), cwd=tmp_path)
    assert "3 of 3 verified" in again.stdout


OWN = ("demo", "serve", "view")
"""Commands of ours that other tests run."""


def taken_apart():
    """The commands by which README and docs look at a saved run, in their order."""
    for command in readme.commands():
        words = readme.words(command)
        if (words[0] == "flappybird" and words[1] not in OWN) or words[:2] == ["python", "-m"]:
            yield command, words


def test_a_run_is_taken_apart_and_filmed_as_readme_says(policy_server, tmp_path):
    endpoints(tmp_path, policy_server, "planner")
    done = run_command(*readme.command("uv run vf-eval flappybird -m planner"), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    last = done.stdout.splitlines()[-1]
    name = r"report: environments/flappybird/reports/flappybird-[\d.]+--planner--n5-r1--\w{8}\.html"
    assert re.fullmatch(rf"{name} \(all runs, live: flappybird view\)", last)
    assert (tmp_path / last.split()[1]).stat().st_size > 50_000

    for command, words in taken_apart():
        done = run_command(*_expanded(words, tmp_path), cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
        assert (done.returncode, done.stderr) == (0, ""), command
        assert done.stdout, command
        if words[1] == "verify":
            assert "5 of 5 verified" in done.stdout
    made = {path.name for path in tmp_path.iterdir()} | {path.name for path in (tmp_path / "clips").iterdir()}
    files = {word for _, words in taken_apart() for word in words if re.fullmatch(r"[\w-]+\.(mp4|gif|png|json|jsonl|html)", word)}
    assert files <= made
    assert len([name for name in made if re.fullmatch(r"episode-\d{4}\.mp4", name)]) in (1, 2)
    for name in files:
        assert (tmp_path / name).stat().st_size > 500, name


def _expanded(words, folder):
    """What a shell makes of `*`."""
    return [str(path) for word in words for path in (sorted(folder.glob(word)) if "*" in word else [word])]


def test_the_v1_command_plays_the_same_games(policy_server, tmp_path):
    words = [policy_server if "127.0.0.1" in word else word for word in readme.command("uv run eval flappybird")]
    done = run_command(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    (traces,) = tmp_path.rglob("traces.jsonl")
    verified = run_command("flappybird", "verify", str(traces.parent), cwd=tmp_path)
    assert "2 of 2 verified" in verified.stdout


def test_the_python_examples_run(capsys):
    examples = [(name, code) for name, page in PAGES.items() for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL)]
    assert {name for name, _ in examples} >= {"README.md", "docs/engines.md"}
    for name, code in examples:
        exec(compile(code, name, "exec"), {})
    assert "outcome=" in capsys.readouterr().out


def test_the_prompt_shown_is_the_prompt():
    assert system_prompt(FlappyConfig()) in PAGES["docs/prompt.md"]


def test_the_list_of_public_names_is_what_the_package_says():
    pytest.importorskip("gymnasium")
    assert PAGES["docs/api.md"] == docs.api(), "python -m tests.docs writes it anew"


def test_every_link_between_pages_leads_somewhere():
    for name, page in PAGES.items():
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page):
            assert ((ROOT / name).parent / link).exists(), f"{name} links to {link}"


def test_the_tables_name_every_field_and_argument_with_its_default():
    def rows(heading):
        section = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
        return dict(re.findall(r"^\| `(\w+)` \| [^|]*?\\?\|?[^|]*\| `?([^|`]*?)`? \|", section, re.MULTILINE))

    fields = rows("Physics")
    assert {name: float(value) for name, value in fields.items()} == {
        name: float(v) for name, v in FlappyConfig().model_dump().items()
    }
    for name in ARGUMENTS:
        assert f"| `{name}` |" in TEXT, name
    arguments = {**Rules().model_dump(), "num_examples": Settings.num_examples, "seed": Settings.seed}
    for name, value in arguments.items():
        assert re.search(rf"^\| `{name}` \| \w+ \| `{value}` \|", TEXT, re.MULTILINE), name


def test_the_card_of_the_hub_is_in_readme_and_package():
    for heading in ("Overview", "Datasets", "Task", "Quickstart", "Environment Arguments", "Metrics"):
        assert f"\n## {heading}\n" in TEXT
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["tags"] == ["rl", "game", "control", "verifiers", "real-time"]
    assert ", ".join(project["tags"]) in TEXT
    assert project["description"] in TEXT


def test_D01_the_classic_release_is_pinned_for_uv_and_for_the_extra_and_open_for_others():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert [need for need in told["project"]["dependencies"] if need.startswith("verifiers")] == ["verifiers>=0.3"]
    assert "verifiers>=0.3,<0.4" in told["project"]["optional-dependencies"]["classic"]
    assert "verifiers<0.4" in told["tool"]["uv"]["constraint-dependencies"]


def test_endpoints_name_the_built_in_policies_at_the_servers_port():
    listed = tomllib.loads((ROOT / "configs" / "endpoints.toml").read_text(encoding="utf-8"))["endpoint"]
    urls = {entry["endpoint_id"]: (entry["url"], entry["key"]) for entry in listed}
    assert urls["gpt-4.1-mini"] == ("https://api.openai.com/v1", "OPENAI_API_KEY")
    for policy in ("noop", "random", "heuristic", "planner"):
        assert urls[policy][0] == f"http://127.0.0.1:{DEFAULT_PORT}/v1"


@pytest.mark.skipif(shutil.which("uv") is None, reason="building the wheel needs uv")
def test_F07_the_wheel_alone_works_from_any_folder(tmp_path):
    import subprocess
    import sys
    import zipfile

    odd = tmp_path / "dir é #1"
    odd.mkdir()
    command = ["uv", "build", "--wheel", "--quiet", "-o", str(odd), "--python", sys.executable]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = odd.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "flappybird/pyproject.toml" in names  # where vf-eval looks for our defaults
    assert not [name for name in names if name.startswith("tests")]
    code = f"import sys; sys.path.insert(0, {str(wheel)!r})\nimport flappybird as f; print(f.__file__, f.FlappyGame().step(True))"
    told = subprocess.run([sys.executable, "-c", code], cwd="/", capture_output=True, text=True, check=True)
    assert wheel.name in told.stdout

    save(play("noop"), odd / "my ep.json")
    code = (
        f"import sys; sys.path.insert(0, {str(wheel)!r})\n"
        "import render, videos; assert '.whl' in render.__file__ and '.whl' in videos.__file__\n"
        "from render.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    for name in ("it's.mp4", "100 %.gif", "a b.png"):
        command = [sys.executable, "-c", code, str(odd / "my ep.json"), "-o", str(odd / name), "--size", "120x100"]
        told = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
        assert (told.returncode, told.stderr) == (0, "")
        assert (odd / name).stat().st_size > 500


def test_a_refused_argument_reads_as_readme_promises():
    with pytest.raises(ConfigError) as caught:
        Settings.of(**json.loads('{"max_turn": 5}'))
    assert "max_turn" in str(caught.value)
