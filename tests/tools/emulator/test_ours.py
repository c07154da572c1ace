"""Our kernels, compiled by Triton for A100 (sm_80) and H100 (sm_90), their PTX executed by the emulator, against the
float64 reference: values and every gradient, bfloat16 included, with all checks on. No GPU takes part.

Runs where kernels were defined for compilation: see test_compiled.py.

Tolerances, relative to the largest entry, are those of tests/kernels: float32 sums in another order, 16-bit results one
rounding each, and TF32 operands, which are cut off to ten bits. Kernels enlarge what they compute first, so that its
error is at most two thirds of the last digit.
"""

from __future__ import annotations

import functools
import re

import pytest
import torch
import triton
from helpers import assert_same, error, spin_inputs, ssm_inputs, with_grads
from pspin_kernels import attractor as attractor_kernels
from pspin_kernels import state_space as state_space_kernels
from pspin_kernels import ternary as ternary_kernels

from pspin_lite import attractor, state_space, ternary
from pspin_lite.tools.emulator import driver
from pspin_lite.tools.emulator.driver import chip
from pspin_lite.tools.emulator.parser import EmulatorError

CHIPS = ["sm_80", "sm_90"]
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
STATE_SPACE = {torch.float32: 2e-6, torch.float16: 2e-3, torch.bfloat16: 1.6e-2}
ATTRACTOR = {torch.float32: 2e-6, torch.float16: 4e-3, torch.bfloat16: 3e-2}
chips = pytest.mark.parametrize("name", CHIPS)
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))


@functools.cache
def state_space_case(shape: tuple, decay: str, dtype: torch.dtype) -> tuple[list, dict]:
    inputs = ssm_inputs(*shape, decay)
    inputs = [x.to(dtype) if i < 3 else x.float() for i, x in enumerate(inputs)]
    return inputs, with_grads(state_space.recurrent, [x.double() for x in inputs])


def run_state_space(shape: tuple, decay: str, dtype: torch.dtype, chunk: int, form: str) -> None:
    inputs, expected = state_space_case(shape, decay, dtype)
    result = with_grads(lambda *x: state_space_kernels.chunked(*x, chunk, form), inputs)
    assert_same(result, expected, STATE_SPACE[dtype])


def run_attractor(n: int, D: int, steps: int, tol: float | None, dtype: torch.dtype) -> None:
    inputs = spin_inputs(n, D, dtype)
    scale = inputs[1].abs().max()
    packed = ternary.pack((inputs[1].double() / scale.double()).round().to(torch.int8))
    expected = with_grads(lambda *x: attractor.equilibrium(*x, steps, tol), [x.double() for x in inputs])
    result = with_grads(lambda *x: attractor_kernels.equilibrium(*x, packed, scale, steps, tol), inputs)
    assert_same(result, expected, ATTRACTOR[dtype])


@chips
@dtypes
@pytest.mark.parametrize("form", ["walk", "parallel"])
def test_state_space(name, dtype, form):
    with chip(name):
        run_state_space((1, 40, 1, 17), "resets", dtype, 16, form)


@chips
@pytest.mark.parametrize(("form", "dtype"), [("walk", torch.bfloat16), ("parallel", torch.float16)])
def test_state_space_of_the_papers_width(name, form, dtype):
    with chip(name):
        run_state_space((1, 70, 1, 68), "learned", dtype, 64, form)


@chips
@dtypes
def test_attractor(name, dtype):
    with chip(name):
        run_attractor(33, 20, 2, None, dtype)


@chips
def test_attractor_with_a_tolerance(name):
    with chip(name):
        run_attractor(5, 20, 3, 1e-2, torch.float32)


@chips
@dtypes
@pytest.mark.parametrize("n", [3, 33])
def test_ternary_product(name, dtype, n):
    """Both directions, with tiles for a few rows (decoding) and for many; widths that fill no tile."""
    width, out = 70, 130
    rng = torch.Generator().manual_seed(n)
    codes = torch.randint(-1, 2, (out, width), generator=rng, dtype=torch.int8)
    x, dy = (torch.randn(n, columns, generator=rng).to(dtype) for columns in (width, out))
    packed, scale = ternary_kernels.pack(codes), torch.tensor(0.3)
    weight = codes.double() * scale.double()
    with chip(name):
        y, dx = ternary_kernels.product(x, packed, scale), ternary_kernels.transposed(dy, packed, scale, width)
    assert error(y, x.double() @ weight.T) < ATTRACTOR[dtype]
    assert error(dx, dy.double() @ weight) < ATTRACTOR[dtype]


def test_the_pessimistic_mode_stays_within_the_tolerances():
    with chip("sm_80", pessimistic=True):
        run_state_space((1, 40, 1, 17), "resets", torch.float32, 16, "parallel")
        run_attractor(33, 20, 2, None, torch.bfloat16)


@chips
def test_a_removed_barrier_is_noticed(name, monkeypatch):
    """One after the other, every bar.sync of a kernel is taken out. Two may go unnoticed, for they guard nothing: the
    tile of q is stored a second time in the place where it is already."""
    missed, total = [], 0
    parsed = driver.parsed
    for number in range(100):

        def without(ptx: str, kernel: str, shared: int, number: int = number):
            nonlocal total
            if kernel != "chunk_outputs":
                return parsed(ptx, kernel, shared)
            lines = [match.start() for match in re.finditer(r"^\s*bar\.sync", ptx, re.MULTILINE)]
            total = max(total, len(lines))
            if number < len(lines):
                ptx = ptx[: lines[number]] + ptx[lines[number] :].replace("bar.sync \t0;", "", 1)
            return parsed(ptx, kernel, shared)

        monkeypatch.setattr(driver, "parsed", without)
        state_space_kernels.chunk_outputs.device_caches.clear()  # loaded kernels
        inputs, _ = state_space_case((1, 40, 1, 17), "learned", torch.bfloat16)
        try:
            with chip(name):
                state_space_kernels.chunked(*inputs, 16, "parallel")
            missed.append(number)
        except EmulatorError as error:
            assert "race" in str(error)  # noqa: PT017
        if number + 1 >= total:
            break
    state_space_kernels.chunk_outputs.device_caches.clear()
    assert total > 10
    assert len(missed) <= 2, f"{len(missed)} of {total} removed barriers went unnoticed: {missed}"


@chips
def test_everything_is_put_back(name):
    before = triton.runtime.driver._active
    with pytest.raises(RuntimeError, match="on purpose"), chip(name):
        raise RuntimeError("on purpose")
    assert triton.runtime.driver._active is before
    assert triton.knobs.runtime.add_stages_inspection_hook is None
    with pytest.raises(ValueError, match="sm_70"), chip("sm_70"):
        pass


@chips
def test_tensors_must_be_large_enough(name):
    x = torch.randn(3, 40)
    with chip(name), pytest.raises(EmulatorError, match="outside the tensors passed") as raised:
        attractor_kernels.start_kernel[(1, 1)](x, torch.empty(3, 19), 3, 20, 40, **attractor_kernels.ELEMENTWISE)
    assert "attractor_forward.py" in str(raised.value)
    assert "st.global" in str(raised.value)
