"""Nests: the loops of a kernel over the rows of its fusion group.

A row is reduced in stages: each stage is one loop over the row, which runs all reductions that depend only on earlier
stages.  Then the values with one element per element of the row are computed in a last loop.  Where each element is its
own row there are no loops.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Generic

from tensorken.kernels.element_indices import Bound
from tensorken.kernels.elements import E, ElementWalk
from tensorken.kernels.index_expressions import IndexExpression, constant_index, variable, written_variable
from tensorken.kernels.rows import REDUCTIONS, Rows, reduced_elements

if TYPE_CHECKING:
    from tensorken_core.language.dtypes import DType
    from tensorken_core.language.op import Op
    from tensorken_core.program.program import Equation, Variable


@dataclass(frozen=True, slots=True)
class FusionGroup:
    """Values that one kernel computes.

    Attributes:
        rows: of the array that the kernel iterates over.
        values: all values, in an order in which they can be computed.
        written: the values that outputs or other groups need.
        needs: for each value the values in memory, or of this group, from which it is computed.
    """

    rows: Rows
    values: tuple[Variable, ...]
    written: tuple[Variable, ...]
    needs: Mapping[Variable, frozenset[Variable]]

    @property
    def work(self) -> int:
        """The number of elements of all rows."""
        return self.rows.count * self.rows.length

    def is_outer(self, v: Variable) -> bool:
        """Whether a value has one element per row."""
        return prod(v.shape) == self.rows.count

    def depths(self, producers: Mapping[Variable, Equation]) -> dict[Variable, int]:
        """For each value the number of loops that must run before it is known."""
        depths: dict[Variable, int] = {}
        for v in self.values:
            before = max([depths.get(x, 0) for x in self.needs[v]], default=0)
            depths[v] = before + 1 if producers[v].op.name in REDUCTIONS else before
        return depths


class Nest(ABC, Generic[E]):
    """Goes through the loops of a kernel.

    A subclass is a target: it defines the rows, the loops, and how elements are reduced and stored.

    Args:
        group: to compute.
        walk: computes its elements.

    Attributes:
        group: as in the arguments.
        walk: as in the arguments.
        rows: of the group.
        producers: for each computed value its equation.
        reductions: the values that are reductions.
        depths: for each value the number of loops that must run before it is known.
    """

    def __init__(self, group: FusionGroup, walk: ElementWalk[E]) -> None:
        self.group = group
        self.walk = walk
        self.rows = group.rows
        self.producers = walk.producers
        self.reductions = [v for v in group.values if self.producers[v].op.name in REDUCTIONS]
        self.depths = group.depths(self.producers)

    # ---- methods of a target -------------------------------------------------------------------------------

    @abstractmethod
    def loop(self, body: Callable[[Sequence[IndexExpression]], None]) -> None:
        """Run a body for all elements of a row; its argument is the indices in the row of elements computed at once."""

    @abstractmethod
    def reduce(self, reductions: Sequence[Variable], rows: Sequence[IndexExpression]) -> None:
        """Run one loop over the rows for reductions that do not depend on each other, and define their results."""

    @abstractmethod
    def store(self, v: Variable, elements: Sequence[tuple[IndexExpression, E]]) -> None:
        """Write elements to memory, each at its row-major index."""

    # ---- the loops -----------------------------------------------------------------------------------------

    def run(self, rows: Sequence[IndexExpression]) -> None:
        """Compute rows."""
        self.reduce_stages(rows)
        self.store_rows(rows)

    @property
    def loops(self) -> int:
        """An upper bound of the number of loops."""
        return max(self.depths.values()) + 1

    def reduce_stages(self, rows: Sequence[IndexExpression]) -> None:
        """Run all reductions, and compute the values with one element per row."""
        self.set_current(rows, [])
        self.compute_outer(0, rows)
        for stage in range(1, self.loops):
            self.reduce([v for v in self.reductions if self.depths[v] == stage], rows)
            self.set_current(rows, [])
            self.compute_outer(stage, rows)

    def set_current(self, rows: Sequence[IndexExpression], steps: Sequence[IndexExpression]) -> None:
        """Set the rows, and the elements of these rows, that the kernel computes from here on."""
        inner = [self.rows.element(self.walk, row, i).linear for row in rows for i in steps]
        self.walk.set_current(
            {
                v: rows if self.group.is_outer(v) else inner
                for v in self.group.values
                if v not in self.reductions
            }
        )

    def reduced(
        self, v: Variable, rows: Sequence[IndexExpression], steps: Sequence[IndexExpression]
    ) -> Sequence[E]:
        """The elements that a reduction combines: for each row the elements of all steps."""
        return reduced_elements(self.walk, self.producers[v], [(row, i) for row in rows for i in steps])

    def compute_outer(self, stage: int, rows: Sequence[IndexExpression]) -> None:
        """Compute the values with one element per row that are known after this many loops."""
        if not self.rows.axes:
            return
        for v in self.group.values:
            if self.depths[v] == stage and self.group.is_outer(v) and v not in self.reductions:
                for row in rows:
                    self.walk.value(v, self.walk.element(v.shape, row))

    def store_rows(self, rows: Sequence[IndexExpression]) -> None:
        """Write the values that other kernels need; one loop writes all values with an element per element of a row."""
        outer = [v for v in self.group.written if self.group.is_outer(v)]
        inner = [v for v in self.group.written if not self.group.is_outer(v)]
        if outer:
            self.store_outer(outer, rows)
        if not inner:
            return

        def body(steps: Sequence[IndexExpression]) -> None:
            self.set_current(rows, steps)
            indices = [self.rows.element(self.walk, row, i).linear for row in rows for i in steps]
            for v in inner:
                self.store(v, [*zip(indices, self._values(v, indices), strict=True)])

        self.loop(body)

    def store_outer(self, values: Sequence[Variable], rows: Sequence[IndexExpression]) -> None:
        """Compute and write values with one element per row."""
        self.write_outer([(v, [*zip(rows, self._values(v, rows), strict=True)]) for v in values])

    def write_outer(self, values: Sequence[tuple[Variable, Sequence[tuple[IndexExpression, E]]]]) -> None:
        """Write computed values with one element per row."""
        for v, elements in values:
            self.store(v, elements)

    def _values(self, v: Variable, indices: Sequence[IndexExpression]) -> list[E]:
        return self.walk.values(v, [self.walk.element(v.shape, index) for index in indices])


# ---- counting ----------------------------------------------------------------------------------------------


class CountingWalk(ElementWalk[bool]):
    """Counts the computations of a kernel, and records its loads.

    An element is represented by whether it has not been counted yet.

    Attributes:
        count: the number of computed elements and indices.
    """

    count = 0

    def copy(self) -> CountingWalk:
        """A copy of the walk, with the same elements computed."""
        other = copy(self)
        other.known = self.known.copy()
        other.loads = {v: indices.copy() for v, indices in self.loads.items()}
        return other

    def bind(self, element: bool, dtype: DType) -> bool:
        self.count += element
        return False

    def load(self, v: Variable, index: IndexExpression) -> bool:
        return True

    def constant(self, value: bool | int | float, dtype: DType) -> bool:
        return False

    def op(self, op: Op, operands: Sequence[bool], dtype: DType) -> bool:
        return True

    def cast(self, x: bool, source: DType, dtype: DType) -> bool:
        return True

    def product(self, a: bool, b: bool, dtype: DType) -> bool:
        return True

    def guarded(
        self, values: Callable[[], Sequence[bool]], bounds: Sequence[Sequence[Bound]], dtype: DType
    ) -> list[bool]:
        return [True for _ in values()]

    def as_index(self, element: bool, dtype: DType, size: int) -> IndexExpression:
        return self._new_index(size)

    def index_element(self, index: IndexExpression, dtype: DType) -> bool:
        return True

    def new_quotient(
        self, dividend: IndexExpression, operator: str, divisor: int, size: int
    ) -> IndexExpression:
        return self.new_index(dividend, size)

    def new_index(self, index: IndexExpression, size: int) -> IndexExpression:
        return self._new_index(size) if size > 1 else constant_index(0)

    def _new_index(self, size: int) -> IndexExpression:
        self.count += 1
        return written_variable(f"index {self.count}", size)


class CountingNest(Nest[bool]):
    """Goes through a kernel once, with a single element of a single row.

    Args:
        group: to compute.
        producers: for each computed value its equation.
        kept: the values in memory.

    Raises:
        NotComputedHere: in `run`, if an element of a value is needed that is not computed at that point.
    """

    walk: CountingWalk

    def __init__(
        self, group: FusionGroup, producers: Mapping[Variable, Equation], kept: Collection[Variable]
    ) -> None:
        super().__init__(group, CountingWalk(producers, kept, group.values))

    def counted(self) -> int:
        """The number of computed elements and indices."""
        self.run([written_variable("row", self.rows.count)])
        return self.walk.count

    def loop(self, body: Callable[[Sequence[IndexExpression]], None]) -> None:
        with self.walk.scope():
            body([variable("i", self.rows.length)])

    def reduce(self, reductions: Sequence[Variable], rows: Sequence[IndexExpression]) -> None:
        def body(steps: Sequence[IndexExpression]) -> None:
            self.set_current(rows, steps)
            for v in reductions:
                self.reduced(v, rows, steps)

        if self.rows.length:
            self.loop(body)
        for v in reductions:
            self.walk.count += 2  # the accumulator, and combining an element with it
            for row in rows:
                self.walk.define(v, row, False)

    def store(self, v: Variable, elements: Sequence[tuple[IndexExpression, bool]]) -> None:
        self.walk.count += len(elements)
