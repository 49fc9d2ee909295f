"""The walk that writes an element, with everything that it is computed from, as LLVM instructions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tensorken.kernels.element_indices import Bound
from tensorken.kernels.elements import ElementWalk
from tensorken.kernels.index_expressions import (
    IndexExpression,
    constant_index,
    variable,
    written_variable,
)
from tensorken_llvm import scalars
from tensorken_llvm.builder import Builder
from tensorken_llvm.dtypes import BIT, BYTE, INT64, STORED, TYPES, index_number, number
from tensorken_llvm.half_precision import from_half, to_half

if TYPE_CHECKING:
    from tensorken_core.language.dtypes import DType
    from tensorken_core.language.op import Op
    from tensorken_core.program.program import Equation, Variable


class Walk(ElementWalk[Any]):
    """Writes elements as values in registers.

    Args:
        producers: for each computed value its equation.
        kept: the values in memory.
        computed: those of them that this kernel computes.
        builder: writes the instructions.
        pointers: to the values that the kernel reads and writes.

    Attributes:
        index_values: the LLVM value of each index variable.
        copies: for values and the keys of indices, functions that load the element from a copy.
    """

    def __init__(
        self,
        producers: Mapping[Variable, Equation],
        kept: Collection[Variable],
        computed: Collection[Variable],
        builder: Builder,
        pointers: Mapping[Variable, Any],
    ) -> None:
        super().__init__(producers, kept, computed)
        self.builder = builder
        self.pointers = pointers
        self.index_values: dict[str, Any] = {}
        self.copies: dict[tuple[Variable, tuple[object, ...]], Callable[[], Any]] = {}

    # ---- indices -------------------------------------------------------------------------------------------

    def index_value(self, index: IndexExpression) -> Any:
        """An index as an int64."""
        b = self.builder
        total: Any = None
        for name, factor in index.terms.items():
            term = self.index_values[name]
            if factor != 1:
                term = b.mul(term, index_number(factor), flags=("nsw",))
            total = term if total is None else b.add(total, term, flags=("nsw",))
        constant = index_number(index.constant)
        return (
            constant if total is None else b.add(total, constant, flags=("nsw",)) if index.constant else total
        )

    def named(
        self, value: Any, size: int, make: Callable[[str, int], IndexExpression] = variable
    ) -> IndexExpression:
        """A new variable with this value."""
        name = f"index {len(self.index_values)}"
        self.index_values[name] = value
        return make(name, size)

    def as_index(self, element: Any, dtype: DType, size: int) -> IndexExpression:
        wide = element if element.type is INT64 else self.builder.sext(element, INT64)
        return self.named(wide, size, written_variable)

    def index_element(self, index: IndexExpression, dtype: DType) -> Any:
        value = self.index_value(index)
        type_ = TYPES[dtype.name]
        return value if type_ is INT64 else self.builder.trunc(value, type_)

    def new_quotient(
        self, dividend: IndexExpression, operator: str, divisor: int, size: int
    ) -> IndexExpression:
        if size == 1:
            return constant_index(0)
        divide = self.builder.udiv if operator == "/" else self.builder.urem
        return self.named(divide(self.index_value(dividend), index_number(divisor)), size)

    def new_index(self, index: IndexExpression, size: int) -> IndexExpression:
        return constant_index(0) if size == 1 else self.named(self.index_value(index), size)

    # ---- elements ------------------------------------------------------------------------------------------

    def constant(self, value: bool | int | float, dtype: DType) -> Any:
        return number(value, dtype)

    def op(self, op: Op, operands: Sequence[Any], dtype: DType) -> Any:
        return scalars.compute(self.builder, op.name, operands, dtype)

    def cast(self, x: Any, source: DType, dtype: DType) -> Any:
        return scalars.cast(self.builder, x, source, dtype)

    def product(self, a: Any, b: Any, dtype: DType) -> Any:
        return (
            self.builder.fmul(a, b, flags=("contract",)) if dtype.kind == "float" else self.builder.mul(a, b)
        )

    def guarded(
        self, values: Callable[[], Sequence[Any]], bounds: Sequence[Sequence[Bound]], dtype: DType
    ) -> list[Any]:
        """The one element, which is computed only where its bounds hold."""
        (conditions,) = bounds
        b = self.builder
        inside: Any = None
        for index, size in conditions:
            one = b.icmp_unsigned("<", self.index_value(index), index_number(size))
            inside = one if inside is None else b.and_(inside, one)
        before = b.block
        with self.scope(), b.if_then(inside):
            (value,) = values()
            end = b.block
        found = b.phi(value.type)
        found.add_incoming(number(0, dtype), before)
        found.add_incoming(value, end)
        return [found]

    # ---- memory --------------------------------------------------------------------------------------------

    def load(self, v: Variable, index: IndexExpression) -> Any:
        copy = self.copies.get((v, index.key))
        return self.in_register(v, self.load_stored(v, index) if copy is None else copy())

    def load_stored(self, v: Variable, index: IndexExpression) -> Any:
        """An element as it is in memory."""
        found = self.builder.load(self._address(v, index), typ=STORED[v.dtype.name])
        if not index.terms:
            self.builder.set_invariant(found)
        return found

    def in_register(self, v: Variable, x: Any) -> Any:
        """An element of a value in the type of registers."""
        b, name = self.builder, v.dtype.name
        if name == "bool":
            return b.trunc(x, BIT)
        return from_half(b, x) if name == "float16" else x

    def store(self, v: Variable, index: IndexExpression, element: Any) -> None:
        """Write an element to memory."""
        b, name = self.builder, v.dtype.name
        if name == "bool":
            element = b.zext(element, BYTE)
        if name == "float16":
            element = to_half(b, element)
        b.store(element, self._address(v, index))

    def _address(self, v: Variable, index: IndexExpression) -> Any:
        return self.builder.gep(
            self.pointers[v], [self.index_value(index)], source_etype=STORED[v.dtype.name]
        )
