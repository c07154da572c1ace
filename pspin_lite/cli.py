"""python -m pspin_lite COMMAND: train, evaluate, generate, export; experiments, ledger; doctor, bench, kernels, ..."""

from __future__ import annotations

import argparse
import json
import signal
import sys

TABLES = ("state-space", "attractor", "loss", "step", "decode", "early-stopping", "widgets")
PARTS = ("attractor", "ternary", "state-space", "fla")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pspin_lite", description="The p-Spin Glass Network.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add_run_commands(commands)
    commands.add_parser("doctor", help="what this machine has, and what will run on it")
    bench = commands.add_parser("bench", help="performance tables, as ratios within one run")
    bench.add_argument(
        "--quick", action="store_true", help="small shapes, seconds instead of minutes: does it run at all?"
    )
    bench.add_argument("--only", choices=TABLES, help="one table alone")
    kernels = commands.add_parser("kernels", help="every Triton kernel compiled for three GPUs that need not be here")
    kernels.add_argument("--compare-fla", action="store_true", help="flash-linear-attention's kernels beside ours")
    kernels.add_argument("--only", choices=PARTS, help="one part alone")
    kernels.add_argument("--executed", action="store_true", help="executed by the emulator and counted (20 minutes)")
    kernels.add_argument("--write", action="store_true", help="with --executed: write the record and docs/emulator.md")
    kernels.add_argument("--missing", action="store_true", help="with --executed: only what the record lacks")
    kernels.add_argument("--tutorials", metavar="FOLDER", help="Triton's own kernels, executed by the emulator")
    equations = commands.add_parser("equations", help="the paper's equations, where each is implemented and tested")
    equations.add_argument("--write", action="store_true", help="write docs/equations.md instead of printing it")
    study = commands.add_parser("experiments", help="the study behind the results: every network, tries and seeds")
    study.add_argument("only", nargs="*", metavar="NAME", help="GROUP, GROUP/ARM or one run; default: all but paper")
    study.add_argument("--list", action="store_true", help="what there is, and what is still to do")
    study.add_argument("--out", default="runs/experiments", metavar="FOLDER", help="of the runs (default: %(default)s)")
    study.add_argument("--again", action="store_true", help="repeat what is on record of the names, beside it")
    study.add_argument("--publish", action="store_true", help="take finished runs into the checkout's records")
    study.add_argument("--minutes", type=float, metavar="X", help="start no further run after them")
    ledger = commands.add_parser("ledger", help="every claim of the paper, its measurement and its verdict")
    ids = "of a claim, measured anew, or of a question of the second study; default: all claims, as they are stored"
    ledger.add_argument("ids", nargs="*", metavar="ID", help=ids)
    ledger.add_argument("--records", metavar="FOLDER", help="of experiments --again: measure with these")
    ledger.add_argument("--write", action="store_true", help="measure anew, and write results and README's table")
    args = parser.parse_args(argv)

    if args.command == "doctor":
        from .tools import doctor

        return doctor.main()
    if args.command == "bench":
        from .tools.bench import main as main_of_bench

        return main_of_bench(quick=args.quick, only=args.only)
    if args.command == "kernels":
        from .tools.kernels import executed_record, report, tutorials

        if args.tutorials:
            return tutorials.main(args.tutorials)
        if args.executed:
            return executed_record.main(write=args.write, missing=args.missing)
        failed = report.main(compare_fla=args.compare_fla, only=args.only)
        executed_record.show(args.only)
        return failed
    return run_command(args)


def add_run_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Those that make a run's folder or read one."""
    train = commands.add_parser("train", help="train a preset, or take up a run that was interrupted")
    train.add_argument("preset", nargs="?", metavar="PRESET", help="byte-lite, subword-paper, ...")
    train.add_argument("--resume", metavar="RUN", help="a run's folder, or that of one of its checkpoints")
    train.add_argument("--out", metavar="RUN", help="the run's folder (default: runs/PRESET-SEED)")
    train.add_argument("--corpus", metavar="NAME", help="sotu (default), fineweb-edu, or a path")
    train.add_argument("--tokenizer", metavar="NAME", help="bytes, bpe, smollm2 or a file (default: by vocabulary)")
    train.add_argument("--order", choices=("shuffled", "time", "mixed", "replay"), help="of the training sequences")
    for name in ("steps", "batch", "seed"):
        train.add_argument(f"--{name}", type=int, metavar="N", help="in place of the preset's")
    train.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="anything else of the preset")
    for name in ("micro-batch", "validate-every", "validate-tokens", "final-tokens", "checkpoint-every", "probe-every"):
        train.add_argument(f"--{name}", type=int, metavar="N", help="see `Settings` in pspin_lite/training/settings.py")
    train.add_argument("--probe-parts", action="store_true", default=None, help="and each part of the network, too")
    train.add_argument("--precision", choices=("auto", "float32", "bfloat16"))
    train.add_argument("--compile", action="store_true", default=None, help="torch.compile")
    train.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    train.add_argument("--workers", type=int, default=0, metavar="N", help="processes that read data ahead")
    train.add_argument("--threads", type=int, metavar="N", help="of torch, on the CPU")

    evaluate = commands.add_parser("evaluate", help="the score of a run's model on its validation splits")
    evaluate.add_argument("run", metavar="RUN")
    evaluate.add_argument("--windows", type=int, metavar="N", help="that many of each split (default: all)")
    generate = commands.add_parser("generate", help="let a trained model go on with a text")
    generate.add_argument("run", metavar="RUN", help="a run's folder, a file that export wrote, or byte-lite")
    generate.add_argument("--prompt", default="", metavar="TEXT")
    generate.add_argument("--tokens", type=int, default=200, metavar="N")
    generate.add_argument("--temperature", type=float, default=0.8, metavar="X", help="0: always the likeliest")
    generate.add_argument("--top-k", type=int, metavar="N")
    generate.add_argument("--top-p", type=float, metavar="X")
    generate.add_argument("--seed", type=int, metavar="N", help="the same seed writes the same text")
    export = commands.add_parser("export", help="write a run's model as it is deployed: ternary weights in two bits")
    export.add_argument("run", metavar="RUN")
    export.add_argument("file", metavar="FILE")


# Exit codes, as shells expect them
STOPPED: dict[str | None, int] = {"SIGINT": 128 + signal.SIGINT, "SIGTERM": 128 + signal.SIGTERM}


def run_command(args: argparse.Namespace) -> int:
    """What goes wrong is said in one line."""
    from ._files import FileError
    from .training.nonfinite import NonFinite

    try:
        known = (train, evaluate, generate, export, experiments, ledger, equations)
        return {command.__name__: command for command in known}[args.command](args)
    except KeyboardInterrupt:
        return STOPPED["SIGINT"]
    except BrokenPipeError:  # whoever read the text has had enough
        sys.stderr.close()
        return 0
    except (FileError, NonFinite, ValueError, ConnectionError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 1


def train(args: argparse.Namespace) -> int:
    import torch

    from . import _checks as checks
    from . import config
    from .training import train as training

    if (args.preset is None) == (args.resume is None):
        raise checks.wrong("train", f"PRESET {args.preset}, --resume {args.resume}", "one of the two")
    if args.threads is not None:
        torch.set_num_threads(checks.whole("--threads", args.threads, 1))
    more = dict(device=args.device, workers=args.workers)
    settings = {name: getattr(args, name) for name in training.Settings.__dataclass_fields__}
    settings = {name: value for name, value in settings.items() if value is not None}
    changes = {name: getattr(args, name) for name in ("steps", "batch", "seed") if getattr(args, name) is not None}
    changes |= dict(change(words) for words in args.set)
    if args.resume is not None:
        if settings or changes or args.out:
            raise checks.wrong("--resume", "other settings beside it", "none: a run goes on as it began")
        run = training.resume(args.resume, **more)
    else:
        cfg = config.preset(args.preset).replace(**changes)
        run = training.train(cfg, args.out, **more, **settings)
    return STOPPED.get(run.stopped, 0)


def experiments(args: argparse.Namespace) -> int:
    from .study import experiments

    if args.publish:
        experiments.publish(args.out)
        return 0
    stopped = experiments.main(args.only, args.out, args.minutes, args.list, args.again)
    return STOPPED.get(stopped, 0)


def ledger(args: argparse.Namespace) -> int:
    from .study.claims import command

    return command.main(args.write, args.ids, args.records)


def equations(args: argparse.Namespace) -> int:
    from .tools import equation_map

    return equation_map.main(write=args.write)


def change(words: str) -> tuple[str, object]:
    """KEY=VALUE, the value as in JSON."""
    from . import _checks as checks

    key, sign, value = words.partition("=")
    try:
        value = json.loads(value)
    except ValueError:
        raise checks.wrong("--set", repr(words), "KEY=VALUE with a value as in JSON: gamma_start=0.5") from None
    if not sign or not key:
        raise checks.wrong("--set", repr(words), "KEY=VALUE")
    return key, tuple(value) if isinstance(value, list) else value


def evaluate(args: argparse.Namespace) -> int:
    from . import _checks as checks
    from .training.evaluation import evaluate
    from .training.load import Exported, load

    run = load(args.run)
    if isinstance(run, Exported):
        raise checks.wrong("RUN", args.run, "a run's folder: an exported file does not say on what data it is scored")
    for split, data in run.data().items():
        if split == "train":
            continue
        score = evaluate(run.model, data, args.windows)
        print(data)
        print("  " + ", ".join(f"{value:.4f} {name.replace('_', ' ')}" for name, value in score.items()), flush=True)
    return 0


def generate(args: argparse.Namespace) -> int:
    from .generation import stream
    from .training.load import load

    run = load(args.run)
    how = dict(temperature=args.temperature, top_k=args.top_k, top_p=args.top_p, seed=args.seed)
    pieces = stream(run.model, run.tokenizer, args.prompt, args.tokens, **how)
    print(args.prompt, end="", flush=True)
    for piece in pieces:
        print(piece, end="", flush=True)
    print()
    return 0


def export(args: argparse.Namespace) -> int:
    from . import costs
    from .training import load

    run = load.load(args.run)
    size = load.export(run, args.file)
    whole = sum(4 * parameter.numel() for parameter in run.model.parameters())
    table = costs.footprint(run.cfg)
    print(table)
    print(f"{args.file}: {size:,} bytes, {size - round(table.bytes):,} of them header and scales; float32: {whole:,}")
    return 0
