"""Presets, their checks and the schedule."""

from __future__ import annotations

import dataclasses
import math

import pytest
from helpers import message

import pspin_lite as ps
from pspin_lite import config


def test_presets_are_the_papers_appendix():
    assert ps.presets() == [
        *("byte-paper", "subword-paper", "transformer-paper"),
        *("byte-lite", "subword-lite", "transformer-lite", "byte-mended"),
        *("byte-smoke", "subword-smoke", "transformer-smoke"),
    ]
    byte, subword, baseline = (ps.preset(f"{n}-paper") for n in ("byte", "subword", "transformer"))
    for cfg in (byte, subword):
        assert (cfg.layers, cfg.heads, cfg.micro_steps, cfg.chunk) == (4, 8, 5, 128)
        assert (cfg.batch, cfg.steps, cfg.lr, cfg.warmup, cfg.cooldown) == (1, 8000, 8e-4, 500, 1000)
        assert (cfg.min_ratio, cfg.weight_decay, cfg.clip, cfg.seed) == (0.1, 0.05, 1.0, 1337)
        assert cfg.tol is None
        assert cfg.implicit
    assert (byte.width, byte.inner, byte.vocab, byte.context) == (704, 2048, 256, 2048)
    assert (subword.width, subword.inner, subword.vocab, subword.context) == (544, 1408, 49152, 1024)
    assert (baseline.batch, baseline.steps, baseline.vocab, baseline.context) == (64, 1000, 49152, 1024)


def test_lite_presets_are_small_and_of_the_same_kind():
    for kind in ("byte", "subword", "transformer"):
        lite, paper = ps.preset(f"{kind}-lite"), ps.preset(f"{kind}-paper")
        assert type(lite) is type(paper)
        assert 0.9e6 < ps.footprint(lite).params < 1.3e6
        assert (lite.batch, lite.steps, lite.lr) == (paper.batch, paper.steps, paper.lr)


def test_frozen_and_replaceable():
    cfg = ps.preset("byte-lite")
    with pytest.raises(dataclasses.FrozenInstanceError):
        cfg.steps = 3
    assert cfg.replace(steps=2).steps == 2
    assert cfg.steps == 8000


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda c: ps.preset("byte-paper2"),
            ["preset", "byte-paper2", "did you mean 'byte-paper'", "transformer-lite"],
        ),
        (lambda c: ps.preset(None), ["preset", "None", "byte-lite"]),
        (lambda c: c.replace(step=2), ["step", "did you mean 'steps'"]),
        (lambda c: c.replace(kv_heads=2), ["kv_heads", "heads"]),
        (lambda c: c.replace(layers=0), ["layers", "0", ">= 1"]),
        (lambda c: c.replace(layers=True), ["layers", "True"]),
        (lambda c: c.replace(width=130), ["width", "130", "multiple of heads (4)"]),
        (lambda c: c.replace(micro_steps=-1), ["micro_steps", "-1", ">= 0"]),
        (lambda c: c.replace(lr=math.inf), ["lr", "inf"]),
        (lambda c: c.replace(lr="8e-4"), ["lr", "8e-4"]),
        (lambda c: c.replace(lr=0), ["lr", "0", "above 0"]),
        (lambda c: c.replace(min_ratio=1.5), ["min_ratio", "1.5", "0 to 1"]),
        (lambda c: c.replace(betas=(0.9, 1.0)), ["betas", "1.0"]),
        (lambda c: c.replace(betas=("a", "b")), ["betas", "a"]),
        (lambda c: c.replace(betas=[0.9, 0.99]), ["betas", "tuple"]),
        (lambda c: c.replace(optimizer="sdg"), ["optimizer", "'sdg'", "did you mean 'sgd'", "adamw"]),
        (lambda c: c.replace(tol=1e-3, implicit=False), ["tol", "implicit=False"]),
        (lambda c: c.replace(tol=2), ["tol", "2"]),
        (lambda c: c.replace(chunk=0), ["chunk", "0"]),
        (lambda c: c.replace(implicit=1), ["implicit", "1", "True or False"]),
        (lambda c: c.replace(gamma_start=math.nan), ["gamma_start", "nan"]),
        (lambda c: c.replace(name=""), ["name", "non-empty"]),
        (lambda c: ps.preset("transformer-lite").replace(kv_heads=3), ["kv_heads", "3", "divisor of heads (4)"]),
        (lambda c: ps.preset("transformer-lite").replace(head_width=7), ["head_width", "7", "even"]),
    ],
)
def test_bad_values_are_named(call, words):
    with pytest.raises(ValueError) as raised:
        call(ps.preset("byte-lite"))
    assert all(word in message(raised) for word in words), message(raised)


def test_what_was_added_later_is_told_only_if_it_was_chosen():
    """So files from before stay as they are, and can be read."""
    base = ps.preset("byte-lite")
    values = {f.name: getattr(base, f.name) for f in dataclasses.fields(base)}
    plain, chosen = config.VariantConfig(**values), config.VariantConfig(**values, gamma_range=1.0, late_rate=0.5)
    later = {"optimizer", "coupling_gain", "gamma_range", "penalty", "late_rate"}
    assert later.isdisjoint(config.to_dict(plain))
    assert config.to_dict(chosen).items() - config.to_dict(plain).items() == {("gamma_range", 1.0), ("late_rate", 0.5)}
    assert config.from_dict(config.to_dict(plain)) == plain
    assert config.from_dict(config.to_dict(chosen)) == chosen
    with pytest.raises(ValueError, match="mixer_gain"):
        config.from_dict({key: value for key, value in config.to_dict(plain).items() if key != "mixer_gain"})
