"""Claims on memory, sizes and flops. Counting or a small computation decides them; nothing here is trained."""

from __future__ import annotations

import torch

from ... import costs, deploy, loss, ternary
from ...config import preset
from ...tools import measure
from ...variants import build
from .paper_numbers import PAPER
from .verdict import HOLDS, PART, REFUTED, Measured


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
    return Measured(HOLDS if values["mlp"] > 7.9 else PART if values["matrices"] > 7.9 else REFUTED, values)


def footprint(name: str) -> Measured:
    table, paper = costs.footprint(preset(name)), PAPER[name]
    packed = sum(x.nbytes for x in deploy.deployed_tensors(build(preset(name))).values()) / costs.MB
    same = all(abs(a - paper["mb"]) < 0.005 for a in (table.mb, packed))
    same = same and abs(table.uncompressed_mb - paper["uncompressed"]) < 0.005
    values = dict(mb=table.mb, whole=table.uncompressed_mb, params=table.params, packed=packed)
    return Measured(HOLDS if same else REFUTED, values)


def layer_bits() -> Measured:
    cfg = preset("byte-paper")
    ternary_ = ("attractor.w_ext.weight", "attractor.w_int.weight")
    matrices = {name: x.numel() for name, x in build(cfg).blocks[0].named_parameters() if x.ndim == 2}
    bits = sum((2 if name in ternary_ else 16) * size for name, size in matrices.items())
    said = costs.layer_bits(cfg)
    values = dict(said=said, bits=bits, share=100 * (1 - said / bits))
    return Measured(HOLDS if said == bits else REFUTED, values)


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
    low, mid, high = (size / costs.MB for size in unrolled.values())
    values = dict(mb=kept[5] / costs.MB, low=low, mid=mid, high=high)
    return Measured(HOLDS if same else REFUTED, values)


def memory_t() -> Measured:
    cfg = preset("byte-lite")
    kept = {T: _kept(cfg, T) for T in (256, 512, 1024, 2048)}
    slope = [(kept[2 * T] - kept[T]) / T for T in (256, 512, 1024)]
    linear = max(slope) / min(slope) < 1.001
    second = (_kept(cfg, 256, batch=2) - kept[256]) / 256
    linear = linear and abs(second / slope[0] - 1) < 0.001
    saved, D = costs.saved_bytes(preset("byte-paper"), 1, 2048), preset("byte-paper").width
    per_token = {name: size / 4 / 2048 for name, size in saved.items() if name != "weights"}
    total = sum(per_token.values())
    values = {
        "slope": slope[0],
        "second": second,
        "fixed": (kept[256] - 256 * slope[0]) / costs.MB,
        "numbers": total / D,
        "share": 100 * per_token["attractor"] / total,
    }
    return Measured(HOLDS if linear else REFUTED, values)


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
    grows = [values["long"] > 1.1 * values["short"], values["w_long"] > 1.1 * values["w_short"]]
    return Measured(HOLDS if all(grows) else PART if any(grows) else REFUTED, values)


def time_t() -> Measured:
    """Counted while it runs: elementwise work and everything else that the counter does not see is linear anyway."""
    torch.manual_seed(0)
    model = build(preset("byte-lite").replace(chunk=64))

    def step(T: int) -> int:
        ids = torch.zeros(1, T, dtype=torch.long)
        return measure.flops(lambda: model.loss(ids, ids).backward())

    values = dict(gigaflops=step(512) / 1e9, ratio=step(1024) / step(512))
    return Measured(HOLDS if values["ratio"] < 2.001 else REFUTED, values)


def complexity() -> Measured:
    """The paper's orders with our constants (costs.py), against what PyTorch's counter sees."""
    base = preset("byte-lite").replace(chunk=64, layers=1)
    ratios = []
    for changes in (dict(), dict(width=256), dict(inner=448), dict(chunk=128), dict(heads=2), dict(micro_steps=10)):
        cfg = base.replace(**changes)
        torch.manual_seed(0)
        model, ids = build(cfg), torch.zeros(1, 256, dtype=torch.long)
        counted = measure.flops(lambda model=model, ids=ids: model(ids))  # as in training: chunks of C
        ratios.append(counted / costs.flops(cfg, tokens=256).total)
    values = dict(low=min(ratios), high=max(ratios), shapes=len(ratios))
    return Measured(HOLDS if max(abs(x - 1) for x in ratios) < 0.001 else REFUTED, values)


def context_length() -> Measured:
    """Numbers that a token keeps for the backward pass, all layers and logits."""
    kept = {}
    for name in ("byte-paper", "subword-paper"):
        cfg = preset(name)
        saved = costs.saved_bytes(cfg)
        layers = cfg.layers * sum(size for part, size in saved.items() if part != "weights") / 4 / cfg.context
        kept[name] = layers, cfg.vocab
    (byte, byte_logits), (subword, subword_logits) = kept.values()
    ratio = (subword + subword_logits) / (byte + byte_logits)
    values = {
        "byte": byte,
        "byte_logits": byte_logits,
        "subword": subword,
        "subword_logits": subword_logits,
        "ratio": ratio,
        "pieces": subword / byte,
    }
    return Measured(HOLDS if ratio > 10 else PART if ratio > 2 else REFUTED, values)


def edge() -> Measured:
    cfg = preset("byte-paper")
    step, deployed = costs.step_bytes(cfg), costs.footprint(cfg)
    kept = step.weights + step.moments
    values = dict(kept=kept / costs.MB, peak=step.peak / costs.MB, times=step.peak / deployed.bytes)
    return Measured(REFUTED if kept >= 12 * deployed.params else HOLDS, values)


def logits_time() -> Measured:
    share = {}
    for name in ("subword-paper", "byte-paper"):
        forward, step = costs.flops(preset(name)), costs.flops(preset(name), backward=True)
        share[name] = (forward.head / forward.total, step.head / step.total)
    (share, whole), (small, _) = share["subword-paper"], share["byte-paper"]
    values = dict(share=100 * share, whole=100 * whole, small=100 * small)
    halves = share > 0.5, small < 0.1
    return Measured(HOLDS if all(halves) else PART if any(halves) else REFUTED, values)


def logits_memory() -> Measured:
    T, V, D = 1024, 49152, 544
    torch.manual_seed(0)
    x, w = torch.randn(T, D, requires_grad=True), torch.randn(V, D, requires_grad=True)
    targets = torch.zeros(T, dtype=torch.long)
    peak = measure.peak_bytes(lambda: torch.autograd.grad(loss.linear_cross_entropy(x, w, targets), (x, w)))
    gradients = 4 * (x.numel() + w.numel())
    sizes = dict(logits=4 * T * V, peak=peak, gradients=gradients, beside=peak - gradients)
    values = {name: size / costs.MB for name, size in sizes.items()}
    return Measured(REFUTED if peak - gradients < 4 * T * V / 2 else HOLDS, values)


def additions() -> Measured:
    torch.manual_seed(0)
    codes, s = ternary.quantize(torch.randn(512, 512))
    x, dense = torch.randn(512, 64), codes * s
    plus, minus = (codes == 1), (codes == -1)
    sums = [torch.where(plus[i, :, None], x, 0).sum(0) - torch.where(minus[i, :, None], x, 0).sum(0) for i in (0, 1)]
    exact = torch.allclose(torch.stack(sums) * s, (dense @ x)[:2], rtol=1e-4, atol=1e-3)
    return Measured(PART if exact else REFUTED, dict(zeros=100 * (codes == 0).float().mean().item()))


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
