"""What a score is worth: how far the built-in policies, and people, get on the same seeds of each level.

Whole games are played without words (`policies.play`), in as many processes as there are processors or on a cluster, and reported
as means with 95 % intervals.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from math import sqrt
from pathlib import Path
from statistics import NormalDist, fmean, median, stdev
from typing import Any, NamedTuple

from tqdm import tqdm

from flappybird.episodes.rewards import scores
from flappybird.episodes.verify import verify
from flappybird.errors import ConfigError, EpisodeError, unknown_name
from flappybird.players.games import play
from flappybird.players.policies import POLICIES
from flappybird.runs import load_run
from flappybird.system.jobs import check_jobs, spread
from flappybird.system.table import table
from flappybird.world.game import Outcome, Reason, check_ticks, tally
from flappybird.world.levels import LEVELS, level
from flappybird.world.seeds import EVALUATION_SEEDS

CERTIFIED = 10_000
"""Seeds, from 0, that are asked for whether they can be flown at all."""

CHUNK = 25
"""Games that a process plays at a time: enough to be worth the way, few enough for a lively progress bar."""

FEW = 100
"""Up to this many games are played in this process: starting others would take longer."""

OTHER = "other"
"""Where human episodes on a world that is no level are counted."""


class Result(NamedTuple):
    """How one game went."""

    pipes: int
    ticks: int
    reward: float
    reason: str


class Estimate(NamedTuple):
    """A mean or a share of games, and the 95 % interval around it: of means the normal one, of shares Wilson's."""

    value: float
    low: float
    high: float


class Row(NamedTuple):
    """How one player did on one level."""

    level: str
    player: str
    games: int
    pipes: Estimate
    """Pipes passed."""
    ticks: Estimate
    reward: Estimate
    """The card's reward; policies always write replies of full format, people none."""
    survived: Estimate
    """Share of games that reached the tick limit."""
    median_pipes: float
    reasons: dict[str, int]
    """How the games ended, most often first."""

    @classmethod
    def of(cls, level_name: str, player: str, results: Sequence[Result]) -> Row:
        """Return the row that sums `results` up."""
        return cls(
            level_name,
            player,
            len(results),
            mean([result.pipes for result in results]),
            mean([result.ticks for result in results]),
            mean([result.reward for result in results]),
            share(sum(not Reason(result.reason).crashed for result in results), len(results)),
            median(result.pipes for result in results),
            dict(Counter(result.reason for result in results).most_common()),
        )


# --- playing ------------------------------------------------------------------------------------------------------


def baselines(
    levels: Sequence[str],
    policies: Sequence[str],
    games: int,
    *,
    seed: int = 0,
    max_turns: int = 300,
    jobs: int | None = None,
    backend: str | None = None,
) -> list[Row]:
    """Play `games` games with each of `policies` on each of `levels` and return how they went.

    Args:
        levels: names of levels.
        policies: names of policies.
        games: seeds `seed`, `seed` + 1, … of each level, the same for all.
        seed: the first seed.
        max_turns: the tick limit.
        jobs: processes; None for one per processor.
        backend: the cluster that they run on, see `system.jobs.spread`; None for this machine.

    Raises:
        ConfigError: a level or a policy is unknown, or there are no such seeds.
    """
    for name in levels:
        level(name)
    for name in policies:
        if name not in POLICIES:
            raise ConfigError(unknown_name(name, POLICIES, "a policy"))
    if games < 1 or seed not in EVALUATION_SEEDS or seed + games - 1 not in EVALUATION_SEEDS:
        last = EVALUATION_SEEDS[-1]
        raise ConfigError(f"-n = {games}, --seed = {seed}: must be at least one game, on seeds from 0 to {last}")
    check_ticks(max_turns, "--max-turns")
    check_jobs(jobs, backend)

    # The players that live longest take longest: they go first, so that no processor is left with one at the end.
    lasting = sorted(policies, key=list(POLICIES).index, reverse=True)
    tasks = [
        (name, policy, range(first, min(first + CHUNK, seed + games)), max_turns)
        for policy in lasting
        for name in levels
        for first in range(seed, seed + games, CHUNK)
    ]
    played: dict[tuple[str, str], list[Result]] = {(name, policy): [] for name in levels for policy in policies}
    with tqdm(total=games * len(played), unit="game", disable=None, leave=False) as progress:
        where = (1, None) if games * len(played) <= FEW else (jobs, backend)
        for name, policy, results in spread(_play, tasks, *where):
            played[name, policy] += results
            progress.update(len(results))
    return [Row.of(name, policy, results) for (name, policy), results in played.items()]


Task = tuple[str, str, range, int]


def _play(task: Task) -> tuple[str, str, list[Result]]:
    name, policy, seeds, max_turns = task
    results = []
    for seed in seeds:
        game = play(policy, LEVELS[name], seed, max_turns, dice=seed)
        assert game.outcome is not None
        results.append(_result(game.outcome, game.score))
    return name, policy, results


def _result(outcome: Outcome, pipes: int) -> Result:
    return Result(pipes, outcome.tick, scores(outcome, pipes, 1.0)["reward"], outcome.reason.value)


def human_rows(folder: Path) -> tuple[list[Row], list[str]]:
    """Return how people did in the episodes in `folder`, per level and player, and what was left out and why.

    Raises:
        EpisodeError: there are no episodes of people, or none that their replay confirms.
    """
    by_player: dict[tuple[str, str], list[Result]] = {}
    left_out: list[str] = []
    for row in load_run(folder).rows:
        episode = row.episode
        if episode is None:
            left_out.append(f"{folder}:{row.index}: {row.problem}")
        elif episode.player.kind == "human":
            differences = verify(episode)
            if differences:
                left_out.append(f"{folder}:{row.index}: {differences[0]}")
                continue
            name = next((name for name, config in LEVELS.items() if config == episode.config), OTHER)
            ended = episode.outcome
            result = Result(ended.pipes_passed, ended.ticks, ended.reward, ended.reason.value)
            by_player.setdefault((name, f"human: {episode.player.name}"), []).append(result)
    if not by_player:
        why = f"; {left_out[0]}" if left_out else ""
        raise EpisodeError(f"{folder}: no episodes flown by a person{why}")
    return [Row.of(name, player, results) for (name, player), results in by_player.items()], left_out


# --- numbers ------------------------------------------------------------------------------------------------------

CONFIDENCE = 0.95

Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
"""How many standard errors an interval reaches to either side."""


def mean(values: Sequence[float]) -> Estimate:
    """Return the mean of `values` with its normal interval, within their range; of one value alone, the value itself.

    It is meant for dozens of games or more. From fewer it is too narrow: of 10, it holds the true mean 92 times in 100.
    """
    middle = fmean(values)
    if len(values) < 2:
        return Estimate(middle, middle, middle)
    reach = Z * stdev(values) / sqrt(len(values))
    return Estimate(middle, max(middle - reach, min(values)), min(middle + reach, max(values)))


def share(hits: int, games: int) -> Estimate:
    """Return hits / games with Wilson's score interval.

    Source: Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    part, weight = hits / games, 1 + Z * Z / games
    middle = (part + Z * Z / (2 * games)) / weight
    reach = Z * sqrt(part * (1 - part) / games + Z * Z / (4 * games * games)) / weight
    # At the ends the bound is the share itself; rounding would put it a hair beside.
    return Estimate(part, 0.0 if hits == 0 else middle - reach, 1.0 if hits == games else middle + reach)


# --- telling ------------------------------------------------------------------------------------------------------


def report(
    levels: Sequence[str],
    policies: Sequence[str],
    games: int,
    *,
    seed: int = 0,
    max_turns: int = 300,
    jobs: int | None = None,
    backend: str | None = None,
    human: Path | None = None,
    certify: bool = False,
    as_json: bool = False,
) -> str:
    """Return the table of `baselines`, with people's scores and certificates where asked for; as JSON with `as_json`."""
    people, left_out = human_rows(human) if human is not None else ([], [])
    for line in left_out:
        print(f"flappybird: left out: {line}", file=sys.stderr)
    rows = baselines(levels, policies, games, seed=seed, max_turns=max_turns, jobs=jobs, backend=backend)
    order = [*levels, OTHER]
    rows += [row for row in people if row.level in order]
    rows.sort(key=lambda row: order.index(row.level))
    certificates = passable_shares(levels, max_turns, jobs, backend) if certify else {}
    if as_json:
        return json.dumps(_json(rows, certificates, games, seed, max_turns), indent=1)
    lines = [sheet(rows)]
    lines += [f"{name}: {share}" for name, share in certificates.items()]
    return "\n".join(lines)


def passable_shares(
    levels: Sequence[str], max_turns: int = 300, jobs: int | None = None, backend: str | None = None
) -> dict[str, str]:
    """Return how many of the first `CERTIFIED` seeds of each level can be flown to the tick limit, in words; exact."""
    one = len(levels) == 1 and backend is None  # done before another process has started
    found = spread(partial(_blocked, ticks=max_turns), levels, 1 if one else jobs, backend)
    return {name: _passable(blocked, max_turns) for name, blocked in zip(levels, found, strict=True)}


def _blocked(name: str, ticks: int) -> list[int]:
    from flappybird.world.certify import impassable

    return impassable(LEVELS[name], range(CERTIFIED), ticks)


def _passable(blocked: Sequence[int], max_turns: int) -> str:
    which = f"; not: {', '.join(map(str, blocked[:10]))}{' …' * (len(blocked) > 10)}" if blocked else ""
    return f"{CERTIFIED - len(blocked):,} of seeds 0 to {CERTIFIED - 1:,} can be flown to tick {max_turns}{which}"


def sheet(rows: Sequence[Row]) -> str:
    """Return the rows as a plain table: means with their 95 % intervals."""
    head = ("level", "player", "games", "pipes", "95 %", "median", "ticks", "reward", "survived", "how it ended")
    lines = [
        (
            row.level,
            row.player,
            str(row.games),
            f"{row.pipes.value:.2f}",
            f"{row.pipes.low:.2f} to {row.pipes.high:.2f}",
            f"{row.median_pipes:g}",
            f"{row.ticks.value:.1f}",
            f"{row.reward.value:.2f}",
            f"{100 * row.survived.value:.1f} %",
            tally(row.reasons),
        )
        for row in rows
    ]
    return table(head, lines, words=(0, 1, len(head) - 1))


def _json(rows: Sequence[Row], certificates: dict[str, str], games: int, seed: int, max_turns: int) -> dict[str, Any]:
    data: dict[str, Any] = {"seeds": [seed, seed + games - 1], "max_turns": max_turns, "confidence": CONFIDENCE, "rows": []}
    for row in rows:
        fields = row._asdict()
        data["rows"].append({key: value._asdict() if isinstance(value, Estimate) else value for key, value in fields.items()})
    if certificates:
        data["passable"] = certificates
    return data
