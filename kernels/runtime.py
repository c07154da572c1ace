"""How kernels run in this process. Decided once, when this module is imported, before any kernel is defined: Triton
reads TRITON_INTERPRET when it sees `@triton.jit`, and a kernel defined for the interpreter cannot be compiled later.

    interpret   values on the CPU, through Triton's interpreter; also with a GPU, if TRITON_INTERPRET=1
    compile     for the GPU that is here, or (PSPIN_KERNELS=compile) for GPUs that are not, to look at the machine code

Triton's own library (tl.sum, tl.zeros, ..) consists of such functions too. If triton was imported before us, as
torch.utils.flop_counter does, they were defined for a compiler; for the interpreter they are defined anew.
"""

from __future__ import annotations

import os
import sys

import torch

if os.environ.get("PSPIN_KERNELS") == "compile":
    INTERPRETED = False
else:
    INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1" or not torch.cuda.is_available()


def _interpret_library() -> None:
    language = sys.modules.get("triton.language")
    if language is None:
        return
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    anew: dict[int, InterpretedFunction] = {}  # one for each: Triton compares some of them by identity
    for place in (language.standard, language.random, language, language.tensor):
        for name, value in list(vars(place).items()):
            if isinstance(value, JITFunction):
                function = anew.setdefault(id(value), InterpretedFunction(value.fn))
                setattr(place, name, _method(function) if place is language.tensor else function)


def _method(function):
    return lambda *args, **kwargs: function(*args, **kwargs)


if INTERPRETED:
    os.environ["TRITON_INTERPRET"] = "1"
    _interpret_library()
