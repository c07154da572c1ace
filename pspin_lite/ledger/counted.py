"""Claims that counting or a small computation decides. Nothing here is trained."""

from __future__ import annotations

import numpy as np
import torch

from .. import attractor, costs, deploy, explore_attractor, loss, measure, ternary
from ..config import preset
from ..language_model import build
from . import FAILS, HOLDS, PART, Measured
from .printed import PAPER


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
    verdict = HOLDS if same else FAILS
    text = "{mb:.2f} MB, uncompressed {whole:.2f} MB, {params:,} parameters; what `export` writes: {packed:.2f} MB"
    if name == "byte-paper":
        text += ". The larger number is this model without packing, not a standard Transformer, as the paper has it"
        verdict = PART if same else FAILS
    values = dict(mb=table.mb, whole=table.uncompressed_mb, params=table.params, packed=packed)
    return Measured(verdict, text, values)


def layer_bits() -> Measured:
    cfg = preset("byte-paper")
    said, down = costs.layer_bits(cfg), 16 * cfg.width * cfg.inner
    text = "the formula leaves W_down out, {share:.0f}% of a layer's bits; the paper's own table has it"
    return Measured(PART if down else HOLDS, text, dict(share=100 * down / (said + down)))


def _kept(cfg, tokens: int, batch: int = 1) -> int:
    torch.manual_seed(0)
    model = build(cfg)
    ids = torch.zeros(batch, tokens, dtype=torch.long)
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
    second = (_kept(cfg, 256, batch=2) - kept[256]) / 256
    linear = linear and abs(second / slope[0] - 1) < 0.001
    saved, D = costs.saved_bytes(preset("byte-paper"), 1, 2048), preset("byte-paper").width
    text = (
        "every further token keeps {slope:,.0f} bytes (byte-lite, T from 256 to 2048), each token of a second sequence "
        "{second:,.0f}; {fixed:.1f} MB beside that are copies of weights. "
        "byte-paper keeps {numbers:.0f} D numbers a token and layer, {share:.0f}% of them in the attractor"
    )
    per_token = {name: size / 4 / 2048 for name, size in saved.items() if name != "weights"}
    total = sum(per_token.values())
    values = dict(slope=slope[0], second=second, fixed=(kept[256] - 256 * slope[0]) / 1e6)
    values |= dict(numbers=total / D, share=100 * per_token["attractor"] / total)
    return Measured(HOLDS if linear else FAILS, text, values)


def memory_attention() -> Measured:
    """Attention as PyTorch computes it by itself, and with its scores written out."""
    cfg = preset("transformer-lite").replace(vocab=256, layers=1)
    torch.manual_seed(0)
    model = build(cfg)
    q = torch.randn(1, cfg.heads, 1024, cfg.head_width, requires_grad=True)

    def a_token(T: int) -> float:
        ids = torch.zeros(1, T, dtype=torch.long)
        return measure.saved_bytes(lambda: model.hidden(ids)[0].sum(), tuple(model.parameters())) / T

    def written_out(T: int) -> float:
        x = q[:, :, :T]
        return measure.saved_bytes(lambda: ((x @ x.mT).softmax(-1) @ x).sum(), (q,)) / T

    values = dict(short=a_token(256), long=a_token(1024), w_short=written_out(256), w_long=written_out(1024))
    text = (
        "a layer of our Transformer keeps {short:,.0f} bytes a token at T = 256 and {long:,.0f} at T = 1,024: with the "
        "attention that PyTorch takes by itself memory is linear in T as well. With the scores written out, attention "
        "alone keeps {w_short:,.0f} and {w_long:,.0f}"
    )
    return Measured(FAILS if values["long"] < 1.1 * values["short"] else HOLDS, text, values)


def time_t() -> Measured:
    """Counted while it runs: elementwise work and everything else that the counter does not see is linear anyway."""
    torch.manual_seed(0)
    model = build(preset("byte-lite").replace(chunk=64))

    def step(T: int) -> int:
        ids = torch.zeros(1, T, dtype=torch.long)
        return measure.flops(lambda: model.loss(ids, ids).backward())

    text = "a step of byte-lite: {gigaflops:.1f} GFLOP at T = 512, {ratio:.3f} times that at twice the length"
    values = dict(gigaflops=step(512) / 1e9, ratio=step(1024) / step(512))
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
    halves = share > 0.5, small < 0.1
    return Measured(HOLDS if all(halves) else PART if any(halves) else FAILS, text, values)


def logits_memory() -> Measured:
    T, V, D = 1024, 49152, 544
    torch.manual_seed(0)
    x, w = torch.randn(T, D, requires_grad=True), torch.randn(V, D, requires_grad=True)
    targets = torch.zeros(T, dtype=torch.long)
    peak = measure.peak_bytes(lambda: torch.autograd.grad(loss.linear_cross_entropy(x, w, targets), (x, w)))
    gradients = 4 * (x.numel() + w.numel())
    text = (
        "B T V logits of subword-paper are {logits:.0f} MB; computed in pieces, loss and gradients rise by {peak:.0f} "
        "MB, {gradients:.0f} of them the gradients themselves"
    )
    values = dict(logits=4 * T * V / 1e6, peak=peak / 1e6, gradients=gradients / 1e6)
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
        "symmetric, which an energy of this kind needs"
    )
    cycles = found.verdict == explore_attractor.OSCILLATES
    return Measured(FAILS if cycles else HOLDS, text, dict(verdict=found.verdict, moved=moved))


def exact_random() -> Measured:
    """Gradient error at K = 5 over the contraction factor, on random maps that settle."""
    from ..figures_gradients import gradient_errors

    found = gradient_errors(np.array([1.0, 2.0, 4.0]), 5)
    error, radius = found["fixed"][:, -1], found["radius"]
    text = (
        "on random layers the error at K = 5 is {calm:.0e} at a spectral radius of {r0:.2f}, {mid:.0e} at {r1:.2f}, "
        "{late:.0e} at {r2:.2f}: exact where both iterations have converged. From 1 on there is nothing for them to "
        "converge to"
    )
    values = dict(calm=error[0], r0=radius[0], mid=error[1], r1=radius[1], late=error[2], r2=radius[2])
    verdict = HOLDS if error.max() < 1e-3 else PART if error.min() < 1e-3 else FAILS
    return Measured(verdict, text, {name: float(x) for name, x in values.items()})


def decay() -> Measured:
    inputs = torch.arange(-300.0, 301.0)
    g = -torch.nn.functional.softplus(inputs)
    zero = inputs[g == 0].max().item()
    text = "never above 0 for inputs from {low:.0f} to {high:.0f}; in float32 it is 0 (nothing fades) up to {zero:.0f}"
    values = dict(low=inputs[0].item(), high=inputs[-1].item(), zero=zero)
    return Measured(HOLDS if g.max() <= 0 else FAILS, text, values)


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
    "layer-bits": layer_bits,
    "memory-k": memory_k,
    "memory-t": memory_t,
    "memory-attention": memory_attention,
    "time-t": time_t,
    "logits-time": logits_time,
    "logits-memory": logits_memory,
    "additions": additions,
    "lipschitz": lipschitz,
    "energy": energy,
    "exact-random": exact_random,
    "decay": decay,
    "state": carried_state,
}
