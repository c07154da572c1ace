"""The commands around a run: train, evaluate, generate, export, experiments; and ledger. What goes wrong is said in one
line."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path

STOPPED = {"SIGINT": 128 + signal.SIGINT, "SIGTERM": 128 + signal.SIGTERM}  # exit codes, as shells expect them


def main(args: argparse.Namespace) -> int:
    from .files import FileError
    from .nonfinite import NonFinite

    try:
        known = (train, evaluate, generate, export, experiments, ledger)
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

    from . import checks, config, training

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
    from . import study

    stopped = study.main(args.only, args.out, args.minutes, args.list, args.again)
    return STOPPED.get(stopped, 0)


def ledger(args: argparse.Namespace) -> int:
    from . import ledger

    return ledger.main(args.write, args.claims, args.records)


def change(words: str) -> tuple[str, object]:
    """KEY=VALUE, the value as in JSON."""
    from . import checks

    key, sign, value = words.partition("=")
    try:
        value = json.loads(value)
    except ValueError:
        raise checks.wrong("--set", repr(words), "KEY=VALUE with a value as in JSON: gamma_start=0.5") from None
    if not sign or not key:
        raise checks.wrong("--set", repr(words), "KEY=VALUE")
    return key, tuple(value) if isinstance(value, list) else value


def evaluate(args: argparse.Namespace) -> int:
    from .evaluation import evaluate
    from .runs import Run

    run = Run(args.run)
    for split, data in run.data().items():
        if split == "train":
            continue
        score = evaluate(run.model, data, args.windows)
        print(data)
        print("  " + ", ".join(f"{value:.4f} {name.replace('_', ' ')}" for name, value in score.items()), flush=True)
    return 0


def generate(args: argparse.Namespace) -> int:
    from .generation import stream

    model, tokenizer = model_and_tokenizer(args.run)
    how = dict(temperature=args.temperature, top_k=args.top_k, top_p=args.top_p, seed=args.seed)
    pieces = stream(model, tokenizer, args.prompt, args.tokens, **how)
    print(args.prompt, end="", flush=True)
    for piece in pieces:
        print(piece, end="", flush=True)
    print()
    return 0


def model_and_tokenizer(path: str):
    """Of a run's folder, or of a file that `export` wrote with its tokenizer beside it."""
    from . import deploy, tokenizers
    from .runs import Run

    if Path(path).is_dir():
        run = Run(path)
        return run.model, run.tokenizer
    return deploy.load(path), tokenizers.open(beside(path))


def beside(path: str) -> Path:
    return Path(path).with_suffix(".tokenizer.json")


def export(args: argparse.Namespace) -> int:
    from . import costs, deploy
    from .runs import Run

    run = Run(args.run)
    run.tokenizer.save(beside(args.file))
    size = deploy.export(run.model, args.file, run.tokenizer.identity())
    whole = sum(4 * parameter.numel() for parameter in run.model.parameters())
    table = costs.footprint(run.cfg)
    print(table)
    print(f"{args.file}: {size:,} bytes, {size - round(table.bytes):,} of them header and scales; float32: {whole:,}")
    return 0
