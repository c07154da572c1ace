"""What the GPU compilers make of every kernel, at the paper's shapes, for three chips that need not be here.

One process for each part of the kernels and each dtype: compilation needs kernels that were not defined for the
interpreter. Nothing runs, so nothing here says that a value is right, or how long anything takes.
"""

from __future__ import annotations

import re
from itertools import product

import pytest

from pspin_lite.tools.kernels import flash_linear_attention, machine_code, report

pytest.importorskip("triton", reason="Triton is published for Linux only")


EVERY = tuple(chip.name for chip in machine_code.CHIPS)
TARGETS = {"bfloat16": EVERY, "float32": EVERY[:1]}  # float32 has no tensor cores, and takes long to compile: one chip


@pytest.mark.parametrize("dtype", report.DTYPES)
@pytest.mark.parametrize("parts", [("attractor", "ternary"), ("state-space",)], ids=lambda parts: parts[0])
def test_every_kernel_fits_its_chips(parts, dtype):
    rows = report.run(parts, dtypes=[dtype], chips=TARGETS[dtype])
    everything = {*product(TARGETS[dtype], report.SHAPES, parts)}
    assert {(row["chip"], row["shape"], row["part"]) for row in rows} == everything
    if parts == ("state-space",):
        assert {int(row["name"].rpartition(" ")[2]) for row in rows} == {*report.CHUNKS}
        assert all(row["bytes"] and row["flops"] for row in rows)
    assert_no_complaints(rows)


def test_state_space_kernels_fit_in_float16():
    """Its scores and states take twice the registers of bfloat16's. A chunk of 128 is two of 64 here."""
    names, chips = "walk walk|parallel [^s]|backward [^s]", EVERY[:2]
    rows = report.run(["state-space"], dtypes=["float16"], chunks=[64], chips=chips, names=names)
    assert {(row["chip"], row["shape"]) for row in rows} == {*product(chips, report.SHAPES)}
    assert "backward chunk_gradients, chunk 64" in {row["name"] for row in rows}
    assert_no_complaints(rows)


def test_no_worse_than_flash_linear_attention():
    """At chunk 64: with 128, our parallel form launches the same kernels (`make kernels` compares both)."""
    pytest.importorskip("fla", reason="fla-core is there for comparison only")
    names = "parallel chunk_outputs|backward chunk|fla outputs|fla bwd d[qv]"  # all but the states: those have no stack
    rows = report.run(["state-space", "fla"], dtypes=["bfloat16"], chunks=[64], chips=["sm_80", "sm_90"], names=names)
    assert not [row for row in rows if "error" in row]
    pairs = flash_linear_attention.compared(rows)
    assert len(pairs) == 2 * 2 * 3, "two shapes, two chips, three operations"
    for pair in pairs:
        ours, theirs = pair["ours"], pair["theirs"]
        assert ours["stack"] == 0, pair
        assert ours["padded"] < theirs["padded"], pair
        assert ours["shared"] <= theirs["shared"], pair
    words = flash_linear_attention.comparison(rows)
    assert words.count("no stack there either") == sum(not pair["theirs"]["stack"] for pair in pairs)


def test_tiles_for_one_token():
    rows = report.run(["attractor", "ternary"], ["token"], ["bfloat16"])
    assert len(rows) > 20
    assert_no_complaints(rows)


def assert_no_complaints(rows: list[dict]) -> None:
    wrong = [f"{row['name']}, {row['shape']}, {row['chip']}: {words}" for row in rows for words in complaints(row)]
    assert not wrong, "\n".join(wrong)


def complaints(row: dict) -> list[str]:
    if "error" in row:
        return [row["error"]]
    result = [f"{row[name]} {name}" for name in ("stack", "spills") if row[name]]
    if row["shared"] > row["shared_limit"]:
        result.append(f"{row['shared']} bytes of shared memory, more than {row['shared_limit']}")
    if row["blocks"] < 1:
        result.append("not one program fits into a multiprocessor")
    if row["dtype"] != "float32" and row["products"] and not row["tensor"]:
        result.append("no instruction for the tensor cores")
    if row["wide"] < LEAST_WIDE and not narrow(row):
        result.append(f"{row['wide']} loads of 128 bits")
    return result


LEAST_WIDE = 1


def narrow(row: dict) -> bool:
    """Where a thread has no 128 bits to load: tiles so small, or threads so many, that each gets less."""
    if row["part"] == "state-space":
        lines = "sum_decays" in row["name"] or "decay_gradient" in row["name"]  # one number a token
        lines |= row["dtype"] != "float32" and row["shape"] == "subword"  # 68 halves are loaded in eights of bytes
        small = row["dtype"] == "float32" and re.match("walk walk|backward chunk", row["name"])  # 16 x 32, 256 threads
        # 64 x 16 halves, 256 threads
        small = small or (row["dtype"] == "float16" and row["chip"] == "gfx942" and "chunk_gradients" in row["name"])
        return lines or bool(small)
    one_token = row["shape"] == "token"  # tiles of 16 rows, of which one is real
    return one_token or (row["dtype"] == "float32" and row["chip"] == "gfx942")  # 256 threads: 8 bytes each


def test_complaints_are_made():
    fine = dict(name="attractor spin", part="attractor", dtype="float16", stack=0, spills=0, shared=9, shared_limit=9)
    fine |= dict(blocks=1, tensor=1, wide=1, products=1, chip="sm_80", shape="byte")
    assert complaints(fine) == []
    for change in (dict(stack=8), dict(spills=2), dict(shared=10), dict(blocks=0), dict(tensor=0), dict(wide=0)):
        assert len(complaints(fine | change)) == 1, change
    assert complaints(dict(error="CompilationError")) == ["CompilationError"]
    assert complaints(fine | dict(tensor=0, products=0)) == []
    assert complaints(fine | dict(wide=0, part="state-space", name="walk walk"))
    assert complaints(fine | dict(wide=0, part="state-space", name="parallel sum_decays")) == []


def test_occupancy():
    # By hand, for 128 threads: 65536 / (128 * 128) = 4 by registers, 2 by shared memory, 16 by warps.
    sm_80, _, gfx942 = machine_code.CHIPS

    def use(registers: int, shared: int) -> machine_code.Resources:
        return machine_code.Resources(registers, shared, 0, 0, 0, 0, 0)

    assert machine_code.occupancy(sm_80, use(128, 0), 4) == (4, 16)
    assert machine_code.occupancy(sm_80, use(121, 0), 4) == (4, 16)
    assert machine_code.occupancy(sm_80, use(32, 80 << 10), 4) == (2, 8)
    assert machine_code.occupancy(sm_80, use(16, 0), 4) == (16, 64)
    assert machine_code.occupancy(gfx942, use(128, 0), 4) == (4, 16)
    assert machine_code.occupancy(gfx942, use(128, 40 << 10), 4) == (1, 4)
