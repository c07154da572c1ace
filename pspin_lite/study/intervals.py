"""How sure a difference between two networks is, as far as seeds go and as far as the text goes.

What is assumed, where seeds decide:

- The runs of a network scatter about its mean independently and normally, with one variance for all networks of a
  group. So each network's few runs tell of that variance, and all of them together tell it well: `pooled`.
- With `paired`, runs with the same seed also share an effect, which is the same for every network (score = network +
  seed + rest), and the variance is that of the rest. Removing the seeds' effects costs degrees of freedom. Without
  it a shared effect counts as chance, which makes intervals wider than they need be, never narrower.
- Two groups may have two variances. The degrees of freedom of such a difference are Welch's, rounded down.
- `family` is the number of intervals that decide something together. By Bonferroni each is drawn at a level of
  1 - 0.05 / family, so that all of them together cover the truth in 95 of 100 studies, whatever they share.

Seeds say nothing about another text. For that `over_speeches` draws whole speeches instead.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

BySeed = dict[int, float]
Windows = Sequence[Sequence[float]]  # of a record: [document, nats, bytes] each
LEVEL = 0.95


@dataclass(frozen=True)
class Difference:
    """a - b, or the mean of one network against zero."""

    mean: float
    half_width: float  # of its interval
    pairs: int  # runs of the network that has fewer

    @property
    def low(self) -> float:
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        return self.mean + self.half_width

    @property
    def clear(self) -> bool:
        """Zero lies outside the interval."""
        return abs(self.mean) > self.half_width

    def within(self, bound: float) -> bool:
        """Equivalence: the whole interval lies between -bound and bound."""
        return -bound < self.low and self.high < bound


@dataclass(frozen=True)
class Spread:
    """The variance of single runs about their networks' means, and how well it is known."""

    variance: float
    degrees: int


def student(level: float, degrees: int) -> float:
    """The t beyond which, on both sides together, 1 - level of Student's distribution lies. By bisection of the finite
    sums for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    if degrees < 1:
        return math.inf
    low, high = 0.0, 1.0
    while _covered(high, degrees) < level:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _covered(middle, degrees) < level else (low, middle)
    return high


def _covered(t: float, degrees: int) -> float:
    """The probability that |T| < t."""
    angle = math.atan(t / math.sqrt(degrees))
    terms = [1.0]
    for k in range(2 + degrees % 2, degrees - 1, 2):
        terms.append(terms[-1] * (k - 1) / k * math.cos(angle) ** 2)
    if degrees % 2 == 0:
        return math.sin(angle) * sum(terms)
    return 2 / math.pi * (angle + (math.sin(angle) * math.cos(angle) * sum(terms) if degrees > 1 else 0.0))


def pooled(networks: Iterable[BySeed], paired: bool = False) -> Spread:
    """Of the runs of several networks, each given by seed. A network with a run that left the finite numbers is left
    out. With `paired`, all of them need the same seeds."""
    rows = [list(runs.values()) for runs in networks if runs and all(map(math.isfinite, runs.values()))]
    rest = [np.array(row) - np.mean(row) for row in rows]
    degrees = sum(len(row) - 1 for row in rows)
    if paired and rows:
        rest = list(np.array(rest) - np.mean(rest, 0))
        degrees -= len(rows[0]) - 1
    squares = float(sum((row**2).sum() for row in rest))
    return Spread(squares / degrees if degrees > 0 else math.inf, max(degrees, 0))


def difference(a: BySeed, b: BySeed, spread: Spread, other: Spread | None = None, family: int = 1) -> Difference:
    """Mean of a minus mean of b. `spread` is that of the group that both belong to, or of a's if b's is `other`."""
    parts = [(spread, 1 / len(a) + 1 / len(b))] if other is None else [(spread, 1 / len(a)), (other, 1 / len(b))]
    mean = float(np.mean(list(a.values())) - np.mean(list(b.values())))
    return Difference(mean, _half_width(parts, family), min(len(a), len(b)))


def interaction(
    one: tuple[BySeed, BySeed],
    other: tuple[BySeed, BySeed],
    spread: Spread,
    family: int = 1,
    rest: Spread | None = None,
) -> Difference:
    """Of two differences, one[0] - one[1] minus other[0] - other[1]: the variances of all four add up. All are of a
    group, or the other two of one whose variance is `rest`."""
    every = (*one, *other)
    a, b, c, d = (float(np.mean(list(runs.values()))) for runs in every)
    shares = [sum(1 / len(runs) for runs in pair) for pair in (one, other)]
    parts = [(spread, sum(shares))] if rest is None else [(spread, shares[0]), (rest, shares[1])]
    return Difference(a - b - (c - d), _half_width(parts, family), min(map(len, every)))


def mean(a: BySeed, spread: Spread, family: int = 1) -> Difference:
    """Of one network, against zero."""
    return Difference(float(np.mean(list(a.values()))), _half_width([(spread, 1 / len(a))], family), len(a))


def _half_width(parts: list[tuple[Spread, float]], family: int) -> float:
    """Of a sum of means: each part has the variance of single runs, and the share of it that is left in the mean."""
    variances = [spread.variance * share for spread, share in parts]
    total = sum(variances)
    if not total:
        return 0.0
    if not math.isfinite(total):
        return math.inf
    known = sum(x**2 / spread.degrees for x, (spread, _) in zip(variances, parts, strict=True) if x)
    degrees = int(total**2 / known + 1e-9)
    return student(1 - (1 - LEVEL) / family, degrees) * math.sqrt(total)


def over_speeches(
    a: Sequence[Windows], b: Sequence[Windows], family: int = 1, draws: int = 10_000, seed: int = 0
) -> tuple[float, float, float]:
    """(difference in bits per byte, low, high): a minus b, each the mean over its runs, with the interval of a
    bootstrap that draws whole speeches, the same ones for both.

    a, b: of each run what its record has under "windows held-out" or "windows recent". A window counts for the speech
    it begins in. The interval is that of the percentiles, which a dozen speeches make somewhat too narrow. It says how
    far another text of this kind could move the difference between these very runs, and nothing about seeds."""
    (nats, sizes), (others, other_sizes) = _by_speech(a), _by_speech(b)
    if sizes != other_sizes:
        raise ValueError("the two networks were not tested on the same windows")
    apart = np.array([nats[name] - others[name] for name in sizes]) / math.log(2)
    size = np.array(list(sizes.values()))
    drawn = np.random.default_rng(seed).integers(len(size), size=(draws, len(size)))
    each = apart[drawn].sum(1) / size[drawn].sum(1)
    tail = (1 - LEVEL) / family / 2
    low, high = np.quantile(each, [tail, 1 - tail])
    return float(apart.sum() / size.sum()), float(low), float(high)


def _by_speech(runs: Sequence[Windows]) -> tuple[dict[float, float], dict[float, float]]:
    """Speech -> its nats, the mean over runs, and its bytes."""
    nats: dict[float, float] = {}
    sizes: dict[float, float] = {}
    for rows in runs:
        for speech, value, size in rows:
            nats[speech] = nats.get(speech, 0.0) + value / len(runs)
            sizes[speech] = sizes.get(speech, 0.0) + size / len(runs)
    return nats, {speech: round(size, 6) for speech, size in sizes.items()}
