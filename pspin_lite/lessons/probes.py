"""Measurements of notebooks 09 and 10 that take more lines than a lesson has: splits that leak; models that count, as
yardsticks, and what they write; where a trained network spends its bits; how much its gates let through.

A counting model of order n predicts a byte from the n bytes before it, by what followed them in the text it has read.
Long contexts are often new, so each order leans on the one below (Witten and Bell, 1991):

    p(byte) = (times seen after the context + m p_shorter(byte)) / (times the context was seen + m)

with m the number of different bytes seen after the context, and p = 1/256 below order 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from .. import state_space
from ..data.sequences import Packed
from ..language_model import LanguageModel


def leaks(passages: Sequence[np.ndarray], splits: Iterable[tuple[np.ndarray, np.ndarray]]) -> list[float]:
    """For each split, two masks (validation, training) over the documents: per cent of the validation's passages that
    are in training too. passages: those of each document, as numbers."""
    _, ids = np.unique(np.concatenate(passages), return_inverse=True)
    owner = np.repeat(np.arange(len(passages)), [len(one) for one in passages])
    shares = []
    for valid, train in splits:
        seen = np.zeros(ids.max() + 1, bool)
        seen[ids[train[owner]]] = True
        shares.append(100 * seen[ids[valid[owner]]].mean())
    return shares


def leaks_by_rule(
    passages: Sequence[np.ndarray], year: np.ndarray, president: np.ndarray, recent: int = 2010, every: int = 20
) -> dict[str, list[float]]:
    """Four rules to split speeches, in the order of time, -> what leaks in each of their versions. `recent` holds
    out the speeches from that year on and trains on what the package does; the others hold out every so many of the
    older speeches, of their years, or of the runs of speeches by one president, a version per offset."""
    old, held_out = year < recent, year % every == 3  # the package's choice
    turn = np.cumsum(np.append(0, president[1:] != president[:-1]))
    shares = {"recent": leaks(passages, [(~old, old & ~held_out)])}
    for name, unit in {"speech": np.arange(len(passages)), "year": year, "president": turn}.items():
        picks = [unit % every == offset for offset in range(every)]
        shares[f"every {every}th {name}"] = leaks(passages, [(old & pick, old & ~pick) for pick in picks])
    return shares


def grams(text: np.ndarray, n: int) -> np.ndarray:
    """[.., T] bytes -> [.., T - n + 1]: every n bytes in a row as one number."""
    long = text.shape[-1] - n + 1
    return sum(text[..., i : i + long].astype(np.uint64) << np.uint64(8 * (n - 1 - i)) for i in range(n))


def count(seen: np.ndarray, text: np.ndarray, orders: int, end: int = 255) -> tuple[list[np.ndarray], list[int]]:
    """For each order from 0 on: the bits of every byte of `text`, and how many entries the table of counts has.

    seen: [sequences, T], nothing is counted across two of them; or [T]. Before `text` stand end tokens."""
    p, bits, entries = np.full(len(text), 1 / 256), [], []
    for n in range(orders + 1):
        table, times = np.unique(grams(seen, n + 1), return_counts=True)
        before = np.append(0, times.cumsum())  # counts of all entries before this one
        here = grams(np.append(np.full(n, end, np.uint8), text), n + 1)
        low, high = table.searchsorted(here & ~np.uint64(255)), table.searchsorted(here | np.uint64(255), "right")
        hits = before[table.searchsorted(here, "right")] - before[table.searchsorted(here)]
        m, context = high - low, before[high] - before[low]
        p = np.where(m > 0, (hits + m * p) / np.maximum(context + m, 1), p)
        bits.append(-np.log2(p))
        entries.append(len(table))
    return bits, entries


def ribbon(split: Packed) -> np.ndarray:
    """All bytes of a split, end tokens included, as its windows have them."""
    return np.concatenate([targets[0].numpy() for _, targets in split.windows()]).astype(np.uint8)


def tables(seen: np.ndarray, orders: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each order from 0 on: what occurs in `seen`, as numbers in ascending order, and how often."""
    return [np.unique(grams(seen, n + 1), return_counts=True) for n in range(orders + 1)]


def next_byte(counted: Sequence[tuple[np.ndarray, np.ndarray]], context: bytes) -> np.ndarray:
    """Probabilities of the 256 bytes after a context, by the highest order of the tables that the context allows."""
    p = np.full(256, 1 / 256)
    for n, (table, times) in enumerate(counted[: len(context) + 1]):
        first = np.uint64(int.from_bytes(context[len(context) - n :], "big") << 8)
        low, high = table.searchsorted(first), table.searchsorted(first | np.uint64(255), "right")
        if high > low:
            p *= high - low
            p[(table[low:high] & np.uint64(255)).astype(int)] += times[low:high]
            p /= p.sum()
    return p


def write(counted: Sequence[tuple[np.ndarray, np.ndarray]], prompt: bytes, length: int, seed: int) -> bytes:
    """A text that goes on with `length` bytes drawn from the counts, the prompt not included."""
    rng, text, longest = np.random.default_rng(seed), bytearray(prompt), len(counted) - 1
    for _ in range(length):
        context = bytes(text[max(0, len(text) - longest) :]) if longest else b""
        text.append(int(rng.choice(256, p=next_byte(counted, context))))
    return bytes(text[len(prompt) :])


def real_words(text: str, vocabulary: set[str]) -> float:
    """Share of a text's words of four or more letters that are in the vocabulary; the last may be cut off."""
    words = re.findall(r"[a-z]{4,}(?=[^a-z])", text.lower())
    return float(np.mean([word in vocabulary for word in words])) if words else 0.0


def vocabulary(text: np.ndarray) -> set[str]:
    """Words of four or more letters in a text of bytes."""
    return set(re.findall(r"[a-z]{4,}", text.tobytes().decode(errors="replace").lower()))


@torch.no_grad()
def write_many(model: LanguageModel, prompt: str, count: int, length: int, seed: int = 15) -> list[str]:
    """Continuations of a prompt of bytes, all at once, from the network's own distribution."""
    rng = torch.Generator().manual_seed(seed)
    logits, state = model.prefill(torch.tensor([list(prompt.encode())] * count))
    written = []
    for _ in range(length):
        token = torch.multinomial(logits.softmax(-1), 1, generator=rng)[:, 0]
        logits, state = model.step(token, state)
        written.append(token)
    return [bytes(one).decode(errors="replace") for one in torch.stack(written, 1).tolist()]


def count_scores(
    seen: np.ndarray, splits: Mapping[str, Packed], orders: int, windows: int | None = None, end: int = 255
) -> tuple[dict[str, list[float]], list[int]]:
    """Bits per byte of each split by order, and the entries of the tables. The counts see what a network sees: nothing
    from before the window, so its first bytes have less context. windows: of so many, spread over a split."""
    pieces, names = [], []
    for name, split in splits.items():
        for tokens, targets in split.windows(windows):
            pieces.append(np.append(tokens[0, :1], targets[0]).astype(np.uint8))
            names.append(name)
    text, place = np.concatenate(pieces), np.concatenate([np.arange(len(piece)) for piece in pieces])
    name = np.repeat(names, [len(piece) for piece in pieces])
    by_order, entries = count(seen, text, orders, end)
    scores: dict[str, list[float]] = {one: [] for one in splits}
    bits = by_order[0]
    for n in range(orders + 1):
        bits = np.where(place >= n, by_order[n], bits)  # near the beginning of a window: the order that fits
        for one in splits:
            here = (name == one) & (place > 0)  # the first byte of a piece is context alone
            scores[one].append(float(bits[here].sum() / (text[here] != end).sum()))
    return scores, entries


@torch.no_grad()
def bits_of(model: LanguageModel, tokens: Tensor, targets: Tensor) -> np.ndarray:
    """Bits of each target, [B,T]."""
    return (F.cross_entropy(model(tokens).transpose(1, 2), targets, reduction="none") / math.log(2)).numpy()


def bits_by_context(
    model: LanguageModel, tokens: Tensor, targets: Tensor, places: Sequence[int], lengths: Iterable[int]
) -> dict:
    """length -> bits [B, places] of the targets at `places`, predicted from no more than so many tokens before them."""
    wanted, result = targets[:, places].reshape(-1, 1), {}
    for length in lengths:
        cut = torch.stack([tokens[:, p - length + 1 : p + 1] for p in places], 1).flatten(0, 1)
        result[length] = bits_of(model, cut, wanted.expand(-1, length))[:, -1].reshape(len(tokens), -1)
    return result


@torch.no_grad()
def log_decays(model: LanguageModel, tokens: Tensor) -> list[Tensor]:
    """The log decays [B,T,H] of every layer while the model reads the tokens (Eq. ssm-gate)."""
    gates: list[Tensor] = []

    def note(layer, given):
        gates.append(-F.softplus(layer.w_g(given[0])).unflatten(-1, (model.cfg.heads, -1)).mean(-1))

    hooks = [block.state_space.register_forward_pre_hook(note) for block in model.blocks]
    try:
        model(tokens)
    finally:
        for hook in hooks:
            hook.remove()
    return gates


def kept(model: LanguageModel, tokens: Tensor, length: int) -> float:
    """What is left of a token `length` tokens later, as a mean over places, in the head that keeps most."""
    gates = log_decays(model, tokens)
    return max(g[:, 1:].unfold(1, length, 1).sum(-1).exp().mean((0, 1)).max().item() for g in gates)


def examine_mask(mask: Callable[[Tensor], Tensor], g: Tensor) -> dict[str, str]:
    """What a decay mask does with log decays [C]: its gradient, its mean relative error, and a reset in the middle."""
    given = g.clone().requires_grad_()
    mask(given).sum().backward()
    exact, reset = state_space.decay_mask(g.double()), g.clone()
    reset[len(g) // 2] = -math.inf
    error = ((mask(g) - exact).abs() / exact)[exact > 1e-6].mean().item()
    finite = {"gradient": given.grad, "after a reset": mask(reset)}
    words = {name: "nan" if values.isnan().any() else "right" for name, values in finite.items()}
    return {"gradient": words["gradient"], "error": f"{error:.0e}", "after a reset": words["after a reset"]}
