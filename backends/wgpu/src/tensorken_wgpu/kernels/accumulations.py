"""Accumulations: how the invocations of a workgroup reduce rows to numbers.

An accumulation has a state of one or more variables.  Elements are added to it, and the states of several invocations,
or of several parts of a row, are merged, always in the same order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tensorken.kernels.index_expressions import IndexExpression
from tensorken.kernels.rows import Rows
from tensorken_core.language.dtypes import DTYPES
from tensorken_wgpu.wgsl.reductions import accumulator_of
from tensorken_wgpu.wgsl.single_op import Value
from tensorken_wgpu.wgsl.writer import Writer

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable

Element = tuple[str, str | None]
"""An element, and the condition under which it is one of the row; None if it is."""


class Accumulation(ABC):
    """Reduces the elements of one reduction to the results of one or several.

    Attributes:
        source: the reduction whose elements are added.
        results: the reductions.
        dtypes: the names of the dtypes of the state.
        starts: the state for no elements.
        needs_first: whether to add elements it needs the first one of the row.
    """

    source: Variable
    results: tuple[Variable, ...]
    dtypes: tuple[str, ...]
    starts: tuple[str, ...]
    needs_first: ClassVar[bool] = False

    @abstractmethod
    def add(self, state: Sequence[str], elements: Sequence[Element], first: str | None = None) -> None:
        """Add elements to the variables of a state; the first of the row is given if it is needed."""

    @abstractmethod
    def merge(self, state: Sequence[str], others: Sequence[Sequence[str]]) -> None:
        """Merge other states into the variables of a state."""

    @abstractmethod
    def finish(self, state: Sequence[str]) -> Sequence[str]:
        """The elements of the results."""


class Plain(Accumulation):
    """A sum or a maximum, element by element.

    Args:
        v: the reduction.
        equation: that computes it.
        writer: of the kernel.
    """

    def __init__(self, v: Variable, equation: Equation, writer: Writer) -> None:
        self.source = v
        self.results = (v,)
        self._accumulator = accumulator = accumulator_of(equation)
        self.dtypes = (accumulator.dtype,)
        self.starts = (accumulator.start,)
        self._is_idempotent = equation.op.name == "max"
        self._writer = writer

    def add(self, state: Sequence[str], elements: Sequence[Element], first: str | None = None) -> None:
        for element, condition in elements:
            if condition is not None and not self._is_idempotent:
                element = f"select({self.starts[0]}, {element}, {condition})"
            self.merge(state, [[self._accumulator.begin(element)]])

    def merge(self, state: Sequence[str], others: Sequence[Sequence[str]]) -> None:
        for (other,) in others:
            self._writer.line(f"{state[0]} = {self._accumulator.combine(state[0], other)};")

    def finish(self, state: Sequence[str]) -> Sequence[str]:
        return [self._accumulator.finish(state[0])]


class States:
    """The states of the parts of rows in memory: one value for each dtype.

    Args:
        parts: of a row.
        rows: that are reduced in parts.
    """

    def __init__(self, parts: int, rows: Rows) -> None:
        self.parts = parts
        self.rows = rows
        self.count = rows.count
        self.values: dict[str, Any] = {}
        self._positions: dict[tuple[Variable, int], int] = {}

    def declare(self, accumulations: Sequence[Accumulation]) -> None:
        """Reserve memory, once for both kernels."""
        if self.values:
            return
        sizes: dict[str, int] = {}
        for a in accumulations:
            for i, dtype in enumerate(a.dtypes):
                self._positions[a.source, i] = sizes.setdefault(dtype, 0)
                sizes[dtype] += 1
        for dtype, size in sizes.items():
            self.values[dtype] = Value((size * self.parts * self.count,), DTYPES[dtype])

    def place(
        self, a: Accumulation, i: int, part: IndexExpression, row: IndexExpression
    ) -> tuple[Any, IndexExpression]:
        """The value that has a variable of a state, and the index of it."""
        start = self._positions[a.source, i] * self.parts * self.count
        return self.values[a.dtypes[i]], (part.times(self.count) + row).plus(start)
