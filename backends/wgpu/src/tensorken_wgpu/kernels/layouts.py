"""Layouts: how the invocations of a GPU's workgroups divide rows among themselves.

A workgroup owns one row, or several.  The invocations that share a row take its groups of neighbouring elements in
turn, so that neighbouring invocations access neighbours in memory.  If each of them can keep its elements in registers,
the row is read once, whatever is computed from it; otherwise each pass over the row reads some groups.  Few long
rows are reduced in parts, each by a workgroup.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tensorken.kernels.rows import Rows
from tensorken_wgpu.wgsl.target import Target
from tensorken_wgpu.wgsl.vectors import FOUR

MAX_INVOCATIONS = 256
"""The most invocations of a workgroup that WebGPU guarantees."""

MIN_INVOCATIONS = 64
"""Fewer invocations of a workgroup would leave a part of a processor idle."""

MAX_ELEMENTS = 32
"""The most elements of a value that an invocation keeps in registers."""

USUAL_ELEMENTS = 16
"""As many elements of a row are read at once by an invocation, if there are enough rows."""

SEGMENT = 32
"""The fewest neighbouring elements that invocations read together: 128 bytes of float32."""

STATES = 8
"""The fewest neighbouring states that invocations read together, and the most that one of them reads at once."""

PASSES = 2
"""The fewest passes over a part of a row: fewer do not pay for the kernel that combines the parts."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows are divided among invocations.

    Attributes:
        sharing: the invocations that share a row, a power of two.
        rows: how many such sets of invocations a workgroup has.
        is_across: whether neighbouring invocations have neighbouring rows, and not neighbours in a row.
        lanes: the number of neighbouring rows of an invocation.
        steps: the number of neighbours in a row of a group.
        kept: the number of groups that an invocation keeps in registers.
        unrolled: the number of groups that an invocation reads in each of the passes over the rest.
        passes: over the rest of a row, or over a part of it.
        parts: of a row, each of which has a workgroup.
        groups: of a row.
    """

    sharing: int
    rows: int
    is_across: bool
    lanes: int
    steps: int
    kept: int
    unrolled: int
    passes: int
    parts: int
    groups: int

    @property
    def invocations(self) -> int:
        """Of a workgroup."""
        return self.sharing * self.rows

    @property
    def is_in_registers(self) -> bool:
        """Whether an invocation keeps all its elements of a row."""
        return self.passes == 0


def has_layout(rows: Rows, target: Target) -> bool:
    """Whether rows are divided in this way: those that a GPU reduces, of one operand of their shape at least."""
    return not target.is_software and bool(rows.axes) and rows.owner is None and prod(rows.shape) > 0


def parts_of(rows: Rows, target: Target) -> int:
    """The number of parts in which rows are reduced."""
    lanes, steps = _vectors(rows)
    groups = rows.length // steps
    lines = rows.count // lanes
    sharing = MAX_INVOCATIONS if rows.along_the_last else _most_sharing(lines, lanes)
    wanted = target.busy_invocations // (lines * sharing)
    if rows.along_the_last and rows.length <= MAX_INVOCATIONS * MAX_ELEMENTS:
        return 1
    parts = min(wanted, groups // (PASSES * sharing * _unrolled(MAX_ELEMENTS, lanes, steps)))
    return parts if parts >= 4 else 1


def layout_of(rows: Rows, target: Target, most: int = 2 * MAX_ELEMENTS, is_read_again: bool = True) -> Layout:
    """The layout of rows.

    Args:
        rows: that have a layout.
        target: the device.
        most: the most elements of a value that the text of a kernel may compute.
        is_read_again: whether a long row is read again after a first pass, so that it pays to keep a part of it.

    >>> layout_of(Rows((4096, 1000), (1,)), Target(8, 2**27, False))  # doctest: +NORMALIZE_WHITESPACE
    Layout(sharing=64, rows=1, is_across=False, lanes=1, steps=4, kept=4, unrolled=4, passes=0,
    parts=1, groups=250)
    """
    lanes, steps = _vectors(rows) if most >= FOUR else (1, 1)
    text, most = most, min(most, MAX_ELEMENTS)
    groups, lines = rows.length // steps, rows.count // lanes
    parts = parts_of(rows, target)
    if rows.along_the_last:
        sharing = _sharing_along(lines, groups, steps, most // steps, target)
        in_workgroup = max(MIN_INVOCATIONS // sharing, 1)
    else:
        sharing = _sharing_across(lines, groups, lanes, most // lanes, target)
        in_workgroup = max(MIN_INVOCATIONS // sharing, SEGMENT // lanes)
    in_workgroup = min(in_workgroup, lines)
    if parts > 1:
        sharing = MAX_INVOCATIONS if rows.along_the_last else _most_sharing(lines, lanes)
    kept, unrolled = -(-groups // sharing), _unrolled(most, lanes, steps)
    if parts > 1 or kept * lanes * steps > most:
        kept = min(most, text - unrolled * lanes * steps) // (lanes * steps)
        kept = max(kept, 0) if parts == 1 and is_read_again else 0
    rest, in_pass = max(groups - kept * sharing, 0), sharing * unrolled
    passes = -(-rest // (parts * in_pass))
    if parts > 1:
        parts = -(-rest // (passes * in_pass))
    return Layout(
        sharing, in_workgroup, not rows.along_the_last, lanes, steps, kept, unrolled, passes, parts, groups
    )


def layout_of_parts(parts: int, count: int) -> Layout:
    """The layout of the states of parts of rows, where the states of one part are neighbours in memory."""
    rows = min(count, STATES)
    sharing = min(_power_of_two(parts), _power_of_two(MAX_INVOCATIONS // rows + 1) // 2)
    rows = min(count, max(rows, MIN_INVOCATIONS // sharing))
    unrolled = min(-(-parts // sharing), STATES)
    return Layout(sharing, rows, True, 1, 1, 0, unrolled, -(-parts // (sharing * unrolled)), 1, parts)


def _vectors(rows: Rows) -> tuple[int, int]:
    """The numbers of neighbouring rows, and of neighbours in a row, that are read as one vector."""
    size = FOUR if rows.shape[-1] % FOUR == 0 else 1
    return (1, size) if rows.along_the_last else (size, 1)


def _unrolled(most: int, lanes: int, steps: int) -> int:
    """How many groups are read in one of several passes."""
    return max(min(most, USUAL_ELEMENTS) // (lanes * steps), 1)


def _sharing_along(lines: int, groups: int, steps: int, most: int, target: Target) -> int:
    """How many invocations share a row whose elements are neighbours in memory."""
    wanted = min(_power_of_two(groups), MAX_INVOCATIONS)
    sharing = min(wanted, _power_of_two(-(-groups * steps // USUAL_ELEMENTS)))
    sharing = max(sharing, min(wanted, SEGMENT // steps))
    while sharing < wanted and (sharing * lines < target.busy_invocations or sharing * most < groups):
        sharing *= 2
    return sharing


def _sharing_across(lines: int, groups: int, lanes: int, most: int, target: Target) -> int:
    """How many invocations share a row whose neighbours in memory are elements of other rows."""
    largest = min(_most_sharing(lines, lanes), _power_of_two(groups))
    sharing = 1
    fits = groups <= largest * most
    while sharing < largest and (
        sharing * lines < target.busy_invocations or (fits and sharing * most < groups)
    ):
        sharing *= 2
    return sharing


def _most_sharing(lines: int, lanes: int) -> int:
    """The most invocations that share a row, if others read its neighbours in memory."""
    return _power_of_two(MAX_INVOCATIONS // min(lines, SEGMENT // lanes) + 1) // 2


def _power_of_two(number: int) -> int:
    """The smallest power of two that is no smaller than a number."""
    return 1 << max(number - 1, 0).bit_length()
