"""Why an episode went as it did: where it could still be survived, what lost it, and what would have saved it.

Everything here follows from the replay of an episode and the exact survivable states of its course (`solver.Survival`);
nothing is estimated. How it is shown is the report's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flappybird.episodes.episode import Episode, Replay, replay
from flappybird.system.memory import remembered
from flappybird.world.config import FlappyConfig
from flappybird.world.course import Course
from flappybird.world.game import Outcome, Reason, State, move
from flappybird.world.solver import Survival

LOOK_AHEAD = 2_000
"""Where the tick limit is further away than this, surviving means to live this many ticks past the end of the episode."""

REMEMBERED = 64_000_000
"""How much memory the survivable states of courses may take between one episode and the next; bytes."""

DOOMED = -1
"""The margin of a state in which nothing can save the bird any more."""


class Death(NamedTuple):
    """A crash, in units."""

    reason: Reason
    tick: int
    pipe: int
    """Number of the pipe that was hit; of the next one, where the bird hit floor or ceiling."""
    offset: int
    """The bird's y minus the centre of that pipe's gap."""
    gap_height: int
    miss: int
    """How far the bird was outside of where it could live: positive above, negative below."""


class Blunder(NamedTuple):
    """The action that turned a state that could be survived into one that could not."""

    tick: int
    """The point of no return: the last tick at which survival was still possible."""
    tap: bool
    """What the bird did there; the other action would have kept it alive."""
    turn: int | None
    """Index of the turn whose reply asked for it; None where latency, or time that passed before the reply was there, filled in
    for a reply yet to come."""
    doomed: int
    """Ticks that the bird flew on, alive, with nothing left that could save it."""
    rescue: tuple[bool, ...]
    """Actions from `tick` on with which the bird would have lived to the horizon."""


class Analysis(NamedTuple):
    """An episode explained. Lists have one entry per state in which the bird was alive, from tick 0 on."""

    horizon: int
    """The tick to which a bird is to live: the tick limit, or the furthest that any bird can reach on this course."""
    passable: bool
    """Whether some bird reaches the tick limit (or `LOOK_AHEAD` ticks past the episode's end)."""
    taps: list[bool]
    """What was flown in each tick, late and missing actions included; entry t leads from state t to state t + 1."""
    margins: list[int]
    """How many ticks the bird could have gone without a TAP and still be saved; `DOOMED` where nothing could save it."""
    forced: list[bool | None]
    """The only action that could be survived: True for TAP, False for none; None where both could, or neither."""
    blunder: Blunder | None
    """None where the bird never lost a game that it could have won."""
    death: Death | None

    @property
    def near_misses(self) -> list[int]:
        """Ticks of the TAPs that came in the last moment: one tick later nothing could have saved the bird."""
        return [tick for tick, margin in enumerate(self.margins[: len(self.taps)]) if margin == 0 and self.taps[tick]]

    @property
    def choices(self) -> tuple[int, int]:
        """(ticks at which only one action could be survived, those of them at which the bird took it)."""
        met = [tap is self.taps[tick] for tick, tap in enumerate(self.forced) if tap is not None]
        return len(met), sum(met)


def analyse(episode: Episode, played: Replay | None = None) -> Analysis:
    """Return the analysis of `episode`; `played` is its replay, where there already is one."""
    played = played or replay(episode)
    states, course, outcome = played.states, played.course, played.outcome
    taps = played.taps
    alive = states[:-1] if played.crashed else states

    limit = min(episode.rules.max_turns, len(states) - 1 + LOOK_AHEAD)
    survival = survivable(course.config, course.seed, limit)
    horizon = survival.last
    margins = [margin(survival, state) if state.tick <= horizon else DOOMED for state in alive]
    forced = [_forced(survival, state, spare) for state, spare in zip(alive, margins, strict=True)]

    blunder = None
    lost = max(tick for tick, spare in enumerate(margins) if spare != DOOMED)
    if lost < min(horizon, len(taps)):
        asked = lost - episode.rules.latency_ticks
        blunder = Blunder(
            tick=lost,
            tap=taps[lost],
            turn=_asked_by(episode, played, asked),
            doomed=len(alive) - 1 - lost,
            rescue=rescue(survival, course, states[lost]),
        )
    return Analysis(
        horizon=horizon,
        passable=horizon == limit,
        taps=taps,
        margins=margins,
        forced=forced,
        blunder=blunder,
        death=_death(course, outcome, states) if outcome is not None and played.crashed else None,
    )


@remembered(REMEMBERED)
def survivable(config: FlappyConfig, seed: int, limit: int) -> Survival:
    """Return the states of a course that survive to tick `limit`, or to the furthest tick that any bird can reach."""
    course = Course(config, seed)
    survival = Survival.of(course, limit)
    if survival.survives(State()):
        return survival
    reached, out_of_reach = 0, limit
    while out_of_reach - reached > 1:
        middle = (reached + out_of_reach) // 2
        if Survival.of(course, middle).survives(State()):
            reached = middle
        else:
            out_of_reach = middle
    return Survival.of(course, reached)


def margin(survival: Survival, state: State) -> int:
    """Return how many ticks a bird in `state` can go without a TAP and still live to the last tick, `DOOMED` if it cannot."""
    tick, y, velocity = state
    jump, gravity = survival.physics.jump, survival.physics.gravity
    found = DOOMED
    for waited in range(survival.last - tick):
        tick += 1
        if survival.lands(tick, y + jump):
            found = waited
        y, velocity = move(y, velocity, False, jump, gravity)
        if not survival.inside(tick, y):
            return found
    return survival.last - state.tick


def rescue(survival: Survival, course: Course, state: State) -> tuple[bool, ...]:
    """Return actions that bring a bird from `state`, which must be survivable, to the last tick.

    Where both actions can be survived, the bird stays near the middle of the next gap, as the planner does.
    """
    physics = course.physics
    half_hop = physics.jump**2 // (-4 * physics.gravity)
    taps = []
    while state.tick < survival.last:
        hold = survival.keeps(state, False)
        middle = course.gap(course.passed(state.tick)).y
        tap = survival.keeps(state, True) and (not hold or state.then(False, physics).y < middle - half_hop)
        taps.append(tap)
        state = state.then(tap, physics)
    return tuple(taps)


def _asked_by(episode: Episode, played: Replay, tick: int) -> int | None:
    """Return the turn whose reply said what was to be done at `tick`; None where no reply was there yet."""
    if tick < 0:
        return None
    turn = played.turn_at[tick]
    waited = tick - played.turn_at.index(turn) < episode.turns[turn].waited
    return None if waited else turn


def _forced(survival: Survival, state: State, spare: int) -> bool | None:
    if spare == DOOMED or state.tick >= survival.last:
        return None
    if spare == 0:
        return True
    return None if survival.lands(state.tick + 1, state.y + survival.physics.jump) else False


def _death(course: Course, outcome: Outcome, states: Sequence[State]) -> Death:
    tick, y, _ = states[-1]
    pipe = outcome.pipe if outcome.pipe is not None else course.passed(tick - 1)
    gap = course.gap(pipe)
    band = course.band(tick)
    return Death(
        reason=outcome.reason,
        tick=tick,
        pipe=pipe,
        offset=y - gap.y,
        gap_height=gap.height,
        miss=y - band.high if y > band.high else y - band.low,
    )
