"""Measurements of notebooks 09 and 10: leaks, counting models against a dictionary, cut contexts, gates."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

import pspin_lite as ps
from pspin_lite.lessons import probes


def plainly(byte: int, context: bytes, seen: bytes) -> float:
    """The formula as it is written, with a dictionary."""
    n = len(context)
    after = Counter(seen[i + n] for i in range(len(seen) - n) if seen[i : i + n] == context)
    lower = plainly(byte, context[1:], seen) if n else 1 / 256
    return (after[byte] + len(after) * lower) / (after.total() + len(after)) if after else lower


def test_counts_are_those_of_a_dictionary():
    seen, text = b"abracadabra, the state of the union", b"a state of the art"
    bits, entries = probes.count(*(np.frombuffer(x, np.uint8) for x in (seen, text)), 3)
    for n, (one, size) in enumerate(zip(bits, entries, strict=True)):
        padded = b"\xff" * n + text
        expected = [plainly(byte, padded[i : i + n], seen) for i, byte in enumerate(text)]
        assert 2**-one == pytest.approx(expected)
        assert size == len({seen[i : i + n + 1] for i in range(len(seen) - n)})


def test_the_next_byte_is_that_of_a_dictionary():
    seen = b"abracadabra, the state of the union"
    counted = probes.tables(np.frombuffer(seen, np.uint8), 3)
    for context in (b"", b"a", b"ab", b"e s", b"xyz"):
        p = probes.next_byte(counted, context)
        assert p.sum() == pytest.approx(1)
        assert p[list(b"abe ")] == pytest.approx([plainly(byte, context, seen) for byte in b"abe "])


def test_counts_write_what_they_have_seen():
    counted = probes.tables(np.frombuffer(b"abcabcabc" * 1000, np.uint8), 2)
    text = probes.write(counted, b"ab", 60, seed=0)
    assert text == probes.write(counted, b"ab", 60, seed=0) != probes.write(counted[:1], b"ab", 60, seed=0)
    assert text.count(b"abc") >= 18, "nearly always: a little is left for other bytes"


def test_real_words_have_four_letters_and_an_end():
    assert probes.real_words("The People of teh staet, peop", {"people", "peop"}) == 0.5
    assert probes.real_words("a b", {"a"}) == 0.0


def test_a_vocabulary_has_long_words():
    assert probes.vocabulary(np.frombuffer(b"The People, and the State", np.uint8)) == {"people", "state"}


def test_many_texts_are_written_at_once():
    model = ps.load("byte-lite").model
    texts = probes.write_many(model, "The ", count=3, length=5)
    assert len(texts) == len(set(texts)) == 3
    assert texts == probes.write_many(model, "The ", count=3, length=5)


def test_nothing_is_counted_across_two_sequences():
    apart = np.frombuffer(b"abab", np.uint8).reshape(2, 2)
    assert probes.count(apart, np.frombuffer(b"a", np.uint8), 1)[1] == [2, 1], "only ab, not ba"


class Split:
    """Two windows of a text, three bytes each to predict."""

    def __init__(self, text: bytes):
        self.text = torch.tensor(list(text))

    def windows(self, limit):
        for start in (0, 3)[:limit]:
            yield self.text[start : start + 3][None], self.text[start + 1 : start + 4][None]


def test_counts_start_afresh_in_every_window():
    seen, text = b"abracadabra, a bad cab", b"abacab\xff"
    scores, _ = probes.count_scores(np.frombuffer(seen, np.uint8), {"a": Split(text), "b": Split(text[::-1])}, 2)
    for order in (0, 1, 2):
        bits = 0.0
        for start in (0, 3):
            for i in range(start + 1, start + 4):
                context = text[max(start, i - order) : i] if order else b""
                bits -= np.log2(plainly(text[i], context, seen))
        assert scores["a"][order] == pytest.approx(bits / 5), "an end token costs bits and is no byte"
    assert scores["b"] != scores["a"]
    one, _ = probes.count_scores(np.frombuffer(seen, np.uint8), {"a": Split(text)}, 0, windows=1)
    assert one["a"][0] == pytest.approx(-np.log2([plainly(byte, b"", seen) for byte in text[1:4]]).mean())


def test_leaks_are_shares_of_passages():
    passages = [np.array(one) for one in ([1, 2, 3, 3], [3, 9], [4, 1], [5])]
    first, last, none = (np.array(mask, bool) for mask in ([1, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 1]))
    assert probes.leaks(passages, [(first, ~first), (last, ~last), (none, ~none)]) == pytest.approx([75, 100 / 3, 0])
    assert probes.leaks(passages, [(first, last)]) == pytest.approx([25]), "the second document is in neither"


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return ps.build(ps.preset("byte-smoke"))


def test_a_cut_context_sees_nothing_earlier(model):
    tokens = torch.randint(0, 256, (3, 40), generator=torch.Generator().manual_seed(1))
    targets = tokens.roll(-1, 1)
    whole = probes.bits_of(model, tokens, targets)
    assert whole.mean() * np.log(2) == pytest.approx(model.loss(tokens, targets).item(), rel=1e-5)
    found = probes.bits_by_context(model, tokens, targets, [9, 12], [1, 10])
    assert found[10][:, 0] == pytest.approx(whole[:, 9], rel=1e-6), "all there is"
    assert found[10][:, 1] != pytest.approx(whole[:, 12], rel=1e-6), "three tokens are cut off"
    alone = probes.bits_of(model, tokens[:, 12:13], targets[:, 12:13])
    assert found[1][:, 1:] == pytest.approx(alone, rel=1e-4)


def test_gates_keep_what_their_products_say(model):
    tokens = torch.randint(0, 256, (2, 12), generator=torch.Generator().manual_seed(2))
    gates = probes.log_decays(model, tokens)
    assert [g.shape for g in gates] == [(2, 12, model.cfg.heads)] * model.cfg.layers
    two = max((g[:, 1:-1] + g[:, 2:]).exp().mean((0, 1)).max().item() for g in gates)
    assert probes.kept(model, tokens, 2) == pytest.approx(two, rel=1e-5)
    assert probes.kept(model, tokens, 8) < probes.kept(model, tokens, 2) < 1


def test_a_mask_by_differences_has_no_gradient_and_no_reset():
    def by_differences(g):
        S = g.cumsum(0)
        return torch.tril(torch.exp(S[:, None] - S[None, :]))

    g = torch.full((128,), -0.9)
    theirs, ours = (probes.examine_mask(mask, g) for mask in (by_differences, ps.state_space.decay_mask))
    assert (theirs["gradient"], theirs["after a reset"]) == ("nan", "nan")
    assert (ours["gradient"], ours["after a reset"]) == ("right", "right")
    assert float(ours["error"]) < float(theirs["error"])


def test_rules_keep_together_what_they_name():
    """Passage 1 is copied within a year, 2 between two years of one president, and the fifth speech is recent."""
    passages = [np.array(one) for one in ([1], [1, 7], [2], [2, 8], [9])]
    year, president = np.array([1800, 1800, 1801, 1802, 2020]), np.array(list("AABBC"))
    shares = probes.leaks_by_rule(passages, year, president, every=2)
    assert shares["recent"] == [0]
    assert shares["every 2th speech"] == pytest.approx([100, 50]), "both copies are torn apart"
    assert shares["every 2th year"] == pytest.approx([20, 100]), "one is: [1, 1, 7, 2, 8], then [2]"
    assert shares["every 2th president"] == [0, 0], "none is"
