"""python -m pspin_lite COMMAND: train, evaluate, generate, export; experiments, ledger; doctor, bench, kernels, ..."""

from __future__ import annotations

import argparse
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
    equations = commands.add_parser("equations", help="the paper's equations, where each is implemented and tested")
    equations.add_argument("--write", action="store_true", help="write docs/equations.md instead of printing it")
    study = commands.add_parser("experiments", help="the study behind the results: every arm, its tries and its seeds")
    study.add_argument("only", nargs="*", metavar="NAME", help="GROUP, GROUP/ARM or one run; default: all but paper")
    study.add_argument("--list", action="store_true", help="what there is, and what is still to do")
    study.add_argument("--out", default="runs/experiments", metavar="FOLDER", help="of the runs (default: %(default)s)")
    study.add_argument("--again", action="store_true", help="repeat what is on record of the names, beside it")
    study.add_argument("--minutes", type=float, metavar="X", help="start no further run after them")
    ledger = commands.add_parser("ledger", help="every claim of the paper, its measurement and its verdict")
    ledger.add_argument("claims", nargs="*", metavar="CLAIM", help="measured anew; default: all, as they are stored")
    ledger.add_argument("--records", metavar="FOLDER", help="of experiments --again: measure with these")
    ledger.add_argument("--write", action="store_true", help="measure anew, and write results and README's table")
    args = parser.parse_args(argv)

    if args.command == "doctor":
        from . import doctor

        return doctor.main()
    if args.command == "bench":
        from . import bench

        return bench.main(quick=args.quick, only=args.only)
    if args.command == "kernels":
        from . import kernel_report

        return kernel_report.main(compare_fla=args.compare_fla, only=args.only)
    if args.command == "equations":
        from . import equations

        return equations.main(write=args.write)
    from . import commands as run_commands

    return run_commands.main(args)


def add_run_commands(commands) -> None:
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
        train.add_argument(f"--{name}", type=int, metavar="N", help="see `Settings` in pspin_lite/training.py")
    train.add_argument("--precision", choices=("auto", "float32", "bfloat16"))
    train.add_argument("--compile", action="store_true", default=None, help="torch.compile")
    train.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    train.add_argument("--workers", type=int, default=0, metavar="N", help="processes that read data ahead")
    train.add_argument("--threads", type=int, metavar="N", help="of torch, on the CPU")

    evaluate = commands.add_parser("evaluate", help="the score of a run's model on its validation splits")
    evaluate.add_argument("run", metavar="RUN")
    evaluate.add_argument("--windows", type=int, metavar="N", help="that many of each split (default: all)")
    generate = commands.add_parser("generate", help="let a trained model go on with a text")
    generate.add_argument("run", metavar="RUN", help="a run's folder, or a file that export wrote")
    generate.add_argument("--prompt", default="", metavar="TEXT")
    generate.add_argument("--tokens", type=int, default=200, metavar="N")
    generate.add_argument("--temperature", type=float, default=0.8, metavar="X", help="0: always the likeliest")
    generate.add_argument("--top-k", type=int, metavar="N")
    generate.add_argument("--top-p", type=float, metavar="X")
    generate.add_argument("--seed", type=int, metavar="N", help="the same seed writes the same text")
    export = commands.add_parser("export", help="write a run's model as it is deployed: ternary weights in two bits")
    export.add_argument("run", metavar="RUN")
    export.add_argument("file", metavar="FILE")


if __name__ == "__main__":
    sys.exit(main())
