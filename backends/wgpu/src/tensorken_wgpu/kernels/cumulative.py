"""Cumulative sums: kernels that add the elements along an axis in order, in blocks.

The first kernel adds each block, the next ones add the sums of the blocks up to each of them, and the last one adds
the elements of each block to the sum of the blocks before it.  So each element is read twice and written once.  One
workgroup does all of this for a line of up to `MAX_SHARED` elements.  Where the lines are many, or short, an
invocation has a whole line.  The order of the additions depends on the shape only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken.kernels.element_indices import ElementIndex
from tensorken.kernels.index_expressions import IndexExpression, variable, written_variable
from tensorken_core.language.dtypes import DTYPES
from tensorken_wgpu.kernels.kernel import (
    MAX_ITERATIONS,
    MIN_VECTORISED,
    WORKGROUP,
    Kernel,
    kernel_template,
    with_vectors,
    workgroup_grid,
)
from tensorken_wgpu.kernels.workgroups import Workgroup
from tensorken_wgpu.wgsl.dtypes import Value as HasShape, size_of
from tensorken_wgpu.wgsl.ops import sums
from tensorken_wgpu.wgsl.single_op import Value
from tensorken_wgpu.wgsl.target import Target
from tensorken_wgpu.wgsl.templates import index_text, integer
from tensorken_wgpu.wgsl.vectors import FOUR, Vector
from tensorken_wgpu.wgsl.writer import Writer

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable

OPS = frozenset({"cumsum"})
"""The ops of these kernels."""

MIN_LENGTH = 9
"""Sums of tensors with shorter axes are a few additions, which are fused with other ops."""

BLOCK = 64
"""The elements of a block."""

MAX_SHARED = BLOCK * WORKGROUP
"""The most elements that a workgroup adds."""


def has_kernels(operand: HasShape, target: Target) -> bool:
    """Whether the sums of an operand of this shape have these kernels; if not, the body of the op runs."""
    shape = operand.shape
    return 0 not in shape and max(shape) >= MIN_LENGTH and len(target.windows(size_of(operand))) == 1


def kernels(
    equation: Equation, producers: Mapping[Variable, Equation], sources: Collection[Variable], target: Target
) -> list[Kernel]:
    """The kernels of a cumulative sum.

    Args:
        equation: the sum.
        producers: for each computed value its equation.
        sources: the values in memory from which the operand is computed.
        target: the device.
    """
    (x,), (axis,), (v,) = equation.operands, equation.params, equation.results
    make = partial(_Writing, equation, producers, sources, target)
    return _kernels(make, x, v, axis, target)


def _kernels(make: Any, x: Variable, v: Variable, axis: int, target: Target) -> list[Kernel]:
    columns, length = prod(x.shape) // x.shape[axis], x.shape[axis]
    wanted = max(target.busy_invocations // columns, 1)  # blocks of a line, to keep the device busy
    if wanted < 4 or length <= BLOCK:
        blocks = 1
    elif (length <= MAX_SHARED and prod(x.shape[axis + 1 :]) == 1 and not target.is_software) or (
        length <= MAX_SHARED and columns == 1
    ):
        return [_with_vectors(make, x, v, axis, 1, "shared")]
    else:
        blocks = min(-(-length // BLOCK), wanted)
    blocks = max(blocks, -(-length // MAX_ITERATIONS))
    if blocks == 1:
        return [_with_vectors(make, x, v, axis, 1, "added")]
    dtype = DTYPES[sums(x.dtype.name).dtype]
    sums_of_blocks: Any = Value((*x.shape[:axis], blocks, *x.shape[axis + 1 :]), dtype)
    cumulative: Any = Value(sums_of_blocks.shape, dtype)
    return [
        _with_vectors(make, x, sums_of_blocks, axis, blocks, "totals"),
        *_kernels(make, sums_of_blocks, cumulative, axis, target),
        _with_vectors(make, x, v, axis, blocks, "added", cumulative),
    ]


def _with_vectors(
    make: Any, x: Variable, v: Variable, axis: int, blocks: int, form: str, *before: Variable
) -> Kernel:
    """A kernel, in vectors of four neighbours along the axis where these are neighbours in memory."""
    single: Kernel = getattr(make(x, v, axis, blocks, 1), form)(*before)
    is_last = prod(x.shape[axis + 1 :]) == 1
    if not is_last or x.shape[axis] % FOUR or prod(x.shape) < MIN_VECTORISED:
        return single

    def make_writer(vectors: Mapping[Variable, Vector]) -> _OfForm:
        written = make(x, v, axis, blocks, FOUR, vectors)
        return _OfForm(written.writer, partial(getattr(written, form), *before))

    return with_vectors(make_writer, [y for y in (*single.reads, *single.writes) if y not in before])


@dataclass(slots=True, eq=False)
class _OfForm:
    """Writes a kernel of one of the forms.

    Attributes:
        writer: of its elements.
        write: writes it.
    """

    writer: Writer
    write: Callable[[], Kernel]

    def kernel(self) -> Kernel:
        """The kernel."""
        return self.write()


class _Writing:
    """Writes a kernel of a cumulative sum.

    Args:
        equation: that the kernel is a part of.
        producers: for each computed value its equation.
        sources: the values in memory from which the operand is computed.
        target: the device.
        x: the operand.
        v: the result.
        axis: along which elements are added.
        blocks: of a line.
        steps: the number of neighbours along the axis that are read and written at once.
        vectors: the vectors in which values are read and written.
    """

    def __init__(
        self,
        equation: Equation,
        producers: Mapping[Variable, Equation],
        sources: Collection[Variable],
        target: Target,
        x: Variable,
        v: Variable,
        axis: int,
        blocks: int,
        steps: int,
        vectors: Mapping[Variable, Vector] | None = None,
    ) -> None:
        self.equation = equation
        self.x = x
        self.v = v
        self.axis = axis
        self.blocks = blocks
        self.steps = steps
        self.target = target
        self.accumulator = sums(equation.operands[0].dtype.name)
        self.length = x.shape[axis]
        self.has_sums_before = (
            False  # the sum of the elements before the block, which is added last: it is large
        )
        kept = {*sources, x} if x is not equation.operands[0] else sources
        self.writer = Writer(producers, kept, frozenset(), vectors, target)

    @property
    def _lines(self) -> tuple[int, ...]:
        return (*self.x.shape[: self.axis], 1, *self.x.shape[self.axis + 1 :])

    def totals(self) -> Kernel:
        """The kernel that adds each block."""
        block, line, index = self._block()
        self._start()
        self._loop(block, -(-self.length // self.steps // self.blocks), line, stores=False)
        self.writer.store(self.v, [(index, "total")])
        return self._finished()

    def added(self, before: Variable | None = None) -> Kernel:
        """The kernel that adds the elements of each block to the sum of the blocks before it."""
        block, line, index = self._block()
        self._start()
        if before is not None:
            writer = self.writer
            columns = prod(self.x.shape[self.axis + 1 :])
            name = writer.reads.setdefault(before, f"x{len(writer.reads)}")
            writer.line(f"var before: {self.accumulator.type} = {self.accumulator.start};")
            with writer.block(f"if ({index_text(block)} > 0u)"):
                writer.line(f"before = {name}[{index_text(index.plus(-columns))}];")
            self.has_sums_before = True
        self._loop(block, -(-self.length // self.steps // self.blocks), line, stores=True)
        return self._finished()

    def shared(self) -> Kernel:
        """The kernel whose workgroups each add a line, of which an invocation has a part."""
        writer, accumulator = self.writer, self.accumulator
        columns = prod(self._lines)
        writer.line("let q = w.x + w.y * n.x;")
        writer.line(f"if (q >= {integer(columns)}) {{ return; }}")
        line = writer.element(self._lines, written_variable("q", columns)).indices
        part, size = variable("l", WORKGROUP), -(-self.length // self.steps // WORKGROUP)
        self._start()
        self._loop(part, size, line, stores=False)
        workgroup = Workgroup(writer, WORKGROUP, self.target)
        workgroup.scan(accumulator, "total", "before")
        writer.line(f"total = {accumulator.start};")
        self.has_sums_before = True
        self._loop(part, size, line, stores=True)
        return self._finished(workgroup.declarations, columns)

    # ---- parts of the text ---------------------------------------------------------------------------------

    def _block(self) -> tuple[IndexExpression, Sequence[IndexExpression], IndexExpression]:
        """Write the head; return the block in its line, the index along each axis, and the block's index."""
        writer = self.writer
        shape = (*self.x.shape[: self.axis], self.blocks, *self.x.shape[self.axis + 1 :])
        writer.line(f"let t = g.x + g.y * n.x * {WORKGROUP}u;")
        writer.line(f"if (t >= {integer(prod(shape))}) {{ return; }}")
        index = written_variable("t", prod(shape))
        line = writer.element(shape, index).indices
        return line[self.axis], line, index

    def _start(self) -> None:
        self.writer.line(f"var total: {self.accumulator.type} = {self.accumulator.start};")

    def _loop(self, block: IndexExpression, size: int, line: Sequence[IndexExpression], stores: bool) -> None:
        """Write the loop over the elements of a block, which are added to `total`.

        Args:
            block: in its line.
            size: of the block, in steps.
            line: its index along each axis; that along the axis of the sum is not used.
            stores: whether to write the sum up to each element.
        """
        writer, axis, length = self.writer, self.axis, self.length // self.steps
        k = writer.new_name()
        with writer.block(f"for (var {k} = 0u; {k} < {integer(size)}; {k} += 1u)"):
            index = block.times(size) + variable(k, size)
            if index.end is None or index.end > length:
                name = writer.new_name()
                writer.line(f"let {name} = {index_text(index)};")
                writer.line(f"if ({name} >= {integer(length)}) {{ break; }}")
                index = variable(name, length)
            indices = [
                ElementIndex(
                    self.x.shape, writer, [*line[:axis], index.times(self.steps).plus(e), *line[axis + 1 :]]
                )
                for e in range(self.steps)
            ]
            results = []
            for element, value in zip(indices, writer.values(self.x, indices), strict=True):
                writer.line(f"total = {self.accumulator.combine('total', value)};")
                if stores:
                    name = writer.new_name()
                    result = self.accumulator.combine("before", "total") if self.has_sums_before else "total"
                    if self.v in self.equation.results:
                        result = self.accumulator.finish(result)
                    writer.line(f"let {name} = {result};")
                    results.append((element.linear, name))
            if stores:
                writer.store(self.v, results)

    def _finished(self, shared: Sequence[str] = (), workgroups: int = 0) -> Kernel:
        count = prod(self._lines) * self.blocks
        return Kernel(
            kernel_template(self.writer, WORKGROUP, shared),
            workgroup_grid(workgroups or -(-count // WORKGROUP)),
            tuple(self.writer.reads),
            tuple(self.writer.writes),
            prod(self.x.shape),
            (self.equation,),
            is_proved=self.writer.is_proved,
        )
