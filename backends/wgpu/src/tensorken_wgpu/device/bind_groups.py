"""Bind groups: the driver's objects that bind memories to kernels, cached as they are slow to create."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from tensorken_core.errors import BackendError
from tensorken_wgpu.device.encoding import Dispatch
from tensorken_wgpu.device.memory import Block, Memory, Window
from tensorken_wgpu.device.pipelines import Layout

Key = tuple[Hashable, ...]
"""A layout, a uniform, and the keys of memories."""

MAX_BIND_GROUPS = 4096
"""The most bind groups that are cached; the least recently used are dropped."""

MAX_SCHEDULES = 64
"""The most lists of dispatches that are cached; the oldest are dropped."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Uniform:
    """A small constant that kernels read.

    Attributes:
        buffer: of the driver.
        size: in bytes.
    """

    buffer: Any
    size: int


class BindGroups:
    """The bind groups of a device.

    Their keys hold the numbers of blocks and no memories, so a bind group keeps no memory from being freed; a block
    keeps its number for as long as it exists.

    Args:
        device: of the driver.
        limits: of the device.
        blocks: of its pool.
        most: how many bind groups are cached.

    Attributes:
        schedules: cached lists of dispatches, by a key that identifies kernels and memories.
    """

    def __init__(
        self, device: Any, limits: Mapping[str, int], blocks: Mapping[int, Block], most: int = MAX_BIND_GROUPS
    ) -> None:
        self._device = device
        self._limits = limits
        self._blocks = blocks
        self._most = most
        self._cache: OrderedDict[Key, Any] = OrderedDict()
        self.schedules: dict[Hashable, list[Dispatch]] = {}
        self._keys_of: defaultdict[int, set[Key]] = defaultdict(set)  # block -> keys of its bind groups

    def __len__(self) -> int:
        return len(self._cache)

    def bind_group(self, layout: Layout, uniform: Uniform, memories: Sequence[Memory | Window]) -> Any:
        """The driver's bind group.

        Raises:
            BackendError: if a memory cannot be bound.
            KeyError: if a memory is on another device.
        """
        key = (layout, uniform, *[memory.key for memory in memories])
        cache = self._cache
        group = cache.get(key)
        if group is None:
            group = cache[key] = self._make(layout, uniform, memories)
            for memory in memories:
                self._keys_of[_block_of(memory.key)].add(key)
            if len(cache) > self._most:
                self._drop(next(iter(cache)))
        else:
            cache.move_to_end(key)
        return group

    def keep_schedule(self, key: Hashable, schedule: list[Dispatch]) -> None:
        """Cache a list of dispatches that may be run again on the same memories."""
        if len(self.schedules) >= MAX_SCHEDULES:
            del self.schedules[next(iter(self.schedules))]
        self.schedules[key] = schedule

    def forget(self, blocks: Set[int]) -> None:
        """Drop the bind groups of these blocks, and all schedules, as they may use them."""
        if blocks:
            self.schedules.clear()
        for block in blocks:
            for key in [*self._keys_of.get(block, ())]:
                self._drop(key)

    def _drop(self, key: Key) -> None:
        self._cache.pop(key, None)  # an interruption may have left the rest
        for block in {_block_of(memory) for memory in key[2:]}:
            keys = self._keys_of[block]
            keys.discard(key)
            if not keys:
                del self._keys_of[block]

    def _make(self, layout: Layout, uniform: Uniform, memories: Sequence[Memory | Window]) -> Any:
        if len(memories) != layout.reads + layout.writes:
            raise BackendError(
                f"wgpu: a kernel that reads {layout.reads} memories and writes {layout.writes} got {len(memories)}"
            )
        read = {_block_of(memory.key) for memory in memories[: layout.reads]}
        if not read.isdisjoint([_block_of(memory.key) for memory in memories[layout.reads :]]):
            raise BackendError(
                "wgpu: a kernel both reads and writes a memory; bind it once, among the memories that it writes"
            )
        entries = [{"binding": 0, "resource": {"buffer": uniform.buffer}}]
        entries += [
            {"binding": i, "resource": self._resource(memory)} for i, memory in enumerate(memories, 1)
        ]
        return self._device.create_bind_group(layout=layout.bind_group, entries=entries)

    def _resource(self, memory: Memory | Window) -> dict[str, Any]:
        """The largest bindable part of the block, so that all memories in it share bind groups; or a window."""
        most = self._limits["max-storage-buffer-binding-size"]
        block = self._blocks[_block_of(memory.key)]
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
                f"wgpu: a memory of {memory.size} bytes cannot be bound at once, only up to {most} "
                "(max-storage-buffer-binding-size); bind windows of it"
            )
        return {"buffer": block.buffer, "offset": 0, "size": min(block.size, most & ~3)}


def _block_of(key: Any) -> int:
    """The number of the block of a memory or a window."""
    number: int = key if type(key) is int else key[0]
    return number
