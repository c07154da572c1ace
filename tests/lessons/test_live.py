"""Live figures without a kernel, in Chromium: numbers are Python's, sliders move by keyboard, nothing is fetched."""

from __future__ import annotations

import math
import random

import ipywidgets as ipw
import numpy as np
import pytest
import torch
from helpers import CHROMIUM, needs_browser
from matplotlib.figure import Figure

from pspin_lite import fixed_points
from pspin_lite.lessons import explore_attractor, explore_memory, explore_model, live, widgets
from pspin_lite.lessons.figures import state_space, ternary

pytestmark = needs_browser


def explorers() -> dict[str, widgets.Explorer]:
    """As in notebooks 05, 01, 00, 04; and two without formulas of their own, whose states are drawn beforehand."""
    rng = torch.Generator().manual_seed(0)
    normal, even = torch.randn(50_000, generator=rng), torch.rand(50_000, generator=rng) - 0.5
    grid = {
        (K, times): explore_model.Seen(2 + 0.1 * times / (K + 1), (3, 5 + K, None), f"a\nb <{K}> {times}")
        for K, times in explore_model.GRID
    }

    def draw_plot(power: int, sign: str) -> tuple[Figure, dict[str, object]]:
        figure = Figure()
        axes, x = figure.subplots(), np.arange(1, 6)
        y = x**power * (1 if sign == "+" else -1)
        axes.semilogx(x, y, "o--", label="a power")
        axes.fill_between(x, y - 1, y + 1, alpha=0.2)
        axes.axvline(2, color="black")
        axes.annotate("the end", (5, y[-1]), ha="right")
        axes.set_xticks([1, 5], ["one", "five"])
        axes.legend()
        return figure, {"last": float(y[-1]), f"{sign}": "sign"}

    return dict(
        two=widgets.Explorer(
            explore_attractor.draw_two_spins,
            "two",
            kind=ipw.Dropdown(options=list(fixed_points.KINDS)),
            K=ipw.IntSlider(5, 0, 20),
            gamma=ipw.FloatSlider(0.5, min=-0.5, max=0.5, step=0.05),
            w=ipw.FloatSlider(4, min=0, max=8, step=0.1),
        ),
        decay=widgets.Explorer(
            state_space.decay_and_chunks,
            "decay",
            decay=ipw.SelectionSlider(options=[0.3, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0], value=0.95),
            chunk=ipw.SelectionSlider(options=[1, 2, 4, 8, 16, 32, 64, 128, 256], value=16),
            T=ipw.IntSlider(value=64, min=8, max=256, step=8),
        ),
        memory=widgets.Explorer(
            explore_memory.draw_memory,
            "memory",
            decay=ipw.FloatSlider(0.5, min=0, max=1, step=0.05),
            **{f"v{t}": ipw.FloatSlider(t in (1, 4), min=0, max=1, step=0.25) for t in (1, 2, 3, 4)},
        ),
        ternary=widgets.Explorer(
            ternary.three_values({"normal": normal, "even": even}),
            "ternary",
            threshold=ipw.FloatSlider(value=0.5, min=0, max=2, step=0.05),
            scale=ipw.FloatSlider(value=1.0, min=0, max=3, step=0.05),
            weights=ipw.Dropdown(options=["normal", "even"]),
        ),
        frames=widgets.Explorer(
            explore_model.draw_grid(grid),
            "frames",
            K=ipw.SelectionSlider(options=explore_model.K_VALUES, value=5),
            times=ipw.SelectionSlider(options=explore_model.TIMES, value=1.0, description="couplings ×"),
        ),
        plot=widgets.Explorer(draw_plot, "plot", power=ipw.IntSlider(1, 0, 3), sign=ipw.Dropdown(options=["+", "−"])),
    )


@pytest.fixture(scope="module")
def boxes():
    return explorers()


@pytest.fixture(scope="module")
def address(boxes, tmp_path_factory):
    """A page on disk with the output of every `show`."""
    outputs = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(widgets, "display", outputs.append)
        for box in boxes.values():
            box.show(f"what {next(iter(box.controls))} does")
    shown = zip(boxes, (output.data for output in outputs if hasattr(output, "data")), strict=True)
    body = "".join(f'<section id="{name}">{text}</section>' for name, text in shown)
    path = tmp_path_factory.mktemp("live") / "page.html"
    path.write_text(f'<!doctype html><meta charset="utf-8"><body>{body}', encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page(browser, address):
    page = browser.new_page(viewport=dict(width=1200, height=900))
    page.complaints, page.requests = [], []
    page.on("console", lambda said: page.complaints.append(said.text))
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("request", lambda request: page.requests.append(request.url))
    page.goto(address)
    return page


def states_of(box: widgets.Explorer, count: int) -> list[dict]:
    """Both ends of every slider and others in between, the same ones every time."""
    rng = random.Random(1)
    stops = {control["name"]: control["values"] for control in live.specify(box.draw, box.controls)["controls"]}
    states = [{name: values[end] for name, values in stops.items()} for end in (0, -1)]
    return states + [{name: rng.choice(values) for name, values in stops.items()} for _ in range(count - 2)]


def differences(found: list, numbers: dict[str, object]) -> list[str]:
    """Names of numbers that are not Python's."""

    def same(a: object, b: object) -> bool:
        if isinstance(a, str) or isinstance(b, str):
            return a == b
        return math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-12)

    return [name for a, (name, b) in zip(found, numbers.items(), strict=True) if not same(a, b)]


@pytest.mark.parametrize(("name", "count"), [("two", 100), ("decay", 25), ("memory", 60), ("ternary", 30)])
def test_numbers_are_those_of_python(page, boxes, name, count):
    box = boxes[name]
    spec, states = live.specify(box.draw, box.controls), states_of(box, count)
    found = page.evaluate(
        "([states, spec]) => states.map(state => pspinLive.forms[spec.form](state, spec).numbers)", [states, spec]
    )
    wrong = {str(s): d for s, f in zip(states, found, strict=True) if (d := differences(f, box.draw(**s)[1]))}
    assert wrong == {}
    assert len({str(numbers) for numbers in found}) > count / 2, "they depend on the sliders"
    if name == "two":
        assert len({numbers[-1] for numbers in found}) > 2, "all, some or none of the paths settle"


def test_numbers_are_written_as_python_writes_them(page):
    rng = random.Random(2)
    values = [0.0, 1.625, 2.5, -1.635, 0.125, 999.5, 1000.0, 123456.0, 1e-4, 1.2345e-5, 3e-13, -2e-300, 1e22, 7.0]
    values += [rng.uniform(-1, 1) * 10 ** rng.uniform(-11, 8) for _ in range(200)]
    written = page.evaluate("([values, tiny]) => values.map(v => pspinLive.write(v, tiny))", [values, live.TINY])
    assert written == [widgets.write(value) for value in values]
    fixed = page.evaluate("values => values.map(v => pspinLive.fixed(v, 2))", values[:8] + values[14:])
    assert fixed == [f"{value:.2f}" for value in values[:8] + values[14:]]


def expect_numbers(page, name: str, numbers: dict[str, object]) -> None:
    cells = page.locator(f"#{name} .pspin-on [data-name]").all()
    assert [cell.get_attribute("data-name") for cell in cells] == list(numbers)
    found = [
        float(cell.get_attribute("data-value")) if cell.get_attribute("data-value") else cell.text_content()
        for cell in cells
    ]
    printable = {name: getattr(value, "printable", lambda value=value: value)() for name, value in numbers.items()}
    assert differences(found, printable) == []


MOVES = [  # explorer, control, keys, the value it then has
    ("two", "K", ["ArrowRight"] * 6, 11),
    ("two", "gamma", ["ArrowLeft"] * 4, 0.3),
    ("two", "w", ["End"], 8.0),
    ("two", "kind", ["ArrowDown"], "frustrated"),
    ("two", "gamma", ["Home"], -0.5),
    ("decay", "decay", ["End"], 1.0),
    ("decay", "chunk", ["ArrowLeft"], 8),
    ("decay", "T", ["End", "ArrowLeft"], 248),
    ("memory", "decay", ["End", "ArrowLeft"], 0.95),
    ("memory", "v2", ["ArrowRight"] * 3, 0.75),
    ("ternary", "threshold", ["ArrowRight"] * 3, 0.65),
    ("ternary", "scale", ["Home", "ArrowRight"], 0.05),
    ("ternary", "weights", ["ArrowDown"], "even"),
    ("frames", "K", ["Home"], 0),
    ("frames", "times", ["End"], 4.0),
    ("frames", "K", ["End", "ArrowLeft"], 7),
    ("plot", "power", ["End"], 3),
    ("plot", "sign", ["ArrowDown"], "−"),
]


def test_numbers_follow_the_keyboard(page, boxes):
    now = {name: box.values() for name, box in boxes.items()}
    assert page.locator(".pspin-on").count() == len(boxes)
    for name, box in boxes.items():
        expect_numbers(page, name, box.draw(**now[name])[1])
        assert page.locator(f"#{name} [role=img]").get_attribute("aria-label").startswith("what ")
    for name, control, keys, value in MOVES:
        figure = page.locator(f"#{name} .pspin-panels")
        height, before = page.locator(f"#{name}").bounding_box()["height"], figure.inner_html()
        for key in keys:
            page.locator(f"#{name} [data-control={control}]").press(key)
        now[name][control] = value
        expect_numbers(page, name, boxes[name].draw(**now[name])[1])
        assert figure.inner_html() != before, f"the picture of {name} follows {control}"
        assert page.locator(f"#{name}").bounding_box()["height"] == height, f"{name}: nothing beneath it moves"
    assert page.locator("#frames mark").all_text_contents() == ["7", "5"], "where the two texts part"
    titles = [axes.get_title("left") for axes in boxes["ternary"].draw(**now["ternary"])[0].axes]
    assert page.locator("#ternary svg text[font-weight=bold]").all_text_contents() == titles
    plot = page.locator("#plot")
    assert plot.locator("svg text").all_text_contents()[:2] == ["one", "five"]
    assert "the end" in plot.locator("svg").text_content()
    assert "a power" in plot.locator(".pspin-legend").text_content()
    dots = [(float(dot.get_attribute("cx")), float(dot.get_attribute("cy"))) for dot in plot.locator("circle").all()]
    assert [round((x - dots[0][0]) / (dots[-1][0] - dots[0][0]), 2) for x, _ in dots] == [0, 0.43, 0.68, 0.86, 1]
    assert [round((y - dots[0][1]) / (dots[-1][1] - dots[0][1]), 2) for _, y in dots] == [0, 0.06, 0.21, 0.51, 1]
    assert page.complaints == []
    assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []


def test_a_phone_needs_no_sideways_scrolling(page):
    page.set_viewport_size(dict(width=390, height=800))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.set_viewport_size(dict(width=1200, height=900))


def test_the_still_picture_is_seen_only_where_scripts_do_not_run(page, browser, address):
    assert page.locator(".pspin-still:visible").count() == 0
    plain = browser.new_page(java_script_enabled=False)
    plain.goto(address)
    assert plain.locator(".pspin-live:visible").count() == 0
    assert plain.locator(".pspin-still img[alt]:visible").count() == 6
    plain.close()


def test_an_explorer_with_many_states_stays_a_still_picture():
    many = dict(K=ipw.IntSlider(5, 0, 20), gamma=ipw.FloatSlider(0.5, min=0, max=0.5, step=0.05))
    several = dict(names=ipw.SelectMultiple(options=["a", "b"], value=["a"]))
    for controls in (many, several):
        assert "<script" not in live.markup(explore_attractor.draw_random, controls, "alt", "still")
