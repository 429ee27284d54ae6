"""A person's games, without the window: it hears of keys and of time passing, and moves in whole ticks.

The display's rate decides nothing: between two ticks a picture lies between two states, see `Session.moment`.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from flappybird.episodes.episode import Episode, Player, save, summary_line
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.errors import ConfigError
from flappybird.protocol.rules import Rules
from flappybird.world.config import FlappyConfig
from flappybird.world.game import State
from flappybird.world.seeds import MAX_SEED
from render.frames import Track
from render.moment import Moment

TICKS_PER_SECOND = 10
"""How fast a person plays at speed 1.

Measured with simulated players who aim well and press 60 ms early or late (standard deviation): on `easy` they live for 14 s and
pass 2 pipes (median) at 10 ticks per second, for 6 s and 1 pipe at 20, for 3 s at the 30 of a film; the card's own world is hard
at any pace (28 of 100 of them pass a pipe at 10, 24 at 20).
"""

SLOWEST, FASTEST = 0.1, 10.0
"""Limits of the speed."""

LONGEST_STALL = 0.25
"""Seconds that the game catches up after a stall; what is longer stops the clock, so nobody dies of a slow disk."""

REST = 0.5
"""Seconds after a crash in which no key begins again: whoever still hammers at it wants to see what happened."""


class Phase(StrEnum):
    """Where a session stands."""

    WAITING = "waiting"
    """Before the first key."""
    FLYING = "flying"
    PAUSED = "paused"
    OVER = "over"


class Session:
    """Games of one person, one after the other.

    Args:
        config: the world.
        seed: the first course.
        rules: how many ticks a game lasts at most.
        speed: 1 is `TICKS_PER_SECOND`.
        path: where the episode is saved as a game ends, None for nowhere. A second game of the session is saved beside
            it as `name-2.json`, and so on: no game is lost.
        rival: an episode on the same course, whose bird flies along.

    Raises:
        ConfigError: seed or speed are out of range, or the rival's course is another one.
    """

    def __init__(
        self,
        config: FlappyConfig,
        seed: int = 0,
        rules: Rules = Rules(),
        speed: float = 1.0,
        path: Path | None = None,
        rival: Track | None = None,
    ) -> None:
        if not SLOWEST <= speed <= FASTEST:
            raise ConfigError(
                f"speed = {speed:g}: must be from {SLOWEST:g} to {FASTEST:g}; 1 is {TICKS_PER_SECOND} ticks per second"
            )
        if rival is not None and (rival.course.seed, rival.course.config) != (seed, config):
            raise ConfigError(f"{rival.name} flew seed {rival.course.seed}: you have to fly the same course")
        self.config, self.seed, self.rules, self.tps = config, seed, rules, speed * TICKS_PER_SECOND
        self.path, self.rival = path, rival
        self.best: dict[int, int] = {}
        """The most pipes passed on each seed."""
        self.saved: list[Path] = []
        self.phase = Phase.WAITING
        self.rollout = Rollout(config, seed, rules)
        self.heard: list[str] = []
        """What has happened since somebody last emptied it: "flap", "point", "crash"."""
        self._before: State | None = None
        self._tapped = False
        self._owed = 0.0  # ticks
        self._rested = 0.0  # seconds since the game was over

    def press(self) -> None:
        """Flap in the next tick; the first press begins the game, and one after its end begins another."""
        if self.phase is Phase.OVER:
            if self._rested >= REST:
                self.restart()
            return
        self.phase = Phase.FLYING
        self._tapped = True

    def pass_time(self, seconds: float) -> int:
        """Let `seconds` of real time pass, and return how many ticks were flown in them."""
        if self.phase is Phase.OVER:
            self._rested += seconds
            self._owed = min(self._owed + seconds * self.tps, 1.0)
        if self.phase is not Phase.FLYING:
            return 0
        self._owed += min(seconds, LONGEST_STALL) * self.tps
        flown = 0
        while self._owed >= 1 and self.phase is Phase.FLYING:
            self._owed -= 1
            self._tick()
            flown += 1
        return flown

    def _tick(self) -> None:
        game = self.rollout.game
        self._before, score = game.state, game.score
        if self._tapped:
            self.heard.append("flap")
        self.rollout.fly([self._tapped])
        self._tapped = False
        if game.score > score:
            self.heard.append("point")
        if self.rollout.outcome is not None:
            self.phase, self._rested = Phase.OVER, 0.0
            if self.rollout.outcome.reason.crashed:
                self.heard.append("crash")
            self.best[self.seed] = max(self.best.get(self.seed, 0), game.score)
            self._save()

    def moment(self) -> Moment:
        """Return what is to be seen now: between the last state and the one before it, as far as the next tick is due."""
        game, share = self.rollout.game, min(self._owed, 1.0)
        outcome = self.rollout.outcome if share >= 1 else None
        ghosts: tuple[State, ...] = ()
        earlier: tuple[State, ...] = ()
        if self.rival is not None:
            ghosts = (self.rival.state(game.tick),)
            earlier = (self.rival.state(max(game.tick - 1, 0)),)
        if self._before is None:
            return Moment(game.state, game.score, ended=self.rollout.outcome, ghosts=ghosts)
        return Moment(
            game.state, game.score, ended=outcome, ghosts=ghosts, before=self._before, ghosts_before=earlier, share=share
        )

    def pause(self) -> None:
        """Pause a game that flies, or go on with one that is paused."""
        if self.phase in (Phase.FLYING, Phase.PAUSED):
            self.phase = Phase.PAUSED if self.phase is Phase.FLYING else Phase.FLYING

    def focus(self, has: bool) -> None:
        """Pause a game that flies when the window loses the focus; the next press goes on."""
        if not has and self.phase is Phase.FLYING:
            self.phase = Phase.PAUSED

    def restart(self, seed: int | None = None) -> None:
        """Begin again, on the same course or on another; a game that flies is saved as aborted."""
        self._leave()
        self.seed = self.seed if seed is None else seed
        self.rollout = Rollout(self.config, self.seed, self.rules)
        self.phase, self._tapped, self._owed, self._before = Phase.WAITING, False, 0.0, None

    def next_seed(self) -> None:
        """Begin on the course of the next seed; a rival stays on its own."""
        self.restart((self.seed + 1) % (MAX_SEED + 1) if self.rival is None else None)

    def quit(self) -> None:
        """Leave: a game that has not ended is saved as aborted; one that never began only if nothing else was saved."""
        self._leave()
        if self.path is not None and not self.saved:
            self._save()

    def _leave(self) -> None:
        if self.phase in (Phase.FLYING, Phase.PAUSED):
            self._save()

    def episode(self) -> Episode:
        """Return the game so far; one that has not ended is marked as aborted, and ends."""
        return finish(self.rollout, Player(kind="human", name="human", sampling={"ticks_per_second": self.tps}))

    def _save(self) -> None:
        episode = self.episode()
        if self.path is not None:
            number = len(self.saved) + 1
            path = self.path if number == 1 else self.path.with_stem(f"{self.path.stem}-{number}")
            save(episode, path)
            self.saved.append(path)

    def verdict(self) -> str:
        """Return who has won, you or the rival: by pipes, then by ticks. Empty without a rival, or without a game."""
        if self.rival is None or self.rollout.outcome is None or not self.rollout.game.tick:
            return ""
        rival, game = self.rival, self.rollout.game
        yours, theirs = (game.score, game.tick), (rival.score(rival.last), rival.last)
        if yours == theirs:
            return f"a draw with {rival.name}: {yours[0]} pipes each"
        winner, loser = ("you", rival.name) if yours > theirs else (rival.name, "you")
        pipes, ticks = max(yours, theirs), min(yours, theirs)
        by = f"{pipes[0]} to {ticks[0]} pipes" if pipes[0] != ticks[0] else f"{pipes[1]} to {ticks[1]} ticks"
        return f"{winner} beat {loser}: {by}"

    def summary(self) -> str:
        """Return, on one line, how the last game ended, and who has won."""
        ended = summary_line(self.episode())
        verdict = self.verdict()
        return f"{ended}; {verdict}" if verdict else ended
