"""`examples/tiny_lm`: the parts by their properties, and the whole of it in a minute."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter

import pytest

pytest.importorskip("jax", reason="needs the extra `examples`")
pytest.importorskip("optax", reason="needs the extra `examples`")
pytest.importorskip("tokenizers", reason="needs the extra `examples`")

import numpy as np
from starlette.testclient import TestClient

from examples.tiny_lm import data, evaluate, model, play, rl, serve, tokens
from flappybird.episodes.arguments import Settings, start
from flappybird.episodes.episode import Player
from flappybird.episodes.rewards import finish, turn_rewards
from flappybird.protocol.prompt import system_prompt
from flappybird.protocol.reply import Status, read_reply
from flappybird.runs import check, load_run
from flappybird.sft import Plan, demonstrations
from flappybird.world.game import Reason
from flappybird.world.levels import level
from flappybird.world.seeds import TRAINING_SEEDS, VALIDATION_SEEDS
from tests.conftest import ROOT

ENVIRONMENT = {**os.environ, "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with data of four games, and an untrained checkpoint."""
    folder = tmp_path_factory.mktemp("tiny_lm")
    data.make(4, "easy", folder)
    tokenizer, turns = data.load(folder)
    shape = model.Shape(tokenizer.get_vocab_size(), turns.prompts.shape[1], turns.replies.shape[1])
    (folder / "seed0").mkdir()
    model.save(folder / "seed0" / "untrained.npz", shape, model.init(shape, 0), pipes=0.0)
    return folder


@pytest.fixture(scope="module")
def player(made):
    shape, weights, _ = model.load(made / "seed0" / "untrained.npz")
    return play.Player(tokens.load(made / "tokenizer.json"), shape, weights)


@pytest.mark.parametrize("text", ["", "birdY:-0.05", "<THINK>Grüße, 12.5 🐦</THINK>", system_prompt(level("hard")), "a\nb  c"])
def test_any_text_is_encoded_and_comes_back(made, text):
    tokenizer = tokens.load(made / "tokenizer.json")
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_an_integer_part_is_one_token_with_its_sign_and_the_decimals_are_another(made):
    tokenizer = tokens.load(made / "tokenizer.json")
    seen = next(iter(demonstrations(Plan(games=1, levels=("easy",))))).seen[100]
    parts = [tokenizer.decode([token]) for token in tokenizer.encode(seen).ids]
    assert "".join(parts) == seen
    assert all(sum(part.count(digits) for digits in ".0123456789") <= 3 or "bird" in part for part in parts)
    assert len(parts) < 30


def test_demonstrations_are_legal_replies_with_one_sentence_of_thought(made):
    tokenizer, turns = data.load(made)
    replies = Counter(tokenizer.decode(row[row != 0].tolist()) for row in turns.replies)
    assert len(replies) >= 3
    for text in replies:
        reply = read_reply(text)
        assert (reply.status, reply.format) == (Status.OK, 1.0)
        assert reply.thought.count(".") == 1
        assert reply.thought.endswith("no TAP.") != reply.actions[0]


def test_a_reply_that_is_sampled_has_the_probabilities_that_training_gives_it(player):
    settings = Settings.of(difficulty="easy")
    seen = [start(settings.evaluation_row(seed)).message() for seed in range(5)]
    said = player.answer(seen, [1.0] * 5)
    prompts, replies = np.stack([one.prompt for one in said]), np.stack([one.reply for one in said])
    known = model.log_probabilities(player.weights, player.shape, prompts, replies)
    np.testing.assert_allclose(known, np.stack([one.chances for one in said]), atol=2e-3)


def test_at_temperature_0_a_reply_depends_on_nothing_but_its_own_observation(player):
    settings = Settings.of(difficulty="easy")
    seen = [start(settings.evaluation_row(seed)).message() + "." * seed for seed in range(9)]
    together = [one.text for one in player.answer(seen, [0.0] * 9)]
    assert together == [player.answer([text], [0.0])[0].text for text in seen]


def test_turns_are_rewarded_as_the_environment_rewards_them(player):
    rollout = start(Settings.of(difficulty="easy", max_turns=30).evaluation_row(3))
    turns = []
    while rollout.outcome is None:
        turns += play.take(player, [rollout], 1.0)
    expected = turn_rewards(finish(rollout, Player(kind="model", name="tiny")))
    formats = [0.2 * read_reply(turn.said.text, cut=turn.said.cut).format / len(turns) for turn in turns]
    assert [turn.reward + form for turn, form in zip(turns, formats, strict=True)] == pytest.approx(expected)


def test_what_follows_a_reward_is_discounted():
    np.testing.assert_allclose(rl.discounted([1.0, 0.0, 2.0], 0.5), [1.5, 1.0, 2.0])


def game(rewards, hidden):
    said = play.Said("", np.zeros(3, np.int16), np.zeros(2, np.int32), np.zeros(2, np.float32), np.array(hidden), False)
    return [play.Turn(said, reward) for reward in rewards]


def test_a_crash_is_a_bad_surprise_and_living_on_is_a_good_one():
    games = [game([1.0] * 10, [1.0]), *[game([1.0] * 60, [1.0]) for _ in range(5)]]
    crashed, *alive = rl.surprises(games, [True] + [False] * 5)
    assert (np.diff(crashed) < 0).all()  # the nearer the crash, the more it is to blame
    assert crashed[-1] < 0 < min(values[0] for values in alive)
    assert all(values[-1] == 0 for values in alive)  # the limit says nothing of the last turn


def test_games_of_rl_begin_in_living_states_and_go_on_from_iteration_to_iteration(made, player, monkeypatch):
    monkeypatch.setattr(rl, "GAMES", 8)
    monkeypatch.setattr(rl, "TICKS", 12)
    tokenizer, turns = data.load(made)
    learner = rl.Rl(tokenizer, player.shape, player.weights, "easy", turns.starts, 0)
    begun = [learner.begin(np.random.default_rng(number)) for number in range(40)]
    assert {rollout.game.tick for rollout in begun} > {0}
    assert all(rollout.outcome is None and rollout.game.seed in TRAINING_SEEDS for rollout in begun)
    bands = [(rollout.game.course.band(rollout.game.tick), rollout.game.state.y) for rollout in begun]
    assert all(band.low <= y <= band.high for band, y in bands)

    first = learner.fly(np.random.default_rng(0))
    assert sum(len(flight.turns) for flight in first) == 8 * 12
    flying = list(learner.flying)
    again = learner.fly(np.random.default_rng(1))
    assert set(map(id, flying)) <= set(map(id, again))


def test_a_game_of_rl_is_lost_when_no_play_can_save_it():
    rollout = start(Settings.of(difficulty="easy").training_row(0))
    flight = rl.Flight(rollout)
    while not flight.lost:
        rollout.take("<ACTIONS>[TAP]</ACTIONS>")
    assert rollout.outcome is None  # still in the air, but too fast to stop below the ceiling
    while rollout.outcome is None:
        rollout.take("<ACTIONS>[]</ACTIONS>")
    assert rollout.outcome.reason is Reason.CEILING


def test_what_the_model_knew_before_is_no_surprise():
    doomed, fine = [game([1.0, 1.0, 0.0], [0.0, 1.0]) for _ in range(200)], [game([1.0] * 90, [1.0, 0.0]) for _ in range(50)]
    advantages = rl.surprises([*doomed, *fine], [True] * 200 + [False] * 50)
    assert abs(advantages[0][0]) < 2  # a bird that looked worth what it got; against what all got, it lost 15


def test_no_seed_is_used_twice():
    assert play.VALIDATION_SEEDS > 10_000  # the evaluation's seeds are from 0 on
    assert play.VALIDATION_SEEDS + 10_000 < TRAINING_SEEDS.start < VALIDATION_SEEDS.start


def test_a_checkpoint_is_read_as_it_was_written(made, player):
    shape, weights, facts = model.load(made / "seed0" / "untrained.npz")
    assert (shape, facts) == (player.shape, {"shape": list(shape), "pipes": 0.0})
    again = model.init(shape, 0)
    assert all((a == b).all() for a, b in zip(*map(model.jax.tree.leaves, (weights, again)), strict=True))


def test_the_endpoint_speaks_openai_and_refuses_in_words(made):
    with TestClient(serve.application(serve.Desk(made))) as client:
        assert [one["id"] for one in client.get("/v1/models").json()["data"]] == ["seed0-untrained"]
        asked = {"model": "seed0-untrained", "messages": [{"role": "user", "content": "fly"}], "temperature": 0, "max_tokens": 3}
        answer = client.post("/v1/chat/completions", json=asked).json()
        assert answer["usage"]["completion_tokens"] <= 3
        assert answer["choices"][0]["finish_reason"] in ("stop", "length")
        assert isinstance(answer["choices"][0]["message"]["content"], str)
        lost = client.post("/v1/chat/completions", json={**asked, "model": "gpt"})
        assert (lost.status_code, lost.json()["error"]["message"]) == (404, "model 'gpt': there is seed0-untrained")
        assert client.post("/v1/chat/completions", json={"model": "gpt"}).status_code == 400
        assert client.post("/v1/chat/completions", content=b"{").status_code == 400


def test_the_interval_of_a_mean_holds_it():
    mean = evaluate.mean([0.0, 1.0, 2.0, 3.0] * 10)
    assert mean.low < mean.value == 1.5 < mean.high
    assert evaluate.mean([2.0] * 5) == (2.0, 2.0, 2.0)


def tiny_lm(folder, *words):
    command = [sys.executable, "-m", "examples.tiny_lm", "-o", str(folder), *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=ENVIRONMENT, check=False)


def test_from_nothing_to_a_curve_in_a_minute(tmp_path):
    words = ["--minutes", "0.5", "--cpu-minutes", "--seeds", "1", "--games", "2"]
    done = tiny_lm(tmp_path / "out", *words)
    assert done.returncode == 0, done.stderr[-2000:]
    for name in ("table.md", "curve.png", "report.html", "seed-0.mp4"):
        assert (tmp_path / "out" / name).stat().st_size > 500, name
        assert str(tmp_path / "out" / name) in done.stdout
    runs = sorted((tmp_path / "out" / "evaluation").rglob("results.jsonl"))
    assert len(runs) == 5  # four checkpoints on easy, the best of them on medium
    for path in runs:
        rows = load_run(path.parent).rows
        assert [row.episode.seed for row in rows] == [0, 1]
        assert all(check(row) == [] for row in rows)
    log = [json.loads(line) for line in (tmp_path / "out" / "seed0" / "log.jsonl").read_text().splitlines()]
    assert {line["stage"] for line in log} == {"sft", "rl"}

    # The same command again does nothing but show it; what is missing, and only that, is done again.
    shutil.rmtree(tmp_path / "out" / "evaluation" / "easy" / "seed0-untrained")
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*.npz")}
    again = tiny_lm(tmp_path / "out", *words)
    assert again.returncode == 0, again.stderr[-2000:]
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert (tmp_path / "out" / "table.md").read_text() in done.stdout

    other = tiny_lm(tmp_path / "out", "--minutes", "2")
    assert (other.returncode, other.stdout) == (1, "")
    assert "was begun with" in other.stderr
    assert other.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["--minutes", "0"], ["--minutes", "nan"], ["--minutes", "x"], ["--games", "0"]])
def test_a_budget_that_is_none_is_refused(tmp_path, words):
    done = tiny_lm(tmp_path / "out", *words)
    assert done.returncode == 2
    assert words[0] in done.stderr
    assert not (tmp_path / "out").exists()
