"""The widget on tiles counts what the kernel of notebook 07 asks for."""

from __future__ import annotations

import numpy as np
import pytest

from pspin_lite.lessons.figures import draw_fused as draw

TOKENS, SPINS = (16, 32, 64, 128, 256), (32, 64, 128, 256, 512)


def test_a_step_asks_for_what_the_interpreter_counts():
    pytest.importorskip("triton", reason="Triton is published for Linux only")
    import torch
    from pspin_kernels.runtime import INTERPRETED

    from pspin_lite import ternary
    from pspin_lite.lessons.exercises import nb07
    from pspin_lite.tools.kernels import traffic

    if not INTERPRETED:
        pytest.skip("compiled kernels cannot be counted")
    T, I = 20, 36
    z, gamma = torch.randn(T, 2 * I), torch.ones(I)
    packed = ternary.pack(ternary.quantize(torch.randn(2 * I, I))[0])
    y, out = torch.randn(T, I), torch.empty(T, I)
    with traffic.counting() as counted:
        nb07.seeded_step[(2, 2)](z, y, out, packed, gamma, T, I, I // 4, I, FILL=0x55)
    scales = 4 * 2 * 2  # this kernel has none to load
    assert sum(draw.step_traffic(T, I, 16, 32).values()) * 2**20 == pytest.approx(counted.bytes + scales)


def test_one_tile_for_all_asks_for_the_minimum():
    assert sum(draw.step_traffic(64, 32, 64, 32).values()) == pytest.approx(draw.once(64, 32))


def test_wide_tiles_ask_for_least():
    draw_tiles = draw.tile_traffic(2048, 2048)
    assert draw_tiles(16, 32)[1] == {"asked for": "1,392 MiB", "two sums on chip": "4 KiB"}
    at_most = [(t, s) for t in TOKENS for s in SPINS if draw_tiles(t, s)[1]["two sums on chip"] == "64 KiB"]
    assert min(at_most, key=lambda tile: sum(draw.step_traffic(2048, 2048, *tile).values())) == (32, 256)


def test_the_bar_is_as_long_as_the_sum():
    figure, _ = draw.tile_traffic(2048, 2048)(64, 128)
    *parts, least = (np.ptp(bar.get_paths()[0].vertices[:, 0]) for bar in figure.axes[0].collections)
    assert sum(parts) == pytest.approx(sum(draw.step_traffic(2048, 2048, 64, 128).values()))
    assert least == pytest.approx(draw.once(2048, 2048))
