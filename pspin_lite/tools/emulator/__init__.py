"""Executes the PTX that Triton writes for sm_80 and sm_90 on a CPU. Entrances: `driver.chip`, and `machine.launch`.

    driver          a Triton driver: `with chip("sm_80"):`
    parser          PTX text -> a kernel
    program         a kernel made ready to run; the table of instructions, and what they have in common
    machine         runs it: registers, branches, blocks
    memory, shared  the two memories and their checks
    places          where one instruction goes in shared memory
    numbers         from the bits of a register to numbers, and back
    counters        what a launch did, and a lower bound of its time

Instructions
    integers        arithmetic and logic
    moves           moves, selection, comparison, conversion
    floats          arithmetic, and what is only approximate on a chip
    transfers       loads, stores, cp.async
    warps           shuffles, votes, reductions, barriers, fences
    atomics         atomic operations
    tensor_cores    mma, ldmatrix, stmatrix
    warpgroups      wgmma
"""
