"""A trainer's output folder, made by playing the environment through v1 as prime-rl does, by policies of growing skill."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

SKILL = {0: "noop", 10: "random:malformed=0.3,seed=1", 20: "heuristic:malformed=0.1,seed=2", 30: "planner"}
"""Who plays at which step."""

TICKS = 70
GROUP = 2


def make_output(folder: Path, url: str) -> Path:
    """Write `folder` as prime-rl's file monitor does: one task in two rollouts to train, two seeds to evaluate."""
    import verifiers.v1 as vf

    env = vf.load_environment(vf.resolve_env_config({"taskset": {"id": "flappybird", "max_turns": TICKS}}))
    take = env.taskset.take if hasattr(env.taskset, "take") else env.taskset.head
    tasks = list(take(2))
    client = vf.EvalClientConfig(base_url=url, api_key_var="FLAPPYBIRD_API_KEY")

    async def play() -> None:
        async with env.serving():
            for step, model in SKILL.items():
                context = vf.ModelContext(model=model, client=client, sampling=vf.SamplingConfig())
                for kind, wanted in (("train", tasks[:1] * GROUP), ("eval", tasks)):
                    if kind == "eval" and step == 10:
                        continue  # a step without evaluation
                    played = [await env.run_episode(task, context) for task in wanted]
                    _write(folder / "rollouts" / f"step_{step}" / kind / "all" / "traces.jsonl", played)

    asyncio.run(play())
    rows = [{"step": step, "time": 1.0, "reward/mean": 0.5} for step in SKILL]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return folder


def _write(path: Path, episodes: list[Any]) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(episode.to_record(), default=str) + "\n" for episode in episodes), encoding="utf-8")
