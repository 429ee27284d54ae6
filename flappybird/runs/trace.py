"""What a line of `traces.jsonl` holds, and which messages belong in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from flappybird.episodes.episode import Episode
from flappybird.episodes.verify import CUT_SHORT
from flappybird.protocol.window import first_kept
from flappybird.runs.run import Contradiction
from flappybird.runs.saved import Count, Message, Number, Object, Saved, Versions, Words


def _objects(value: Any) -> list[Any]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


Objects = BeforeValidator(_objects)
"""Put on a list of models: of what is there, the JSON objects."""


class Data(Saved):
    idx: Count = None
    system_prompt: Words = None
    seed: Any = None
    config: Any = None
    rules: Object = Field(default_factory=dict)
    versions: Versions = Versions()


class Task(Saved):
    data: Data = Data()


class ModelConfig(Saved):
    model: Words = None


class Agent(Saved):
    config: ModelConfig = ModelConfig()


class Release(Saved):
    version: Words = None


class Node(Saved):
    """A message of the conversation; which one it follows makes a tree of them."""

    parent: Any = None
    message: Message = Message()
    sampled: Any = None

    @property
    def reply(self) -> bool:
        return self.sampled is True


class Usage(Saved):
    prompt_tokens: Number = None
    cached_input_tokens: Number = None
    completion_tokens: Number = None


class Call(Saved):
    usage: Usage | None = None


class Kept(Saved):
    """`info` of a trace."""

    episode: Any = None
    ending: Any = None
    turn_rewards: Any = None


class Fault(Saved):
    type: Any = None
    message: Any = None


class Timing(Saved):
    start: Number = None


class Trace(Saved):
    """One rollout."""

    task: Task = Task()
    agent: Agent = Agent()
    verifiers: Release = Release()
    nodes: Annotated[list[Node], Objects] = Field(default_factory=list)
    calls: Annotated[list[Call], Objects] = Field(default_factory=list)
    rewards: Object = Field(default_factory=dict)
    metrics: Object = Field(default_factory=dict)
    info: Kept = Kept()
    ok: Any = None
    stop_condition: Any = None
    errors: Annotated[list[Fault], Objects] = Field(default_factory=list)
    timing: Timing = Timing()


class Line(Saved):
    """A line of `traces.jsonl`: one episode of the library, with the trace of each of its agents."""

    task: Task | None = None
    traces: Annotated[list[Trace], Objects] = Field(default_factory=list)
    ok: Any = None
    errors: Annotated[list[Fault], Objects] = Field(default_factory=list)


class Env(Saved):
    taskset: Object = Field(default_factory=dict)


class Select(Saved):
    limit: Count = None


class Config(Saved):
    """What the run was started with."""

    env: Env = Env()
    taskset: Object = Field(default_factory=dict)
    model: Words = None
    sampling: Object = Field(default_factory=dict)
    num_tasks: Count = None
    num_rollouts: Count = None
    select: Select = Select()


_NOTHING = Node()


def parent(node: Node, nodes: list[Node]) -> Node:
    """Return the message that a message follows; an empty one where it follows none."""
    place = node.parent
    return nodes[place] if isinstance(place, int) and 0 <= place < len(nodes) else _NOTHING


def odd_nodes(trace: Trace, episode: Episode) -> Iterator[Contradiction]:
    """Yield the first message of a trace that no model was to read or say.

    Every reply must answer an observation that follows the turns that were kept, and these the system prompt; whatever is on no
    such way does not belong there. What is read and said itself is compared with the replay, see `check`.
    """
    nodes, window = trace.nodes, episode.rules.history_turns
    replies = [place for place, node in enumerate(nodes) if node.reply]
    cut_short = episode.outcome.reason in CUT_SHORT
    if len(replies) > len(episode.turns) + cut_short:  # where it was cut short, a last reply may have come too late
        place = replies[len(episode.turns)]
        yield Contradiction(f"nodes[{place}]", 0, "a reply", f"no more than {len(episode.turns)} replies")
        return
    asked = list(replies)
    if cut_short and nodes and not nodes[-1].reply:
        asked.append(len(nodes))  # an observation that nobody answered
    known: set[int] = set()
    texts: list[tuple[str, str]] = []  # role and text of what the model has read and said so far, without the system prompt
    for turn, reply in enumerate(asked):
        kept = first_kept(turn, window)
        place = nodes[reply].parent if reply < len(nodes) else reply - 1
        known.add(reply)
        expected = [("user", None), *reversed(texts[2 * kept :]), ("system", trace.task.data.system_prompt)]
        for step, (role, text) in enumerate(expected):
            if not isinstance(place, int) or not 0 <= place < min(reply, len(nodes)):
                yield Contradiction(f"nodes[{reply}]", 0, f"{step} messages", f"after {len(expected)}")
                return
            node = nodes[place]
            if node.message.role != role or (text is not None and node.message.text != text):
                yield Contradiction(f"nodes[{place}]", 0, (node.message.role, node.message.text), (role, text or "a message"))
                return
            if step == 0:
                texts.append(("user", node.message.text))
            known.add(place)
            if step == 1 and turn and kept == first_kept(turn - 1, window) and place == asked[turn - 1]:
                break  # from here on it is the way of the turn before
            place = node.parent
        else:
            if place is not None:
                yield Contradiction(f"nodes[{reply}]", 0, "more messages", f"after {len(expected)}")
                return
        if reply < len(nodes):
            texts.append(("assistant", nodes[reply].message.text))
            if nodes[reply].message.role != "assistant":
                yield Contradiction(f"nodes[{reply}].role", 0, nodes[reply].message.role, "assistant")
                return
    for place, node in enumerate(nodes):
        if place not in known:
            yield Contradiction(f"nodes[{place}]", 0, (node.message.role, node.message.text), "no message")
            return
