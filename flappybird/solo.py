"""A built-in policy plays one game by itself: no model, no server, no window."""

from __future__ import annotations

from flappybird.config import FlappyConfig
from flappybird.episode import Episode, Player
from flappybird.policies import make_policy, plan, write_reply
from flappybird.records import finish
from flappybird.rollout import Rollout, Rules


def fly(policy: str, config: FlappyConfig, seed: int, rules: Rules) -> Episode:
    """Return the episode that `policy` flies on the course `seed`: observation in, reply out, as a model would.

    Raises:
        ConfigError: there is no such policy, or the seed is none.
    """
    player, rollout = make_policy(policy, config, seed), Rollout(config, seed, rules)
    while rollout.outcome is None:
        rollout.take(write_reply(*plan(player, rollout.observation(), config, rules.ticks_per_turn)))
    return finish(rollout, Player(kind="policy", name=policy))


def told(episode: Episode) -> str:
    """Return, on one line, how `episode` ended."""
    ending = episode.outcome
    where = f"pipe {ending.pipe}" if ending.pipe is not None else ending.reason.value.replace("_", " ")
    passed = f"{ending.pipes_passed} pipe{'s' * (ending.pipes_passed != 1)} passed"
    return f"{episode.player.name}, seed {episode.seed}: {passed}, {where} at tick {ending.ticks}, reward {ending.reward:g}"
