"""The emulator's record, the page that shows it, and the bound on the time."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from pspin_lite.tools.emulator.bounds import bound
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
    assert len(jobs) == len({tuple(job.values()) for job in jobs}) == 16 + 20
    assert sum(job["what"] == "fla" for job in jobs) == 8
