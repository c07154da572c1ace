"""Measuring: peak memory of a call, bytes kept for a backward pass, and times as ratios.

Machines are shared and noisy, so times are never compared across runs: `Race` runs its contestants in turn, round after
round, and compares the medians.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable

import torch
from torch.utils import flop_counter

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # torch's profiler writes two lines to stderr each time it is used


def peak_bytes(call: Callable[[], object]) -> int:
    """How far above its start the memory of tensors rises during `call()`. Counts every allocation, on CPU or GPU.
    The call should not give back tensors made before it, such as old gradients: that would count as a descent."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call()
        return torch.cuda.max_memory_allocated() - before
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # otherwise the profiler says on stderr when it starts and stops
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        call()
    events = [event for event in profile.profiler.kineto_results.events() if event.name() == "[memory]"]
    level = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        level += event.nbytes()  # negative when memory is given back
        peak = max(peak, level)
    return peak


def saved_bytes(call: Callable[[], object], besides: tuple[torch.Tensor, ...] = ()) -> int:
    """Bytes that the graph built by `call()` keeps for its backward pass; each storage once, without `besides`."""
    known = {tensor.untyped_storage().data_ptr() for tensor in besides}
    kept: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage  # held, so that no address is used twice
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        alive = call()
    size = sum(storage.nbytes() for storage in kept.values())
    del alive
    return size


def flops(call: Callable[[], object]) -> int:
    """Flops of the matrix products in `call()`. In-place ones are included, and attention on a CPU, as over the full
    square of tokens even if it is causal, which is how torch's counter counts it on a GPU; by itself it passes both
    by."""
    aten = torch.ops.aten
    also = {
        aten.baddbmm_: lambda _, a, b, **kwargs: flop_counter.bmm_flop(a, b),
        aten.addmm_: lambda _, a, b, **kwargs: flop_counter.mm_flop(a, b),
        aten._scaled_dot_product_flash_attention_for_cpu: lambda q, k, v, *args, **kwargs: flop_counter.sdpa_flop_count(
            q, k, v
        ),
        aten._scaled_dot_product_flash_attention_for_cpu_backward: lambda grad, q, k, v, *args, **kwargs: (
            flop_counter.sdpa_backward_flop_count(grad, q, k, v)
        ),
    }
    with flop_counter.FlopCounterMode(display=False, custom_mapping=also) as counter:
        call()
    return counter.get_total_flops()


class Race:
    """Times several calls in turn in one process. `race(calls)` gives the median seconds of each, by name.
    clock: time.process_time counts what the process itself computes, whatever else the machine does."""

    def __init__(self, rounds: int = 5, warm: bool = True, clock: Callable[[], float] = time.perf_counter):
        self.rounds, self.warm, self.clock = rounds, warm, clock

    def __call__(self, calls: dict[str, Callable[[], object]]) -> dict[str, float]:
        times: dict[str, list[float]] = {name: [] for name in calls}
        for call in calls.values() if self.warm else ():
            call()
        for _ in range(self.rounds):
            for name, call in calls.items():
                begin = self.clock()
                call()
                if torch.cuda.is_available():
                    torch.cuda.synchronize()
                times[name].append(self.clock() - begin)
        return {name: statistics.median(values) for name, values in times.items()}
