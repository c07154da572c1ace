"""What readers guess, by hand."""

from __future__ import annotations

import pytest

from pspin_lite.lessons import guesses


def test_bytes_of_one_token():
    """C = d = 1: scores 3, mask 2, product 3, use 3; fused q, k, v, g, o."""
    assert guesses.unfused_over_fused(1, 1) == pytest.approx(11 / 5)


def test_a_state_of_one_number():
    assert guesses.state_after(8, [1, 0.5, 0.25]) == 8 / 8 + 1 / 8 + 1 / 4 + 1
    assert guesses.state_after(8, [0]) == 1
