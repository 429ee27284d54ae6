"""Golden trajectories: seeds × worlds × policies, each as one hash of all that was seen, said and flown.

`python -m tests.trust.trajectories` prints them as JSON. It needs nothing but Python and pydantic, so that any interpreter can
be asked; `--interleaved` plays all games at once, a turn each, from their records alone.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator

from flappybird.episodes.episode import Episode, Player, replay
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.players.policies import POLICIES, make_policy, plan
from flappybird.protocol.reply import write_reply
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig

WORLDS = {
    "card": FlappyConfig(),
    "heavy": FlappyConfig(gravity=-0.45, jump_impulse=2.2, base_gap_height=5.0, easy_gap_height=5.5),
    "crowded": FlappyConfig(pipe_spawn_interval=9, pipe_width=0.7, gap_center_offset=1.2, bird_x=3.37),
    "fine": FlappyConfig(gravity=-0.2999, jump_impulse=1.6001, pipe_speed=0.3003, bird_radius=0.1999, gap_center_offset=3.33),
}
RULES = {"": Rules(max_turns=120), "-late": Rules(max_turns=90, ticks_per_turn=3, latency_ticks=2)}
SEEDS = (0, 7, 2**53 - 1)


def games() -> Iterator[tuple[str, Rollout, str]]:
    """Every game: its name, its rollout and the policy that plays it."""
    for world, config in WORLDS.items():
        for ending, rules in RULES.items():
            for policy in POLICIES:
                for seed in SEEDS:
                    yield f"{world}{ending}/{policy}/{seed}", Rollout(config, seed, rules), policy


class Game:
    """A game in progress: every turn begins with nothing but what is in the record."""

    def __init__(self, name: str, rollout: Rollout, policy: str) -> None:
        self.name, self.policy, self.hash = name, policy, hashlib.sha256()
        self.config, self.seed, self.rules = rollout.game.config, rollout.game.seed, rollout.rules
        self.record = json.dumps(rollout.record)
        self.episode: Episode | None = None
        """What it was, once it is over."""

    def turn(self) -> None:
        rollout = Rollout(self.config, self.seed, self.rules, json.loads(self.record))
        seen = rollout.observation()
        decide = make_policy(self.policy, self.config, self.seed)
        said = write_reply(*plan(decide, seen, self.config, self.rules.ticks_per_turn))
        rollout.take(said)
        self.hash.update(f"{seen}\n{said}\n{rollout.trail}\n".encode())
        self.record = json.dumps(rollout.record)
        if rollout.outcome is not None:
            self.episode = finish(rollout, Player(kind="policy", name=self.policy))
            self.hash.update(f"{replay(self.episode).states}\n{self.episode.to_json()}".encode())


def played(interleaved: bool = False) -> list[Game]:
    """Every game, over."""
    playing = [Game(*game) for game in games()]
    if interleaved:
        left = playing[::-1]
        while left:
            for game in left:
                game.turn()
            left = [game for game in left if game.episode is None]
    else:
        for game in playing:
            while game.episode is None:
                game.turn()
    return playing


def digests(interleaved: bool = False) -> dict[str, str]:
    """The hash of every game, by its name."""
    return {game.name: game.hash.hexdigest()[:24] for game in played(interleaved)}


if __name__ == "__main__":
    print(json.dumps(digests("--interleaved" in sys.argv), indent=1))
