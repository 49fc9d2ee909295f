"""Groups: which memories a kernel is run on, as the driver wants to be told: made once and kept, as that is slow."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from tensorken_core.errors import BackendError
from tensorken_wgpu.encoding import Waiting
from tensorken_wgpu.memories import Block, Memory, Window
from tensorken_wgpu.pipelines import Layout

Key = tuple[Hashable, ...]
"""A layout, a uniform, and which memories: their places."""

GROUPS = 4096
"""How many are kept, those used last."""

SCHEDULES = 64
"""How many lists of kernels are kept, those made last."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Uniform:
    """A few bytes that kernels read and nobody changes.

    Attributes:
        buffer: the driver's.
        size: in bytes.
    """

    buffer: Any
    size: int


class Groups:
    """The bind groups of a device.

    They are known by the numbers of blocks and not by memories, so none keeps a memory from being given back; a block
    has its number for as long as it exists.

    Args:
        device: the driver's.
        limits: the device's.
        blocks: those of its pool.
        most: how many are kept.

    Attributes:
        schedules: kernels with their groups, one after the other, by what tells such a list from all others.
    """

    def __init__(
        self, device: Any, limits: Mapping[str, int], blocks: Mapping[int, Block], most: int = GROUPS
    ) -> None:
        self._device = device
        self._limits = limits
        self._blocks = blocks
        self._most = most
        self._kept: OrderedDict[Key, Any] = OrderedDict()
        self.schedules: dict[Hashable, list[Waiting]] = {}
        self._of: defaultdict[int, set[Key]] = defaultdict(set)  # for each block those in which it is

    def __len__(self) -> int:
        return len(self._kept)

    def group(self, layout: Layout, uniform: Uniform, memories: Sequence[Memory | Window]) -> Any:
        """The driver's bind group.

        Raises:
            BackendError: if a memory cannot be bound so.
            KeyError: if a memory is not this device's.
        """
        key = (layout, uniform, *[memory.place for memory in memories])
        kept = self._kept
        found = kept.get(key)
        if found is None:
            found = kept[key] = self._made(layout, uniform, memories)
            for memory in memories:
                self._of[_block(memory.place)].add(key)
            if len(kept) > self._most:
                self._drop(next(iter(kept)))
        else:
            kept.move_to_end(key)
        return found

    def keep(self, key: Hashable, schedule: list[Waiting]) -> None:
        """Keep kernels that will perhaps be run again on the same memories."""
        if len(self.schedules) >= SCHEDULES:
            del self.schedules[next(iter(self.schedules))]
        self.schedules[key] = schedule

    def forget(self, places: Set[int]) -> None:
        """Let go of the groups in which these blocks are, and of all schedules, in which they may be."""
        if places:
            self.schedules.clear()
        for place in places:
            for key in [*self._of.get(place, ())]:
                self._drop(key)

    def _drop(self, key: Key) -> None:
        del self._kept[key]
        for place in {_block(place) for place in key[2:]}:
            keys = self._of[place]
            keys.discard(key)
            if not keys:
                del self._of[place]

    def _made(self, layout: Layout, uniform: Uniform, memories: Sequence[Memory | Window]) -> Any:
        if len(memories) != layout.reads + layout.writes:
            raise BackendError(
                f"wgpu: a kernel that reads {layout.reads} memories and writes {layout.writes} got {len(memories)}"
            )
        read = {_block(memory.place) for memory in memories[: layout.reads]}
        if not read.isdisjoint([_block(memory.place) for memory in memories[layout.reads :]]):
            raise BackendError(
                "wgpu: a kernel both reads a memory and writes it; bind it once, among those it writes"
            )
        entries = [{"binding": 0, "resource": {"buffer": uniform.buffer}}]
        entries += [
            {"binding": i, "resource": self._resource(memory)} for i, memory in enumerate(memories, 1)
        ]
        return self._device.create_bind_group(layout=layout.group, entries=entries)

    def _resource(self, memory: Memory | Window) -> dict[str, Any]:
        """The whole block, as far as it can be bound, so that all memories in it are bound alike; or a part of it."""
        most = self._limits["max-storage-buffer-binding-size"]
        block = self._blocks[_block(memory.place)]
        if isinstance(memory, Window):
            step = self._limits["min-storage-buffer-offset-alignment"]
            end = memory.offset + memory.size
            if memory.offset % step or not 0 < memory.size <= most or memory.size % 4 or end > block.size:
                raise BackendError(
                    f"wgpu: a window of {memory.size} bytes at {memory.offset} of {block.size} cannot be bound: it "
                    f"begins at a multiple of {step}, and is a multiple of 4 bytes, at most {most}"
                )
            return {"buffer": block.buffer, "offset": memory.offset, "size": memory.size}
        if memory.size > most:
            raise BackendError(
                f"wgpu: a memory of {memory.size} bytes cannot be bound as a whole, only up to {most} "
                "(max-storage-buffer-binding-size); bind windows of it"
            )
        return {"buffer": block.buffer, "offset": 0, "size": min(block.size, most & ~3)}


def _block(place: Any) -> int:
    """The number of the block in which a memory or a window is."""
    number: int = place if type(place) is int else place[0]
    return number
