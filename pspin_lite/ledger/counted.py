"""Claims that counting or a small computation decides. Nothing here is trained."""

from __future__ import annotations

import torch

from .. import costs, deploy, loss, measure, ternary
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
    same = all(abs(a - paper["mb"]) < 0.005 for a in (table.mb, packed))
    same = same and abs(table.uncompressed_mb - paper["uncompressed"]) < 0.005
    text = "{mb:.2f} MB, uncompressed {whole:.2f} MB, {params:,} parameters; what `export` writes: {packed:.2f} MB"
    values = dict(mb=table.mb, whole=table.uncompressed_mb, params=table.params, packed=packed)
    return Measured(HOLDS if same else FAILS, text, values)


def layer_bits() -> Measured:
    cfg = preset("byte-paper")
    ternary_ = ("attractor.w_ext.weight", "attractor.w_int.weight")
    matrices = {name: x.numel() for name, x in build(cfg).blocks[0].named_parameters() if x.ndim == 2}
    bits = sum((2 if name in ternary_ else 16) * size for name, size in matrices.items())
    said = costs.layer_bits(cfg)
    text = (
        "the formula gives {said:,} bits for a layer of byte-paper, its matrices have {bits:,}: it leaves W_down out, "
        "{share:.0f}% of them (the paper's own table has it)"
    )
    values = dict(said=said, bits=bits, share=100 * (1 - said / bits))
    return Measured(HOLDS if said == bits else FAILS, text, values)


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
        "{second:,.0f}; {fixed:.1f} MB beside that are copies of weights. (Without the logits.) "
        "byte-paper keeps {numbers:.0f} D numbers a token and layer, {share:.0f}% of them in the attractor"
    )
    per_token = {name: size / 4 / 2048 for name, size in saved.items() if name != "weights"}
    total = sum(per_token.values())
    values = dict(slope=slope[0], second=second, fixed=(kept[256] - 256 * slope[0]) / 1e6)
    values |= dict(numbers=total / D, share=100 * per_token["attractor"] / total)
    return Measured(HOLDS if linear else FAILS, text, values)


def memory_attention() -> Measured:
    """Attention as PyTorch computes it by itself, and with its scores written out, as in its formula."""
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
    grows = [values["long"] > 1.1 * values["short"], values["w_long"] > 1.1 * values["w_short"]]
    return Measured(HOLDS if all(grows) else PART if any(grows) else FAILS, text, values)


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


def complexity() -> Measured:
    """The paper's orders with our constants (costs.py), against what PyTorch's counter sees."""
    base = preset("byte-lite").replace(chunk=64, layers=1)
    found = []
    for changes in (dict(), dict(width=256), dict(inner=448), dict(chunk=128), dict(heads=2), dict(micro_steps=10)):
        cfg = base.replace(**changes)
        torch.manual_seed(0)
        model, ids = build(cfg), torch.zeros(1, 256, dtype=torch.long)
        with torch.no_grad():
            counted = measure.flops(lambda model=model, ids=ids: model(ids))
        found.append(counted / costs.flops(cfg, tokens=256).total)
    text = (
        "a forward pass of one layer takes 2·T·D·(5·D + 2·C + 2·d) + 2·T·D_int·(3·D + 2·K·D_int) flops, and the head "
        "2·T·D·V: counted over predicted {low:.4f} to {high:.4f} in {shapes} shapes that vary D, D_int, C, d and K"
    )
    values = dict(low=min(found), high=max(found), shapes=len(found))
    return Measured(HOLDS if max(abs(x - 1) for x in found) < 0.001 else FAILS, text, values)


def context_length() -> Measured:
    """Numbers that a token keeps for the backward pass, all layers and logits."""
    kept = {}
    for name in ("byte-paper", "subword-paper"):
        cfg = preset(name)
        saved = costs.saved_bytes(cfg)
        layers = cfg.layers * sum(size for part, size in saved.items() if part != "weights") / 4 / cfg.context
        kept[name] = layers, cfg.vocab
    (byte, byte_logits), (subword, subword_logits) = kept.values()
    text = (
        "a token of the byte model keeps {byte:,.0f} numbers in the layers and {byte_logits} logits, one of the "
        "subword model {subword:,.0f} and {subword_logits:,}: in the same memory the byte model reads {ratio:.1f} "
        "times as many tokens, and what limits it are the layers. With logits in pieces, which need not be kept, "
        "{pieces:.2f} times as many"
    )
    ratio = (subword + subword_logits) / (byte + byte_logits)
    values = dict(byte=byte, byte_logits=byte_logits, subword=subword, subword_logits=subword_logits, ratio=ratio)
    values |= dict(pieces=subword / byte)
    return Measured(HOLDS if ratio > 10 else PART if ratio > 2 else FAILS, text, values)


def edge() -> Measured:
    cfg = preset("byte-paper")
    step, deployed = costs.step_bytes(cfg), costs.footprint(cfg)
    kept = step.weights + step.moments
    text = (
        "while it learns, every weight is there in 32 bits with two moments of AdamW beside it: {kept:,.0f} MB for "
        "byte-paper, as for any network with as many parameters. A whole step at batch 1 takes {peak:,.0f} MB, "
        "{times:.0f} times what the deployed network takes"
    )
    values = dict(kept=kept / 1e6, peak=step.peak / 1e6, times=step.peak / deployed.bytes)
    return Measured(FAILS if kept >= 12 * deployed.params else HOLDS, text, values)


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
    values = dict(logits=4 * T * V / 1e6, peak=peak / 1e6, gradients=gradients / 1e6, beside=(peak - gradients) / 1e6)
    return Measured(FAILS if peak - gradients < 4 * T * V / 2 else HOLDS, text, values)


def additions() -> Measured:
    torch.manual_seed(0)
    codes, s = ternary.quantize(torch.randn(512, 512))
    x, dense = torch.randn(512, 64), codes * s
    plus, minus = (codes == 1), (codes == -1)
    found = [torch.where(plus[i, :, None], x, 0).sum(0) - torch.where(minus[i, :, None], x, 0).sum(0) for i in (0, 1)]
    exact = torch.allclose(torch.stack(found) * s, (dense @ x)[:2], rtol=1e-4, atol=1e-3)
    text = (
        "as arithmetic, yes: {zeros:.0f}% of the weights are skipped, the rest added or subtracted. But (by reading "
        "the code) neither of our own fast paths computes so: the GPU kernels widen the codes and multiply on tensor "
        "cores, the CPU multiplies small integers"
    )
    return Measured(PART if exact else FAILS, text, dict(zeros=100 * (codes == 0).float().mean().item()))


MEASURES = {
    "compression": compression,
    "footprint-byte": lambda: footprint("byte-paper"),
    "footprint-subword": lambda: footprint("subword-paper"),
    "layer-bits": layer_bits,
    "memory-k": memory_k,
    "memory-t": memory_t,
    "memory-attention": memory_attention,
    "time-t": time_t,
    "complexity": complexity,
    "context-length": context_length,
    "edge": edge,
    "logits-time": logits_time,
    "logits-memory": logits_memory,
    "additions": additions,
}
