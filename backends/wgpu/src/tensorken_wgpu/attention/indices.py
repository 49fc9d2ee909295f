"""The parts of an attention, and the elements of its values that belong to a pair of a row and a key."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken.kernels.element_indices import INDICES_BEFORE, ElementIndex
from tensorken.kernels.elements import NotComputedHere
from tensorken.kernels.index_expressions import IndexExpression, IndexTarget, constant_index, variable
from tensorken.kernels.products import Product, product_of

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable

CONTRACTION = "fused_multiply_add"
"""The name of the op that contracts."""

FLOATS = ("float16", "float32")
"""The dtypes of scores, weights and results; all are computed in float32."""


@dataclass(frozen=True, slots=True)
class Score:
    """A contraction over features, with an element for each pair.

    Attributes:
        equation: the contraction.
        of_rows: the number of its operand with an element for each row; the other one has an element for each key.
        features: the length of the sum.
    """

    equation: Equation
    of_rows: int
    features: int


@dataclass(frozen=True, slots=True)
class Softmax:
    """A softmax of scores along the keys.

    Attributes:
        x: the operand.
        weights: the result.
        maximum: the maximum of each row.
        total: the sum of exponentials of each row.
        axes: of the operand that are the keys.
        shares_infinities: whether equal maxima have equal weights also if they are infinite; else the row is NaN.
    """

    x: Variable
    weights: Variable
    maximum: Variable
    total: Variable
    axes: tuple[int, ...]
    shares_infinities: bool


@dataclass(frozen=True, slots=True)
class Attention:
    """A contraction of weights over the keys.

    Attributes:
        equation: the contraction.
        of_weights: the number of its operand that is computed from scores.
        scores: the contractions over features.
        softmax: of the scores; None if the weights are computed from them element by element.
        inside: the values that are computed from scores, and the scores.
        sources: the values in memory that the kernel reads.
        is_known: whether the maximum and the sum of each row of the softmax are in memory; else the kernel finds them.
        is_stored: whether the kernel writes them.
        epilogue: elementwise ops and reshapes of the result, one after the other.
    """

    equation: Equation
    of_weights: int
    scores: tuple[Score, ...]
    softmax: Softmax | None
    inside: Collection[Variable]
    sources: tuple[Variable, ...]
    is_known: bool = False
    is_stored: bool = False
    epilogue: tuple[Equation, ...] = ()

    @property
    def weights(self) -> Variable:
        """The operand that is computed from scores."""
        return self.equation.operands[self.of_weights]

    @property
    def values(self) -> Variable:
        """The other operand."""
        return self.equation.operands[1 - self.of_weights]

    @property
    def results(self) -> tuple[Variable, ...]:
        """The values that the kernel writes; the first one is the result."""
        result = (self.equation, *self.epilogue)[-1].results
        return (*result, *(self.statistics if self.is_stored else ()))

    @property
    def statistics(self) -> tuple[Variable, ...]:
        """The maximum and the sum of each row."""
        return (self.softmax.maximum, self.softmax.total) if self.softmax else ()

    @property
    def is_online(self) -> bool:
        """Whether the kernel finds the maximum and the sum of each row while it adds the products."""
        return self.softmax is not None and not self.is_known


class AttentionIndices:
    """The indices of the elements that belong to a pair, in each value.

    Args:
        attention: the contraction and its scores.
        producers: for each computed value its equation.
        walk: computes quotients of indices.
    """

    def __init__(
        self, attention: Attention, producers: Mapping[Variable, Equation], walk: IndexTarget
    ) -> None:
        self.attention = attention
        self._producers = producers
        self._walk: Any = walk
        self.product: Product = product_of(attention.equation)
        is_first = self.product.operands[0] is attention.weights
        self.rows, self.columns = ("rows", "columns") if is_first else ("columns", "rows")

    def size(self, dimension: str) -> int:
        """The size of the contraction along batch, rows, columns, or the keys, which are its inner dimension."""
        return self.product.size(dimension)

    def result(
        self, batch: IndexExpression, row: IndexExpression, column: IndexExpression
    ) -> IndexExpression:
        """The row-major index of an element of the result."""
        return self.product.result(self._walk, {"batch": batch, self.rows: row, self.columns: column})

    def value(self, batch: IndexExpression, key: IndexExpression, column: IndexExpression) -> ElementIndex:
        """The element of the values."""
        return self._operands(batch, constant_index(0), column, key)[1 - self.attention.of_weights]

    def weight(self, batch: IndexExpression, row: IndexExpression, key: IndexExpression) -> ElementIndex:
        """The element of the weights."""
        return self._operands(batch, row, constant_index(0), key)[self.attention.of_weights]

    def _operands(
        self, batch: IndexExpression, row: IndexExpression, column: IndexExpression, key: IndexExpression
    ) -> list[ElementIndex]:
        equation = self.attention.equation
        index = ElementIndex(equation.results[0].shape, self._walk, linear=self.result(batch, row, column))
        return operand_indices(equation, index, key, self._walk)

    def inside(self, weight: ElementIndex) -> dict[Variable, ElementIndex]:
        """The element of each score, and of the softmax and its operand, for an element of the weights.

        Raises:
            NotComputedHere: if an element of the weights depends on several elements of one of them.
        """
        attention, softmax = self.attention, self.attention.softmax
        scores = [score.equation.results[0] for score in attention.scores]
        targets = {*scores, softmax.weights} if softmax else {*scores}
        found = self._reached(attention.weights, weight, targets)
        if softmax:
            if softmax.weights not in found:
                raise NotComputedHere
            index = found[softmax.x] = found[softmax.weights]
            for v, element in self._reached(softmax.x, index, scores).items():
                if found.setdefault(v, element).key != element.key:
                    raise NotComputedHere
        if not found.keys() >= {*scores}:
            raise NotComputedHere
        return found

    def _reached(
        self, start: Variable, index: ElementIndex, targets: Collection[Variable]
    ) -> dict[Variable, ElementIndex]:
        found: dict[Variable, ElementIndex] = {}
        pending, seen = [(start, index)], set()
        while pending:
            v, index = pending.pop()
            key = v, index.key
            if v not in self.attention.inside or key in seen:
                continue
            seen.add(key)
            if v in targets:
                if found.setdefault(v, index).key != index.key:
                    raise NotComputedHere
                continue
            equation = self._producers[v]
            before = INDICES_BEFORE.get(equation.op.name)
            for x in equation.operands:
                pending.append((x, before(index, x.shape, *equation.params) if before else index))
        return found


def operand_indices(
    equation: Equation, index: ElementIndex, inner: IndexExpression, walk: IndexTarget
) -> list[ElementIndex]:
    """The elements of the operands of a contraction for an element of the result and an index in the sum."""
    axes = equation.params[0]
    shape = [max(sizes) for sizes in zip(*[x.shape for x in equation.operands], strict=True)]
    inside = ElementIndex([shape[axis] for axis in axes], walk, linear=inner).indices
    indices = [*index.indices]
    for axis, i in zip(axes, inside, strict=True):
        indices[axis] = i
    element = ElementIndex(shape, walk, indices)
    return [element.before_expand(x.shape) for x in equation.operands]


def length_of(equation: Equation) -> int:
    """The length of the sum of a contraction."""
    axes = equation.params[0]
    return prod([max([x.shape[axis] for x in equation.operands]) for axis in axes])


def in_both_orders(operands: Sequence[Variable]) -> list[Sequence[Variable]]:
    """The operands of a commutative op, in both orders; none for no operands."""
    return [operands, operands[::-1]] if operands else []


class Symbols:
    """Computes indices as symbols, and knows on which variables each depends."""

    def __init__(self) -> None:
        self._of: dict[str, frozenset[str]] = {}
        self._known: dict[object, IndexExpression] = {}

    def variable(self, name: str, size: int) -> IndexExpression:
        """A variable that depends on itself."""
        self._of[name] = frozenset([name])
        return variable(name, size)

    def of(self, index: IndexExpression) -> frozenset[str]:
        """The variables on which an index depends."""
        return frozenset().union(*[self._of.get(v, ()) for v in index.terms])

    def element(self, shape: Sequence[int], linear: IndexExpression) -> ElementIndex:
        """The index of the element with this row-major index."""
        return ElementIndex(shape, self, linear=linear)

    def divide(self, dividend: IndexExpression, operator: str, divisor: int, size: int) -> IndexExpression:
        """See `IndexTarget`."""
        return self._new((dividend.key, operator, divisor), dividend, size)

    def bounded(self, index: IndexExpression, size: int) -> IndexExpression:
        """See `IndexTarget`."""
        return self._new((index.key, size), index, size)

    def _new(self, key: object, index: IndexExpression, size: int) -> IndexExpression:
        if key not in self._known:
            name = f"index {len(self._known)}"
            self._of[name] = self.of(index)
            self._known[key] = variable(name, size)
        return self._known[key]
