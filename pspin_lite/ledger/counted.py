"""Claims that counting, a small computation or the paper's own figures decide. Nothing here is trained."""

from __future__ import annotations

import math

import numpy as np
import torch

from .. import attractor, costs, deploy, explore_attractor, loss, measure, metrics, ternary
from ..config import preset
from ..language_model import build
from . import FAILS, HOLDS, PART, UNTESTABLE, Measured

PAPER = {  # figures printed in the paper
    "byte-paper": dict(params=60.96, mb=41.37, uncompressed=116.62),
    "subword-paper": dict(params=57.72, mb=124.40, uncompressed=161.09),
    "transformer": 60_569_600,
    "loss": {"p-spin": 4.8004, "transformer": 4.8025},
    "perplexity": {"p-spin": 121.56, "transformer": 121.81},
    "seconds": {"p-spin": 0.44, "transformer": 18.90, "byte": 1.53},
    "byte": dict(bits=2.12, subword=5.5839, mu=3.8),
}


def compression() -> Measured:
    cfg = preset("byte-paper")
    table, layer = costs.footprint(cfg), costs.ternary_params(cfg)
    down = cfg.width * cfg.inner
    packed = ternary.pack(torch.zeros(8, 64, dtype=torch.int8)).numel()
    values = dict(
        matrices=8 * 64 * 2 / packed,
        mlp=16 * (layer + down) / (2 * layer + 16 * down),
        byte=table.uncompressed_mb / table.mb,
        subword=(other := costs.footprint(preset("subword-paper"))).uncompressed_mb / other.mb,
    )
    text = (
        "{matrices:.1f} times for W_ext and W_int at rest, against 16 bits. The MLP with W_down: {mlp:.1f} times. The "
        "whole model: {byte:.2f} times (byte), {subword:.2f} times (subword). In training every weight is kept in 32 "
        "bits"
    )
    return Measured(HOLDS if values["mlp"] > 7.9 else PART if values["matrices"] > 7.9 else FAILS, text, values)


def footprint(name: str) -> Measured:
    table, paper = costs.footprint(preset(name)), PAPER[name]
    packed = sum(x.nbytes for x in deploy.deployed_tensors(build(preset(name))).values()) / costs.MB
    same = all(abs(a - paper["mb"]) < 0.006 for a in (table.mb, packed))
    same = same and abs(table.uncompressed_mb - paper["uncompressed"]) < 0.006
    text = "{mb:.2f} MB, uncompressed {whole:.2f} MB, {params:,} parameters; what `export` writes: {packed:.2f} MB"
    values = dict(mb=table.mb, whole=table.uncompressed_mb, params=table.params, packed=packed)
    return Measured(HOLDS if same else FAILS, text, values)


def baseline() -> Measured:
    params = costs.footprint(preset("transformer-paper")).params
    text = "an ordinary shape has exactly {params:,}; the paper does not give its own, so that the match is a guess"
    return Measured(HOLDS if params == PAPER["transformer"] else FAILS, text, dict(params=params))


def layer_bits() -> Measured:
    cfg = preset("byte-paper")
    said, down = costs.layer_bits(cfg), 16 * cfg.width * cfg.inner
    text = "the formula leaves W_down out, {share:.0f}% of a layer's bits; the paper's own table has it"
    return Measured(PART if down else HOLDS, text, dict(share=100 * down / (said + down)))


def _kept(cfg, tokens: int) -> int:
    torch.manual_seed(0)
    model = build(cfg)
    ids = torch.zeros(1, tokens, dtype=torch.long)
    return measure.saved_bytes(lambda: model.hidden(ids)[0].sum(), tuple(model.parameters()))


def memory_k() -> Measured:
    cfg = preset("byte-lite")
    kept = {K: _kept(cfg.replace(micro_steps=K), 256) for K in (1, 5, 20)}
    unrolled = {K: _kept(cfg.replace(micro_steps=K, implicit=False), 256) for K in (1, 5, 20)}
    same = len(set(kept.values())) == 1
    text = (
        "byte-lite at T = 256 keeps {mb:.1f} MB for the backward pass at K = 1, 5 and 20; unrolled {low:.1f}, {mid:.1f}"
    )
    values = dict(mb=kept[5] / 1e6, low=unrolled[1] / 1e6, mid=unrolled[5] / 1e6, high=unrolled[20] / 1e6)
    return Measured(HOLDS if same else FAILS, text + " and {high:.1f} MB", values)


def memory_t() -> Measured:
    cfg = preset("byte-lite")
    kept = {T: _kept(cfg, T) for T in (256, 512, 1024, 2048)}
    slope = [(kept[2 * T] - kept[T]) / T for T in (256, 512, 1024)]
    linear = max(slope) / min(slope) < 1.001
    saved, D = costs.saved_bytes(preset("byte-paper"), 1, 2048), preset("byte-paper").width
    text = (
        "every further token keeps {slope:,.0f} bytes (byte-lite, T from 256 to 2048). It is not D but D_int that "
        "counts: byte-paper keeps {numbers:.0f} D numbers a token and layer, {share:.0f}% of them in the attractor"
    )
    per_token = {name: size / 4 / 2048 for name, size in saved.items() if name != "weights"}
    total = sum(per_token.values())
    values = dict(slope=slope[0], numbers=total / D, share=100 * per_token["attractor"] / total)
    return Measured(HOLDS if linear else FAILS, text, values)


def time_t() -> Measured:
    cfg = preset("byte-paper")
    once, twice = costs.flops(cfg, tokens=2048, backward=True), costs.flops(cfg, tokens=4096, backward=True)
    text = "a step of byte-paper: {teraflops:.2f} TFLOP at T = 2048, {ratio:.3f} times that at twice the length"
    values = dict(teraflops=once.total / 1e12, ratio=twice.total / once.total)
    return Measured(HOLDS if values["ratio"] < 2.001 else FAILS, text, values)


def logits_time() -> Measured:
    share = {}
    for name in ("subword-paper", "byte-paper"):
        forward, step = costs.flops(preset(name)), costs.flops(preset(name), backward=True)
        share[name] = (forward.head / forward.total, step.head / step.total)
    (share, whole), (small, _) = share["subword-paper"], share["byte-paper"]
    text = (
        "the head has {share:.0f}% of the flops of a forward pass of subword-paper ({whole:.0f}% of a training step) "
        "and {small:.1f}% in byte-paper: negligible there, but not dominant here"
    )
    values = dict(share=100 * share, whole=100 * whole, small=100 * small)
    return Measured(HOLDS if share > 0.5 else PART if share > 0.25 else FAILS, text, values)


def logits_memory() -> Measured:
    T, V, D = 1024, 49152, 544
    torch.manual_seed(0)
    x, w = torch.randn(T, D, requires_grad=True), torch.randn(V, D, requires_grad=True)
    targets = torch.zeros(T, dtype=torch.long)
    peak = measure.peak_bytes(lambda: torch.autograd.grad(loss.linear_cross_entropy(x, w, targets), (x, w)))
    gradients = 4 * (x.numel() + w.numel())
    text = (
        "B T V logits of subword-paper are {logits:.0f} MB; computed in pieces, loss and gradients rise by {peak:.0f} "
        "MB, {gradients:.0f} of them the gradients themselves. The factor between the vocabularies is {factor:.0f}"
    )
    values = dict(logits=4 * T * V / 1e6, peak=peak / 1e6, gradients=gradients / 1e6, factor=V / 256)
    return Measured(FAILS if peak - gradients < 4 * T * V / 2 else HOLDS, text, values)


def additions() -> Measured:
    torch.manual_seed(0)
    codes, s = ternary.quantize(torch.randn(512, 512))
    x, dense = torch.randn(512, 64), codes * s
    plus, minus = (codes == 1), (codes == -1)
    found = [torch.where(plus[i, :, None], x, 0).sum(0) - torch.where(minus[i, :, None], x, 0).sum(0) for i in (0, 1)]
    exact = torch.allclose(torch.stack(found) * s, (dense @ x)[:2], rtol=1e-4, atol=1e-3)
    text = (
        "as arithmetic, yes: {zeros:.0f}% of the weights are skipped, the rest added or subtracted. But neither "
        "of our own fast paths computes so: the GPU kernels widen the codes and multiply on tensor cores, the CPU "
        "multiplies small integers"
    )
    return Measured(PART if exact else FAILS, text, dict(zeros=100 * (codes == 0).float().mean().item()))


def lipschitz() -> Measured:
    """Ternary or not, the scale is free: the same layer with its weights multiplied is as ternary as before."""
    rows = {}
    for scale in (1.0, 8.0):
        z, w, gamma = explore_attractor.random_map(gamma=0.5, scale=scale)
        assert len(w.unique()) == 3
        rows[scale] = (attractor.lipschitz_bound(w, gamma), attractor.residuals(z, w, gamma, 200)[-1].item())
    text = (
        "the bound is ‖W diag(γ)‖, and W is ternary only up to a scale that is learned: two random layers, both "
        "exactly ternary, have bounds {low:.2f} and {high:.1f}; the second still moves by {moves:.0%} of its size in "
        "step 200. Every finite matrix has a finite bound; ternary rounding makes none of them small"
    )
    values = dict(low=rows[1.0][0], high=rows[8.0][0], moves=rows[8.0][1])
    return Measured(FAILS if values["high"] > 1 and values["moves"] > 1e-3 else HOLDS, text, values)


def energy() -> Measured:
    z, w, gamma = explore_attractor.two_spins("frustrated", gamma=0.5, scale=8.0)
    found = explore_attractor.examine(z, w, gamma, K=5)
    moved = found.residual[-1, 0].item()
    text = (
        "states that come back to where they were lower no energy. Two spins, one that wants to agree and one that "
        "wants to differ: {verdict} (change in step 20: {moved:.0%} of their size). Nothing makes the couplings "
        "symmetric, and all spins move at once; either alone is enough to lose an energy"
    )
    cycles = found.verdict == explore_attractor.OSCILLATES
    return Measured(FAILS if cycles else HOLDS, text, dict(verdict=found.verdict, moved=moved))


def exact_random() -> Measured:
    """Gradient error at K = 5 over the contraction factor, on random maps."""
    from ..figures_gradients import gradient_errors

    found = gradient_errors(np.array([1.0, 2.0, 4.0, 6.0]), 5)
    error, radius = found["fixed"][:, -1], found["radius"]
    text = (
        "on random layers the error at K = 5 is {calm:.0e} at a spectral radius of {r0:.2f}, {mid:.0e} at {r1:.2f}, "
        "and {wild:.1f} of the gradient's size at {r3:.2f}: exact where both iterations have converged, and only there"
    )
    values = dict(calm=error[0], r0=radius[0], mid=error[1], r1=radius[1], wild=error[-1], r3=radius[-1])
    verdict = HOLDS if error.max() < 1e-3 else PART if error.min() < 1e-3 else FAILS
    return Measured(verdict, text, {name: float(x) for name, x in values.items()})


def decay() -> Measured:
    inputs = torch.arange(-300.0, 301.0)
    g = -torch.nn.functional.softplus(inputs)
    zero = inputs[g == 0].max().item()
    text = "never above 0 for inputs from {low:.0f} to {high:.0f}; in float32 it is 0 (nothing fades) up to {zero:.0f}"
    values = dict(low=inputs[0].item(), high=inputs[-1].item(), zero=zero)
    return Measured(HOLDS if g.max() <= 0 else FAILS, text, values)


def perplexity() -> Measured:
    values = {name.replace("-", "_"): math.exp(value) for name, value in PAPER["loss"].items()}
    same = all(abs(math.exp(PAPER["loss"][name]) - x) < 0.05 for name, x in PAPER["perplexity"].items())
    text = (
        "exp of the printed losses: {p_spin:.2f} and {transformer:.2f}. The difference of the losses is {gap:.4f}, and "
    )
    text += "the paper gives one seed"
    return Measured(HOLDS if same else FAILS, text, values | dict(gap=4.8025 - 4.8004))


def estimate() -> Measured:
    byte = PAPER["byte"]
    value = byte["bits"] * math.log(2) * byte["mu"]
    text = "2.12 bits give {value:.4f} with the paper's 3.8 bytes a token: its own arithmetic holds"
    return Measured(HOLDS if abs(value - byte["subword"]) < 0.001 else FAILS, text, dict(value=value))


def bytes_a_token() -> Measured:
    from .. import sequences

    ours = {}
    for split in ("train", "held-out", "recent"):
        data = sequences.open("sotu", "bpe", split=split)
        ours[split.replace("-", "_")] = data.bytes / data.tokens
    text = (
        "it depends on the text: a BPE of 8192 tokens has {train:.2f}, {held_out:.2f} and {recent:.2f} bytes a token "
        "on three splits of one corpus, which moves the estimate by up to {off:.0f}%. The paper's tokenizer needs a hub"
    )
    off = 100 * max(abs(x / metrics.PAPER_BYTES - 1) for x in ours.values())
    return Measured(UNTESTABLE, text, ours | dict(off=off))


def time_a_step() -> Measured:
    seconds = PAPER["seconds"]
    a_sequence = seconds["transformer"] / 64
    text = (
        "the two steps are of 1 and of 64 sequences. By sequence the paper's own figures are {p_spin:.2f} s and "
        "{transformer:.3f} s: p-Spin takes {ratio:.2f} times as long"
    )
    values = dict(p_spin=seconds["p-spin"], transformer=a_sequence, ratio=seconds["p-spin"] / a_sequence)
    return Measured(FAILS if values["ratio"] > 1 else HOLDS, text, values)


def sequences_seen() -> Measured:
    text = (
        "8,000 is {share:.1f}% of 64,000. But p-Spin takes {steps:.0f} times as many optimizer steps with them, which "
        "the comparison does not control for (see the claims below)"
    )
    ours, theirs = preset("subword-paper"), preset("transformer-paper")
    share = 100 * ours.steps * ours.batch / (theirs.steps * theirs.batch)
    return Measured(HOLDS if share == 12.5 else FAILS, text, dict(share=share, steps=ours.steps / theirs.steps))


def carried_state() -> Measured:
    cfg = preset("byte-lite")
    torch.manual_seed(0)
    model, sizes = build(cfg).eval(), {}
    for T in (16, 512):
        _, state = model.prefill(torch.zeros(1, T, dtype=torch.long))
        sizes[T] = sum(s.numel() for s in state) * 4
    text = "decoding carries {kb:.0f} kB whatever the length of the text (byte-lite, counted at 16 and 512 bytes)"
    return Measured(HOLDS if sizes[16] == sizes[512] else FAILS, text, dict(kb=sizes[16] / 1000))


MEASURES = {
    "compression": compression,
    "footprint-byte": lambda: footprint("byte-paper"),
    "footprint-subword": lambda: footprint("subword-paper"),
    "baseline-parameters": baseline,
    "layer-bits": layer_bits,
    "memory-k": memory_k,
    "memory-t": memory_t,
    "time-t": time_t,
    "logits-time": logits_time,
    "logits-memory": logits_memory,
    "additions": additions,
    "lipschitz": lipschitz,
    "energy": energy,
    "exact-random": exact_random,
    "decay": decay,
    "perplexity": perplexity,
    "estimate": estimate,
    "bytes-a-token": bytes_a_token,
    "time-a-step": time_a_step,
    "sequences": sequences_seen,
    "state": carried_state,
}
