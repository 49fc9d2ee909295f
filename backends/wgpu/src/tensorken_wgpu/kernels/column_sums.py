"""Column sums: sums over the rows of a matrix, added by the kernel that has the rows in registers.

The gradients of a layer norm are the results for each row, and sums over all rows for the weight and the bias.  An
invocation has the same columns of all its rows, and adds them in registers.  So the matrix is read once, and a second
kernel adds the sums of the sets of invocations that share rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tensorken.kernels.elements import NotComputedHere
from tensorken.kernels.index_expressions import IndexExpression, variable
from tensorken.kernels.lowering import Lowered
from tensorken.kernels.nests import FusionGroup
from tensorken.kernels.rows import REDUCTIONS, Rows, unreduced_shape
from tensorken_wgpu.kernels.accumulations import Plain, States
from tensorken_wgpu.kernels.kernel import Kernel, with_vectors
from tensorken_wgpu.kernels.layouts import Layout, has_layout
from tensorken_wgpu.kernels.shared_rows import SharedRows, layout_of_group, merging_kernel
from tensorken_wgpu.wgsl.dtypes import size_of
from tensorken_wgpu.wgsl.ops import TYPES
from tensorken_wgpu.wgsl.target import Target
from tensorken_wgpu.wgsl.templates import integer

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable
    from tensorken_wgpu.wgsl.vectors import Vector

MIN_ROWS = 16
"""The fewest rows of a set of invocations: fewer save less than the sums of the sets cost."""

MAX_SUMS = 64
"""The most sums of an invocation, which are in registers."""


def joint_kernels(lowered: Lowered, target: Target) -> dict[int, list[Kernel]]:
    """The kernels of groups of rows that also add columns, and of the groups of these sums, by their positions."""
    if target.is_software:
        return {}
    groups, producers = lowered.groups, lowered.producers
    position = {v: i for i, group in enumerate(groups) for v in group.values}
    found: dict[int, list[Kernel]] = {}
    for j, columns in enumerate(groups):
        if not _is_of_sums(columns, producers, target):
            continue
        sums = [v for v in columns.values if producers[v].op.name in REDUCTIONS]
        needed = {x for v in sums for x in columns.needs[v]}
        last = max([position.get(x, -1) for x in needed])
        for i in range(max(last, 0), j):
            if i not in found and _is_of_rows(groups[i], columns, needed):
                kernels = _kernels(groups[i], columns, sums, lowered, target)
                if kernels:
                    found[i], found[j] = [kernels[0]], [kernels[1]]
                    break
    return found


def _is_of_sums(group: FusionGroup, producers: Mapping[Variable, Equation], target: Target) -> bool:
    """Whether a group adds the columns of a matrix, and all its other values depend on these sums."""
    if not has_layout(group.rows, target) or group.rows.axes != (0,) or len(group.rows.shape) != 2:
        return False
    if not all(map(group.is_outer, group.values)):
        return False
    depths = group.depths(producers)
    reductions = [v for v in group.values if producers[v].op.name in REDUCTIONS]
    return min(depths.values()) == 1 and all(
        [producers[v].op.name in ("sum", "fused_multiply_add") and depths[v] == 1 for v in reductions]
    )


def _is_of_rows(group: FusionGroup, columns: FusionGroup, needed: Collection[Variable]) -> bool:
    """Whether a group computes rows of a matrix, and reads a part of what the sums of the columns read."""
    read = {x for v in group.values for x in group.needs[v]}
    return group.rows == Rows(columns.rows.shape, (1,)) and not read.isdisjoint(needed)


def _kernels(
    group: FusionGroup,
    columns: FusionGroup,
    sums: Sequence[Variable],
    lowered: Lowered,
    target: Target,
) -> list[Kernel]:
    """The kernel of rows, and the one that adds the sums of the sets; none if they do not pay."""
    producers, kept = lowered.producers, lowered.kept
    try:
        layout = layout_of_group(group, producers, kept, target)
        count, elements = group.rows.count, layout.kept * layout.steps
        sets = min(2 * target.busy_invocations // layout.sharing, count // MIN_ROWS)
        sets -= sets % layout.rows
        if not layout.is_in_registers or elements * len(sums) > MAX_SUMS:
            return []
        if 2 * sets * layout.sharing < target.busy_invocations:
            return []
        states = States(sets, columns.rows)
        make = partial(_RowsAndColumns, group, producers, kept, layout, target, columns, sums, states)
        kernel = make().kernel()
        if layout.steps > 1:
            kernel = with_vectors(make, [*kernel.reads, *kernel.writes])
        windows = [len(target.windows(size_of(v))) for v in (*kernel.reads, *kernel.writes)]
        if sum(windows) > target.bindings:
            return []
        rest = merging_kernel(columns, states, producers, kept, target)
    except NotComputedHere:
        return []
    return [kernel, rest]


class _RowsAndColumns(SharedRows):
    """Writes the kernel of rows.

    Args:
        group: of the rows.
        producers: for each computed value its equation.
        kept: the values in memory.
        layout: of the rows, in registers.
        target: the device.
        columns: the group of the sums.
        sums: of columns.
        column_states: the sums of each set of invocations, which the kernel writes.
        vectors: the vectors in which values are read and written.
    """

    def __init__(
        self,
        group: FusionGroup,
        producers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        layout: Layout,
        target: Target,
        columns: FusionGroup,
        sums: Sequence[Variable],
        column_states: States,
        vectors: Mapping[Variable, Vector] | None = None,
    ) -> None:
        super().__init__(group, producers, kept, layout, target, None, vectors)
        self._sums = [Plain(v, producers[v], self.writer) for v in sums]
        self._column_states = column_states
        column_states.declare(self._sums)

    def kernel(self) -> Kernel:
        """Write the kernel."""
        writer, layout = self.writer, self.layout
        sets, count = self._column_states.parts, self.rows.count
        blocks = sets // layout.rows
        number, _ = self.below(self.set_of(self.write_head(blocks)), sets)
        columns = range(layout.kept * layout.steps)
        totals = {a.source: [writer.new_name() for _ in columns] for a in self._sums}
        for a in self._sums:
            for total in totals[a.source]:
                writer.line(f"var {total}: {TYPES[a.dtypes[0]]} = {a.starts[0]};")
        k, trips = writer.new_name(), -(-count // sets)
        with writer.block(f"for (var {k} = 0u; {k} < {integer(trips)}; {k} += 1u)"):
            row, self._own = self.below(variable(k, trips).times(sets) + number, count)
            self.run([row])
            self._add([row], totals)
            if layout.sharing > 1:
                writer.line("workgroupBarrier();")
        self._store(number, totals)
        values = [*self.group.values, *[a.source for a in self._sums]]
        return self.finished(blocks, values)

    def _add(self, rows: Sequence[IndexExpression], totals: Mapping[Variable, Sequence[str]]) -> None:
        """Add the elements of a row to the sums of their columns."""
        (row,) = rows
        for g, group in enumerate(self.kept_groups()):
            self.set_current(rows, group.steps)
            for a in self._sums:
                elements = self._elements(self.producers[a.source], row, group.steps)
                for e, element in enumerate(elements):
                    a.add([totals[a.source][g * self.layout.steps + e]], [(element, self._own)])

    def _elements(
        self, equation: Equation, row: IndexExpression, steps: Sequence[IndexExpression]
    ) -> Sequence[str]:
        """The elements of a row that a sum of columns adds."""
        writer, shape = self.writer, unreduced_shape(equation)
        indices = [writer.element(shape, self.rows.element(writer, row, i).linear) for i in steps]
        operands = [
            writer.values(x, [index.before_expand(x.shape) for index in indices]) for x in equation.operands
        ]
        if equation.op.name == "sum":
            return operands[0]
        return [writer.product(a, b, equation.operands[0].dtype) for a, b in zip(*operands, strict=True)]

    def _store(self, number: IndexExpression, totals: Mapping[Variable, Sequence[str]]) -> None:
        for g, group in enumerate(self.kept_groups()):
            for a in self._sums:
                places: list[tuple[Any, IndexExpression]] = [
                    self._column_states.place(a, 0, number, i) for i in group.steps
                ]
                first = g * self.layout.steps
                elements = [(index, totals[a.source][first + e]) for e, (_, index) in enumerate(places)]
                with self.only_if([group.condition] if group.condition else []):
                    self.writer.store(places[0][0], elements)
