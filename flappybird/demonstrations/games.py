"""One game as it is demonstrated: what is read, said and flown, turn by turn, and how decisive each turn is."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from flappybird.demonstrations.plan import Plan
from flappybird.demonstrations.thoughts import thought
from flappybird.episodes.rollout import Rollout
from flappybird.errors import TooMuchWork
from flappybird.players.policies import CHOICES, Choice
from flappybird.players.sight import Sight, imagine
from flappybird.protocol.reply import write_reply
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course
from flappybird.world.game import FlappyGame, State
from flappybird.world.levels import level
from flappybird.world.solver import NO_ROOM, Survival

TRIES = 20
"""Games that are tried for each one asked for: a policy that crashes more often than that demonstrates nothing."""

LONGEST_SLIP = 8
"""Ticks of random flying before a perturbed start, at the most."""


class Moment(NamedTuple):
    """Where a rollout stands before a turn: all it takes to go on from there."""

    state: State
    pending: tuple[bool, ...]
    """Actions that have not landed yet."""
    trail: tuple[State, ...]
    """Every state since the observation before, where observations show them."""

    @classmethod
    def of(cls, rollout: Rollout) -> Moment:
        """Return where `rollout` stands."""
        return cls(rollout.game.state, tuple(rollout.record["pending"]), tuple(rollout.trail) if rollout.rules.trail else ())

    @classmethod
    def read(cls, data: dict[str, Any]) -> Moment:
        """Return what `to_dict` gave."""
        trail = tuple(State(*state) for state in data.get("trail", ()))
        return cls(State(data["tick"], data["y"], data["velocity"]), tuple(data.get("pending", ())), trail)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON: `tick`, `y` and `velocity` in units, and what else there is."""
        found: dict[str, Any] = self.state._asdict()
        if self.pending:
            found["pending"] = list(self.pending)
        if self.trail:
            found["trail"] = [list(state) for state in self.trail]
        return found

    def rollout(self, config: FlappyConfig, seed: int, rules: Rules) -> Rollout:
        """Return a rollout that goes on from here."""
        record = Rollout(config, seed, rules).record
        record.update(self.to_dict())
        return Rollout(config, seed, rules, record)


class Mark(NamedTuple):
    """How decisive a turn is, as far as the pipes in sight say."""

    noop: int
    """Room after doing nothing in the tick where the reply's first action lands, see `Survival.room`: how far the bird could then
    be moved, up and down, and still be saved; units, -1 where nothing could save it."""
    tap: int
    """Likewise after a TAP. The larger of the two leaves more room for mistakes."""
    decisive: int
    """Which action of the reply is the first without an alternative, from 0; -1 where all could have been the other one."""


class Decision(NamedTuple):
    """What is done in a turn."""

    taps: tuple[bool, ...]
    thought: str
    mark: Mark | None
    other: str
    """The thought for doing the opposite in the first tick that is decisive: the same numbers, and no reason."""


class Pilot:
    """A policy that reads rollouts of one game, in their order."""

    def __init__(self, plan: Plan, course: Course, weighing: bool) -> None:
        self.plan, self.course, self.weighing = plan, course, weighing
        self._choose = CHOICES[plan.policy]
        self._sight, self._known_until = Sight.at(course, 0)

    def decide(self, rollout: Rollout) -> Decision:
        """Return what to do in the next turn of `rollout`, and what to say."""
        rules, physics = rollout.rules, self.course.physics
        sight, state = self._look(rollout), rollout.game.state
        ahead = rollout.observation() if rules.latency_ticks or rules.ticks_per_turn > 1 else None
        for tap in rollout.record["pending"]:
            assert ahead
            ahead = imagine(ahead, tap, self.course.config)
            sight, state = Sight.of(ahead, physics), State(ahead.tick, ahead.y, ahead.velocity)
        first, landing = (sight, state), rules.latency_ticks
        choice = self._choose(sight, state)
        steps, taps = [first], [choice.tap]
        while len(taps) < rules.ticks_per_turn:
            assert ahead
            ahead = imagine(ahead, taps[-1], self.course.config)
            sight, state = Sight.of(ahead, physics), State(ahead.tick, ahead.y, ahead.velocity)
            steps.append((sight, state))
            taps.append(self._choose(sight, state).tap)
        think, mark, other = self.plan.think, None, ""
        if self.weighing:
            mark = weigh(steps, taps)
            if mark.decisive >= 0:
                tap = choice.tap if mark.decisive else not choice.tap
                other = thought(think, first[1], first[0], Choice(tap, choice.why if mark.decisive else "just so"), landing)
        return Decision(tuple(taps), thought(think, first[1], first[0], choice, landing), mark, other)

    def _look(self, rollout: Rollout) -> Sight:
        tick = rollout.game.tick
        if tick >= self._known_until:
            self._sight, self._known_until = Sight.at(self.course, tick)
        return self._sight


def weigh(steps: list[tuple[Sight, State]], taps: list[bool]) -> Mark:
    """Return the mark of a turn: `steps` are what is known, and where the bird is, before each of its `taps`."""
    noop, rise, decisive = NO_ROOM, NO_ROOM, -1
    for at, ((sight, state), tap) in enumerate(zip(steps, taps, strict=True)):
        survival = sight.survival(state)
        if survival is None:
            raise TooMuchWork("this world is too fine to say which turns are decisive")
        if at == 0:
            noop, rise = _room(survival, state, False), _room(survival, state, True)
        if decisive < 0 and survival.keeps(state, tap) and not survival.keeps(state, not tap):
            decisive = at
    return Mark(noop, rise, decisive)


def _room(survival: Survival, state: State, tap: bool) -> int:
    then = survival.after(state, tap)
    return NO_ROOM if then is None else survival.room(then)


class Demonstration(NamedTuple):
    """One game as it was demonstrated."""

    level: str
    seed: int
    perturbed: bool
    start: State
    """Where it begins; units."""
    seen: list[str]
    """What was read before each reply."""
    replies: list[str]
    taps: list[bool]
    """What was flown, tick by tick."""
    moments: list[Moment]
    """Where the game stood before each reply."""
    marks: list[Mark]
    """How decisive each turn was, where that was asked for."""
    rejected: list[str]
    """For each turn a reply that loses the game where the one that was given does not; empty where there is none."""


def demonstrate(plan: Plan, name: str, seed: int, weighing: bool = False) -> Demonstration | None:
    """Return the game `seed` of the level `name` as the policy flies it, None where it crashes.

    Args:
        plan: who plays, and how.
        name: the level.
        seed: the course.
        weighing: whether to fill in `marks` and `rejected`.

    Raises:
        TooMuchWork: `weighing` is too much work in this world.
    """
    config, dice = level(name), random.Random(seed)
    perturbed = dice.random() < plan.perturbed
    start = off_course(plan, config, seed, dice) if perturbed else State()
    rollout = Moment(start, (False,) * plan.rules.latency_ticks, ()).rollout(config, seed, plan.rules)
    pilot = Pilot(plan, rollout.game.course, weighing)
    game = Demonstration(name, seed, start.tick > 0, start, [], [], [], [], [], [])
    while rollout.outcome is None:
        decision = pilot.decide(rollout)
        game.moments.append(Moment.of(rollout))
        game.seen.append(rollout.message())
        game.replies.append(write_reply(decision.taps, decision.thought))
        if decision.mark is not None:
            game.marks.append(decision.mark)
            game.rejected.append(_rejected(decision))
        rollout.fly(decision.taps)
        game.taps.extend(rollout.flown)
    return None if rollout.outcome.reason.crashed else game


def _rejected(decision: Decision) -> str:
    assert decision.mark
    at, taps = decision.mark.decisive, decision.taps
    return "" if at < 0 else write_reply((*taps[:at], not taps[at], *taps[at + 1 :]), decision.other)


def off_course(plan: Plan, config: FlappyConfig, seed: int, dice: random.Random) -> State:
    """Return a survivable state that random flying has led to on the course `seed`; the beginning if none is found."""
    course, last = Course(config, seed), plan.rules.max_turns
    survival = Survival.of(course, last)
    game, choose = FlappyGame(config, seed), CHOICES[plan.policy]
    for _ in range(dice.randrange(max(last - LONGEST_SLIP, 1))):
        tap = choose(Sight.at(course, game.tick)[0], game.state).tap
        if game.step(tap) is not None:
            return State()
    for _ in range(TRIES):
        slip = FlappyGame(config, seed, state=game.state)
        for _ in range(dice.randint(1, LONGEST_SLIP)):
            slip.step(dice.random() < 0.5)
            if slip.outcome is not None:
                break
        if slip.outcome is None and slip.tick < last and _saved(survival, slip.state, plan.rules.latency_ticks):
            return slip.state
    return State()


def _saved(survival: Survival, state: State, late: int) -> bool:
    """Whether a bird can be saved whose first action lands `late` ticks from now."""
    then: State | None = state
    for _ in range(min(late, survival.last - state.tick)):
        then = survival.after(then, False) if then else None
    return then is not None and survival.survives(then)
