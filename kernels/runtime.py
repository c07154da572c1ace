"""How kernels run in this process. Decided once, when this module is imported, before any kernel is defined: Triton
reads TRITON_INTERPRET when it sees `@triton.jit`, and a kernel defined for the interpreter cannot be compiled later.

    interpret   values on the CPU, through Triton's interpreter; also with a GPU, if TRITON_INTERPRET=1
    compile     for the GPU that is here, or (PSPIN_KERNELS=compile) for GPUs that are not, to look at the machine code
"""

from __future__ import annotations

import os

import torch

if os.environ.get("PSPIN_KERNELS") == "compile":
    INTERPRETED = False
else:
    INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1" or not torch.cuda.is_available()
if INTERPRETED:
    os.environ["TRITON_INTERPRET"] = "1"
