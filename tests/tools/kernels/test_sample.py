"""One kernel, compiled in another process, as notebook 03 does it."""

from __future__ import annotations

import pytest

from pspin_lite.tools.kernels import sample

pytest.importorskip("triton", reason="Triton is published for Linux only")


def test_a_change_of_the_launch_is_compiled():
    rows = sample.run("parallel pass_states", chips=["sm_80"], changes=[{}, {"num_warps": 1}])
    assert [row["chip"] for row in rows] == ["sm_80", "sm_80"]
    assert rows[1]["num_warps"] == 1
    assert rows[0]["registers"] < rows[1]["registers"], "the same block for fewer threads"


def test_an_unknown_name_is_said():
    with pytest.raises(RuntimeError, match="parallel pass_states"):
        sample.run("no such kernel")
