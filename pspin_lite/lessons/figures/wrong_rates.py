"""Figures and tables of notebook 13: what a wrong learning rate costs, and SGD against Adam. They show what is on
record by now, and say what is not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from textwrap import fill

from matplotlib.figure import Figure

from ...study import networks, records
from ...study.questions import answers, criteria, runs
from .batch import COLOURS, HEADLINE, NAMES, NETWORKS, USUAL, answers_of, row_cells
from .style import GREY, styled

COUNTS = ("none", "one", "two", "three", "four")
TIMES = (0.25, 0.5, 1, 2, 4)  # the tuned rate


def wrong_rates() -> list[list[str]]:
    """What the worse of two wrong rates costs p-Spin more than the Transformer, as a table."""
    rows = [["p-Spin's cost − the Transformer's", *records.SPLITS, "answer"]]
    return rows + [[row.about.partition(":")[0], *row_cells(row)] for row in answers_of("moments", "rates")]


def plain_sgd() -> list[list[str]]:
    """The best rate of SGD against Adam, as a table."""
    rows = [["SGD − Adam, bits per byte", *records.SPLITS, "answer"]]
    return rows + [[row.about, *row_cells(row)] for row in answers_of("moments", "sgd")]


def sgd_runs() -> dict[str, dict[float, float]]:
    """Network -> rate -> held-out bits per byte of the runs of SGD that are on record, infinite if diverged."""
    runs_of = {name: {rate: f"sgd/{name}-rate-{rate:g}/seed-1" for rate in networks.SGD_RATES} for name in NETWORKS}
    return {name: _ends(every) for name, every in runs_of.items()}


def _ends(every: Mapping[float, str]) -> dict[float, float]:
    return {key: runs.end(run, records.SPLIT) for key, run in every.items() if records.has(run)}


@styled
def sgd() -> tuple[Figure, dict[str, dict[float, float]]]:
    """Where SGD without momentum ends over its rate, a panel for each network, with Adam's end as a line. A cross at
    the top is a run that diverged. The title says what of it is known. -> network -> rate -> bits per byte"""
    found = sgd_runs()
    adam = {name: _ends({USUAL: f"moments/{name}-beta2-{USUAL}/seed-1"}).get(USUAL, math.inf) for name in NETWORKS}
    every = [end for ends in found.values() for end in ends.values()]
    finite = [end for end in (*every, *adam.values()) if math.isfinite(end)]
    low, high = (min(finite), max(finite)) if finite else (2.0, 3.0)
    room = max(0.15 * (high - low), 0.1)
    figure = Figure(figsize=(5.2, 5.4), layout="constrained")
    figure.suptitle(fill(_sgd_title(found), 52), **HEADLINE)
    panels = figure.subplots(2, 2, sharex=True, sharey=True).flat
    for panel, (name, ends) in zip(panels, found.items(), strict=True):
        places = {rate: networks.SGD_RATES.index(rate) for rate in ends}
        kept = {rate: end for rate, end in ends.items() if math.isfinite(end)}
        panel.plot([places[rate] for rate in kept], list(kept.values()), "o-", color=COLOURS[name], lw=1.5)
        for rate in ends.keys() - kept.keys():
            panel.plot(places[rate], high + room / 2, "x", color=COLOURS[name], ms=8, mew=2)
        if math.isfinite(adam[name]):
            panel.axhline(adam[name], color=GREY, ls="--", lw=1.2)
            panel.text(-0.2, adam[name], "Adam", color=GREY, va="bottom", fontsize=9.5)
        if not ends:
            panel.text(0.5, 0.85, "not run yet", color=GREY, ha="center", transform=panel.transAxes)
        panel.set_title(NAMES[name], loc="left", color=COLOURS[name], fontsize=10.5)
        panel.set_xticks(range(len(networks.SGD_RATES)), [f"{rate:g}" for rate in networks.SGD_RATES])
        panel.set(xlim=(-0.3, len(networks.SGD_RATES) - 0.7), ylim=(low - room, high + room))
    figure.supxlabel("learning rate of SGD" + " (×: diverged)" * (math.inf in every), fontsize=11)
    figure.supylabel("bits per byte, held-out", fontsize=11)
    return figure, found


def ends_in_words(found: Mapping[str, Mapping[float, float]]) -> str:
    """Of each network, what is at which rate, for an alt text."""
    every = (
        f"{NAMES[name]} " + ", ".join(f"{end:.2f} at {rate:g}" for rate, end in ends.items())
        for name, ends in found.items()
        if ends
    )
    return "; ".join(every).replace("inf", "diverged") or "no runs yet"


def _sgd_title(found: Mapping[str, Mapping[float, float]]) -> str:
    done, planned = sum(map(len, found.values())), len(NETWORKS) * len(networks.SGD_RATES)
    if done < planned:
        return f"SGD without momentum: {done} of {planned} runs so far"
    verdicts = [row.verdict for row in answers_of("moments", "sgd")]
    trained = sum(word in ("works", "trains") for word in verdicts)
    of_all = "all four networks" if trained == len(NETWORKS) else f"{COUNTS[trained]} of four networks"
    if not trained:
        return "SGD without momentum trains none of the four"
    close = verdicts.count("works")
    near = {0: "but stays far behind Adam", trained: "nearly as well as Adam"}
    return f"SGD without momentum trains {of_all}, {near.get(close, f'{COUNTS[close]} nearly as well as Adam')}"


def rate_runs() -> dict[float, dict[str, dict[float, float]]]:
    """beta2 -> network -> multiple of the tuned rate -> held-out bits per byte of seed 1 minus those at the tuned rate,
    of the runs that are on record; infinite if diverged."""
    found: dict[float, dict[str, dict[float, float]]] = {}
    for beta2 in answers.BETAS:
        for name in NETWORKS:
            every = {times: f"moments-rates/{name}-beta2-{beta2:g}-times-{times:g}/seed-1" for times in TIMES}
            ends = _ends(every | {1: f"moments/{name}-beta2-{beta2:g}/seed-1"})
            level = ends.get(1, math.inf)
            costs = {times: end - level for times, end in sorted(ends.items())} if math.isfinite(level) else {}
            found.setdefault(beta2, {})[name] = costs
    return found


@styled
def rates() -> tuple[Figure, dict[float, dict[str, dict[float, float]]]]:
    """What a wrong rate costs, a panel for each beta2 and a line for each network. A cross at the top is a run that
    diverged. The title says what of it is known. -> what `rate_runs` returns"""
    found = rate_runs()
    every = [cost for lines in found.values() for line in lines.values() for cost in line.values()]
    finite = [cost for cost in every if math.isfinite(cost)] or [0.0]
    room = max(0.12 * (max(finite) - min(finite)), 0.02)
    figure = Figure(figsize=(5.2, 6.0), layout="constrained")
    figure.suptitle(fill(_rates_title(found), 52), **HEADLINE)
    for panel, (beta2, lines) in zip(figure.subplots(2, 1, sharex=True, sharey=True), found.items(), strict=True):
        panel.axhline(0, color=GREY, lw=1, ls="--")
        for name, line in lines.items():
            kept = {times: cost for times, cost in line.items() if math.isfinite(cost)}
            label = dict(label=NAMES[name]) if beta2 == answers.BETAS[0] else {}
            panel.plot([TIMES.index(times) for times in kept], list(kept.values()), "o-", color=COLOURS[name], **label)
            for times in line.keys() - kept.keys():
                panel.plot(TIMES.index(times), max(finite) + room / 2, "x", color=COLOURS[name], ms=8, mew=2)
        panel.set_title(f"β₂ = {beta2:g}", loc="left", fontsize=10.5, color=GREY)
        panel.set_xticks(range(len(TIMES)), ["a quarter", "half", "tuned", "twice", "4 times"])
        panel.set(xlim=(-0.3, len(TIMES) - 0.7), ylim=(min(finite) - room, max(finite) + room))
    figure.supylabel("bits per byte above the tuned rate's end", fontsize=11)
    panel.set_xlabel("learning rate" + " (×: diverged)" * (math.inf in every))
    figure.legend(loc="outside lower center", ncols=2, fontsize=9.5)
    return figure, found


def _rates_title(found: Mapping[float, Mapping[str, Mapping[float, float]]]) -> str:
    planned = len(networks.GROUPS["moments-rates"])
    done = sum(len(line.keys() - {1}) for lines in found.values() for line in lines.values())
    verdict = answers_of("moments", "rates")[-1].verdict
    if verdict == criteria.NOT_RUN:
        return f"The price of a wrong rate: {done} of {planned} runs so far"
    says = {"wider": "p-Spin tolerates a wider range of rates"}
    says |= {"narrower": "p-Spin tolerates a narrower range of rates"}
    return says.get(verdict, "p-Spin is not seen to bear wrong rates any better")
