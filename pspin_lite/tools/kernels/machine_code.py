"""What a GPU compiler makes of a Triton kernel, with no GPU present: registers, shared memory, spills, instructions.

Glossary
    target       sm_80 (A100), sm_90 (H100), gfx942 (MI300)
    registers    for each thread; what does not fit is spilled to memory. AMD: vector registers, accumulators included
    stack        bytes of slow, private memory for each thread; spills: instructions (AMD: registers) that go through it
    shared       bytes of fast memory for each program (AMD calls it LDS)
    occupancy    programs ("blocks") that fit into one multiprocessor at once, and the warps they bring
    products     matrix products in the source (tl.dot), before loops are unrolled
    tensor       instructions for the tensor cores: HMMA, HGMMA (sm_90), v_mfma (AMD)
    wide         loads from global memory that bring 128 bits a thread, of all such loads

Kernels must have been defined for compilation: `elsewhere` runs a module in a process of its own where they are.
"""

from __future__ import annotations

import functools
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True)
class Chip:
    """One target and what one of its multiprocessors holds."""

    name: str
    backend: str
    arch: int | str
    warp: int
    shared_limit: int  # bytes for one program
    shared_total: int
    registers: int  # 32-bit registers times lanes (AMD: of one SIMD)
    max_warps: int
    max_blocks: int
    multiprocessors: int


CHIPS = (
    Chip("sm_80", "cuda", 80, 32, 163 << 10, 164 << 10, 65536, 64, 32, 108),
    Chip("sm_90", "cuda", 90, 32, 227 << 10, 228 << 10, 65536, 64, 32, 132),
    Chip("gfx942", "hip", "gfx942", 64, 64 << 10, 64 << 10, 512 * 64, 32, 32, 304),
)


@dataclass(frozen=True)
class Resources:
    registers: int
    shared: int
    stack: int
    spills: int
    tensor: int
    wide: int
    loads: int
    products: int = 0

    def as_dict(self) -> dict:
        return asdict(self)


def elsewhere(module: str, *words: str) -> list[dict]:
    """`python -m module words` in a process where kernels are defined for compilation; it prints rows as JSON."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        env=environment | dict(PSPIN_KERNELS="compile"),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"compilation in another process failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


class Built(NamedTuple):
    """What a compiler made of a kernel."""

    chip: Chip
    code: bytes | str  # a cubin; AMD: assembly
    shared: int
    products: int


def compile_for(chip: Chip, specimen: dict) -> Built:
    """Compile one specimen (see `specimens` in the kernel files); `read` says what it needs."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature, attrs = _arguments(specimen, chip)
    options = {key: specimen[key] for key in ("num_warps", "num_stages") if key in specimen}
    if chip.backend == "cuda" and "maxnreg" in specimen:  # AMD's compiler knows no such limit
        options["maxnreg"] = specimen["maxnreg"]
    source = ASTSource(specimen["kernel"], signature, specimen["constexprs"], attrs)
    built = triton.compile(source, target=GPUTarget(chip.backend, chip.arch, chip.warp), options=options)
    code = built.asm["cubin" if chip.backend == "cuda" else "amdgcn"]
    return Built(chip, code, built.metadata.shared, len(re.findall(r"\btt\.dot\b", built.asm["ttir"])))


@functools.lru_cache
def of_launch(ptx: str, chip: str, shared: int, num_warps: int) -> dict[str, int]:
    """What NVIDIA's assembler makes of a kernel that was executed as PTX: registers and stack. resident: programs that
    one multiprocessor holds at once."""
    from triton import knobs

    target = next(one for one in CHIPS if one.name == chip)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx, encoding="utf-8")
        name = {"sm_90": "sm_90a"}.get(chip, chip)
        words = [knobs.nvidia.ptxas.path, "-v", f"--gpu-name={name}", str(source), "-o", str(source) + ".cubin"]
        said = subprocess.run(words, capture_output=True, text=True, check=True).stderr
    registers, stack = (int(re.search(form, said)[1]) for form in (r"Used (\d+) reg", r"(\d+) bytes stack"))
    resident, _ = occupancy(target, Resources(registers, shared, stack, 0, 0, 0, 0), num_warps)
    return dict(registers=registers, stack=stack, resident=resident)


def read(builds: list[Built]) -> list[Resources]:
    """The resources of each. All at once: NVIDIA's disassembler takes longer to start than to read a kernel."""
    words: dict[int, list[str]] = {}
    for chip in CHIPS:
        here = [i for i, one in enumerate(builds) if one.chip == chip and chip.backend == "cuda"]
        words |= zip(here, _instructions(chip, [builds[i].code for i in here]), strict=True)
    return [_read_cubin(one, words[i]) if i in words else _read_amd(one) for i, one in enumerate(builds)]


def occupancy(chip: Chip, resources: Resources, num_warps: int) -> tuple[int, int]:
    """Programs and warps on one multiprocessor at once, as registers, shared memory and warps allow."""
    registers = -(-resources.registers // 8) * 8 * chip.warp  # allotted in eights, for each warp
    if chip.backend == "hip":  # four SIMDs, each with its own registers; at most eight waves each
        room = 4 * min(8, chip.registers // max(registers, 1)) // num_warps
        overhead = 0
    else:
        room = chip.registers // max(registers * num_warps, 1)
        overhead = 1024  # of shared memory, for each program
    held = resources.shared + overhead
    blocks = min(chip.max_blocks, chip.max_warps // num_warps, room, chip.shared_total // held if held else room)
    return blocks, blocks * num_warps


def _arguments(specimen: dict, chip: Chip) -> tuple[dict, dict]:
    """Types of the arguments, and what a launch would tell the compiler about them: memory starts at multiples of 16
    bytes; integers marked ":16" are multiples of 16; on AMD, memory is below 2 GB. A specimen may bring `attrs`."""
    names, known = specimen["kernel"].arg_names, specimen["signature"]
    missing = [name for name in names if name not in known and name not in specimen["constexprs"]]
    if missing and "attrs" not in specimen:
        raise ValueError(f"{specimen['name']}: neither a type nor a value for {', '.join(missing)}")
    kinds = {name: known.get(name, "constexpr") for name in names}
    attrs = dict(specimen.get("attrs", {}))
    for i, kind in enumerate(kinds.values()):
        if isinstance(kind, str) and (kind.endswith(":16") or kind.startswith("*")):
            small = [["tt.pointer_range", 32]] if chip.backend == "hip" and kind.startswith("*") else []
            attrs[(i,)] = [["tt.divisibility", 16], *small]
    return {name: kind.removesuffix(":16") if isinstance(kind, str) else kind for name, kind in kinds.items()}, attrs


def _instructions(chip: Chip, cubins: list[bytes]) -> list[list[str]]:
    """The names of the instructions of each kernel."""
    if not cubins:
        return []
    codes = [_machine_code(cubin) for cubin in cubins]
    raw = "SM90a" if chip.arch == 90 else f"SM{chip.arch}"  # Triton compiles for all that an H100 has
    sass = _run_on(b"".join(codes), "nvdisasm", "--no-dataflow", "--binary", raw)
    words = re.findall(r"^\s*/\*[0-9a-f]+\*/\s*(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]+)", sass, re.MULTILINE)
    counts = [len(code) // 16 for code in codes]  # an instruction takes 16 bytes
    if len(words) != sum(counts):
        raise RuntimeError(f"nvdisasm gave {len(words)} instructions for {sum(counts)}")
    left = iter(words)
    return [list(islice(left, count)) for count in counts]


def _machine_code(cubin: bytes) -> bytes:
    """The section .text.KERNEL of an ELF file."""
    (headers,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", cubin, headers + i * size) for i in range(count)]  # name, .., place, size
    for name, *_, place, length in sections:
        if cubin.startswith(b".text.", sections[names][4] + name):
            return cubin[place : place + length]
    raise RuntimeError("a cubin without code")


def _read_cubin(built: Built, words: list[str]) -> Resources:
    usage = _run_on(built.code, "cuobjdump", "--dump-resource-usage")
    counts = {key: int(value) for key, value in re.findall(r"(REG|STACK|LOCAL):(\d+)", usage)}
    loads = [word for word in words if word.startswith(("LDG.", "LDGSTS."))]
    return Resources(
        registers=counts["REG"],
        shared=built.shared,
        stack=counts["STACK"] + counts["LOCAL"],
        spills=sum(word.startswith(("LDL", "STL")) for word in words),
        tensor=sum(word.startswith(("HMMA", "HGMMA", "WGMMA")) for word in words),
        wide=sum(".128" in word for word in loads),
        loads=len(loads),
        products=built.products,
    )


def _read_amd(built: Built) -> Resources:
    assembly = built.code

    def number(key: str) -> int:
        return int(re.search(rf"\.{key}:\s*(\d+)", assembly)[1])

    loads = re.findall(r"\b(?:global|buffer)_load_\w+", assembly)
    return Resources(
        registers=number("vgpr_count"),
        shared=built.shared,
        stack=number("private_segment_fixed_size"),
        spills=number("vgpr_spill_count"),
        tensor=len(re.findall(r"\bv_mfma_\w+", assembly)),
        wide=sum("x4" in word for word in loads),
        loads=len(loads),
        products=built.products,
    )


def _run_on(content: bytes, tool: str, *options: str) -> str:
    """What one of NVIDIA's tools, which Triton brings along, says of a file with this content."""
    import triton.backends.nvidia as nvidia

    path = Path(nvidia.__file__).parent / "bin" / tool
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(content)
        file.flush()
        return subprocess.run([path, *options, file.name], capture_output=True, text=True, check=True).stdout
