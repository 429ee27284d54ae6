"""The page as text: whole, safe, the same every time."""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import os
import random
import re
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import escape

from flappybird.episodes.episode import Player, replay
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.players.policies import Policy, make_policy
from flappybird.protocol.reply import write_reply
from flappybird.protocol.rules import Rules
from flappybird.report import report_name, write_report
from flappybird.report.data import gather
from flappybird.report.html import clean, moment
from flappybird.report.overview import Overview
from flappybird.report.page import build
from flappybird.report.payload import embed, pack, payload, unpack
from flappybird.report.summary import Summary
from flappybird.runs import Run
from flappybird.world.config import FlappyConfig
from tests.report.cases import changed, heuristics, play, policy, repeat, row, run

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u2028\u2029&amp;'\"\ud800\x00\x1b[31m${}$title]]>"


class Tags(HTMLParser):
    """Collects the tags of a page, and what stands in its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script":
            self.scripts[-1] += data
        self.text += data


def page(*runs: Run, folder: Path = Path()) -> str:
    return build(gather(list(runs)), folder, datetime(2026, 3, 2, tzinfo=UTC))


def data_of(*runs: Run, folder: Path = Path()) -> dict[str, Any]:
    gathered = gather(list(runs))
    return payload(Overview(gathered, [Summary(one) for one in gathered]), folder)


def hostile_run() -> Run:
    episode = play(repeat(f"<THINK>{HOSTILE}</THINK><ACTIONS>[]</ACTIONS>"), name=HOSTILE)
    rows = [
        row(0, episode),
        row(1, play(policy("noop", 1), 1, turns=2, name=HOSTILE), error=HOSTILE),
        row(2, None, problem=HOSTILE, error=HOSTILE),
    ]
    return run(
        rows,
        HOSTILE,
        env_args={HOSTILE: HOSTILE},
        sampling={"stop": [HOSTILE]},
        versions={"flappybird": HOSTILE},
        notes=[HOSTILE],
    )


def test_nothing_that_a_run_says_becomes_markup_or_script() -> None:
    plain, hostile = Tags(page(heuristics(1))), Tags(page(hostile_run()))
    assert {tag for tag, _ in hostile.tags} <= {tag for tag, _ in plain.tags} | {"bdi", "p", "code"}
    assert len(hostile.scripts) == 2
    assert hostile.scripts[1] == plain.scripts[1]
    assert not [attrs for _, attrs in hostile.tags if any(name.startswith("on") for name in attrs)]
    assert "<img src=x onerror=alert(2)>" in hostile.text


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.characters(), max_size=40))
def test_any_text_is_escaped_and_can_be_written(text: str) -> None:
    shown = escape(clean(text))
    assert not set("<>\"'") & set(shown)
    shown.encode("utf-8")
    assert not [letter for letter in shown if ord(letter) < 32 and letter not in "\n\t"]
    inside = embed({"text": text})
    assert inside.isascii()
    assert not set("<>&") & set(inside)
    assert json.loads(inside) == {"text": text}
    assert unpack(pack({"text": text})) == {"text": text}


def test_the_page_forbids_all_but_its_own_style_and_script() -> None:
    text = page(heuristics(1))
    (policy_text,) = [attrs["content"] for tag, attrs in Tags(text).tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert policy_text is not None
    assert policy_text.startswith("default-src 'none'")
    assert "unsafe" not in policy_text
    for tag in ("style", "script"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert base64.b64encode(hashlib.sha256(content.encode()).digest()).decode() in policy_text
    assert " style=" not in text, "style attributes would be refused"
    assert not re.findall(r"(?:href|src)=\"(?!#)", text), "nothing is fetched"


def test_identifiers_are_unique_and_references_lead_somewhere() -> None:
    tags = Tags(page(heuristics(3), heuristics(3, "random", model="other"))).tags
    identifiers = [attrs["id"] for _, attrs in tags if "id" in attrs]
    assert len(identifiers) == len(set(identifiers))
    references = [attrs[name] for _, attrs in tags for name in ("xlink:href", "aria-labelledby", "for") if attrs.get(name)]
    assert {str(reference).lstrip("#") for reference in references} <= set(identifiers)


def test_E06_the_same_input_gives_the_same_page_but_for_the_line_of_its_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = []
    try:
        for index, zone in enumerate(("Asia/Kolkata", "America/New_York")):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            pages.append(write_report([hostile_run(), heuristics(2)], tmp_path / f"{index}.html").read_text("utf-8").splitlines())
    finally:
        monkeypatch.undo()
        time.tzset()
    differing = [one for one, other in zip(*pages, strict=True) if one != other]
    assert all("Built " in line and "UTC" in line for line in differing)
    assert len(differing) <= 1


def test_E06_times_are_told_in_utc_whatever_they_were_saved_in() -> None:
    evening = datetime(2026, 3, 1, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert moment(evening) == "2026-03-02 04:30:00 UTC"
    assert moment(datetime(2026, 3, 1)) == "2026-03-01 00:00:00, time zone unknown"
    assert "2026-03-01 12:30:00 UTC" in page(heuristics(1))


def test_E05_the_page_lists_every_row_and_its_totals_add_up() -> None:
    rows = [row(seed, play(policy("heuristic", seed), seed)) for seed in range(3)]
    rows += [row(3, play(policy("planner", 3), 3, turns=4, error="HTTP 500")), row(4, play(policy("planner", 4), 4, turns=9))]
    rows += [
        row(5, play(policy("planner", 5), 5, turns=0, error="context length exceeded")),
        row(6, None, problem="no trace was saved"),
    ]
    text = page(run(rows))
    shown = Tags(text)
    assert len([attrs for tag, attrs in shown.tags if tag == "tr" and "data-end" in attrs]) == 7
    counts = re.findall(r'<span class="dot b-end-[\w-]+"></span><b>(\d+)</b>', text)
    assert sum(map(int, counts)) == 7
    assert "7 in all" in shown.text
    for told in ("HTTP 500", "context length exceeded", "no trace was saved", "4 ok, 2 errored, 1 unscored"):
        assert told in shown.text


def test_D07_the_page_labels_both_means() -> None:
    rows = [row(seed, play(policy("heuristic", seed), seed)) for seed in range(3)]
    text = Tags(page(run([*rows, row(3, play(policy("noop", 3), 3, turns=1, error="HTTP 500"))]))).text
    assert re.search(r"Mean reward [\d.]+ is that of clean rollouts; with the errored ones it is [\d.]+", text)
    assert "Reward, errored rollouts included" in text
    assert "3 ok, 1 errored" in text


def test_E03_a_hundred_episodes_of_five_hundred_turns_stay_below_ten_megabytes() -> None:
    # Transcripts are what costs: two episodes stand for all, with a thought of 180 characters in every turn.
    rows, dice = [], random.Random(0)
    for seed in range(2):
        decide = make_policy("planner", FlappyConfig())

        def say(rollout: Rollout, decide: Policy = decide) -> str:
            thought = " ".join(str(dice.randrange(100_000)) for _ in range(30))
            return write_reply((decide(rollout.observation()).tap,), thought)

        rows.append(row(seed, play(say, seed, rules=Rules(max_turns=500))))
    assert [len(one.episode.turns) for one in rows if one.episode] == [500, 500]
    assert len(page(run(rows))) + 98 / 2 * len(embed(data_of(run(rows)))) < 10e6


def test_each_reply_is_stored_once() -> None:
    marker = "a very particular thought"
    episode = play(repeat(f"<THINK>{marker}</THINK><ACTIONS>[]</ACTIONS>"))
    data = data_of(run([row(0, episode)]))
    body = unpack(data["episodes"][0]["body"])
    assert json.dumps(body).count(marker) == len(episode.turns)


def test_the_player_is_given_inputs_from_which_the_flight_follows() -> None:
    episode = play(policy("heuristic", 0), 0, rules=Rules(latency_ticks=1))
    data = data_of(run([row(0, episode)]))
    body, world = unpack(data["episodes"][0]["body"]), data["worlds"][0]
    y = velocity = 0
    for tap, state in zip(body["taps"], replay(episode).states[1:], strict=True):
        velocity = world["jump"] if tap == "T" else velocity + world["gravity"]
        y += velocity
        assert (y, velocity) == (state.y, state.velocity)


@pytest.mark.parametrize(
    "odd",
    [
        run([]),
        run([], asked=3),
        run([row(0, None, problem="lost")]),
        run([row(0, None, problem="lost", claims={"reward": 3.0})]),
        run([row(0, play(policy("noop", 0), turns=0))]),
        run([row(0, play(policy("noop", 0), turns=0, error="down"))], asked=None, date=None),
        run([row(0, play(policy("noop", 0)), claims={"reward": float("nan"), "other": float("inf")})], damaged=2),
        run([row(0, play(policy("planner", 0), rules=Rules(max_turns=1)))]),
        run([row(0, play(policy("noop", 0), config=FlappyConfig(world_w=900.0, world_h=900.0)))]),
        run([row(0, play(policy("noop", 0), config=FlappyConfig(gravity=-30.0, jump_impulse=40.0)))]),
        run([row(0, play(repeat("", "[TAP]", "<ACTIONS>[TAP]</ACTIONS>"), rules=Rules(stop_on_malformed=2)))]),
        run([row(0, play(policy("noop", 0)))], model=""),
        run([row(index, play(policy("noop", 0), seed, turns=3)) for index, seed in enumerate((0, 7, 2**53 - 1))]),
    ],
    ids=lambda odd: "",
)
def test_an_odd_run_has_a_page_too(odd: Run, tmp_path: Path) -> None:
    path = write_report([odd], tmp_path / "new" / "report.html")
    assert Tags(path.read_text("utf-8")).scripts[0].startswith("{")
    assert write_report([odd, odd], tmp_path / "two.html").exists()


def test_no_runs_make_a_page_that_says_so(tmp_path: Path) -> None:
    assert "No runs" in write_report([], tmp_path / "none.html").read_text("utf-8")


def test_an_episode_played_by_hand_has_no_replies_and_a_page() -> None:
    rollout = Rollout(FlappyConfig(), 0, Rules())
    while rollout.outcome is None:
        rollout.fly([False])
    text = page(run([row(0, finish(rollout, Player(kind="human", name="me")))]))
    assert "me" in text


def test_a_difference_is_told_with_its_episode_and_tick() -> None:
    honest = row(4, play(policy("noop", 0)))
    text = Tags(page(run([changed(honest, claims={"reward": 50.0})]))).text
    assert "episode 4 differs from its replay first at tick 8: reward is 50.0" in text


def test_videos_are_linked_relative_to_the_page(tmp_path: Path) -> None:
    clips = tmp_path / "clips"
    clips.mkdir()
    (clips / "episode-0000.mp4").write_bytes(b"")
    path = write_report([heuristics(1)], tmp_path / "reports" / "page.html", videos=clips)
    data = json.loads(Tags(path.read_text("utf-8")).scripts[0])
    assert data["episodes"][0]["video"] == "../clips/episode-0000.mp4"


def test_a_report_that_fails_leaves_nothing_under_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "chmod", lambda *args, **kwargs: (_ for _ in ()).throw(OSError("disk full")))
    monkeypatch.setattr(Path, "replace", lambda *args: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_report([heuristics(1)], tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=60, deadline=None)
@given(model=st.text(max_size=200), version=st.text(max_size=20))
def test_the_name_of_a_report_is_a_safe_file_name(model: str, version: str) -> None:
    name = report_name(run([], model, versions={"flappybird": version}))
    assert re.fullmatch(r"flappybird-[A-Za-z0-9._-]+\.html", name)
    assert len(name) < 200


def test_the_name_of_a_report_tells_runs_apart() -> None:
    rows = [row(index, play(policy("noop", index // 2), index // 2), rollout=index % 2) for index in range(4)]
    one, other = run(rows, "org/model:v1", env_args={"max_turns": 500}), run(rows, "org/model:v1")
    assert report_name(one).startswith("flappybird-0.1.0--org-model-v1--n2-r2--")
    assert report_name(one) != report_name(other)


def verdict(*runs: Run) -> str:
    gathered = gather(list(runs))
    return "".join(text for text, _ in Overview(gathered, [Summary(one) for one in gathered]).verdict())


def test_the_verdict_says_who_leads_by_how_much_and_how_sure_that_is() -> None:
    strong, weak = heuristics(8, "planner", model="strong"), heuristics(8, "noop", model="weak")
    said = verdict(weak, strong)
    assert re.match(
        r"strong leads with a mean reward of 97\.04 \[97\.04, 97\.04\]; ahead of weak by 9\d\.\d\d \[[\d., ]+\] on 8 seeds\.",
        said,
    )
    assert "not separable" not in said
    close = verdict(heuristics(3, "random", model="one"), run([row(s, play(policy("noop", s), s)) for s in range(3)], "two"))
    assert "not separable on 3 seeds" in close or "leads" in close
    assert "are level at" in verdict(heuristics(2, model="one"), heuristics(2, model="two"))
    assert "no seed with the same settings in common" in verdict(heuristics(1), run([row(0, play(policy("noop", 9), 9))]))
    assert "planner" in verdict(heuristics(3, model="alone"))


def test_the_leaderboard_is_in_order_and_each_run_has_a_number_of_its_own() -> None:
    runs = [heuristics(3, "noop", model="planner"), heuristics(3, "planner", model="noop"), heuristics(3, model="heuristic")]
    text = page(*runs)
    rows = re.findall(r'<th scope="row" class="run-name">.*?<bdi>(.*?)</bdi>', text, re.DOTALL)
    assert rows == ["noop", "heuristic", "planner"]
    assert re.findall(r'<th scope="row" class="run-name">.*?>(\d+)</span>', text, re.DOTALL) == ["1", "2", "3"]


def test_a_rollout_without_a_turn_is_not_called_verified() -> None:
    silent = row(1, play(policy("planner", 1), 1, turns=0, error="no reply ever came"))
    (records,) = gather([run([row(0, play(policy("noop", 0))), silent])])
    assert (records.verified, len(records.checked), len(records.replayed)) == (1, 1, 2)
    assert "no turns" in Tags(page(run([silent]))).text


def test_the_page_is_given_the_rewards_of_the_environment() -> None:
    data = data_of(heuristics(1))
    assert data["scoring"] == {
        "weights": {"pipes_passed": 2.0, "survival_score": 0.2, "format": 0.2},
        "base": 1.0,
        "ramp": 0.005,
        "ramp_ticks": 80,
    }
    assert "0.005" not in Tags(page(heuristics(1))).scripts[1]


def test_birds_and_pipes_have_the_colours_of_windows_and_videos() -> None:
    try:
        palette = importlib.import_module("render.colors")
    except ImportError:
        palette = pytest.importorskip("render.scene")
    shown = Tags(page(heuristics(1))).scripts[1]
    for name in ("BODY", "BELLY", "WING", "BEAK", "INK", "PIPE_EDGE", "GRASS_EDGE", "ROOF", "CLOUD", "ALARM"):
        red, green, blue = getattr(palette, name)
        assert f'{name}: "#{red:02x}{green:02x}{blue:02x}"' in shown, name


def test_two_runs_never_share_the_name_of_a_report() -> None:
    models = ["openai/gpt-4", "openai-gpt-4", "模型一", "模型二", "m" * 80 + "a", "m" * 80 + "b"]
    runs = [run([], model) for model in models]
    runs += [replace(runs[0], path=Path("outputs/other")), replace(runs[0], date=None)]
    assert len({report_name(one) for one in runs}) == len(runs)
    assert report_name(runs[0]) == report_name(run([], models[0]))
