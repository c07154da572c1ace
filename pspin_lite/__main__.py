"""python -m pspin_lite COMMAND: doctor, bench, kernels, equations."""

from __future__ import annotations

import argparse
import sys

TABLES = ("state-space", "attractor", "loss", "step", "decode", "early-stopping")
PARTS = ("attractor", "ternary", "state-space", "fla")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m pspin_lite", description="The p-Spin Glass Network.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
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
    from . import equations

    return equations.main(write=args.write)


if __name__ == "__main__":
    sys.exit(main())
