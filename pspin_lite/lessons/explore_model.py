"""What K and the couplings are worth to a model that is already trained: loss, steps and words when they change.

    grid = measure(model, tokenizer, tokens, targets)      # some seconds: every point of GRID
    Explorer(draw_grid(grid), "name", K=.., times=..)  # a slider only looks a point up: no model in sight

The pure functions behind the last widget of notebook 05. Nothing here knows of widgets, and a model is left as it was.

Glossary
    point      (K, times): micro-steps of every attractor, a factor on its couplings. USUAL is the model as it is
    tokens     [n,T] ids of some windows of text; targets [n,T] the same one further
    settled    a token whose relative change in a step has been below SETTLED
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from .. import _checks as checks
from ..attractor import spin
from ..data.tokenizers import Tokenizer
from ..fixed_points import attractors
from ..generation import check_tokenizer, choose
from ..language_model import LanguageModel
from ..training.evaluation import evaluating
from .figures import BLUE, GREY, RED
from .figures.live import LiveFigure, Panel, Passage

Point = tuple[int, float]
K_VALUES, TIMES = (0, 1, 2, 3, 4, 5, 7, 10), (0.0, 0.5, 1.0, 2.0, 3.0, 4.0)
GRID: tuple[Point, ...] = tuple((K, times) for K in K_VALUES for times in TIMES)
USUAL: Point = (5, 1.0)
SETTLED, LIMIT = 1e-3, 30  # LIMIT: steps after which we stop waiting
SAMPLE = 64  # tokens on which steps are counted
PROMPT, LENGTH = "The state of the Union is ", 60
TEMPERATURE, SEED = 0.7, 1  # the same random numbers at every point: texts differ where predictions do


@dataclass(frozen=True)
class Seen:
    """What was measured at a point."""

    bits: float  # a byte of the text
    steps: tuple[int | None, ...]  # until half of the tokens have settled, in each layer; None: more than LIMIT
    text: str  # that follows the prompt


class Varied(nn.Module):
    """An attractor, trained or deployed, with other K and couplings: K [B] steps, gamma times [B] in their place."""

    def __init__(self, attractor: nn.Module, K: Tensor, times: Tensor):
        super().__init__()
        self.attractor, self.K = attractor, K.view(-1, 1, 1)
        self.gamma = attractor.gamma() * times.view(-1, 1, 1)
        self.drive: Tensor | None = None  # of the latest call

    def forward(self, x: Tensor) -> Tensor:
        self.drive = z = self.attractor.w_ext(x)
        y = spin(z)
        for k in range(int(self.K.max())):
            new = self.step(y, z)
            y = new if k < self.K.min() else torch.where(k < self.K, new, y)
        return self.attractor.w_down(y)

    def step(self, y: Tensor, z: Tensor) -> Tensor:
        return spin(z + self.attractor.w_int(self.gamma * y))

    def steps_to_settle(self) -> int | None:
        """Until half of some tokens have: spread over the latest call, all with the gamma of the first sequence."""
        z = self.drive.flatten(0, -2)
        z = z[:: max(1, len(z) // SAMPLE)][None, :SAMPLE]
        y = spin(z)
        moving = torch.ones_like(y[..., 0], dtype=torch.bool)
        for k in range(1, LIMIT + 1):
            before, y = y, self.step(y, z)
            moving &= (y - before).norm(dim=-1) >= SETTLED * y.norm(dim=-1)
            if 2 * moving.sum() <= moving.numel():
                return k
        return None


@contextmanager
def varied(model: LanguageModel, points: Sequence[Point]) -> Iterator[list[Varied]]:
    """The model at one point for all sequences, or at one for each; afterwards it is as it was."""
    device = model.embedding.weight.device
    K, times = (torch.tensor(values, device=device) for values in zip(*points, strict=True))
    before = attractors(model)
    with evaluating(model):
        try:
            for block in model.blocks:
                block.attractor = Varied(block.attractor, K, times)
            yield [block.attractor for block in model.blocks]
        finally:
            for block, attractor in zip(model.blocks, before, strict=True):
                block.attractor = attractor


def bits(model: LanguageModel, windows: Sequence[tuple[Tensor, Tensor]], K: int, times: float = 1.0) -> np.ndarray:
    """The loss at a point, in bits per token, of each (tokens, targets)."""
    with varied(model, [(K, times)]):
        return np.array([model.loss(*window).item() / math.log(2) for window in windows])


def table(model: LanguageModel, windows: Sequence[tuple[Tensor, Tensor]], points: Sequence[Point]) -> str:
    """A line for each point: bits per token more than for the model as it is, and the standard error over windows."""
    usual, lines = bits(model, windows, *USUAL), []
    for K, times in points:
        more = bits(model, windows, K, times) - usual
        error = more.std(ddof=1) / math.sqrt(len(more))
        lines.append(f"K = {K}, couplings × {times:g}: {more.mean():+.4f} ± {error:.4f} bits")
    return "\n".join(lines)


def measure(
    model: LanguageModel,
    tokenizer: Tokenizer,
    tokens: Tensor,
    targets: Tensor,
    points: Sequence[Point] = GRID,
    prompt: str = PROMPT,
    length: int = LENGTH,
) -> dict[Point, Seen]:
    """Loss on a text, steps to settle there, a completion, at each point. Times 0 is one point, whatever the K."""
    _check(model, tokenizer, points)
    size = int(torch.from_numpy(tokenizer.byte_lengths).long()[targets.cpu()].sum())
    distinct = list(dict.fromkeys(map(_same_as, points)))
    texts = write(model, tokenizer, distinct, prompt, length)
    found = {}
    for point in distinct:
        with varied(model, [point]) as layers:
            nats = model.loss(tokens, targets).item() * targets.numel()
            steps = tuple(layer.steps_to_settle() for layer in layers)
        found[point] = Seen(nats / math.log(2) / size, steps, texts[point])
    return {point: found[_same_as(point)] for point in points}


def _same_as(point: Point) -> Point:
    return point if point[1] else (0, 0.0)


def write(
    model: LanguageModel, tokenizer: Tokenizer, points: Sequence[Point], prompt: str, length: int
) -> dict[Point, str]:
    """A completion at each point, all of them side by side in one batch."""
    rngs = [torch.Generator().manual_seed(SEED) for _ in points]
    ids = torch.as_tensor(tokenizer.encode(prompt)).long().expand(len(points), -1)
    device, chosen = model.embedding.weight.device, []
    with varied(model, points):
        logits, state = model.prefill(ids.to(device))
        while len(chosen) < length:
            rows = zip(logits[:, : tokenizer.vocab].cpu(), rngs, strict=True)
            chosen.append([choose(row, TEMPERATURE, None, None, rng) for row, rng in rows])
            logits, state = model.step(torch.tensor(chosen[-1], device=device), state)
    found = {}
    for point, row in zip(points, zip(*chosen, strict=True), strict=True):
        row = row[: row.index(tokenizer.end)] if tokenizer.end in row else row
        found[point] = tokenizer.decode_bytes(row).decode(errors="backslashreplace")
    return found


def _check(model: LanguageModel, tokenizer: Tokenizer, points: Sequence[Point]) -> None:
    if not isinstance(model, LanguageModel) or not all(hasattr(block, "attractor") for block in model.blocks):
        raise checks.wrong("model", type(model).__name__, "a p-spin model, from build, deploy.load or a run")
    if model.cfg.tol is not None:
        raise checks.wrong("model", f"one that stops by itself (tol {model.cfg.tol:g})", "one with a fixed K")
    check_tokenizer(model, tokenizer)
    if not points:
        raise checks.wrong("points", "none", "at least one (K, times)")
    for K, times in points:
        checks.whole("K", K, 0)
        if not isinstance(times, float | int) or not math.isfinite(times):
            raise checks.wrong("times", repr(times), "a finite number")


# The picture


def draw_grid(grid: dict[Point, Seen], usual: Point = USUAL) -> Callable[..., tuple[LiveFigure, dict[str, object]]]:
    """A function of K and times over what `measure` found: a lookup and a few lines."""
    if usual not in grid:
        raise checks.wrong("grid", f"no point {usual}", "one with the model as it is, to compare with")
    Ks, factors = (sorted({point[i] for point in grid}) for i in (0, 1))
    layers = len(grid[usual].steps)
    bits = [seen.bits for seen in grid.values()]
    low, high = math.floor(10 * min(bits)) / 10, math.ceil(10 * max(bits)) / 10
    ticks = tuple(round(low + 0.1 * i, 1) for i in range(round(10 * (high - low)) + 1))
    place = (0.075, 0.17, 0.40, 0.69)
    loss = Panel(place, "", "K", "bits per byte", (0, Ks[-1]), (low, high), tuple(Ks), ticks)
    title, place = f"steps until half the tokens settle to {100 * SETTLED:g}%", (0.625, 0.17, 0.355, 0.69)
    axis = dict(xlim=(-0.2, layers - 0.8), ylim=(0, 37), xticks=tuple(range(layers)), yticks=(0, 10, 20, 30, 36))
    steps = Panel(place, title, "layer", "steps", **axis, yticklabels=("0", "10", "20", "30", "more"))

    ends = _apart({factor: grid[max(k for k, f in grid if f == factor), factor].bits for factor in factors}, high - low)

    def draw(K: int, times: float) -> tuple[LiveFigure, dict[str, object]]:
        if (K, times) not in grid:
            came = f"({K!r}, {times!r})"
            raise checks.wrong("K, times", came, f"K one of {Ks} and times one of {factors}")
        now, before = grid[K, times], grid[usual]
        change = "the model as it is" if (K, times) == usual else f"{now.bits - before.bits:+.3f} bits"
        title = f"K = {K}, couplings × {times:g}: {change}".replace("-", "−")
        figure = LiveFigure((9.4, 3.1), (replace(loss, title=title), steps))
        for factor in factors:
            here = [k for k in Ks if (k, factor) in grid]
            how = dict(width=2.2, dot=2) if factor == times else dict(width=1, opacity=0.5)
            line = [grid[k, factor].bits for k in here]
            colour = BLUE if factor == times else GREY
            figure.add_line(0, here, line, colour, **how)
            figure.add_text(0, 1.06 * Ks[-1], ends[factor], f"× {factor:.1f}", colour)
        figure.add_line(0, [K], [now.bits], RED, width=0, dot=5)
        for layer, count in enumerate(now.steps):
            figure.add_line(1, [layer, layer], [0, count or 36], RED, width=12)
        figure.add_line(1, range(layers), [k or 36 for k in before.steps], GREY, width=0, dot=5, filled=False)
        figure.add_text(1, (layers - 1) / 2, 34, "○: the model as it is", GREY)
        same = next((i for i, (a, b) in enumerate(zip(now.text, before.text, strict=False)) if a != b), None)
        return figure, {
            "bits per byte": f"{now.bits:.3f}",
            "above the model as it is": f"{now.bits - before.bits:+.3f}",
            "steps to settle, by layer": ", ".join(str(k or f">{LIMIT}") for k in now.steps),
            "it writes": Passage(now.text, same),
            "as it is": Passage(before.text, same),
        }

    return draw


def _apart(ends: dict[float, float], height: float) -> dict[float, float]:
    """Where the names of lines are that end so (their upper edge): in order, with room for each, and as close to their
    lines as that allows. Names that would overlap form a group around the middle of their lines."""
    room, groups = height / 14, []
    for factor in sorted(ends, key=ends.get):
        groups.append([factor])
        while len(groups) > 1 and _lowest(groups[-1], ends, room) - _lowest(groups[-2], ends, room) < room * len(
            groups[-2]
        ):
            last = groups.pop()
            groups[-1] += last
    return {
        factor: _lowest(group, ends, room) + i * room + room / 2 for group in groups for i, factor in enumerate(group)
    }


def _lowest(group: list[float], ends: dict[float, float], room: float) -> float:
    """Middle of a group's lowest name."""
    return sum(ends[factor] for factor in group) / len(group) - room * (len(group) - 1) / 2
