"""Token sequences for training and validation: a corpus, tokenised, packed, in an order that seed and number decide.

    data = open("sotu", "bytes", split="train", length=512)
    for tokens in data.batches(batch=4): ...           # [4, 513]: inputs are [:, :-1], targets [:, 1:]
    for tokens, targets in data.windows(): ...         # a split from end to end, for evaluation

    T         length, tokens a model reads; a sequence has T + 1, as the targets are the inputs one further
    N         tokens of a split: its documents one after the other, each followed by the end token
    sequence  number i covers the tokens i(T+1) to (i+1)(T+1) of the split repeated without end
    epoch e   the sequences that start in repetition e, in a random order of its own
    step s    the sequences s*batch to (s+1)*batch; rank r of w has the r-th of w equal shares

Other orders (`order`) are for learning a text as it came, once, in a given number of sequences:

    time      number n of `total` begins at the n-th of `total` equal parts of the split: from its first document to its
              last, with gaps (or overlaps) between the sequences
    mixed     the sequences of "time", in a random order: the same text without its history
    replay    those of "time", each followed by one of the sequences before it, drawn at random: total counts both

So nothing is dropped and nothing is repeated within a repetition, the cuts fall elsewhere in each one, and there is no
state to save: a run that goes on at step s asks for `batches(start=s)` and gets what it would have got.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import numpy as np
import torch

from .. import _checks as checks
from . import cache, corpora, tokenizers

ORDERS = ("shuffled", "time", "mixed", "replay")
ORDER = 1  # the version of the order of sequences: recorded, so that a change cannot go unnoticed


def open(
    corpus: str | os.PathLike | corpora.Corpus,
    tokenizer: str | os.PathLike | tokenizers.Tokenizer,
    split: str = "train",
    length: int = 512,
    seed: int = 1337,
    vocab: int = 8192,
    order: str = "shuffled",
    total: int | None = None,
) -> Packed:
    """The one function: sequences of `length` + 1 tokens from a split. `vocab` is for tokenizer="bpe"; `total`, the
    number of sequences that will be asked for, for the orders that need it."""
    checks.whole("length", length, 1)
    checks.whole("seed", seed, 0)
    corpus = corpora.open(corpus)
    checks.choice("split", split, corpus.splits)
    tokenizer = tokenizers.open(tokenizer, corpus=corpus, vocab=vocab)
    kind = Streamed if corpus.streamed(split) else Packed
    data = kind(corpus, tokenizer, split, length, seed)
    if checks.choice("order", order, ORDERS) != "shuffled":
        if kind is Streamed:
            raise checks.wrong("order", repr(order), "'shuffled' for a corpus that is streamed")
        data.order, data.total = order, checks.whole("total", total, 2)
    return data


class Packed:
    """A finite split: tokenised once, kept on disk, any sequence at any time."""

    documents: int | None
    bytes: int | None  # of the text in UTF-8: the end tokens stand for none
    tokens: int | None
    order: str = "shuffled"
    total: int = 0  # sequences in all; for the other orders

    def __init__(
        self, corpus: corpora.Corpus, tokenizer: tokenizers.Tokenizer, split: str, length: int, seed: int
    ) -> None:
        self.corpus, self.tokenizer, self.split, self.length, self.seed = corpus, tokenizer, split, length, seed
        self._prepare()

    def _prepare(self) -> None:
        name = "tokens-" + cache.key(self.corpus.identity(), self.split, self.tokenizer.identity())
        self._tokens, facts = cache.array(name, self._tokenise)
        self.documents, self.bytes, self.tokens = facts["documents"], facts["bytes"], len(self._tokens)
        self._order: tuple[int, np.ndarray] = (-1, np.empty(0))

    def _tokenise(self) -> tuple[np.ndarray, dict]:
        kind = np.min_scalar_type(self.tokenizer.vocab - 1)  # uint8, uint16 or uint32
        parts, size = [], 0
        for row in self.corpus.rows(self.split):
            parts.append(self._document(row["text"]).astype(kind))
            size += len(row["text"].encode())
        if not size:
            raise checks.wrong("split", f"{self.split!r} of {self.corpus.name} without text", "one with text")
        return np.concatenate(parts), {"documents": len(parts), "bytes": size}

    def _document(self, text: str) -> np.ndarray:
        return np.append(self.tokenizer.encode(text), self.tokenizer.end)

    def sequence(self, n: int) -> np.ndarray:
        """[T+1] int64: the n-th sequence of the order, a function of seed and n."""
        checks.whole("n", n, 0)
        long, N = self.length + 1, len(self._tokens)
        if long > N:
            came = f"{self.length} where {self.corpus.name} {self.split} has {N} tokens"
            raise checks.wrong("length", came, f"at most {N - 1}, or more text")
        if self.order != "shuffled":
            return self._slice(self.in_time(n) * (N - long) // (self._parts() - 1))
        epoch = n * long // N
        first = -(-epoch * N // long)  # the first sequence that starts in this repetition
        if self._order[0] != epoch:
            self._order = (epoch, permutation(-(-(epoch + 1) * N // long) - first, self.seed, epoch))
        return self._slice((first + int(self._order[1][n - first])) * long % N)

    def _slice(self, start: int) -> np.ndarray:
        return np.take(self._tokens, np.arange(start, start + self.length + 1), mode="wrap").astype(np.int64)

    def _parts(self) -> int:
        """Different sequences of an order in time."""
        return -(-self.total // 2) if self.order == "replay" else self.total

    def in_time(self, n: int) -> int:
        """Which of those the n-th sequence is."""
        if n >= self.total:
            raise checks.wrong("n", n, f"below total ({self.total}), which is all that order={self.order!r} has")
        if self.order == "mixed":
            if self._order[0] != 0:
                self._order = (0, permutation(self.total, self.seed, 0))
            return int(self._order[1][n])
        if self.order == "replay":
            now, old = n // 2, n % 2
            bits = np.random.PCG64(np.random.SeedSequence([self.seed, n])).random_raw()
            return int(bits % (now + 1)) if old else now
        return n

    def batches(
        self, start: int = 0, batch: int = 1, rank: int = 0, world: int = 1, workers: int = 0, pin: bool = False
    ) -> Iterator[torch.Tensor]:
        """From step `start` on, without end: [batch/world, T+1] int64, this rank's share of each step.

        The same whatever `workers` (processes that read ahead) and, put together, whatever `world`. `pin` puts them
        in memory a GPU copies from; without a GPU it does nothing."""
        for argument, value, least in (("start", start, 0), ("batch", batch, 1), ("world", world, 1)):
            checks.whole(argument, value, least)
        checks.whole("workers", workers, 0)
        if batch % world:
            raise checks.wrong("batch", batch, f"a multiple of world ({world})")
        if checks.whole("rank", rank, 0) >= world:
            raise checks.wrong("rank", rank, f"0 to {world - 1}")
        self._check()
        loader = torch.utils.data.DataLoader(
            _Steps(self, start, batch, rank, world),
            batch_size=None,
            num_workers=workers,
            pin_memory=pin and torch.cuda.is_available(),
            generator=torch.Generator(),  # of its own: otherwise it draws from the one the model is trained with
        )
        return iter(loader)

    def _check(self) -> None:
        self.sequence(0)

    def _steps(self, wanted: Iterator[range]) -> Iterator[torch.Tensor]:
        """`wanted`: the numbers of the sequences of each step, rising."""
        for numbers in wanted:
            yield torch.from_numpy(np.stack([self.sequence(n) for n in numbers]))

    def windows(self, limit: int | None = None) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """tokens [1,t], targets [1,t], t <= T, in order: each token of the split is a target exactly once.

        The first is predicted from an end token. With `limit`, that many windows, evenly spread over the split; the
        bytes they stand for are `data.tokenizer.byte_lengths[targets].sum()`."""
        for a in self._starts(limit):
            b = min(a + self.length, len(self._tokens))
            piece = np.take(self._tokens, np.arange(a - 1, b), mode="wrap")  # before the first comes the last, an end
            row = torch.from_numpy(piece.astype(np.int64))[None]  # [1, t+1]
            yield row[:, :-1], row[:, 1:]

    def documents_of_windows(self, limit: int | None = None) -> list[int]:
        """The number of the document in which each of the windows begins."""
        ends = np.flatnonzero(self._tokens == self.tokenizer.end)
        return [int(np.searchsorted(ends, a)) for a in self._starts(limit)]

    def _starts(self, limit: int | None) -> Iterator[int]:
        """Where the windows begin."""
        count = -(-len(self._tokens) // self.length)
        limit = count if limit is None else min(count, checks.whole("limit", limit, 1))
        return (j * count // limit * self.length for j in range(limit))

    def identity(self) -> dict:
        """What a run records, and compares when it goes on."""
        return {
            "corpus": self.corpus.identity(),
            "tokenizer": self.tokenizer.identity(),
            **{name: getattr(self, name) for name in ("split", "length", "seed", "documents", "bytes", "tokens")},
            "order": ORDER if self.order == "shuffled" else f"{self.order} of {self.total}",
        }

    @property
    def bytes_per_token(self) -> float | None:
        """On average; None for a stream, whose size is not known."""
        return self.bytes / self.tokens if self.bytes and self.tokens else None

    def __getstate__(self) -> dict:
        """For a worker that is not a fork: the file's name in place of its content."""
        state = self.__dict__.copy()
        if isinstance(state.get("_tokens"), np.memmap):
            state["_tokens"] = str(state["_tokens"].filename)
        return state

    def __setstate__(self, state: dict) -> None:
        if isinstance(state.get("_tokens"), str):
            state["_tokens"] = np.load(state["_tokens"], mmap_mode="r", allow_pickle=False)
        self.__dict__.update(state)

    def __str__(self) -> str:
        return (
            f"{self.corpus.name} {self.split}, tokenizer {self.tokenizer}: {self.documents:,} documents, "
            f"{self.bytes:,} bytes, {self.tokens:,} tokens, {self.bytes_per_token:.2f} bytes a token"
        )


class Streamed(Packed):
    """A split without length: documents as they come, joined and cut; what is left of one epoch begins the next.

    Going on at step s, asking for sequence n, and every worker and rank of its own read the stream from its start:
    exact by construction, at the price of reading and tokenising all that came before (with BPE 2 to 3 MB of text a
    second: after 8,000 sequences of 1,024 tokens, a quarter of a minute). `datasets`' own state_dict would be quick,
    but behind a shuffle it repeats some documents and loses others. One worker is enough; more read the same again."""

    corpus: corpora.Stream

    def _prepare(self) -> None:
        self.documents = self.bytes = self.tokens = None

    def sequence(self, n: int) -> np.ndarray:
        checks.whole("n", n, 0)
        return next(itertools.islice(self._all(), n, None))

    def _all(self) -> Iterator[np.ndarray]:
        long, rest = self.length + 1, np.empty(0, dtype=np.int64)
        for epoch in itertools.count():
            nothing = True
            for text in self.corpus.shuffled(self.seed, epoch):
                nothing = False
                rest = np.concatenate([rest, self._document(text)])
                for _ in range(len(rest) // long):
                    yield rest[:long]
                    rest = rest[long:]
            if nothing:
                raise checks.wrong("corpus", f"{self.corpus.name} without training documents", "at least one")

    def _check(self) -> None:
        pass

    def _steps(self, wanted: Iterator[range]) -> Iterator[torch.Tensor]:
        stream = enumerate(self._all())
        for numbers in wanted:
            mine = (tokens for n, tokens in stream if n >= numbers[0])
            yield torch.from_numpy(np.stack(list(itertools.islice(mine, len(numbers)))))

    def windows(self, limit: int | None = None) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        raise checks.wrong("split", f"{self.split!r}, a stream without end", '"valid"')

    def __str__(self) -> str:
        return f"{self.corpus.name} {self.split}, tokenizer {self.tokenizer}: streamed, its size is not known"


class _Steps(torch.utils.data.IterableDataset):
    """Whole steps: of W workers, worker w yields steps start + w, start + w + W, ..., and the loader takes turns."""

    def __init__(self, data: Packed, start: int, batch: int, rank: int, world: int) -> None:
        self.data, self.start, self.batch, self.share = data, start, batch, batch // world
        self.offset = rank * self.share

    def __iter__(self) -> Iterator[torch.Tensor]:
        worker = torch.utils.data.get_worker_info()
        mine, of = (worker.id, worker.num_workers) if worker else (0, 1)
        return self.data._steps(self._numbers(s) for s in itertools.count(self.start + mine, of))

    def _numbers(self, step: int) -> range:
        first = step * self.batch + self.offset
        return range(first, first + self.share)


def permutation(count: int, seed: int, epoch: int) -> np.ndarray:
    """A random order of `count`. From raw bits and a sort: NumPy keeps its bit streams stable, its shuffles not."""
    bits = np.random.PCG64(np.random.SeedSequence([seed, epoch])).random_raw(count)
    return np.argsort(bits, kind="stable")
