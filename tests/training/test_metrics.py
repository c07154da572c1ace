"""Metrics: a uniform model has the figures one can say beforehand, whatever the tokenizer."""

from __future__ import annotations

import math

import pytest

import pspin_lite as ps
from pspin_lite.training import metrics


def test_by_hand():
    result = metrics.score(nats=8 * math.log(2), tokens=4, bytes=16)
    assert result == {
        "nats_per_token": pytest.approx(2 * math.log(2)),
        "perplexity": pytest.approx(4.0),
        "bits_per_byte": pytest.approx(0.5),
        "bytes_per_token": 4.0,
        "bits_per_byte_3_8": pytest.approx(2 / 3.8),
    }


def test_the_papers_equivalent_of_a_byte_model():
    # 2.12 bits per byte is said to be an equivalent subword loss of 5.5 (the paper's section on bytes; 5.58)
    result = metrics.score(nats=2.12 * math.log(2) * 1000, tokens=1000, bytes=1000)
    assert result["bits_per_byte"] == pytest.approx(2.12)
    assert result["subword_nats_3_8"] == pytest.approx(5.58, abs=0.005)
    assert "bits_per_byte_3_8" not in result


def test_bits_per_byte_do_not_depend_on_the_tokenizer(tmp_path):
    """A model that gives every byte of a token the same chance has 8 bits per byte with any tokenizer."""
    (tmp_path / "a.txt").write_text("the union of the states, the state of the union " * 40, encoding="utf-8")
    corpus = ps.corpora.open(tmp_path / "a.txt")
    for name in ("bytes", "bpe"):
        data = ps.sequences.open(corpus, name, split="valid", length=7, vocab=270)
        lengths = data.tokenizer.byte_lengths
        nats = sum(float(lengths[targets].sum()) * 8 * math.log(2) for _, targets in data.windows())
        assert metrics.score(nats, data.tokens, data.bytes)["bits_per_byte"] == pytest.approx(8)


def test_what_the_estimate_is_worth():
    """The figures in the module's docstring."""
    corpus = ps.corpora.open("sotu")
    tokenizer = ps.tokenizers.open("bpe", corpus=corpus)
    off = {}
    for split in ("recent", "held-out"):
        data = ps.sequences.open(corpus, tokenizer, split=split, length=256)
        result = metrics.score(4.8 * data.tokens, data.tokens, data.bytes)
        off[split] = (round(result["bytes_per_token"], 2), result["bits_per_byte_3_8"] / result["bits_per_byte"])
    assert off == {"recent": (4.0, pytest.approx(1.05, abs=0.005)), "held-out": (4.7, pytest.approx(1.24, abs=0.005))}
    for bytes_a_token, _ in off.values():
        assert f"{bytes_a_token:.2f} / 3.8" in metrics.__doc__


def test_what_is_not_finite_stays_visible():
    assert math.isnan(metrics.score(math.nan, 1, 1)["bits_per_byte"])
    assert metrics.score(math.inf, 1, 1)["perplexity"] == math.inf
    assert metrics.score(1e6, 1, 2)["perplexity"] == math.inf


@pytest.mark.parametrize(("tokens", "size"), [(0, 1), (1, 0), (1.5, 1)])
def test_nothing_counted_is_an_error(tokens, size):
    with pytest.raises(ValueError, match="an integer >= 1"):
        metrics.score(1.0, tokens, size)
