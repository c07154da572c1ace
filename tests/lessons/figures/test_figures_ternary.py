"""Figures and the widget of notebook 04 show what they say."""

from __future__ import annotations

import math

import ipywidgets as ipw
import numpy as np
import pytest
import torch

import pspin_lite as ps
from pspin_lite.lessons import widgets
from pspin_lite.lessons.figures import ternary as draw


@pytest.fixture(scope="module")
def normal():
    return torch.randn(400_000, generator=torch.Generator().manual_seed(0))


def rounded(w, threshold, scale):
    return w.sign() * (w.abs() > threshold) * scale


@pytest.mark.parametrize(("threshold", "scale"), [(0.5, 1.0), (0.0, 0.7), (1.3, 2.2), (5.0, 1.0)])
def test_errors_are_those_of_rounding(normal, threshold, scale):
    w = normal[:1000].double()
    size = w.abs().mean()
    found = draw.Sample(w)
    by_hand = rounded(w, threshold * size, scale * size)
    assert found.error(threshold, scale) == pytest.approx(((by_hand - w).norm() / w.norm()).item())
    assert found.kept(threshold)[0] == pytest.approx((by_hand != 0).double().mean().item())
    if threshold < 5:
        cosine = torch.cosine_similarity(by_hand, w, dim=0).item()
        assert found.cosine(threshold) == pytest.approx(cosine)
        best = found.best_scale(threshold)
        assert found.error(threshold, best) < min(found.error(threshold, best + e) for e in (-0.01, 0.01))
        assert found.error(threshold, best) ** 2 == pytest.approx(1 - cosine**2)


def test_absmean_is_threshold_one_half_and_scale_one(normal):
    error = (ps.ternary.ste(normal) - normal).norm() / normal.norm()
    assert draw.Sample(normal).error(0.5, 1.0) == pytest.approx(error.item(), rel=1e-4)


def test_normal_weights_have_their_known_optimum(normal):
    """The best three levels for a normal density (Max, 1960): threshold 0.612, level 1.224, squared error 0.190."""
    sample, t = draw.Sample(normal), np.linspace(0, 2, 201)
    error = sample.error(t, sample.best_scale(t))
    best, size = t[error.argmin()], math.sqrt(2 / math.pi)
    assert best * size == pytest.approx(0.612, abs=0.02)
    assert sample.best_scale(best) * size == pytest.approx(1.224, abs=0.02)
    assert error.min() ** 2 == pytest.approx(0.190, abs=0.002)
    assert 1 - sample.kept(0.5)[0] == pytest.approx(math.erf(size / 2 / math.sqrt(2)), abs=3e-3)


def test_entropy():
    assert draw.entropy(1 / 3) == pytest.approx(math.log2(3))
    assert draw.entropy(0.0) == 1
    assert draw.entropy(1.0) == 0


def test_histogram_is_a_density(normal):
    inside = (normal.abs() < draw.TAILS[-1] * normal.abs().mean()).double().mean().item()
    few = normal[:2000]
    figure, shown = draw.latent(few, 2 * few)
    dense, hidden = shown.values()
    assert (dense * np.diff(draw.TAILS)).sum() == pytest.approx(inside, abs=1e-4)
    assert np.allclose(dense, hidden), "units of mean |w|"
    ticks = figure.axes[0].lines[0].get_xdata()
    assert np.allclose(ticks, few / few.abs().mean(), atol=1e-5), "a tick per weight"


def test_dots_are_the_runs_and_the_bar_is_the_interval():
    figure, shown = draw.cost({"ternary": [2.0, 2.2], "unrounded": [2.1, 2.4]}, -0.15, 0.2)
    left, right = figure.axes
    assert [list(line.get_xdata()) for line in left.lines[1::2]] == [[2.0, 2.2], [2.1, 2.4]]
    assert [line.get_xdata()[0] for line in left.lines[::2]] == pytest.approx([2.1, 2.25]), "means"
    bar = right.collections[0].get_segments()[0]
    assert list(bar[:, 0]) == pytest.approx([-0.35, 0.05])
    assert right.get_title() == "ternary minus unrounded, with interval"
    assert list(shown) == ["ternary", "unrounded"]


def test_arrows_say_by_how_much_scales_have_grown():
    figure, factors = draw.growth([0.5, 0.5], [1.0, 0.75])
    assert list(factors) == [2.0, 1.5]
    assert [text.get_text() for text in figure.axes[0].texts if text.get_text()] == ["× 2.0", "× 1.5"]
    assert figure.axes[0].get_title("left") == "Training raised the scale in every layer"
    assert draw.growth([1.0], [0.5])[0].axes[0].get_title("left") == "The scale before and after"


def test_bars_have_the_sizes_of_the_footprint():
    model = ps.footprint(ps.preset("byte-paper"))
    _, shown = draw.sizes({"byte": model})
    before, packed = shown["byte"]
    assert before.sum() == pytest.approx(model.uncompressed_mb)
    assert packed.sum() == pytest.approx(model.mb)
    assert before[0] == 8 * packed[0], "the ternary part"


def test_lines_are_what_was_given():
    errors = {"a task": {"one way": [[0.1, 0.2], [0.3, 0.4]]}}
    figure, _ = draw.race(errors)
    assert [list(line.get_xdata()) for line in figure.axes[0].lines] == [[0.1, 0.3], [0.2, 0.4]], "own scale, fitted"


def test_widget_follows_its_sliders(normal):
    samples = {"normal": normal, "two": torch.tensor([1.0, -1.0])}
    found = widgets.Explorer(
        draw.three_values(samples),
        "ternary",
        threshold=ipw.FloatSlider(value=0.5, min=0, max=2, step=0.05),
        scale=ipw.FloatSlider(value=1.0, min=0, max=3, step=0.05),
        weights=ipw.Dropdown(options=list(samples)),
    )
    assert '<b data-name="relative error">0.513</b>' in found.numbers.value
    assert '<b data-name="share of zeros">3' in found.numbers.value
    found.controls["scale"].value = 0.0
    assert '<b data-name="relative error">1.000</b>' in found.numbers.value
    found.controls["scale"].value = 1.0
    found.controls["weights"].value = "two"
    assert '<b data-name="relative error">0.000</b>' in found.numbers.value
    found.controls["threshold"].value = 2.0
    assert '<b data-name="share of zeros">100.0 %</b>' in found.numbers.value
    assert "widget-error" not in found.numbers.value


def test_widget_marks_where_it_is(normal):
    figure, numbers = draw.three_values({"normal": normal})(0.75, 1.5, "normal")
    left, right = figure.axes
    here = right.lines[-1]
    assert list(here.get_xdata()) == [0.75]
    assert f"{here.get_ydata()[0]:.3f}" == numbers["relative error"]
    values = next(line for line in left.lines if line.get_label() == "the three values")
    assert list(values.get_xdata()) == [-1.5, 0, 1.5]
    assert left.get_title("left") == f"{float(numbers['share of zeros'][:-2]):.0f}% of the weights become 0"
    assert right.get_title("left") == f"error {numbers['relative error']}, lowest possible 0.436"
