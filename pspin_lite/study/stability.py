"""What "stable at batch size 1" may mean, in numbers that are the same for every model.

noise scale   tr(Sigma) / |G|^2, with G the mean gradient and Sigma the covariance of single sequences' gradients:
              the batch size at which the noise in a gradient is as large as its signal (McCandlish et al. 2018,
              arXiv:1812.06162). A step at batch size 1 is mostly noise if this is far above 1.
jitter        what is left of the raw loss when the trend and the text's own difficulty are taken away: two models
              that read the same sequences in the same order are jumpy together where the text is
worse steps   how often a step raises the loss on a fixed validation text, of the steps that are followed (probes)
tail, largest of the gradient norm: its 99th percentile, and its maximum, over its median

The measures "of a record" take a run of the study (records.py). Those of loss and norm look at its steps at full
learning rate; noise scale and worse steps were taken four times in a run, at each fifth of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from .. import _checks as checks
from ..training.gradient_noise import noise_scale as noise_scale  # one of the measures, defined there


def jitter(losses: np.ndarray, other: np.ndarray, third: np.ndarray, window: int = 200) -> float:
    """A model's own jitter: standard deviation of its raw losses [steps] without its running mean over `window` steps
    and without what the text does to every model. All three must have read the same sequences in the same order.

    Differences between two models have the text removed, and the variances of both added up; from the three pairs
    follows each one's own: (V_ab + V_ac - V_bc) / 2, as clocks are compared that no better clock can judge (the
    three-cornered hat, Gray and Allan 1974). What two of them have in common besides the text counts as the text's."""
    lengths = [len(losses), len(other), len(third)]
    if len(set(lengths)) != 1:
        raise checks.wrong("losses", f"{lengths} steps", "as many steps of all three")
    a, b, c = (np.asarray(x, float) - running_mean(x, window) for x in (losses, other, third))
    own = (np.var(a - b) + np.var(a - c) - np.var(b - c)) / 2
    return float(np.sqrt(max(own, 0.0)))


def raw_jitter(losses: np.ndarray, window: int = 200) -> float:
    """As in a plot of the raw loss: with the text's own difficulty left in."""
    return float((np.asarray(losses, float) - running_mean(losses, window)).std())


def worse_steps(held_out: Sequence[tuple[int, float]]) -> tuple[int, int]:
    """(steps that raised it, steps) from (step, held-out loss) in order; only neighbouring steps count."""
    pairs = [(b[1] > a[1]) for a, b in pairwise(held_out) if b[0] == a[0] + 1]
    return sum(pairs), len(pairs)


def running_mean(values: np.ndarray, window: int) -> np.ndarray:
    """Of `window` values around each; towards the ends of as many as there are."""
    sums = np.concatenate([[0.0], np.cumsum(values, dtype=float)])
    at = np.arange(len(values))
    low, high = np.maximum(0, at - window // 2), np.minimum(len(values), at + window - window // 2)
    return (sums[high] - sums[low]) / (high - low)


# Of a record


def level(record: dict) -> slice:
    """Steps at full learning rate, some time after the warm-up."""
    model = record["config"]["model"]
    first, end = 2 * model["warmup"], model["steps"] - model["cooldown"]
    if first >= end:
        raise checks.wrong("record", f"{model['steps']} steps", f"more than {first + model['cooldown']}: some at level")
    return slice(first, end)


def own_jitter(runs: dict[str, dict], name: str, references: Sequence[str], last: int | None = None) -> float:
    """Of one of several runs with the same seed, which read the same sequences, against the first two of `references`
    that are others. At full learning rate, or over the `last` steps."""
    others = [one for one in references if one != name][:2]
    parts = {one: slice(-last, None) if last else level(runs[one]) for one in (name, *others)}
    return jitter(*(np.array(runs[one]["loss"])[part] for one, part in parts.items()))


def measures(record: dict) -> dict[str, float]:
    """Everything that one run alone tells."""
    loss, norm = (np.array(record[name])[level(record)] for name in ("loss", "norm"))
    rose, steps = worse_steps([tuple(one) for one in record["probe"]])
    if not steps:
        raise checks.wrong("record", "no probes", "a run that was probed (probe_every)")
    return {
        "raw jitter": raw_jitter(loss),
        "rises": float(np.mean(np.diff(loss) > 0)),
        "worse steps": rose / steps,
        "tail": float(np.percentile(norm, 99) / np.median(norm)),
        "largest": float(norm.max() / np.median(norm)),
        "noise scale": scale_of_noise(record),
    }


def scale_of_noise(record: dict) -> float:
    """The median over the probes of a run."""
    return float(np.median([float(one["scale"]) for one in record["noise"]]))
