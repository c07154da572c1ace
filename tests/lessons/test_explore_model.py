"""What stands behind the widget of K and gamma on a trained model: numbers against a model that was really changed."""

from __future__ import annotations

import copy
import math
import re

import ipywidgets as ipw
import pytest
import torch

import pspin_lite as ps
from pspin_lite import attractor, deploy, fixed_points
from pspin_lite.data import tokenizers
from pspin_lite.lessons import explore_model as em
from pspin_lite.lessons import widgets

POINTS = ((0, 1.0), (1, 1.0), (5, 0.0), (5, 1.0), (5, 2.0), (9, 4.0))
PROMPT, LENGTH = "To be", 12


def made(**changes):
    """A model whose recurrence matters: large couplings, gammas of all sizes."""
    torch.manual_seed(0)
    model = ps.build(ps.preset("byte-smoke").replace(**changes))
    with torch.no_grad():
        model.embedding.weight.mul_(20)
        for block in model.blocks:
            block.attractor.w_int.weight.mul_(3)
            block.attractor.gamma_param.add_(torch.rand_like(block.attractor.gamma_param))
    return model.eval()


@pytest.fixture(scope="module", params=["trained", "deployed"])
def model(request, tmp_path_factory):
    if request.param == "trained":
        return made()
    path = tmp_path_factory.mktemp("deployed") / "model.safetensors"
    deploy.export(made(), path)
    return deploy.load(path)


@pytest.fixture(scope="module")
def text():
    ids = torch.randint(256, (3, 41), generator=torch.Generator().manual_seed(1))
    return ids[:, :-1], ids[:, 1:]


@pytest.fixture(scope="module")
def grid(model, text):
    return em.measure(model, tokenizers.open("bytes"), *text, POINTS, PROMPT, LENGTH)


def really_changed(model, K: int, times: float):
    """A copy with another K in its configuration and other gammas among its numbers."""
    model = copy.deepcopy(model)
    model.cfg = model.cfg.replace(micro_steps=K)
    for block in model.blocks:
        block.attractor.cfg = model.cfg
        gamma = times * block.attractor.gamma()
        if hasattr(block.attractor, "damping"):
            block.attractor.damping = gamma
        else:
            block.attractor.gamma = lambda gamma=gamma: gamma
    return model


def bits(model, tokens, targets) -> float:
    """Per byte: every token is one, but for those that end a document."""
    size = (targets != tokenizers.open("bytes").end).sum().item()
    with torch.no_grad():
        return model.loss(tokens, targets).item() / math.log(2) * targets.numel() / size


@pytest.mark.parametrize("point", POINTS)
def test_numbers_are_those_of_a_changed_model(model, text, grid, point):
    changed = really_changed(model, *point)
    assert grid[point].bits == pytest.approx(bits(changed, *text), rel=1e-6)
    written = ps.stream(changed, tokenizers.open("bytes"), PROMPT, LENGTH, temperature=em.TEMPERATURE, seed=em.SEED)
    assert grid[point].text == "".join(written)
    for layer, steps in enumerate(grid[point].steps):
        z, w_int, gamma = fixed_points.layers(changed, text[0])[layer]
        tokens = z[:: len(z) // em.SAMPLE][: em.SAMPLE].split(1)
        changes = torch.stack([fixed_points.residuals(token, w_int, gamma, em.LIMIT) for token in tokens], 1)
        still = (changes < em.SETTLED).long().cumsum(0) == 0  # [LIMIT, tokens]
        count = [int(one) + 1 for one in still.sum(0)]
        middle = sorted(count)[(len(count) - 1) // 2]
        assert steps == (middle if middle <= em.LIMIT else None)


def test_bits_of_each_window(model, text, grid):
    here, other = (em.bits(model, [text], *point).item() for point in (em.USUAL, (0, 1.0)))
    assert other / here == pytest.approx(grid[0, 1.0].bits / grid[em.USUAL].bits, rel=1e-6)


def test_a_table_has_the_mean_and_the_error_of_the_windows(model, text):
    windows = [text, (text[0].flip(0)[:2], text[1].flip(0)[:2])]
    more = em.bits(model, windows, 0) - em.bits(model, windows, *em.USUAL)
    line, same = em.table(model, windows, [(0, 1.0), em.USUAL]).splitlines()
    mean, error = more.mean(), abs(more[0] - more[1]) / 2
    assert line == f"K = 0, couplings × 1: {mean:+.4f} ± {error:.4f} bits"
    assert same.endswith("+0.0000 ± 0.0000 bits")


def test_the_points_differ(grid):
    assert len({round(grid[point].bits, 5) for point in POINTS}) == len(POINTS) - 1, "only times 0 is K = 0 again"
    assert grid[5, 0.0].bits == pytest.approx(grid[0, 1.0].bits, rel=1e-6)
    assert grid[5, 0.0].text == grid[0, 1.0].text
    assert grid[5, 0.0].steps == (1,) * len(grid[5, 1.0].steps)


def test_the_model_is_left_as_it_was(model, text, grid):
    before = [block.attractor for block in model.blocks]
    logits = model(text[0])
    with em.varied(model, [(2, 3.0)]):
        assert not torch.equal(model(text[0]), logits)
    with pytest.raises(ZeroDivisionError), em.varied(model, [(2, 3.0)]):
        raise ZeroDivisionError
    assert torch.equal(model(text[0]), logits)
    assert all(block.attractor is was for block, was in zip(model.blocks, before, strict=True))
    assert not model.training
    model.train()
    with em.varied(model, [(2, 3.0)]):
        assert not model.training
    assert model.training
    model.eval()


def test_factor_zero_is_computed_once(model, text, monkeypatch):
    calls, loss = [], model.loss
    monkeypatch.setattr(model, "loss", lambda *args: calls.append(1) or loss(*args))
    points = [(K, times) for K in (0, 1, 2, 3) for times in (0.0, 1.0)]
    em.measure(model, tokenizers.open("bytes"), *text, points, PROMPT, 1)
    assert len(calls) == 5


def test_a_redraw_calls_no_model(model, grid, monkeypatch):
    calls = []
    monkeypatch.setattr(type(model), "hidden", lambda *args: calls.append("hidden"))
    monkeypatch.setattr(attractor, "spin", lambda *args: calls.append("spin"))
    monkeypatch.setattr(em, "spin", lambda *args: calls.append("spin"))
    explorer = widgets.Explorer(
        em.draw_grid({point: seen for point, seen in grid.items() if point[0] == 5}),
        "trial",
        K=ipw.SelectionSlider(options=[5, 6]),
        times=ipw.SelectionSlider(options=[0.0, 1.0, 2.0], value=1.0),
    )

    def read(name):
        return re.search(f'data-name="{name}"[^>]*>([^<]*)<', explorer.numbers.value)[1]

    seen = []
    for times in (0.0, 1.0, 2.0):
        explorer.controls["times"].value = times
        assert read("bits per byte") == f"{grid[5, times].bits:.3f}"
        seen.append(explorer.picture.value)
    assert len(set(seen)) == 3
    assert calls == []
    explorer.controls["K"].value = 6
    assert "ValueError: K, times: got (6, 2.0), expected K one of [5]" in explorer.numbers.value


def test_lines_are_named_beside_the_panel_with_room_for_each():
    """Two lines that end at the same place, and one that ends elsewhere."""
    seen = {(K, times): em.Seen(2.0 + K * (times == 3), (1,), "") for K in (0, 1) for times in (1.0, 2.0, 3.0)}
    figure, _ = em.draw_grid(seen, usual=(1, 1.0))(K=1, times=1.0)
    at = {text: y for panel, _, y, text, _ in figure.texts if panel == 0}
    assert set(at) == {"× 1.0", "× 2.0", "× 3.0"}
    panel = figure.panels[0]
    low, high = panel.ylim
    assert min(abs(at[a] - at[b]) for a in at for b in at if a != b) >= 0.99 * (high - low) / 15
    assert at["× 3.0"] > max(at["× 1.0"], at["× 2.0"]) + 0.5
    right = 72 * figure.size[0] * (panel.place[0] + panel.place[2])
    places = [float(x) for x in re.findall(r'<text x="([0-9.]+)"[^>]*>× ', figure.svg())]
    assert len(places) == 3
    assert min(places) > right + 5


def test_texts_are_marked_where_they_part():
    seen = {(5, 1.0): em.Seen(2.0, (3, None), "the Union\nis"), (0, 1.0): em.Seen(2.25, (1, 2), "the <nion\nis")}
    figure, numbers = em.draw_grid(seen)(K=0, times=1.0)
    assert numbers["above the model as it is"] == "+0.250"
    shown = widgets.table(numbers)
    assert ">the <mark>&lt;</mark>nion⏎is</code>" in shown
    assert ">the <mark>U</mark>nion⏎is</code>" in shown
    assert em.draw_grid(seen)(K=5, times=1.0)[1]["steps to settle, by layer"] == "3, >30"
    assert "<mark>" not in widgets.table(em.draw_grid(seen)(K=5, times=1.0)[1])
    assert figure.svg().count("<circle") == 2 + 1 + 2, "two dots of a line, the point, two layers as they are"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        (dict(points=[]), "points: got none"),
        (dict(points=[(-1, 1.0)]), "K: got -1, expected an integer >= 0"),
        (dict(points=[(1.0, 1.0)]), "K: got 1.0, expected an integer >= 0"),
        (dict(points=[(1, math.nan)]), "times: got nan, expected a finite number"),
        (dict(points=[(1, "2")]), "times: got '2', expected a finite number"),
    ],
)
def test_bad_points_are_named(model, text, changes, complaint):
    with pytest.raises(ValueError, match=re.escape(complaint)):
        em.measure(model, tokenizers.open("bytes"), *text, **changes)


def test_bad_models_are_named(text):
    torch.manual_seed(0)
    for cfg, came in (
        (ps.preset("transformer-smoke"), "TransformerLM"),
        (ps.preset("byte-smoke").replace(tol=1e-3), "one that stops by itself (tol 0.001)"),
    ):
        with pytest.raises(ValueError, match=re.escape(f"model: got {came}, expected")):
            em.measure(ps.build(cfg), tokenizers.open("bytes"), *text)
    with pytest.raises(ValueError, match="grid: got no point"):
        em.draw_grid({})
