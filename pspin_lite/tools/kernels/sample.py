"""A few kernels compiled for GPUs that need not be here, for notebook 03: seconds, where `pspin_lite kernels`, which
compiles all of them at all shapes, takes many minutes.

    rows = kernel_sample.run("walk walk", "bfloat16", chips=["sm_80"], changes=[{}, {"num_warps": 2}])

In a process of its own, like everything that compiles (see report.py). Rows are those of `report.measure`
with the change added.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

from . import machine_code


def run(
    name: str,
    dtype: str = "bfloat16",
    shape: str = "byte",
    chunk: int = 64,
    chips: Sequence[str] = ("sm_80",),
    changes: Sequence[Mapping[str, int]] = ({},),
) -> list[dict]:
    """The state-space kernel whose specimen is called `name`, once for each change of how it is launched (num_warps,
    num_stages, maxnreg) and each chip."""
    asked = json.dumps(dict(name=name, dtype=dtype, shape=shape, chunk=chunk, chips=chips, changes=changes))
    return machine_code.elsewhere(__name__, asked)


def measure(name: str, dtype: str, shape: str, chunk: int, chips: list[str], changes: list[dict]) -> list[dict]:
    from ... import _checks as checks
    from . import report

    known = {s["name"]: s for s in report.specimens(["state-space"], [shape], [dtype], [chunk])}
    specimen = known[checks.choice("name", f"{name}, chunk {chunk}", known)]
    rows = []
    for change in changes:
        kept = {key: value for key, value in specimen.items() if change.get(key, "") is not None}
        rows += [row | change for row in report.measure([kept | change], chips)]
    return rows


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
