"""What the p-Spin network and the Transformer share: embedding, blocks, norm, tied head.

Token ids in, logits or a loss out, one token at a time on request. All of it goes through `hidden`, so that training,
evaluation and decoding cannot disagree. A block takes ([B,T,D] features, its state or None) and returns both anew; the
state is all that decoding carries from token to token.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from . import _checks as checks
from .config import Config
from .loss import linear_cross_entropy

EPS = 1e-6  # of every RMSNorm


class LanguageModel(nn.Module):
    tokenizer_identity: dict | None = None  # of the tokenizer it was trained with, where that is known
    stored: dict[str, Tensor] | None = None  # of a deployed model: what its file holds

    def __init__(self, cfg: Config, blocks: Iterable[nn.Module]):
        super().__init__()
        self.cfg = cfg
        self.embedding = nn.Embedding(cfg.vocab, cfg.width)  # tied: it is the output head as well
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.RMSNorm(cfg.width, EPS)  # Eq. rmsnorm
        self.init_weights()

    def init_weights(self) -> None:
        """Paper silent. The embedding starts small because it is the head too: a first loss of about ln |V|.
        Matrices start at gain / sqrt(fan-in), which keeps the size of activations at every width."""
        nn.init.normal_(self.embedding.weight, std=0.02)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=self.gain_of(module) * module.in_features**-0.5)

    def gain_of(self, linear: nn.Linear) -> float:
        return self.cfg.gain

    def hidden(self, tokens: Tensor, state: list | None = None) -> tuple[Tensor, list]:
        """[B,T] ids and the state so far (None: the start) -> normalised features [B,T,D], state after the last."""
        if state is None:
            state = [None] * len(self.blocks)
        elif not isinstance(state, list) or len(state) != len(self.blocks):
            came = f"a list of {len(state)}" if isinstance(state, list) else type(state).__name__
            raise checks.wrong("state", came, f"a list, one entry for each of {len(self.blocks)} layers")
        x, after = self.embedding(tokens), []
        for block, before in zip(self.blocks, state, strict=True):
            x, now = block(x, before)
            after.append(now)
        return self.norm(x), after

    def forward(self, tokens: Tensor) -> Tensor:
        """tokens [B,T], ids -> logits [B,T,N]."""
        tokens = checks.ids("tokens", tokens, 2, "[B, T]", self.cfg.vocab)
        return self.head(self.hidden(tokens)[0])

    def head(self, x: Tensor) -> Tensor:
        return F.linear(x, self.embedding.weight)  # Eq. head

    def loss(self, tokens: Tensor, targets: Tensor) -> Tensor:
        """tokens [B,T] and the targets [B,T] that follow them -> mean nats per token, a scalar.
        In pieces: at most 32 MB of logits are alive at once, whatever B, T and N."""
        tokens = checks.ids("tokens", tokens, 2, "[B, T]", self.cfg.vocab)
        targets = checks.ids("targets", targets, 2, "[B, T]", self.cfg.vocab)
        checks.same("targets", targets, tuple(tokens.shape), "the shape of tokens")
        x, _ = self.hidden(tokens)
        return linear_cross_entropy(x.flatten(0, 1), self.embedding.weight, targets.flatten())  # Eq. loss

    @torch.no_grad()
    def step(self, token: Tensor, state: list | None = None) -> tuple[Tensor, list]:
        """Decodes: token [B], ids, and the state so far (None: the start) -> logits [B,N] and the new state."""
        token = checks.ids("token", token, 1, "[B]", self.cfg.vocab)
        x, state = self.hidden(token[:, None], state)
        return self.head(x[:, 0]), state

    @torch.no_grad()
    def prefill(self, tokens: Tensor, state: list | None = None) -> tuple[Tensor, list]:
        """Reads a whole prompt at once: tokens [B,T] -> logits [B,N] after its last token, and the state."""
        tokens = checks.ids("tokens", tokens, 2, "[B, T]", self.cfg.vocab)
        x, state = self.hidden(tokens, state)
        return self.head(x[:, -1]), state
