"""Picks: sums of `where(position == index, x, 0)` over a row, such as the loss of a label: one element of x each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorken.kernels.element_indices import INDICES_BEFORE, ElementIndex
from tensorken.kernels.index_expressions import IndexExpression, constant_index, variable, written_variable
from tensorken.kernels.nests import CountingWalk, Nest
from tensorken.kernels.rows import Rows
from tensorken_wgpu.wgsl.reductions import accumulator_of
from tensorken_wgpu.wgsl.writer import Writer

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable


@dataclass(frozen=True, slots=True)
class Pick:
    """A sum that is one element of a row, or 0 if the index is out of range.

    Attributes:
        equation: the sum.
        rows: that are added.
        chosen: the value that has the element.
        index: the value with the index in the row, equal for all elements of a row.
    """

    equation: Equation
    rows: Rows
    chosen: Variable
    index: Variable


def picks(nest: Nest[Any], rows: Rows | None = None) -> dict[Variable, Pick]:
    """The sums of a kernel that are one element.

    Args:
        nest: goes through the kernel.
        rows: that are added, if these are not the rows of the kernel.
    """
    rows = rows or nest.rows
    found = {}
    for v in nest.reductions:
        e = nest.producers[v]
        where = nest.producers.get(e.operands[0]) if e.op.name == "sum" else None
        if where is None or where.op.name != "where":
            continue
        condition, chosen, other = where.operands
        equal = nest.producers.get(condition)
        if getattr(other, "value", None) != 0 or equal is None or equal.op.name != "eq":
            continue
        for position, index in (equal.operands, equal.operands[::-1]):
            if _is_position(position, nest, rows) and _is_constant(index, nest, rows):
                found[v] = Pick(e, rows, chosen, index)
    return found


def _unmoved(v: Variable, nest: Nest[Any], rows: Rows) -> tuple[Variable, ElementIndex]:
    """The value before movement ops, and the index of the element that is moved to element i of a row."""
    row = written_variable("row", rows.count)
    walk = CountingWalk(nest.producers, (), ())
    index = rows.element(walk, row, variable("i", rows.length))
    index = walk.element(v.shape, index.linear)
    while (e := nest.producers.get(v)) is not None and e.op.name in INDICES_BEFORE:
        (v,) = e.operands
        index = INDICES_BEFORE[e.op.name](index, v.shape, *e.params)
    return v, index


def _is_position(v: Variable, nest: Nest[Any], rows: Rows) -> bool:
    """Whether element i of each row is i."""
    if hasattr(v, "value"):
        return False
    source, index = _unmoved(v, nest, rows)
    e = nest.producers.get(source)
    if e is None or e.op.name != "iota":
        return False
    _, axis, start, step, _ = e.params
    position = variable("i", rows.length)
    return (start, step) == (0, 1) and bool(index.indices[axis].key == position.key)


def _is_constant(v: Variable, nest: Nest[Any], rows: Rows) -> bool:
    """Whether the elements of each row are known to be equal integers."""
    if v.dtype.kind != "int" or hasattr(v, "value"):
        return bool(v.dtype.kind == "int")
    _, index = _unmoved(v, nest, rows)
    return "i" not in index.linear.terms and not any([t.startswith("index") for t in index.linear.terms])


def picked(nest: Nest[str], writer: Writer, pick: Pick, row: IndexExpression) -> str:
    """Write the element of a sum."""
    nest.set_current([row], [constant_index(0)])
    rows, length = pick.rows, pick.rows.length

    def element(v: Variable, i: IndexExpression) -> str:
        return writer.value(v, writer.element(v.shape, rows.element(writer, row, i).linear))

    index = writer.as_index(element(pick.index, constant_index(0)), pick.index.dtype, length)
    nest.set_current([row], [index])
    writer.reads_single = True
    (chosen,) = writer.guarded(lambda: [element(pick.chosen, index)], [[(index, length)]], pick.chosen.dtype)
    writer.reads_single = False
    accumulator = accumulator_of(pick.equation)
    return accumulator.finish(accumulator.combine(accumulator.start, accumulator.begin(chosen)))
