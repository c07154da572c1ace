"""Claims that the figures printed in the paper decide by themselves, or beside ours."""

from __future__ import annotations

import math

from ... import costs
from ...config import preset
from ...training import metrics
from .. import records
from .verdict import HOLDS, PART, REFUTED, UNDECIDED, UNTESTABLE, Measured

PAPER = {  # figures printed in the paper
    "byte-paper": dict(params=60.96, mb=41.37, uncompressed=116.62),
    "subword-paper": dict(params=57.72, mb=124.40, uncompressed=161.09),
    "transformer": 60_569_600,
    "rows": {  # millions of parameters, bits, MB
        "subword-paper": ((26.74, 32, 102.00), (21.99, 2, 5.24), (8.99, 16, 17.15)),
        "byte-paper": ((0.18, 32, 0.69), (45.09, 2, 10.75), (15.69, 16, 29.93)),
    },
    "loss": {"p-spin": 4.8004, "transformer": 4.8025},
    "perplexity": {"p-spin": 121.56, "transformer": 121.81},
    "seconds": {"p-spin": 0.44, "transformer": 18.90, "byte": 1.53},
    "byte": dict(bits=2.12, subword=5.5839, mu=3.8),
}
NOT_GIVEN = (  # in the appendix that is to have all of it
    "the hardware",
    "the baseline's layers, width and heads",
    "its learning rate and schedule",
    "AdamW's betas",
    "the initial weights",
    "the validation text",
)


def logits_factor() -> Measured:
    subword, byte = preset("subword-paper"), preset("byte-paper")
    factor, more = subword.vocab / byte.vocab, byte.context / subword.context
    values = {
        "subword": subword.vocab,
        "byte": byte.vocab,
        "factor": factor,
        "more": more,
        "step": factor / more,
        "matrix": (subword.vocab * subword.width) / (byte.vocab * byte.width),
    }
    return Measured(REFUTED if round(factor) != 192 else PART if more > 1 else HOLDS, values)


def perplexity() -> Measured:
    values = {name.replace("-", "_"): math.exp(value) for name, value in PAPER["loss"].items()}
    losses = PAPER["loss"]
    rounded = 0.5e-4  # four digits are printed: exp can be off by 0.006
    same = all(abs(math.exp(losses[name]) - x) < rounded * x + 0.005 for name, x in PAPER["perplexity"].items())
    return Measured(HOLDS if same else REFUTED, values | dict(gap=losses["transformer"] - losses["p-spin"]))


def estimate() -> Measured:
    byte = PAPER["byte"]
    value = byte["bits"] * math.log(2) * byte["mu"]
    return Measured(HOLDS if abs(value - byte["subword"]) < 0.001 else REFUTED, dict(value=value, printed=5.5))


def bytes_a_token() -> Measured:
    from ...data import sequences

    ours = {}
    for split in ("train", "held-out", "recent"):
        data = sequences.open("sotu", "bpe", split=split)
        ours[split.replace("-", "_")] = data.bytes / data.tokens
    off = 100 * max(abs(x / metrics.PAPER_BYTES - 1) for x in ours.values())
    return Measured(UNTESTABLE, ours | dict(off=off))


def time_a_step() -> Measured:
    """By the figures of the paper, and by ours of the same models."""
    seconds = PAPER["seconds"]
    timed = {name: records.read(f"paper/{name}-paper") for name in ("subword", "transformer", "byte")}
    ours = {name: run["summary"]["seconds_a_step"] / preset(f"{name}-paper").batch for name, run in timed.items()}
    values = {
        "p_spin": seconds["p-spin"],
        "transformer": seconds["transformer"] / 64,
        "ratio": seconds["p-spin"] / (seconds["transformer"] / 64),
        "whole": 8000 * seconds["p-spin"],
        "whole_transformer": 1000 * seconds["transformer"],
        "threads": timed["subword"]["environment"]["threads"],
        "ours": ours["subword"],
        "ours_transformer": ours["transformer"],
        "ours_ratio": ours["subword"] / ours["transformer"],
        "byte": seconds["byte"] / seconds["p-spin"],
        "ours_byte": ours["byte"] / ours["subword"],
    }
    slower = [values["ratio"] > 1, values["ours_ratio"] > 1]
    return Measured(REFUTED if all(slower) else PART if any(slower) else HOLDS, values)


def sequences_seen() -> Measured:
    ours, theirs, byte = preset("subword-paper"), preset("transformer-paper"), preset("byte-paper")
    share, mu = 100 * ours.steps * ours.batch / (theirs.steps * theirs.batch), PAPER["byte"]["mu"]
    baseline_tokens, byte_tokens = (cfg.steps * cfg.batch * cfg.context for cfg in (theirs, byte))
    steps, text = ours.steps / theirs.steps, mu * baseline_tokens / byte_tokens
    values = {"share": share, "steps": steps, "mu": mu, "text": text}
    return Measured(HOLDS if share == 12.5 else REFUTED, values)


def baseline() -> Measured:
    params = costs.footprint(preset("transformer-paper")).params
    others = {name: costs.footprint(preset(f"{name}-paper")).params / 1e6 for name in ("byte", "subword")}
    near = all(abs(1e6 * x / params - 1) < 0.1 for x in others.values())
    same = params == PAPER["transformer"]
    return Measured(HOLDS if same and near else REFUTED, dict(params=params) | others)


def rows() -> Measured:
    """Of the table of parameters and memory; its totals are claims of their own."""
    pairs = []
    for name, theirs in PAPER["rows"].items():
        ours = [(round(row.params / 1e6, 2), row.bits, round(row.mb, 2)) for row in costs.footprint(preset(name)).rows]
        pairs += zip(ours, theirs, strict=True)
    cfg = preset("byte-paper")
    inside, down = costs.footprint(cfg)["state space"].params, cfg.layers * cfg.width * cfg.inner
    values = dict(same=sum(ours == theirs for ours, theirs in pairs), all=len(pairs), share=100 * down / inside)
    return Measured(REFUTED if values["same"] < len(pairs) else PART if down else HOLDS, values)


def reserved() -> Measured:
    """Every character that UTF-8 can write."""
    every = (chr(i) for i in range(0x110000) if not 0xD800 <= i < 0xE000)
    used = set("".join(every).encode())
    values = dict(characters=0x110000 - 0x800, used=len(used), byte=255)
    return Measured(REFUTED if 255 in used else HOLDS, values)


def equal_work() -> Measured:
    """Flops of a step per sequence, at the paper's size."""
    runs = {name: records.read(f"paper/{name}-paper")["summary"] for name in ("subword", "transformer")}
    ours, theirs = (run["flops_a_step"] / preset(f"{name}-paper").batch for name, run in runs.items())
    values = {"ratio": ours / theirs, "parameters": runs["subword"]["parameters"] / runs["transformer"]["parameters"]}
    return Measured(HOLDS if abs(values["ratio"] - 1) < 0.1 else REFUTED, values)


def modality() -> Measured:
    """By reading."""
    return Measured(UNTESTABLE, {"alphabets": 2, "modalities": 1})


def outperforms() -> Measured:
    """One run each; what chance makes of such a run, ours tell."""
    nats = {}
    for group, name in (("subwords-1", "p-spin"), ("subwords-64", "transformer")):
        ends = {n: one["summary"]["validation"][records.SPLIT] for n, one in records.seeds(group, name).items()}
        nats[name.replace("-", "_")] = records.spread({n: end["nats_per_token"] for n, end in ends.items()})
    gap = PAPER["loss"]["transformer"] - PAPER["loss"]["p-spin"]
    values = nats | dict(gap=gap, times=nats["p_spin"] / gap)
    return Measured(HOLDS if gap > 2 * max(nats.values()) else UNDECIDED, values)


def isolates() -> Measured:
    """By reading its table and appendix."""
    ours, theirs = preset("subword-paper"), preset("transformer-paper")
    values = {"batch": ours.batch, "steps": ours.steps, "seen": ours.batch * ours.steps}
    values |= {"b_batch": theirs.batch, "b_steps": theirs.steps, "b_seen": theirs.batch * theirs.steps}
    alike = (ours.batch, ours.steps) == (theirs.batch, theirs.steps)
    return Measured(HOLDS if alike else REFUTED, values)


def paper_losses() -> Measured:
    runs = {name: preset(f"{name}-paper") for name in ("subword", "byte")}
    work = {name: cfg.steps * costs.flops(cfg, backward=True).total for name, cfg in runs.items()}
    record = records.read("paper/byte-paper")
    summary = record["summary"]
    values = {
        "threads": record["environment"]["threads"],
        "minutes": summary["seconds"] / 60,
        "steps": summary["steps"],
        "hours": summary["whole_run_hours"],
    }
    return Measured(UNTESTABLE, work | values)


def same_inside() -> Measured:
    """The operations are one class (model.py); the sizes are the appendix's."""
    byte, subword = preset("byte-paper"), preset("subword-paper")
    names = dict(width="D", inner="D_int", context="T", layers="L", heads="H", micro_steps="K")
    other = [f"{words} {getattr(subword, key)} and {getattr(byte, key)}" for key, words in names.items()
             if getattr(subword, key) != getattr(byte, key)]  # fmt: skip
    return Measured(PART if other else HOLDS, dict(other=", ".join(other)))


def complete() -> Measured:
    """By reading."""
    return Measured(REFUTED if NOT_GIVEN else HOLDS, dict(count=len(NOT_GIVEN), listed=", ".join(NOT_GIVEN)))


COUNTED = {
    "logits-factor": logits_factor,
    "perplexity": perplexity,
    "estimate": estimate,
    "bytes-a-token": bytes_a_token,
    "sequences": sequences_seen,
    "baseline-parameters": baseline,
    "complete": complete,
    "isolates": isolates,
    "paper-losses": paper_losses,
    "same-inside": same_inside,
    "rows": rows,
    "reserved": reserved,
    "modality": modality,
}
OF_RUNS = {"time-a-step": time_a_step, "outperforms": outperforms, "equal-work": equal_work}
