"""A memory of one number, for the widget of notebook 00: it fades by a decay, then a value is added, four times."""

from __future__ import annotations

from dataclasses import replace

from .figures.diagram import INK, STATE, VALUE
from .figures.live import LiveFigure, Panel

TOKENS = (1, 2, 3, 4)
BAR = 30.0  # width
PANEL = Panel((0.09, 0.19, 0.89, 0.69), "", "token", "h", (0.4, 4.6), (0, 4.4), TOKENS, (0, 1, 2, 3, 4))
LEGEND = (("■ kept", STATE, 0.74, 4.3), ("■ added", VALUE, 0.8, 3.85))  # text, colour, place


def path(decay: float, values: list[float]) -> list[tuple[float, float]]:
    """For each token what is left of the memory, and the memory after it."""
    h, states = 0.0, []
    for value in values:
        kept = decay * h
        h = kept + value
        states.append((kept, h))
    return states


def draw_memory(decay: float, v1: float, v2: float, v3: float, v4: float) -> tuple[LiveFigure, dict[str, str]]:
    """A bar per token: at the bottom what is left (pink), above it the new value (green)."""
    states = path(decay, [v1, v2, v3, v4])
    figure = LiveFigure((7.4, 3.0), (replace(PANEL, title=f"h after token 4: {states[-1][1]:.4g}"),))
    for token, (kept, h) in zip(TOKENS, states, strict=True):
        figure.add_line(0, [token, token], [0, kept], STATE, width=BAR)
        figure.add_line(0, [token, token], [kept, h], VALUE, width=BAR)
        figure.add_text(0, token, h + 0.45, f"{h:.4g}", INK)
    for text, colour, x, y in LEGEND:
        figure.add_text(0, x, y, text, colour)
    return figure, {f"after token {token}": f"{h:.4g}" for token, (_, h) in zip(TOKENS, states, strict=True)}
