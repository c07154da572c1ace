"""What readers guess, by hand."""

from __future__ import annotations

from pspin_lite.lessons import guesses


def test_a_state_of_one_number():
    assert guesses.state_after(8, [1, 0.5, 0.25]) == 8 / 8 + 1 / 8 + 1 / 4 + 1
    assert guesses.state_after(8, [0]) == 1
