"""The emulator's record, the page that shows it, and the bound on the time."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from pspin_lite.tools.emulator.counters import ALL_KINDS, bound
from pspin_lite.tools.kernels import counted, machine_code
from pspin_lite.tools.kernels import executed_record as record


def test_page_shows_the_record():
    text = record.PAGE.read_text(encoding="utf-8")
    assert text == record.rendered(text, record.load())
    assert record.COMMAND in text


@pytest.mark.parametrize(("n", "read", "least"), [(1000, "8,000", "4,000"), (1008, "4,032", "4,032")])
def test_example_on_the_page_runs(tmp_path, n, read, least):
    pytest.importorskip("triton", reason="Triton is published for Linux only")
    text = record.PAGE.read_text(encoding="utf-8")
    assert f"{read} bytes" in text
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "example.py").write_text(code.replace("1000", str(n)))
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(record.ROOT / "build" / "triton")
    done = subprocess.run([sys.executable, tmp_path / "example.py"], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"{read} bytes read ({least} at least)" in done.stdout


def test_record_is_of_the_kernels_as_they_are():
    assert record.load()["kernels"] == record.fingerprint(), "kernels/ has changed: measure again with `make emulate`"


def test_fingerprint_is_of_code_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "ROOT", tmp_path)
    (tmp_path / "kernels").mkdir()
    texts = {
        "first": 'def f():\n    """Words.\n\n    More."""\n    return 1\n',
        "words": '# A comment.\ndef f():\n    """Other words."""\n\n    return 1  # another\n',
        "code": "def f():\n    return 2\n",
    }
    prints = {}
    for name, text in texts.items():
        (tmp_path / "kernels" / "one.py").write_text(text, encoding="utf-8")
        prints[name] = record.fingerprint()
    assert prints["first"] == prints["words"] != prints["code"]


@pytest.mark.parametrize("changed", [False, True])
def test_only_what_is_missing_is_measured(monkeypatch, changed):
    """All of it, if the kernels have changed."""
    measured, whole = [], record.load()
    kept = whole | dict(attractor=whole["attractor"][1:], errors=whole["errors"][:-1])
    if changed:
        kept["kernels"] = "of others"
    rows_of = {module: whole[name] for name, (module, _) in record.LISTS.items()}

    def elsewhere(module: str, asked: str) -> list[dict]:
        measured.append(json.loads(asked))
        return [next(row for row in rows_of[module] if row | measured[-1] == row)]

    monkeypatch.setattr(record, "load", lambda: kept)
    monkeypatch.setattr(record, "trimmed", lambda row: row)
    monkeypatch.setattr(record.machine_code, "elsewhere", elsewhere)
    stored = []
    monkeypatch.setattr(record, "store", stored.append)
    record.main(write=True, missing=True)
    jobs = [job for _, jobs_of in record.LISTS.values() for job in jobs_of()]
    assert measured == (jobs if changed else [jobs[0], jobs[-1]])
    assert stored == [whole]


def counts(**changes) -> dict:
    nothing = dict(blocks=1000, tensor={}, instructions={}, least_read=0, least_written=0, passes=0)
    return nothing | changes


def test_bound_by_hand():
    assert bound(counts(least_read=2039, least_written=2039), "sm_80")["bound"] == pytest.approx(2e-9)
    assert bound(counts(tensor={"bf16": 312, "tf32": 156}), "sm_80")["bound"] == pytest.approx(2e-12)
    assert bound(counts(passes=108), "sm_80")["bound"] == pytest.approx(1 / 1.41e9)
    assert bound(counts(passes=108, blocks=1), "sm_80")["bound"] == pytest.approx(108 / 1.41e9), "others are idle"
    instructions = {"float": 4 * 132, "integer": 10**9}
    assert bound(counts(instructions=instructions), "sm_90")["bound"] == pytest.approx(1 / 1.98e9)
    longest = bound(counts(least_read=10**6, passes=1), "sm_90")
    assert longest["bound"] == longest["memory"] > longest["shared"] > 0


def test_command_measures_what_the_page_compares():
    jobs = record.jobs()
    assert len(jobs) == len({tuple(job.values()) for job in jobs}) == 16 + 20 + 12
    assert sum(job["what"] == "fla" for job in jobs) == 8
    attractor = record.attractor_jobs()
    assert len(attractor) == 4 * 3
    assert {job["what"] for job in attractor} == {"fused", "pytorch", "ternary"}
    assert len(record.error_jobs()) == 4 * 3
    for name, (_, jobs_of) in record.LISTS.items():
        for row, job in zip(record.load()[name], jobs_of(), strict=True):
            assert row | job == row, "the record has a row for each job, in their order"


def test_errors_are_small():
    limits = dict(float32=2e-6, float16=2e-3, bfloat16=1e-2)
    for row in record.load()["rows"] + record.load()["errors"]:
        if row.get("what") != "fla":
            assert max(row["errors"].values()) < limits[row["dtype"]], row


def test_table_of_the_record():
    """Every column is explained, every launch has its line, and bounds and registers are those of the record."""
    text = counted.text(record.load())
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[1 : 1 + len(counted.COLUMNS)]] == list(counted.COLUMNS)
    assert "a bound and not a measurement" in text
    totals = [f"= {part} {phase}" for part in counted.PARTS for phase in ("forward", "backward")]
    assert [text.count(total) for total in totals] == [4] * len(totals), "two chips, two shapes"
    (row,) = (
        row
        for row in record.load()["attractor"]
        if (row["what"], row["chip"], row["shape"]) == ("fused", "sm_80", "byte")
    )
    start = lines.index(next(line for line in lines if line.split()[:2] == ["A100,", "byte"]))
    shown = [line.split() for line in lines[start + 1 :]]
    for launch in row["forward"]["each"]:
        alike = [words for words in shown if words[:2] == ["forward", launch["name"]] and words[-1] == launch["limit"]]
        assert any(f"{launch['bound']:.1f}" == words[-2] for words in alike)
        assert all(0 < int(words[4]) <= 255 for words in alike), "registers"
        assert any(f"{launch['read'] / 32e3:,.1f}" == words[8] for words in alike), "sectors"


def test_instructions_by_kind():
    """Kinds add up to the total of their pass, and the table has them, tensor cores' to integers'."""
    text = counted.text(record.load())
    for row in record.load()["rows"] + record.load()["attractor"]:
        for phase in record.PHASES:
            each = [one["instructions"] for one in row[phase]["each"]]
            assert sum(map(sum, (one.values() for one in each))) == row[phase]["instructions"], "all of the pass"
            assert all(tuple(one) == ALL_KINDS for one in each)
    (row,) = (row for row in record.load()["attractor"] if [*row.values()][:3] == ["fused", "sm_90", "subword"])
    first = row["backward"]["each"][0]
    counts = [sum(first["instructions"].values()), *first["instructions"].values()]
    shown = [line.split() for line in text[text.index("H100, subword: instructions") :].splitlines()]
    assert ["backward", first["name"], *(f"{count / 1e3:,.1f}" for count in counts)] in shown
    assert shown[1] == ["all", *(kind.split()[0] for kind in ALL_KINDS)]


def test_a_part_alone():
    text = counted.text(record.load(), "ternary")
    assert "product_kernel" in text
    assert "spin_kernel" not in text


def test_what_the_assembler_makes_of_ptx():
    pytest.importorskip("triton", reason="Triton is published for Linux only")
    head = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 x) .reqntid 128\n{\n"
    body = ".reg .b64 %a; .reg .b32 %t; ld.param.u64 %a, [x]; mov.u32 %t, %tid.x; st.global.u32 [%a], %t; ret;\n}"
    result = machine_code.of_launch(head + body, "sm_80", 80 << 10, 4)
    assert 0 < result["registers"] < 32
    assert (result["stack"], result["resident"]) == (0, 2), "two times 81 KiB fit into 164"
