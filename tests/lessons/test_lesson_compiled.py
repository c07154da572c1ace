"""What notebooks 02 and 03 show of the compiled walk is so."""

from __future__ import annotations

import pytest

pytest.importorskip("triton", reason="Triton is published for Linux only")

from pspin_lite.lessons import compiled


@pytest.fixture(autouse=True)
def cache(monkeypatch, pytestconfig):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(pytestconfig.rootpath / "build" / "triton"))


def test_the_walk_executed_and_counted():
    for C, repeated in ((32, {1: 1, 2: 1, 4: 2, 8: 4}), (64, {1: 1, 2: 1, 4: 1, 8: 2})):  # the table of notebook 02
        result, T, d = compiled.run(T=2 * C, d=C, C=C), 2 * C, C
        assert result["error"] < 1e-2
        counts, read = result["counts"], 2 * 3 * T * d + 4 * d * d + 4 * T
        for count in counts.values():  # as the notebook counts by hand
            assert (count["least_read"], count["written"]) == (read, 2 * T * d + 4 * d * d)
        flops = 2 * 4 * 2 * C**3
        assert {warps: count["tensor"]["bf16"] / flops for warps, count in counts.items()} == repeated
        requested = max(count["asked"]["read"] for count in counts.values())
        assert C == 64 or round(requested / read, 1) == 2.8, "notebook 02 says so"


def test_resources_of_the_walk():
    (row,) = compiled.resources(d=12, chunks=(16,), warps=4)
    assert row["chip"] == "sm_80"
    assert row["tensor"] > 0
    assert row["spills"] == row["stack"] == 0, "a small block fits"
