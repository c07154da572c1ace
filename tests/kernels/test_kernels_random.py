"""Kernels on shapes, decays and layouts that nobody chose, against float64: values and every gradient.

Hypothesis draws the same examples in every run, so that Triton's compilations are found again. PSPIN_EXAMPLES says how
many; each chip gets its own.
"""

from __future__ import annotations

import math
import os

import torch
from helpers import assert_same, error, spin_inputs, with_grads
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pspin_kernels import ternary as packed_ternary
from test_kernels_attractor import TOLERANCE, fused, here
from test_kernels_state_space import CASES, FORMS, agrees

from pspin_lite import ternary
from pspin_lite.attractor import equilibrium

EXAMPLES = int(os.environ.get("PSPIN_EXAMPLES", "6"))
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
DECAYS = sorted({case[-1] for case in CASES})


def apart(x):
    """Every other number of a larger tensor of nan, in its last dimension."""
    return torch.stack([x, torch.full_like(x, math.nan)], -1).flatten(-2)[..., ::2]


def inside(x):
    """A corner of a larger tensor of nan."""
    larger = torch.nn.functional.pad(x, (0, 3) * x.ndim, value=math.nan)
    return larger[tuple(slice(n) for n in x.shape)]


LAYOUTS = {
    "as it is": lambda x: x,
    "turned": lambda x: x.transpose(0, -1).contiguous().transpose(0, -1),
    "heads first": lambda x: x.transpose(1, -2).contiguous().transpose(1, -2),
    "apart": apart,
    "inside": inside,
}


def drawn(function):
    """`function` on EXAMPLES examples, always the same ones for a chip."""
    number = sum(os.environ.get("PSPIN_CHIP", "").encode())
    how = settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    return seed(number)(how(function))


@drawn
@given(
    dims=st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 128), st.sampled_from([16, 32, 64, 128])),
    T=st.one_of(st.just(1), st.integers(2, 150)),
    border=st.sampled_from([None, -1, 0, 1]),
    decay=st.sampled_from(DECAYS),
    dtype=st.sampled_from(DTYPES),
    form=st.sampled_from(FORMS),
    layout=st.sampled_from(sorted(LAYOUTS)),
    resets=st.sampled_from([(), (0,), (-1, 1)]),
    number=st.integers(0, 2**31),
)
def test_state_space(dims, T, border, decay, dtype, form, layout, resets, number):
    B, H, d, chunk = dims
    if border is not None and chunk < T:  # a multiple of the chunk, or a token less or more
        T = T // chunk * chunk + border
    resets = [t + shift for t in range(0, T, chunk) for shift in resets if 0 <= t + shift < T]
    case = (B, T, H, d, chunk, decay)
    print(case, dtype, form, layout, resets)
    agrees(case, form, dtype, seed=number, resets=resets, arrange=LAYOUTS[layout], may_cancel=True)


@drawn
@given(
    n=st.integers(1, 70),
    D=st.integers(1, 140),
    steps=st.integers(0, 3),
    tol=st.sampled_from([None, 1e-4]),
    dtype=st.sampled_from(DTYPES),
    layout=st.sampled_from(["apart", "as it is", "inside", "turned"]),
    number=st.integers(0, 2**31),
)
def test_attractor(n, D, steps, tol, dtype, layout, number):
    inputs = spin_inputs(n, D, dtype, seed=number)
    tol = tol if dtype == torch.float32 else None  # in 16 bits, rounding decides when a token stops
    expected = with_grads(lambda *x: equilibrium(*x, steps, tol), [x.double() for x in inputs])
    arrange = LAYOUTS[layout]
    result = with_grads(lambda z, *x: arrange(fused(arrange(z), *x, steps=steps, tol=tol)), inputs)
    # gamma's gradient is a sum whose terms may all but cancel: its error is held against them, as one more number
    terms = (expected["gradient 1"] * inputs[1] / inputs[2]).abs().sum(0)
    for gradients in (result, expected):
        gradients["gradient 2"] = torch.cat([gradients["gradient 2"].double().view(-1), terms])
    assert_same(result, expected, TOLERANCE[dtype] if tol is None else 1e-5)


@drawn
@given(
    sizes=st.tuples(st.integers(1, 70), st.integers(1, 200), st.integers(1, 200)),
    dtype=st.sampled_from(DTYPES),
    layout=st.sampled_from(["apart", "as it is", "inside", "turned"]),
    number=st.integers(0, 2**31),
)
def test_product(sizes, dtype, layout, number):
    n, width, out = sizes
    rng = torch.Generator().manual_seed(number)
    codes = torch.randint(-1, 2, (out, width), generator=rng, dtype=torch.int8)
    x, dy = (torch.randn(n, columns, generator=rng).to(dtype) for columns in (width, out))
    packed, scale = here(ternary.pack(codes)), here(torch.tensor(0.3))
    weight = codes.double() * scale.cpu().double()
    x, dy = (LAYOUTS[layout](here(y)) for y in (x, dy))
    assert error(packed_ternary.product(x, packed, scale).cpu(), x.cpu().double() @ weight.T) < TOLERANCE[dtype]
    assert (
        error(packed_ternary.transposed(dy, packed, scale, width).cpu(), dy.cpu().double() @ weight) < TOLERANCE[dtype]
    )
