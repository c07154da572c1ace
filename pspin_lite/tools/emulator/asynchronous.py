"""Shared memory while something goes on beside the threads: copies of cp.async into it, products of wgmma out of it.

What it models
    cp.async    bytes arrive when the thread that asked for them waits. Until then nobody may read or write their place.
    wgmma       operands are read at any time up to the wait. Until then nobody may write to their place.
    proxies     wgmma reads through another path ("async proxy"). What st.shared wrote must have been handed over with
                fence.proxy.async.

Where it deviates from a chip
    - cp.async reads global memory when it is issued, and arrives as late as it may.
    - A proxy fence of a block hands over everything that the block has written, whoever wrote it.
    - What cp.async has written needs no proxy fence here.
"""

from __future__ import annotations

import numpy as np

from .parser import EmulatorError
from .shared import Copy, Places, Shared

Array = np.ndarray


class SharedMemory(Shared):
    # Products under way

    def read_by_wgmma(self, places: Places) -> None:
        """The places are read now or later, up to the wait."""
        self._check(places.address, 16)
        self.note_read(places)
        units, _ = self._units(places)
        if self.proxies and self.unfenced[units].any():
            *_, i, j = np.argwhere(self.unfenced[units])[0]
            place = units[1][i, j] * self.unit
            raise EmulatorError(f"wgmma reads shared address {place}, written without a fence.proxy.async since")
        self.wanted[units] = True
        self.reads[-1].append(places)

    def close_reads(self) -> None:
        self.reads.append([])

    def finish_reads(self, pending: int) -> None:
        """All but the latest `pending` groups of products are done."""
        self.reads = self.reads[max(0, len(self.reads) - 1 - pending) :]
        self.wanted[:] = False
        for group in self.reads:
            for places in group:
                self.wanted[self._units(places)[0]] = True

    # Asynchronous copies

    def copy(self, places: Places, data: Array) -> None:
        """cp.async: bytes [blocks, n, each], or [n, each], will arrive."""
        units, epoch = self._units(places)
        self._not_flying(units, "written")
        memory, index = self.rows(places, 1)
        if self.races:
            self._stamp(places, self._changed(memory, index, data, places, epoch))
        memory[index] = 0xFF
        self.flying[units] = True
        self.copies.append(
            Copy(places, self.groups.copy() if places.block is None else self.groups[places.block], data)
        )

    def commit(self, blocks: Array) -> None:
        if not blocks.all():
            self.part()
        self.groups[blocks if self.apart else 0] += 1

    def wait(self, blocks: Array, pending: int) -> None:
        """cp.async.wait_group: all but the latest `pending` groups have arrived."""
        if not blocks.all():
            self.part()
        kept = []
        for copy in self.copies:
            places = copy.places
            if places.block is None and self.apart:
                copy = copy.of_each_block(self.shape[0])
                places = copy.places
            if places.block is None:
                done = np.full(len(places.address), copy.group[0] < self.groups[0] - pending)
            else:
                done = blocks[places.block] & (copy.group < self.groups[places.block] - pending)
            if done.any():
                some = self._only(places, done)
                memory, index = self.rows(some, 1)
                memory[index] = copy.data[..., done, :]
                self.flying[self._units(some)[0]] = False
                if self.races:
                    self._stamp(places, done)
            if not done.all():
                rest = copy.group if places.block is None else copy.group[~done]
                kept.append(Copy(self._only(places, ~done), rest, copy.data[..., ~done, :]))
        self.copies = kept
