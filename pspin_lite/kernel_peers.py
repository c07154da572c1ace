"""flash-linear-attention's kernels for the same operation as our chunked state space, described for `kernel_report`.

For comparison only: the package fla-core need not be installed. Its tiles for dqkwg and dv follow from the chip's
shared memory and the width: 128 columns on an H100, otherwise 64, so that a width of 68 or 88 takes one tile of 128 or
two of 64. Warps and the other kernels' tiles it chooses by timing on the GPU at hand. Without one we compile tiles of
64 with four and with eight warps, and `kernel_report` shows the one with the least stack.
"""

from __future__ import annotations

from itertools import product

import torch

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
    found = []
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
            found.append(one | (dict(chips=BY_CHIP[tile]) if by_chip else {}))
    return found


def _unwrapped(kernel):
    """The function to compile, out of the wrappers that tune it."""
    while not hasattr(kernel, "arg_names") or hasattr(kernel, "configs") or hasattr(kernel, "values"):
        kernel = kernel.fn
    return kernel
