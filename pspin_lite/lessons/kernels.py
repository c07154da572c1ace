"""The walk along the chunks as the reader writes it in notebook 02, for those that go on from there; the walk in either
direction, the kernel around the gates and the comparisons of notebook 03; a block of a matrix and the
rest of the backward step, for notebook 07."""

from __future__ import annotations

from pspin_kernels import runtime  # isort: skip  # noqa: F401  (first: it decides how kernels run)

from collections.abc import Callable, Mapping, Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from .. import state_space
from ..tools import measure


@triton.jit
def load_rows(x_ptr, first, T, d, C: tl.constexpr, WIDTH: tl.constexpr):
    t, c = first + tl.arange(0, C), tl.arange(0, WIDTH)
    inside = (t[:, None] < T) & (c[None, :] < d)
    return tl.load(x_ptr + t[:, None] * d + c[None, :], mask=inside, other=0.0)


@triton.jit
def store_rows(x_ptr, block, first, T, d, C: tl.constexpr, WIDTH: tl.constexpr):
    t, c = first + tl.arange(0, C), tl.arange(0, WIDTH)
    inside = (t[:, None] < T) & (c[None, :] < d)
    tl.store(x_ptr + t[:, None] * d + c[None, :], block, mask=inside)


@triton.jit
def load_chunk(q_ptr, k_ptr, v_ptr, g_ptr, head, first, T, d, C: tl.constexpr, WIDTH: tl.constexpr):
    at, t = head * T * d, first + tl.arange(0, C)
    q = load_rows(q_ptr + at, first, T, d, C, WIDTH)
    k = load_rows(k_ptr + at, first, T, d, C, WIDTH)
    v = load_rows(v_ptr + at, first, T, d, C, WIDTH)
    return q, k, v, tl.load(g_ptr + head * T + t, mask=t < T, other=0.0)


@triton.jit
def decay_mask(g, C: tl.constexpr):  # [C] → [C, C]
    i = tl.arange(0, C)
    after_j = tl.where(i[:, None] > i[None, :], g[:, None], 0.0)  # g_i where i > j
    segment = tl.cumsum(after_j, 0)
    return tl.where(i[:, None] >= i[None, :], tl.exp(segment), 0.0)


@triton.jit
def decays(g, C: tl.constexpr):  # what is left from the chunk's start, and to its end
    i = tl.arange(0, C)
    from_start = tl.sum(tl.where(i[None, :] <= i[:, None], g[None, :], 0.0), 1)
    to_end = tl.sum(tl.where(i[None, :] > i[:, None], g[None, :], 0.0), 1)
    return tl.exp(from_start), tl.exp(to_end)  # e^S, e^(S_C - S): [C] each


@triton.jit
def within(q, k, v, g, C: tl.constexpr):  # all on chip
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * decay_mask(g, C)
    return tl.dot(scores.to(v.dtype), v, input_precision="ieee")


@triton.jit
def write(k, v, g, C: tl.constexpr):  # what a chunk adds, and what it keeps of h
    _, to_end = decays(g, C)
    faded = (v * to_end[:, None]).to(v.dtype)  # the decay may sit on k or on v
    added = tl.dot(tl.trans(k), faded, input_precision="ieee")
    return added, tl.exp(tl.sum(g, 0))


@triton.jit
def output(q, k, v, g, h, C: tl.constexpr):
    from_start, _ = decays(g, C)
    before = tl.dot(q, h.to(q.dtype), input_precision="ieee") * from_start[:, None]
    return before + within(q, k, v, g, C)


@triton.jit
def walk(q_ptr, k_ptr, v_ptr, g_ptr, h_ptr, o_ptr, T, d, C: tl.constexpr, WIDTH: tl.constexpr):
    head = tl.program_id(0)
    h_ptr, o_ptr = h_ptr + head * d * d, o_ptr + head * T * d  # of my head
    h = load_rows(h_ptr, 0, d, d, WIDTH, WIDTH)  # on chip from here on
    for first in range(0, T, C):
        q, k, v, g = load_chunk(q_ptr, k_ptr, v_ptr, g_ptr, head, first, T, d, C, WIDTH)
        store_rows(o_ptr, output(q, k, v, g, h, C), first, T, d, C, WIDTH)
        added, kept = write(k, v, g, C)
        h = kept * h + added
    store_rows(h_ptr, h, 0, d, d, WIDTH, WIDTH)


@triton.jit
def dot(a, b):
    return tl.dot(a, b, input_precision="ieee")


@triton.jit
def walk_either_way(
    q_ptr, k_ptr, v_ptr, g_ptr, h_ptr, o_ptr, states_ptr, T, d, chunks,
    C: tl.constexpr, WIDTH: tl.constexpr, chunk_step: tl.constexpr,
    REVERSE: tl.constexpr, TRANSPOSED: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(0)
    h_ptr, o_ptr = h_ptr + head * d * d, o_ptr + head * T * d  # of my head
    h = load_rows(h_ptr, 0, d, d, WIDTH, WIDTH)
    h = tl.trans(h) if TRANSPOSED else h
    for step in range(chunks):
        n = chunks - 1 - step if REVERSE else step
        at, first = states_ptr + (head * chunks + n) * d * d, n * C
        store_rows(at, h, 0, d, d, WIDTH, WIDTH)
        q, k, v, g = load_chunk(q_ptr, k_ptr, v_ptr, g_ptr, head, first, T, d, C, WIDTH)
        o, h = chunk_step(q, k, v, h, g, C, REVERSE)
        store_rows(o_ptr, o, first, T, d, C, WIDTH)
    h = tl.trans(h) if TRANSPOSED else h
    store_rows(h_ptr, h, 0, d, d, WIDTH, WIDTH)


def run_walk(
    chunk_step: Callable, q: Tensor, k: Tensor, v: Tensor, g: Tensor, h: Tensor,
    reverse: bool = False, transposed: bool = False, C: int = 16, WIDTH: int = 16,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    q, k, v, h = (x.contiguous() for x in (q, k, v, h.clone()))
    (H, T, d), chunks = q.shape, triton.cdiv(q.shape[1], C)
    o, states = torch.empty_like(v), v.new_empty(H, chunks, d, d)
    how = dict(C=C, WIDTH=WIDTH, chunk_step=chunk_step, REVERSE=reverse, TRANSPOSED=transposed)
    walk_either_way[(H,)](q, k, v, g, h, o, states, T, d, chunks, **how)
    return o, h, states  # h: the state at the other end


@triton.jit
def gates(
    q_ptr, k_ptr, v_ptr, do_ptr, g_ptr, states_ptr, dstates_ptr, dg_ptr, T, d,
    C: tl.constexpr, WIDTH: tl.constexpr, sum_flows: tl.constexpr,
):  # fmt: skip
    head, n, chunks = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    first = n * C
    q, k, v, g = load_chunk(q_ptr, k_ptr, v_ptr, g_ptr, head, first, T, d, C, WIDTH)
    do = load_rows(do_ptr + head * T * d, first, T, d, C, WIDTH)
    at, t = (head * chunks + n) * d * d, first + tl.arange(0, C)
    h = load_rows(states_ptr + at, 0, d, d, WIDTH, WIDTH)
    dh_after = load_rows(dstates_ptr + at, 0, d, d, WIDTH, WIDTH)
    dg = sum_flows(q, k, v, do, g, h, dh_after, C)
    tl.store(dg_ptr + head * T + t, dg, mask=t < T)


def run_gates(
    sum_flows: Callable, q: Tensor, k: Tensor, v: Tensor, do: Tensor, g: Tensor, states: Tensor, dstates: Tensor,
    C: int = 16, WIDTH: int = 16,
) -> Tensor:  # fmt: skip
    q, k, v, do = (x.contiguous() for x in (q, k, v, do))
    (T, d), dg = q.shape[1:], torch.empty_like(g)
    gates[states.shape[:2]](q, k, v, do, g, states, dstates, dg, T, d, C, WIDTH, sum_flows)
    return dg  # by one program for each chunk of each head


@triton.jit
def apply_to_block(in_ptr, out_ptr, C: tl.constexpr, function: tl.constexpr):
    t = tl.arange(0, C)
    tl.store(out_ptr + t, function(tl.load(in_ptr + t[:, None] * C + t[None, :]), C))


def run_on_block(function: Callable, block: Tensor) -> Tensor:  # a kernel's function [C, C] -> [C], by itself
    result = block.new_empty(len(block))
    apply_to_block[(1,)](block.contiguous(), result, len(block), function)
    return result


@triton.jit
def load_block(x, rows, cols, R, C, stride):  # of x [R, C]; zeros outside
    inside = (rows[:, None] < R) & (cols[None, :] < C)
    return tl.load(x + rows[:, None] * stride + cols[None, :], mask=inside, other=0.0)


@triton.jit
def store_block(x, block, rows, cols, R, C):
    inside = (rows[:, None] < R) & (cols[None, :] < C)
    tl.store(x + rows[:, None] * C + cols[None, :], block, mask=inside)


@triton.jit
def field_gradient(adjoint, acts, rows, ks, T, I):  # two tiles of rows × ks
    t = load_block(acts, rows, ks, T, I, 2 * I)  # tanh u
    sg = load_block(acts + I, rows, ks, T, I, 2 * I)  # sigmoid(a)
    before = load_block(adjoint, rows, ks, T, I, I)
    return before * (1 - t * t) * sg, before * t * sg * (1 - sg)  # Eq. spin-slopes


@triton.jit
def neumann_step(
    dy, adjoint, out, acts, packed, scale, gamma, T, I, row_bytes,
    BM: tl.constexpr, BN: tl.constexpr, send_back: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    first_byte = tl.program_id(1) * BN // 4  # four columns per byte
    total = send_back(adjoint, acts, packed, rows, first_byte, T, I, row_bytes)
    damping = tl.load(gamma + cols, mask=cols < I, other=0.0) * tl.load(scale)
    new = load_block(dy, rows, cols, T, I, I) + total * damping[None, :]  # Eq. neumann
    store_block(out, new, rows, cols, T, I)


def heads_first(form: Callable, **options: object) -> Callable:
    """A form of pspin_lite.state_space for q, k, v [H,T,d], g [H,T], h [H,d,d], or for one head without the H."""

    def call(q: Tensor, k: Tensor, v: Tensor, g: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        single = q.ndim == 2
        tensors = [x[None] if single else x for x in (q, k, v, g, h)]
        o, end = form(*(x.transpose(0, 1)[None] for x in tensors[:4]), state=tensors[4][None], **options)
        o, end = o[0].transpose(0, 1), end[0]
        return (o[0], end[0]) if single else (o, end)

    return call


NAMES = ("o", "h", "dq", "dk", "dv", "dg", "dh")


def differentiate(function: Callable, inputs: Sequence[Tensor], do: Tensor, dh: Tensor) -> dict[str, Tensor]:
    """Outputs of function(q, k, v, g, h), and by autograd the gradients of its inputs when those of o and h are given:
    the entries of NAMES."""
    inputs = [x.detach().clone().requires_grad_() for x in inputs]
    o, h = function(*inputs)
    grads = torch.autograd.grad((o * do).sum() + (h * dh).sum(), inputs)
    return dict(zip(NAMES, (o.detach(), h.detach(), *grads), strict=True))


def compare_all(what: str, mine: dict[str, Tensor], reference: dict[str, Tensor], tolerance: float = 1e-5) -> None:
    """Raises unless all entries agree within `tolerance` of the largest number in each."""
    for name, expected in reference.items():
        error = (mine[name] - expected).abs().max() / expected.abs().max()
        assert error <= tolerance, f"{what}: {name} is off by {error:.1e} of its largest entry"
    print(f"✓ {what}: {', '.join(reference)}")


def compare_operands(
    guess: Sequence[str] | None, tensors: Mapping[str, Tensor], walk: Callable, rest: Sequence, expected: Tensor
) -> None:
    """Says whether the tensors that the reader names give what is expected, as walk(*tensors, *rest)[0]."""
    if guess is None:
        print("no guess yet: type three names in place of None and run the cell again")
    else:
        error = (walk(*(tensors[name] for name in guess), *rest)[0] - expected).abs().max()
        print("yes, that is it" if error < 1e-10 else f"no, off by up to {error:.1f}")


def stored(form: Callable, d: int, T: int = 512) -> float:
    """Numbers that form(q, k, v, g, h) keeps for its backward pass, per token of one head of width d; h is constant and
    needs no gradient."""
    q, k, v = (torch.randn(T, d, requires_grad=True) for _ in range(3))
    g, h = (-torch.rand(T)).requires_grad_(), torch.zeros(d, d)
    return measure.saved_bytes(lambda: form(q, k, v, g, h)) / 4 / T


STRENGTHS = (0.1, 0.5, 1, 2, 3, 4, 5, 10, 15, 20, 40, 80)


def decay_gradients(
    shortcut: Callable, strengths: Sequence[float] = STRENGTHS, T: int = 64, d: int = 16
) -> dict[float, tuple[Tensor, dict[str, Tensor]]]:
    """gate_gradients for gates that are all equal, when every log decay is -strength."""
    return {strength: gate_gradients(shortcut, torch.full((T,), -float(strength)), d) for strength in strengths}


def gate_gradients(shortcut: Callable, g: Tensor, d: int = 16) -> tuple[Tensor, dict[str, Tensor]]:
    """The gradients of one head's log decays g (T,), its q, k, v and do random: the reference, by the recurrence in
    float64, and in float32 by shortcut(q, k, dq, dk), with and without rounding of dq and dk, and by the package's
    sums."""
    numbers = torch.randn(4, len(g), d, generator=torch.Generator().manual_seed(1), device="cpu")
    q, k, v, do = numbers.to(g.device)
    chunked = heads_first(state_space.chunked, chunk=16, backend="torch")
    inputs = (q, k, v, g.detach().float(), torch.zeros(d, d, device=g.device))
    inputs64 = [x.double() for x in inputs]
    reference = differentiate(heads_first(state_space.recurrent), inputs64, do.double(), inputs64[-1])["dg"]
    grads = differentiate(chunked, inputs, do, inputs[-1])
    dq, dk = grads["dq"], grads["dk"]
    methods = {
        "shortcut, ∂q and ∂k in bfloat16": shortcut(q, k, dq.bfloat16(), dk.bfloat16()),
        "shortcut, float32": shortcut(q, k, dq, dk),
        "sums (ours), float32": grads["dg"],
    }
    return reference, methods
