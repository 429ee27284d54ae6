"""Many games at once, in this process: what a trainer needs of the environment, without a server.

    def reply(conversations):  # a batch of lists of messages in, a batch of replies out
        return ["<THINK>up</THINK>\n<ACTIONS>[TAP]</ACTIONS>" for _ in conversations]

    for played in play_many((settings.training_row(index) for index in range(512)), reply):
        played.messages, played.turn_rewards, played.episode

Messages, scores and episodes are those of the doors, byte for byte: the same `Rollout` plays them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from flappybird.episodes import arguments, rewards
from flappybird.episodes.episode import Episode, Player, Replay
from flappybird.errors import ConfigError
from flappybird.messages import content, require_renderer
from flappybird.protocol.window import first_kept
from flappybird.server.chat import Reply, ReplyError
from flappybird.world.game import FlappyGame, State
from flappybird.world.solver import Survival

Message = dict[str, Any]
"""A message as chat APIs take it: `role` and `content`, and `reasoning_content` where a reply came with one."""

ReplyMany = Callable[[list[list[Message]]], Sequence[Any]]
"""Replies to a batch of conversations, in their order: each text, a `Reply`, or a tuple or dict of its fields.

A conversation may be the game's own list, which grows as the game goes on: copy what is to be kept."""

AT_ONCE = 256
"""Games that are played together where nothing else is asked for."""


class Worth(NamedTuple):
    """What a game that was cut off alive was still worth: the best that can be reached from its last state."""

    ticks: int
    """Further ticks that the best play survives, `horizon` at the most."""
    pipes: int
    """Pipes passed in them."""


class Played(NamedTuple):
    """A finished game."""

    number: int
    """Its place among the rows."""
    episode: Episode
    messages: list[Message]
    """All that was said: system, user, assistant, …; what a reply was shown of it is `first_kept`'s window."""
    turn_rewards: list[float]
    """What each turn added to the reward; they add up to it."""
    cut_off: bool
    """Whether the game ended while the bird was alive."""
    worth: Worth | None
    """What it was still worth, where it was cut off and a horizon was asked for."""
    notes: list[Any]
    """The `note` of each reply."""


class _Game:
    def __init__(self, number: int, row: dict[str, Any]) -> None:
        self.number, self.rollout = number, arguments.start(row)
        # The replay of the episode, written down while it is played.
        self.states, self.turn_at, self.taps = [self.rollout.game.state], list[int](), list[bool]()
        self.notes: list[Any] = []
        require_renderer(self.rollout.rules)
        system, _ = arguments.opening(self.rollout)
        self.messages: list[Message] = [
            {"role": "system", "content": system},
            {"role": "user", "content": content(self.rollout)},
        ]

    def conversation(self) -> list[Message]:
        """The request that the doors would send now."""
        kept = first_kept(len(self.rollout.turns), self.rollout.rules.history_turns)
        return [self.messages[0], *self.messages[1 + 2 * kept :]] if kept else self.messages

    def take(self, reply: Reply) -> None:
        said: Message = {"role": "assistant", "content": reply.text}
        if reply.reasoning is not None:
            said["reasoning_content"] = reply.reasoning
        self.messages.append(said)
        rollout, text, aside = self.rollout, reply.text, reply.reasoning
        turn = len(rollout.turns)
        read, written = reply.prompt_tokens, reply.completion_tokens
        rollout.take(text, aside, cut=reply.cut, prompt_tokens=read, completion_tokens=written)
        self.notes.append(reply.note)
        self.states += rollout.trail[1:]
        self.turn_at += [turn] * len(rollout.flown)
        self.taps += rollout.flown
        if rollout.game.outcome is None and rollout.outcome is None:
            self.messages.append({"role": "user", "content": content(rollout)})

    def finished(self, player: Player, horizon: int) -> Played:
        episode, state = rewards.finish(self.rollout, player), self.rollout.game.state
        outcome, course = self.rollout.outcome, self.rollout.game.course
        flown = Replay(self.states, self.turn_at, self.taps, outcome, course, len(episode.turns))
        cut_off = not episode.outcome.reason.crashed
        worth = worth_of(self.rollout.game, state, horizon) if cut_off and horizon else None
        shares = rewards.turn_rewards(episode, flown)
        return Played(self.number, episode, self.messages, shares, cut_off, worth, self.notes)


def play_many(
    rows: Iterable[dict[str, Any]], reply: ReplyMany, *, at_once: int = AT_ONCE, name: str = "model", horizon: int = 0
) -> Iterator[Played]:
    """Play the games `rows` and yield each as soon as it has ended; a game that ends makes room for the next row.

    Args:
        rows: games, as `Settings.evaluation_row` and `.training_row` give them; may be endless.
        reply: gets the conversations of all games in progress, returns as many replies.
        at_once: games in progress at the most.
        name: the player's name in the episodes.
        horizon: how many further ticks to search for what a game that was cut off was still worth; 0 for not at all.

    Raises:
        ConfigError: a row is none of this environment, `at_once` or `horizon` are no such numbers, or a row is played in real
            time, which knows no batch.
        ReplyError: `reply` returned something else than as many replies.
        MissingPart: a row asks for pictures, and what draws them is not installed.
        TooMuchWork: the search of `horizon` ticks is too much work in this world.
    """
    for option, value, least in (("at_once", at_once, 1), ("horizon", horizon, 0)):
        if not isinstance(value, int) or value < least:
            raise ConfigError(f"{option} = {value!r}: must be a whole number from {least}")
    player, waiting = Player(kind="model", name=name), enumerate(rows)
    playing: list[_Game] = []
    while True:
        for number, row in islice(waiting, at_once - len(playing)):
            game = _Game(number, row)
            if game.rollout.rules.realtime:
                raise ConfigError(f"realtime = {game.rollout.rules.realtime}: games that are played together wait for replies")
            playing.append(game)
        if not playing:
            return
        answers = reply([game.conversation() for game in playing])
        if isinstance(answers, str) or not isinstance(answers, Sequence) or len(answers) != len(playing):
            found = len(answers) if isinstance(answers, Sequence) else type(answers).__name__
            raise ReplyError(f"the function returned {found} for {len(playing)} conversations: must be a list of as many replies")
        for game, answer in zip(playing, answers, strict=True):
            game.take(Reply.of(answer))
        ended = [game for game in playing if game.rollout.outcome is not None]
        playing = [game for game in playing if game.rollout.outcome is None]
        for game in ended:
            yield game.finished(player, horizon)


def worth_of(game: FlappyGame, state: State, horizon: int) -> Worth:
    """Return the most that can still be reached from `state` on the course of `game` in `horizon` further ticks; exact.

    Raises:
        TooMuchWork: the search is too much work in this world.
    """
    course, most = game.course, horizon
    if not Survival.of(course, state.tick + horizon).survives(state):
        # Longest life by bisection: who lives to a tick has lived to every tick before it.
        least, most = 0, horizon
        while most - least > 1:
            middle = (least + most) // 2
            if Survival.of(course, state.tick + middle).survives(state):
                least = middle
            else:
                most = middle
        most = least
    return Worth(most, course.passed(state.tick + most) - course.passed(state.tick))
