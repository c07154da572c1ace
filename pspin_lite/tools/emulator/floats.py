"""Arithmetic of float32, float64, float16 and bfloat16, alone and in pairs, and the approximate functions.

What it models: rounding to nearest even; .ftz, which flushes subnormal numbers; .sat; min and max that ignore nan or,
with .NaN, pass it on.

Where it deviates from a chip
    - fma of float32 is computed in float64 and rounded twice: another last bit in about one of 2^29 results.
    - Approximate instructions (ex2, lg2, div.full ..) are rounded correctly. With `pessimistic`, each result is off by
      the largest error that the PTX ISA states, up or down by chance (a fixed seed), and then rounded.
    - Other roundings than to nearest are not known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import integers, numbers
from .parser import Instruction
from .program import Program, Run, elementwise, opcode, source, target, unknown

Array = np.ndarray
F64 = np.dtype("f8")
FLOATING = {"f16", "bf16", "f16x2", "bf16x2", "f32", "f64"}


def fused(x: Array, y: Array, z: Array) -> Array:
    """x y + z, the product exact. float64 is as exact as it gets, and not fused."""
    result = np.multiply(x, y, dtype=F64)
    if result.shape == np.broadcast_shapes(result.shape, z.shape):
        result += z
    else:
        result = result + z
    return result


ARITHMETIC: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "fma": fused,
    "mad": fused,
    "min": np.fmin,
    "max": np.fmax,
    "abs": np.abs,
    "neg": np.negative,
    "div": np.divide,
    "sqrt": np.sqrt,
}


@opcode("add", "sub", "mul", "fma", "mad", "min", "max", "abs", "neg", "div")
def arithmetic(one: Instruction, program: Program) -> Run:
    name, kind = one.parts[0], one.parts[-1]
    if kind not in FLOATING:
        return _integer(one, program)
    if name == "div" and {"full", "approx"} & set(one.parts):
        return approximate(one, program)
    modes = set(one.parts[1:-1])
    if modes - {"rn", "ftz", "sat", "NaN"}:
        raise unknown(one)
    function = ARITHMETIC[name]
    if "NaN" in modes:
        function = np.minimum if name == "min" else np.maximum
    function = adjusted(function, kind, modes)
    d, *rest = one.operands
    return elementwise(program, function, (d, kind), *[(operand, kind) for operand in rest])


def adjusted(function: Callable[..., Array], kind: str, modes: set[str]) -> Callable[..., Array]:
    """With .ftz and .sat."""
    result = function
    if "ftz" in modes and kind == "f32":
        inner = result
        result = lambda *x: numbers.flush(inner(*[numbers.flush(one) for one in x]).astype(np.float32))  # noqa: E731
    if "sat" in modes:
        exact = result

        def result(*x: Array) -> Array:
            value = exact(*x)
            return np.where(np.isnan(value), value.dtype.type(0), np.clip(value, 0, 1))

    return result


def _integer(one: Instruction, program: Program) -> Run:
    name, kind = one.parts[0], one.parts[-1]
    if name in ("mul", "mad"):
        return integers.multiply(one, program)
    if name in ("abs", "neg"):
        d, a = one.operands
        return elementwise(program, np.abs if name == "abs" else np.negative, (d, kind), (a, kind))
    return integers.binary(one, program)


def _far(function: Callable[..., Array]) -> Callable[..., Array]:
    """Computed in float64, rounded once."""
    return lambda *x: function(*[one.astype(F64) for one in x]).astype(np.float32)


# name -> function, largest error that the PTX ISA states: relative, absolute for sin and cos, and for lg2 absolute
# between 0.5 and 2, where the result is below 1, and relative beyond
APPROXIMATE = {
    "ex2": (_far(np.exp2), 2**-22),
    "lg2": (_far(np.log2), 2**-22),
    "rcp": (_far(lambda x: 1 / x), 2**-23),
    "sqrt": (_far(np.sqrt), 2**-23),
    "rsqrt": (_far(lambda x: 1 / np.sqrt(x)), 2**-22.9),
    "div": (_far(np.divide), 2**-22),
    "sin": (_far(np.sin), 2**-20.5),
    "cos": (_far(np.cos), 2**-20.5),
    "tanh": (_far(np.tanh), 2**-11),
}
# The same for 16 bits; tanh's are absolute
HALVES = {("ex2", "f16"): 2**-9.9, ("ex2", "bf16"): 2**-7, ("tanh", "f16"): 2**-10.987, ("tanh", "bf16"): 2**-8}


@opcode("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh")
def approximate(one: Instruction, program: Program) -> Run:
    name, kind = one.parts[0], one.parts[-1]
    modes = set(one.parts[1:-1])
    if modes - {"approx", "full", "ftz", "rn"} or kind not in FLOATING:
        raise unknown(one)
    function, error = APPROXIMATE[name]
    if kind == "f64":
        function = {"rcp": lambda x: 1 / x, "sqrt": np.sqrt, "div": np.divide}.get(name)
        if function is None:
            raise unknown(one)
    elif kind != "f32":
        key = (name, kind.removesuffix("x2"))
        if key not in HALVES:
            raise unknown(one)
        error = HALVES[key]
    function = adjusted(function, kind, modes)
    d, *rest = one.operands
    write = target(program, d, kind)
    sources = [source(program, operand, kind) for operand in rest]
    slots = tuple(slot for slot, _ in sources)
    error = 0.0 if "rn" in modes else error
    absolute = name in ("sin", "cos") or (name == "tanh" and kind != "f32")

    def run(machine: Any) -> None:
        if machine.partial:
            machine.check_written(slots)
        value = function(*[read(machine.registers[slot]) for slot, read in sources])
        if error and machine.modes.pessimistic:
            size = 1.0 if absolute else np.maximum(np.abs(value), 1) if name == "lg2" else np.abs(value)
            value = off(machine, value, error * size)
        write(machine, value)

    return run


def off(machine: Any, value: Array, error: Array | float) -> Array:
    """Each number off by `error`, up or down by chance."""
    shifted = value.astype(F64) + machine.random.choice(np.array([-1.0, 1.0]), value.shape) * error
    return np.where(np.isfinite(shifted), shifted, value).astype(value.dtype)


@opcode("copysign", "testp")
def signs(one: Instruction, program: Program) -> Run:
    kind = one.parts[-1]
    d, *rest = one.operands
    if one.parts[0] == "copysign":
        a, b = rest
        return elementwise(program, lambda x, y: np.copysign(y, x), (d, kind), (a, kind), (b, kind))
    tests = {"finite": np.isfinite, "infinite": np.isinf, "notanumber": np.isnan, "number": lambda x: ~np.isnan(x)}
    if one.parts[1] not in tests:
        raise unknown(one)
    return elementwise(program, tests[one.parts[1]], (d, "pred"), (rest[0], kind))
