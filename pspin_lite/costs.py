"""What a model weighs and what it costs: the paper's parameter tables, and its complexity section with the constants
filled in.

Counts are of multiply-adds times two ("flops") in matrix products, as a FLOP counter sees them; bytes of what is saved
for the backward pass. Both are checked in the tests against what a run really does.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from . import _checks as checks
from .config import AblationConfig, Config, PSpinConfig, TransformerConfig
from .loss import PIECE
from .ternary import TernaryLinear
from .variants import build

MB = 2**20  # the paper's MB


@dataclass(frozen=True)
class Row:
    """One component of a footprint."""

    name: str
    params: int
    bits: int  # a parameter, as deployed
    uncompressed_bits: int  # a parameter, in the paper's uncompressed equivalent

    @property
    def bytes(self) -> float:
        return self.params * self.bits / 8

    @property
    def mb(self) -> float:
        return self.bytes / MB


@dataclass(frozen=True)
class Footprint:
    """Rows by component, their total, and what the same weights take uncompressed. `print` shows the paper's table."""

    name: str
    rows: tuple[Row, ...]

    @property
    def params(self) -> int:
        return sum(row.params for row in self.rows)

    @property
    def bytes(self) -> float:
        return sum(row.bytes for row in self.rows)

    @property
    def mb(self) -> float:
        return self.bytes / MB

    @property
    def uncompressed_mb(self) -> float:
        return sum(row.params * row.uncompressed_bits for row in self.rows) / 8 / MB

    def __getitem__(self, name: str) -> Row:
        by_name = {row.name: row for row in self.rows}
        return by_name[checks.choice("component", name, by_name)]

    def __str__(self) -> str:
        lines = [f"{self.name:<24}{'params':>12}{'bits':>6}{'MiB':>9}"]
        lines += [f"{row.name:<24}{row.params:>12,}{row.bits:>6}{row.mb:>9.2f}" for row in self.rows]
        whole = f"{'total':<24}{self.params:>12,}{'':>6}{self.mb:>9.2f}"
        lines.append(f"{whole}   uncompressed {self.uncompressed_mb:.2f} MiB")
        return "\n".join(lines)


def footprint(cfg: Config) -> Footprint:
    """The paper's parameter and memory table (Eq. tab-footprint, Eq. tab-baseline), by component."""
    if not isinstance(cfg, PSpinConfig | TransformerConfig):
        raise checks.wrong("cfg", type(cfg).__name__, "a PSpinConfig or a TransformerConfig")
    if isinstance(cfg, AblationConfig):
        return _counted(cfg)
    D, L, V, inner = cfg.width, cfg.layers, cfg.vocab, cfg.inner
    embedding = Row("embedding", V * D, 32, 32)
    if isinstance(cfg, PSpinConfig):
        ternary = L * ternary_params(cfg)
        # The paper counts W_down, the norms and gamma under "state-space attention".
        dense = L * (5 * D * D + D * inner + 2 * D + inner) + D
        return Footprint(cfg.name, (embedding, Row("ternary MLP", ternary, 2, 16), Row("state space", dense, 16, 16)))
    attention = 2 * D * (cfg.heads + cfg.kv_heads) * cfg.head_width
    layer = attention + 3 * D * inner + 2 * D + 2 * cfg.head_width
    return Footprint(cfg.name, (embedding, Row("non-embedding", L * layer + D, 16, 16)))


def _counted(cfg: AblationConfig) -> Footprint:
    """Of a network that the paper does not have."""
    with torch.device("meta"):
        model = build(cfg)
    params, embedding = sum(weight.numel() for weight in model.parameters()), cfg.vocab * cfg.width
    ternary = sum(layer.weight.numel() for layer in model.modules() if isinstance(layer, TernaryLinear))
    dense = params - embedding - ternary
    return Footprint(
        cfg.name,
        (
            Row("embedding", embedding, 32, 32),
            Row("ternary MLP", ternary, 2, 16),
            Row("the rest", dense, 16, 16),
        ),
    )


def ternary_params(cfg: PSpinConfig) -> int:
    """W_ext and W_int of one layer."""
    return 2 * cfg.width * cfg.inner + 2 * cfg.inner**2


def layer_bits(cfg: PSpinConfig) -> int:
    """The paper's bits a layer: five state-space matrices at 16 bits, the ternary ones at 2. It leaves W_down out."""
    return 5 * 16 * cfg.width**2 + 2 * ternary_params(cfg)  # Eq. cost-params


@dataclass(frozen=True)
class Cost:
    """Flops of matrix products by part, of one pass over B sequences of T tokens through the whole model."""

    state_space: int
    attractor: int
    head: int

    @property
    def total(self) -> int:
        return self.state_space + self.attractor + self.head


def flops(cfg: PSpinConfig, batch: int = 1, tokens: int | None = None, backward: bool = False) -> Cost:
    """The paper's time complexity with its constants, for T a multiple of the chunk (and more than one token). A chunk
    of None counts as 64, the CPU's choice.

    backward=False: a forward pass; True: a whole training step's forward and backward."""
    _pspin(cfg)
    T = cfg.context if tokens is None else checks.whole("tokens", tokens, 1)
    D, inner, K, d = cfg.width, cfg.inner, cfg.micro_steps, cfg.head_width
    C = min(cfg.chunk or 64, T)
    N = checks.whole("batch", batch, 1) * T
    passes = 3 if backward else 1  # every product has two more in the backward pass: one for each of its factors
    # 5 D: projections. 2 C: scores and their use within the chunk. 2 d: writing the state and reading it.
    ssm = 2 * N * D * (5 * D + 2 * C + 2 * d) * passes  # Eq. cost-ssm
    if backward:  # sums for the gradient of the decays, as products with a triangle of ones
        ssm += 2 * N * cfg.heads * C * (C + 1)
    # W_ext and W_down, and K products with W_int forward. Backward, implicitly: K again, and one for W_int's gradient;
    # through the steps: two for each.
    products = (2 * K + (K > 0) if cfg.implicit else 3 * K) if backward else K
    spin = 2 * N * inner * (3 * D * passes + 2 * inner * products)  # Eq. cost-pspin
    return Cost(cfg.layers * ssm, cfg.layers * spin, 2 * N * D * cfg.vocab * passes)


def saved_bytes(cfg: PSpinConfig, batch: int = 1, tokens: int | None = None) -> dict[str, int]:
    """Float32 bytes that one layer holds for the backward pass (on a CPU), by part. With the implicit gradient none of
    them depends on K; the unrolled steps are not predicted."""
    _pspin(cfg)
    if not cfg.implicit:
        raise checks.wrong("cfg", "implicit=False", "implicit=True")
    T = cfg.context if tokens is None else checks.whole("tokens", tokens, 1)
    D, inner, d, H = cfg.width, cfg.inner, cfg.head_width, cfg.heads
    C = min(cfg.chunk or 64, T)
    N, chunks = checks.whole("batch", batch, 1) * T, batch * -(-T // C)
    return {
        # phi_u, phi_a, and Y, which W_down needs as well
        "attractor": 4 * N * 3 * inner,  # Eq. act-pspin
        # q, k, v in chunks (the last one filled up); for each head a mask and scores, both C x C, and the decay since
        # the chunk's start; a d x d state a chunk
        "state space": 4 * chunks * (C * (3 * D + 2 * C * H + H) + D * d),
        # for each norm x, 1/rms, x/rms and the result, which the projections share; the gate; the heads before w_o
        "around them": 4 * N * (2 * (3 * D + 1) + D + D),
        # ternary weights as they are used, and tanh(gamma_param) and gamma: whatever the batch
        "weights": 4 * (ternary_params(cfg) + 2 * inner),
    }


@dataclass(frozen=True)
class StepMemory:
    """Bytes of tensors in a training step on a CPU in float32. Weights and AdamW's moments are there all the time; the
    rest rises and falls, and is given at the highest moment of each phase (gradients included as far as they exist)."""

    weights: int
    moments: int
    forward: int
    backward: int
    optimizer: int

    @property
    def peak(self) -> int:
        return self.weights + self.moments + max(self.forward, self.backward, self.optimizer)


def step_bytes(cfg: PSpinConfig, batch: int = 1, tokens: int | None = None) -> StepMemory:
    """The memory of a whole training step (loss, gradients, clipping, AdamW; gradients given up between steps)."""
    saved = saved_bytes(cfg, batch, tokens)
    T = cfg.context if tokens is None else tokens
    D, V, L, inner, d, H = cfg.width, cfg.vocab, cfg.layers, cfg.inner, cfg.head_width, cfg.heads
    C = min(cfg.chunk or 64, T)
    n, chunks = batch * T, batch * -(-T // C)
    weights = 4 * footprint(cfg).params
    layer = sum(saved.values())
    norm, embedding = 4 * n * (3 * D + 1), 4 * V * D
    # The head works forward and backward at once: its gradients (x's, and a piece of it; the weight's), and a piece of
    # logits. The last norm is saved as well, and the states are held until the loss is there.
    logits = min(n, max(1, PIECE // V)) * V
    head = norm + embedding + 4 * (2 * n * D + logits) + 4 * L * batch * D * d

    # Backward, by layer and half: what is still saved, the gradients of the weights passed so far, and temporaries.
    spin_weights, ssm_weights = 4 * (ternary_params(cfg) + D * inner), 4 * 5 * D * D
    spin = 4 * n * 2 * D + 4 * max(n * 4 * inner, n * 3 * inner + 2 * inner**2)  # dx twice; V, dh, dy; the weight's
    ssm = 4 * n * 2 * D + 4 * chunks * (C * (6 * D + 3 * C * H) + 2 * D * d)  # six like q, three scores, two states
    moments = []
    for l in (L, 1):  # linear in between
        below = layer * l + embedding + (L - l) * (spin_weights + ssm_weights)
        moments += [below + spin + 4 * D * inner]
        moments += [below + ssm + spin_weights - saved["attractor"] - saved["weights"] - norm]
    # The fused AdamW works in place: beside weights and moments there are the gradients alone.
    return StepMemory(weights, 2 * weights, layer * L + head, max(moments), weights)


def _pspin(cfg: Config) -> None:
    if type(cfg) is not PSpinConfig:
        raise checks.wrong("cfg", type(cfg).__name__, "a PSpinConfig")
