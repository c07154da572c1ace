"""Moves, selections, comparisons and conversions between types, as the PTX ISA defines them.

What it models: registers packed and unpacked; comparisons that are false, or true, if a number is nan; conversions
with each rounding to a whole number, rounding to nearest even or towards zero, and saturation.

Where it deviates from a chip: nowhere that we know of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import numbers
from .numbers import FLOATS, INTEGERS
from .parser import Instruction, Register, Symbol, Vector, size_of
from .program import Program, Run, elementwise, opcode, source, target, unknown

Array = np.ndarray


@opcode("mov", "cvta")
def move(one: Instruction, program: Program) -> Run:
    d, a = one.operands
    kind = one.parts[-1]
    if isinstance(d, Vector) or isinstance(a, Vector):
        return _unpack(one, program, d, a) if isinstance(d, Vector) else _pack(one, program, d, a)
    if kind in FLOATS and not isinstance(a, Register):
        return elementwise(program, lambda x: x, (d, kind), (a, kind))
    kind = kind if kind == "pred" else f"b{8 * size_of(kind)}"
    if isinstance(a, Symbol) or not isinstance(a, Register) or a.name.startswith("%tid") or d.name == "_":
        return elementwise(program, lambda x: x, (d, kind), (a, kind))
    slot, out = program.slot(a.name), program.slot(d.name)
    if program.kinds[slot] != program.kinds[out]:
        return elementwise(program, lambda x: x, (d, kind), (a, kind))

    def run(machine: Any) -> None:  # as it is, whatever type it was computed in
        if machine.partial:
            machine.check_written((slot,))
        value = machine.registers[slot]
        value.dtype  # noqa: B018  fails if it was not written
        machine.write(out, value)

    return run


def _pack(one: Instruction, program: Program, d: Register, a: Vector) -> Run:
    """mov.b32 d, {low, high}"""
    each = size_of(one.parts[-1]) // len(a.parts)
    kind, total = f"b{8 * each}", numbers.BITS[each * len(a.parts)]

    def join(*parts: Array) -> Array:
        result = parts[0].astype(total)
        for i, part in enumerate(parts[1:], 1):
            result = result | (part.astype(total) << total.type(8 * each * i))
        return result

    return elementwise(program, join, (d, one.parts[-1]), *[(part, kind) for part in a.parts])


def _unpack(one: Instruction, program: Program, d: Vector, a: Register) -> Run:
    """mov.b32 {low, high}, a"""
    each = size_of(one.parts[-1]) // len(d.parts)
    dtype = numbers.BITS[each]
    slot, read = source(program, a, f"b{8 * each * len(d.parts)}")
    writes = [target(program, part, f"b{8 * each}") for part in d.parts]

    def run(machine: Any) -> None:
        if machine.partial:
            machine.check_written((slot,))
        value = read(machine.registers[slot])
        for i, write in enumerate(writes):
            write(machine, (value >> value.dtype.type(8 * each * i)).astype(dtype))

    return run


def _unordered(compare):
    return lambda x, y: compare(x, y) | np.isnan(x) | np.isnan(y)


COMPARE = dict(
    eq=np.equal, ne=np.not_equal, lt=np.less, le=np.less_equal, gt=np.greater, ge=np.greater_equal,
    lo=np.less, ls=np.less_equal, hi=np.greater, hs=np.greater_equal,
)  # fmt: skip
COMPARE |= {f"{name}u": _unordered(COMPARE[name]) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
COMPARE["num"] = lambda x, y: ~(np.isnan(x) | np.isnan(y))
COMPARE["nan"] = lambda x, y: np.isnan(x) | np.isnan(y)
COMBINE = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def compare_function(name: str, kind: str) -> Callable[[Array, Array], Array]:
    if name == "ne" and (kind in FLOATS or "f16" in kind):  # ordered: false if one of them is nan
        return lambda x, y: (x != y) & ~np.isnan(x) & ~np.isnan(y)
    return COMPARE[name]


@opcode("setp")
def set_predicate(one: Instruction, program: Program) -> Run:
    """setp.lt.s32 p, a, b;  setp.lt.and.s32 p|q, a, b, c;  with .f16x2 p|q are of the two halves."""
    parts = [part for part in one.parts[1:] if part != "ftz"]
    kind, name = parts[-1], parts[0]
    compare = compare_function(name, kind)
    combine = COMBINE[parts[1]] if len(parts) == 3 else None
    count = len(one.operands) - (3 if combine else 2)
    outs, (a, b, *rest) = one.operands[:count], one.operands[count:]
    writes = [target(program, out, "pred") for out in outs]
    sources = [source(program, a, kind), source(program, b, kind), *[source(program, c, "pred") for c in rest]]
    slots = tuple(slot for slot, _ in sources)
    pair = kind in numbers.PAIRS

    def run(machine: Any) -> None:
        if machine.partial:
            machine.check_written(slots)
        x, y, *more = (read(machine.registers[slot]) for slot, read in sources)
        result = compare(x, y)
        both = [result[..., 0], result[..., 1]] if pair else [result, ~result]
        if combine:
            both = [combine(part, more[0]) for part in both]
        for write, value in zip(writes, both, strict=False):
            write(machine, value)

    return run


@opcode("set")
def set_value(one: Instruction, program: Program) -> Run:
    """set.lt.u32.f32 d, a, b: all ones, or 1.0, if true."""
    parts = [part for part in one.parts[1:] if part != "ftz"]
    if len(parts) != 3 or parts[1] not in numbers.PLAIN:
        raise unknown(one)
    name, out, kind = parts
    true = numbers.PLAIN[out].type(1) if out in FLOATS else ~numbers.PLAIN[out].type(0)
    compare = compare_function(name, kind)
    d, a, b = one.operands
    false = numbers.PLAIN[out].type(0)
    return elementwise(program, lambda x, y: np.where(compare(x, y), true, false), (d, out), (a, kind), (b, kind))


@opcode("selp")
def select(one: Instruction, program: Program) -> Run:
    d, a, b, p = one.operands
    kind = one.parts[-1]
    return elementwise(program, lambda x, y, which: np.where(which, x, y), (d, kind), (a, kind), (b, kind), (p, "pred"))


ROUND = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


@opcode("cvt")
def convert(one: Instruction, program: Program) -> Run:
    """cvt.d.a, with rounding and saturation; cvt.rn.bf16x2.f32 d, high, low packs two."""
    *modes, out, kind = one.parts[1:]
    d, *sources = one.operands
    known = {"rn", "rz", "rna", "sat", "ftz", "satfinite", *ROUND}
    if set(modes) - known or (("rz" in modes or "satfinite" in modes) and out not in ("f32", "f64")):
        raise unknown(one)
    if out in numbers.PAIRS and kind == "f32" and len(sources) == 2:
        high, low = sources
        return elementwise(
            program, lambda x, y: np.stack(np.broadcast_arrays(y, x), -1), (d, out), (high, kind), (low, kind)
        )
    if out == "tf32":
        if "rna" not in modes:
            raise unknown(one)
        return elementwise(program, round_tf32, (d, "f32"), (sources[0], "f32"))
    floating = {*FLOATS, "bf16"}
    if out not in {*INTEGERS, *floating} or kind not in {*INTEGERS, *floating} or len(sources) != 1:
        raise unknown(one)
    if out in INTEGERS:
        function = _to_integer(
            out, next((ROUND[m] for m in modes if m in ROUND), None), "sat" in modes, kind in floating
        )
    elif out == kind and any(mode in ROUND for mode in modes):
        function = next(ROUND[mode] for mode in modes if mode in ROUND)
    else:
        function = _to_float(out, kind, "sat" in modes, "rz" in modes)
    if "ftz" in modes and (out, kind) == ("f32", "f32"):
        inner = function
        function = lambda x: numbers.flush(inner(numbers.flush(x)))  # noqa: E731
    return elementwise(program, function, (d, out), (sources[0], kind))


def _to_integer(out: str, rounding, saturate: bool, floating: bool):
    limits = np.iinfo(INTEGERS[out])

    def function(x: Array) -> Array:
        if not floating:
            x = (
                np.clip(x, max(limits.min, np.iinfo(x.dtype).min), min(limits.max, np.iinfo(x.dtype).max))
                if saturate
                else x
            )
            return x.astype(INTEGERS[out])
        x = rounding(x.astype(np.float64))
        inside = np.clip(x, float(limits.min), np.nextafter(float(limits.max) + 1, 0))
        whole = np.where(np.isnan(x), 0, inside).astype(INTEGERS[out])
        return np.where(x >= limits.max, INTEGERS[out].type(limits.max), whole)

    return function


def _to_float(out: str, kind: str, saturate: bool, towards_zero: bool):
    dtype = np.dtype("f8") if out == "bf16" and kind == "f64" else FLOATS.get(out, np.dtype("f4"))

    def function(x: Array) -> Array:
        result = x.astype(dtype)
        if towards_zero:
            away = np.abs(result.astype(np.longdouble)) > np.abs(x.astype(np.longdouble))
            result = np.where(away, np.nextafter(result, dtype.type(0)), result)
        return np.where(np.isnan(result), dtype.type(0), np.clip(result, 0, 1)) if saturate else result

    return function


def round_tf32(x: Array) -> Array:
    """cvt.rna: to ten bits, ties away from zero."""
    bits = x.view(np.uint32)
    rounded = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(x), rounded, x)
