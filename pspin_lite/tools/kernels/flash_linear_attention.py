"""flash-linear-attention's kernels for the same operation as our chunked state space, described for `kernel_report`.

For comparison only: the package fla-core need not be installed. Its tiles for dqkwg and dv follow from the chip's
shared memory and the width: 128 columns on an H100, otherwise 64, so that a width of 68 or 88 takes one tile of 128 or
two of 64. Warps and the other kernels' tiles it chooses by timing on the GPU at hand. Without one we compile tiles of
64 with four and with eight warps, and `kernel_report` shows the one with the least stack.

`comparison` prints ours (the parallel form, which is cut up as theirs is) beside theirs. What they need two kernels
for, `dqkwg` and `dv`, is one of ours: it stands against each of them.
"""

from __future__ import annotations

import re
from itertools import product

import torch

PAIRS = {  # operation -> their kernel, ours
    "states": ("fla states", ["parallel pass_states"]),
    "outputs": ("fla outputs", ["parallel chunk_outputs"]),
    "gradients of the states": ("fla bwd dh", ["backward pass_states reverse"]),
    "dq, dk": ("fla bwd dqkwg", ["backward chunk_gradients"]),
    "dv": ("fla bwd dv", ["backward chunk_gradients"]),
}
POINTERS = {torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16"}
WARPS = (4, 8)
BY_CHIP = {64: ("sm_80", "gfx942"), 128: ("sm_90",)}  # tile -> chips, for dqkwg and dv


def specimens(d: int, chunk: int, dtype: torch.dtype, B: int = 1, T: int = 2048, H: int = 8) -> list[dict]:
    from fla.ops.common import chunk_h, chunk_o
    from triton import cdiv

    p, state, size = POINTERS[dtype], "*fp32", dtype.itemsize
    heads = dict(H=H, HV=H, HQ=H, NG=1, B=B, K=d, V=d, BT=chunk, BS=chunk)
    flags = dict(USE_G=True, USE_G_GAMMA=False, USE_GK=False, USE_GV=False, USE_DW=False, IS_VARLEN=False)
    flags |= dict(STATE_V_FIRST=False, USE_INITIAL_STATE=True, STORE_FINAL_STATE=True)
    flags |= dict(STORE_INITIAL_STATE_GRADIENT=True, USE_FINAL_STATE_GRADIENT=True)
    absent = dict.fromkeys(("g_gamma", "gk", "gv", "cu_seqlens", "chunk_indices", "split_offsets", "dw"))
    types = dict(q=p, k=p, v=p, o=p, do=p, dq=p, dk=p, g="*fp32", dg="*fp32", scale="fp32", T="i32")
    types |= dict(h0="*fp32", ht="*fp32", dh0="*fp32", dht="*fp32")
    rows, chunks = B * T * H * d * size, B * H * cdiv(T, chunk)  # bytes of q; how many chunks there are
    states = chunks * d * d  # numbers in the states of all chunks
    inner, cross = 2 * chunks * chunk * chunk * d, 2 * chunks * chunk * d * d  # operations of one product of each kind
    result = []
    for name, kernel, extra, bytes_, flops, by_chip in (
        ("states", chunk_h.chunk_fwd_kernel_h, dict(h=p), 2 * rows + states * size, cross, False),
        ("outputs", chunk_o.chunk_fwd_kernel_o, dict(h=p), 4 * rows + states * size, 2 * inner + cross, False),
        ("bwd dh", chunk_h.chunk_bwd_kernel_dh, dict(dh=state), 2 * rows + states * 4, cross, False),
        ("bwd dqkwg", chunk_o.chunk_bwd_kernel_dqkwg, dict(h=state, dh=state, dv=None),
         6 * rows + states * 8, 3 * inner + 2 * cross, True),
        ("bwd dv", chunk_o.chunk_bwd_kernel_dv, dict(dh=state, dv=p), 4 * rows + states * 4, 2 * inner + cross, True),
    ):  # fmt: skip
        kernel = _unwrapped(kernel)
        for tile, warps in product(BY_CHIP if by_chip else (64,), WARPS):
            known = types | absent | heads | flags | extra | dict(BK=tile, BV=tile)
            mine = {argument: known[argument] for argument in kernel.arg_names}
            width = cdiv(d, tile)
            one = dict(name=f"fla {name}, tiles {tile}", kernel=kernel, num_warps=warps, num_stages=2)
            one["signature"] = {argument: value for argument, value in mine.items() if isinstance(value, str)}
            one["constexprs"] = {argument: value for argument, value in mine.items() if not isinstance(value, str)}
            one |= dict(programs=B * H * width**2 if "BS" in mine else chunks * width, bytes=bytes_, flops=flops)
            one["padded"] = 2 * (width * tile - d)  # columns of keys and of values
            result.append(one | (dict(chips=BY_CHIP[tile]) if by_chip else {}))
    return result


def _unwrapped(kernel):
    """The function to compile, out of the wrappers that tune it."""
    while not hasattr(kernel, "arg_names") or hasattr(kernel, "configs") or hasattr(kernel, "values"):
        kernel = kernel.fn
    return kernel


def compared(rows: list[dict]) -> list[dict]:
    """Ours beside theirs: one entry for each shape, chunk, chip and operation that both are among the rows for. Of
    several of our kernels the worst: most stack, registers, shared memory and padding, fewest programs in flight."""
    of_both = [row for row in rows if row["part"] in ("state-space", "fla")]
    fitting = [row for row in of_both if row["dtype"] == "bfloat16" and "error" not in row]
    known = {(row["shape"], *_name(row), row["chip"]): row for row in fitting}
    rows = []
    for shape, chunk, chip in sorted({(shape, chunk, chip) for shape, chunk, _, chip in known}):
        for operation, (theirs, ours) in PAIRS.items():
            their, *our = (known.get((shape, chunk, name, chip)) for name in (theirs, *ours))
            if their is None or None in our:
                continue
            worst = {key: max(row[key] for row in our) for key in ("stack", "registers", "shared", "padded")}
            worst["in_flight"] = min(row["in_flight"] for row in our)
            rows.append(dict(shape=shape, chip=chip, chunk=chunk, operation=operation, ours=worst, theirs=their))
    return rows


def _name(row: dict) -> tuple[int, str]:
    """Chunk, and the name without it and without the size of tiles: "fla bwd dv, tiles 64, chunk 128"."""
    name, chunk = re.fullmatch(r"(.*?)(?:, tiles \d+)?, chunk (\d+)", row["name"]).groups()
    return int(chunk), name


def comparison(rows: list[dict]) -> str:
    keys = dict(stack="stack", registers="registers", shared="shared", padded="wasted columns", in_flight="in flight")
    lines = ["== ours and flash-linear-attention's, bfloat16, batch 1: ours / theirs"]
    before = None
    for one in compared(rows):
        heading = f"{one['shape']}, chunk {one['chunk']}, {one['chip']}"
        if heading != before:
            lines += ["", f"{heading:<32}" + "".join(f"{title:>18}" for title in keys.values())]
            before = heading
        values = "".join(f"{one['ours'][key]:>9} /{one['theirs'][key]:>7}" for key in keys)
        either = "" if one["theirs"]["stack"] else "   no stack there either"
        lines.append(f"  {one['operation']:<30}{values}{either}")
    return "\n".join(lines)
