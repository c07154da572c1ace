"""What the notebooks on kernels count is what the kernels do."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton", reason="Triton is published for Linux only")

from pspin_kernels import runtime, ternary

from pspin_lite.tools.kernels import traffic

pytestmark = pytest.mark.skipif(not runtime.INTERPRETED, reason="compiled kernels are not counted")


def product():
    """Two tiles of rows, one of columns: 20 x 8 times 8 x 12, in tiles of 16 x 64 x 16."""
    codes = torch.ones(12, 8)
    return ternary.product(torch.ones(20, 8), ternary.pack(codes), torch.ones(1))


def test_bytes_and_flops_are_those_of_unmasked_lanes():
    with traffic.counting() as result:
        product()
    tile = ternary.tiles(20, torch.float32)
    rows = -(-20 // tile["BM"])
    assert result.written == 4 * 20 * 12
    assert result.read == 4 * 20 * 8 + rows * (12 * tile["BK"] // 4 + 4)  # x; codes and scale for each row of tiles
    assert result.flops == 2 * rows * tile["BM"] * tile["BN"] * tile["BK"]
    assert result.bytes == result.read + result.written


def test_counting_ends():
    with traffic.counting() as result:
        product()
    before = result.read
    product()
    assert result.read == before


def test_check_raises_and_says(capsys):
    traffic.check("a product", product, written=960)
    assert capsys.readouterr().out == "✓ a product: written 960, as predicted\n"
    with pytest.raises(AssertionError, match="written is 960, not 961"):
        traffic.check("a product", product, written=961)
