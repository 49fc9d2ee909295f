"""Scatters: scatter_add by invocations that each loop over the indices once.

As a reduction, each element of the result compares all indices with its own.  That suits small results.  For large
results an invocation has a column of the result along the scattered axis, or a segment of a column where there are
few columns.  It visits the indices in order and adds each slice that falls in its column or segment: no other
invocation writes there, so the result is deterministic.  For many indices a GPU sorts them first, see `segments`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken.kernels.element_indices import ElementIndex
from tensorken.kernels.index_expressions import constant_index, variable, written_variable
from tensorken.kernels.nests import FusionGroup
from tensorken.kernels.rows import Rows
from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_wgpu.kernels import segments
from tensorken_wgpu.kernels.kernel import WORKGROUP, Kernel, kernel_template, kernels_of, workgroup_grid
from tensorken_wgpu.wgsl.dtypes import size_of
from tensorken_wgpu.wgsl.ops import sums
from tensorken_wgpu.wgsl.single_op import Equation as SingleEquation, Value
from tensorken_wgpu.wgsl.target import Target
from tensorken_wgpu.wgsl.templates import index_text, integer
from tensorken_wgpu.wgsl.writer import Writer

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable

MIN_COMPARISONS = 2**18
"""If a reduction makes at least this many comparisons, these kernels are faster, although there are two or more."""

MIN_SAVING = 16
"""The least ratio of a reduction's comparisons to those of these kernels, which are slower, as they add in memory."""

MAX_ITERATIONS = 2**15
"""The most indices of one kernel: Mesa's software driver ends loops after 65 535 iterations."""


@dataclass(frozen=True, eq=False, slots=True)
class Zero(Value):
    """A literal 0."""

    value: int = 0


def has_scatter_kernels(equation: Equation, target: Target) -> bool:
    """Whether an op is computed by these kernels; no other op is fused into them."""
    return equation.op.name == "scatter_add" and (
        _has_column_kernels(equation, target) or _is_sorted(equation, target)
    )


def _has_column_kernels(equation: Equation, target: Target) -> bool:
    (_, indices), (axis, size), (v,) = equation.operands, equation.params, equation.results
    return (
        prod(v.shape) * indices.shape[0] > MIN_COMPARISONS
        and segments_per_column(v.shape, axis, target) * MIN_SAVING <= size
        and len(target.windows(size_of(_total(v)))) == 1
    )


def _is_sorted(equation: Equation, target: Target) -> bool:
    """Whether the indices are sorted first, see `segments`."""
    (_, indices), (axis, size), (v,) = equation.operands, equation.params, equation.results
    invocations = prod(v.shape)
    if _has_column_kernels(equation, target):
        invocations = invocations // size * segments_per_column(v.shape, axis, target)
    return segments.has_kernels(equation, invocations * indices.shape[0], target)


def segments_per_column(shape: Sequence[int], axis: int, target: Target) -> int:
    """The number of invocations that share a column: each visits all indices, so only as many as keep a GPU busy."""
    columns = prod(shape) // shape[axis]
    return 1 if target.is_software else max(target.busy_invocations // columns, 1)


def kernels(
    group: FusionGroup, producers: Mapping[Variable, Equation], kept: Collection[Variable], target: Target
) -> list[Kernel]:
    """The kernels of a scatter: fill with zeros, then add the slices, for some indices per kernel.

    Or those of `segments`, if the device can bind the values that they read.

    Args:
        group: the scatter.
        producers: for each computed value its equation.
        kept: the values in memory.
        target: the device.
    """
    (v,) = group.values
    equation, total = producers[v], _total(v)
    if _is_sorted(equation, target):
        sorted_first = segments.kernels(equation, producers, kept, target)
        if all([_can_be_bound(kernel, target) for kernel in sorted_first]):
            return sorted_first
        if not _has_column_kernels(equation, target):
            return kernels_of(group, producers, kept, target)
    result: Any = v
    zero = Zero((1,) * len(v.shape), total.dtype)
    result_kernels = _elementwise(SingleEquation(OPS["expand"], (zero,), (v.shape,), (total,)), target)
    for begin in range(0, equation.operands[1].shape[0], MAX_ITERATIONS):
        result_kernels.append(_scatter_kernel(equation, total, producers, kept, begin, target))
    if total.dtype is not v.dtype:
        result_kernels += _elementwise(SingleEquation(OPS["cast"], (total,), (v.dtype,), (result,)), target)
    return [replace(kernel, equations=(equation,)) for kernel in result_kernels]


def _can_be_bound(kernel: Kernel, target: Target) -> bool:
    bound = [target.windows(size_of(v)) for v in (*kernel.reads, *kernel.writes)]
    return sum(map(len, bound)) <= target.bindings


def _total(v: Variable) -> Any:
    """The value to which slices are added: the result, or a value of the accumulator's dtype."""
    dtype = DTYPES[sums(v.dtype.name).dtype]
    return v if dtype is v.dtype else Value(v.shape, dtype)


def _elementwise(equation: Any, target: Target) -> list[Kernel]:
    (x,), (v,) = equation.operands, equation.results
    group = FusionGroup(Rows((prod(v.shape),), ()), (v,), (v,), {v: frozenset([x])})
    return kernels_of(group, {v: equation}, {x, v}, target)


def _scatter_kernel(
    equation: Equation,
    total: Any,
    producers: Mapping[Variable, Equation],
    kept: Collection[Variable],
    begin: int,
    target: Target,
) -> Kernel:
    """The kernel that adds the slices for the indices from `begin` on."""
    (x, indices), (axis, size), (v,) = equation.operands, equation.params, equation.results
    accumulator, shared = sums(x.dtype.name), segments_per_column(v.shape, axis, target)
    columns = (*v.shape[:axis], 1, *v.shape[axis + 1 :])
    invocations, length = prod(columns) * shared, min(indices.shape[0] - begin, MAX_ITERATIONS)
    writer = Writer(producers, kept, frozenset([v]), target=target)
    name = writer.writes.setdefault(total, "y0")
    writer.line(f"let t = g.x + g.y * n.x * {WORKGROUP}u;")
    writer.line(f"if (t >= {integer(invocations)}) {{ return; }}")
    segment, column = written_variable("t", invocations).divided(prod(columns), writer)
    outer_index = writer.element(columns, column).indices
    first, width = constant_index(0), integer(size)
    if shared > 1:
        length_of_segment = -(-size // shared)
        first = writer.index(f"min({index_text(segment.times(length_of_segment))}, {width})", size + 1)
        width = writer.named("width", f"min({width} - {index_text(first)}, {integer(length_of_segment)})")
    k = writer.new_name()
    with writer.block(f"for (var {k} = 0u; {k} < {integer(length)}; {k} += 1u)"):
        i = variable(k, length).plus(begin)
        row = writer.as_index(writer.value(indices, writer.element(indices.shape, i)), indices.dtype, size)
        with writer.block(f"if ({index_text(row)} - {index_text(first)} < {width})"):
            value = writer.value(
                x, ElementIndex(x.shape, writer, [*outer_index[:axis], i, *outer_index[axis + 1 :]])
            )
            address = ElementIndex(
                v.shape, writer, [*outer_index[:axis], row, *outer_index[axis + 1 :]]
            ).linear
            element = f"{name}[{index_text(address)}]"
            writer.line(f"{element} = {accumulator.combine(element, value)};")
    work = invocations * length if indices.shape[0] <= MAX_ITERATIONS else 0  # several kernels share one text
    return Kernel(
        kernel_template(writer, WORKGROUP),
        workgroup_grid(-(-invocations // WORKGROUP)),
        tuple(writer.reads),
        (total,),
        work,
        is_proved=writer.is_proved,
    )
