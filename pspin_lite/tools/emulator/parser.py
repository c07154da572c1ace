"""PTX text -> one kernel: parameters, registers, shared memory, and instructions that know their Triton line.

What it models: the PTX that Triton's compiler writes, one `.entry` in a file, with inline assembly in scopes of its own
(`{ .reg .f32 f<4>; .. }`: names with or without a per cent sign, which hide those outside and end with the brace), and
hand-written PTX of the same form. `.loc` comments ("chunk.py:75:34 @[ walk.py:20:4 ]", the
second being where the first was called from) become `Instruction.where`.

Where it deviates from a chip's assembler
    - Types of operands are not checked against the types of registers.
    - Labels are names of the whole kernel: the same one in two scopes is an error.
    - Other functions, textures, `.local` and `.const` memory are not known: an instruction that uses them is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple


class EmulatorError(RuntimeError):
    """A kernel did something that a chip forbids, or something that the emulator does not know."""


class Register(NamedTuple):
    name: str
    negated: bool = False  # !%p1


class Immediate(NamedTuple):
    text: str


class Symbol(NamedTuple):
    name: str


class Vector(NamedTuple):
    parts: tuple


class Address(NamedTuple):
    base: Register | Symbol | Immediate
    offset: int


Operand = Register | Immediate | Symbol | Vector | Address


@dataclass(eq=False)
class Instruction:
    parts: tuple[str, ...]  # ld, global, v4, b32
    operands: list[Operand]
    guard: Register | None
    where: str  # the Triton line
    line: int  # of the PTX
    text: str

    @property
    def opcode(self) -> str:
        return ".".join(self.parts)


@dataclass(eq=False)
class Kernel:
    name: str
    parameters: dict[str, tuple[str, int]] = field(default_factory=dict)  # name -> type, size in bytes
    registers: dict[str, str] = field(default_factory=dict)  # name, or prefix of numbered ones -> type
    shared: int = 0  # bytes
    symbols: dict[str, int] = field(default_factory=dict)  # of shared memory -> address
    threads: int = 0
    code: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)  # -> index into code
    program: object = None  # what `machine` makes of it
    text: str = ""  # the PTX

    def type_of(self, register: str) -> str:
        """The declared type of a register: b32."""
        kind = self.registers.get(register) or self.registers.get(register.rstrip("0123456789") + "<")
        if kind is None:
            raise EmulatorError(f"{self.name}: register {register} is not declared")
        return kind


SIZES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16}


def size_of(kind: str) -> int:
    """Bytes of a type: b32 -> 4, f16x2 -> 4."""
    if kind in ("f16x2", "bf16x2", "tf32"):
        return 4
    return 1 if kind == "pred" else SIZES[kind.lstrip("abcdefghijklmnopqrstuvwxyz")]


def parse(text: str, name: str = "", shared: int = 0) -> Kernel:
    """The kernel `name` (or the only one) of a PTX file. shared: bytes of dynamic shared memory, as at a launch."""
    names = re.findall(r"\.entry\s+([\w$]+)", text)
    if not names or (name and name not in names):
        raise EmulatorError(f"no kernel {name or '(.entry)'} in this PTX, but {names}")
    kernel = Kernel(name or names[0], text=text)
    _shared_memory(kernel, text, shared)
    heading = re.search(rf"\.entry\s+{re.escape(kernel.name)}\s*(\((.*?)\))?([^{{]*)\{{", text, re.DOTALL)
    for kind, align, parameter, count in re.findall(
        r"\.param\s+\.(\w+)((?:\s+\.\w+(?:\s+\d+)?)*)\s+([\w$]+)(?:\[(\d+)\])?", _without_comments(heading[2] or "")
    ):
        del align
        kernel.parameters[parameter] = (kind, size_of(kind) * int(count or 1))
    threads = re.search(r"\.(?:req|max)ntid\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", heading[3])
    if threads:
        x, y, z = (int(n or 1) for n in threads.groups())
        kernel.threads = x * y * z
    _body(kernel, text, heading.end())
    return kernel


def _shared_memory(kernel: Kernel, text: str, dynamic: int) -> None:
    """Static arrays one after the other, then the dynamic one, which has no size of its own."""
    end, late = 0, []
    for align, kind, symbol, count in re.findall(
        r"\.shared\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)\s*\[(\d*)\]\s*;", text
    ):
        if not count:
            late.append(symbol)
            continue
        step = int(align or size_of(kind))
        end = -(-end // step) * step
        kernel.symbols[symbol] = end
        end += int(count) * size_of(kind)
    end = -(-end // 16) * 16 if late else end
    for symbol in late:
        kernel.symbols[symbol] = end
    kernel.shared = end + dynamic


COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
LOC = re.compile(r"\.loc\s[^\n]*?(?://\s*(\S[^\n]*?))?[ \t]*$", re.MULTILINE)
STATEMENT = re.compile(r"\s*(?:([{}])|([\w$%]+)\s*:(?!:)|(\.loc\s[^\n]*)|([^;{}]*(?:\{[^{}]*\}[^;{}]*)*;))")


def _without_comments(text: str) -> str:
    return COMMENT.sub("", text)


def _statements(text: str, start: int) -> Iterator[tuple[str, str, int]]:
    """("scope" | "label" | "loc" | "code", its text, its line) from the first statement of a body on."""
    keep = {}

    def note(found: re.Match) -> str:  # the comment of a .loc is wanted, all others are not
        keep[len(keep)] = found[1] or ""
        return f".loc {len(keep) - 1}"

    line = text.count("\n", 0, start) + 1
    body = _without_comments(LOC.sub(note, text[start:]))
    at = depth = 0
    while found := STATEMENT.match(body, at):
        brace, label, loc, code = found.groups()
        line += body.count("\n", at, found.end())
        at = found.end()
        if brace:
            depth += 1 if brace == "{" else -1
            yield "scope", brace, line
            if depth < 0:
                return
        elif label:
            yield "label", label, line
        elif loc:
            yield "loc", keep[int(loc.split()[1])], line
        else:
            yield "code", code.strip().rstrip(";").strip(), line
    raise EmulatorError(f"PTX ends, or cannot be read, after line {line}")


def _body(kernel: Kernel, text: str, start: int) -> None:
    scopes: list[dict[str, str]] = [{}]  # names declared inside braces, or without a per cent sign -> unique names
    where, declared = "", 0
    for kind, words, line in _statements(text, start):
        if kind == "scope":
            scopes.append({}) if words == "{" else scopes.pop()
        elif kind == "label":
            if words in kernel.labels:
                raise EmulatorError(f"{kernel.name}: the label {words} is there twice, at line {line} again")
            kernel.labels[words] = len(kernel.code)
        elif kind == "loc":
            where = words
        elif words.startswith(".reg"):
            declared += 1
            _declare(kernel, words, scopes, declared)
        elif not words.startswith("."):
            kernel.code.append(_instruction(words, where, line, scopes))


def _declare(kernel: Kernel, words: str, scopes: list[dict[str, str]], number: int) -> None:
    """.reg .b32 %r<100>;   .reg .pred p, q;   .reg .s8 s<4>;  (s0 to s3)"""
    _, kind, names = words.split(None, 2)
    for name in names.split(","):
        name, _, count = name.strip().partition("<")
        if len(scopes) == 1 and name.startswith("%"):
            kernel.registers[name + ("<" if count else "")] = kind.lstrip(".")
            continue
        for index in map(str, range(int(count.rstrip("> ")))) if count else ("",):
            if name + index in scopes[-1]:
                raise EmulatorError(f"{kernel.name}: register {name + index} is declared twice in one scope")
            unique = scopes[-1][name + index] = f"{name}{index}'{number}"
            kernel.registers[unique] = kind.lstrip(".")


def _named(name: str, scopes: list[dict[str, str]]) -> str:
    return next((scope[name] for scope in reversed(scopes) if name in scope), name)


def _instruction(words: str, where: str, line: int, scopes: list[dict[str, str]]) -> Instruction:
    guard, rest = None, words
    if words.startswith("@"):
        mark, rest = words[1:].split(None, 1)
        guard = Register(_named(mark.lstrip("!"), scopes), mark.startswith("!"))
    opcode, _, operands = rest.partition(" ") if " " in rest else rest.partition("\t")
    opcode, _, more = opcode.partition("\t")
    parts = tuple(opcode.strip().split("."))
    parsed = [_operand(one, scopes) for one in split(f"{more} {operands}")]
    return Instruction(parts, parsed, guard, where, line, " ".join(words.split()))


def split(operands: str) -> list[str]:
    """At commas that are in no bracket; `%p1|%p2` are two operands."""
    result, depth, current = [], 0, ""
    for sign in operands.strip():
        depth += (sign in "{[(") - (sign in "}])")
        if depth == 0 and sign in ",|":
            result.append(current.strip())
            current = ""
        else:
            current += sign
    return [*result, current.strip()] if current.strip() else result


def _operand(words: str, scopes: list[dict[str, str]]) -> Operand:
    if words.startswith("{"):
        return Vector(tuple(_operand(one, scopes) for one in split(words[1:-1])))
    if words.startswith("["):
        base, sign, offset = re.fullmatch(r"\[\s*([\w$%.]+)\s*(?:([+-])\s*(-?\w+))?\s*\]", words).groups()
        value = int(offset.rstrip("U"), 0) if offset else 0
        return Address(_operand(base, scopes), -value if sign == "-" else value)
    if re.match(r"[-+]?\.?\d", words):
        return Immediate(words)
    negated = words.startswith("!")
    name = _named(words.lstrip("!"), scopes)
    if name.startswith("%") or "'" in name or name == "_":
        return Register(name, negated)
    return Symbol(name)
