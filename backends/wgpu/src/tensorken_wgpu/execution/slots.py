"""Slots: the memory of a program's values; values that are not alive at the same time share a slot."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from tensorken_wgpu.device.memory import class_of
from tensorken_wgpu.wgsl.dtypes import size_of

if TYPE_CHECKING:
    from tensorken_core.program.program import Variable
    from tensorken_wgpu.execution.planning import Step

MAX_WASTE = 2**16
"""Bytes that may be wasted: a value may have a slot of up to twice this size, however small it is."""


def slots(
    steps: Sequence[Step],
    outputs: Collection[Variable],
    binding_size: int,
    elsewhere: Collection[Variable] = (),
) -> tuple[dict[Variable, int], list[int]]:
    """The slot of each computed value, and the size of each slot in bytes.

    Args:
        steps: of a program.
        outputs: its outputs.  The slot of an output is not much larger than the output, which may live long.
        binding_size: bytes of the largest binding.  Larger slots are bound in windows, so only larger values use
            them.
        elsewhere: values that have other memory.
    """
    slot_of: dict[Variable, int] = {}
    sizes: list[int] = []
    free: list[int] = []
    for step in steps:
        for v in step.kernel.writes:
            if v in slot_of or v in elsewhere:  # an earlier kernel wrote part of it
                continue
            size = size_of(v)
            usable = [i for i in free if (sizes[i] > binding_size) == (size > binding_size)]
            if v in outputs:
                usable = [i for i in usable if class_of(sizes[i]) == class_of(size)]
            slot = _best(usable, sizes, size)
            if slot is None:
                slot = len(sizes)
                sizes.append(size)
            else:
                free.remove(slot)
                sizes[slot] = max(sizes[slot], size)
            slot_of[v] = slot
        free += [slot_of[v] for v in step.dead if v in slot_of]
    return slot_of, sizes


def _best(free: Sequence[int], sizes: Sequence[int], size: int) -> int | None:
    """The smallest slot that fits and is not far too large; else the largest smaller one, which grows; None if
    there is none.
    """
    large_enough = [i for i in free if size <= sizes[i] <= 2 * max(size, MAX_WASTE)]
    if large_enough:
        return min(large_enough, key=lambda i: sizes[i])
    smaller = [i for i in free if sizes[i] < size]
    return max(smaller, key=lambda i: sizes[i]) if smaller else None
