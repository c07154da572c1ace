"""The whole p-Spin Glass Network in one file: both alphabets, training loss, decoding. It needs torch and nothing else.

Start here. Each line that computes an equation of the paper names it (docs/equations.md lists them all). The rest of
the package computes the same numbers faster, and the tests hold it against this file. State dicts are interchangeable.

    model = PSpin(**BYTE)                                # or **SUBWORD: the paper's two sizes
    model.loss(tokens, targets).backward()               # [B,T] token ids each; mean nats per token
    for token in model.generate(tokens[0], 100): ...     # ids, one at a time, at a constant cost per token

Glossary (rows are tokens)
    name     shape       paper    meaning
    x        [B,T,D]     X        the stream: every half block adds to it
    q, k, v  [B,H,T,d]   Q, K, V  queries, keys, values of H heads, d = D / H
    g        [B,H,T]     G        log decay of the memory before a token is added, at most 0
    S        [B,H,C]     G_cs     its running sum within a chunk of C tokens
    M        [B,H,C,C]   M        what is left of token j at token c
    h        [B,H,d,d]   h        the memory of a block: all that decoding carries along
    z        [B,T,2I]    Z        drive of the I spins from outside
    field    [B,T,2I]    H        drive and feedback; its halves u and a set a spin's value and open its gate
    y        [B,T,I]     Y        spins; spin(z) at first, after K steps the answer
    gamma    [I]         gamma    damping of the feedback, at most one half
    adjoint  [B,T,I]     V        gradient of the loss with respect to the spins, feedback included
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

BYTE = dict(vocab=256, width=704, layers=4, heads=8, spins=2048)
SUBWORD = dict(vocab=49152, width=544, layers=4, heads=8, spins=1408)


def linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs, bias=False)
    nn.init.normal_(layer.weight, std=inputs**-0.5)
    return layer


class StateSpace(nn.Module):
    """A memory that fades: tokens write key-value products into h, queries read it."""

    def __init__(self, width: int, heads: int, chunk: int):
        super().__init__()
        self.heads, self.chunk = heads, chunk
        self.w_q, self.w_k, self.w_v, self.w_g, self.w_o = (linear(width, width) for _ in range(5))

    def forward(self, x: Tensor, h: Tensor | None = None) -> tuple[Tensor, Tensor]:
        d = x.shape[-1] // self.heads
        h = x.new_zeros(len(x), self.heads, d, d) if h is None else h
        four = [w(x).unflatten(-1, (self.heads, d)).transpose(1, 2) for w in (self.w_q, self.w_k, self.w_v, self.w_g)]
        outputs = []
        for q, k, v, gate in zip(*(one.split(self.chunk, 2) for one in four), strict=True):  # chunk by chunk
            q = q * d**-0.5  # Eq. ssm-qkv
            g = -F.softplus(gate).mean(-1)  # Eq. ssm-gate
            S = g.cumsum(-1)
            later = torch.ones(S.shape[-1], S.shape[-1], dtype=torch.bool, device=x.device).triu(1)
            M = (S[..., :, None] - S[..., None, :]).masked_fill(later, -torch.inf).exp()  # Eq. ssm-mask
            within = (q @ k.mT * M) @ v  # Eq. ssm-intra
            before = (q @ h) * S.exp()[..., None]  # Eq. ssm-cross
            outputs.append(within + before)
            to_end = (S[..., -1:] - S).exp()[..., None]
            h = h * S[..., -1:, None].exp() + (k * to_end).mT @ v  # Eq. ssm-state
        return self.w_o(torch.cat(outputs, 2).transpose(1, 2).flatten(2)), h


def ternary(w: Tensor) -> Tensor:
    """-1, 0 or 1 times one scale; the gradient passes straight through the rounding."""
    s = w.detach().abs().mean().clamp_min(1e-5)  # Eq. ternary-scale
    return w + ((w / s).round().clamp(-1, 1) * s - w).detach()  # Eq. ternary-round


def spin(field: Tensor) -> Tensor:
    u, a = field.chunk(2, -1)  # Eq. spin-split
    return u.tanh() * a.sigmoid()  # Eq. spin-output


class Equilibrium(torch.autograd.Function):
    """K steps towards the fixed point; the gradient follows from the last one, so memory does not grow with K."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, w: Tensor, gamma: Tensor, steps: int) -> Tensor:
        field, y = z, spin(z)
        for _ in range(steps):
            field = z + (gamma * y) @ w.T  # Eq. spin-field
            y = spin(field)
        ctx.save_for_backward(field, y, w, gamma)
        ctx.steps = steps
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:
        field, y, w, gamma = ctx.saved_tensors
        u, a = field.chunk(2, -1)
        value, gate = u.tanh(), a.sigmoid()
        phi_u, phi_a = (1 - value**2) * gate, value * gate * (1 - gate)  # Eq. spin-slopes
        adjoint = dy
        for _ in range(ctx.steps):
            adjoint = dy + gamma * (torch.cat([adjoint * phi_u, adjoint * phi_a], -1) @ w)  # Eq. neumann
        dz = torch.cat([adjoint * phi_u, adjoint * phi_a], -1)  # Eq. spin-grad
        dA = dz.flatten(0, -2).T @ y.flatten(0, -2) * (ctx.steps > 0)  # of A = w * gamma; without steps A plays no part
        return dz, dA * gamma, (dA * w).sum(0), None


class Attractor(nn.Module):
    """An MLP whose hidden layer settles: spins that act on one another through ternary couplings."""

    def __init__(self, width: int, spins: int, steps: int):
        super().__init__()
        self.steps = steps
        self.w_ext, self.w_int, self.w_down = linear(width, 2 * spins), linear(spins, 2 * spins), linear(spins, width)
        self.gamma_param = nn.Parameter(torch.full((spins,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        z = x @ ternary(self.w_ext.weight).T  # Eq. spin-drive
        gamma = 0.5 * self.gamma_param.tanh()  # Eq. spin-gamma
        return self.w_down(Equilibrium.apply(z, ternary(self.w_int.weight), gamma, self.steps))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, spins: int, steps: int, chunk: int):
        super().__init__()
        self.norm_ssm = nn.RMSNorm(width, 1e-6)  # Eq. rmsnorm
        self.norm_spin = nn.RMSNorm(width, 1e-6)
        self.state_space = StateSpace(width, heads, chunk)
        self.attractor = Attractor(width, spins, steps)

    def forward(self, x: Tensor, h: Tensor | None = None) -> tuple[Tensor, Tensor]:
        routed, h = self.state_space(self.norm_ssm(x), h)
        x = x + routed  # Eq. ssm-out
        return x + self.attractor(self.norm_spin(x)), h  # Eq. spin-out


class PSpin(nn.Module):
    """Both models of the paper; tokenizer and sizes differ (Eq. alg-subword, Eq. alg-byte)."""

    def __init__(self, vocab: int, width: int, layers: int, heads: int, spins: int, steps: int = 5, chunk: int = 128):
        super().__init__()
        self.embedding = nn.Embedding(vocab, width)
        nn.init.normal_(self.embedding.weight, std=0.02)
        blocks = (Block(width, heads, spins, steps, chunk) for _ in range(layers))
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.RMSNorm(width, 1e-6)

    def forward(self, tokens: Tensor, state: list | None = None) -> tuple[Tensor, list]:
        """[B,T] ids and the state so far -> [B,T,vocab] logits and the state after them."""
        x, after = self.embedding(tokens), []
        for block, h in zip(self.blocks, state or [None] * len(self.blocks), strict=True):
            x, h = block(x, h)
            after.append(h)
        return self.norm(x) @ self.embedding.weight.T, after  # Eq. head

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(self(tokens)[0].flatten(0, 1), targets.flatten())  # Eq. loss

    @torch.no_grad()
    def generate(self, prompt: Tensor, tokens: int, temperature: float = 1.0) -> Iterator[int]:
        """Ids that follow the prompt [T]."""
        logits, state = self(prompt[None])
        for _ in range(tokens):
            token = torch.multinomial((logits[:, -1] / temperature).softmax(-1), 1)  # [1,1]
            yield int(token)
            logits, state = self(token, state)
