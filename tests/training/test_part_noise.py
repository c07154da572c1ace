"""The noise and the harm of each part of a network, against what is computed plainly."""

from __future__ import annotations

import copy
import statistics

import faulty
import pytest
import torch

import pspin_lite as ps
from pspin_lite import _files as files
from pspin_lite.training import branches, part_noise, recipe
from pspin_lite.training.gradient_noise import noise_scale

RATE = 1e-3


def loss(model, batch):
    return model.loss(batch[:, :-1], batch[:, 1:])


@pytest.fixture(scope="module", params=["byte-smoke", "transformer-smoke"])
def trained(request):
    """(model, optimizer with moments, sequences)"""
    cfg = ps.preset(request.param)
    torch.manual_seed(0)
    model, batch = ps.build(cfg), torch.randint(cfg.vocab, (12, 17))
    optimizer = recipe.optimizer(model)
    for row in batch[:3]:
        optimizer.zero_grad()
        loss(model, row[None]).backward()
        recipe.finish_step(model, optimizer, RATE, recipe.gradient_norm(model))
    optimizer.zero_grad()
    return model, optimizer, batch


def measured(trained):
    model, optimizer, batch = trained
    text = batch[8:]
    return part_noise.measure(model, optimizer, RATE, batch[:8], loss, lambda m: loss(m, text).item())


def test_parts_hold_every_parameter_once_and_the_mlp_once_more(trained):
    names = part_noise.members(trained[0])
    single = [name for part, some in names.items() if part != part_noise.WHOLE for name in some]
    assert sorted(single) == sorted(name for name, _ in trained[0].named_parameters())
    mlp = {name for name in single if ".mlp." in name or ".attractor." in name}
    assert set(names[part_noise.WHOLE]) == mlp
    assert {"embedding", "mixer", "norm"} < names.keys() <= {*branches.PARTS, part_noise.WHOLE}


def test_the_noise_of_a_part_is_that_of_its_parameters(trained):
    model, _, batch = trained
    result, names = measured(trained), part_noise.members(model)
    parameters = dict(model.named_parameters())
    for part in ("embedding", part_noise.WHOLE):
        some = [parameters[name] for name in names[part]]
        expected = noise_scale(lambda row: loss(model, row), some, batch[:8])
        assert result[part]["scale"] == pytest.approx(expected["scale"], rel=1e-3)
    assert sum(result[part]["share"] for part in result if part != part_noise.WHOLE) == pytest.approx(1)
    assert sum(result[part]["adam_share"] for part in result if part != part_noise.WHOLE) == pytest.approx(1)


def test_adams_view_divides_as_its_next_step_does(trained):
    """By the root of the mean square of the gradients so far, recomputed here from the gradients themselves."""
    model, optimizer, batch = trained
    torch.manual_seed(0)
    fresh = ps.build(model.cfg)
    stepper = recipe.optimizer(fresh)
    sums = {name: torch.zeros_like(p) for name, p in fresh.named_parameters()}
    for row in batch[:3]:
        stepper.zero_grad()
        loss(fresh, row[None]).backward()
        norm = recipe.gradient_norm(fresh)
        recipe.finish_step(fresh, stepper, RATE, norm)  # clips the gradients in place
        for name, p in fresh.named_parameters():
            sums[name] = 0.999 * sums[name] + 0.001 * p.grad**2
    divisors = part_noise.divisors(model, optimizer)
    for name, total in sums.items():
        torch.testing.assert_close(divisors[name], (total / (1 - 0.999**3)).sqrt() + 1e-8, rtol=1e-3, atol=1e-9)
    names = part_noise.members(model)["embedding"]
    norms = []
    for row in batch[:8]:
        (g,) = torch.autograd.grad(loss(model, row[None]), [dict(model.named_parameters())[names[0]]])
        norms.append((g / divisors[names[0]]).norm().item())
    assert measured(trained)["embedding"]["adam_tail"] == pytest.approx(max(norms) / statistics.median(norms), rel=1e-3)


def test_before_the_first_step_adam_divides_by_nothing():
    torch.manual_seed(0)
    model = ps.build(ps.preset("byte-smoke"))
    assert set(part_noise.divisors(model, recipe.optimizer(model)).values()) == {1.0}


def test_harm_is_what_a_step_of_that_part_alone_does(trained):
    model, optimizer, batch = trained
    before, state = copy.deepcopy(model.state_dict()), str(optimizer.state_dict())
    result = measured(trained)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert str(optimizer.state_dict()) == state, "nothing is changed"
    changes, text = [], batch[8:]
    for row in batch[:8]:
        twin = copy.deepcopy(model)
        stepper = recipe.optimizer(twin)
        stepper.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        stepper.zero_grad()
        loss(twin, row[None]).backward()
        recipe.finish_step(twin, stepper, RATE, recipe.gradient_norm(twin))
        moved = copy.deepcopy(model)
        moved.embedding.weight.data.copy_(twin.embedding.weight)
        changes.append(loss(moved, text).item() - loss(model, text).item())
    assert result["embedding"]["change"] == pytest.approx(statistics.mean(changes), abs=1e-5)
    assert result["embedding"]["rises"] == pytest.approx(statistics.mean(x > 0 for x in changes))


def test_a_run_records_its_parts_if_asked_and_is_the_same_run(tmp_path, texts):
    plain = faulty.train(tmp_path / "plain", texts, probe_every=5)
    asked = faulty.train(tmp_path / "asked", texts, probe_every=5, probe_parts=True)
    assert faulty.result(plain)[0] == faulty.result(asked)[0], "other weights"
    assert "parts" not in plain.metrics("noise")[0]
    one = asked.metrics("noise")[0]
    assert one["parts"][part_noise.WHOLE].keys() == {
        *(view + name for view in ("", "adam_") for name in ("share", "scale", "tail")),
        "rises",
        "change",
    }  # fmt: skip
    path = tmp_path / "plain" / "config.json"
    before = files.read_json(path)
    del before["training"]["probe_parts"]
    files.write_json(path, before)
    assert ps.resume(tmp_path / "plain", show=False).summary, "a run from before there was that setting goes on"
