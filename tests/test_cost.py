"""What an evaluation will cost."""

from __future__ import annotations

import pytest

from flappybird import cost
from flappybird.episodes import arguments
from flappybird.episodes.arguments import Settings
from flappybird.errors import ConfigError
from flappybird.protocol.rules import Rules
from flappybird.protocol.window import first_kept
from flappybird.runs import load_run
from flappybird.world.config import FlappyConfig
from tests.conftest import play, run_command

pytest.importorskip("bpe_openai", reason="the tokenizer")


def test_tokens_are_counted_as_o200k_base_counts_them():
    count = cost.tokenizer()
    assert count("") == 0
    assert count("hello world") == 2
    assert count("birdY:-1.30") == 6
    assert count("<|endoftext|>") > 1  # text of a model, not a command to the tokenizer


@pytest.mark.parametrize("args", [{}, {"history_turns": 4}, {"ticks_per_turn": 5}, {"observation": "signed", "history_turns": 1}])
def test_an_estimate_is_the_sum_of_the_requests_that_a_door_sends(args):
    checked = Settings.of(max_turns=30, **args)
    count = cost.tokenizer()
    episode = play("planner", 0, **checked.rules.model_dump())
    rollout = arguments.start(checked.evaluation_row(0))
    head = count(arguments.prompt_of(FlappyConfig(), checked.rules)) + cost.MESSAGE_TOKENS
    sent, prompt, cached, before = [], 0, 0, None
    for number, turn in enumerate(episode.turns):
        sent.append(count(rollout.message()) + cost.MESSAGE_TOKENS)
        kept = first_kept(number, checked.rules.history_turns)
        request = [head, *sent[2 * kept :]]
        prompt += sum(request)
        if before is not None:
            shared = 0
            for a, b in zip([*before, count(turn.reply or "")], request, strict=False):
                if a != b:
                    break
                shared += a
            cached += shared >= cost.CACHED_FROM
        sent.append(count(turn.reply or "") + cost.MESSAGE_TOKENS)
        rollout.take(turn.reply)
        before = request
    tokens = cost.episode_tokens(checked, count)
    assert tokens.prompt == prompt
    assert tokens.turns == len(episode.turns)
    assert tokens.completion == sum(count(turn.reply or "") for turn in episode.turns)
    assert 0 <= tokens.cached < tokens.prompt


def test_every_option_that_saves_saves():
    found = {estimate.name: estimate.tokens for estimate in cost.estimates({"max_turns": 100})}
    everything = found["as asked"].prompt
    assert found["history_turns = 8"].prompt < everything / 2
    assert found["history_turns = 1"].prompt < found["history_turns = 8"].prompt
    assert found["ticks_per_turn = 5"].prompt < everything / 5
    assert found["ticks_per_turn = 5"].turns == 20
    assert found["observation = signed"].prompt > everything
    assert found["observation = text+image"].prompt > found["observation = image"].prompt


def test_what_a_provider_remembers_costs_less_and_short_prompts_are_not_remembered():
    tokens = cost.Tokens(turns=2, prompt=2_000_000, cached=1_000_000, completion=500_000)
    price = cost.Price(0.4, 0.1, 1.6)
    assert tokens.dollars(price, cached=False) == pytest.approx(0.8 + 0.8)
    assert tokens.dollars(price, cached=True) == pytest.approx(0.4 + 0.1 + 0.8)
    assert cost.remembered(1_023) == 0
    assert cost.remembered(1_300) == 1_280


def test_prices_are_known_given_or_missing():
    assert cost.price_of("gpt-4.1-mini") == cost.price_of("openai/gpt-4.1-mini") == cost.Price(0.40, 0.10, 1.60)
    assert cost.price_of("planner") is None
    assert cost.price_of("planner", "1,0.5,2") == cost.Price(1.0, 0.5, 2.0)
    for bad in ("1", "1,2", "a,b,c", "1,2,-3", "1,2,nan"):
        with pytest.raises(ConfigError, match="must be PROMPT,CACHED,COMPLETION"):
            cost.price_of("planner", bad)


def test_the_command_shows_the_options_side_by_side(tmp_path):
    done = run_command("flappybird", "cost", "-m", "gpt-4.1-mini", "-n", "20", "-r", "3", "-a", '{"max_turns": 50}', cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("as asked", "history_turns = 8", "60 episodes (20 games x 3)", "o200k_base", "$ cached"):
        assert word in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["-a", "{max_turns: 5}"], "--env-args: not JSON"),
        (["-a", "[1]"], "must be a JSON object"),
        (["-a", '{"max_turn": 5}'], "did you mean 'max_turns'"),
        (["-n", "0"], "-n = 0: must be at least 1"),
        (["--price", "cheap"], "--price = 'cheap'"),
        (["--policy", "planer"], "did you mean 'planner'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(words, told, capsys):
    from flappybird.cli import main

    assert main(["cost", *words]) == 2
    out, err = capsys.readouterr()
    assert told in err
    assert err.count("\n") == 1
    assert out == ""


def test_a_runs_true_figures_stand_beside_the_estimate(tmp_path):
    from flappybird.episodes.episode import save

    save(play("planner", 0, max_turns=20), tmp_path / "a.json")
    run = load_run(tmp_path)
    assert cost.measured(run) is None
    for row in run.rows:
        row.usage.update(prompt_tokens=1_000.0, completion_tokens=50.0)
    assert cost.measured(run) == cost.Tokens(20, 1_000, 0, 50)
    page = cost.report("gpt-4.1-mini", 1, 1, {"max_turns": 20}, None, "planner", run)
    assert f"measured in {tmp_path.name}" in page


def test_no_rule_is_left_out_of_the_comparison():
    saving = {name for option in cost.OPTIONS.values() for name in option}
    assert saving == {"history_turns", "ticks_per_turn", "observation"}
    assert saving <= set(Rules.model_fields)


def test_a_report_tells_the_true_figures_beside_the_estimate(tmp_path):
    from flappybird.cost import facts
    from flappybird.runs import load_run
    from tests.runs.test_load import METADATA, saved_row, write_run

    about = {**METADATA, "model": "gpt-4.1-mini", "env_args": {"max_turns": 60}}
    told = dict(facts(load_run(write_run(tmp_path / "run", [saved_row(1), saved_row(2)], about))))
    assert told["Tokens an episode, measured"] == "100 prompt and 10 completion in 60 turns, $0.000 uncached"
    assert "in 60 turns, $0." in told["Tokens an episode, estimated"]
    assert "o200k_base, played by planner" in told["Tokens an episode, estimated"]
    odd = {**METADATA, "env_args": {"max_turns": "many"}}
    told = dict(facts(load_run(write_run(tmp_path / "odd", [saved_row(1)], odd))))
    assert told["Tokens an episode, estimated"].startswith("unknown: max_turns = 'many'")
