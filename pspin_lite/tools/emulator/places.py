"""Where one instruction goes in shared memory, as shared.py notes it.

What it models: addresses, the warps that use them, and what cp.async brings there.

Where it deviates from a chip: as long as all blocks do the same, one row stands for all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray


class Places(NamedTuple):
    """[n] places of one instruction: the same in every block (block is None), or each in a block of its own."""

    address: Array
    warp: Array
    block: Array | None
    each: int  # bytes

    def only(self, which: Array) -> Places:
        block = None if self.block is None else self.block[which]
        return Places(self.address[which], self.warp[which], block, self.each)


class Copy(NamedTuple):
    """cp.async under way: where to, which group (one number, or one for each place), and the bytes."""

    places: Places
    group: Array
    data: Array  # [blocks, n, bytes], or [n, bytes]

    def of_each_block(self, blocks: int) -> Copy:
        """The same, each place with its block."""
        n = len(self.places.address)
        address, warp = np.tile(self.places.address, blocks), np.tile(self.places.warp, blocks)
        places = Places(address, warp, np.repeat(np.arange(blocks), n), self.places.each)
        return Copy(places, np.repeat(self.group, blocks * n), self.data.reshape(blocks * n, -1))
