"""The walk that computes an element of a value, together with the elements that it is computed from.

Elementwise ops are applied to the operands' elements at the same index; movement ops, pads and gathers only change the
index.  The walk ends at values in memory, which are loaded, and at values that the kernel has computed already.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tensorken.kernels.element_indices import INDICES_BEFORE, Bound, ElementIndex
from tensorken.kernels.index_expressions import IndexExpression, constant_index
from tensorken.kernels.integer_bounds import end_of

if TYPE_CHECKING:
    from tensorken_core.language.dtypes import DType
    from tensorken_core.language.op import Op
    from tensorken_core.program.program import Equation, Variable

E = TypeVar("E")
"""An element: text, an instruction or a number, as the target defines."""


Result = TypeVar("Result")

Steps = Generator["Steps[Any]", Any, Result]
"""A computation in steps: it yields further ones and is sent their results, so that long chains need no recursion."""


def _result_of(steps: Steps[Result]) -> Result:
    """The result of a computation in steps."""
    running: list[Steps[Any]] = [steps]
    result: Any = None
    while True:
        try:
            following = running[-1].send(result)
        except StopIteration as end:
            running.pop()
            result = end.value
            if not running:
                return result  # type: ignore[no-any-return]
        else:
            running.append(following)
            result = None


class NotComputedHere(Exception):
    """An element of a value of this kernel is needed that is not computed at this point."""


class ElementWalk(ABC, Generic[E]):
    """Computes elements for one kernel.

    A subclass is a target: it implements the abstract methods.

    Args:
        producers: for each computed value its equation.
        kept: the values in memory, before or after this kernel.
        computed: the kept values that this kernel computes.

    Attributes:
        producers: as in the arguments.
        loads: for each value loaded from memory the keys of the element indices.
        current: for each value that this kernel computes the keys of the element indices that it currently computes.
        known: the elements and indices computed in this scope, by keys.
    """

    def __init__(
        self,
        producers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        computed: Collection[Variable],
    ) -> None:
        self.producers = producers
        self.loads: dict[Variable, set[object]] = {}
        self.current: dict[Variable, set[object]] = {}
        self.known: dict[object, Any] = {}
        self._kept = kept
        self._computed = frozenset(computed)

    # ---- methods of a target -------------------------------------------------------------------------------

    @abstractmethod
    def load(self, v: Variable, index: IndexExpression) -> E:
        """The element of a value in memory at a row-major index."""

    @abstractmethod
    def constant(self, value: bool | int | float, dtype: DType) -> E:
        """A number of the program."""

    @abstractmethod
    def op(self, op: Op, operands: Sequence[E], dtype: DType) -> E:
        """The elementwise op of elements; dtype is that of the last operand."""

    @abstractmethod
    def cast(self, x: E, source: DType, dtype: DType) -> E:
        """The element in another dtype."""

    @abstractmethod
    def product(self, a: E, b: E, dtype: DType) -> E:
        """The product of two elements that is added to a sum, possibly unrounded."""

    @abstractmethod
    def guarded(
        self, values: Callable[[], Sequence[E]], bounds: Sequence[Sequence[Bound]], dtype: DType
    ) -> list[E]:
        """The values, with zero in place of each value that has a bound that does not hold.

        Args:
            values: computes the values; those out of bounds are arbitrary, and need not be computed.
            bounds: of each value.
            dtype: of the values.
        """

    @abstractmethod
    def as_index(self, element: E, dtype: DType, size: int) -> IndexExpression:
        """An integer element as a variable, also if it has a single value; if out of bounds, it stays out of bounds."""

    @abstractmethod
    def index_element(self, index: IndexExpression, dtype: DType) -> E:
        """An index as an integer element."""

    @abstractmethod
    def new_quotient(
        self, dividend: IndexExpression, operator: str, divisor: int, size: int
    ) -> IndexExpression:
        """A new variable for a quotient (`/`) or remainder (`%`) of numbers that are not negative."""

    @abstractmethod
    def new_index(self, index: IndexExpression, size: int) -> IndexExpression:
        """A new variable for an index; it is not used where it is out of bounds."""

    def bind(self, element: E, dtype: DType) -> E:
        """The element to use wherever this element is needed again."""
        return element

    # ---- elements computed at this point -------------------------------------------------------------------

    @contextmanager
    def scope(self) -> Iterator[None]:
        """At the end of the context, forget the elements computed in it, such as in the body of a loop."""
        known = self.known.copy()
        yield
        self.known = known

    def set_current(self, indices: Mapping[Variable, Collection[IndexExpression]]) -> None:
        """Set the row-major indices at which the kernel computes each value from here on."""
        self.current = {v: {index.key for index in of_value} for v, of_value in indices.items()}

    def include(self, v: Variable, index: IndexExpression) -> None:
        """Let the kernel compute another value, at this row-major index, from values that it has computed."""
        self._computed |= {v}
        self.current = {**self.current, v: {index.key}}

    def define(self, v: Variable, index: IndexExpression, element: E) -> None:
        """Register a computed element."""
        self.known[id(v), index.key] = element

    # ---- indices -------------------------------------------------------------------------------------------

    def divide(self, dividend: IndexExpression, operator: str, divisor: int, size: int) -> IndexExpression:
        """See `IndexTarget`."""
        key = dividend.key, operator, divisor
        if key not in self.known:
            self.known[key] = self.new_quotient(dividend, operator, divisor, size)
        index: IndexExpression = self.known[key]
        return index

    def bounded(self, index: IndexExpression, size: int) -> IndexExpression:
        """See `IndexTarget`."""
        key = index.key, size
        if key not in self.known:
            self.known[key] = self.new_index(index, size)
        bounded: IndexExpression = self.known[key]
        return bounded

    # ---- elements ------------------------------------------------------------------------------------------

    def element(self, shape: Sequence[int], linear: IndexExpression) -> ElementIndex:
        """The index of the element with this row-major index."""
        return ElementIndex(shape, self, linear=linear)

    def value(self, v: Variable, index: ElementIndex) -> E:
        """An element.

        Raises:
            NotComputedHere: if this kernel computes the value, but not this element.
        """
        return self.values(v, [index])[0]

    def values(self, v: Variable, indices: Sequence[ElementIndex]) -> list[E]:
        """Several elements, op by op: processors overlap independent instructions that are close.

        Raises:
            NotComputedHere: as for `value`.
        """
        result: list[E] = _result_of(self._values(v, indices))
        return result

    def _values(self, v: Variable, indices: Sequence[ElementIndex]) -> Steps[list[E]]:
        literal = getattr(v, "value", None)
        if literal is not None:
            return [self.constant(literal, v.dtype)] * len(indices)
        keys = [(id(v), index.key) for index in indices]
        missing = {key: index for key, index in zip(keys, indices, strict=True) if key not in self.known}
        if missing:
            found = yield self._computed_elements(v, [*missing.values()])
            for key, element in zip(missing, found, strict=True):
                self.known[key] = self.bind(element, v.dtype)
        return [self.known[key] for key in keys]

    def _computed_elements(self, v: Variable, indices: Sequence[ElementIndex]) -> Steps[Sequence[E]]:
        if self._is_loaded(v, indices):
            return [self.load(v, index.linear) for index in indices]
        equation = self.producers[v]
        name, operands = equation.op.name, equation.operands
        if name in INDICES_BEFORE:
            (x,), before = operands, INDICES_BEFORE[name]
            moved: Sequence[E] = yield self._values(
                x, [before(index, x.shape, *equation.params) for index in indices]
            )
            return moved
        if name == "pad":
            return self._padded(equation, indices)
        if name == "gather":
            gathered: Sequence[E] = yield self._gathered(equation, indices)
            return gathered
        if name == "iota":
            return [self.index_element(_position(equation, index), v.dtype) for index in indices]
        columns = []
        for x in operands:
            columns.append((yield self._values(x, indices)))
        if name == "cast":
            (x,), (elements,) = operands, columns
            return elements if x.dtype is v.dtype else [self.cast(y, x.dtype, v.dtype) for y in elements]
        return [self.op(equation.op, row, operands[-1].dtype) for row in zip(*columns, strict=True)]

    def _is_loaded(self, v: Variable, indices: Sequence[ElementIndex]) -> bool:
        """Whether a value is loaded from memory, and not computed here; loads are recorded."""
        if v in self._computed:
            current = self.current.get(v, ())
            if any([index.key not in current for index in indices]):
                raise NotComputedHere
            return False
        if v not in self._kept:
            return False
        self.loads.setdefault(v, set()).update([index.key for index in indices])
        return True

    def _padded(self, equation: Equation, indices: Sequence[ElementIndex]) -> Sequence[E]:
        (x,), (pads,) = equation.operands, equation.params
        if 0 in x.shape:
            return [self.constant(0, x.dtype)] * len(indices)
        operand_indices = [index.before_pad(x.shape, pads) for index in indices]
        bounds = [conditions for _, conditions in operand_indices]
        return self._guarded(lambda: self.values(x, [index for index, _ in operand_indices]), bounds, x.dtype)

    def _gathered(self, equation: Equation, indices: Sequence[ElementIndex]) -> Steps[Sequence[E]]:
        (x, gathered), (axis,) = equation.operands, equation.params
        size = x.shape[axis]
        of_axes = [index.indices for index in indices]
        of_gathered = [
            index.of_array(gathered.shape, [i[axis]]) for index, i in zip(indices, of_axes, strict=True)
        ]
        positions: list[IndexExpression | None] = []
        for index in of_gathered:
            positions.append((yield self._index(gathered, index)))
        bounds: list[list[Bound]] = [[]] * len(positions)
        if any([p is None or p.end is None or p.end > size for p in positions]):
            elements = yield self._values(gathered, of_gathered)
            positions = [self.as_index(y, gathered.dtype, size) for y in elements]
            bounds = [[(p, size)] for p in positions if p is not None]
        of_x = [
            index.of_array(x.shape, [*i[:axis], p if p and size > 1 else constant_index(0), *i[axis + 1 :]])
            for index, i, p in zip(indices, of_axes, positions, strict=True)
        ]
        if not any(bounds):
            taken: Sequence[E] = yield self._values(x, of_x)
            return taken
        return self._guarded(lambda: self.values(x, of_x), bounds, x.dtype)

    def _index(self, v: Variable, index: ElementIndex) -> Steps[IndexExpression | None]:
        """An element as an index; None if it is not known to be one.

        A sum of an index and a position, such as the start of a row, stays a sum, so that divisions cancel.
        """
        key = "index", id(v), index.key
        if key not in self.known:
            self.known[key] = yield self._computed_index(v, index)
        result: IndexExpression | None = self.known[key]
        return result

    def _computed_index(self, v: Variable, index: ElementIndex) -> Steps[IndexExpression | None]:
        equation = self.producers.get(v)
        if equation is None:
            return None
        name, operands = equation.op.name, equation.operands
        if v not in self._kept and v not in self._computed:
            if name == "iota":
                return _position(equation, index)
            if name in INDICES_BEFORE:
                (x,) = operands
                before = INDICES_BEFORE[name](index, x.shape, *equation.params)
                position: IndexExpression | None = yield self._index(x, before)
                return position
            if name == "add":
                a = yield self._index(operands[0], index)
                b = yield self._index(operands[1], index)
                total = a + b if a and b else None
                return total if total is not None and (total.end or _TOO_LARGE) < _TOO_LARGE else None
        end = end_of(v, self.producers)
        if end is None:
            return None
        (element,) = yield self._values(v, [index])
        return self.as_index(element, v.dtype, end)

    def _guarded(
        self, values: Callable[[], Sequence[E]], bounds: Sequence[Sequence[Bound]], dtype: DType
    ) -> Sequence[E]:
        return self.guarded(values, bounds, dtype) if any(bounds) else values()


def _position(equation: Equation, index: ElementIndex) -> IndexExpression:
    """The element of an `iota`, whose elements count along an axis."""
    _, axis, start, step, _ = equation.params
    position: IndexExpression = index.indices[axis].times(step).plus(start)
    return position


_TOO_LARGE = 2**31
"""No index, and no sum of two, is as large as this number, so that int32 can hold it."""

MOVES = frozenset({*INDICES_BEFORE, "pad", "gather"})
"""Ops that change only the index of an element."""

INLINE = MOVES | {"cast", "iota"}
"""Ops that the walk computes without the target's `op`; all others except reductions are elementwise."""
