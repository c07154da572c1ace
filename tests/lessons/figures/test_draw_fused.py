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


def test_notebook_07_counts_what_a_product_in_pytorch_requests_in_its_best_tiles():
    array, others = 16, 9 * 16  # MiB: 2,048 x 2,048 in float32; what the other operations move

    def product(tokens: int, couplings: float) -> float:  # one sum of 64 KiB; couplings in MiB
        outputs = 2**14 // tokens
        return 4096 / outputs * array + 2048 / tokens * couplings + 4 * array  # spins, couplings, drive, field

    assert product(128, 32) == min(product(tokens, 32) for tokens in TOKENS) == 1088
    assert min(product(tokens, 2) for tokens in TOKENS) + others == 464, "packing alone"
    tiles = [draw.step_traffic(2048, 2048, tokens, 2**13 // tokens) for tokens in TOKENS]
    fused = [sum(parts.values()) + 15 * parts["couplings"] for parts in tiles]  # 32 bits each, not 2
    assert round(min(fused)) == 1076
    in_16_bits = draw.step_traffic(2048, 2048, 16, 32)
    assert round((sum(in_16_bits.values()) + in_16_bits["couplings"]) / 2) == 824  # codes stay as they are


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
    assert draw.step_waits(1, 2048, 2, 312e12, saved=False).keys() == {"couplings", "other operations"}
    assert draw.step_waits(2048, 2048, 4, 19.5e12, saved=True) == {
        "arithmetic": pytest.approx(1762, abs=0.1),
        "other operations": 0,
    }
    figure, shown = draw.waiting(2048)
    assert shown["1 token, 16 bits"] == pytest.approx((10.83, 1.36), abs=0.01)
    assert shown["2,048 tokens, float32"] == pytest.approx((1859.1, 1762.0), abs=0.1)
    assert shown["2,048 tokens, 16 bits"] == pytest.approx((158.7, 110.1), abs=0.1)
    assert {"10.8 µs, PyTorch", "1.4 µs, fused and packed", "1,859 µs", "110 µs"} <= {
        text.get_text() for text in figure.axes[0].texts
    }


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
    assert texts.count("step n") == 4 + 1, "all four that are written, and one that is read"
    assert texts.count("step n − 1") == 7


def test_a_tile_takes_as_long_as_its_slowest_token():
    counts = {"first": np.array([1, 1, 1, 2]), "last": np.array([4, 3, 4, 4])}
    figure, saved = draw.steps_taken(counts, tile=2, cap=4, unsettled={"last": np.array([True, False, False, False])})
    assert saved == {"tokens": 37.5, "tiles": 31.25}
    assert len(figure.axes[0].patches) == 8 + 4, "a cell per token and layer, and the key"
    assert [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_marker() == "o"] == [-1], "not settled"
    assert "1.2 per token,\n1.5 per tile" in [text.get_text() for text in figure.axes[0].texts]
