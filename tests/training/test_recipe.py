"""The recipe: which weights decay, the schedule, clipping. A run against a loop written out is in test_training.py."""

from __future__ import annotations

import dataclasses
import functools

import pytest
import torch

import pspin_lite as ps
from pspin_lite import config
from pspin_lite.training import recipe


def small(name: str, **changes) -> torch.nn.Module:
    return ps.build(ps.preset(f"{name}-smoke").replace(**changes))


@pytest.mark.parametrize("name", ["byte", "transformer"])
def test_parameter_groups_hold_everything_once(name):
    model = small(name)
    matrices, vectors = recipe.parameter_groups(model)
    assert {id(p) for p in matrices["params"] + vectors["params"]} == {id(p) for p in model.parameters()}
    assert all(p.ndim == 2 for p in matrices["params"])
    assert all(p.ndim == 1 for p in vectors["params"])
    assert (matrices["weight_decay"], vectors["weight_decay"]) == (0.05, 0.0)
    assert recipe.parameter_groups(small(name, decay_vectors=True))[1]["weight_decay"] == 0.05


@pytest.mark.parametrize("clip", [0.01, 1e9])
def test_a_step_is_clipped_and_taken_at_the_rate(clip):
    """Against torch's own clipping, and AdamW at that rate from the start."""
    models = []
    for by_hand in (True, False):
        torch.manual_seed(0)
        model = small("byte", clip=clip)
        optimizer = recipe.optimizer(model)
        tokens = torch.arange(34).view(2, 17)
        model.loss(tokens[:, :-1], tokens[:, 1:]).backward()
        if by_hand:
            optimizer = torch.optim.AdamW(recipe.parameter_groups(model), lr=0.007, betas=model.cfg.betas, fused=True)
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
        else:
            recipe.finish_step(model, optimizer, 0.007, recipe.gradient_norm(model))
        models.append([*model.parameters(), *(p.grad for p in model.parameters())])
    assert all(torch.equal(a, b) for a, b in zip(*models, strict=True))


def test_sgd_has_no_momentum_and_no_state():
    """Two steps written out: clipped gradients and decay, times the rate."""
    torch.manual_seed(0)
    model = small("byte", optimizer="sgd", clip=0.5, betas=(0.5, 0.6))
    optimizer = recipe.optimizer(model)
    expected = {name: p.detach().clone() for name, p in model.named_parameters()}
    tokens = torch.arange(34).view(2, 17)
    for rate in (0.07, 0.2):
        optimizer.zero_grad()
        model.loss(tokens[:, :-1], tokens[:, 1:]).backward()
        norm = recipe.gradient_norm(model)
        assert norm > 0.5
        for name, p in model.named_parameters():
            decay = 0.05 if p.ndim == 2 else 0.0
            expected[name] -= rate * (p.grad * 0.5 / (norm + 1e-6) + decay * expected[name])
        recipe.finish_step(model, optimizer, rate, norm)
        for name, p in model.named_parameters():
            torch.testing.assert_close(p.detach(), expected[name])
    assert not optimizer.state


def test_schedule():
    cfg = ps.preset("byte-paper")
    rate = functools.partial(recipe.learning_rate, cfg)
    assert rate(0) == pytest.approx(8e-4 / 500)
    assert rate(249) == pytest.approx(4e-4)
    assert rate(499) == rate(500) == rate(6999) == 8e-4
    assert rate(7499) == pytest.approx(8e-4 * 0.55)  # half way down the cosine
    assert rate(7999) == pytest.approx(8e-5)
    falling = [rate(s) for s in range(6999, 8000)]
    assert falling == sorted(falling, reverse=True)


@pytest.mark.parametrize("steps", [1, 2, 10, 100, 1500, 1501])
def test_schedule_of_short_runs_keeps_both_ends(steps):
    cfg = ps.preset("byte-paper").replace(steps=steps)
    rates = [recipe.learning_rate(cfg, s) for s in range(steps)]
    assert rates[-1] == pytest.approx(8e-5)
    assert max(rates) <= 8e-4
    assert steps < 10 or max(rates) > 7.5e-4


def test_schedule_without_ramps():
    cfg = ps.preset("byte-paper").replace(steps=5, warmup=0, cooldown=0)
    assert [recipe.learning_rate(cfg, s) for s in range(7)] == [8e-4] * 7, "also beyond the end"


def test_a_late_rate_is_that_of_the_second_half():
    base = ps.preset("byte-smoke").replace(steps=100, warmup=10, cooldown=20)
    names = {f.name for f in dataclasses.fields(base)}
    cfg = config.VariantConfig(**{name: getattr(base, name) for name in names}, late_rate=0.25)
    before, after = ([recipe.learning_rate(one, s) for s in range(100)] for one in (base, cfg))
    assert after[:50] == before[:50]
    assert after[50:] == pytest.approx([rate / 4 for rate in before[50:]])


def test_schedule_counts_from_zero():
    with pytest.raises(ValueError, match="step: got -1"):
        recipe.learning_rate(ps.preset("byte-lite"), -1)
