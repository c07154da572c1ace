"""The pages that are rendered from verdicts and records: up to date, and no number in them but measured ones."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from pspin_lite import _files as files
from pspin_lite.config import preset
from pspin_lite.lessons import figures
from pspin_lite.study import jobs, networks, paper_size, records
from pspin_lite.study.claims import comparisons, ledger, pages

CLAIMS = {claim.id: claim for claim in ledger.claims()}
NUMBER = re.compile(r"\d[\d,.]*\d|\d")
COMMON = {"95", "3", "1", "64", "8,000", "64,000"}  # per cent of an interval, seeds, batch sizes, sequences
SETTINGS = {"0", "5", "8", "10", "20", "256", "2010", "0.1"}  # K, tokens of context, a window, a year, per cent
SUMMARIES = ("verdicts", "selection")


def read(page: str) -> str:
    return (ledger.ROOT / page).read_text(encoding="utf-8")


def templates(text: dict) -> list[str]:
    """Every string of a text of pages.json that is formatted."""
    cells = [cell for block in text.get("body", []) for row in ([[block]] if isinstance(block, str) else block)
             for cell in row]  # fmt: skip
    return [*cells, *(text[key] for key in ("says", "measured", "short") if key in text)]


@pytest.mark.parametrize("page", pages.PAGES)
def test_pages_are_written_from_the_results(page):
    assert pages.render(page, read(page)) == read(page), "python -m pspin_lite ledger --write"
    with pytest.raises(files.FileError, match=page):
        pages.render(page, "no marks")


@pytest.mark.parametrize("page", pages.PAGES)
def test_every_mark_is_rendered_once(page):
    names = re.findall(r"<!-- rendered: (\w+) -->", read(page))
    assert names == re.findall(r"<!-- end: (\w+) -->", read(page)) == [part.__name__ for part in pages.PAGES[page]]


def scores() -> set[str]:
    """Of the network that ships and of counts of the last four bytes, as notebook 10 prints them."""
    text = (ledger.ROOT / "notebooks" / "10_byte_run.ipynb").read_text(encoding="utf-8")
    network, counts = re.search(r"held-out: network (\S+), .*counts ([\d. ]+)", text).groups()
    return {network, counts.split()[4]}


@pytest.mark.parametrize("page", [page for page in pages.PAGES if page != "docs/second_study.md"])  # criteria, rates
def test_numbers_beside_the_rendered_parts_are_settings(page):
    text = re.sub(r"<!-- rendered: (\w+) -->.*?<!-- end: \1 -->", "", read(page), flags=re.S)
    text = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)|^- \[\d\d |<[^>]*>", "", text, flags=re.S | re.M)
    one, many = networks.BATCH_1, networks.BATCH_64
    settings = [
        networks.CONTEXT,
        one["batch"],
        one["batch"] * one["steps"],
        many["batch"],
        many["batch"] * many["steps"],
    ]
    settings += [*(jobs.FULL[f"{name}_tokens"] for name in ("validate", "final")), comparisons.CLOSE, 95]
    settings += [networks.arm("continual", "p-spin-time").cfg.steps, paper_size.FINAL_TOKENS, round(1 / math.log(2), 2)]
    settings += [preset(name).context for name in ("byte-lite", "subword-lite")] + [preset("byte-lite").micro_steps]
    allowed = {f"{x:,}" for x in settings}
    allowed |= {"3.11"}  # of Python
    years, others = {"236", "2010"}, {"100", "10", "00", "30", "0.895"}  # an A100, notebooks, minutes, a spin by hand
    others = {"README.md": years | others | scores(), "docs/results.md": years, "docs/training.md": years}
    allowed |= others.get(page, set())
    numbers = set(NUMBER.findall(text))
    assert numbers <= allowed
    expected = {"README.md": {"3.11"}, "docs/results.md": {"8,000", "131,072"}, "docs/training.md": {"32,768"}}
    assert expected[page] <= numbers, "nothing was cut away that should be looked at"


def test_the_networks_are_those_of_the_study():
    """The table of names in docs/results.md, and how many networks each kind of run has."""
    section = read("docs/results.md").partition("## The networks")[2]
    names = {name for row in re.findall(r"^\| (`.*?) \|", section, re.M) for name in re.findall(r"`([^`]+)`", row)}
    assert names == {network.name for network in networks.GROUPS["bytes-1"]}
    sizes = {name: len(networks.GROUPS[name]) for name in ("bytes-1", "subwords-1", "bytes-64", "subwords-64")}
    assert sizes == {"bytes-1": 11, "subwords-1": 3, "bytes-64": 2, "subwords-64": 2}
    assert len(networks.GROUPS["continual"]) == 4 * 3


@pytest.mark.parametrize("part", ["answer", "findings", "sequel", *SUMMARIES])
def test_no_number_in_a_text_but_measured_ones(part):
    for text in pages.texts(part):
        rest = re.sub(r"\{[^}]*\}", "", " ".join(templates(text)))
        claimed = set(NUMBER.findall(CLAIMS[text["claim"]].says)) if "claim" in text else set()
        assert set(NUMBER.findall(rest)) <= COMMON | SETTINGS | claimed, text


@pytest.mark.parametrize("part", ["answer", "findings"])
def test_texts_rest_on_verdicts(monkeypatch, part):
    """A text names the claims it takes numbers from. With another verdict it is gone."""
    for text in pages.texts(part):
        used = {name.replace("_", "-") for name in re.findall(r"\{([a-z_0-9]+)\.", " ".join(templates(text)))}
        assert used <= set(text["needs"])
        for needs in text["needs"].values():
            assert set(needs if isinstance(needs, list) else [needs]) <= set(ledger.VERDICTS)
        assert pages.supported(text), "a text that no page shows"
    other = {name: replace(result, verdict=ledger.UNTESTABLE) for name, result in ledger.results().items()}
    monkeypatch.setattr(pages, "results", lambda: other)
    assert getattr(pages, part)() == ""


def test_the_sequel_rests_on_its_answers(monkeypatch):
    every = pages.answers.answers()
    [mended] = [row for row in every if row.key == "mended bytes"]
    assert f"{mended.values[0][0].mean:.3f} ± {mended.values[0][0].half_width:.3f}" in pages.sequel()
    monkeypatch.setattr(pages.answers, "answers", lambda: [replace(mended, verdict="yes")])
    assert "±" not in pages.sequel(), "the finding is gone when the answer is another"
    assert "docs/second_study.md" in pages.sequel()


def test_changed_criteria_are_counted():
    after = [claim for claim in CLAIMS.values() if claim.earlier_verdict]
    harsher = sum(claim.earlier_verdict == "holds" != ledger.results()[claim.id].verdict for claim in after)
    words = pages.changed()
    assert f" {len(after)} of {len(CLAIMS)} verdicts" in words
    assert int(re.search(r"(\d+) became harsher", words)[1]) >= harsher > 0


@pytest.mark.parametrize("part", SUMMARIES)
def test_a_row_shows_its_claims_verdict(monkeypatch, part):
    rows = getattr(pages, part)().splitlines()[2:]
    assert len(rows) == len(pages.texts(part))
    for text, row in zip(pages.texts(part), rows, strict=True):
        verdict = ledger.results()[text["claim"]].verdict
        assert row.endswith(f"| {ledger.MARKS[verdict]} {verdict} |")
    first = pages.texts(part)[0]["claim"]
    lost = ledger.results() | {first: replace(ledger.results()[first], verdict=ledger.UNTESTABLE)}
    monkeypatch.setattr(pages, "results", lambda: lost)
    assert f"| {lost[first].text} | – cannot be tested here |" in getattr(pages, part)(), "why, instead of a number"


def test_what_to_expect_comes_from_runs():
    for name in ("byte-lite", "byte-mended"):
        ends = pages.load.shipped(name).summary["validation"]
        assert " | ".join(f"{ends[split]['bits_per_byte']:.3f}" for split in pages.SPLITS) in pages.expected()
    assert all(f"| `{network.name}` |" in pages.expected() for network in networks.GROUPS["presets"])
    assert all(f"| `{name.removeprefix('paper/')}` |" in pages.paper_sizes() for name in paper_size.MINUTES)


def test_runs_that_are_missing_are_said_to_be(monkeypatch):
    assert "On record: 90 of 90 full runs" in pages.tally()
    monkeypatch.setattr(records, "missing", lambda *names: [f"{names[0]}/seed-1"])
    assert "On record: 89 of 90 full runs" in pages.tally()
    monkeypatch.setattr(records, "has", lambda name: False)
    assert pages.expected().count("| not yet |") == len(networks.GROUPS["presets"])


def test_the_picture_is_that_of_the_records(tmp_path):
    figures.outlines(tmp_path / "results.svg", pages.draw)
    assert (tmp_path / "results.svg").read_text() == pages.PICTURE.read_text(), "python -m pspin_lite ledger --write"
