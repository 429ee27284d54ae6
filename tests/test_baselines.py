import json
import os
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flappybird.baselines import Result, Row, baselines, human_rows, mean, share, sheet
from flappybird.cli import main
from flappybird.episodes.episode import Player, save
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.errors import ConfigError, EpisodeError
from flappybird.players.games import play
from flappybird.players.policies import POLICIES, make_policy
from flappybird.protocol.rules import Rules
from flappybird.world.game import FlappyGame
from flappybird.world.levels import LEVELS, level
from tests.conftest import play as written
from tests.worlds import worlds


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", ["card", "expert"])
def test_a_game_without_words_is_the_game_that_the_policy_plays(policy, name):
    for seed in range(3):
        game, decide = FlappyGame(level(name), seed, max_ticks=200), make_policy(policy, level(name), seed)
        while game.outcome is None:
            game.step(decide(game.observation()).tap)
        silent = play(policy, level(name), seed, 200, dice=seed)
        assert (silent.state, silent.outcome, silent.score) == (game.state, game.outcome, game.score)


@given(worlds(), st.integers(0, 10_000), st.sampled_from(["heuristic", "planner"]))
@settings(max_examples=40)
def test_and_so_it_is_in_any_world(config, seed, policy):
    game, decide = FlappyGame(config, seed, max_ticks=100), make_policy(policy, config)
    while game.outcome is None:
        game.step(decide(game.observation()).tap)
    silent = play(policy, config, seed, 100)
    assert (silent.state, silent.outcome, silent.score) == (game.state, game.outcome, game.score)


def test_rows_sum_up_what_was_played():
    (row,) = baselines(["medium"], ["heuristic"], 12, seed=5, max_turns=200)
    games = [play("heuristic", level("medium"), seed, 200) for seed in range(5, 17)]
    assert row.games == 12
    assert row.pipes.value == statistics.fmean(game.score for game in games)
    assert row.ticks.value == statistics.fmean(game.tick for game in games)
    assert row.survived.value == sum(game.truncated for game in games) / 12
    assert sum(row.reasons.values()) == 12
    assert row.pipes.low < row.pipes.value < row.pipes.high


def test_the_reward_is_that_of_the_episode_written_down():
    (row,) = baselines(["card"], ["heuristic"], 1, seed=3)
    assert row.reward.value == pytest.approx(written("heuristic", 3).outcome.reward)


def test_processes_change_nothing_but_the_time():
    asked = (["easy", "expert"], ["noop", "heuristic"], 60)
    assert baselines(*asked, max_turns=100, jobs=2) == baselines(*asked, max_turns=100, jobs=1)


def test_the_policies_rank_on_every_level():
    rows = baselines(list(LEVELS), list(POLICIES), 12)
    for name in LEVELS:
        ticks = [row.ticks.value for row in rows if row.level == name]
        assert ticks == sorted(ticks)


def _human(tmp_path, name, seed, player="Ada", difficulty="easy", **rules):
    rollout = Rollout(level(difficulty), seed, Rules(**rules))
    decide = make_policy("heuristic", level(difficulty))
    while rollout.outcome is None:
        rollout.fly([decide(rollout.observation()).tap])
    save(finish(rollout, Player(kind="human", name=player)), tmp_path / name)


def test_scores_of_people_come_from_their_episode_files(tmp_path, capsys):
    for seed in range(3):
        _human(tmp_path, f"{seed}.json", seed)
    _human(tmp_path, "3.json", 3, player="Bo", difficulty="hard")
    save(written("noop"), tmp_path / "policy.json")
    damaged = json.loads((tmp_path / "0.json").read_text())
    damaged["outcome"]["pipes_passed"] += 5
    (tmp_path / "4.json").write_text(json.dumps(damaged))

    assert main(["baselines", "-n", "2", "--difficulty", "easy,hard", "--policy", "noop", "--human", str(tmp_path)]) == 0
    told = capsys.readouterr()
    lines = told.out.splitlines()
    assert [line.split("  ")[0] for line in lines[1:]] == ["easy", "easy", "hard", "hard"]
    assert "human: Ada      3" in lines[2]
    assert "human: Bo       1" in lines[4]
    assert "left out" in told.err
    assert "outcome.pipes_passed" in told.err


def test_a_folder_without_people_is_refused(tmp_path):
    save(written("noop"), tmp_path / "a.json")
    with pytest.raises(EpisodeError, match="no episodes flown by a person"):
        human_rows(tmp_path)


def test_json_holds_the_same_numbers(capsys):
    assert main(["baselines", "-n", "3", "--difficulty", "card", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["seeds"] == [0, 2]
    assert [row["player"] for row in told["rows"]] == list(POLICIES)
    planner = told["rows"][-1]
    assert planner["pipes"] == {"value": 8.0, "low": 8.0, "high": 8.0}
    assert planner["reasons"] == {"tick_limit": 3}
    assert planner["reward"]["value"] == pytest.approx(97.04)


def test_a_certificate_is_printed_when_asked_for(capsys):
    assert main(["baselines", "-n", "1", "--difficulty", "expert", "--policy", "noop", "--certify"]) == 0
    assert "expert: 10,000 of seeds 0 to 9,999 can be flown to tick 300\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--difficulty", "hrad"], "'hrad' is not a level; did you mean 'hard'"),
        (["--policy", "plan"], "'plan' is not a policy; did you mean 'planner'"),
        (["-n", "0"], "-n = 0"),
        (["--seed", "-1"], "--seed = -1"),
        (["--jobs", "0"], "--jobs = 0"),
        (["--max-turns", "0"], "--max-turns = 0"),
    ],
)
def test_wrong_options_are_usage_errors_of_one_line(words, message, capsys):
    assert main(["baselines", *words]) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert told.err.count("\n") == 1
    assert told.out == ""


def test_levels_and_policies_are_checked_before_anything_is_played():
    with pytest.raises(ConfigError):
        baselines(["card", "nope"], ["noop"], 1)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at /proc for the processes")
@pytest.mark.parametrize("later", [0.0, 1.0])
def test_F04_ctrl_c_ends_all_processes_with_130_and_at_most_one_line(later):
    command = [sys.executable, "-m", "flappybird", "baselines", "-n", "50000", "--jobs", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as run:
        children = Path(f"/proc/{run.pid}/task/{run.pid}/children")
        while len(children.read_text().split()) < 2 and run.poll() is None:
            time.sleep(0.02)
        time.sleep(later)
        os.killpg(run.pid, signal.SIGINT)
        try:
            out, err = run.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            raise
    assert run.returncode == 130
    assert out == ""
    assert err.count("\n") <= 1
    assert "Traceback" not in err


def test_intervals_are_normal_and_wilsons():
    # Normal: 1.96 standard errors; Wilson: 8 of 10 gives 0.490 to 0.943.
    values = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    reach = 1.959964 * statistics.stdev(values) / 10**0.5
    assert mean(values) == pytest.approx((5.5, 5.5 - reach, 5.5 + reach), rel=1e-6)
    assert share(8, 10) == pytest.approx((0.8, 0.4901625, 0.9433178))
    assert share(0, 10).low == 0.0
    assert share(10, 10).high == 1.0
    assert mean([4]) == (4, 4, 4)
    assert mean([0, 0, 0, 1]).low == 0


def test_the_table_is_set_in_columns():
    row = Row.of("hard", "human: A", [Result(3, 120, 30.0, "pipe"), Result(8, 300, 97.0, "tick_limit")])
    head, line = sheet([row]).splitlines()
    assert line.index("1 pipe, 1 tick limit") == head.index("how it ended")
    assert " 5.50 " in line
    assert "50.0 %" in line
