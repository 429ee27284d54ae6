import json
from datetime import UTC, datetime

import pytest

from flappybird._version import __version__
from flappybird.episodes import rewards
from flappybird.episodes.arguments import Settings, opening, start
from flappybird.episodes.episode import save
from flappybird.errors import ConfigError, EpisodeError
from flappybird.protocol.reply import read_reply
from flappybird.runs import check, file_name, load_episode_at, load_run, open_run
from flappybird.runs.resume import alone
from flappybird.world.game import Reason
from tests.conftest import play

METADATA = {
    "env_id": "flappybird",
    "env_args": {"max_turns": 60},
    "model": "planner",
    "num_examples": 3,
    "rollouts_per_example": 1,
    "sampling_args": {"n": 1, "max_tokens": None, "temperature": 0.5, "extra_body": {}},
    "version_info": {"vf_version": "0.3.1", "env_version": __version__},
}


def saved_row(seed: int, policy: str = "heuristic", max_turns: int = 60) -> dict:
    """A row as classic vf-eval saves it, made from a played episode."""
    episode = play(policy, seed, max_turns=max_turns)
    info = Settings.of(max_turns=max_turns, seed=seed).evaluation_row(0)
    rollout = start(info)
    system, first = opening(rollout)
    completion = []
    for turn in episode.turns:
        completion.append({"role": "assistant", "content": turn.reply})
        rollout.take(turn.reply)
        if rollout.outcome is None:
            completion.append({"role": "user", "content": rollout.message()})
    data = episode.to_dict()
    turns = [{name: value for name, value in turn.items() if name != "reply"} for turn in data["turns"]]
    ending = episode.outcome
    metrics = {
        "flappy_reward_func": float(ending.pipes_passed),
        "flappy_survival_reward": ending.survival_score,
        "format_reward_func": ending.format,
        **{metric.__name__: metric(episode) for metric in rewards.ALL_METRICS},
        "num_turns": float(len(turns)),
    }
    return {
        **metrics,
        "example_id": seed,
        "prompt": [{"role": "system", "content": system}, {"role": "user", "content": first}],
        "completion": completion,
        "info": {**info, "turns": turns, "outcome": data["outcome"]},
        "reward": ending.reward,
        "metrics": metrics,
        "error": None,
        "timing": {"start_time": 1_790_000_000.0 + seed},
        "stop_condition": "tick_limit_reached" if ending.reason is Reason.TICK_LIMIT else "crashed",
        "token_usage": {"input_tokens": 100.0, "output_tokens": 10.0},
    }


def write_run(folder, rows, metadata=METADATA):
    """Write a run to `folder`; if nothing else is said, of as many examples as there are rows."""
    if metadata is METADATA and rows:
        metadata = {**METADATA, "num_examples": len(rows)}
    folder.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    (folder / "results.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if metadata is not None:
        (folder / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    return folder


def test_a_saved_run_is_read_with_all_that_is_known_of_it(tmp_path):
    run = load_run(write_run(tmp_path / "r", [saved_row(seed) for seed in (2, 0, 1)]))
    assert (run.kind, run.model, run.asked, run.damaged) == ("classic", "planner", 3, 0)
    assert run.sampling == {"n": 1, "temperature": 0.5}
    assert run.versions == {"flappybird": __version__, "verifiers": "0.3.1"}
    assert run.date == datetime.fromtimestamp(1_790_000_000, UTC)
    assert [(row.index, row.example) for row in run.rows] == [(0, 0), (1, 1), (2, 2)]
    for row in run.rows:
        assert check(row) == []
        assert row.usage == {"prompt_tokens": 100.0, "completion_tokens": 10.0}
        assert row.episode.turns == play("heuristic", row.example, max_turns=60).turns


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda row: row["completion"][20].update(content="<ACTIONS>[TAP]</ACTIONS>"), "turns[10]"),
        (
            lambda row: row["completion"][21].update(content=row["completion"][21]["content"].replace("velY:", "velY:1")),
            "observation[11]",
        ),
        (lambda row: row["prompt"][1].update(content="<FLAPPY id=0>"), "observation[0]"),
        (lambda row: row.update(reward=99.0), "reward"),
        (lambda row: row["metrics"].update(pipes_passed=7.0), "pipes_passed"),
        (lambda row: row["metrics"].update(num_turns=7.0), "num_turns"),
        (lambda row: row["info"].update(seed=77), "observation"),
        (lambda row: row["info"]["outcome"].update(pipes_passed=5), "outcome.pipes_passed"),
        (lambda row: row["info"]["turns"][10].update(actions=["TAP"]), "turns[10].actions"),
    ],
)
def test_whatever_is_changed_in_a_row_is_found(tmp_path, change, where):
    row = saved_row(3)
    assert read_reply(row["completion"][20]["content"]).actions == (False,)
    change(row)
    (read,) = load_run(write_run(tmp_path, [row])).rows
    found = check(read)
    assert any(difference.where.startswith(where) for difference in found), found
    assert found == sorted(found, key=lambda difference: difference.tick)


def test_D10_a_half_line_at_the_end_is_skipped_and_counted(tmp_path):
    whole = json.dumps(saved_row(1))
    run = load_run(write_run(tmp_path, [whole, json.dumps(saved_row(2))[:500], "[1]", "", whole]))
    assert run.damaged == 2
    assert [(row.example, row.rollout) for row in run.rows] == [(1, 0), (1, 1)]


def test_errored_and_odd_rows_are_kept_with_what_is_known(tmp_path):
    errored = saved_row(1)
    errored.update(error={"error": "ModelError", "error_chain_repr": "ModelError() -> Timeout('x\ny')"})
    foreign = {"example_id": 9, "completion": [], "reward": 1.0}
    bare = {**saved_row(2), "info": Settings.of(max_turns=60, seed=2).evaluation_row(0)}
    nan = {**saved_row(4), "reward": float("nan"), "metrics": None}
    run = load_run(write_run(tmp_path, [errored, foreign, bare, nan, {}]))
    assert len(run.rows) == 5
    by_example = {row.example: row for row in run.rows}
    assert by_example[1].error == "ModelError() -> Timeout('x y')"
    assert by_example[9].episode is None
    assert "another environment" in by_example[9].problem
    assert by_example[2].episode.outcome.reason is Reason.TICK_LIMIT  # rebuilt from its replies alone
    assert by_example[4].claims == {}
    assert by_example[None].episode is None


def test_a_row_whose_replies_and_record_disagree_says_so(tmp_path):
    row = saved_row(1)
    row["completion"] = row["completion"][:-4]
    (read,) = load_run(write_run(tmp_path, [row])).rows
    assert "the row has 58 replies, but was recorded with 60 turns" in read.problem


def test_D10_rows_of_different_settings_are_noted(tmp_path):
    run = load_run(write_run(tmp_path, [saved_row(1), saved_row(2, max_turns=50)], metadata=None))
    assert run.notes == [f"{tmp_path.name} has no metadata.json", "the rows were played under 2 different settings"]


def test_a_folder_of_episodes_is_a_run_too(tmp_path):
    for seed in range(3):
        save(play("noop", seed), tmp_path / f"episode-{seed}.json")
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    run = load_run(tmp_path)
    assert (run.kind, run.model, len(run.rows)) == ("episodes", "noop", 4)
    assert [row.episode is None for row in run.rows] == [True, False, False, False]
    assert "broken.json: not JSON" in run.rows[0].problem


def test_an_episode_is_found_by_file_or_by_its_number_in_a_run(tmp_path):
    run = write_run(tmp_path / "a:b", [saved_row(seed) for seed in (0, 1)])
    save(play("noop", 5), tmp_path / "one.json")
    assert load_episode_at(str(tmp_path / "one.json")).seed == 5
    assert load_episode_at(f"{run}:1").seed == 1
    for where, said in [
        (f"{run}:2", "N must be from 0 to 1"),
        (f"{run}", "has 2 episodes; name one as"),
        (f"{tmp_path}/none:0", "no such file or folder"),
    ]:
        with pytest.raises(EpisodeError, match=said):
            load_episode_at(where)


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(EpisodeError, match="neither an episode file, nor a folder of them, nor a saved evaluation"):
        load_run(tmp_path)
    with pytest.raises(EpisodeError, match="no such file or folder"):
        load_run(tmp_path / "none")


def test_the_file_that_is_named_is_the_one_that_is_read(tmp_path):
    write_run(tmp_path, [saved_row(1)])
    (tmp_path / "traces.jsonl").write_text('{"traces": []}\n', encoding="utf-8")
    assert load_run(tmp_path / "traces.jsonl").kind == "v1"
    assert load_run(tmp_path / "results.jsonl").kind == load_run(tmp_path).kind == "classic"


def test_names_sort_like_their_rows_however_many_there_are(tmp_path):
    assert sorted(file_name(index, rows=20_000) for index in (9_999, 10_000, 2)) == [
        file_name(index, rows=20_000) for index in (2, 9_999, 10_000)
    ]
    for index in (9_999, 10_000, 10_001):
        save(play("noop", index), tmp_path / file_name(index))
    assert [load_episode_at(f"{tmp_path}:{n}").seed for n in range(3)] == [9_999, 10_000, 10_001]
    with pytest.raises(EpisodeError, match="no such file"):
        load_episode_at(f"{tmp_path / 'episode-9999.json'}:²")


def test_rows_are_read_one_at_a_time_from_any_of_them_on(tmp_path):
    opened = open_run(write_run(tmp_path, [saved_row(2), "{half", saved_row(0)]))
    rows = list(opened)
    assert [row.example for row in rows] == [2, 0]
    assert [row.example for row in opened.rows_at(rows[1].offset)] == [0]


def test_a_folder_is_resumed_by_one_process_at_a_time(tmp_path):
    second = pytest.raises(ConfigError, match="another process is playing for it")
    with alone(tmp_path / "run"), second, alone(tmp_path / "run"):
        pass
    with alone(tmp_path / "run"):
        pass
    assert list((tmp_path / "run").iterdir()) == []
