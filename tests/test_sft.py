import json
import tomllib

import numpy as np
import pytest
from datasets import load_dataset
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from flappybird.cli import main
from flappybird.episodes import arguments
from flappybird.episodes.rollout import Rollout
from flappybird.errors import ConfigError, EpisodeError
from flappybird.gymnasium_env import FlappyBirdEnv
from flappybird.protocol.rules import Rules
from flappybird.sft import Plan, demonstrations, problems, write
from flappybird.world.course import Course
from flappybird.world.levels import level
from flappybird.world.seeds import TRAINING_SEEDS, VALIDATION_SEEDS
from flappybird.world.solver import Survival
from tests import readme
from tests.conftest import ROOT


def _lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@given(
    st.builds(
        Plan,
        games=st.just(2),
        policy=st.sampled_from(["planner", "heuristic"]),
        levels=st.sampled_from([("easy",), ("card", "easy")]),
        seed=st.integers(0, 10_000),
        rules=st.builds(
            Rules,
            max_turns=st.integers(1, 50),
            ticks_per_turn=st.sampled_from([1, 1, 3, 10]),
            latency_ticks=st.sampled_from([0, 0, 2]),
            history_turns=st.sampled_from([0, -1, 1, 4]),
            observation=st.sampled_from(["card", "signed", "ascii"]),
        ),
        perturbed=st.sampled_from([0.0, 0.5, 1.0]),
        think=st.sampled_from(["none", "short", "arithmetic"]),
        form=st.sampled_from(["messages", "prompt-completion"]),
        marks=st.booleans(),
        max_tokens=st.sampled_from([None, 12_000]),
        tokenizer=st.none(),
        validation=st.just(0.0),
    )
)
@limits(max_examples=20)
def test_every_line_verifies(tmp_path_factory, plan):
    folder = tmp_path_factory.mktemp("sft")
    write(plan, folder / "demos.jsonl", preferences=folder / "pairs.jsonl")
    for path in folder.iterdir():
        for line in path.read_text(encoding="utf-8").splitlines():
            assert problems(line) == []


def test_the_recipe_of_the_docs_fits_what_the_trainer_takes():
    words = readme.command("uv run flappybird sft -n 20")
    told = tomllib.loads((ROOT / "configs" / "sft.toml").read_text(encoding="utf-8"))
    assert int(words[words.index("--max-tokens") + 1]) <= told["data"]["seq_len"]


def test_prompts_are_word_for_word_those_of_the_environment(tmp_path):
    write(Plan(games=1, levels=("hard",), rules=Rules(max_turns=40)), tmp_path / "demos.jsonl")
    (line,) = _lines(tmp_path / "demos.jsonl")
    rollout = Rollout(level("hard"), line["seed"], Rules(max_turns=40))
    system, first = arguments.opening(rollout)
    said = [message["content"] for message in line["messages"]]
    assert said[:2] == [system, first]
    for reply, following in zip(said[2::2], [*said[3::2], None], strict=True):
        assert rollout.take(reply).format == 1.0
        if following is not None:
            assert following == rollout.message()
    assert rollout.outcome is not None
    assert rollout.outcome.tick == 40


def test_thoughts_state_the_arithmetic(tmp_path):
    write(Plan(games=1, rules=Rules(max_turns=12)), tmp_path / "demos.jsonl")
    (line,) = _lines(tmp_path / "demos.jsonl")
    gap = Course(level("card"), TRAINING_SEEDS.start).gap(0)
    assert line["messages"][2]["content"].startswith(
        "<THINK>birdY 0.00, velY 0.00. TAP: velY 1.60, birdY 1.60. No TAP: velY -0.30, birdY -0.30. No pipe ahead. "
    )
    low, high = gap.y / 10_000 - 3, gap.y / 10_000 + 3
    assert f"Next gap {low:.2f} to {high:.2f}, pipe at x 24.00." in line["messages"][22]["content"]
    assert all(len(said["content"]) < 300 for said in line["messages"][2::2])


def test_the_file_reads_as_a_data_set(tmp_path):
    write(Plan(games=3, levels=("easy", "hard"), rules=Rules(max_turns=20), perturbed=0.5), tmp_path / "demos.jsonl")
    data = load_dataset("json", data_files=str(tmp_path / "demos.jsonl"), cache_dir=str(tmp_path / "cache"))["train"]
    assert data.num_rows == 3
    assert [row["role"] for row in data[0]["messages"]][:3] == ["system", "user", "assistant"]
    assert data["difficulty"][:] == ["easy", "hard", "easy"]


def test_training_and_validation_are_on_seeds_that_never_meet(tmp_path):
    plan = Plan(games=10, rules=Rules(max_turns=10), validation=0.3)
    told = write(plan, tmp_path / "demos.jsonl")
    training, validation = _lines(tmp_path / "demos.jsonl"), _lines(tmp_path / "demos.validation.jsonl")
    assert [line["seed"] for line in training] == list(TRAINING_SEEDS[:7])
    assert [line["seed"] for line in validation] == list(VALIDATION_SEEDS[:3])
    assert "7 games, 70 turns in 7 lines" in told
    assert "3 games, 30 turns in 3 lines" in told


def test_perturbed_games_begin_off_course_and_are_saved():
    games = list(demonstrations(Plan(games=30, levels=("hard",), perturbed=1.0)))
    assert sum(game.perturbed for game in games) >= 25
    assert len({game.start.tick for game in games}) > 15
    for game in games:
        assert Survival.of(Course(level("hard"), game.seed), 300).survives(game.start)
    assert not any(game.perturbed for game in demonstrations(Plan(games=5)))


def test_a_token_cap_cuts_games_into_pieces_that_lose_no_turn(tmp_path):
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    write(Plan(games=2, rules=Rules(max_turns=100)), whole)
    write(Plan(games=2, rules=Rules(max_turns=100), max_tokens=4_000), cut)
    pieces = _lines(cut)
    assert len(pieces) > 4
    for line in _lines(whole):
        mine = [piece for piece in pieces if piece["seed"] == line["seed"]]
        assert [said for piece in mine for said in piece["messages"][1:]] == line["messages"][1:]
        assert mine[0]["turn"] == 0
    assert all(problems(piece) == [] for piece in pieces)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("birdY 0.00, velY 0.00.", "birdY 0.10, velY 0.00.", "turn 0: birdY is 0, the thought says 1000"),
        ("No TAP: velY -0.30", "No TAP: velY -0.20", "turn 0: velY without is -3000"),
        ("<ACTIONS>[]", "<ACTIONS>[TAP]", "turn 0: the thought ends in another action"),
        ("</THINK>", "", "turn 0: the reply is ok, format 0.5"),
    ],
)
def test_a_changed_reply_is_found(tmp_path, old, new, fault):
    write(Plan(games=1, rules=Rules(max_turns=1)), tmp_path / "demos.jsonl")
    (line,) = _lines(tmp_path / "demos.jsonl")
    assert problems(line) == []
    said = line["messages"][2]
    assert old in said["content"]
    said["content"] = said["content"].replace(old, new)
    assert any(found.startswith(fault) for found in problems(line))


def test_changed_prompts_seeds_and_lengths_are_found(tmp_path):
    write(Plan(games=1, rules=Rules(max_turns=3)), tmp_path / "demos.jsonl")
    text = (tmp_path / "demos.jsonl").read_text()

    def changed(change):
        line = json.loads(text)
        change(line)
        return problems(line)

    assert changed(lambda line: line.update(seed=5))[0] == "seed 5 is not one of training or validation"
    assert changed(lambda line: line["messages"][0].update(content="Fly!")) == ["the system prompt is another"]
    assert changed(lambda line: line["messages"].pop(2))[0].startswith("roles are")
    assert changed(lambda line: line["rules"].update(max_turns=2)) == ["turn 2: the game had ended (tick limit at tick 2)"]
    assert "turn 1: the observation is another" in changed(lambda line: line["messages"][3].update(content="nothing"))
    with pytest.raises(EpisodeError, match="not a line of demonstrations"):
        problems('{"a": 1}')
    with pytest.raises(EpisodeError, match="line: not JSON"):
        problems("{")


def test_numbers_are_what_the_gymnasium_environment_gives(tmp_path):
    plan = Plan(games=4, levels=("easy", "hard"), rules=Rules(max_turns=60), perturbed=0.5, validation=0.25)
    write(plan, tmp_path / "demos.jsonl", tmp_path / "numbers.npz")
    arrays = np.load(tmp_path / "numbers.npz")
    assert arrays["lengths"].sum() == len(arrays["actions"]) == len(arrays["rewards"])
    assert arrays["observations"].shape == (len(arrays["actions"]) + 4, 8)
    assert arrays["seeds"].tolist()[-1] == VALIDATION_SEEDS.start
    games = [*demonstrations(plan), *demonstrations(plan, validation=True)]
    assert arrays["actions"].tolist() == [int(tap) for game in games for tap in game.taps]
    observations, rewards = [], []
    for game in games:
        env = FlappyBirdEnv(difficulty=game.level, max_turns=None)
        observations.append(env.reset(seed=game.seed, options={"state": game.start})[0])
        for tap in game.taps:
            seen, reward, *_ = env.step(int(tap))
            observations.append(seen)
            rewards.append(reward)
    assert arrays["observations"].dtype == np.float32
    assert (arrays["observations"] == np.array(observations)).all()
    assert (arrays["rewards"] == np.array(rewards)).all()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--difficulty", "easy,hrad"], "'hrad' is not a level"),
        (["--policy", "random"], "'random' is not a policy that demonstrates anything"),
        (["-n", "0"], "-n = 0"),
        (["--seed", "-1"], "--seed = -1"),
        (["--perturbed", "1.5"], "--perturbed = 1.5: must be a share"),
        (["--validation", "nan"], "--validation = nan: must be a share"),
        (["--max-tokens", "10"], "--max-tokens = 10: must be at least"),
        (["--max-turns", "0"], "max_turns"),
        (["--ticks-per-turn", "0"], "ticks_per_turn"),
    ],
)
def test_wrong_options_are_usage_errors_of_one_line(tmp_path, words, message, capsys):
    assert main(["sft", "-o", str(tmp_path / "demos.jsonl"), *words]) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert told.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_policy_that_always_crashes_is_refused_and_leaves_no_file(tmp_path, capsys):
    (tmp_path / "demos.jsonl").write_text("older")
    assert main(["sft", "-n", "2", "--policy", "heuristic", "--difficulty", "expert", "-o", str(tmp_path / "demos.jsonl")]) == 1
    assert "heuristic got through only 0 of 40 games on expert" in capsys.readouterr().err
    assert [path.read_text() for path in tmp_path.iterdir()] == ["older"]


def test_an_unknown_policy_names_those_that_demonstrate():
    with pytest.raises(ConfigError, match="allowed: heuristic, planner"):
        Plan(policy="noop").check()
