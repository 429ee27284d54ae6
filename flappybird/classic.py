"""Door: the classic API of verifiers (`load_environment`, `vf-eval`), up to release 0.3.

It carries messages between the library and a `Rollout`, and contains no rule of the game. The library asks for a reply,
`add_trajectory_step` gives it to the rollout, once each, the last one included; `env_response` answers with the next
observation. A rollout's state is its record, plain JSON; the environment object holds nothing but settings.
"""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, TypeVar

from flappybird import vf_eval
from flappybird.episodes import arguments, rewards
from flappybird.episodes.arguments import Settings
from flappybird.episodes.episode import Episode, Player
from flappybird.episodes.rewards import finish
from flappybird.episodes.rollout import Rollout
from flappybird.errors import ConfigError
from flappybird.messages import content, require_renderer
from flappybird.protocol.observe import has_picture
from flappybird.protocol.reply import Status, list_actions, read_reply
from flappybird.protocol.rules import MAX_TURNS
from flappybird.protocol.window import first_kept
from flappybird.system.install import missing_api
from flappybird.system.loopback import spare_loopback
from flappybird.world.game import Reason

try:
    import verifiers as vf
    from datasets import Dataset
    from verifiers.types import Response, ResponseMessage
    from verifiers.utils.save_utils import make_serializable

    vf.MultiTurnEnv, vf.XMLParser, vf.Rubric  # noqa: B018 - touched, so that a release without them is noticed here
except (ImportError, AttributeError):
    raise missing_api(
        "load_environment needs the classic API of verifiers, of releases below 0.4", "has none", "classic"
    ) from None

KEY = "flappybird"
"""Where the record of a rollout lies in its state."""

TRAIN_EXAMPLES = 1_000
"""Rows of the training set; trainers go round them, each a course of its own."""

T = TypeVar("T")


def load_environment(
    max_turns: int = MAX_TURNS,
    num_examples: int = 10,
    config: Any = None,
    config_overrides: dict[str, Any] | None = None,
    seed: int = 0,
    **more: Any,
) -> FlappyEnv:
    """Return the environment for verifiers' classic API.

    Args:
        max_turns: the limit on ticks.
        num_examples: games in the evaluation set; `-n` may ask for more or fewer.
        config: a `FlappyConfig` or its dict.
        config_overrides: fields laid over `config`.
        seed: seed of the first evaluation game; game i has seed `seed` + i.
        more: the other arguments, see `settings.ARGUMENTS`.

    Raises:
        ConfigError: an argument is unknown, of the wrong type or out of range.
    """
    try:
        checked = Settings.of(
            max_turns=max_turns, num_examples=num_examples, config=config, config_overrides=config_overrides, seed=seed, **more
        )
    except ConfigError as error:
        raise vf_eval.refused(error) from None
    require_renderer(checked.rules)
    spare_loopback()
    vf_eval.make_folder(checked)
    return FlappyEnv(checked)


def _contained(hook: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
    """Let an exception of ours end one rollout, as its error, and never the whole evaluation."""

    @functools.wraps(hook)
    async def contained(*args: Any, **kwargs: Any) -> T:
        try:
            return await hook(*args, **kwargs)
        except vf.Error:
            raise
        except Exception as error:
            raise _broken(error, hook.__name__) from error

    return contained


def _broken(error: Exception, hook: str) -> Any:
    """Return the error of a rollout that broke in `hook`, in one line."""
    line = " ".join(str(error).split())
    return vf.Error(f"{type(error).__name__} in {hook}: {line if len(line) <= 300 else line[:299] + '…'}")


class FlappyParser(vf.XMLParser):  # type: ignore[misc]
    """The card's parser, `think` and `actions`, read by the same referee as the game (`text.read_reply`): tags in any case."""

    def __init__(self, ticks: int = 1) -> None:
        self.ticks = ticks
        """Ticks that one reply plans."""
        # The library warns against a `think` field, since its own parser needs the tag to be there. Ours does not.
        logging.getLogger(f"{vf.Parser.__module__}.{type(self).__name__}").setLevel(logging.ERROR)
        super().__init__(fields=["think", "actions"], answer_field="actions")

    def parse(self, text: str, strip: bool = True, last: bool = True) -> SimpleNamespace:
        """Return `think` and `actions` of a reply; `actions` is `[TAP]`, `[]`, a plan …, None where there is no legal action."""
        return self._read(text, None)

    def parse_answer(self, completion: Any) -> str | None:
        """Return the action of the last reply in `completion`, None where it is no legal one."""
        if isinstance(completion, str):
            completion = [{"role": "assistant", "content": completion}]
        replies = self.get_assistant_messages(completion)
        action: str | None = self._read(*_said(replies[-1])).actions if replies else None
        return action

    def get_format_reward_func(self) -> Callable[..., float]:
        """Return the format reward: the mean over all replies of `Reply.format`."""

        def format_reward_func(completion: Any, state: dict[str, Any] | None = None) -> float:
            if state is not None and KEY in state:
                return rewards.format_score(_episode(state))
            replies = self.get_assistant_messages(completion)
            formats = [read_reply(*_said(reply), ticks=self.ticks).format for reply in replies]
            return sum(formats) / len(formats) if formats else 0.0

        return format_reward_func

    def _read(self, text: Any, reasoning: Any) -> SimpleNamespace:
        reply = read_reply(text, reasoning, ticks=self.ticks)
        legal = reply.status is Status.OK
        return SimpleNamespace(think=reply.thought or None, actions=list_actions(reply.actions) if legal else None)


def _said(message: Any) -> tuple[Any, Any]:
    """Return content and reasoning of a message, which is a dict or an object."""
    if isinstance(message, dict):
        return message.get("content"), message.get("reasoning_content")
    return getattr(message, "content", None), getattr(message, "reasoning_content", None)


def _rubric(parser: FlappyParser) -> Any:
    rubric = vf.Rubric(parser=parser)
    rubric.add_reward_func(flappy_reward_func, rewards.WEIGHTS["pipes_passed"])
    rubric.add_reward_func(flappy_survival_reward, rewards.WEIGHTS["survival_score"])
    rubric.add_reward_func(parser.get_format_reward_func(), rewards.WEIGHTS["format"])
    for metric in rewards.ALL_METRICS:
        rubric.add_metric(_metric(metric))
    return rubric


def flappy_reward_func(state: dict[str, Any]) -> float:
    """Number of pipes passed."""
    return rewards.pipes_passed(_episode(state))


def flappy_survival_reward(state: dict[str, Any]) -> float:
    """Accumulated survival bonus."""
    return rewards.survival_score(_episode(state))


def _metric(function: Callable[[Episode], float]) -> Callable[..., float]:
    def metric(state: dict[str, Any]) -> float:
        return function(_episode(state))

    metric.__name__ = function.__name__
    return metric


def _rollout(state: dict[str, Any]) -> Rollout:
    """Return the rollout of `state`: the one that flew last, or one made from the record, which says all there is to know."""
    live: Rollout | None = state.get("rollout")
    if live is None or live.record is not state.get(KEY):
        live = state["rollout"] = arguments.start(state["info"], state.get(KEY))
    return live


def _episode(state: dict[str, Any]) -> Episode:
    """Return the episode that the rollout of `state` has become; made once, when it has ended."""
    found: Episode | None = state.get("episode")
    if found is None:
        error = state.get("error")
        rollout = _rollout(state)
        if rollout.outcome is None and error is None and state.get("stop_condition") in _OUT_OF_TOKENS:
            rollout.end(Reason.CONTEXT)
        elif rollout.outcome is None and error is None and state.get("timed_out"):
            error = "timed out"
        player = Player(kind="model", name=str(state.get("model", "")))
        found = state["episode"] = finish(rollout, player, error=None if error is None else f"{error}" or repr(error))
    return found


_OUT_OF_TOKENS = ("prompt_too_long", "max_total_completion_tokens_reached")


class FlappyEnv(vf.MultiTurnEnv):  # type: ignore[misc]
    """Flappy Bird for `vf-eval` and classic trainers."""

    def __init__(self, checked: Settings) -> None:
        self.settings = checked
        parser = FlappyParser(checked.rules.ticks_per_turn)
        # The limit on ticks is the game's own; the library's limit on turns stays off.
        super().__init__(
            max_turns=-1,
            parser=parser,
            rubric=_rubric(parser),
            dataset=lambda: Dataset.from_list(self._rows(checked.training_row, TRAIN_EXAMPLES)),
            eval_dataset=lambda: Dataset.from_list(self._rows(checked.evaluation_row, checked.num_examples)),
        )

    # --- which games are played ---

    def _rows(self, row: Callable[[int], dict[str, Any]], count: int) -> list[dict[str, Any]]:
        rows = []
        for index in range(count):
            info = row(index)
            system, first = arguments.opening(arguments.start(info))
            prompt = [{"role": "system", "content": system}, {"role": "user", "content": first}]
            # As text: a table of rows would give all of them the same fields.
            rows.append({"example_id": index, "prompt": prompt, "info": json.dumps(info)})
        return rows

    def _get_eval_inputs(
        self, num_examples: int = -1, rollouts_per_example: int = 1, shuffle: bool = False, shuffle_seed: int | None = None
    ) -> list[dict[str, Any]]:
        # Games are made on demand: as many as are asked for, where the library would stop at the end of its table.
        if num_examples == 0 or num_examples < -1:
            error = ConfigError(
                f"num_examples = {num_examples}: -n takes a number of games, or -1 for all {self.settings.num_examples}"
            )
            raise vf_eval.refused(error)
        try:
            games = self.settings.num_examples if num_examples == -1 else num_examples
            self.settings.certify(games)
            rows = self._rows(self.settings.evaluation_row, games)
        except ConfigError as error:
            raise vf_eval.refused(error) from None
        if shuffle:
            rows = Dataset.from_list(rows).shuffle(seed=shuffle_seed or 0).to_list()
        return rows * rollouts_per_example

    # --- how one is played ---

    @_contained
    async def setup_state(self, state: dict[str, Any]) -> dict[str, Any]:
        rollout = _rollout(state)
        state[KEY] = rollout.record
        if has_picture(rollout.rules):
            # A table of rows cannot hold messages of text and pictures.
            state["prompt"] = [state["prompt"][0], vf.UserMessage(content=content(rollout))]
        return state

    @_contained
    async def get_prompt_messages(self, state: dict[str, Any]) -> Any:
        turns, window = len(state["trajectory"]), self.settings.rules.history_turns
        kept = first_kept(turns, window)
        if turns == 0 or kept == first_kept(turns - 1, window):
            return await super().get_prompt_messages(state)
        shown = [message for step in state["trajectory"][kept:] for message in _exchange(step)]
        return [state["prompt"][0], *shown, *await self.env_response(shown, state)]

    async def get_model_response(self, state: dict[str, Any], prompt: Any, **kwargs: Any) -> Any:
        try:
            return await super().get_model_response(state, prompt, **kwargs)
        except vf.EmptyModelResponseError as error:
            if "no content" not in str(error):
                raise
            # The model answered, with nothing: that is a turn without an action, not a failure to answer.
            silent = ResponseMessage(content="", finish_reason="stop", is_truncated=False)
            return Response(id="", created=0, model=state["model"], message=silent)

    @_contained
    async def add_model_response(self, state: dict[str, Any], prompt: Any, response: Any) -> None:
        # The library checks the reply's shape here.
        await super().add_model_response(state, prompt, response)

    @_contained
    async def add_trajectory_step(self, state: dict[str, Any], trajectory_step: dict[str, Any]) -> None:
        await super().add_trajectory_step(state, trajectory_step)
        response = trajectory_step["response"]
        usage, spans = response.usage, state["timing"].model.spans
        seconds = spans[-1].end - spans[-1].start if spans else None
        rollout = _rollout(state)
        rollout.take(
            response.message.content,
            response.message.reasoning_content,
            cut=response.message.finish_reason == "length" or bool(response.message.is_truncated),
            prompt_tokens=usage.prompt_tokens if usage else None,
            completion_tokens=usage.completion_tokens if usage else None,
            waited=rollout.rules.waited(seconds or 0.0),
            seconds=None if seconds is None else round(seconds, 4),
        )

    @_contained
    async def env_response(self, messages: Any, state: dict[str, Any], **kwargs: Any) -> Any:
        return [vf.UserMessage(content=content(_rollout(state)))]

    # --- how it ends ---

    @vf.stop  # type: ignore[untyped-decorator]
    async def crashed(self, state: dict[str, Any]) -> bool:
        ended = self._ended(state)
        return ended is not None and Reason(ended).crashed

    @vf.stop  # type: ignore[untyped-decorator]
    async def tick_limit_reached(self, state: dict[str, Any]) -> bool:
        return self._ended(state) == Reason.TICK_LIMIT

    @vf.stop  # type: ignore[untyped-decorator]
    async def too_many_malformed(self, state: dict[str, Any]) -> bool:
        return self._ended(state) == Reason.MALFORMED

    def _ended(self, state: dict[str, Any]) -> str | None:
        record = state.get(KEY)
        return record["ended"]["reason"] if record and record["ended"] else None

    async def render_completion(self, state: dict[str, Any]) -> None:
        steps = state["trajectory"]
        # All turns, where the last prompt may hold only the last of them.
        state["completion"] = [message for step in steps for message in _exchange(step)][1:]
        # What the messages do not tell goes into `info`, which every saved row has.
        try:
            episode = _episode(state).to_dict()
            kept = [{name: value for name, value in turn.items() if name not in _IN_MESSAGES} for turn in episode["turns"]]
            state["info"].update(turns=kept, outcome=episode["outcome"])
            if self.settings.turn_reward:
                for step, share in zip(steps, rewards.turn_rewards(_episode(state)), strict=True):
                    step["reward"] = share
        except Exception as error:
            state["error"] = state.get("error") or _broken(error, "render_completion")

    # --- the evaluation as a whole ---

    async def generate(self, inputs: Any, client: Any, model: str, *args: Any, **kwargs: Any) -> Any:
        with vf_eval.saved(self.settings, self.env_args, kwargs):
            await vf_eval.require_server(client)
            with vf_eval.reported(self.settings, kwargs, make_serializable):
                return await super().generate(inputs, client, model, *args, **kwargs)


def _exchange(step: dict[str, Any]) -> list[Any]:
    """Return what one turn added to the conversation: the observation and the reply."""
    return [step["prompt"][-1], *step["completion"]]


_IN_MESSAGES = ("reply", "reasoning")
