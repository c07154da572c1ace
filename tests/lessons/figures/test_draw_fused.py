"""The widget on tiles counts what the kernel of notebook 07 requests."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.patches import Rectangle

from pspin_lite.lessons.figures import draw_fused as draw
from pspin_lite.lessons.live.frames import frames

TOKENS, SPINS = (16, 32, 64, 128, 256), (32, 64, 128, 256, 512)


def test_a_step_requests_what_the_interpreter_counts():
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


def test_one_tile_for_all_requests_the_minimum():
    assert sum(draw.step_traffic(64, 32, 64, 32).values()) * 2**20 == pytest.approx(
        4 * (4 * 64 * 32 + 33) + 32 * 32 / 2
    )


def test_wide_tiles_request_least():
    draw_tiles = draw.tile_traffic(2048, 2048)
    assert draw_tiles(16, 32)[1] == {"requested": "1,392 MiB", "two sums on chip": "4 KiB"}
    at_most = [(t, s) for t in TOKENS for s in SPINS if draw_tiles(t, s)[1]["two sums on chip"] == "64 KiB"]
    assert min(at_most, key=lambda tile: sum(draw.step_traffic(2048, 2048, *tile).values())) == (32, 256)


def test_notebook_07_counts_what_a_step_requests_with_and_without_fusing_and_packing():
    def table(size: int, cached: bool) -> list[int]:  # MiB: neither, fusing, packing, both
        return [round(sum(draw.step_requests(2048, 2048, size, *one, cached)) / 2**20) for one in draw.DESIGNS.values()]

    assert table(4, cached=True) == [256, 96, 226, 66]
    assert table(4, cached=False) == [1232, 1076, 464, 308]
    assert [round(sum(draw.step_traffic(2048, 2048, 32, 256).values()))] == table(4, cached=False)[3:]
    by_hand = {"spins": 4096 / 128 * 16, "couplings": 2048 / 128 * 32, "drive and field": 4 * 16, "others": 9 * 16}
    assert list(by_hand.values()) == [512, 512, 64, 144]
    assert sum(by_hand.values()) == 1232


def test_the_bar_is_as_long_as_the_sum():
    figure, _ = draw.tile_traffic(2048, 2048)(64, 128)
    widths = [np.ptp(bar.get_paths()[0].vertices[:, 0]) for bar in figure.axes[0].collections]
    assert sum(widths[:4]) == pytest.approx(sum(draw.step_traffic(2048, 2048, 64, 128).values()))
    assert sum(widths[4:]) == pytest.approx(sum(draw.once(2048, 2048).values()))
    assert "two sums on chip: 64 KiB" in [text.get_text() for text in figure.axes[0].texts]


def test_sums_that_do_not_fit_are_called_too_large():
    figure, _ = draw.tile_traffic(2048, 2048)(128, 128)
    assert "two sums on chip: 128 KiB, too large" in [text.get_text() for text in figure.axes[0].texts]


def test_live_bars_have_room_for_their_names_and_can_be_read_on_a_dark_page():
    drawn = frames(draw.tile_traffic(2048, 2048), {"tokens": [16], "spins": [32]})
    assert max(len(name) for panel in drawn["panels"] for name in panel["yticklabels"]) <= 7
    colours = {text["text"]: text["colour"] for text in drawn["texts"]}
    assert colours["1,392 MiB"] == colours["spins y"] == "black"


def test_one_token_waits_for_couplings_and_many_for_arithmetic():
    assert draw.step_waits(1, 2048, 2, 312e12).keys() == {"product: memory", "other operations"}
    assert draw.step_waits(2048, 2048, 4, 19.5e12, fused=True, packed=True) == {
        "product: arithmetic": pytest.approx(1762, abs=0.1),
        "other operations": 0,
    }
    for cached in (False, True):
        times = [draw.step_waits(2048, 2048, 4, 19.5e12, *one, cached) for one in draw.DESIGNS.values()]
        assert [round(sum(parts.values())) for parts in times] == [1859, 1762, 1859, 1762], "with or without a cache"


def test_what_saves_time_in_16_bits_depends_on_the_cache():
    figure, shown = draw.waiting(2048)
    one, single, served, not_served = shown.values()
    assert one == pytest.approx((10.83, 10.81, 1.39, 1.36), abs=0.02)
    assert single == pytest.approx((1859.1, 1762.0, 1859.1, 1762.0), abs=0.1)
    assert served == pytest.approx((158.7, 110.1, 158.7, 110.1), abs=0.1)
    assert not_served == pytest.approx((415.4, 362.8, 199.6, 147.0), abs=0.1)
    labels = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert [text for text in labels if text] == ["11 µs", "−87%", "1,859 µs", "−5%", "159 µs", "−31%", "415 µs", "−65%"]


def test_a_program_reads_two_blocks_that_lie_apart():
    figure, shown = draw.program(2048, 1024)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert sum("rows for" in text for text in texts) == shown["blocks"] == 2
    assert "1,024 rows\nfurther down" in texts
    assert {"γ ⊙ spins y", "2,048 × 1,024, as stored"} <= set(texts)


def test_backward_a_program_reads_the_same_columns_of_both_halves():
    figure, shown = draw.backward_program(2048, 1024)
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts].count("32\ncolumns") == shown["blocks"] == 2
    assert "2,048 × 1,024, as stored" in {text.get_text() for text in axes.texts}
    upper, lower = (patch for patch in axes.patches if isinstance(patch, Rectangle) and patch.get_height() == 12)
    assert upper.get_x() == lower.get_x()
    assert upper.get_y() == lower.get_y() + 12


def test_only_one_array_mixes_steps():
    figure, shown = draw.buffers()
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert shown["tiles of the wrong step"] == 1
    assert texts.count("step n") == 4 + 2, "all four that are written, and each first one again when program 1 runs"
    assert texts.count("step n − 1") == 7
