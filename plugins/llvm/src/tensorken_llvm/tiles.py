"""Tiles: kernels that read values across the order in which they write.

Neighbours along the innermost loop are then far apart in memory, and each cache line would be read again for every row.
Within a tile such values are copied first, in their own order, so that the loop reads the copies along its rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorken.kernels.index_expressions import IndexExpression
from tensorken.kernels.nests import FusionGroup
from tensorken_llvm.axes import Loop, Loops, RecordingNest

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable

TILE = 64
"""Rows and columns of a tile."""

MIN_SIZE = 16
"""The least iterations of both loops."""

MIN_ELEMENTS = 2**14
"""Kernels of fewer elements read from the caches."""

MAX_COPIES = 2
"""The most values that are copied: their tiles stay in the first-level cache."""


@dataclass(frozen=True, slots=True)
class Tiles:
    """The tiles of a kernel.

    Attributes:
        rows: the loop along which the copied values are contiguous in memory.
        columns: the innermost loop.
        loads: the values to copy, with their indices.
    """

    rows: Loop
    columns: Loop
    loads: tuple[tuple[Variable, IndexExpression], ...]


def tiles_of(
    group: FusionGroup, producers: Mapping[Variable, Equation], kept: Collection[Variable], loops: Loops
) -> Tiles | None:
    """The tiles of a kernel; None if it has no rows to reduce, or reads all values in the order of its loops."""
    *others, columns = loops.outer or (None,)
    if loops.inner or not others or columns is None or group.work < MIN_ELEMENTS or columns.size < MIN_SIZE:
        return None
    nest = RecordingNest(group, producers, kept, loops)
    nest.counted()
    found: dict[tuple[Variable, tuple[object, ...]], tuple[Loop, IndexExpression]] = {}
    by_name = {loop.name: loop for loop in (*others, columns)}
    for v, index in nest.recording.always:
        along = [by_name[name] for name, factor in index.terms.items() if factor == 1 and name in by_name]
        is_across = index.terms.get(columns.name, 1) != 1 and index.terms.keys() <= by_name.keys()
        if is_across and len(along) == 1 and along[0].size >= MIN_SIZE:
            found[v, index.key] = along[0], index
    if not found:
        return None
    rows, _ = Counter([loop for loop, _ in found.values()]).most_common(1)[0]
    loads = [(v, index) for (v, _), (loop, index) in found.items() if loop == rows]
    return Tiles(rows, columns, tuple(loads[:MAX_COPIES]))
