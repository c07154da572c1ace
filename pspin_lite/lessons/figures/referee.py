"""An explorer of notebook 11 on top of race.py: a referee who sets the learning rates."""

from __future__ import annotations

from collections.abc import Callable

from ...study import records
from . import study
from .live import LiveFigure, Panel
from .race import Network, display_name, short_end, tuned
from .style import GREY


def referee(pair: tuple[Network, Network]) -> Callable[..., tuple[LiveFigure, dict]]:
    """For an Explorer: draw(ours, theirs) of the short runs of two networks over their learning rates, with the two
    rates that are chosen and the gap between them. Thick dashes: where full runs end, at the rate that was tuned."""
    every = list(records.rates(*pair[0]))
    curves = [[short_end(network, rate) for rate in every] for network in pair]
    full = [records.mean(records.bits(*network)) for network in pair]
    at = every.index(tuned(pair[0]))
    names = [f"{display_name(name)}, batch {group.rpartition('-')[2]}" for group, name in pair]
    colours, heights = [study.OF_ARMS[name]["color"] for _, name in pair], (1.4, 1.6, 1.8, 2.0)

    def draw(ours: float, theirs: float) -> tuple[LiveFigure, dict]:
        chosen = [curve[every.index(rate)] for curve, rate in zip(curves, (ours, theirs), strict=True)]
        gap = chosen[0] - chosen[1]
        leader = display_name(pair[gap > 0][1])
        panel = Panel(
            (0.13, 0.26, 0.83, 0.64),
            f"{leader} wins by {abs(gap):.3f}",
            "learning rate (logarithmic)",
            "bits per byte, held-out",
            (-0.3, len(every) - 0.7),
            (1.3, 2.1),
            tuple(range(len(every))),
            heights,
            tuple(f"{height:g}" for height in heights),
            tuple(("━", *one) for one in zip(names, colours, strict=True)),
            tuple(f"{rate:g}" for rate in every),
        )
        figure = LiveFigure((5.2, 4.0), (panel,))
        for curve, end, colour, rate in zip(curves, full, colours, (ours, theirs), strict=True):
            figure.add_line(0, range(len(every)), curve, colour, width=1.8)
            figure.add_line(0, [every.index(rate)], [curve[every.index(rate)]], colour, width=0, dot=6)
            figure.add_line(0, [at - 0.15, at + 0.15], [end, end], colour, width=4)
        figure.add_text(0, at, sum(full) / 2 + 0.02, "full runs", GREY)
        numbers = {name: f"{end:.3f}" for name, end in zip(names, chosen, strict=True)}
        return figure, numbers | {"p-Spin minus Transformer": f"{gap:+.3f}".replace("-", "−")}

    return draw
