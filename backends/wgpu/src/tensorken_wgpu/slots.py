"""Slots: the memories that a program computes in; values that are not there at the same time share one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from tensorken_wgpu.dtypes import size_of
from tensorken_wgpu.memories import class_of

if TYPE_CHECKING:
    from tensorken_core.program.program import Variable
    from tensorken_wgpu.planning import Step

LITTLE = 2**16
"""Bytes that may be wasted: what is smaller may have a slot as large as this."""


def slots(
    steps: Sequence[Step], outputs: Collection[Variable], whole: int
) -> tuple[dict[Variable, int], list[int]]:
    """For each value that is computed its slot, and how many bytes each slot has.

    Args:
        steps: of a program.
        outputs: what it results in; the slot of one is not much larger than that, as it may be kept for long.
        whole: how many bytes can be bound at once.  Larger slots are bound in parts, so only larger values have them.
    """
    found: dict[Variable, int] = {}
    sizes: list[int] = []
    free: list[int] = []
    for step in steps:
        for v in step.kernel.writes:
            if v in found:  # by another kernel, which wrote part of it
                continue
            size = size_of(v)
            alike = [i for i in free if (sizes[i] > whole) == (size > whole)]
            if v in outputs:
                alike = [i for i in alike if class_of(sizes[i]) == class_of(size)]
            slot = _best(alike, sizes, size)
            if slot is None:
                slot = len(sizes)
                sizes.append(size)
            else:
                free.remove(slot)
                sizes[slot] = max(sizes[slot], size)
            found[v] = slot
        free += [found[v] for v in step.dead if v in found]
    return found, sizes


def _best(free: Sequence[int], sizes: Sequence[int], size: int) -> int | None:
    """The smallest of some slots in which there is room, if it is not far too large; else the largest, which grows."""
    roomy = [i for i in free if size <= sizes[i] <= 2 * max(size, LITTLE)]
    if roomy:
        return min(roomy, key=lambda i: sizes[i])
    tight = [i for i in free if sizes[i] < size]
    return max(tight, key=lambda i: sizes[i]) if tight else None
