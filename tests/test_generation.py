"""Generation: what is drawn, from which state, and how bytes become text."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from helpers import message

import pspin_lite as ps
from pspin_lite import deploy
from pspin_lite.generation import choose, generate, stream

ROOT = Path(__file__).resolve().parent.parent


class Bytes:
    """The interface of pspin_lite.data.tokenizers, as small as it gets."""

    vocab, end = 256, 255

    def encode(self, text):
        return list(text.encode())

    def decode_bytes(self, ids):
        return bytes(ids)

    def identity(self):
        return dict(name="bytes", pieces=(1, 2))


TINY = dict(width=16, heads=2, inner=12, layers=2)
CONFIGS = {
    "p-spin": ps.preset("byte-lite").replace(**TINY),
    "p-spin, early stopping": ps.preset("byte-lite").replace(**TINY, tol=1e-3),
    "transformer": ps.preset("transformer-lite").replace(vocab=256, width=16, layers=2, inner=12),
}


def model_of(kind: str, folder=None):
    torch.manual_seed(0)
    model = ps.build(CONFIGS[kind.removesuffix(", deployed")])
    with torch.no_grad():
        model.embedding.weight.mul_(5)  # predictions more decided than those of a new model
    if kind.endswith("deployed"):
        deploy.export(model, folder / "model.safetensors")
        model = deploy.load(folder / "model.safetensors")
    return model


@pytest.mark.parametrize("kind", [*CONFIGS, "p-spin, deployed", "transformer, deployed"])
def test_every_token_is_the_likeliest_after_all_before_it(kind, tmp_path):
    model = model_of(kind, tmp_path)
    prompt = [1, 2, 3, 200, 7]
    ids = list(generate(model, prompt, 12, temperature=0))
    assert len(ids) == 12
    sequence = torch.tensor([prompt + ids])
    with torch.no_grad():
        logits = model.eval()(sequence[:, :-1])[0, len(prompt) - 1 :]
    assert logits.argmax(-1).tolist() == ids
    assert len(set(ids)) > 2, "a model that says one thing proves nothing about its state"


def test_a_long_prompt_is_read_in_pieces(monkeypatch):
    from pspin_lite import generation as module

    model, prompt = model_of("p-spin"), list(range(100))
    whole = list(generate(model, prompt, 8, temperature=0))
    monkeypatch.setattr(module, "PIECE", 33)
    assert list(generate(model, prompt, 8, temperature=0)) == whole


def test_same_seed_same_tokens_however_many_and_nothing_else_is_moved():
    model = model_of("p-spin").train()
    torch.manual_seed(5)
    before = torch.get_rng_state()
    long = list(generate(model, [1], 40, seed=3))
    assert list(generate(model, [1], 10, seed=3)) == long[:10]
    assert list(generate(model, [1], 40, seed=4)) != long
    assert list(itertools.islice(generate(model, [1], 10**9, seed=3), 5)) == long[:5], "given out as they come"
    assert list(generate(model, [1], 40)) != list(generate(model, [1], 40))
    assert torch.equal(torch.get_rng_state(), before)
    assert model.training, "the mode it was in"
    assert list(generate(model, [1], 0)) == []


def test_same_text_in_another_process():
    code = (
        "import sys; sys.path.insert(0, 'tests'); from test_generation import *\n"
        "print(list(generate(model_of('p-spin'), [65, 66], 30, top_p=0.9, seed=7)))"
    )
    here = list(generate(model_of("p-spin"), [65, 66], 30, top_p=0.9, seed=7))
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.stdout.strip() == str(here), result.stderr


def drawn(logits, n=2000, **how) -> dict[int, float]:
    rng = torch.Generator().manual_seed(0)
    how = dict(temperature=1.0, top_k=None, top_p=None) | how
    ids = [choose(logits, rng=rng, **how) for _ in range(n)]
    return {i: ids.count(i) / n for i in sorted(set(ids))}


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, {0: 0.1, 1: 0.5, 2: 0.3, 3: 0.1}),
        (dict(temperature=0), {1: 1.0}),
        (dict(temperature=1e-300), {1: 1.0}),
        (dict(temperature=0.5), {0: 0.01 / 0.36, 1: 0.25 / 0.36, 2: 0.09 / 0.36, 3: 0.01 / 0.36}),
        (dict(top_k=1), {1: 1.0}),
        (dict(top_k=2), {1: 0.625, 2: 0.375}),
        (dict(top_k=99), {0: 0.1, 1: 0.5, 2: 0.3, 3: 0.1}),
        (dict(top_p=1e-9), {1: 1.0}),
        (dict(top_p=0.49), {1: 1.0}),
        (dict(top_p=0.51), {1: 0.625, 2: 0.375}),
        (dict(top_p=0.79), {1: 0.625, 2: 0.375}),
        (dict(top_p=0.81), {0: 1 / 9, 1: 5 / 9, 2: 3 / 9}),  # of two equals, the first
        (dict(top_p=1.0), {0: 0.1, 1: 0.5, 2: 0.3, 3: 0.1}),
        (dict(top_k=2, top_p=0.6), {1: 1.0}),  # 0.625 of what top_k leaves
    ],
    ids=str,
)
def test_what_is_drawn_and_how_often(how, expected):
    result = drawn(torch.tensor([0.1, 0.5, 0.3, 0.1]).log(), **how)
    assert result.keys() == expected.keys()
    for i, share in expected.items():
        assert abs(result[i] - share) < 4 * math.sqrt(share * (1 - share) / 2000) + 1e-9


def test_what_cannot_be_is_never_drawn():
    logits = torch.full((1000,), -1e30)
    logits[[3, 500]] = 0.0
    assert drawn(logits, 200).keys() == {3, 500}


def scripted(monkeypatch, ids):
    from pspin_lite import generation as module

    answers = iter(ids)
    monkeypatch.setattr(module, "choose", lambda *args: next(answers))


def text_of(monkeypatch, raw: bytes) -> list[str]:
    scripted(monkeypatch, raw)
    return list(stream(model_of("p-spin"), Bytes(), "x", len(raw)))


def test_characters_appear_when_complete(monkeypatch):
    assert text_of(monkeypatch, "aé€😀".encode()) == ["a", "é", "€", "😀"]


def test_what_is_not_utf8_is_shown(monkeypatch):
    assert "".join(text_of(monkeypatch, b"a\xfe\xc3(\xe2\x82")) == "a\\xfe\\xc3(\\xe2\\x82"
    assert "".join(text_of(monkeypatch, b"\x80\xc0\xafok\x00")) == "\\x80\\xc0\\xafok\x00"
    assert "".join(text_of(monkeypatch, b"\xed\xa0\x80")) == "\\xed\\xa0\\x80", "half a surrogate pair"


def test_the_end_of_a_document_stops_and_is_not_shown(monkeypatch):
    assert "".join(text_of(monkeypatch, b"ab\xffcd")) == "ab"
    scripted(monkeypatch, [5, 9, 6])
    assert list(generate(model_of("p-spin"), [1], 3, end=9)) == [5]


def test_an_empty_prompt_starts_a_document():
    model = model_of("p-spin")
    assert list(generate(model, [], 9, temperature=0, end=9)) == list(generate(model, [9], 9, temperature=0))
    assert isinstance("".join(stream(model, Bytes(), "", 9, seed=1)), str)


def test_a_stopped_iterator_gives_the_mode_back():
    model = model_of("p-spin").train()
    ids = generate(model, [1], 100)
    next(ids)
    assert not model.training
    ids.close()
    assert model.training


@pytest.mark.fault(16)
def test_another_tokenizer_is_refused():
    model = model_of("p-spin")
    model.tokenizer_identity = dict(name="bytes", pieces=[1, 2])
    next(stream(model, Bytes(), "x", 1, seed=1), None)
    model.tokenizer_identity = dict(name="other")
    with pytest.raises(ValueError) as raised:
        stream(model, Bytes(), "x", 1)
    assert all(word in message(raised) for word in ("tokenizer", "bytes", "other"))
    narrow = ps.build(CONFIGS["p-spin"].replace(vocab=200))
    with pytest.raises(ValueError) as raised:
        stream(narrow, Bytes(), "x", 1)
    assert all(word in message(raised) for word in ("tokenizer", "256", "200"))


def test_ids_without_text_are_never_drawn():
    """A tokenizer with fewer ids than the model: the rest of them are not drawn, however likely."""
    wide = ps.build(CONFIGS["p-spin"].replace(vocab=300))
    with torch.no_grad():
        wide.embedding.weight[256:] += 10 * wide.embedding.weight[256:].sign()
    assert max(generate(wide, [1], 50, seed=1)) >= 256
    assert max(generate(wide, [1], 50, seed=1, vocab=256)) < 256
    assert "".join(stream(wide, Bytes(), "x", 50, seed=1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(prompt_ids=[]), ["prompt_ids", "none", "end"]),
        (dict(prompt_ids=[256]), ["prompt_ids", "256", "0 to 255"]),
        (dict(prompt_ids=[1.5]), ["prompt_ids", "float"]),
        (dict(tokens=-1), ["tokens", "-1"]),
        (dict(tokens=2.0), ["tokens", "2.0"]),
        (dict(temperature=-0.1), ["temperature", "-0.1"]),
        (dict(temperature=math.nan), ["temperature", "nan"]),
        (dict(temperature=math.inf), ["temperature", "inf"]),
        (dict(temperature="1"), ["temperature", "'1'"]),
        (dict(top_k=0), ["top_k", "0"]),
        (dict(top_p=0), ["top_p", "0"]),
        (dict(top_p=1.5), ["top_p", "1.5"]),
        (dict(seed=-1), ["seed", "-1"]),
        (dict(seed=2**63), ["seed", "2**63"]),
        (dict(end=256), ["end", "256"]),
    ],
    ids=str,
)
def test_bad_arguments_are_named_at_once(change, words):
    arguments = dict(prompt_ids=[1], tokens=3) | change
    with pytest.raises(ValueError) as raised:
        generate(model_of("p-spin"), **arguments)
    assert all(word in message(raised) for word in words), message(raised)


def test_a_model_that_has_diverged_says_so():
    model = model_of("p-spin")
    with torch.no_grad():
        model.norm.weight.fill_(math.nan)
    with pytest.raises(ValueError, match="logits: got values that are nan"):
        next(generate(model, [1], 1))
    with pytest.raises(ValueError, match="prompt: got bytes"):
        stream(model, Bytes(), b"x", 1)
