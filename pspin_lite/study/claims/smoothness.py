"""Claims on how smoothly the loss falls, from validation to validation, and with either alphabet."""

from __future__ import annotations

import numpy as np

from ...config import preset
from ...training import load
from .. import networks, records, stability
from .comparisons import needs_runs
from .training_stability import FIVE, measure, rates, with_range
from .verdict import HOLDS, NOT_SEEN, REFUTED, Measured, Value


def _changes(name: str, group: str = "bytes-1") -> list[np.ndarray]:
    """By seed, how much each validation is above the one before, in bits per byte."""
    return [np.diff(records.curve(record)[1]) for record in records.seeds(group, name).values()]


def _worse(name: str, group: str = "bytes-1") -> list[int]:
    """By seed, validations that are worse than the one before."""
    return [int((changes > 0).sum()) for changes in _changes(name, group)]


def _shipped() -> dict[str, Value]:
    """Of the network that ships, which reads four times as many bytes in a step, at the paper's rate."""
    run = load.shipped("byte-lite")
    bits = [row["bits_per_byte"] for row in run.metrics("validation") if row["split"] == records.SPLIT]
    loss = np.array([row["loss"] for row in run.metrics("step")])
    return {
        "s_raw": stability.raw_jitter(loss[stability.level({"config": run.config})]),
        "s_up": int((np.diff(bits) > 0).sum()),
        "s_points": len(bits) - 1,
        "s_bytes": run.cfg.context,
        "bytes": networks.arm("bytes-1", "p-spin").cfg.context,
        "paper_bytes": preset("byte-paper").context,
    }


@needs_runs("bytes-1/p-spin", "bytes-1/transformer")
def smooth() -> Measured:
    """Smooth and monotonic, every step and every validation as it is."""
    raw, other = measure("p-spin", "raw jitter"), measure("transformer", "raw jitter")
    worse, other_worse = _worse("p-spin"), _worse("transformer")
    changes = np.concatenate(_changes("p-spin"))
    rises = changes[changes > 0] if sum(worse) else np.zeros(1)
    values = _shipped() | {
        "raw": records.mean(raw),
        "other": records.mean(other),
        "raws": with_range(raw, ".3f"),
        "others": with_range(other, ".3f"),
        "rises": 100 * records.mean(measure("p-spin", "rises")),
        "by_seed": ", ".join(map(str, worse)),
        "other_by_seed": ", ".join(map(str, other_worse)),
        "points": len(changes),
        "up": sum(worse),
        "other_up": sum(other_worse),
        "least": float(rises.min()),
        "most": float(rises.max()),
        "rates": rates("bytes-1", "p-spin", "transformer"),
    }
    values |= _paper_size()
    return Measured(REFUTED if values["p_up"] else NOT_SEEN if values["up"] else HOLDS, values)


def _paper_size() -> dict[str, Value]:
    """Of the paper's own byte model, as far as it was trained."""
    record = records.read("paper/byte-paper")
    steps, bits = records.curve(record)
    changes = np.diff(bits)
    return {
        "p_up": int((changes > 0).sum()),
        "p_points": len(changes),
        "p_steps": int(steps[-1]),
        "p_most": float(changes.max()),
        "p_error": float(records.layers(record, "gradient_error")[-1].max()),
    }


@needs_runs("bytes-1/p-spin", "subwords-1/p-spin", "subwords-1/transformer")
def either_alphabet() -> Measured:
    """p-Spin's stability with bytes and with subwords, and the Transformer's with subwords."""
    columns = {"b": ("p-spin", "bytes-1"), "s": ("p-spin", "subwords-1"), "t": ("transformer", "subwords-1")}
    rows = {"n": "noise scale", "r": "raw jitter", "q": "tail", "w": "worse steps"}
    values = {"points": sum(map(len, _changes("p-spin")))}
    for column, (name, group) in columns.items():
        for row, quantity in rows.items():
            by_seed = measure(name, quantity, group)
            values[f"{row}_{column}"] = records.mean(by_seed)
            values[f"{row}_{column}_range"] = with_range(by_seed, FIVE[quantity])
        values[f"u_{column}"] = sum(_worse(name, group))
    same = [values[f"{row}_s"] <= 1.1 * values[f"{row}_b"] for row in ("q", "n", "w")]
    return Measured(HOLDS if all(same) else NOT_SEEN, values)


MEASURES = {"smooth": smooth, "either-alphabet": either_alphabet}
