"""Shared memory: one array of bytes for each block, and notes on who touched what.

What it models
    races       Between two barriers of a block, bytes that one warp changes may be touched by no other warp. A write of
                the value that is there already changes nothing, and Triton relies on that. Atomic operations may
                meet each other, but no other access.
    cp.async    bytes arrive when the thread that asked for them waits. Until then nobody may read or write their place.
    wgmma       operands are read at any time up to the wait. Until then nobody may write to their place.
    proxies     wgmma reads through another path ("async proxy"). What st.shared wrote must have been handed over with
                fence.proxy.async.

Where it deviates from a chip
    - Memory that nobody has written holds 0xFF bytes: nan as a float, -1 as an integer.
    - Inside a warp there are no races: its lanes run in lockstep here. Lanes of one warp that write different values to
      one place, as Triton lets them where sums differ in the last bit: the last lane wins. On a chip, any may.
    - cp.async reads global memory when it is issued, and arrives as late as it may.
    - A proxy fence of a block hands over all that it has written, whoever wrote it; cp.async's writes need none.

As long as all blocks do the same with the same addresses, notes are kept once for all of them (`apart` is false).
"""

from __future__ import annotations

import numpy as np

from .numbers import BITS
from .parser import EmulatorError
from .places import Copy, Places

Array = np.ndarray
WARP = 32
ATOMIC = 63  # in the notes, the warp of all atomic operations


class Shared:
    """unit: bytes that are noted together, the smallest access in the kernel."""

    def __init__(self, shape: tuple[int, int], size: int, unit: int, races: bool, proxies: bool):
        self.shape, self.size, self.unit = shape, size, unit
        self.races, self.proxies = races, proxies
        self.bytes = np.full((shape[0], -(-size // 16) * 16), 0xFF, np.uint8)
        units = self.bytes.shape[1] // unit
        warps = -(-shape[1] // WARP)
        self.apart = False
        self.copies: list[Copy] = []
        self.groups = np.zeros(1, np.int64)  # of copies, committed so far; by block, if apart
        self.flying = np.zeros((1, units), bool)  # a copy is under way
        self.unfenced = np.zeros((1, units), bool)  # written since the last proxy fence
        self.reads: list[list[Places]] = [[]]  # of wgmma: one list for each group, the last one still open
        self.wanted = np.zeros((1, units), bool)  # wgmma still reads it
        self.epoch = np.ones(1, np.int64)  # begins anew with each barrier
        self.wrote = np.zeros((1, units if races else 0), np.int64)  # epoch * 64 + the warp that changed it
        self.read = np.zeros((warps, 1, units if races else 0), np.int32)  # epoch, by warp
        self.lanes = np.arange(shape[1]) // WARP

    def part(self) -> None:
        """Notes for each block by itself, from now on."""
        if self.apart:
            return
        self.apart, blocks = True, self.shape[0]
        for name in ("groups", "flying", "unfenced", "wanted", "epoch", "wrote"):
            setattr(self, name, np.repeat(getattr(self, name), blocks, 0))
        self.read = np.repeat(self.read, blocks, 1)
        self.copies = [copy.of_each_block(blocks) for copy in self.copies]

    def places(self, address: Array, each: int, mask: Array | None) -> Places:
        """Where the threads that run go. Checks size and alignment."""
        if address.shape[0] == 1 and (mask is None or mask.shape[0] == 1):
            row = np.broadcast_to(address[0], self.shape[1:]).astype(np.int64)
            if mask is None:
                result = Places(row, self.lanes, None, each)
            else:
                here = np.broadcast_to(mask[0], self.shape[1:])
                result = Places(row[here], self.lanes[here], None, each)
        else:
            here = np.ones(self.shape, bool) if mask is None else np.broadcast_to(mask, self.shape)
            block, thread = np.nonzero(here)
            address = np.broadcast_to(address, self.shape)[here].astype(np.int64)
            result = Places(address, self.lanes[thread], block, each)
            self.part()
        self._check(result.address, each)
        return result

    def _check(self, address: Array, each: int) -> None:
        if not address.size:
            return
        worst = int(address.max())
        if worst + each > self.size:
            raise EmulatorError(f"shared memory has {self.size} bytes, and {each} from {worst} on are beyond it")
        wrong = address & (each - 1)
        if wrong.any():
            which = int(address[wrong != 0][0])
            raise EmulatorError(f"misaligned: shared address {which} is no multiple of the access's {each} bytes")

    def rows(self, places: Places, width: int) -> tuple[Array, tuple]:
        """Memory as [blocks, rows, numbers], and the index of these places in it."""
        memory = self.bytes.view(BITS[width]).reshape(self.shape[0], -1, places.each // width)
        at = places.address // places.each
        return memory, (slice(None), at) if places.block is None else (places.block, at)

    def _units(self, places: Places) -> tuple[tuple, Array]:
        """Index of the noted units, [.., n, k], and the epochs [.., 1, 1] or [n, 1] that belong to them."""
        units = (places.address // self.unit)[:, None] + np.arange(max(1, places.each // self.unit))
        if places.block is None:
            return (slice(None), units), self.epoch[:, None, None]
        return (places.block[:, None], units), self.epoch[places.block][:, None]

    def load(self, places: Places, width: int) -> Array:
        """Numbers of `width` bytes: [blocks, n, count], or [n, count] if each place has its block."""
        self.note_read(places)
        memory, index = self.rows(places, width)
        return np.take(memory, index[1], 1) if places.block is None else memory[index]

    def note_read(self, places: Places) -> None:
        if not (self.races or self.copies):
            return
        units, epoch = self._units(places)
        self._not_flying(units, "read")
        if self.races:
            self._alone(places, units, epoch, "read")
            if places.block is None:
                self.read[places.warp[:, None], :, units[1]] = self.epoch
            else:
                self.read[(places.warp[:, None], *units)] = epoch

    def store(self, places: Places, values: Array) -> None:
        """values [blocks, n, count], or [n, count]."""
        memory, index = self.rows(places, values.dtype.itemsize)
        units, epoch = self._units(places)
        self._not_flying(units, "written")
        changed = self._changed(memory, index, values, places, epoch) if self.races else None
        memory[index] = values
        if self.races:
            self._same_warp(memory, index, values, places)
            self._stamp(places, changed)
        if self.proxies:
            self.unfenced[units] = True

    def _same_warp(self, memory: Array, index: tuple, values: Array, places: Places) -> None:
        """Of several threads that write to one place in one instruction, those that lose are of the winner's warp, or
        wrote the same value."""
        lost = (memory[index] != values).any(-1)
        if lost.any():
            last = np.zeros(memory.shape[:2], np.int64)
            last[index] = np.arange(len(places.address))
            wrong = lost & (places.warp[last[index]] != places.warp)
            if wrong.any():
                which = int(places.address[np.argwhere(wrong)[0][-1]])
                raise EmulatorError(f"race: two warps write different values to shared address {which} at once")

    def _changed(self, memory: Array, index: tuple, values: Array, places: Places, epoch: Array) -> Array:
        """Which places get another value in some block. An error if another warp touched one since the last barrier."""
        changed = (memory[index] != values).any(-1)
        if places.block is None:
            changed = changed.any(0)
        if changed.any():
            some = places.only(changed)
            self._alone(some, *self._units(some), "write")
        return changed

    def _stamp(self, places: Places, which: Array) -> None:
        """Note who changed these places."""
        some = places.only(which)
        units, epoch = self._units(some)
        self.wrote[units] = epoch * 64 + some.warp[:, None]

    def _alone(self, places: Places, units: tuple, epoch: Array, act: str) -> None:
        """Nobody else has changed these units since the last barrier; if we change them, nobody else has read them."""
        wrote, mine = self.wrote[units], places.warp[:, None]
        wrong = (wrote >= epoch * 64) & (wrote - epoch * 64 != mine)
        if wrong.any():
            self._race(units, wrong, places, act, f"{_name(wrote[wrong][0] & 63)} wrote")
        if act == "write":
            for reader in range(len(self.read)):
                wrong = (self.read[reader][units] == epoch) & (mine != reader)
                if wrong.any():
                    self._race(units, wrong, places, act, f"warp {reader} read")

    def _race(self, units: tuple, wrong: Array, places: Places, act: str, other: str) -> None:
        *_, i, j = np.argwhere(wrong)[0]
        raise EmulatorError(
            f"race: {_name(places.warp[i])} {act}s shared address {units[1][i, j] * self.unit}, "
            f"which {other} since the last barrier"
        )

    def note_atomic(self, places: Places) -> None:
        """Atomic operations read and write these places."""
        units, epoch = self._units(places)
        self._not_flying(units, "written")
        if self.races:
            places = places._replace(warp=np.full_like(places.warp, ATOMIC))
            self._alone(places, units, epoch, "write")
            self._stamp(places, np.ones(len(places.address), bool))
        if self.proxies:
            self.unfenced[units] = True

    def barrier(self, blocks: Array) -> None:
        """blocks: which blocks have reached one."""
        if not blocks.all():
            self.part()
        self.epoch[blocks if self.apart else 0] += 1

    def fence(self, blocks: Array) -> None:
        """fence.proxy.async: what these blocks have written is there for wgmma."""
        if not blocks.all():
            self.part()
        self.unfenced[blocks if self.apart else slice(None)] = False

    def _not_flying(self, units: tuple, act: str) -> None:
        if act == "written" and (self.reads[0] or len(self.reads) > 1) and self.wanted[units].any():
            *_, i, j = np.argwhere(self.wanted[units])[0]
            place = units[1][i, j] * self.unit
            raise EmulatorError(f"shared address {place} is written while wgmma may still read it: wait first")
        if self.copies and self.flying[units].any():
            *_, i, j = np.argwhere(self.flying[units])[0]
            place = units[1][i, j] * self.unit
            raise EmulatorError(f"shared address {place} is {act} while cp.async still copies to it: wait first")

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

    def copy(self, places: Places, data: Array) -> None:
        """cp.async: bytes [blocks, n, each], or [n, each], will arrive."""
        units, epoch = self._units(places)
        self._not_flying(units, "written")
        memory, index = self.rows(places, 1)
        if self.races:
            self._stamp(places, self._changed(memory, index, data, places, epoch))
        memory[index] = 0xFF
        self.flying[units] = True
        group = self.groups.copy() if places.block is None else self.groups[places.block]
        self.copies.append(Copy(places, group, data))

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
                some = places.only(done)
                memory, index = self.rows(some, 1)
                memory[index] = copy.data[..., done, :]
                self.flying[self._units(some)[0]] = False
                if self.races:
                    self._stamp(places, done)
            if not done.all():
                rest = copy.group if places.block is None else copy.group[~done]
                kept.append(Copy(places.only(~done), rest, copy.data[..., ~done, :]))
        self.copies = kept


def _name(warp: int) -> str:
    return "an atomic operation" if warp == ATOMIC else f"warp {warp}"
