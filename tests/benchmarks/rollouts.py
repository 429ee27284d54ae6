"""Turns per CPU second of `rollouts.play_many` with an empty reply function: `python -m tests.benchmarks rollouts`."""

from __future__ import annotations

import time
from typing import Any

from flappybird.episodes.arguments import Settings
from flappybird.rollouts import play_many
from tests.benchmarks.turns import WORLD

SILENT = "<THINK>.</THINK>\n<ACTIONS>[]</ACTIONS>"


def main(games: int = 128) -> None:
    """Print the figures: games that live to their limit, 300 turns each."""
    for window in (0, 8):
        settings = Settings.of(num_examples=games, config_overrides=WORLD, history_turns=window)
        rows = [settings.evaluation_row(index) for index in range(games)]

        def reply(conversations: list[list[dict[str, Any]]]) -> list[str]:
            return [SILENT] * len(conversations)

        turns, began = 0, time.process_time()
        for played in play_many(rows, reply):
            turns += len(played.episode.turns)
        seconds = time.process_time() - began
        print(f"history_turns = {window}: {turns:,} turns, {turns / seconds:,.0f} a CPU second")


if __name__ == "__main__":
    main()
