"""One rollout in progress: replies in, observations out.

A `Rollout` carries replies to a `FlappyGame` and writes down every turn. All it knows is one plain JSON object, its
`record`, so that a rollout can be stored, sent or resumed at any moment, and an episode is made from it at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any

from flappybird.errors import GameOver
from flappybird.protocol.observe import observe
from flappybird.protocol.reply import Reply, Status, read_reply, said_and_thought
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig
from flappybird.world.game import FlappyGame, Outcome, Reason, State
from flappybird.world.observation import Observation


class Rollout:
    """A game that is played by replies.

    >>> rollout = Rollout(FlappyConfig(), seed=7, rules=Rules())
    >>> rollout.take("<THINK>up</THINK><ACTIONS>[TAP]</ACTIONS>")
    >>> rollout.game
    FlappyGame(seed=7, tick=1, y=1.60, velocity=1.60, score=0)

    Args:
        config: the world.
        seed: the course.
        rules: how replies and ticks meet.
        record: the record of a rollout in progress to go on with; a new one if not given.
    """

    def __init__(self, config: FlappyConfig, seed: int, rules: Rules, record: dict[str, Any] | None = None) -> None:
        self.rules = rules
        if record is None:
            record = {
                "tick": 0,
                "y": 0,
                "velocity": 0,
                "ended": None,
                "pending": [False] * rules.latency_ticks,
                "bad_in_a_row": 0,
                "turns": [],
            }
        self.record = record
        """All that has happened, as plain JSON."""
        self.game = FlappyGame(
            config, seed, max_ticks=rules.max_turns, state=State(record["tick"], record["y"], record["velocity"])
        )
        self.trail: list[State] = [State(*state) for state in record.get("trail", ())] or [self.game.state]
        """Every state since the last observation, the first and the last included."""
        self.flown: list[bool] = []
        """What was flown in the ticks between them, late and missing actions included."""
        self.read: dict[int, Reply] = {}
        """Replies as they were read, by turn: those that this object has taken itself."""
        if record["ended"]:
            self.game.outcome = self.outcome

    @property
    def outcome(self) -> Outcome | None:
        """How the rollout ended, None while it goes on."""
        ended = self.record["ended"]
        return Outcome(Reason(ended["reason"]), ended["tick"], ended["pipe"]) if ended else None

    @property
    def turns(self) -> list[dict[str, Any]]:
        """What happened so far, one entry per turn, in the fields of `episode.Turn`."""
        turns: list[dict[str, Any]] = self.record["turns"]
        return turns

    def observation(self) -> Observation:
        """Return what the player sees now."""
        return self.game.observation()

    def message(self) -> str:
        """Return what a model reads now."""
        return observe(self.observation(), self.rules, self.game.config, self.trail)

    def take(self, text: Any, reasoning: Any = None, *, cut: bool = False, waited: int = 0, **facts: Any) -> Reply:
        """Read a reply, fly its ticks, write the turn down.

        Args:
            text: the reply's content, see `text.read_reply`.
            reasoning: what came in a separate reasoning field.
            cut: whether the model ran into its token limit.
            waited: ticks that passed, as no-op, before the reply came.
            facts: what else is known of the turn: `prompt_tokens`, `completion_tokens`, `seconds`.

        Raises:
            GameOver: the rollout has ended.
        """
        said, thought = said_and_thought(text, reasoning)
        reply = read_reply(said, thought, cut=cut, ticks=self.rules.ticks_per_turn)
        known = {"reply": said, "reasoning": thought, "cut": cut, "ignored": reply.ignored}
        self._turn(reply.actions, reply.status, waited, **known, **facts)
        self.read[len(self.turns) - 1] = reply
        return reply

    def fly(self, taps: Sequence[bool], status: Status = Status.OK, *, waited: int = 0, **facts: Any) -> None:
        """Fly the ticks of one turn and write it down: of a key press, of a number, or of a reply that was read before."""
        self._turn(tuple(taps), status, waited, **facts)

    def end(self, reason: Reason) -> None:
        """End a rollout whose game goes on: aborted, an error."""
        if self.record["ended"] is None:
            self._write_outcome(Outcome(reason, self.game.tick))

    def _turn(self, taps: tuple[bool, ...], status: Status, waited: int, **facts: Any) -> None:
        if self.record["ended"]:
            raise GameOver(f"the rollout has ended ({self.outcome})")
        game, record = self.game, self.record
        turn = {"tick": game.tick, "actions": ["TAP" if tap else "NOOP" for tap in taps], "status": status.value}
        turn.update({name: value for name, value in facts.items() if value or name == "reply"})
        if waited:
            turn["waited"] = waited
        record["turns"].append(turn)

        self.trail, self.flown = [game.state], []
        # With latency, an action waits in line behind those that have not landed yet.
        pending = record["pending"]
        for tap in chain(repeat(False, waited), taps):
            pending.append(tap)
            landed = pending.pop(0)
            game.step(landed)
            self.flown.append(landed)
            self.trail.append(game.state)
            if game.outcome is not None:
                break
        record["tick"], record["y"], record["velocity"] = self.trail[-1]
        if self.rules.trail:
            record["trail"] = [list(state) for state in self.trail]

        bad = record["bad_in_a_row"] = 0 if status is Status.OK else record["bad_in_a_row"] + 1
        if game.outcome is not None:
            self._write_outcome(game.outcome)
        elif 0 < self.rules.stop_on_malformed <= bad:
            self._write_outcome(Outcome(Reason.MALFORMED, self.game.tick))

    def _write_outcome(self, outcome: Outcome) -> None:
        self.record["ended"] = {"reason": outcome.reason.value, "tick": outcome.tick, "pipe": outcome.pipe}
        self.game.outcome = outcome
