"""Scatters: slices that are added at many places, by invocations that each go through the indices once.

As a fold, each element of the result would look through all indices for those that are its own.  That suits few
elements; of many, an invocation has a column of the result, along the axis of the places, or where columns are few a
stretch of one.  It takes the indices in their order and adds what is meant for it where it belongs: nobody else writes
there, so the result is the same each time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken_core.language.dtypes import DTYPES
from tensorken_core.language.op import OPS
from tensorken_wgpu.dtypes import size_of
from tensorken_wgpu.folds import Rows
from tensorken_wgpu.kernels import WORKGROUP, Cluster, Kernel, kernels_of, module, spread
from tensorken_wgpu.places import always, fixed, variable
from tensorken_wgpu.points import Point
from tensorken_wgpu.single import Equation as SingleEquation, Value
from tensorken_wgpu.target import Target
from tensorken_wgpu.templates import whole
from tensorken_wgpu.wgsl import as_place, sums
from tensorken_wgpu.writer import Writer

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable

MUCH = 2**18
"""More often than that a fold would look at an index where walks pay: they are two kernels or more."""

LESS = 16
"""By how much fewer invocations look at all indices then: each takes longer, as it adds up in memory."""

TURNS = 2**15
"""How many indices a kernel goes through: Mesa's driver in software ends its loops after 65 535 turns."""


@dataclass(frozen=True, eq=False, slots=True)
class Zero(Value):
    """What is 0 everywhere."""

    value: int = 0


def is_walked(equation: Equation, target: Target) -> bool:
    """Whether an op has kernels of its own here, into which nothing else is brought."""
    if equation.op.name != "scatter_add":
        return False
    (_, indices), (axis, size), (v,) = equation.operands, equation.params, equation.results
    return (
        prod(v.shape) * indices.shape[0] > MUCH
        and stretches(v.shape, axis, target) * LESS <= size
        and len(target.windows(size_of(_total(v)))) == 1
    )


def stretches(shape: Sequence[int], axis: int, target: Target) -> int:
    """How many invocations share a column: each looks at all indices, so only as many as keep a GPU busy."""
    columns = prod(shape) // shape[axis]
    return 1 if target.in_software else max(target.enough // columns, 1)


def kernels(
    v: Variable, makers: Mapping[Variable, Equation], kept: Collection[Variable], target: Target
) -> list[Kernel]:
    """What computes v, which `is_walked`: zeros, then for some indices after the others what is added there."""
    equation, total = makers[v], _total(v)
    result: Any = v
    zero = Zero((1,) * len(v.shape), total.dtype)
    found = _elementwise(SingleEquation(OPS["expand"], (zero,), (v.shape,), (total,)), target)
    for begin in range(0, equation.operands[1].shape[0], TURNS):
        found.append(_walk(equation, total, makers, kept, begin, target))
    if total.dtype is not v.dtype:
        found += _elementwise(SingleEquation(OPS["cast"], (total,), (v.dtype,), (result,)), target)
    return [replace(kernel, of=(equation,)) for kernel in found]


def _total(v: Variable) -> Any:
    """What is added up in: the result, or one of the same elements in the dtype that sums are kept in."""
    dtype = DTYPES[sums(v.dtype.name).dtype]
    return v if dtype is v.dtype else Value(v.shape, dtype)


def _elementwise(equation: Any, target: Target) -> list[Kernel]:
    (x,), (v,) = equation.operands, equation.results
    cluster = Cluster(Rows((prod(v.shape),), ()), (v,), (v,), {v: frozenset([x])})
    return kernels_of(cluster, {v: equation}, {x, v}, target)


def _walk(
    equation: Equation,
    total: Any,
    makers: Mapping[Variable, Equation],
    kept: Collection[Variable],
    begin: int,
    target: Target,
) -> Kernel:
    """The kernel that adds the slices for the indices from one on."""
    (x, indices), (axis, size), (v,) = equation.operands, equation.params, equation.results
    accumulator, shared = sums(x.dtype.name), stretches(v.shape, axis, target)
    columns = (*v.shape[:axis], 1, *v.shape[axis + 1 :])
    invocations, length = prod(columns) * shared, min(indices.shape[0] - begin, TURNS)
    writer = Writer(makers, kept, frozenset([v]), target=target)
    name = writer.writes.setdefault(total, "y0")
    writer.line(f"let t = g.x + g.y * n.x * {WORKGROUP}u;")
    writer.line(f"if (t >= {whole(invocations)}) {{ return; }}")
    stretch, column = always("t", invocations).divided(prod(columns), writer.place)
    here = writer.point(columns, column).indices
    first, width = fixed(0), whole(size)
    if shared > 1:
        span = -(-size // shared)
        first = writer.place(f"min({stretch.times(span)}, {width})", size + 1)
        width = writer.named("width", f"min({width} - {first}, {whole(span)})")
    k = writer.fresh()
    with writer.block(f"for (var {k} = 0u; {k} < {whole(length)}; {k} += 1u)"):
        i = variable(k, length).plus(begin)
        index = as_place(indices.dtype.name, writer.value(indices, writer.point(indices.shape, i)))
        where = writer.named(index, index)
        place = variable(where, size)
        with writer.block(f"if ({where} - {first} < {width})"):
            value = writer.value(x, Point(x.shape, writer.place, [*here[:axis], i, *here[axis + 1 :]]))
            to = Point(v.shape, writer.place, [*here[:axis], place, *here[axis + 1 :]]).linear
            writer.line(f"{name}[{to}] = {accumulator.how(f'{name}[{to}]', value)};")
    work = invocations * length if indices.shape[0] <= TURNS else 0  # several are to have one text
    return Kernel(
        module(writer, WORKGROUP),
        spread(-(-invocations // WORKGROUP)),
        tuple(writer.reads),
        (total,),
        work,
    )
