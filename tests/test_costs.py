"""The paper's tables to the last digit, and its complexity formulas against what a run really does."""

from __future__ import annotations

import pytest
import torch
from helpers import message

import pspin_lite as ps
from pspin_lite import costs
from pspin_lite.tools import measure
from pspin_lite.training import recipe


@pytest.mark.eq("tab-footprint")
@pytest.mark.parametrize(
    ("name", "rows", "total"),
    [
        (
            "byte-paper",
            {"embedding": (0.18, 32, 0.69), "ternary MLP": (45.09, 2, 10.75), "state space": (15.69, 16, 29.93)},
            (60_963_008, 60.96, 41.37, 116.62),
        ),
        (
            "subword-paper",
            {"embedding": (26.74, 32, 102.00), "ternary MLP": (21.99, 2, 5.24), "state space": (8.99, 16, 17.15)},
            (57_719_072, 57.72, 124.40, 161.09),
        ),
    ],
)
def test_table_of_the_p_spin_models(name, rows, total):
    table = ps.footprint(ps.preset(name))
    for row, (millions, bits, mb) in rows.items():
        assert (round(table[row].params / 1e6, 2), table[row].bits, round(table[row].mb, 2)) == (millions, bits, mb)
    result = (table.params, round(table.params / 1e6, 2), round(table.mb, 2), round(table.uncompressed_mb, 2))
    assert result == total
    assert table["ternary MLP"].uncompressed_bits / table["ternary MLP"].bits == 8  # the paper's 8x
    assert all(f"{value:.2f}" in str(table) for value in total[2:])


@pytest.mark.eq("tab-baseline")
def test_table_of_the_baseline():
    table = ps.footprint(ps.preset("transformer-paper"))
    assert (table.params, table["embedding"].params, table["non-embedding"].params) == (
        60_569_600,
        25_165_824,
        35_403_776,
    )


@pytest.mark.parametrize("name", ps.presets())
def test_tables_count_what_is_built(name):
    cfg = ps.preset(name)
    with torch.device("meta"):
        model = ps.build(cfg)
    table = ps.footprint(cfg)
    assert sum(p.numel() for p in model.parameters()) == table.params
    assert model.embedding.weight.numel() == table["embedding"].params
    ternary = sum(m.weight.numel() for m in model.modules() if isinstance(m, ps.ternary.TernaryLinear))
    if "transformer" not in name:
        assert ternary == table["ternary MLP"].params


@pytest.mark.eq("cost-params")
def test_bits_of_a_layer():
    cfg = ps.preset("byte-paper")
    assert costs.layer_bits(cfg) == 80 * 704**2 + 2 * (2 * 704 * 2048 + 2 * 2048**2)
    # What the formula leaves out of the table: W_down, norms, gamma.
    left_out = 16 * (704 * 2048 + 2 * 704 + 2048)
    table = ps.footprint(cfg)
    layers_only = (table["ternary MLP"].bytes + table["state space"].bytes - 704 * 2) * 8
    assert 4 * (costs.layer_bits(cfg) + left_out) == layers_only


@pytest.mark.eq("cost-ssm", "cost-pspin")
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize(
    "change",
    [{}, dict(micro_steps=0), dict(implicit=False), dict(micro_steps=2, chunk=16), dict(width=24, inner=36)],
    ids=str,
)
def test_flops_are_what_a_counter_counts(batch, change):
    cfg = ps.preset("byte-lite").replace(width=32, heads=2, inner=40, layers=2, vocab=50, context=64).replace(**change)
    model = ps.build(cfg)
    tokens = torch.zeros(batch, 64, dtype=torch.long)
    assert costs.flops(cfg, batch).total == measure.flops(lambda: model(tokens))
    step = measure.flops(lambda: model.loss(tokens, tokens).backward())
    assert costs.flops(cfg, batch, backward=True).total == step


def test_attention_is_counted_on_a_cpu_too():
    """torch's counter does not know the CPU's fused attention. Full square: two products forward, five backward."""
    cfg = ps.preset("transformer-lite").replace(vocab=256, width=32, heads=2, inner=40, layers=3, context=64)
    model, tokens = ps.build(cfg), torch.zeros(2, 64, dtype=torch.long)
    # All matrices but the embedding's look-up; the tied head is one of them.
    matrices = sum(p.numel() for p in model.parameters() if p.ndim == 2)
    square = 3 * 2 * 64 * 64 * cfg.heads * cfg.head_width  # layers, sequences, T, T, ..
    assert measure.flops(lambda: model(tokens)) == 2 * matrices * 2 * 64 + 2 * 2 * square
    step = measure.flops(lambda: model.loss(tokens, tokens).backward())
    assert step == 6 * matrices * 2 * 64 + 7 * 2 * square


@pytest.mark.eq("cost-ssm", "cost-pspin")
def test_costs_grow_as_the_paper_says():
    cfg = ps.preset("byte-paper")
    base, twice = costs.flops(cfg), costs.flops(cfg, tokens=4096)
    assert twice.total == 2 * base.total, "linear in T"
    assert costs.flops(cfg, batch=3).total == 3 * base.total
    assert costs.flops(cfg).head / costs.flops(cfg.replace(vocab=49152)).head == 256 / 49152
    more = costs.flops(cfg.replace(micro_steps=10)).attractor - base.attractor
    assert more == 4 * 5 * 2 * 2048 * 2 * 2048**2, "five more products in four layers"
    assert costs.flops(cfg, backward=True).total == pytest.approx(1.9e12, rel=0.05)
    assert costs.flops(ps.preset("subword-paper"), backward=True).total == pytest.approx(0.65e12, rel=0.1)


@pytest.mark.eq("act-pspin")
@pytest.mark.parametrize("steps", [1, 5, 20])
@pytest.mark.parametrize(("name", "tokens"), [("byte-lite", 256), ("byte-lite", 100), ("subword-lite", 30)])
def test_saved_memory_is_predicted(name, tokens, steps):
    cfg = ps.preset(name).replace(layers=1, micro_steps=steps)
    block = ps.build(cfg).blocks[0]
    x = torch.randn(2, tokens, cfg.width, requires_grad=True)
    measured = measure.saved_bytes(lambda: block(x, None), besides=tuple(block.parameters()))
    assert measured == sum(costs.saved_bytes(cfg, batch=2, tokens=tokens).values())


@pytest.mark.parametrize(
    ("name", "change", "batch", "tokens"),
    [
        ("byte-lite", {}, 1, 512),
        ("byte-lite", dict(chunk=128, micro_steps=2), 3, 200),
        ("subword-lite", {}, 1, 256),
        ("subword-lite", {}, 8, 256),  # two pieces of logits, one at a time
        ("byte-lite", dict(width=60, heads=3, inner=100, layers=3, vocab=300), 3, 77),
        ("byte-lite", dict(width=64, inner=1024, layers=1), 2, 300),  # the attractor is all
        ("byte-lite", dict(width=256, inner=512), 1, 64),  # all gradients and little else
    ],
    ids=str,
)
def test_peak_memory_of_a_training_step_is_predicted(name, change, batch, tokens):
    """Within 6% above weights and moments, which are exact."""
    cfg = ps.preset(name).replace(**change)
    model = ps.build(cfg)
    optimizer = recipe.optimizer(model)
    ids = torch.randint(cfg.vocab, (batch, tokens + 1))

    def step() -> None:
        model.loss(ids[:, :-1], ids[:, 1:]).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
        optimizer.step()

    step()  # the moments are made
    optimizer.zero_grad()
    predicted, measured = costs.step_bytes(cfg, batch, tokens), measure.peak_bytes(step)
    assert predicted.weights == sum(p.nbytes for p in model.parameters())
    kept = [x for state in optimizer.state.values() for x in state.values() if x.ndim]
    assert predicted.moments == sum(x.nbytes for x in kept)
    assert predicted.peak - predicted.weights - predicted.moments == pytest.approx(measured, rel=0.06)


def test_peak_memory_of_the_papers_models():
    """What to expect before a run is started: under 2 GB at batch 1."""
    for name, gigabytes in (("byte-paper", 1.6), ("subword-paper", 1.1)):
        assert costs.step_bytes(ps.preset(name)).peak / 1e9 == pytest.approx(gigabytes, rel=0.1)


def test_bad_arguments_are_named():
    for call, words in [
        (lambda: ps.footprint("byte-paper"), ["cfg", "str"]),
        (lambda: costs.flops(ps.preset("transformer-lite")), ["cfg", "TransformerConfig", "PSpinConfig"]),
        (lambda: costs.flops(ps.preset("byte-lite"), batch=0), ["batch", "0"]),
        (lambda: costs.saved_bytes(ps.preset("byte-lite").replace(implicit=False)), ["cfg", "implicit=False"]),
        (lambda: costs.step_bytes(ps.preset("transformer-lite")), ["cfg", "TransformerConfig", "PSpinConfig"]),
        (lambda: costs.step_bytes(ps.preset("byte-lite"), batch=0), ["batch", "0"]),
        (lambda: ps.footprint(ps.preset("byte-lite"))["mlp"], ["component", "mlp", "ternary MLP"]),
    ]:
        with pytest.raises(ValueError) as raised:
            call()
        assert all(word in message(raised) for word in words), message(raised)
