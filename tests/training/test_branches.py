"""Which parts of a network speak: sizes, shares and silence, each against what is counted by hand."""

from __future__ import annotations

import copy

import pytest
import torch

import pspin_lite as ps
from pspin_lite.config import AblationConfig, to_dict
from pspin_lite.data import sequences
from pspin_lite.training import branches, evaluation, recipe

CONFIGS = [ps.preset(name) for name in ("byte-smoke", "subword-smoke", "transformer-smoke")]
NO_MLP = AblationConfig(**{k: v for k, v in to_dict(CONFIGS[0]).items() if k != "kind"}, mlp="none")


def made(cfg):
    torch.manual_seed(0)
    return ps.build(cfg), torch.randint(cfg.vocab, (2, 17))


@pytest.mark.parametrize("cfg", [*CONFIGS, NO_MLP], ids=["bytes", "subwords", "transformer", "no mlp"])
def test_sizes_add_up(cfg):
    """The first stream is the embedding; with all branches silent the last one is too."""
    model, tokens = made(cfg)
    result = branches.sizes(model, tokens)
    kinds = branches.branches(model)
    assert kinds.keys() == ({"mixer"} if cfg is NO_MLP else {"mixer", "mlp"})
    assert result["stream"][0] == pytest.approx(model.embedding(tokens).pow(2).mean().sqrt().item(), rel=1e-5)
    assert len(result["stream"]) == cfg.layers + 1
    assert all(len(result[kind]) == cfg.layers and min(result[kind]) > 0 for kind in kinds)
    with branches.silenced(one for modules in kinds.values() for one in modules):
        silent = branches.sizes(model, tokens)
        torch.testing.assert_close(model(tokens), model.head(model.norm(model.embedding(tokens))))
    assert silent["stream"] == [result["stream"][0]] * (cfg.layers + 1)
    assert branches.sizes(model, tokens) == result, "no hook is left behind"


def test_a_branch_of_known_size():
    model, tokens = made(CONFIGS[0])
    first = model.blocks[0].attractor.w_down
    first.weight.data.zero_()
    assert branches.sizes(model, tokens)["mlp"][0] == 0
    score = lambda: model.loss(tokens[:, :-1], tokens[:, 1:]).item()  # noqa: E731
    without = branches.without(model, score)
    assert without["mlp"][0] == score(), "silencing what is silent changes nothing"
    assert without["mlp"][1] != score()
    assert without["mixer"][0] != score()
    assert without["mlp"][2] == without["mlp"][1], "all: the first says nothing anyway"


@pytest.mark.parametrize("cfg", CONFIGS, ids=["bytes", "subwords", "transformer"])
def test_shares_are_those_of_a_step_and_change_nothing(cfg):
    model, tokens = made(cfg)
    optimizer = recipe.optimizer(model)
    loss = lambda one: one.loss(tokens[:, :-1], tokens[:, 1:])  # noqa: E731
    for rate in (1e-3, 2e-3):  # at the first step, and with moments
        before, state = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
        shares = branches.shares(model, optimizer, rate, loss)
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
        assert str(optimizer.state_dict()) == str(state)
        optimizer.zero_grad()
        loss(model).backward()
        squares = {name: p.grad.double().pow(2).sum().item() for name, p in model.named_parameters()}
        recipe.finish_step(model, optimizer, rate, recipe.gradient_norm(model))
        moved = {name: (p - before[name]).double().pow(2).sum().item() for name, p in model.named_parameters()}
        for kind, each in dict(gradient=squares, update=moved).items():
            assert sum(shares[kind].values()) == pytest.approx(1)
            assert shares[kind]["embedding"] == pytest.approx(each["embedding.weight"] / sum(each.values()), rel=1e-4)
    assert shares["update"].keys() <= set(branches.PARTS)
    if cfg is not CONFIGS[2]:
        assert {"w_ext", "w_int", "w_down", "gamma_param"} <= shares["gradient"].keys()


def test_windows_add_up_to_the_score(texts):
    model, _ = made(CONFIGS[0])
    split = next(iter(sequences.corpora.open(texts).splits))
    data = sequences.open(texts, "bytes", split=split, length=16)
    rows, whole = evaluation.by_window(model, data), evaluation.evaluate(model, data)
    assert sum(nats for _, nats, _ in rows) == pytest.approx(whole["nats_per_token"] * whole["tokens"], rel=1e-5)
    assert sum(size for *_, size in rows) == whole["bytes"]
    numbers = [document for document, *_ in rows]
    assert numbers == sorted(numbers)
    assert numbers[0] == 0
    assert numbers[-1] == data.documents - 1
    assert len(evaluation.by_window(model, data, 3)) == 3


def test_parts_of_every_parameter():
    for cfg in (*CONFIGS, NO_MLP):
        names = [name for name, _ in ps.build(cfg).named_parameters()]
        parts = {name: branches.part(name) for name in names}
        assert set(parts.values()) <= set(branches.PARTS)
        assert parts["norm.weight"] == "norm"
        assert parts["embedding.weight"] == "embedding"
        assert all(part == "mixer" for name, part in parts.items() if name.endswith(("w_q.weight", "w_o.weight")))
