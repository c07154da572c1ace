"""Live figures: explorers with sliders that move on a page without a kernel, in plain JavaScript inside the output.

    markup(draw, controls, alt, still)   -> HTML: the live form, if `draw` has one, and the still picture

core.js draws sliders, panels and numbers; two_spins.js, decay.js, memory.js and ternary.js hold formulas that exist in
Python too, and tests hold them equal. Everything else, constants, panels, random starts, the names of numbers, comes
from Python as JSON. A draw function without a form, but with few states, is drawn beforehand, state by state
("frames").

Where scripts do not run, on GitHub or in a notebook that JupyterLab does not trust, the still picture is seen. Where a
widget of ipywidgets runs, live.css hides both.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources

import ipywidgets as ipw
import numpy as np

from ... import fixed_points
from .. import explore_attractor, explore_memory
from ..figures import state_space, style, ternary
from .frames import Stops, axes_of, frames, rounded

TINY = 1e-12  # numbers below it are shown as such: their digits are rounding errors
COLOURS = dict(
    blue=style.BLUE, orange=style.ORANGE, green=style.GREEN, red=style.RED, sky=style.SKY, purple=style.PURPLE
)


def markup(draw: Callable, controls: Mapping[str, object], alt: str, still: str) -> str:
    """The live form of an explorer, hidden until its script has run, and the still picture behind it."""
    parts = [f"<style>{source('live.css')}</style>"]
    spec = specify(draw, controls)
    if spec is not None:
        script, spec = spec.pop("script"), spec | dict(alt=alt)
        how = dict(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=float)
        text = json.dumps(spec, **how).replace("<", "\\u003c")
        code = "".join(source(name) for name in ("core.js", script) if name)
        parts.append(f'<div class="pspin-live" hidden></div><script>{code}')
        parts.append(f"pspinLive.mount(document.currentScript, {text});</script>")
    return "".join([*parts, f'<div class="pspin-still">{still}</div>'])


@cache
def source(name: str) -> str:
    """A file of this folder, without the comments that take a line and without indentation."""
    lines = resources.files(__package__).joinpath(name).read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in map(str.strip, lines) if line and not line.startswith("//")) + "\n"


def specify(draw: Callable, controls: Mapping[str, object]) -> dict[str, object] | None:
    """All that the script needs to know; None for an explorer without a live form."""
    choices = [_control(name, control) for name, control in controls.items()]
    if None in choices:
        return None
    stops = {choice["name"]: choice["values"] for choice in choices}
    if draw is explore_attractor.draw_two_spins:
        spec = two_spins()
    elif draw is state_space.decay_and_chunks:
        spec = decay()
    elif draw is explore_memory.draw_memory:
        spec = memory()
    elif hasattr(draw, "samples"):
        spec = three_values(draw.samples, stops)
    else:
        spec = frames(draw, stops)
    if spec is None:
        return None
    if "frames" not in spec:
        spec["names"] = list(draw(**{name: control.value for name, control in controls.items()})[1])
    return dict(controls=choices, colours=COLOURS, grey=style.GREY, dashes="4 3", tiny=TINY) | spec


def _control(name: str, control: ipw.ValueWidget) -> dict[str, object] | None:
    """A slider or a choice of ipywidgets; None for anything else."""
    if hasattr(control, "_options_full"):
        texts, values = map(list, zip(*control._options_full, strict=True))
        if isinstance(control.value, tuple):  # several at once
            return None
        index = values.index(control.value)
    elif isinstance(control, ipw.IntSlider | ipw.FloatSlider):
        count = math.floor((control.max - control.min) / control.step + 1e-9) + 1
        values = [round(control.min + i * control.step, 10) for i in range(count)]
        texts = [f"{value:g}" for value in values]
        index = min(range(count), key=lambda i: abs(values[i] - control.value))
    else:
        return None
    known = dict(name=name, label=control.description or name, slider="Slider" in type(control).__name__)
    return known | dict(values=values, texts=texts, index=index)


def _default(function: Callable, name: str) -> object:
    return inspect.signature(function).parameters[name].default


# Forms with formulas of their own


def two_spins() -> dict[str, object]:
    """The constants of explore_attractor.draw_two_spins."""
    panels = (explore_attractor.PORTRAIT, explore_attractor.PAIR)
    return dict(
        script="two_spins.js",
        form="twoSpins",
        panels=[axes_of(panel, 260) for panel in panels],
        kinds=fixed_points.KINDS,
        drive=fixed_points.two_spins("agree", 0.0, 0.0).z[0].tolist(),
        shown=fixed_points.SHOWN,
        limit=fixed_points.LIMIT,
        settled=fixed_points.SETTLED,
        stages=_default(fixed_points.follow, "stages"),
        grid=_default(explore_attractor.all_fixed_points, "grid"),
        cells=explore_attractor.CELLS,
        corners=explore_attractor.CORNERS,
        strong=explore_attractor.STRONG,
    )


def decay() -> dict[str, object]:
    """The panels of figures.state_space.decay_and_chunks; titles, limits and ticks depend on the sliders."""
    mask = dict(xlabel="token j (written)", ylabel="token i (reading)", wide=170)
    left = dict(xlabel="token j (written)", ylabel="fraction left", wide=270)
    colours = dict(pair=style.GREY, state=style.PURPLE)
    shades = {name: state_space.shades(colour, np.linspace(0, 1, 64)) for name, colour in colours.items()}
    return dict(
        script="decay.js",
        form="decay",
        panels=[mask, left | dict(ylim=(0, 1.02), yticks=(0, 0.5, 1))],
        map={name: np.rint(255 * rows).astype(int).tolist() for name, rows in shades.items()},
    )


def memory() -> dict[str, object]:
    """The panel and the bars of explore_memory.draw_memory."""
    bars = dict(kept=explore_memory.STATE, added=explore_memory.VALUE)
    look = dict(bars=bars, width=explore_memory.BAR, legend=explore_memory.LEGEND)
    return dict(script="memory.js", form="memory", panels=[axes_of(explore_memory.PANEL, 320)]) | look


def three_values(samples: Mapping[str, ternary.Sample], stops: Stops) -> dict[str, object]:
    """What figures.ternary.three_values looks up in its samples, at each threshold of the slider."""
    thresholds = np.array(stops["threshold"])
    left = dict(xlabel="weight / mean |w|", ylabel="density", wide=250)
    right = dict(xlabel="threshold / mean |w|", ylabel="relative error", wide=250)
    reach = float(thresholds[-1])
    return dict(
        script="ternary.js",
        form="ternary",
        panels=[
            left | dict(xlim=(-ternary.RANGE, ternary.RANGE), xticks=(-2, 0, 2), yticks=(0, 0.2, 0.4)),
            right | dict(xlim=(0, reach), ylim=(0, 1.02), xticks=(0, reach / 2, reach), yticks=(0, 0.5, 1)),
        ],
        bins=[round(float(edge), 6) for edge in ternary.BINS],
        becomes=[dict(code=code, colour=colour) for code, colour, _ in ternary.BECOMES],
        keys=ternary.KEYS,
        lines=ternary.LINES,
        samples={
            name: dict(
                share=rounded(sample.kept(thresholds)[0], 12),
                total=rounded(sample.kept(thresholds)[1], 12),
                square=float(sample.square),
                density=rounded(sample.density, 4),
            )
            for name, sample in samples.items()
        },
    )
