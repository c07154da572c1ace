"""flash-linear-attention's kernels for the same operation as our chunked state space, described for `kernel_report`.

For comparison only: the package fla-core need not be installed. Its kernels choose tiles and warps by timing on the GPU
at hand; without one, we compile the tiles it would choose from, at four warps and two stages:
    64      on an A100, whose shared memory does not allow more for the 32-bit states of its backward pass
    128     on an H100
Its chunks are 64 tokens by default. A width of 68 or 88 takes two tiles of 64 or one of 128.
"""

from __future__ import annotations

import torch

POINTERS = {torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16"}
TILES = (64, 128)


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
    for tile in TILES:
        width = cdiv(d, tile)
        for name, kernel, extra, programs, bytes_, flops in (
            ("states", chunk_h.chunk_fwd_kernel_h, dict(h=p), B * H * width**2, 2 * rows + states * size, cross),
            ("outputs", chunk_o.chunk_fwd_kernel_o, dict(h=p), chunks * width,
             4 * rows + states * size, 2 * inner + cross),
            ("bwd dh", chunk_h.chunk_bwd_kernel_dh, dict(dh=state), B * H * width**2, 2 * rows + states * 4, cross),
            ("bwd dqkwg", chunk_o.chunk_bwd_kernel_dqkwg, dict(h=state, dh=state, dv=None), chunks * width,
             6 * rows + states * 8, 3 * inner + 2 * cross),
            ("bwd dv", chunk_o.chunk_bwd_kernel_dv, dict(dh=state, dv=p), chunks * width,
             4 * rows + states * 4, 2 * inner + cross),
        ):  # fmt: skip
            kernel = _unwrapped(kernel)
            known = types | absent | heads | flags | extra | dict(BK=tile, BV=tile)
            mine = {argument: known[argument] for argument in kernel.arg_names}
            signature = {argument: value for argument, value in mine.items() if isinstance(value, str)}
            constexprs = {argument: value for argument, value in mine.items() if not isinstance(value, str)}
            cost = dict(programs=programs, bytes=bytes_, flops=flops, num_warps=4, num_stages=2)
            found.append(
                dict(name=f"fla {name}, tiles {tile}", kernel=kernel, signature=signature, constexprs=constexprs) | cost
            )
    return found


def _unwrapped(kernel):
    """The function to compile, out of the wrappers that tune it."""
    while not hasattr(kernel, "arg_names") or hasattr(kernel, "configs") or hasattr(kernel, "values"):
        kernel = kernel.fn
    return kernel
