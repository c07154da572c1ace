"""python -m pspin_lite kernels --tutorials FOLDER: kernels of four of Triton's tutorials, executed by the emulator.

The folder holds the files of `python/tutorials` in Triton's repository, which are not in this one. Of a tutorial we
take imports, functions and classes as they are, and leave out what runs, because it asks for a GPU and times it. The
table has the largest error on an A100 or an H100, relative to the largest entry of PyTorch's result in float64.
"""

from __future__ import annotations

import ast
import importlib
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from . import machine_code

CHIPS = ("sm_80", "sm_90")
LIMITS = dict(float32=1e-6, float16=2e-3, bfloat16=1.6e-2)  # a few roundings of the result's type
TF32 = 5e-3  # of a product of float32 numbers, whose operands lose 13 bits
NORMS = ((300, 1000), (1151, 8192))
Results = Iterator[tuple[str, torch.Tensor, torch.Tensor]]


def module_of(path: Path, folder: str) -> Any:
    """A tutorial without what runs. Triton reads the source of kernels, so it has to be a file."""
    text = path.read_text(encoding="utf-8")
    parts = []
    for node in ast.parse(text).body:
        device = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DEVICE"
        timed = any("perf_report" in ast.unparse(one) for one in getattr(node, "decorator_list", []))
        if device or (isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef) and not timed):
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
            parts.append("\n".join(text.splitlines()[first - 1 : node.end_lineno]))
    place = Path(folder) / f"tutorial_{path.name[:2]}.py"
    place.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    sys.path.insert(0, folder)
    return importlib.import_module(place.stem)


def drawn(*shape: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def vector_sum(module: Any, dtype: torch.dtype, chip: str) -> Results:
    x, y = drawn(98432, dtype=dtype), drawn(98432, dtype=dtype, seed=1)
    yield "sum", module.add(x, y), x.double() + y.double()


def softmax(module: Any, dtype: torch.dtype, chip: str) -> Results:
    """The tutorial asks the GPU how many programs fit at once. Here there are 216 of them."""
    x = drawn(1823, 781, dtype=dtype)
    y, stages = torch.full_like(x, torch.nan), 4 if chip == "sm_90" else 2
    module.softmax_kernel[(216,)](y, x, x.stride(0), y.stride(0), *x.shape, 1024, stages, num_warps=8)
    yield "softmax", y, x.double().softmax(-1)


def product(module: Any, dtype: torch.dtype, chip: str) -> Results:
    """The first size with the first configuration that fits into shared memory, the second with each that does."""
    from triton.runtime.errors import OutOfResources

    kernel = module.matmul_kernel
    configs, fit = list(kernel.configs), 0
    for name, M, K, N in (("product", 512, 512, 512), ("leaky ReLU of it", 201, 130, 301)):
        a, b = drawn(M, K, dtype=dtype), drawn(K, N, dtype=dtype, seed=1)
        exact = a.double() @ b.double()
        for config in configs:
            kernel.configs = [config]
            kernel.cache.clear()
            try:
                c = module.matmul(a, b, "leaky_relu" if "ReLU" in name else "")
            except OutOfResources:
                continue
            yield name, c, F.leaky_relu(exact) if "ReLU" in name else exact
            fit += 1
            if name == "product":
                break
    assert fit > 1, "no configuration fits"


def layer_norm(module: Any, dtype: torch.dtype, chip: str) -> Results:
    for rows, width in NORMS:
        x, dy = (-2.3 + 0.5 * drawn(rows, width, dtype=dtype)), 0.1 * drawn(rows, width, dtype=dtype, seed=1)
        w, b = (torch.rand(width, generator=torch.Generator().manual_seed(i)).to(dtype) for i in (2, 3))
        values = [one.requires_grad_() for one in (x, w, b)]
        exact = [one.detach().double().requires_grad_() for one in values]
        y, expected = module.LayerNorm.apply(x, (width,), w, b, 1e-5), F.layer_norm(exact[0], (width,), *exact[1:])
        grads = torch.autograd.grad(y, values, dy), torch.autograd.grad(expected, exact, dy.double())
        yield from zip(("y", "dx", "dw", "db"), (y, *grads[0]), (expected, *grads[1]), strict=True)


TUTORIALS = {
    "01-vector-add.py": vector_sum,
    "02-fused-softmax.py": softmax,
    "03-matrix-multiplication.py": product,
    "05-layer-norm.py": layer_norm,
}


def measure(folder: str, name: str, chip: str, dtype: str) -> list[dict]:
    from ..emulator.driver import chip as emulated
    from .executed import error

    worst: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as scratch, emulated(chip):
        module = module_of(Path(folder) / name, scratch)
        for what, result, exact in TUTORIALS[name](module, getattr(torch, dtype), chip):
            worst[what] = max(worst.get(what, 0.0), error(result.detach(), exact.detach()))
    return [dict(result=what, error=value) for what, value in worst.items()]


def main(folder: str) -> int:
    """Prints the table, a tutorial as soon as it has run. 1 if an error is above its limit."""
    print(f"| tutorial | result | {' | '.join(LIMITS)} |\n|---|---|{'---:|' * len(LIMITS)}")
    wrong = 0
    for name in TUTORIALS:
        errors: dict[str, dict[str, float]] = {}
        for chip in CHIPS:
            for dtype in LIMITS:
                job = dict(folder=str(Path(folder).resolve()), name=name, chip=chip, dtype=dtype)
                for row in machine_code.elsewhere(__name__, json.dumps(job)):
                    of_type = errors.setdefault(row["result"], {})
                    of_type[dtype] = max(of_type.get(dtype, 0.0), row["error"])
        for what, found in errors.items():
            tf32 = name.startswith("03")
            wrong += sum(not e < (TF32 if tf32 and t == "float32" else LIMITS[t]) for t, e in found.items())
            print(f"| `{name}` | {what} | {' | '.join(f'{e:.1e}' for e in found.values())} |", flush=True)
    print(f"{wrong} above their limits: {LIMITS}, products of float32 numbers {TF32:g}")
    return int(wrong > 0)


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
