"""`flappybird …`: the only file that may import all the others, and imports each only when its command is asked for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flappybird.cli_runs import add_episodes, add_index, add_jobs, add_report, add_verify, add_view
from flappybird.errors import ConfigError, printable, show
from flappybird.system.command import Parser, guarded

if TYPE_CHECKING:
    pass

DEFAULT_PORT = 8765
"""The port of `flappybird serve`, which `configs/endpoints.toml` names."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 for a failed run, 2 for a usage error, 130 after Ctrl-C."""

    def command() -> int:
        args = _parser().parse_args(argv)
        code: int = args.command(args)
        return code

    return guarded(command, alone=argv is None)


def _parser() -> argparse.ArgumentParser:
    from flappybird._version import __version__

    parser = Parser(prog="flappybird", description="Flappy Bird as a world for language models.")
    parser.add_argument("--version", action="version", version=f"flappybird {__version__} ({Path(__file__).parent})")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_baselines(commands)
    _add_cost(commands)
    _add_demo(commands)
    add_episodes(commands)
    add_index(commands)
    _add_play(commands)
    add_report(commands)
    _add_serve(commands)
    _add_sft(commands)
    add_verify(commands)
    add_view(commands)
    return parser


def _add_baselines(commands: Any) -> None:
    baselines = commands.add_parser("baselines", help="how far the built-in policies get on each level: what a score is worth")
    baselines.add_argument("--difficulty", metavar="LEVEL[,LEVEL…]", default="all", help="default: all levels")
    baselines.add_argument("--policy", metavar="NAME[,NAME…]", default="all", help="default: all policies")
    baselines.add_argument("-n", "--num-games", type=int, default=1000, metavar="N", help="seeds per level (default: 1000)")
    baselines.add_argument("--seed", type=int, default=0, help="the first seed (default: 0)")
    baselines.add_argument("--max-turns", type=int, default=300, metavar="TICKS", help="the tick limit (default: 300)")
    baselines.add_argument("--human", type=Path, metavar="FOLDER", help="add the scores of people from their episode files")
    baselines.add_argument("--certify", action="store_true", help="also show how many of the first 10,000 seeds can be flown")
    add_jobs(baselines)
    baselines.add_argument("--json", action="store_true", help="print JSON")
    baselines.set_defaults(command=_baselines)


def _baselines(args: argparse.Namespace) -> int:
    from flappybird.baselines import report
    from flappybird.players.policies import POLICIES
    from flappybird.world.levels import LEVELS

    text = report(
        list(LEVELS) if args.difficulty == "all" else args.difficulty.split(","),
        list(POLICIES) if args.policy == "all" else args.policy.split(","),
        args.num_games,
        seed=args.seed,
        max_turns=args.max_turns,
        jobs=args.jobs,
        backend=args.backend,
        human=args.human,
        certify=args.certify,
        as_json=args.json,
    )
    print(text)
    return 0


def _add_cost(commands: Any) -> None:
    cost = commands.add_parser("cost", help="estimate tokens and money of an evaluation before anything is spent")
    cost.add_argument("-m", "--model", default="gpt-4.1-mini", metavar="MODEL", help="whose price counts (default: gpt-4.1-mini)")
    cost.add_argument("-n", "--num-examples", type=int, default=10, metavar="N", help="games (default: 10)")
    cost.add_argument("-r", "--rollouts-per-example", type=int, default=1, metavar="R", help="rollouts of each (default: 1)")
    cost.add_argument("-a", "--env-args", default="{}", metavar="JSON", help="environment arguments, as for vf-eval")
    cost.add_argument("--price", metavar="PROMPT,CACHED,COMPLETION", help="dollars a million tokens, such as 0.4,0.1,1.6")
    cost.add_argument("--policy", default="planner", metavar="POLICY", help="who plays in the model's place (default: planner)")
    cost.add_argument("--run", metavar="RUN", help="a saved run whose true figures are shown beside the estimate")
    cost.set_defaults(command=_cost)


def _cost(args: argparse.Namespace) -> int:
    from flappybird.cost import read_args, report
    from flappybird.runs import load_run

    run = load_run(args.run) if args.run else None
    env_args = read_args(args.env_args)
    print(report(args.model, args.num_examples, args.rollouts_per_example, env_args, args.price, args.policy, run))
    return 0


def _add_demo(commands: Any) -> None:
    demo = commands.add_parser("demo", help="evaluate the built-in policies with the real vf-eval: no key, no network")
    demo.add_argument("-n", "--num-examples", type=int, default=3, metavar="N", help="games per policy (default: 3)")
    demo.add_argument("-o", "--output", type=Path, default=Path("outputs/demo"), metavar="DIR", help="default: outputs/demo")
    demo.set_defaults(command=_demo)


def _demo(args: argparse.Namespace) -> int:
    from flappybird.demo import demo

    return demo(args.num_examples, args.output)


def _add_play(commands: Any) -> None:
    play = commands.add_parser("play", help="play by keyboard (space, up or click), or let a built-in policy play")
    play.add_argument("--policy", metavar="NAME", help="noop, random, heuristic or planner plays instead, without a window")
    play.add_argument("--against", metavar="EPISODE", help="fly beside a model's ghost: an episode file, or RUN:N")
    play.add_argument("--difficulty", metavar="LEVEL", help="card, easy, medium, hard or expert (default: card; begin with easy)")
    play.add_argument("--seed", type=int, help="the course (default: 0)")
    play.add_argument(
        "--config", action="append", default=[], metavar="CONFIG", help="JSON, a file that holds it, or name=value; repeatable"
    )
    play.add_argument("--max-turns", type=int, metavar="N", help="the limit on ticks (default: 300)")
    play.add_argument(
        "--speed", type=float, default=1.0, metavar="X", help="2 is twice as fast (default: 1, 10 ticks per second)"
    )
    play.add_argument("--sound", action="store_true", help="hear flaps, points and crashes")
    play.add_argument("--save", type=Path, metavar="FILE.json", help="write the episode, in the format of a model's")
    play.set_defaults(command=_play)


def _play(args: argparse.Namespace) -> int:
    from flappybird.episodes.arguments import parse_config
    from flappybird.protocol.rules import Rules
    from flappybird.world.levels import level

    if args.difficulty is not None and args.config:
        raise ConfigError("--difficulty and --config: only one of them at a time")
    config = parse_config(args.config) if args.difficulty is None else level(args.difficulty)
    seed, rules = args.seed or 0, Rules(max_turns=300 if args.max_turns is None else args.max_turns)
    if args.policy is None:
        from flappybird.runs import load_episode_at
        from flappybird.system.install import sibling

        play = sibling("render.play", "the window needs pygame", "render").play
        Track = sibling("render.frames", "the window needs pygame", "render").Track

        rival = None
        if args.against is not None:
            if args.seed is not None or args.difficulty is not None or args.config or args.max_turns is not None:
                raise ConfigError(
                    "--against and --seed, --difficulty, --config or --max-turns: the episode says which course it is"
                )
            rival = Track(load_episode_at(args.against))
            config, seed, rules = rival.course.config, rival.course.seed, Rules(max_turns=rival.episode.rules.max_turns)
        print(printable(play(config, seed, rules, args.speed, args.save, rival=rival, sound=args.sound).summary()))
        return 0

    from flappybird.episodes.episode import save, summary_line
    from flappybird.players.games import fly

    if args.against is not None:
        raise ConfigError("--against and --policy: only one of them at a time; a race of two is python -m render --ghost")
    if args.save is not None and args.save.suffix.lower() != ".json":
        raise ConfigError(f"{args.save}: unknown extension {show(args.save.suffix)}; an episode is a .json")
    episode = fly(args.policy, config, seed, rules)
    if args.save is not None:
        save(episode, args.save)
    print(summary_line(episode))
    return 0


def _add_serve(commands: Any) -> None:
    serve = commands.add_parser("serve", help="serve the built-in policies as an OpenAI-compatible endpoint")
    serve.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1")
    serve.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"0 lets the system choose (default: {DEFAULT_PORT})")
    serve.add_argument("--latency", type=float, default=0.0, metavar="SECONDS", help="how long each answer takes")
    serve.add_argument("--malformed", type=float, default=0.0, metavar="SHARE", help="share of answers that are spoilt")
    serve.add_argument("--seed", type=int, default=None, help="make `random` and spoilt answers repeatable")
    serve.add_argument(
        "--reply",
        metavar="MODULE:FUNCTION",
        help="a function that answers instead: gets a list of conversations, returns replies",
    )
    serve.set_defaults(command=_serve)


def _serve(args: argparse.Namespace) -> int:
    from flappybird.server import serve
    from flappybird.server.answers import Options, load_function

    options = Options(args.latency, args.malformed, args.seed)
    serve(args.host, args.port, options, load_function(args.reply) if args.reply else None)
    return 0


def _add_sft(commands: Any) -> None:
    sft = commands.add_parser("sft", help="write demonstrations: chat transcripts in the environment's own prompt format")
    sft.add_argument("-n", "--num-games", type=int, default=1000, metavar="N", help="games (default: 1000)")
    sft.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.jsonl", help="where they go")
    sft.add_argument("--policy", default="planner", help="who plays (default: planner)")
    sft.add_argument("--difficulty", metavar="LEVEL[,LEVEL…]", default="card", help="in turn, game by game (default: card)")
    sft.add_argument("--seed", type=int, default=0, help="the first game is seed 2**40 + this (default: 0)")
    sft.add_argument("--max-turns", type=int, metavar="TICKS", help="the tick limit (default: 300)")
    sft.add_argument("--ticks-per-turn", type=int, metavar="TICKS", help="ticks that a reply plans (default: 1)")
    sft.add_argument("--history-turns", type=int, metavar="K", help="cut as the environment cuts what a model sees of a game")
    sft.add_argument("-a", "--env-args", default="{}", metavar="JSON", help="other rules of the environment, as for vf-eval")
    sft.add_argument("--perturbed", type=float, default=0.0, metavar="SHARE", help="share that starts off course (default: 0)")
    sft.add_argument(
        "--think", default="arithmetic", metavar="HOW", help="none, short or arithmetic: what is said (default: arithmetic)"
    )
    sft.add_argument("--form", default="messages", metavar="FORM", help="messages or prompt-completion (default: messages)")
    sft.add_argument("--marks", action="store_true", help="add how decisive each turn is")
    sft.add_argument(
        "--preferences", type=Path, metavar="FILE.jsonl", help="also write chosen and rejected replies of decisive turns"
    )
    sft.add_argument("--max-tokens", type=int, metavar="N", help="no line has more tokens than N")
    sft.add_argument("--tokenizer", metavar="FILE.json", help="whose tokens (default: o200k_base and 30 %% more)")
    sft.add_argument("--validation", type=float, default=0.0, metavar="SHARE", help="share that goes to FILE.validation.jsonl")
    sft.add_argument("--numbers", type=Path, metavar="FILE.npz", help="also write observations, actions, rewards as arrays")
    add_jobs(sft)
    sft.set_defaults(command=_sft)


def _sft(args: argparse.Namespace) -> int:
    from flappybird.cost import read_args
    from flappybird.sft import Plan, rules_of, write

    given = {name: getattr(args, name) for name in ("max_turns", "ticks_per_turn", "history_turns")}
    plan = Plan(
        games=args.num_games,
        policy=args.policy,
        levels=tuple(args.difficulty.split(",")),
        seed=args.seed,
        rules=rules_of(read_args(args.env_args) | {name: value for name, value in given.items() if value is not None}),
        perturbed=args.perturbed,
        think=args.think,
        form=args.form,
        marks=args.marks,
        max_tokens=args.max_tokens,
        tokenizer=args.tokenizer,
        validation=args.validation,
    )
    print(write(plan, args.output, args.numbers, args.jobs, args.backend, args.preferences))
    return 0


if __name__ == "__main__":
    sys.exit(main())
