"""`flappybird …`: the only file that may import all the others, and imports each only when its command is asked for."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from flappybird.errors import ConfigError, printable, show
from flappybird.system.command import Parser, guarded

if TYPE_CHECKING:
    from flappybird.runs import Run

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
    _add_episodes(commands)
    _add_index(commands)
    _add_play(commands)
    _add_report(commands)
    _add_serve(commands)
    _add_sft(commands)
    _add_verify(commands)
    _add_view(commands)
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
    _add_jobs(baselines)
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


def _add_jobs(command: Any) -> None:
    command.add_argument("--jobs", type=int, metavar="N", help="processes (default: one per processor)")
    command.add_argument(
        "--backend", metavar="NAME", help="spread them over a cluster instead: ray or dask, see docs/training.md"
    )


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


def _add_episodes(commands: Any) -> None:
    episodes = commands.add_parser("episodes", help="write an episode file for each rollout of a saved run")
    episodes.add_argument("run", metavar="RUN", help="the folder that vf-eval -s saved to")
    episodes.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="where the files go")
    episodes.set_defaults(command=_episodes)


def _episodes(args: argparse.Namespace) -> int:
    from flappybird.episodes.episode import save
    from flappybird.errors import ConfigError
    from flappybird.runs import file_name, load_run
    from flappybird.runs.folder import episode_files

    run = load_run(args.run)
    names = {row.index: file_name(row.index, rows=len(run.rows)) for row in run.rows if row.episode is not None}
    others = [file.name for file in episode_files(args.output) if file.name not in names.values()]
    if others:
        one = f"{others[0]}, which is" if len(others) == 1 else f"{len(others)} files such as {others[0]}, which are"
        raise ConfigError(f"-o {args.output}: holds {one} not of this run and would be counted with it; name another folder")
    args.output.mkdir(parents=True, exist_ok=True)
    for row in run.rows:
        if row.episode is None:
            print(printable(f"flappybird: row {row.index}: {row.problem}"), file=sys.stderr)
        else:
            save(row.episode, args.output / names[row.index])
    print(printable(f"{len(names)} of {len(run.rows)} episodes written to {args.output}") + _damaged(run.damaged))
    return 0 if run.rows and len(names) == len(run.rows) else 1


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


def _add_report(commands: Any) -> None:
    report = commands.add_parser(
        "report", help="one page per run, or a comparison of several: why each bird died, every episode replayable"
    )
    report.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="what vf-eval -s saved, a folder of episode files, one of them, or a trainer's output folder",
    )
    report.add_argument("--progress", action="store_true", help="the RUNs are the checkpoints of one training: show it by step")
    report.add_argument(
        "-o", "--output", type=Path, metavar="FILE.html", help="default: named after the run, in environments/flappybird/reports"
    )
    report.add_argument("--videos", type=Path, metavar="DIR", help="exported videos to link to (default: videos inside each run)")
    report.add_argument(
        "--select", metavar="N[,N…]", help="episodes whose replays the page must hold; of a large run it holds the telling ones"
    )
    report.add_argument(
        "--export",
        type=Path,
        metavar="DIR",
        help="write charts (SVG, PDF, PNG) and tables (CSV, Parquet, Markdown, LaTeX) for a paper",
    )
    form = report.add_mutually_exclusive_group()
    form.add_argument("--text", action="store_true", help="print the summary and write no file")
    form.add_argument("--json", action="store_true", help="print the numbers as JSON and write no file")
    report.set_defaults(command=_report)


def _report(args: argparse.Namespace) -> int:
    from flappybird.report import report

    form: Literal["html", "text", "json"] = "text" if args.text else "json" if args.json else "html"
    return report(args.runs, args.output, args.videos, form, args.export, args.select, args.progress)


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
    _add_jobs(sft)
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


def _add_index(commands: Any) -> None:
    index = commands.add_parser("index", help="read large runs once, side by side, so that `view` shows them at once")
    index.add_argument("runs", nargs="+", metavar="RUN", help="what vf-eval -s saved, or a folder of episode files")
    _add_jobs(index)
    index.set_defaults(command=_index)


def _index(args: argparse.Namespace) -> int:
    from tqdm import tqdm

    from flappybird.report.data import explain
    from flappybird.runs.index import Index

    index = Index()
    for path in args.runs:
        with tqdm(desc=str(path), unit="B", unit_scale=True, disable=None, leave=False) as bar:
            for done, whole in index.update(path, args.jobs, args.backend, explain):
                bar.total = whole
                bar.update(done - bar.n)
        numbers = index.numbers(path)
        unverified = f", {numbers['unverified']} differ from their replay" if numbers["unverified"] else ""
        print(printable(f"{path}: {numbers['n']} rollouts indexed{unverified}"))
    return 0


def _add_view(commands: Any) -> None:
    view = commands.add_parser("view", help="every run below a folder in the browser, live, at any size")
    view.add_argument(
        "folder", nargs="?", type=Path, metavar="FOLDER", help="default: where vf-eval saves, and outputs/, or the present folder"
    )
    view.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1; elsewhere the address gets a random token")
    view.add_argument("--port", type=int, default=8780, help="0 lets the system choose (default: 8780)")
    view.set_defaults(command=_view)


def _view(args: argparse.Namespace) -> int:
    from flappybird.view import view

    view(args.folder, args.host, args.port)
    return 0


def _add_verify(commands: Any) -> None:
    verify = commands.add_parser("verify", help="replay episodes or runs and say what agrees; exit 1 when anything differs")
    verify.add_argument("paths", nargs="+", metavar="PATH", help="an episode file, a folder of them, or a saved run")
    verify.set_defaults(command=_verify)


def _verify(args: argparse.Namespace) -> int:
    from flappybird.errors import EpisodeError
    from flappybird.runs import load_run
    from flappybird.runs.load import is_empty

    several = len(args.paths) > 1
    sound: list[bool] = []
    for path in args.paths:
        try:
            # Of several, one that was interrupted before its first rollout says nothing of the others.
            run = None if several and is_empty(path) else load_run(path)
        except EpisodeError as error:
            if not several:
                raise
            print(printable(f"flappybird: {error}"), file=sys.stderr)
            sound.append(False)
            continue
        if run is None or (several and not run.rows and not run.damaged):
            print(f"{printable(path)}: left out: no rollout was finished")
        else:
            sound.append(_is_sound(path, run))
    return 0 if sound and all(sound) else 1


def _is_sound(path: str, run: Run) -> bool:
    """Print what `verify` finds at `path`; return whether all that it promises holds, see `runs.check`."""
    from flappybird.runs import check, check_run

    verified = 0
    for row in run.rows:
        name = printable(f"{path}:{row.index}" if len(run.rows) > 1 else path)
        if row.episode is None:
            print(f"{name}: cannot be replayed: {printable(row.problem)}")
            continue
        differences = check(row)
        for difference in differences:
            print(f"{name}: {printable(difference)}")
        verified += not differences
    wrong = check_run(run)
    for line in wrong:
        print(f"{printable(path)}: {printable(line)}")
    errored = sum(row.error is not None for row in run.rows)
    rest = f", {errored} ended by an error" if errored else ""
    rest += f", {run.missing} of {run.asked} asked for are missing" if run.missing else ""
    print(f"{printable(path)}: {verified} of {len(run.rows)} verified{rest}{_damaged(run.damaged)}")
    return bool(run.rows) and verified == len(run.rows) and not (wrong or run.missing or run.damaged)


def _damaged(count: int) -> str:
    return f" ({count} damaged line{'s' * (count > 1)} skipped)" if count else ""


if __name__ == "__main__":
    sys.exit(main())
