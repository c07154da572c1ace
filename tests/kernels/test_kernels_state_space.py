"""The state-space kernels, both forms, every output and every gradient, against the float64 recurrence. Through
Triton's interpreter on a CPU; where there is a GPU the very same tests run compiled (`pytest -m gpu`), and with
PSPIN_CHIP=sm_80 or sm_90 they run compiled and emulated."""

from __future__ import annotations

import importlib
import math
import sys
from pathlib import Path

import pytest
import torch
from helpers import assert_same, copy_code, error, message, plant, ssm_inputs, with_grads

from pspin_lite import _backends as backends
from pspin_lite.state_space import chunked, recurrent

MODE, REASON = backends.triton_mode()
if MODE == "absent":
    pytest.skip(REASON, allow_module_level=True)

from pspin_kernels import state_space as kernels  # noqa: E402

DEVICE = "cuda" if MODE == "compiled" else "cpu"
# The interpreter would multiply the bit patterns of bfloat16: there the package refuses it, which REFUSED is about.
SIXTEEN_BITS = [torch.float16] if MODE == "interpreted" else [torch.float16, torch.bfloat16]
REFUSED = [] if MODE != "interpreted" else [(dict(dtype=torch.bfloat16), ["backend", "bfloat16", "bit patterns"])]
pytestmark = [pytest.mark.gpu] if MODE == "compiled" else []
FORMS = ["walk", "parallel"]
NAMES = ["dq", "dk", "dv", "dg", "dstate"]

# float32: products are true float32 ("ieee", no TF32), and sums of some hundred terms of either sign lose a digit of 7.
# 16 bits: the reference gets the same rounded inputs, but scores, decayed values and the state are rounded once more
# before they are multiplied, then the result is: four times half a unit (fp16 5e-4, bf16 4e-3) of the largest entry.
# Compiled, float16's scores and states are enlarged and cut off instead, to TF32's ten bits: 2/3 of a unit at most.
TOLERANCE = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}

# B, T, H, d, chunk, decay. Narrow heads are cheap for the interpreter; the wide ones see few chunks.
CASES = [
    (1, 1, 1, 4, 16, "learned"),  # a single token
    (3, 17, 1, 5, 16, "resets"),  # a batch, an odd width, one token past the chunk
    (1, 17, 1, 68, 16, "mixed"),  # the paper's widths: 64 + 16 and 64 + 32 columns
    (1, 18, 1, 88, 16, "resets"),
    (1, 16, 1, 128, 16, "learned"),  # the widest; exactly one chunk
    (2, 33, 1, 20, 32, "resets"),  # two blocks in a chunk
    (1, 66, 1, 7, 64, "resets"),  # four
    (1, 40, 1, 5, 128, "slow"),  # eight, of which three have tokens
    (1, 130, 1, 5, 128, "mixed"),  # two chunks of eight blocks
    (1, 20, 1, 5, 16, "none"),
    (1, 20, 1, 5, 16, "-5"),
    (1, 20, 1, 5, 16, "-100"),
    (1, 20, 1, 5, 16, "-1e4"),
]
HALF = [
    (1, 70, 1, 20, 64, "learned"),
    (1, 130, 1, 6, 128, "resets"),  # four blocks of 32 in a chunk
    (1, 18, 1, 68, 16, "mixed"),
]


def run(inputs, chunk, form, module=kernels, arrange=lambda x: x):
    def function(*x):
        q, k, v, g, state = (arrange(y.to(DEVICE)) for y in x)
        return tuple(arrange(y).cpu() for y in module.chunked(q, k, v, g, state, chunk, form))

    return with_grads(function, inputs)


def agrees(case, form, dtype=torch.float32, module=kernels, seed=0, resets=(), arrange=lambda x: x, may_cancel=False):
    """Raises unless outputs and gradients are those of the recurrence in float64 on the same numbers. resets: tokens
    that forget all before them. arrange: the same tensor, laid out in another way. may_cancel: the first token's decay
    gets d^2 terms from the state, which may all but cancel. Errors of dg are then held against their size, too."""
    *dims, chunk, decay = case
    inputs = ssm_inputs(*dims, decay, dtype=dtype, seed=seed)
    inputs[4] = inputs[4].float()
    inputs[3][:, list(resets)] = -math.inf
    expected = with_grads(recurrent, [x.double() for x in inputs])
    actual = run(inputs, chunk, form, module, arrange)
    assert (actual["output 0"].dtype, actual["output 1"].dtype) == (dtype, torch.float32)
    # Below 1e-30, that is exp(-100), float32 has few digits or none; tested as absolute error.
    floor = {name: torch.full((1,), 1e-30).double() for name in expected}
    if may_cancel:
        terms = inputs[4].double() * expected["gradient 4"]
        floor["gradient 3"] = terms.flatten(2).norm(dim=-1).max().view(1) + 1e-30
    flat = [{name: torch.cat([x[name].flatten().double(), floor[name]]) for name in x} for x in (actual, expected)]
    assert_same(*flat, TOLERANCE[dtype])


@pytest.mark.eq("ssm-mask", "ssm-intra", "ssm-cross", "ssm-state")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_kernels_are_the_recurrence(case, form):
    agrees(case, form)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", SIXTEEN_BITS, ids=str)
@pytest.mark.parametrize("case", HALF, ids=str)
def test_16_bits(case, dtype, form):
    agrees(case, form, dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("log_decay", [-5.0, -20.0, -40.0])
def test_gradient_of_strong_decay_is_no_noise(log_decay, form):
    # Each dg here is of the order exp(log_decay), at last 4e-18: a difference of numbers of order one is noise.
    inputs = ssm_inputs(1, 20, 1, 4)
    inputs[3] = torch.full_like(inputs[3], log_decay)
    exact = with_grads(recurrent, inputs)["gradient 3"]
    assert error(run([x.float() for x in inputs], 16, form)["gradient 3"], exact) < 1e-5


@pytest.mark.parametrize("form", FORMS)
def test_minus_infinity_is_a_hard_reset(form):
    q, k, v, g, state = ssm_inputs(1, 40, 1, 6, dtype=torch.float32)
    g[:, 21] = -math.inf
    inputs = [x.to(DEVICE).requires_grad_() for x in (q, k, v, g, state)]
    o, end = kernels.chunked(*inputs, 16, form)
    grads = torch.autograd.grad(o[:, 21:].square().sum() + end.square().sum(), inputs)
    assert all((x[:, :21] == 0).all() for x in grads[:4]), "the past still matters"
    assert (grads[3][:, 21] == 0).all()
    assert (grads[4] == 0).all()
    later = [x.to(DEVICE)[:, 21:] for x in (q, k, v, g)]
    alone, _ = kernels.chunked(*later, torch.zeros_like(state).to(DEVICE), 16, form)
    assert error(o[:, 21:], alone) < 1e-6


def poisoned(x, margin):
    """x as a view into a larger tensor that is nan everywhere else; columns stay side by side."""
    larger = torch.full([n + m for n, m in zip(x.shape, margin, strict=True)], math.nan, dtype=x.dtype, device=x.device)
    view = larger[tuple(slice(n) for n in x.shape)]
    view.copy_(x)
    return view


@pytest.mark.fault(19)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("d", "dtype"),
    [(5, torch.float32), (8, torch.float32), (68, torch.float16)],
    ids=["copied", "taken as it is", "the paper's, padded"],
)
def test_nothing_is_read_that_was_not_given_or_written(form, d, dtype, monkeypatch):
    # nan past the end of every input (tokens, heads, columns), and in all memory that the launchers allocate.
    inputs = [x.to(DEVICE) for x in ssm_inputs(1, 18 if d == 68 else 35, 1, d, "resets", dtype)]
    into_o, into_end = torch.randn_like(inputs[0]), torch.randn_like(inputs[4])

    chunk = 16 if d == 68 else 32

    def everything(q, k, v, g, state, do):
        x = [y.detach().requires_grad_() for y in (q, k, v, g, state)]
        o, end = kernels.chunked(*x, chunk, form)
        return [o, end, *torch.autograd.grad((o, end), x, (do, into_end.float()))]

    expected = everything(*inputs, into_o)
    fresh, like = torch.Tensor.new_empty, torch.empty_like
    monkeypatch.setattr(torch.Tensor, "new_empty", lambda *a, **b: fresh(*a, **b).fill_(math.nan))
    monkeypatch.setattr(torch, "empty_like", lambda *a, **b: like(*a, **b).fill_(math.nan))
    q, k, v, do = (poisoned(x, (1, 30, 1, 60)) for x in (*inputs[:3], into_o))
    assert kernels._rows(q).data_ptr() == q.data_ptr() or d != 8, "copied: this shows less than it says"
    g, state = poisoned(inputs[3], (1, 30, 1)), poisoned(inputs[4], (1, 1, 8, 8))
    for name, a, b in zip(["o", "end", *NAMES], everything(q, k, v, g, state, do), expected, strict=True):
        assert torch.equal(a, b), name


@pytest.mark.parametrize("form", FORMS)
def test_strides(form):
    def everything(inputs):
        x = [y.detach().requires_grad_() for y in inputs]
        o, end = kernels.chunked(*x, 16, form)
        return [o, end, *torch.autograd.grad(o.sum() + end.sum(), x)]  # o.sum(): a gradient of strides zero

    inputs = [x.to(DEVICE) for x in ssm_inputs(2, 18, 2, 6, dtype=torch.float32)]
    strided = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs[:4]]
    strided[1] = strided[1].mT.contiguous().mT  # columns apart
    strided.append(inputs[4].mT.contiguous().mT)
    assert not any(x.is_contiguous() for x in strided)
    for name, a, b in zip(["o", "end", *NAMES], everything(strided), everything(inputs), strict=True):
        assert torch.equal(a, b), name


@pytest.mark.parametrize("form", FORMS)
def test_float16_is_left_where_it_ends(form):
    float16_is_left_where_it_ends(form)


def float16_is_left_where_it_ends(form, module=kernels):
    """Scores and states far above 65504, outputs and gradients below it."""
    inputs = ssm_inputs(1, 20, 1, 4, "slow", torch.float16)
    inputs[1] = inputs[1] * 300
    inputs[2] = inputs[2] * 2000
    inputs[0] = inputs[0] / 2000
    inputs[4] = inputs[4].float() * 1e6

    def total(function, x):
        x = [y.detach().requires_grad_() for y in x]
        o, end = function(*x)
        return [o, end, *torch.autograd.grad((o.double() * 1e-3).sum(), x)]

    actual = total(lambda *x: module.chunked(*x, 16, form), [x.to(DEVICE) for x in inputs])
    expected = total(recurrent, [x.double() for x in inputs])
    assert expected[1].abs().max() > 65504 > expected[0].abs().max()
    for name, a, b in zip(["o", "end", *NAMES], actual, expected, strict=True):
        assert error(a.cpu(), b) < 4e-3, name


def test_autocast_changes_nothing():
    inputs = ssm_inputs(1, 20, 1, 4, dtype=torch.float32)
    expected = run(inputs, 16, "walk")
    with torch.autocast(DEVICE, torch.bfloat16):
        actual = run(inputs, 16, "walk")
    assert_same(actual, expected, 0.0)


@pytest.mark.parametrize("form", FORMS)
def test_more_than_two_billion_numbers_apart(form):
    # The second chunk begins 2^31 numbers after the first. Memory that nobody touches costs nothing.
    size, stride = 16 * 2**27 + 24, 2**27
    try:
        memory = torch.empty(size, dtype=torch.float16, device=DEVICE)  # q, k and v beside each other
    except RuntimeError as error:
        pytest.skip(f"numbers that far apart need 4 GB of address space, or of a GPU's memory: {error}")
    far = [memory.as_strided((1, 17, 1, 8), (size, stride, 8, 1), 8 * i) for i in range(3)]
    inputs = [x.to(DEVICE) for x in ssm_inputs(1, 17, 1, 8, "slow", torch.float16)]
    for x, y in zip(far, inputs, strict=False):
        x.copy_(y)
    for a, b in zip(kernels.chunked(*far, *inputs[3:], 16, form), kernels.chunked(*inputs, 16, form), strict=True):
        assert torch.equal(a, b)


def test_called_through_the_package():
    inputs = [x.to(DEVICE) for x in ssm_inputs(1, 20, 1, 4, dtype=torch.float32)]
    q, k, v, g, state = inputs
    o, end = chunked(q, k, v, g, 16, state, backend="triton")
    expected, expected_end = recurrent(*(x.double() for x in inputs))
    assert max(error(o, expected), error(end, expected_end)) < 2e-6
    other = kernels.chunked(*inputs, 16)
    assert torch.equal(o, other[0])
    assert torch.equal(end, other[1])
    assert torch.equal(
        chunked(q, k, v, g, None, backend="triton")[0], chunked(q, k, v, g, 64, backend="triton")[0]
    ) == (DEVICE == "cpu")
    if DEVICE == "cpu":  # the interpreter only on request
        assert torch.equal(chunked(q, k, v, g, 16)[0], chunked(q, k, v, g, 16, backend="torch")[0])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(chunk=8), ["chunk", "got 8", "16, 32, 64, 128", "triton"]),
        (dict(chunk=100), ["chunk", "got 100"]),
        (dict(chunk=0), ["chunk", "integer >= 1"]),
        (dict(dtype=torch.float64), ["q", "float64", "float32"]),
        (dict(d=129), ["q", "129", "at most 128"]),
        *REFUSED,
    ],
    ids=str,
)
def test_what_the_kernels_cannot_do_is_named(change, words):
    x = torch.zeros(1, 6, 2, change.pop("d", 4), dtype=change.pop("dtype", torch.float32), device=DEVICE)
    with pytest.raises(ValueError) as raised:
        chunked(x, x, x, x[..., 0], **(dict(chunk=16) | change), backend="triton")
    assert all(word in message(raised) for word in words), message(raised)


@pytest.mark.parametrize("d", range(1, 129))
def test_few_columns_are_wasted(d):
    for widest in (16, 32, 64):
        blocks = kernels.columns(d, widest)
        assert d <= sum(width for _, width in blocks) <= d + 15
        assert all(width in (16, 32, widest) for _, width in blocks)
        assert [first for first, _ in blocks] == [sum(w for _, w in blocks[:i]) for i in range(len(blocks))]


# Bugs put into a copy of the kernels: file, what stands there, what is put there instead. `agrees` must notice each.
BUGS = {
    "none": None,
    "wrong stride": ("chunk.py", "head * strides[2]", "head * strides[2] // 2"),
    "mask off by one": ("chunk.py", "i[:, None] >= i[None, :], tl.exp", "i[:, None] > i[None, :], tl.exp"),
    "mask between blocks off by one": ("chunk.py", "tiles.BC < tiles.BC - 1, after", "tiles.BC < tiles.BC, after"),
    "blocks in between forgotten": ("chunk.py", "(reading + between)[:, None]", "reading[:, None]"),
    "state not carried, walking": ("chunk.py", "h = [x * kept for x in h]", "h = [x * 0.0 for x in h]"),
    "state not kept, parallel": (
        "chunk_parallel.py",
        "(bh * N + n) * d * d, kept,",
        "bh * N * d * d, kept,",
    ),
    "state never decays": ("chunk.py", "return tl.exp(tl.load(lines[0]", "return tl.exp(0 * tl.load(lines[0]"),
    "no decay in dg": ("chunk_gradients.py", "flow_inside(dP * P,", "flow_inside(dP * A,"),
    "dg off by one": ("chunk_gradients.py", "(i[:, None] < i[None, :])", "(i[:, None] <= i[None, :])"),
    "scores not transposed, dk": ("chunk_gradients.py", "tl.trans(dA), q, k", "dA, q, k"),
    "second block of columns lost": ("chunk.py", "multiply(q[i], tl.trans(k[i])", "multiply(q[0], tl.trans(k[0])"),
    "float16: enlarged too much": ("chunk.py", "x * (1 + 2.0**-10 / 3)", "x * (1 + 2.0**-7)"),
    "float16: factors rounded to it": ("chunk.py", "b.to(tl.float32), to", "b.to(tl.float16).to(tl.float32), to"),
    "float16: states kept in it, parallel": (
        "state_space.py",
        "torch.bfloat16 if k.dtype == torch.bfloat16 else torch.float32",
        "k.dtype",
    ),
    "written to the wrong chunk, parallel": ("chunk_parallel.py", "((b * T + t0) * H + head)", "(b * T * H + head)"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_seeded_bugs_are_noticed(bug, tmp_path, monkeypatch):
    name = f"kernels_with_bug_{list(BUGS).index(bug)}"
    copy_code(Path(kernels.__file__).parent, tmp_path / name)
    if BUGS[bug] is not None:
        plant(tmp_path / name, *BUGS[bug])
    monkeypatch.syspath_prepend(tmp_path)
    copy = importlib.import_module(f"{name}.state_space")
    assert Path(copy.__file__).is_relative_to(tmp_path)

    width = 33 if "columns" in bug else 17  # 32 + 16 columns
    case = (1, 40, 1, 17, 64, "slow") if "between" in bug else (1, 18, 1 + ("stride" in bug), width, 16, "learned")

    def verdict(form, dtype):
        try:
            agrees(case, form, dtype, module=copy)
            if dtype == torch.float16:
                float16_is_left_where_it_ends(form, copy)
        except AssertionError:
            return "noticed"
        return "passed"

    forms = FORMS if bug == "none" else ["parallel" if "parallel" in bug else "walk"]
    dtypes = [torch.float32, torch.float16] if bug == "none" else [torch.float16 if "float16" in bug else torch.float32]
    verdicts = [verdict(form, dtype) for form in forms for dtype in dtypes]
    for module in [m for m in sys.modules if m.split(".")[0] == name]:
        del sys.modules[module]
    assert set(verdicts) == {"passed" if bug == "none" else "noticed"}
