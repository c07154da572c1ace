"""Tokenizers: every text comes back, byte counts are true, training is reproducible, damaged files are refused."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
from helpers import message, written
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pspin_lite as ps
from pspin_lite.data import cache, tokenizers

END = "<|endoftext|>"
SAMPLE = "Fellow-citizens of the Senate, in 1847 and 1848 the revenue of the United States was $37,500,000.\r\n"
LONG = [f"{SAMPLE} Message {i}: naïve café, 日本語, 😀, and {END} as text. " * 3 for i in range(40)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return ps.corpora.open(written(tmp_path_factory.mktemp("corpus"), LONG))


@pytest.fixture(scope="module")
def bpe(corpus):
    return ps.tokenizers.open("bpe", corpus=corpus, vocab=340)


@pytest.fixture(scope="module", params=["bytes", "bpe"])
def tok(request, bpe):
    return bpe if request.param == "bpe" else ps.tokenizers.open("bytes")


@pytest.mark.fault(16)
@settings(max_examples=150, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@example(text="")
@example(text="\0\r\n\ufeff\u2028")
@example(text=f"a{END}b<|im_start|>")
@example(text="  double  spaces 12345 ")
@example(text="".join(map(chr, range(0x300))))
@example(text="\U0010ffff\ud7ff\ue000")
def test_every_text_comes_back(tok, text):
    ids = tok.encode(text)
    assert ids.dtype == np.int64
    assert tok.decode(ids) == text
    assert tok.decode_bytes(ids) == text.encode()
    assert tok.byte_lengths[ids].sum() == len(text.encode())
    assert tok.end not in ids
    assert not len(ids) or (ids.min() >= 0 and ids.max() < tok.vocab)


def test_bytes_are_their_own_ids():
    tok = ps.tokenizers.open("bytes")
    assert (tok.name, tok.vocab, tok.end) == ("bytes", 256, 255)
    assert tok.encode("aé").tolist() == [97, 0xC3, 0xA9]
    assert tok.byte_lengths.tolist() == [1] * 255 + [0]
    assert tok.decode([97, 255, 98]) == "ab"


def test_what_is_no_utf8_is_shown(tok):
    assert ps.tokenizers.open("bytes").decode([0x61, 0xC3, 0x28, 0xFE]) == "a\\xc3(\\xfe"
    euro = tok.encode("日€")
    for cut in range(len(euro)):
        assert isinstance(tok.decode(euro[:cut]), str)
    rng = np.random.default_rng(0)
    assert isinstance(tok.decode(rng.integers(tok.vocab, size=1000)), str)


def test_wrong_input_is_refused(tok):
    with pytest.raises(ValueError) as raised:
        tok.encode("ab\ud800")
    assert message(raised) == "text: got half a surrogate pair at character 2, expected text that UTF-8 can hold"
    for ids in ([tok.vocab], [-1], [0, 2**40]):
        with pytest.raises(ValueError, match=f"0 to {tok.vocab - 1}"):
            tok.decode(ids)
    for ids in ([0.5], [[1, 2]]):
        with pytest.raises(ValueError, match=r"integers \[n\]"):
            tok.decode(ids)
    assert tok.decode([]) == ""


def test_bpe_is_smollm2s_kind(bpe):
    assert (bpe.name, bpe.vocab, bpe.end) == ("bpe", 340, 0)
    assert bpe.byte_lengths[0] == 0
    assert (bpe.byte_lengths[1:] >= 1).all()
    pieces = [bpe.decode([i]) for i in bpe.encode("the year 1848 of")]
    assert [p for p in pieces if any(c.isdigit() for c in p)] == ["1", "8", "4", "8"], "digits one by one"
    assert " of" in pieces
    assert "the" in "".join(pieces[:3])
    before = json.loads(json.dumps(bpe._json["pre_tokenizer"]))
    assert [part["type"] for part in before["pretokenizers"]] == ["Digits", "ByteLevel"]
    assert before["pretokenizers"][0]["individual_digits"] is True
    assert before["pretokenizers"][1]["add_prefix_space"] is False


def test_text_that_spells_the_end_is_text(bpe, tmp_path):
    assert len(bpe.encode(END)) > 1
    bpe.save(tmp_path / "t.json")
    for again in (ps.tokenizers.open(tmp_path / "t.json"), pickle.loads(pickle.dumps(bpe))):
        assert again.encode(END).tolist() == bpe.encode(END).tolist()


@pytest.mark.fault(16)
def test_trained_the_same_in_any_process(corpus, bpe, tmp_path):
    code = f"""
import pspin_lite as ps
print(ps.tokenizers.open("bpe", corpus={str(corpus._paths[0].parent)!r}, vocab=340).sha256)
"""
    # The fixture's process has one thread and a hash seed of its own
    environment = dict(PYTHONHASHSEED="12345", TOKENIZERS_PARALLELISM="true", RAYON_NUM_THREADS="3")
    environment |= dict(PSPIN_CACHE=str(tmp_path))
    result = subprocess.run([sys.executable, "-c", code], env=os.environ | environment, capture_output=True, text=True)
    assert result.stdout.strip() == bpe.sha256, result.stderr


def test_trained_once_and_anew_when_damaged(corpus, monkeypatch, tmp_path):
    monkeypatch.setenv("PSPIN_CACHE", str(tmp_path))
    first = ps.tokenizers.open("bpe", corpus=corpus, vocab=300)
    (path,) = tmp_path.glob("bpe-*.json")
    trained = []
    train = tokenizers._train
    monkeypatch.setattr(tokenizers, "_train", lambda *a: trained.append(a) or train(*a))
    assert ps.tokenizers.open("bpe", corpus=corpus, vocab=300).identity() == first.identity()
    assert not trained
    whole = path.read_bytes()
    for n, damaged in enumerate((whole[:-1], b"", whole.replace(b'"end":0', b'"end":1'), b"[]"), start=1):
        path.write_bytes(damaged)
        assert ps.tokenizers.open("bpe", corpus=corpus, vocab=300).identity() == first.identity()
        assert len(trained) == n
        assert path.read_bytes() == whole
    assert [p.name for p in tmp_path.iterdir()] == [path.name], "something partial was left"


def test_the_cache_cannot_be_written(corpus, bpe, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("PSPIN_CACHE", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="cannot be written"):
        assert ps.tokenizers.open("bpe", corpus=corpus, vocab=340).sha256 == bpe.sha256


def test_validation_text_is_not_trained_on(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for i in range(60):
        (folder / f"{i}.txt").write_text(f"{i} " + "common words only " * 5)
    corpus = ps.corpora.open(folder)
    seen = []
    rows = corpus.rows
    corpus.rows = lambda split: seen.append(split) or rows(split)
    ps.tokenizers.open("bpe", corpus=corpus, vocab=260)
    assert seen == ["train"]


def test_vocabularies_that_cannot_be(corpus):
    with pytest.raises(ValueError, match="has merges for"):
        ps.tokenizers.open("bpe", corpus=corpus, vocab=30_000)
    with pytest.raises(ValueError, match="an integer >= 257"):
        ps.tokenizers.open("bpe", corpus=corpus, vocab=256)
    with pytest.raises(ValueError, match="is trained on"):
        ps.tokenizers.open("bpe")
    with pytest.raises(ValueError, match="did you mean 'bytes'"):
        ps.tokenizers.open("byte")


def test_saved_and_opened(tok, tmp_path):
    path = tmp_path / "tokenizer.json"
    tok.save(path)
    again = ps.tokenizers.open(path)
    assert again.identity() == tok.identity()
    assert again.encode(LONG[0]).tolist() == tok.encode(LONG[0]).tolist()
    assert json.loads(path.read_text())["format"] == "pspin_lite tokenizer 1"
    assert json.loads(json.dumps(tok.identity())) == tok.identity()
    assert ps.tokenizers.open(tok) is tok
    plain = tmp_path / "plain"
    plain.write_text("")
    assert path.stat().st_mode == plain.stat().st_mode


@pytest.mark.fault(12)
def test_damaged_files_are_refused(tok, tmp_path):
    path = tmp_path / "tokenizer.json"
    tok.save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [whole[:n] for n in (0, 1, 7, len(whole) // 2, len(whole) - 1)]
    for _ in range(60):
        at = int(rng.integers(len(whole)))
        damaged.append(whole[:at] + bytes([whole[at] ^ (1 << int(rng.integers(8)))]) + whole[at + 1 :])
    for content in damaged:
        path.write_bytes(content)
        try:
            result = ps.tokenizers.open(path)
        except ValueError as error:
            result = error
        if isinstance(result, ValueError):
            assert str(result).startswith("tokenizer: ")
        else:  # a flipped bit in the name, which decides nothing
            assert result.sha256 == tok.sha256


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"format": "pspin_lite tokenizer 99"}, "pspin_lite tokenizer 99"),
        ({"format": "pspin_lite tokenizer 1"}, "a file that tok.save wrote"),
        ({"format": "pspin_lite tokenizer 1", "name": "x", "end": 255, "content": "bytes", "sha256": ""}, "hash"),
        ({}, "byte-level BPE"),
        ({"model": {"type": "WordPiece"}}, "WordPiece"),
        ([], "JSON object"),
    ],
)
def test_other_files_are_refused(content, expected, tmp_path):
    (tmp_path / "t.json").write_text(json.dumps(content))
    with pytest.raises(ValueError) as raised:
        ps.tokenizers.open(tmp_path / "t.json")
    assert expected in message(raised)


def test_the_librarys_own_file(bpe, tmp_path):
    path = tmp_path / "tokenizer.json"
    bpe._library.save(str(path))
    again = ps.tokenizers.open(path)
    assert again.encode(LONG[1]).tolist() == bpe.encode(LONG[1]).tolist()
    assert (again.end, again.vocab, again.sha256) == (0, 340, bpe.sha256)
    content = json.loads(path.read_text())
    content["normalizer"] = {"type": "Lowercase"}
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="Lowercase"):
        ps.tokenizers.open(path)


def test_a_byte_without_a_token_is_an_error_not_a_loss(bpe):
    content = json.loads(json.dumps(bpe._json))
    content["model"]["vocab"]["unused"] = content["model"]["vocab"].pop("ð")  # 0xf0: begins every emoji
    content["model"]["merges"] = []
    tok = tokenizers.BPE("odd", content)
    assert tok.decode(tok.encode("plain")) == "plain"
    with pytest.raises(ValueError, match="no token for"):
        tok.encode("😀")


def test_smollm2_from_the_hubs_cache(bpe, tmp_path, monkeypatch):
    """A stand-in of the right size in the place where the hub's library keeps files: found, with no network."""
    content = json.loads(json.dumps(bpe._json))
    vocab = content["model"]["vocab"]
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = (f"{a}{b}{c}{d}" for a in letters for b in letters for c in letters for d in letters)
    while len(vocab) < 49152:
        vocab.setdefault(next(names), len(vocab))
    snapshot = tmp_path / "models--HuggingFaceTB--SmolLM2-135M" / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (snapshot.parent.parent / "refs").mkdir()
    (snapshot.parent.parent / "refs" / "main").write_text("0" * 40)
    (snapshot / "tokenizer.json").write_text(json.dumps(content))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    tok = ps.tokenizers.open("smollm2")
    assert (tok.name, tok.vocab, tok.end) == ("smollm2", 49152, 0)
    assert tok.decode(tok.encode(LONG[2])) == LONG[2]
    (snapshot / "tokenizer.json").write_text(json.dumps(bpe._json))
    with pytest.raises(ValueError, match="SmolLM2's 49152"):
        ps.tokenizers.open("smollm2")


def test_one_enormous_word(tok):
    start = time.monotonic()
    ids = tok.encode("ab" * 300_000)
    assert tok.byte_lengths[ids].sum() == 600_000
    assert time.monotonic() - start < 20


def test_the_byte_alphabet_is_the_librarys():
    from tokenizers.pre_tokenizers import ByteLevel

    table = tokenizers._alphabet()
    assert sorted(table) == sorted(ByteLevel.alphabet())
    assert sorted(table.values()) == list(range(256))
    for byte in (0, 32, 0x7F, 0xAD, 10):
        text = bytes([byte]).decode("latin-1")
        (piece,) = ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
        assert [table[c] for c in piece[0]] == list(text.encode())


def test_a_cache_key_is_the_same_everywhere():
    assert cache.key({"b": 1, "a": [2]}, "é") == cache.key({"a": [2], "b": 1}, "é") == "56b0d7772ff18bf49a726ab2"
