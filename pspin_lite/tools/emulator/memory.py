"""Global memory: the bytes of the tensors that were passed to a launch, where they are in this process.

What it models: an address is the address of the tensor's memory. Every access must lie inside one of the tensors and
begin at a multiple of its own size, vectors included.

Where it deviates from a chip
    - Caches, and the order in which blocks see each other's writes: all is seen at once, in the order of the text.
    - Two threads that write to one place: the last thread wins. Races are not looked for, neither between blocks nor
      between the warps of one.
"""

from __future__ import annotations

import ctypes

import numpy as np

from .numbers import BITS
from .parser import EmulatorError

Array = np.ndarray


class Region:
    """Bytes from `start` to `end`, seen as numbers of 1, 2, 4 or 8 bytes, one or several side by side."""

    def __init__(self, start: int, size: int):
        self.start, self.end = start, start + size
        self.bytes = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(start))
        self.views: dict[tuple[int, int], Array] = {}

    def rows(self, width: int, count: int) -> Array:
        """[rows, count] numbers of `width` bytes, rows beginning at addresses that are multiples of a row's size."""
        if (width, count) not in self.views:
            each = width * count
            first = -self.start % each
            whole = max(0, len(self.bytes) - first) // each * each
            self.views[width, count] = self.bytes[first : first + whole].view(BITS[width]).reshape(-1, count)
        return self.views[width, count]


class Memory:
    def __init__(self, spans: list[tuple[int, int]]):
        """spans: address and bytes of each tensor. Those that overlap or touch are one region."""
        self.parameters: dict[str, Array] = {}
        self.regions: list[Region] = []
        merged: list[list[int]] = []
        for start, size in sorted(spans):
            if not size:
                continue
            if merged and start <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], start + size)
            else:
                merged.append([start, start + size])
        self.regions = [Region(start, end - start) for start, end in merged]
        self.starts = np.array([region.start for region in self.regions], np.uint64)

    def load(self, address: Array, width: int, count: int, mask: Array | None) -> Array:
        """Numbers [.., count] of `width` bytes at addresses [..]; 0 where the mask is false."""
        self.aligned(address, width * count, mask)
        region = self._only_region(address, width * count, mask)
        if region is not None:
            return self._gather(region, address, width, count, mask)
        result = np.zeros((*address.shape, count), BITS[width])
        for region, here in self._by_region(address, width * count, mask):
            result[here] = self._gather(region, address[here], width, count, None)
        return result

    def store(self, address: Array, values: Array, mask: Array | None) -> None:
        """values [.., count] to addresses [..]."""
        width, count = values.dtype.itemsize, values.shape[-1]
        self.aligned(address, width * count, mask)
        if mask is not None:
            address, values = address[mask], values[mask]
        for region, here in self._by_region(address, width * count, None):
            rows = region.rows(width, count)
            rows[self._row(region, address[here], width * count)] = values[here]

    @staticmethod
    def _row(region: Region, address: Array, each: int) -> Array:
        first = -region.start % each
        return ((address - np.uint64(region.start + first)) // np.uint64(each)).astype(np.int64)

    def _gather(self, region: Region, address: Array, width: int, count: int, mask: Array | None) -> Array:
        row = self._row(region, address, width * count)
        if mask is None:
            return region.rows(width, count)[row]
        result = region.rows(width, count)[np.where(mask, row, 0)]
        return np.where(mask[..., None], result, result.dtype.type(0))

    @staticmethod
    def aligned(address: Array, each: int, mask: Array | None) -> None:
        wrong = (address & address.dtype.type(each - 1)) != 0
        if mask is not None:
            wrong = wrong & mask
        if wrong.any():
            which = int(address[wrong][0])
            raise EmulatorError(f"misaligned: address {which:#x} is no multiple of the access's {each} bytes")

    def _only_region(self, address: Array, each: int, mask: Array | None) -> Region | None:
        """The region that holds all of the access, if one does."""
        active = address if mask is None else address[mask]
        if not active.size:
            return None
        low, high = int(active.min()), int(active.max()) + each
        at = int(np.searchsorted(self.starts, low, "right")) - 1
        return self.regions[at] if at >= 0 and high <= self.regions[at].end else None

    def _by_region(self, address: Array, each: int, mask: Array | None) -> list[tuple[Region, Array]]:
        """(region, which addresses are in it), or the error that one is in none."""
        if not address.size:
            return []
        at = np.searchsorted(self.starts, address, "right").astype(np.int64) - 1
        ends = np.array([region.end for region in self.regions] or [0], np.uint64)
        wrong = (at < 0) | (address + np.uint64(each) > ends[np.maximum(at, 0)])
        if mask is not None:
            wrong &= mask
        if wrong.any():
            raise EmulatorError(self._outside(int(address[wrong][0]), each, int(wrong.sum())))
        present = at if mask is None else at[mask]
        return [(self.regions[i], (at == i) if mask is None else (at == i) & mask) for i in np.unique(present).tolist()]

    def _outside(self, address: int, each: int, count: int) -> str:
        def distance(region: Region) -> int:
            return max(region.start - address, address + each - region.end)

        words = f"address {address:#x}, {each} bytes, is outside the tensors passed ({count} threads)"
        if not self.regions:
            return words
        near = min(self.regions, key=distance)
        side = "before the first byte" if address < near.start else "after the last byte"
        away = near.start - address if address < near.start else address + each - near.end
        return f"{words}: {away} bytes {side} of the nearest, which has {near.end - near.start}"
