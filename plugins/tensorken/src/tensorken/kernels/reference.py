"""The reference target: it runs kernels in Python, element by element, and so defines the results of lowered programs.

Each element is an array of one element of some backend, which computes its ops; a row is reduced by the backend's own
reduction.  So a lowered program must have the results of `Program.replay` on that backend, and a difference is a fault
of the lowering.  Indices stay expressions, whose variables have a value in each iteration of a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken.kernels.element_indices import Bound
from tensorken.kernels.elements import INLINE, ElementWalk
from tensorken.kernels.index_expressions import IndexExpression, variable, written_variable
from tensorken.kernels.keeping import Costs
from tensorken.kernels.lowering import Lowered, lower
from tensorken.kernels.nests import CountingNest, FusionGroup, Nest
from tensorken.kernels.rows import REDUCTIONS
from tensorken_core.language.op import OPS, Op, run

if TYPE_CHECKING:
    from tensorken_core.language.dtypes import DType
    from tensorken_core.language.raw import RawTensor
    from tensorken_core.program.program import Equation, Program, Variable

SUM, FUSED_MULTIPLY_ADD = OPS["sum"], OPS["fused_multiply_add"]


@dataclass(frozen=True, slots=True)
class ReferenceTarget:
    """A target whose limits can be chosen.

    Attributes:
        max_operands: the most values that one kernel may read and write.
        max_count: the most elements and indices that one kernel may compute.
        costs: of computing values again.
        calls: for each equation to call although kernels could compute it the values that the call reads: operands, or
            the values before movement ops.
    """

    max_operands: int = 8
    max_count: int = 200
    costs: Costs = field(default_factory=Costs)
    calls: Mapping[Equation, Collection[Variable]] = field(default_factory=dict)

    def runs_alone(self, equation: Equation) -> bool:
        """No op runs alone."""
        return False

    def read_by_call(self, equation: Equation) -> Collection[Variable] | None:
        """The values that a call reads; None if kernels compute the op."""
        return self.calls.get(equation, None if can_compute(equation) else equation.operands)

    def fits(self, operands: Collection[Variable], count: int) -> bool:
        """Whether one kernel may have these operands and compute this many elements and indices."""
        return len(operands) <= self.max_operands and count <= self.max_count

    def can_reduce(self, nest: CountingNest) -> bool:
        """Any kernel can run the loops of its group."""
        return True


def can_compute(equation: Equation) -> bool:
    """Whether kernels compute an op: it is elementwise, moves elements, or is a reduction."""
    return equation.op.elementwise or equation.op.name in INLINE | REDUCTIONS


def run_lowered(
    program: Program, backend: RawTensor[Any], inputs: Sequence[Any], target: ReferenceTarget | None = None
) -> list[Any]:
    """Run the kernels of a program; the backend runs the ops that no kernel computes.

    Args:
        program: to lower and run.
        backend: computes single elements.
        inputs: representations of the backend.
        target: the limits of kernels.

    Returns:
        The outputs, as representations of the backend.

    >>> import tensorken as tk
    >>> from tensorken_reference.backend import Reference
    >>> program = tk.trace(lambda x: (x.mT * 2.0).sum(0))(tk.ones((2, 2), backend="reference"))
    >>> reference = Reference()
    >>> x = reference.new((2, 2), [1.0, 2.0, 3.0, 4.0], tk.float32)
    >>> [y.data for y in run_lowered(program, reference, [x])]
    [(6.0, 14.0)]
    """
    target = target or ReferenceTarget()
    return Memory(program, backend, inputs).run(lower(program, target), target)


class Memory:
    """The values that the kernels of a program share.

    Args:
        program: to run.
        backend: computes single elements.
        inputs: representations of the backend.

    Attributes:
        elements: of each value in memory.
    """

    def __init__(self, program: Program, backend: RawTensor[Any], inputs: Sequence[Any]) -> None:
        self.backend = backend
        self.program = program
        self.elements: dict[Variable, list[Any]] = {
            v: [*backend.ravel(x)] for v, x in zip(program.inputs, inputs, strict=True)
        }

    def run(self, lowered: Lowered, target: ReferenceTarget) -> list[Any]:
        """Run all kernels and return the outputs."""
        literals = [v for v in lowered.outputs if hasattr(v, "value")]
        for v in [*self.program.constants, *literals]:
            self.elements[v] = [*self.backend.ravel(self.program.outside(v, self.backend))]
        for v in lowered.producers:
            self.elements.setdefault(v, [])  # a value without elements has no kernel
        for group in lowered.groups:
            equation = lowered.producers[group.values[0]]
            read = target.read_by_call(equation)
            if read is None:
                ReferenceNest(group, lowered, self).compute()
            else:
                self._call(equation, read, lowered)
        return [
            self.backend.new(v.shape, self.elements[kept], v.dtype)
            for v, kept in zip(self.program.outputs, lowered.outputs, strict=True)
        ]

    def _call(self, equation: Equation, read: Collection[Variable], lowered: Lowered) -> None:
        """Run an op on whole values; those that it reads are in memory, and others may not be yet."""
        backend = self.backend
        in_memory = {lowered.reshaped_from.get(x, x) for x in read}

        def array(x: Variable) -> Any:
            root = lowered.reshaped_from.get(x, x)
            if hasattr(root, "value"):
                return backend.full(x.shape, root.value, x.dtype)
            if root in in_memory or root not in lowered.producers:
                return backend.new(x.shape, self.elements[root], x.dtype)
            equation = lowered.producers[x]  # a movement op, of values in memory
            return run(backend, equation.op, [array(y) for y in equation.operands], equation.params)

        result = run(backend, equation.op, [array(x) for x in equation.operands], equation.params)
        for v, y in zip(equation.results, [result] if equation.op.results == 1 else result, strict=True):
            self.elements[v] = [*backend.ravel(y)]


class ReferenceWalk(ElementWalk[Any]):
    """Computes elements as arrays of one element.

    Args:
        lowered: the program.
        group: to compute.
        memory: of the program.

    Attributes:
        index_values: the values of index variables.
    """

    def __init__(self, lowered: Lowered, group: FusionGroup, memory: Memory) -> None:
        super().__init__(lowered.producers, lowered.kept, group.values)
        self.backend = memory.backend
        self.elements = memory.elements
        self.index_values: dict[str, int] = {}

    def load(self, v: Variable, index: IndexExpression) -> Any:
        return self.constant(self.elements[v][index.value(self.index_values)], v.dtype)

    def constant(self, value: bool | int | float, dtype: DType) -> Any:
        return self.backend.new((1,), [value], dtype)

    def op(self, op: Op, operands: Sequence[Any], dtype: DType) -> Any:
        return run(self.backend, op, operands, ())

    def cast(self, x: Any, source: DType, dtype: DType) -> Any:
        return run(self.backend, OPS["cast"], (x,), (dtype,))

    def product(self, a: Any, b: Any, dtype: DType) -> Any:
        """Both factors: the reduction multiplies them."""
        return a, b

    def guarded(
        self, values: Callable[[], Sequence[Any]], bounds: Sequence[Sequence[Bound]], dtype: DType
    ) -> list[Any]:
        (conditions,) = bounds  # there is one element at a time
        if all([0 <= index.value(self.index_values) < size for index, size in conditions]):
            return list(values())
        return [self.constant(0, dtype)]

    def as_index(self, element: Any, dtype: DType, size: int) -> IndexExpression:
        (number,) = self.backend.ravel(element)
        return self._variable(int(number), size, written_variable)

    def index_element(self, index: IndexExpression, dtype: DType) -> Any:
        return self.constant(index.value(self.index_values), dtype)

    def new_quotient(
        self, dividend: IndexExpression, operator: str, divisor: int, size: int
    ) -> IndexExpression:
        number = dividend.value(self.index_values)
        assert number >= 0
        return self._variable(number // divisor if operator == "/" else number % divisor, size)

    def new_index(self, index: IndexExpression, size: int) -> IndexExpression:
        return self._variable(index.value(self.index_values), size)

    def _variable(
        self, value: int, size: int, make: Callable[[str, int], IndexExpression] = variable
    ) -> IndexExpression:
        name = f"index {len(self.index_values)}"
        self.index_values[name] = value
        return make(name, size)


class ReferenceNest(Nest[Any]):
    """Runs a kernel.

    Args:
        group: to compute.
        lowered: the program.
        memory: of the program.
    """

    walk: ReferenceWalk

    def __init__(self, group: FusionGroup, lowered: Lowered, memory: Memory) -> None:
        super().__init__(group, ReferenceWalk(lowered, group, memory))
        self.memory = memory

    def compute(self) -> None:
        """Compute all rows."""
        for v in self.group.written:
            self.memory.elements[v] = [None] * prod(v.shape)
        for row in range(self.rows.count):
            self.walk.index_values.clear()
            self.walk.index_values["row"] = row
            with self.walk.scope():
                self.run([written_variable("row", self.rows.count)])

    def loop(self, body: Callable[[Sequence[IndexExpression]], None]) -> None:
        for i in range(self.rows.length):
            self.walk.index_values["i"] = i
            with self.walk.scope():
                body([variable("i", self.rows.length)])

    def reduce(self, reductions: Sequence[Variable], rows: Sequence[IndexExpression]) -> None:
        elements_of: dict[Variable, list[Any]] = {v: [] for v in reductions}

        def body(steps: Sequence[IndexExpression]) -> None:
            self.set_current(rows, steps)
            for v in reductions:
                elements_of[v] += self.reduced(v, rows, steps)

        self.loop(body)
        (row,) = rows
        for v, elements in elements_of.items():
            self.walk.define(v, row, self._combined(v, elements))

    def _combined(self, v: Variable, elements: Sequence[Any]) -> Any:
        op, backend = self.producers[v].op, self.walk.backend
        dtype = self.producers[v].operands[0].dtype

        def joined(parts: Sequence[Any]) -> Any:
            return backend.new((len(parts),), [number for x in parts for number in backend.ravel(x)], dtype)

        if op is FUSED_MULTIPLY_ADD:
            columns = [joined([factors[k] for factors in elements]) for k in (0, 1)]
            return run(backend, op, columns, ((0,),))
        return run(backend, SUM if op.name == "scatter_add" else op, [joined(elements)], ((0,),))

    def store(self, v: Variable, elements: Sequence[tuple[IndexExpression, Any]]) -> None:
        for index, element in elements:
            (number,) = self.walk.backend.ravel(element)
            self.memory.elements[v][index.value(self.walk.index_values)] = number
