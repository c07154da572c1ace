"""Figures. Each function returns the figure and the arrays it shows, so that tests can check the numbers."""

from .style import BLUE, CYCLE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, STYLE, outlines, styled

__all__ = [
    "BLUE",
    "CYCLE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PURPLE",
    "RED",
    "SKY",
    "STYLE",
    "outlines",
    "styled",
]
