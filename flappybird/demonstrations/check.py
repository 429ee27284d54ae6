"""Every word of a line of demonstrations, against a replay."""

from __future__ import annotations

from typing import Any

from flappybird.demonstrations.games import Mark, Moment, Pilot
from flappybird.demonstrations.plan import Plan
from flappybird.demonstrations.thoughts import untrue
from flappybird.errors import ConfigError, EpisodeError, show
from flappybird.protocol.prompt import prompt_of
from flappybird.protocol.reply import Reply, Status, read_reply
from flappybird.protocol.rules import Rules
from flappybird.system.files import parse_json
from flappybird.world.config import FlappyConfig
from flappybird.world.seeds import TRAINING_SEEDS, VALIDATION_SEEDS


def problems(line: str | dict[str, Any]) -> list[str]:
    """Return what is wrong with a line of demonstrations or of preferences, replayed word by word; nothing for a true one.

    Raises:
        EpisodeError: it is no line of demonstrations at all.
    """
    data = parse_json(line, "line") if isinstance(line, str) else line
    try:
        config, rules, start = FlappyConfig(**data["config"]), Rules(**data["rules"]), Moment.read(data["start"])
        if "messages" in data:
            messages = data["messages"]
        else:
            messages = [*data["prompt"], *(data["completion"] if "completion" in data else data["chosen"])]
        rejected = data["rejected"][0]["content"] if "rejected" in data else None
        marks = [Mark(**mark) for mark in data.get("marks", ())]
        plan = Plan(policy=data["policy"], think=data["think"], rules=rules).check()
        rollout = start.rollout(config, data["seed"], rules)
        roles, words = [said["role"] for said in messages], [said["content"] for said in messages]
    except (AttributeError, KeyError, TypeError, IndexError, ConfigError) as error:
        raise EpisodeError(f"not a line of demonstrations: {show(str(error))}") from None
    found = []
    course = rollout.game.course
    if course.seed not in TRAINING_SEEDS and course.seed not in VALIDATION_SEEDS:
        found.append(f"seed {course.seed} is not one of training or validation")
    if roles != ["system", *["user", "assistant"] * (len(words) // 2)]:
        return [*found, f"roles are {show(roles)}"]
    if words[0] != prompt_of(config, rules):
        found.append("the system prompt is another")
    turns = list(zip(words[1::2], words[2::2], strict=True))
    if marks and len(marks) != len(turns):
        return [*found, f"{len(marks)} marks for {len(turns)} turns"]
    pilot = Pilot(plan, course, bool(marks) or rejected is not None)
    for turn, (seen, said) in enumerate(turns):
        if rollout.outcome is not None:
            return [*found, f"turn {turn}: the game had ended ({rollout.outcome})"]
        if seen != rollout.message():
            found.append(f"turn {turn}: the observation is another")
        right, reply = pilot.decide(rollout), read_reply(said, ticks=rules.ticks_per_turn)
        faults = _faults(reply, right.thought, right.taps[0])
        if marks and marks[turn] != right.mark:
            faults.append(f"the mark is {show(marks[turn])}, not {show(right.mark)}")
        if rejected is not None and turn == len(turns) - 1:
            faults += _unlike(rejected, reply, right.mark, right.other, rules)
        found += [f"turn {turn}: {fault}" for fault in faults]
        rollout.fly(reply.actions)
    if rollout.outcome is not None and rollout.outcome.reason.crashed:
        found.append(f"the bird crashes: {rollout.outcome}")
    return found


def _faults(reply: Reply, right: str, tap: bool) -> list[str]:
    faults = []
    if reply.status is not Status.OK or reply.format < 1:
        faults.append(f"the reply is {reply.status.value}, format {reply.format}")
    faults += untrue(reply.thought, right, reply.actions[0])
    if not faults and reply.actions[0] != tap:
        faults.append("the reply does what its policy does not")
    return faults


def _unlike(rejected: str, chosen: Reply, mark: Mark | None, right: str, rules: Rules) -> list[str]:
    """Return what is wrong with a rejected reply: it must be legal, and lose what the chosen one keeps."""
    reply = read_reply(rejected, ticks=rules.ticks_per_turn)
    if mark is None or mark.decisive < 0:
        return ["both replies can be survived"]
    faults = [f"rejected: {fault}" for fault in _faults(reply, right, reply.actions[0])]
    apart = [at for at, (a, b) in enumerate(zip(chosen.actions, reply.actions, strict=True)) if a != b]
    if apart != [mark.decisive]:
        faults.append("rejected: is not the other action where only one can be survived")
    return faults
