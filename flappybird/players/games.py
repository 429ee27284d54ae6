"""Whole games, played by a policy."""

from __future__ import annotations

from flappybird.episodes.episode import Episode, Player
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.players.policies import CHOICES, flap_late, make_policy, plan, search
from flappybird.players.sight import Sight
from flappybird.protocol.reply import write_reply
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig
from flappybird.world.game import FlappyGame


def fly(policy: str, config: FlappyConfig, seed: int, rules: Rules) -> Episode:
    """Return the episode that `policy` flies on the course `seed`: observation in, reply out, as a model would.

    Raises:
        ConfigError: there is no such policy, or the seed is none.
    """
    player, rollout = make_policy(policy, config, seed), Rollout(config, seed, rules)
    while rollout.outcome is None:
        rollout.take(write_reply(*plan(player, rollout.observation(), config, rules.ticks_per_turn)))
    return finish(rollout, Player(kind="policy", name=policy))


def play(name: str, config: FlappyConfig, seed: int, max_ticks: int, dice: int | None = None) -> FlappyGame:
    """Play the whole game `seed` by the policy `name` and return it, ended: the same decisions, without the words.

    Args:
        name: one of `POLICIES`.
        config: the world.
        seed: the course.
        max_ticks: the tick limit.
        dice: the seed of the policy itself, see `make_policy`.
    """
    game = FlappyGame(config, seed, max_ticks=max_ticks)
    if name not in CHOICES:
        policy = make_policy(name, config, dice)
        while game.outcome is None:
            game.step(policy(game.observation()).tap)
        return game

    sight, known_until = Sight.at(game.course, 0)
    planning = name == "planner"
    survival = sight.survival(game.state) if planning else None
    while game.outcome is None:
        if game.tick >= known_until:
            before = sight
            sight, known_until = Sight.at(game.course, game.tick)
            if planning and not before.holds(sight):
                survival = sight.survival(game.state)
        choice = search(sight, game.state, survival) if planning else flap_late(sight, game.state)
        game.step(choice.tap)
    return game
