"""Text from a model, one token at a time.

`generate` works on ids, `stream` on text. Both are iterators: a token is there as soon as it is chosen. The prompt is
read once; after that the model carries a state, so that for the p-Spin network a token costs the same wherever it
stands. Any model with `prefill` and `step` serves: PSpinLM, TransformerLM, or what `deploy.load` gives.

Glossary
    temperature    logits are divided by it: below 1 bolder, above 1 wilder, 0 always the likeliest token
    top_k          only the k likeliest tokens are drawn from
    top_p          only the likeliest tokens that together reach probability p
    seed           the same seed gives the same text, also in another process; None draws a new one
    end            the id that ends a document: it stops generation and is not given out

The random numbers come from a generator of our own, one for each token: torch's global one is neither used nor moved,
and the first tokens do not depend on how many are asked for.
"""

from __future__ import annotations

import codecs
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from . import _checks as checks
from .language_model import LanguageModel

PIECE = 4096  # tokens of a prompt read at once: memory does not grow with the prompt


class Tokenizer(Protocol):
    """What is asked of one here; `data.tokenizers` has them."""

    vocab: int
    end: int

    def encode(self, text: str) -> Any: ...  # an array of ids
    def decode_bytes(self, ids: Iterable[int]) -> bytes: ...
    def identity(self) -> dict: ...


def generate(
    model: LanguageModel,
    prompt_ids: Sequence[int] | Tensor,
    tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    end: int | None = None,
    vocab: int | None = None,
) -> Iterator[int]:
    """Ids that follow the prompt: at most `tokens`, fewer if `end` comes. An empty prompt starts from `end`.
    prompt_ids [n]: integers. temperature: logits are divided by it; 0 takes the likeliest token, always.
    top_k, top_p: only the k likeliest are drawn from, or the likeliest that reach probability p together.
    seed: the same seed gives the same text; None draws one.
    vocab: only ids below it are drawn, where the tokenizer has fewer than the model; None: all.
    The model is in eval mode until the iterator is done."""
    prompt = torch.as_tensor(prompt_ids).reshape(-1)
    vocab = model.cfg.vocab if vocab is None else min(checks.whole("vocab", vocab, 1), model.cfg.vocab)
    if end is not None and not 0 <= checks.whole("end", end, 0) < vocab:
        raise checks.wrong("end", end, f"0 to {vocab - 1} (vocab {vocab})")
    if len(prompt) == 0:
        if end is None:
            raise checks.wrong("prompt_ids", "none", "at least one id, or `end` to start a document with")
        prompt = torch.tensor([end])
    prompt = checks.ids("prompt_ids", prompt, 1, "[n]", vocab)
    checks.whole("tokens", tokens, 0)
    _check_sampling(temperature, top_k, top_p, seed)
    return _generate(model, prompt, tokens, temperature, top_k, top_p, seed, end, vocab)


def _generate(
    model: LanguageModel,
    prompt: Tensor,
    tokens: int,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    seed: int | None,
    end: int | None,
    vocab: int,
) -> Iterator[int]:
    rng = torch.Generator()  # on the CPU, wherever the model is: the same numbers on every device
    rng.seed() if seed is None else rng.manual_seed(seed)
    device = model.embedding.weight.device
    was_training = model.training
    model.eval()
    try:
        state = None
        for piece in prompt.to(device)[None].split(PIECE, 1):
            logits, state = model.prefill(piece, state)
        for i in range(tokens):
            token = choose(logits[0, :vocab], temperature, top_k, top_p, rng)
            if token == end:
                return
            yield token
            if i + 1 < tokens:
                logits, state = model.step(torch.tensor([token], device=device), state)
    finally:
        model.train(was_training)


def choose(logits: Tensor, temperature: float, top_k: int | None, top_p: float | None, rng: torch.Generator) -> int:
    """One id from logits [N]."""
    logits = logits.detach().double().cpu()
    if not bool(logits.isfinite().all()):
        raise checks.wrong("logits", "values that are nan or infinite", "finite numbers: are the model's weights?")
    u = torch.rand((), generator=rng, dtype=torch.float64)  # drawn even if unused: one number a token, always
    if temperature == 0:
        return int(logits.argmax())
    ordered, ids = logits.sort(descending=True, stable=True)
    p = ((ordered - ordered[0]) / temperature).softmax(-1)
    if top_k is not None:
        p = p[:top_k]
    if top_p is not None:  # up to and including the token that reaches top_p of what top_k left
        before = p.cumsum(-1) - p  # probability of all that are likelier
        p = p[: int((before < top_p * p.sum()).sum())]
    mass = p.cumsum(-1)
    place = torch.searchsorted(mass, u * mass[-1], right=True)  # the first whose mass exceeds u: never one with p = 0
    return int(ids[place.clamp_max(len(p) - 1)])


def stream(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prompt: str,
    tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
) -> Iterator[str]:
    """Pieces of text that follow the prompt, which is not repeated; the other arguments are those of `generate`.
    A character whose bytes come in several tokens is shown once it is complete; bytes that do not form UTF-8 are shown
    as \\xff and the like."""
    if not isinstance(prompt, str):
        raise checks.wrong("prompt", type(prompt).__name__, "a str")
    check_tokenizer(model, tokenizer)
    ids = torch.as_tensor(tokenizer.encode(prompt))
    chosen = generate(model, ids, tokens, temperature, top_k, top_p, seed, tokenizer.end, tokenizer.vocab)
    return _decoded(chosen, tokenizer)


def _decoded(ids: Iterator[int], tokenizer: Tokenizer) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    for token in ids:
        if text := decoder.decode(tokenizer.decode_bytes([token])):
            yield text
    if text := decoder.decode(b"", final=True):  # half a character at the end
        yield text


def check_tokenizer(model: LanguageModel, tokenizer: Tokenizer) -> None:
    """A model refuses another tokenizer than its own: the vocabulary must fit, and where the model knows which
    tokenizer it was trained with (`model.tokenizer_identity`), it must be that one."""
    if tokenizer.vocab > model.cfg.vocab:
        raise checks.wrong("tokenizer", f"a vocabulary of {tokenizer.vocab}", f"at most the model's, {model.cfg.vocab}")
    own = getattr(model, "tokenizer_identity", None)
    came = json.loads(json.dumps(tokenizer.identity()))  # as it would come back from a file
    if own is not None and own != came:
        raise checks.wrong("tokenizer", came, f"the one the model was trained with, {own}")


def _check_sampling(temperature: float, top_k: int | None, top_p: float | None, seed: int | None) -> None:
    if not _number(temperature) or not 0 <= temperature < math.inf:
        raise checks.wrong("temperature", repr(temperature), "a finite number >= 0 (0: always the likeliest token)")
    if top_k is not None:
        checks.whole("top_k", top_k, 1)
    if top_p is not None and not (_number(top_p) and 0 < top_p <= 1):
        raise checks.wrong("top_p", repr(top_p), "None or a number above 0, at most 1")
    if seed is not None and checks.whole("seed", seed, 0) >= 2**63:
        raise checks.wrong("seed", seed, "None or an integer from 0 to 2**63 - 1")


def _number(x: object) -> bool:
    return isinstance(x, int | float) and not isinstance(x, bool)
