"""The ablations: each differs from the paper's network in its one part and in nothing else."""

from __future__ import annotations

import copy
import dataclasses

import pytest
import torch
from helpers import message

import pspin_lite as ps
from pspin_lite import _mended as mended
from pspin_lite import config, costs
from pspin_lite.config import AblationConfig, VariantConfig
from pspin_lite.training import recipe
from pspin_lite.variants import NONLINEARITIES, AblationLM

BASE = ps.preset("byte-smoke")
VARIANTS = [
    *(dict(mixer=mixer, mlp=mlp) for mixer in ("state space", "attention") for mlp in ("attractor", "spin", "swiglu")),
    *(dict(mlp=mlp, ternary=False) for mlp in ("attractor", "spin")),
    dict(mixer="long state space"),
    dict(mlp="none"),
]
MENDED = [
    *(dict(mlp="spin", nonlinearity=name, ternary=ternary) for name in NONLINEARITIES for ternary in (True, False)),
    *(dict(convolution=how, mixer=mixer) for how in ("plain", "silu") for mixer in ("state space", "attention")),
    *(dict(mlp="spin", **{part: True}) for part in ("norm_qk", "norm_state", "norm_down", "output_gate")),
    dict(gate="spread"),
    dict(gate="spread", norm_qk=True, norm_state=True, output_gate=True, convolution="silu", mlp="swiglu"),
    dict(mixer_gain=0.5, down_gain=2.0),
    *(dict(nonlinearity="tanh tanh", ternary=ternary, implicit=ternary) for ternary in (True, False)),
    dict(mixer="attention", output_gate=True, convolution="silu"),
    *(dict(nonlinearity="tanh tanh", gamma_range=1.0, implicit=implicit) for implicit in (True, False)),
    dict(penalty=1.0, coupling_gain=2.0),
]


def ablation(**changes) -> AblationConfig:
    return AblationConfig(**{f.name: getattr(BASE, f.name) for f in dataclasses.fields(BASE)} | changes)


def variant(**changes) -> VariantConfig:
    return VariantConfig(**dataclasses.asdict(ablation()) | changes)


def _changed(cfg: AblationConfig) -> str:
    same = ablation() if type(cfg) is AblationConfig else variant()
    return ",".join(f"{k}={v}" for k, v in dataclasses.asdict(cfg).items() if v != getattr(same, k)) or "nothing"


def tokens(batch: int = 2, length: int = 21) -> torch.Tensor:
    return torch.randint(256, (batch, length), generator=torch.Generator().manual_seed(0))


def copied(source: ps.language_model.LanguageModel, target: AblationLM, names: dict[str, str]) -> None:
    """The source's weights into the target, under other names."""
    weights = dict(source.named_parameters())
    new = {}
    for name in dict(target.named_parameters()):
        old = name
        for here, there in names.items():
            old = old.replace(here, there)
        new[name] = weights[old]
    target.load_state_dict(new)


P_SPIN = {".mixer.": ".state_space.", "norm_mixer": "norm_ssm", "norm_mlp": "norm_spin", ".mlp.": ".attractor."}


def test_with_nothing_exchanged_it_is_the_papers_network():
    torch.manual_seed(1)
    ours, same = ps.build(BASE), ps.build(ablation())
    copied(ours, same, P_SPIN)
    torch.testing.assert_close(same(tokens()), ours(tokens()), rtol=0, atol=0)


def test_spin_is_the_attractor_at_k_0():
    torch.manual_seed(1)
    ours, same = ps.build(BASE.replace(micro_steps=0)), ps.build(ablation(mlp="spin"))
    copied(ours, same, P_SPIN)
    torch.testing.assert_close(same(tokens()), ours(tokens()), rtol=0, atol=0)
    gradients = []
    for model in (ours, same):
        model.loss(tokens()[:, :-1], tokens()[:, 1:]).backward()
        gradients.append(model.blocks[0].norm_ssm if model is ours else model.blocks[0].norm_mixer)
    torch.testing.assert_close(gradients[0].weight.grad, gradients[1].weight.grad)


def test_full_precision_is_the_network_whose_weights_are_ternary_already():
    """Weights that ternary rounding leaves alone: then both must agree, and away from there they must not."""
    torch.manual_seed(1)
    ours, dense = ps.build(BASE), ps.build(ablation(ternary=False))
    copied(ours, dense, P_SPIN)
    assert (dense(tokens()) - ours(tokens())).abs().max() > 1e-3
    for block in dense.blocks:
        for linear in (block.attractor.w_ext, block.attractor.w_int):
            codes, scale = ps.ternary.quantize(linear.weight)
            linear.weight.data = codes * scale
    torch.testing.assert_close(dense(tokens()), ours(tokens()))


def test_the_long_gate_starts_by_keeping_98_percent():
    """With weights of 0 the log decay is -softplus(bias), for every token."""
    model = ps.build(ablation(mixer="long state space"))
    mixer, seen = model.blocks[0].mixer, []
    mixer.w_g.weight.data.zero_()
    chunked = ps.state_space.chunked
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ps.state_space, "chunked", lambda q, k, v, g, *rest: seen.append(g) or chunked(q, k, v, g, *rest))
        model(tokens())
    assert seen[0].exp().min().item() == pytest.approx(0.982, abs=1e-3)
    assert seen[0].exp().max().item() == pytest.approx(0.982, abs=1e-3)
    assert mixer.w_g.bias.requires_grad


def test_attention_with_swiglu_is_the_transformer():
    cfg = ablation(mixer="attention", mlp="swiglu")
    shape = dict(vocab=256, context=64, width=32, layers=2, heads=2, inner=32, kv_heads=2, head_width=16)
    torch.manual_seed(1)
    ours, same = ps.build(config.TransformerConfig("t", **shape)), ps.build(cfg)
    copied(ours, same, {".mixer.": ".attention.", "norm_mixer": "norm_attention"})
    torch.testing.assert_close(same(tokens()), ours(tokens()), rtol=0, atol=0)


def test_with_nothing_mended_it_is_the_ablation():
    """The same numbers from the same seed, for each of the mixers and MLPs."""
    for changes in VARIANTS:
        models = []
        for make in (ablation, variant):
            torch.manual_seed(1)
            models.append(ps.build(make(**changes)))
        torch.testing.assert_close(models[1](tokens()), models[0](tokens()), rtol=0, atol=0)


def test_a_mended_network_starts_as_what_it_mends():
    """The convolution starts as the identity. A gain of the start is a factor on those matrices and no others."""
    models = []  # the same draws: none of these parts takes a random number
    for changes in (dict(), dict(convolution="plain"), dict(mixer_gain=0.5, down_gain=2.0)):
        torch.manual_seed(1)
        models.append(ps.build(variant(**changes)))
    plain, convolved, scaled = models
    torch.testing.assert_close(convolved(tokens()), plain(tokens()))
    for (name, before), after in zip(plain.named_parameters(), scaled.parameters(), strict=True):
        factor = 0.5 if ".mixer." in name else 2.0 if "w_down" in name else 1.0
        torch.testing.assert_close(after, factor * before)


def test_gains_are_factors_on_the_matrices_they_name():
    models = []
    for changes in (dict(), dict(coupling_gain=4.0)):
        torch.manual_seed(1)
        models.append(ps.build(variant(**changes)))
    for (name, before), after in zip(models[0].named_parameters(), models[1].parameters(), strict=True):
        torch.testing.assert_close(after, (4.0 if "w_ext" in name or "w_int" in name else 1.0) * before)


def test_a_wider_range_of_gamma():
    """At the range of the paper it is the paper's layer, bit by bit; beyond, gamma is what the range says."""
    torch.manual_seed(1)
    same = mended.MendedAttractor(variant(penalty=1.0, nonlinearity="tanh sigmoid")).eval()
    plain = ps.model.Attractor(BASE).eval()
    plain.load_state_dict(same.state_dict())
    x = torch.randn(2, 3, BASE.width)
    torch.testing.assert_close(same(x), plain(x), rtol=0, atol=0)
    wide = mended.MendedAttractor(variant(gamma_range=2.0))
    wide.gamma_param.data.fill_(0.3)
    assert wide.gamma()[0].item() == pytest.approx(2 * 0.2913126)


@pytest.mark.parametrize("gate", ["sigmoid", "tanh"])
def test_the_size_of_the_jacobian_is_that_of_autograd(gate):
    """On average over directions: the mean over tokens of |J|^2 / Dint, with J from autograd; and so its gradient."""
    torch.manual_seed(1)
    y, z, w_int = torch.rand(2, 4), torch.randn(2, 8), torch.randn(8, 4).requires_grad_()
    gamma, step = torch.rand(4), ps.attractor.step

    def directly() -> torch.Tensor:
        rows = [
            torch.autograd.functional.jacobian(lambda y, z=z: step(y, z, w_int, gamma, gate), y, create_graph=True)
            for y, z in zip(y, z, strict=True)
        ]
        return torch.stack([J.pow(2).sum() / 4 for J in rows]).mean()

    actual = torch.stack([mended.jacobian_size(y, z, w_int, gamma, gate) for _ in range(4000)]).mean()
    expected = directly()
    assert actual.item() == pytest.approx(expected.item(), rel=0.05)
    slopes = [torch.autograd.grad(one, w_int)[0] for one in (actual, expected)]
    assert torch.nn.functional.cosine_similarity(*(slope.flatten() for slope in slopes), dim=0) > 0.995


def test_the_penalty_counts_in_training_alone():
    torch.manual_seed(1)
    model, sizes, jacobian_size = ps.build(variant(penalty=3.0)), [], mended.jacobian_size
    x, y = tokens()[:, :-1], tokens()[:, 1:]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mended, "jacobian_size", lambda *layer: sizes.append(jacobian_size(*layer)) or sizes[-1])
        whole = model.loss(x, y)
    copy.deepcopy(model)  # as branches.shares does between two steps
    assert len(sizes) == len(model.blocks)
    assert min(sizes) > 0
    model.eval()
    torch.testing.assert_close(whole, model.loss(x, y) + 3 * sum(sizes) / len(sizes))


def test_gated_attention_by_hand():
    """Attention's heads, times silu(W_y x), then its output projection."""
    torch.manual_seed(1)
    layer = mended.GatedAttention(variant(mixer="attention", output_gate=True))
    x = torch.randn(2, 5, BASE.width)
    heads, _ = layer.attention(x, None)
    gate = x @ layer.w_y.weight.T
    torch.testing.assert_close(layer(x, None)[0], (heads * gate / (1 + torch.exp(-gate))) @ layer.w_o.weight.T)
    plain = ps.transformer.Attention(layer.attention.cfg)
    plain.load_state_dict(layer.attention.state_dict() | {"w_o.weight": layer.w_o.weight})
    torch.testing.assert_close(heads @ layer.w_o.weight.T, plain(x, None)[0])


def test_convolution_by_hand():
    layer = mended.Convolution(1, "plain")
    layer.weight.data = torch.tensor([[1000.0], [100.0], [10.0], [1.0]])
    x = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])[None, :, None]
    y, past = layer(x[:, :2], None)
    rest, past = layer(x[:, 2:], past)
    assert torch.cat([y, rest], 1).flatten().tolist() == [1, 12, 123, 1234, 2345]
    assert past.flatten().tolist() == [3, 4, 5]


def test_half_lives_of_the_spread_gate():
    decays = torch.exp(-torch.nn.functional.softplus(mended.gate_starts(3)))
    half_lives = torch.tensor(0.5).log() / decays.log()
    torch.testing.assert_close(half_lives, torch.tensor([2.0, 20.0, 200.0]), rtol=1e-3, atol=0)


def test_nonlinearities_by_hand():
    """One spin with u = 1 and g = 2, and W_down of 1."""
    expected = {"tanh sigmoid": 0.67080, "tanh tanh": 0.73419, "tanh silu": 1.34162, "linear silu": 1.76159}
    for name, value in expected.items():
        layer = ps.variants.Spin(variant(mlp="spin", width=1, inner=1, heads=1, ternary=False, nonlinearity=name))
        layer.w_ext.weight.data, layer.w_down.weight.data = torch.tensor([[1.0], [2.0]]), torch.ones(1, 1)
        assert layer(torch.ones(1, 1, 1)).item() == pytest.approx(value, abs=1e-5), name


@pytest.mark.parametrize("cfg", [*(ablation(**c) for c in VARIANTS), *(variant(**c) for c in MENDED)], ids=_changed)
def test_every_variant_learns_decodes_and_survives_json(cfg):
    assert config.from_dict(config.to_dict(cfg)) == cfg
    torch.manual_seed(0)
    model = ps.build(cfg)
    optimizer = recipe.optimizer(model)
    data, losses = tokens(2, 33), []
    for _ in range(12):
        optimizer.zero_grad()
        loss = model.loss(data[:, :-1], data[:, 1:])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert all(p.grad is not None for p in model.parameters()), "a parameter that is never used"
    assert losses[-1] < losses[0] - 0.02
    model.eval()
    with torch.no_grad():
        whole, state, pieces = model(data), None, []
        for t in range(data.shape[1]):
            logits, state = model.step(data[:, t], state)
            pieces.append(logits)
    torch.testing.assert_close(torch.stack(pieces, 1), whole, rtol=1e-4, atol=1e-5)


def test_attractors_are_found_and_measured():
    from pspin_lite.training import evaluation

    for changes in VARIANTS:
        result = evaluation.attractors(ps.build(ablation(**changes)), tokens())
        assert bool(result) == (changes.get("mlp", "attractor") == "attractor")
        if result:
            share = result["zeros_int"][0]
            assert share == 0 if changes.get("ternary") is False else 0.2 < share < 0.5


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ablation(mixer="conv"), ["mixer", "conv", "attention"]),
        (lambda: ablation(mlp="gelu"), ["mlp", "gelu", "swiglu"]),
        (lambda: ablation(ternary=2), ["ternary", "2"]),
        (lambda: ablation(mixer="attention", width=30), ["heads", "even"]),
        (lambda: variant(nonlinearity="tanh silu"), ["nonlinearity", "tanh silu", "attractor"]),
        (lambda: variant(norm_down=True), ["norm_down", "attractor", "spin"]),
        (lambda: variant(mixer="attention", norm_qk=True), ["mixer", "attention", "state space"]),
        (lambda: variant(penalty=1.0, mlp="spin"), ["gamma_range or penalty", "spin", "attractor"]),
        (lambda: variant(gamma_range=1.0, ternary=False), ["gamma_range or penalty", "ternary=True"]),
        (lambda: variant(penalty=-1.0), ["penalty", "-1.0", "0 or above"]),
        (lambda: variant(late_rate=0.0), ["late_rate", "0.0"]),
        (lambda: variant(convolution="long"), ["convolution", "long", "silu"]),
        (lambda: costs.flops(ablation()), ["cfg", "AblationConfig", "PSpinConfig"]),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError) as raised:
        call()
    assert all(word in message(raised) for word in words), message(raised)
