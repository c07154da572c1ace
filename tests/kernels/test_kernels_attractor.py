"""The attractor's and the ternary product's kernels against the float64 reference: values, every gradient, early
stopping token by token. Through Triton's interpreter, compiled where there is a GPU, or emulated (PSPIN_CHIP=sm_80).

Tolerances, relative to the largest entry (rounding units: float32 6e-8, float16 5e-4, bfloat16 4e-3):
    float32   2e-6   sums of up to 136 terms in another order than the reference's: a few units; measured up to 4e-7
    float16   4e-3   inputs are rounded before both see them; spins, V, acts and dA are stored in 16 bits, one rounding
                     unit each, and the map shrinks earlier errors: less than ten units; measured up to 1e-3
    bfloat16  3e-2   the same with units eight times as large; not interpreted
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest
import torch
from helpers import assert_noticed, assert_same, copy_code, error, message, plant, run_tests, spin_inputs, with_grads

import pspin_lite as ps
from pspin_lite import _backends as backends
from pspin_lite import attractor, ternary
from pspin_lite.attractor import equilibrium
from pspin_lite.tools import measure

# pspin_lite.tools.measure imports triton (through torch): kernels that are interpreted must work after that, too.
kernels = pytest.importorskip("pspin_kernels.attractor", reason="Triton is published for Linux only")
import pspin_kernels  # noqa: E402
from pspin_kernels import attractor_forward  # noqa: E402
from pspin_kernels import ternary as packed_ternary  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
MODE, _ = backends.triton_mode()
DEVICE = "cuda" if MODE == "compiled" else "cpu"
pytestmark = [pytest.mark.gpu] if MODE == "compiled" else []
TOLERANCE = {torch.float32: 2e-6, torch.float16: 4e-3, torch.bfloat16: 3e-2}
DTYPES = [torch.float32, torch.float16] if MODE == "interpreted" else [torch.float32, torch.float16, torch.bfloat16]
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))


def here(x: torch.Tensor) -> torch.Tensor:
    return x.to(DEVICE)


def fused(*inputs, steps, tol=None, report=None):
    """equilibrium on the kernels, from and to the CPU."""
    return equilibrium(*map(here, inputs), steps, tol, "triton", report).cpu()


def poisoned(x: torch.Tensor, rows: int = 3, columns: int = 5) -> torch.Tensor:
    """The values of x inside a larger tensor of nan: whatever is read beside them shows."""
    big = torch.full((x.shape[0] + rows, x.shape[1] + columns), torch.nan, dtype=x.dtype, device=DEVICE)
    big[: x.shape[0], : x.shape[1]] = here(x)
    return big[: x.shape[0], : x.shape[1]]


def in_float64(inputs):
    return [x.double() for x in inputs]


@pytest.mark.eq("ternary-round", "ternary-scale")
@dtypes
@pytest.mark.parametrize(("n", "width", "out"), [(1, 5, 3), (3, 20, 7), (33, 68, 70), (17, 6, 130)])
def test_product(n, width, out, dtype):
    rng = torch.Generator().manual_seed(n)
    codes = torch.randint(-1, 2, (out, width), generator=rng, dtype=torch.int8)
    x, dy = (torch.randn(n, columns, generator=rng).to(dtype) for columns in (width, out))
    packed, scale = here(ternary.pack(codes)), here(torch.tensor(0.3, dtype=dtype))
    weight = codes.double() * scale.cpu().double()
    assert error(packed_ternary.product(here(x), packed, scale).cpu(), x.double() @ weight.T) < TOLERANCE[dtype]
    result = packed_ternary.transposed(here(dy), packed, scale, width).cpu()
    assert error(result, dy.double() @ weight) < TOLERANCE[dtype]

    # The same from the midst of nan, and with bytes beyond the last code that mean nothing.
    junk = torch.cat([packed, torch.full((out, 21), 0xFF, dtype=torch.uint8, device=DEVICE)], 1)
    if width % 4:
        junk[:, width // 4] |= (0xFF << (2 * (width % 4))) & 0xFF
    assert torch.equal(packed_ternary.transposed(poisoned(dy), junk, scale, width).cpu(), result)
    assert error(packed_ternary.product(poisoned(x).T.contiguous().T, junk, scale).cpu(), x.double() @ weight.T) < 4e-3


def test_packing_is_the_references():
    for out, width in [(1, 1), (3, 5), (7, 64), (2, 130)]:
        codes = torch.randint(-1, 2, (out, width), dtype=torch.int8, generator=torch.Generator().manual_seed(out))
        packed = packed_ternary.pack(codes)
        assert packed.shape[1] % 16 == 0
        assert torch.equal(packed[:, : -(-width // 4)], ternary.pack(codes))
        assert torch.equal(packed, packed_ternary.aligned(ternary.pack(codes)))
        assert torch.equal(packed, packed_ternary.pack(codes.float()))


@pytest.mark.eq("spin-output", "spin-field", "spin-split", "spin-slopes", "neumann", "spin-grad")
@dtypes
@pytest.mark.parametrize(("n", "D", "steps"), [(1, 5, 1), (3, 20, 3), (33, 20, 2), (1, 68, 2), (33, 68, 1)])
def test_values_and_gradients(n, D, steps, dtype):
    inputs = spin_inputs(n, D, dtype)
    expected = with_grads(lambda *x: equilibrium(*x, steps), in_float64(inputs))
    assert_same(with_grads(lambda *x: fused(*x, steps=steps), inputs), expected, TOLERANCE[dtype])


@pytest.mark.parametrize(("n", "D", "tol"), [(5, 20, 1e-2), (19, 68, 1e-2)])
def test_each_token_takes_the_references_steps(n, D, tol):
    # Hard and easy tokens in one tile; n and D are such that several tiles of tokens and of spins exist.
    z, w_int, gamma = spin_inputs(n, D, torch.float32, scale=0.6)
    z[1::2] *= 4
    z[-1] *= 0
    inputs, steps = [z, w_int, gamma], 6
    dy = torch.randn(n, D, generator=torch.Generator().manual_seed(5))

    def alone(row: int) -> tuple[float, float, float]:
        report = attractor.Report()
        y = equilibrium(
            z[row : row + 1].double().requires_grad_(), w_int.double(), gamma.double(), steps, tol, "torch", report
        )
        y.backward(dy[row : row + 1].double())
        return float(report.forward), float(report.backward), float(report.residual)

    expected = torch.tensor([alone(row) for row in range(n)], dtype=torch.float64)
    assert len(set(expected[:-1, 0].tolist())) > 1, "all tokens alike: this shows nothing"
    scale = w_int.max()
    held = [here(x) for x in (packed_ternary.pack((w_int / scale).round()), scale.reshape(1), gamma)]
    _, acts, progress = kernels.forward(here(z), *held, steps, tol)
    _, back = kernels.backward(here(dy), acts, *held, steps, tol)
    assert progress.count.tolist() == expected[:, 0].tolist()
    assert back.count.tolist() == expected[:, 1].tolist()
    assert progress.change.max().item() == pytest.approx(expected[:, 2].max().item(), rel=1e-3)

    result = attractor.Report()
    compared = with_grads(lambda *x: fused(*x, steps=steps, tol=tol, report=result), inputs)
    exact = with_grads(lambda *x: equilibrium(*x, steps, tol), in_float64(inputs))
    assert_same(compared, exact, TOLERANCE[torch.float32])
    assert result.forward == pytest.approx(expected[:, 0].mean().item())


def test_stopped_tiles_are_left_alone():
    # Both parities: tiles that stop after one step must survive the buffers' taking turns.
    n, D = 40, 5
    z, w_int, gamma = spin_inputs(n, D, torch.float32, scale=1.2)
    z[:32] *= 0  # the first tile stops at once, with nothing left to do
    z[:32, 0] = 9.0
    for steps in (4, 5):
        expected = equilibrium(z.double(), w_int.double(), gamma.double(), steps, 1e-2)
        assert error(fused(z, w_int, gamma, steps=steps, tol=1e-2), expected) < TOLERANCE[torch.float32]


def test_nothing_beside_the_arguments_is_read():
    # nan before and after every argument, nan in all memory that is asked for.
    inputs = spin_inputs(19, 20, torch.float32)
    expected = with_grads(lambda *x: equilibrium(*x, 3, 1e-3), in_float64(inputs))
    torch.use_deterministic_algorithms(True)
    try:
        assert here(torch.zeros(1)).new_empty(1000).isnan().all(), "memory is not filled with nan: this shows nothing"

        def call(z, w_int, gamma):
            held = torch.full((30,), torch.nan)
            held[:20] = gamma
            y = equilibrium(poisoned(z), here(w_int), here(held)[:20], 3, 1e-3, "triton")
            return (y.cpu()[:, None] * torch.ones(2, 1))[:, 0]  # its gradient is not contiguous

        assert_same(with_grads(call, inputs), expected, TOLERANCE[torch.float32])
    finally:
        torch.use_deterministic_algorithms(False)


@dtypes
def test_saturated_spins_are_finite(dtype):
    # |U| and |G| up to 3e4: exponentials must not overflow, and the answer is -1, 0 or 1.
    z = torch.tensor([[3e4, -3e4, 2e2, 0.0, 3e4, 3e4, -2e2, -3e4]], dtype=dtype)
    w_int, gamma = spin_inputs(1, 4, dtype)[1:]
    result = with_grads(lambda *x: fused(*x, steps=2), [z, w_int, gamma])
    expected = with_grads(lambda *x: equilibrium(*x, 2), in_float64([z, w_int, gamma]))
    assert error(result["output 0"], expected["output 0"]) < TOLERANCE[dtype]
    assert all(value.isfinite().all() for value in result.values())


def test_small_spins_keep_their_digits():
    # tanh from exponentials alone loses them: 1 - exp(-2e-5) has two digits in float32.
    x = torch.logspace(-6, 1, 64).repeat(2, 1) * torch.tensor([[1.0], [-1.0]])
    z = torch.cat([x, torch.zeros_like(x)], 1)  # sigmoid(0) = 1/2
    y = torch.empty(2, 64, device=DEVICE)
    attractor_forward.start_kernel[(1, 1)](here(z), y, 2, 64, 128, BM=16, BN=64)
    assert (2 * y.cpu().double() / x.double().tanh() - 1).abs().max() < 1e-6


@pytest.mark.eq("act-pspin")
def test_what_is_kept_for_the_gradient():
    # tanh U, sigmoid G and Y of every token; the couplings as two bits each, in rows of whole 16 bytes.
    z, w_int, gamma = (here(x).requires_grad_() for x in spin_inputs(24, 20, torch.float32))
    for steps, tol in ((1, None), (3, None), (3, 1e-3)):
        call = functools.partial(equilibrium, z, w_int, gamma, steps, tol, "triton")
        assert measure.saved_bytes(call, besides=(gamma,)) == 24 * 3 * 20 * 4 + 40 * 16 + 4


def test_leading_dimensions_and_no_steps():
    z, w_int, gamma = map(here, spin_inputs(6, 5, torch.float32))
    flat = equilibrium(z, w_int, gamma, 2, backend="triton")
    assert torch.equal(equilibrium(z.view(2, 3, 10), w_int, gamma, 2, backend="triton"), flat.view(2, 3, 5))
    assert torch.equal(equilibrium(z, w_int, gamma, 0, backend="triton"), attractor.spin(z))
    assert not equilibrium(z, w_int * 0, gamma, 2, backend="triton").isnan().any(), "couplings that are all zero"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(w_int=torch.tensor([[0.1], [0.2]])), ["w_int", "-s, 0 and s", "ternary"]),
        (dict(w_int=torch.tensor([[0.1], [float("nan")]])), ["w_int", "ternary"]),
        (dict(dtype=torch.float64), ["backend", "float64"]),
    ],
    ids=["not ternary", "nan", "float64"],
)
def test_bad_arguments_are_named(change, words):
    dtype = change.pop("dtype", torch.float32)
    arguments = dict(z=torch.zeros(1, 2), w_int=torch.zeros(2, 1), gamma=torch.zeros(1)) | change
    with pytest.raises(ValueError) as raised:
        equilibrium(**{name: here(x).to(dtype) for name, x in arguments.items()}, steps=1, backend="triton")
    assert all(word in message(raised) for word in words), message(raised)


def test_auto_takes_torch_for_other_couplings(monkeypatch):
    z, w_int, gamma = map(here, spin_inputs(2, 3, torch.float32))
    w_int[0, 0] = 0.123
    expected = equilibrium(z, w_int, gamma, 2, backend="torch")
    monkeypatch.setattr(backends, "choose", lambda backend, x: "triton")  # as on a GPU
    assert torch.equal(equilibrium(z, w_int, gamma, 2), expected)


def test_gradient_of_the_drive_alone():
    z, w_int, gamma = map(here, spin_inputs(3, 20, torch.float32))
    z.requires_grad_()
    result, expected = (
        torch.autograd.grad(equilibrium(z, w_int, gamma, 2, backend=backend).sum(), z)[0]
        for backend in ("triton", "torch")
    )
    assert error(result, expected) < TOLERANCE[torch.float32]


@pytest.mark.eq("ternary-round", "ternary-scale")
@pytest.mark.parametrize("autocast", [False, True], ids=["as given", "autocast"])
def test_linear_layer_on_packed_weights(autocast):
    torch.manual_seed(0)
    layer = ternary.TernaryLinear(20, 7).to(DEVICE)
    x = torch.randn(2, 3, 20, device=DEVICE)
    dy = torch.randn(2, 3, 7, device=DEVICE)

    def everything(backend):
        layer.backend = backend
        given = x.clone().requires_grad_()
        with torch.autocast(DEVICE, torch.float16, enabled=autocast):
            y = layer(given)
            result = [y, *torch.autograd.grad(y, (given, layer.weight), dy.to(y.dtype))]
        with torch.no_grad():
            assert error(layer.eval()(x), layer(x)) == 0, "kept and made anew"
            layer.train()
        return dict(zip(("y", "dx", "dw"), result, strict=True))

    result, expected = everything("triton"), everything("torch")
    assert [v.dtype for v in result.values()] == [v.dtype for v in expected.values()]
    assert_same(result, expected, TOLERANCE[torch.float16 if autocast else torch.float32])
    with torch.no_grad():
        layer.eval().backend = "triton"
        before = layer(x)
        layer.weight.mul_(-2)
        assert torch.equal(layer(x), -2 * before), "a stale weight"


def test_autocast_changes_nothing():
    inputs = spin_inputs(3, 20, torch.float32)
    expected = with_grads(lambda *x: fused(*x, steps=2), inputs)
    with torch.autocast(DEVICE, torch.bfloat16):
        result = with_grads(lambda *x: fused(*x, steps=2), inputs)
    assert_same(result, expected, 0.0)


# Seeded bugs: each is put into a copy of the kernels, and the tests named in CAUGHT_BY must fail on it.
CAUGHT_BY = "which_copy or (product and 3-20) or (gradients and 3-20 and float32) or (steps and 5-20)"
BUGS = {
    "none": None,
    "scale missing in the field": ("attractor_forward.py", "tanh(u * s + ", "tanh(u + "),
    "scale missing in the series": ("attractor_backward.py", " * tl.load(scale)  # gamma [BN], s", ""),
    "gamma on the wrong side": ("attractor_backward.py", " + total * weight[None, :])", " + total) * weight[None, :]"),
    "codes in the wrong order": ("ternary.py", "return tl.interleave(even, odd)", "return tl.interleave(odd, even)"),
    "a shift too short": ("ternary.py", "(four >> 4) & 3", "(four >> 3) & 3"),
    "the last spin masked away": ("attractor_forward.py", "real[:, None] & (ks < D)", "real[:, None] & (ks < D - 1)"),
    "phi_g without its last factor": ("attractor_backward.py", "v * t * sg * (1 - sg)", "v * t * sg"),
    "G coupled as U": ("attractor_forward.py", "load_codes(codes + D * row_bytes", "load_codes(codes"),
    "stopped tokens go on": ("attractor_forward.py", "new = tl.where(kept, new, old)", "new = new"),
    "codes of the wrong row": ("ternary.py", "rows[:, None] * row_bytes", "(rows[:, None] // 2 * 2) * row_bytes"),
    "words of the wrong row": ("ternary.py", "rows[:, None] * row_words", "(rows[:, None] // 2 * 2) * row_words"),
    "places of a word in the wrong order": ("ternary.py", "tl.interleave(x[0], x[4])", "tl.interleave(x[4], x[0])"),
    "the change before forgotten": ("attractor_forward.py", "c * c > tol * (b - c)", "c > tol"),
}  # fmt: skip


def test_which_copy():
    expected = os.environ.get("PSPIN_KERNELS_COPY", str(ROOT / "kernels"))
    assert Path(pspin_kernels.__file__).resolve().parent == Path(expected).resolve()
    assert (MODE == "emulated") == ("PSPIN_CHIP" in os.environ)


@pytest.mark.parametrize("bug", BUGS)
def test_seeded_bugs_are_caught(bug, tmp_path):
    copy = tmp_path / "pspin_kernels"
    copy_code(ROOT / "kernels", copy)
    if BUGS[bug] is not None:
        plant(copy, *BUGS[bug])
    words = ("-k", CAUGHT_BY, str(Path(__file__)))
    run = run_tests(tmp_path, ROOT, *words, PSPIN_KERNELS_COPY=str(copy), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    if BUGS[bug] is None:
        assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
        return
    assert_noticed(run)
    assert "AssertionError" in run.stdout, f"noticed, but not by a wrong value:\n{run.stdout[-3000:]}"
    assert "which_copy" not in run.stdout.split("short test summary")[-1]


@pytest.mark.parametrize("tol", [None, 1e-3])
def test_the_layer_hands_its_packed_couplings_on(tol, monkeypatch):
    """Nothing is recovered from floats (which makes the host wait for a device), values and gradients are the same."""
    from pspin_lite.model import Attractor

    cfg = ps.preset("byte-smoke").replace(width=16, inner=24, tol=tol, gamma_start=0.8)
    torch.manual_seed(0)
    layer, x = Attractor(cfg), torch.randn(2, 5, 16)

    def values() -> list:
        layer.zero_grad()
        y = layer(x)
        y.square().sum().backward()
        return [y.detach(), *(p.grad.clone() for p in layer.parameters())]

    expected = values()
    monkeypatch.setattr(backends, "choose", lambda backend, x: "triton")
    monkeypatch.setattr(attractor, "_recover_codes", None)
    for a, b in zip(values(), expected, strict=True):
        assert error(a, b) < 1e-4
