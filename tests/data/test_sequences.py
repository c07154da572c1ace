"""Sequences: nothing dropped, nothing repeated, one order whatever the workers, the ranks and the interruptions."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from helpers import hub_folder, message, written
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pspin_lite as ps
from pspin_lite.data import cache, sequences

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")
DOCUMENTS = [f"{i}: naïve text, " + "ab" * (i * 7 % 23) for i in range(30)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return ps.corpora.open(written(tmp_path_factory.mktemp("documents"), DOCUMENTS))


@pytest.fixture(scope="module", params=["bytes", "bpe"])
def tokenizer(request, corpus):
    return ps.tokenizers.open(request.param, corpus=corpus, vocab=280)


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """The hub's corpus, on a folder laid out like its repository, in four files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PSPIN_FINEWEB", str(hub_folder(tmp_path_factory.mktemp("hub") / "fineweb-edu")))
        patch.setattr("datasets.config.SLEEP_TIME_ON_THREADS_SHUTDOWN", 0.1)
        yield ps.corpora.open("fineweb-edu")


def by_hand(corpus, tokenizer, split="train") -> np.ndarray:
    """The tokens of a split: each document, then the end."""
    return np.concatenate([[*tokenizer.encode(row["text"]), tokenizer.end] for row in corpus.rows(split)])


def made(tokens: np.ndarray, length: int, seed: int = 1337) -> sequences.Packed:
    """Sequences of given tokens, without corpus and cache."""
    data = sequences.Packed.__new__(sequences.Packed)
    data.corpus = type("Any", (), dict(name="any"))
    data.split, data.length, data.seed, data.tokens, data._tokens = "train", length, seed, len(tokens), tokens
    data._order = (-1, np.empty(0))
    return data


def take(data, count: int, **how) -> torch.Tensor:
    return torch.stack(list(itertools.islice(data.batches(**how), count)))  # [count, share, T+1]


def test_tokens_are_the_documents_each_with_its_end(corpus, tokenizer):
    data = ps.sequences.open(corpus, tokenizer, length=16)
    expected = by_hand(corpus, tokenizer)
    assert data._tokens.tolist() == expected.tolist()
    assert data.tokens == len(expected)
    assert data.documents == (expected == tokenizer.end).sum() == corpus.identity()["splits"]["train"]["documents"]
    texts = [row["text"] for row in corpus.rows("train")]
    assert data.bytes == sum(len(t.encode()) for t in texts) == corpus.identity()["splits"]["train"]["bytes"]
    assert data.bytes == tokenizer.byte_lengths[data._tokens].sum()
    assert tokenizer.decode(data._tokens) == "".join(texts)
    assert data._tokens.dtype == (np.uint8 if tokenizer.name == "bytes" else np.uint16)


@settings(max_examples=150, deadline=None)
@given(N=st.integers(2, 60), length=st.integers(1, 59), seed=st.integers(0, 5))
@example(N=12, length=3, seed=0)  # a multiple
@example(N=13, length=3, seed=0)
@example(N=7, length=6, seed=0)  # one sequence is the whole
def test_nothing_is_dropped_or_repeated(N, length, seed):
    long = length + 1
    if long > N:
        return
    data = made(np.arange(N), length, seed)
    repetitions = long  # after T+1 repetitions of N tokens the cuts are where they began: N(T+1) tokens, N sequences
    result = [data.sequence(n) for n in range(N)]
    for tokens in result:
        assert tokens.dtype == np.int64
        assert tokens.shape == (long,)
        assert ((np.diff(tokens) - 1) % N == 0).all(), "a sequence is a run of neighbours"
    counts = np.bincount(np.concatenate(result), minlength=N)
    assert (counts == repetitions).all(), "some token came more often than others"
    for epoch in range(repetitions):
        # The sequences that start in this repetition are the next ones of the order, whichever way they are shuffled
        starts = [i * long - epoch * N for i in range(N) if epoch * N <= i * long < (epoch + 1) * N]
        numbers = [n for n in range(N) if n * long // N == epoch]
        assert sorted(result[n][0] for n in numbers) == starts


def test_cuts_differ_between_epochs_and_the_order_is_random():
    data = made(np.arange(1000), 6)
    first, second = ([data.sequence(n)[0] for n in numbers] for numbers in (range(143), range(143, 286)))
    assert not set(first) & set(second)
    assert first != sorted(first)
    assert abs(np.corrcoef(first, range(143))[0, 1]) < 0.3
    other = made(np.arange(1000), 6, seed=7)
    assert [other.sequence(n)[0] for n in range(143)] != first
    assert sorted(other.sequence(n)[0] for n in range(143)) == sorted(first)


def test_the_order_is_pinned():
    """Another order here is another order for every recorded run: then `sequences.ORDER` must change too."""
    assert sequences.ORDER == 1
    assert sequences.permutation(10, 1337, 0).tolist() == [5, 1, 6, 7, 8, 4, 0, 9, 2, 3]
    assert sequences.permutation(10, 1337, 1).tolist() == [2, 6, 3, 7, 5, 4, 8, 9, 0, 1]


@pytest.mark.fault(17)
@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("kind", ["packed", "streamed"])
def test_workers_give_the_same_sequences(kind, workers, corpus, stream):
    data = ps.sequences.open(stream if kind == "streamed" else corpus, "bytes", length=20)
    expected = take(data, 9, start=3, batch=4)
    assert torch.equal(take(data, 9, start=3, batch=4, workers=workers), expected)
    assert torch.equal(take(data, 9, start=3, batch=4, rank=1, world=2, workers=workers), expected[:, 2:])


@pytest.mark.fault(17)
@pytest.mark.parametrize("kind", ["packed", "streamed"])
def test_ranks_share_a_step(kind, corpus, stream):
    data = ps.sequences.open(stream if kind == "streamed" else corpus, "bytes", length=20)
    whole = take(data, 6, batch=4)
    assert whole.shape == (6, 4, 21)
    assert whole.dtype == torch.int64
    for world in (2, 4):
        shares = [take(data, 6, batch=4, rank=rank, world=world) for rank in range(world)]
        assert torch.equal(torch.cat(shares, dim=1), whole)
    for n in range(24) if kind == "packed" else (0, 7, 23):  # each is a stream read anew
        assert (whole.reshape(24, 21)[n].numpy() == data.sequence(n)).all()
    assert torch.equal(take(data, 24, batch=1).reshape(6, 4, 21), whole), "another batch, another order"


@pytest.mark.fault(3)
def test_going_on_is_exact_in_any_epoch(corpus):
    data = ps.sequences.open(corpus, "bytes", length=40)
    steps = 3 * data.tokens // 41 // 2 + 3  # three epochs and a little at batch 2
    whole = take(data, steps, batch=2)
    for start in range(0, steps, 5):
        again = ps.sequences.open(corpus, "bytes", length=40)
        assert torch.equal(take(again, steps - start, start=start, batch=2), whole[start:])


def test_going_on_with_a_stream_is_exact_in_the_second_epoch_too(stream):
    data = ps.sequences.open(stream, "bytes", length=500)
    texts = [text for epoch in (0, 1) for text in stream.shuffled(1337, epoch)]
    tokens = b"".join(text.encode() + b"\xff" for text in texts)
    total = len(tokens) // 501
    whole = take(data, total, batch=1).reshape(-1)
    assert bytes(whole.to(torch.uint8).tolist()) == tokens[: total * 501], (
        "documents joined, cut, none lost between epochs"
    )
    for start in (1, total // 2 - 1, total // 2 + 1, total - 2):
        rest = take(data, total - start, start=start, batch=1).reshape(-1)
        assert torch.equal(rest, whole[start * 501 :])


def test_a_stream_has_windows_on_its_validation_only(stream):
    valid = ps.sequences.open(stream, "bytes", split="valid", length=500)
    assert valid.documents == 500
    assert sum(targets.numel() for _, targets in valid.windows()) == valid.tokens
    train = ps.sequences.open(stream, "bytes", length=500)
    with pytest.raises(ValueError, match='expected "valid"'):
        train.windows()
    assert "streamed" in str(train)
    assert json.loads(json.dumps(train.identity())) == train.identity()


def test_a_stream_without_training_documents_ends_in_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("PSPIN_FINEWEB", str(hub_folder(tmp_path / "few", files=1, documents=50)))
    with pytest.raises(ValueError, match="without training documents"):
        next(ps.sequences.open("fineweb-edu", "bytes").batches())


@pytest.mark.parametrize("length", [1, 7, 64, 100_000])
def test_windows_predict_every_token_once(corpus, tokenizer, length):
    data = ps.sequences.open(corpus, tokenizer, split="valid", length=length)
    expected = by_hand(corpus, tokenizer, "valid")
    windows = list(data.windows())
    assert torch.cat([targets for _, targets in windows], 1)[0].tolist() == expected.tolist()
    assert torch.cat([tokens for tokens, _ in windows], 1)[0].tolist() == [tokenizer.end, *expected[:-1]]
    assert all(tokens.shape == targets.shape == (1, length) for tokens, targets in windows[:-1])
    assert 1 <= windows[-1][0].shape[1] <= length
    assert sum(int(tokenizer.byte_lengths[targets].sum()) for _, targets in windows) == data.bytes


def test_a_limit_spreads_the_windows(corpus):
    data = ps.sequences.open(corpus, "bytes", length=10)
    every = [targets.tolist() for _, targets in data.windows()]
    some = [targets.tolist() for _, targets in data.windows(limit=4)]
    assert some == [every[i * len(every) // 4] for i in range(4)]
    assert [targets.tolist() for _, targets in data.windows(limit=10**9)] == every
    with pytest.raises(ValueError, match="limit"):
        next(data.windows(limit=0))


@pytest.mark.fault(15)
def test_too_short_for_one_sequence(tmp_path):
    (tmp_path / "a.txt").write_text("abcdefghij" * 3)
    data = ps.sequences.open(tmp_path / "a.txt", "bytes", length=29)
    assert data.tokens == 30  # 29 bytes for training and an end
    assert sorted(data.sequence(0)) == sorted(data.sequence(1))
    with pytest.raises(ValueError) as raised:
        ps.sequences.open(tmp_path / "a.txt", "bytes", length=30).batches()
    assert message(raised) == "length: got 30 where a.txt train has 30 tokens, expected at most 29, or more text"
    valid = ps.sequences.open(tmp_path / "a.txt", "bytes", split="valid", length=512)  # one byte and its end
    ((tokens, targets),) = valid.windows()
    assert (tokens.tolist(), targets.tolist()) == ([[255, ord("j")]], [[ord("j"), 255]])
    (tmp_path / "b.txt").write_text("x")  # one byte: all of it is validation
    with pytest.raises(ValueError, match=r"'train' of b\.txt without text"):
        ps.sequences.open(tmp_path / "b.txt", "bytes")


def test_wrong_arguments(corpus):
    data = ps.sequences.open(corpus, "bytes", length=8)
    cases = [
        (dict(batch=3, world=2), "batch: got 3, expected a multiple of world (2)"),
        (dict(batch=2, rank=2, world=2), "rank: got 2, expected 0 to 1"),
        (dict(start=-1), "start: got -1, expected an integer >= 0"),
        (dict(batch=0), "batch: got 0, expected an integer >= 1"),
        (dict(workers=-1), "workers: got -1, expected an integer >= 0"),
    ]
    for how, expected in cases:
        with pytest.raises(ValueError) as raised:
            data.batches(**how)
        assert message(raised) == expected
    for how in (dict(length=0), dict(seed=-1), dict(split="test"), dict(tokenizer="words")):
        with pytest.raises(ValueError):
            ps.sequences.open(**dict(corpus=corpus, tokenizer="bytes") | how)


def test_the_generator_of_training_is_left_alone(corpus):
    data = ps.sequences.open(corpus, "bytes", length=8)
    torch.manual_seed(0)
    before = torch.get_rng_state()
    for workers in (0, 1):
        take(data, 3, batch=2, workers=workers)
    assert torch.equal(torch.get_rng_state(), before)


def test_pinning_without_a_gpu_does_nothing(corpus, recwarn):
    data = ps.sequences.open(corpus, "bytes", length=8)
    assert torch.equal(take(data, 2, pin=True), take(data, 2))
    assert torch.cuda.is_available() or not [w for w in recwarn if "pin" in str(w.message)]


def test_it_says_what_it_is(corpus):
    data = ps.sequences.open(corpus, "bytes", split="valid", length=8, seed=3)
    assert str(data) == (
        f"{corpus.name} valid, tokenizer bytes (256 tokens): {data.documents} documents, {data.bytes} bytes, "
        f"{data.tokens} tokens, {data.bytes / data.tokens:.2f} bytes a token"
    )
    identity = data.identity()
    assert json.loads(json.dumps(identity)) == identity
    assert identity["corpus"] == corpus.identity()
    assert identity["tokenizer"] == data.tokenizer.identity()
    assert {k: identity[k] for k in ("split", "length", "seed", "bytes")} == dict(
        split="valid", length=8, seed=3, bytes=data.bytes
    )


# --- the cache


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.setenv("PSPIN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_tokenised_once(corpus, own, monkeypatch):
    first = ps.sequences.open(corpus, "bytes", length=8)
    assert isinstance(first._tokens, np.memmap)
    monkeypatch.setattr(sequences.Packed, "_tokenise", None)
    again = ps.sequences.open(corpus, "bytes", length=16)
    assert again._tokens.tolist() == first._tokens.tolist()
    assert (again.documents, again.bytes) == (first.documents, first.bytes)


@pytest.mark.fault(5)
def test_a_damaged_cache_is_made_anew(corpus, own):
    whole = ps.sequences.open(corpus, "bytes", length=8)._tokens.tolist()
    stored, described = next(own.glob("*.npy")), next(own.glob("*.json"))
    good, facts = stored.read_bytes(), described.read_bytes()
    damages = [(stored, good[:n]) for n in (0, 1, 7, 8, 9, len(good) // 2, len(good) - 1)]
    damages += [(stored, good[:200] + bytes([good[200] ^ 1]) + good[201:]), (stored, b"\x80\x04N."), (stored, None)]
    damages += [(described, facts[:n]) for n in (0, 1, len(facts) - 1)] + [(described, b"[]"), (described, None)]
    for path, content in damages:
        path.unlink() if content is None else path.write_bytes(content)
        assert ps.sequences.open(corpus, "bytes", length=8)._tokens.tolist() == whole
        assert (stored.read_bytes(), described.read_bytes()) == (good, facts)
    assert len(list(own.iterdir())) == 2, "something partial was left"


@pytest.mark.fault(15)
def test_no_partial_cache_when_writing_fails(corpus, own, monkeypatch):
    expected = by_hand(corpus, ps.tokenizers.open("bytes")).tolist()

    def full(file, values, allow_pickle):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(cache.np, "save", full)
        with pytest.warns(UserWarning, match="no space left"):
            data = ps.sequences.open(corpus, "bytes", length=8)
    assert data._tokens.tolist() == expected
    assert list(own.iterdir()) == []
    (own / "file").write_text("")
    monkeypatch.setenv("PSPIN_CACHE", str(own / "file"))
    with pytest.warns(UserWarning, match="kept in memory"):
        assert ps.sequences.open(corpus, "bytes", length=8)._tokens.tolist() == expected


def test_another_corpus_split_or_tokenizer_has_another_place(corpus, tmp_path, own):
    (tmp_path / "a.txt").write_text("another text, " * 20)
    for chosen, tokenizer, split in (
        (corpus, "bytes", "train"),
        (corpus, "bytes", "valid"),
        (tmp_path / "a.txt", "bytes", "train"),
        (corpus, ps.tokenizers.open("bpe", corpus=corpus, vocab=270), "train"),
        (corpus, ps.tokenizers.open("bpe", corpus=corpus, vocab=280), "train"),
    ):
        ps.sequences.open(chosen, tokenizer, split=split, length=4)
    assert len(list(own.glob("tokens-*.npy"))) == 5


@pytest.mark.parametrize("kind", ["bytes", "bpe", "streamed"])
def test_pickled_for_a_worker_it_is_small_and_the_same(kind, corpus, stream):
    chosen, tokenizer = (stream, "bytes") if kind == "streamed" else (corpus, kind)
    data = ps.sequences.open(chosen, tokenizer, length=16, vocab=280)
    again = pickle.loads(pickle.dumps(data))
    assert torch.equal(take(again, 5, start=2), take(data, 5, start=2))
    if kind == "bytes":
        assert isinstance(again._tokens, np.memmap)


def test_a_cached_split_of_local_bytes_needs_neither_datasets_nor_tokenizers(corpus, own):
    data = ps.sequences.open(corpus, "bytes", length=8)
    code = f"""
import sys
import torch
import pspin_lite as ps
data = ps.sequences.open({str(corpus._paths[0].parent)!r}, "bytes", length=8)
next(data.batches())
print(data.tokens)
print([name for name in ("datasets", "tokenizers", "pyarrow", "pandas", "huggingface_hub") if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, check=True)
    first, second = result.stdout.splitlines()
    assert second == "[]"
    assert int(first) == data.tokens


# Orders in time


@pytest.fixture
def timed(texts):
    return lambda order, total, seed=0: sequences.open(str(texts), "bytes", "train", 8, seed, order=order, total=total)


def test_in_time_from_the_first_document_to_the_last(timed):
    data = timed("time", 7)
    starts = [n * (data.tokens - 9) // 6 for n in range(7)]
    assert starts[0] == 0
    assert starts[-1] == data.tokens - 9
    for n, start in enumerate(starts):
        assert data.sequence(n).tolist() == data._tokens[start : start + 9].tolist()
    with pytest.raises(ValueError, match="total"):
        data.sequence(7)


def test_mixed_are_the_same_sequences(timed):
    time, mixed = timed("time", 20), timed("mixed", 20, seed=3)
    as_sets = [sorted(tuple(data.sequence(n)) for n in range(20)) for data in (time, mixed)]
    assert as_sets[0] == as_sets[1]
    assert [tuple(time.sequence(n)) for n in range(20)] != [tuple(mixed.sequence(n)) for n in range(20)]
    again = timed("mixed", 20, seed=3)
    assert all((again.sequence(n) == mixed.sequence(n)).all() for n in (19, 3, 7))


def test_replay_alternates_new_and_old(timed):
    time, replay = timed("time", 20), timed("replay", 40)
    new = [tuple(time.sequence(n)) for n in range(20)]
    old = []
    for n in range(20):
        assert tuple(replay.sequence(2 * n)) == new[n]
        again = tuple(replay.sequence(2 * n + 1))
        assert again in new[: n + 1], "from the past, not from the future"
        old.append(new.index(again))
    assert len(set(old)) > 8
    assert replay.sequence(21).tolist() == replay.sequence(21).tolist()


def test_orders_are_recorded_and_refused(timed, texts):
    assert timed("time", 7).identity()["order"] == "time of 7"
    assert timed("shuffled", None).identity()["order"] == 1
    for words, call in (
        ("order", lambda: timed("backwards", 7)),
        ("total", lambda: timed("time", None)),
        ("total", lambda: timed("time", 1)),
    ):
        with pytest.raises(ValueError, match=words):
            call()
