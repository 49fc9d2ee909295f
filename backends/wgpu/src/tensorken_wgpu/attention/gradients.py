"""The sums over the keys in the derivative of a softmax, computed without pairs from the result of an attention.

For weights p, values v, the result y = p @ v and its cotangent t, the cotangent of the weights is t @ v.T.  The
derivative of the softmax needs the sum of p * (t @ v.T) over the keys, which is the sum of t * y over the columns.
Source: T. Dao et al., FlashAttention, 2022, appendix B.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from tensorken.kernels.element_indices import INDICES_BEFORE, ElementIndex
from tensorken.kernels.elements import NotComputedHere
from tensorken_core.language.op import OPS
from tensorken_core.program.program import Equation, Variable
from tensorken_wgpu.attention.indices import (
    CONTRACTION,
    Attention,
    Softmax,
    Symbols,
    in_both_orders,
    length_of,
    operand_indices,
)

if TYPE_CHECKING:
    from tensorken_core.language.dtypes import DType
    from tensorken_core.language.shapes import Shape

MAX_PATH = 16
"""The most ops between a softmax and the weights, or between the cotangents of both."""


def sums_over_keys(attention: Attention, producers: Mapping[Variable, Equation]) -> list[Equation]:
    """The equations of the sums over the keys of weights times their cotangents, from the result of an attention."""
    softmax = attention.softmax
    if softmax is None or attention.is_known:
        return []
    equations = []
    for e in dict.fromkeys(producers.values()):
        if e.op.name == CONTRACTION and all([x.shape == softmax.x.shape for x in e.operands]):
            for weights, cotangents in in_both_orders(e.operands):
                try:
                    equations += _sum(attention, softmax, e, weights, cotangents, producers)
                except NotComputedHere:
                    continue
                break
    return equations


def _sum(
    attention: Attention,
    softmax: Softmax,
    e: Equation,
    weights: Variable,
    cotangents: Variable,
    producers: Mapping[Variable, Equation],
) -> list[Equation]:
    """The equations of one of the sums.

    Raises:
        NotComputedHere: if a contraction is something else.
    """
    (v,), (result,), walk = e.results, attention.equation.results, Symbols()
    axes = [walk.variable(f"axis {axis}", n) for axis, n in enumerate(result.shape)]
    key = walk.variable("key", length_of(attention.equation))
    operands = operand_indices(attention.equation, ElementIndex(result.shape, walk, axes), key, walk)
    index = operands[attention.of_weights]
    following = _Following(producers)
    used = following.path(attention.weights, index, lambda x: x is softmax.weights)
    summed = following.path(weights, used.index, lambda x: x is softmax.weights)
    of_cotangents = following.path(cotangents, used.index, following.is_contraction)
    is_along_keys = [i.key for i, n in zip(used.index.indices, v.shape, strict=True) if n == 1 and i.terms]
    if (
        is_along_keys != [key.key]
        or summed.index.key != used.index.key
        or Counter(used.factors) != Counter([*summed.factors, *of_cotangents.factors])
    ):
        raise NotComputedHere
    weight_axes = [i.key for i in index.indices]
    column = _only([i for i in axes if i.terms and i.key not in weight_axes])
    contraction = producers[of_cotangents.start]
    if length_of(contraction) != column.end:
        raise NotComputedHere
    elements = operand_indices(contraction, of_cotangents.index, column, walk)
    of_values = _only([n for n in (0, 1) if "key" in walk.of(elements[n].linear)])
    values = following.origin(attention.values, operands[1 - attention.of_weights])
    if values != following.origin(contraction.operands[of_values], elements[of_values]):
        raise NotComputedHere
    cotangent, places = contraction.operands[1 - of_values], elements[1 - of_values].indices
    order = [_only([axis for axis, j in enumerate(axes) if i.key == j.key]) for i in places if i.terms]
    order += [axis for axis, n in enumerate(result.shape) if n == 1]
    if sorted(order) != [*range(len(axes))]:
        raise NotComputedHere
    writing = _Writing(e)
    moved = writing.write(
        "permute", [result], tuple(order), tuple([result.shape[axis] for axis in order]), result.dtype
    )
    moved = writing.write("reshape", [moved], cotangent.shape, cotangent.shape, result.dtype)
    along = _only([axis for axis, i in enumerate(of_cotangents.index.indices) if i.key == key.key])
    total = writing.write(
        CONTRACTION,
        [writing.cast(x, v.dtype) for x in (cotangent, moved)],
        contraction.params[0],
        _without(of_cotangents.start.shape, along),
        v.dtype,
    )
    for move in reversed(of_cotangents.moves):
        total, along = writing.move(total, move, along)
    writing.write("reshape", [total], v.shape, v.shape, v.dtype, v)
    return writing.equations


def _only(found: Sequence[Any]) -> Any:
    """The only one of those found.

    Raises:
        NotComputedHere: if there is none, or more than one.
    """
    if len(found) != 1:
        raise NotComputedHere
    return found[0]


# ---- following values --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Path:
    """How an element is computed from an element of another value.

    Attributes:
        start: the other value.
        index: of its element.
        moves: the movement ops, the last one first.
        factors: the other ops, each with the element that is its factor.
    """

    start: Variable
    index: ElementIndex
    moves: tuple[Equation, ...] = ()
    factors: tuple[object, ...] = ()


class _Following:
    """Follows elements back to those that they are computed from.

    Args:
        producers: for each computed value its equation.
    """

    def __init__(self, producers: Mapping[Variable, Equation]) -> None:
        self._producers = producers

    def is_contraction(self, v: Variable) -> bool:
        """Whether a value is a contraction."""
        return v in self._producers and self._producers[v].op.name == CONTRACTION

    def origin(self, v: Variable, index: ElementIndex) -> tuple[object, ...]:
        """The element that moves read for an element; a number for each element of a literal."""
        while (e := self._producers.get(v)) and e.op.name in INDICES_BEFORE:
            (x,) = e.operands
            v, index = x, INDICES_BEFORE[e.op.name](index, x.shape, *e.params)
        value = getattr(v, "value", None)
        return (v, index.key) if value is None else ("number", value)

    def path(self, v: Variable, index: ElementIndex, is_start: Callable[[Variable], bool]) -> _Path:
        """The path from an element to one that it is computed from by moves and factors.

        Raises:
            NotComputedHere: if there is none.
        """
        pending = [_Path(v, index)]
        while pending:
            path = pending.pop()
            if is_start(path.start):
                return path
            e = self._producers.get(path.start)
            if e is None or len(path.moves) + len(path.factors) > MAX_PATH:
                continue
            name, operands = e.op.name, e.operands
            if name in ("reshape", "permute"):
                (x,) = operands
                before = INDICES_BEFORE[name](path.index, x.shape, *e.params)
                pending.append(_Path(x, before, (*path.moves, e), path.factors))
            for x, *factor in _factors(name, operands):
                factors = [*path.factors, *[(name, n, self.origin(y, path.index)) for n, y in factor]]
                pending.append(_Path(x, path.index, path.moves, tuple(factors)))
        raise NotComputedHere


def _factors(name: str, operands: Sequence[Variable]) -> list[tuple[Any, ...]]:
    """The operands in which an op is linear, each with its factor, if it has one, and the number of that operand."""
    if name == "cast":
        return [(operands[0],)]
    if name == "mul":
        return [(x, (0, y)) for x, y in in_both_orders(operands)]
    if name == "div":
        return [(operands[0], (0, operands[1]))]
    if name == "where":
        condition, *branches = operands
        return [
            (x, (number, condition))
            for number, (x, y) in enumerate(in_both_orders(branches))
            if getattr(y, "value", None) == 0
        ]
    return []


# ---- writing -----------------------------------------------------------------------------------------------------


class _Writing:
    """Writes equations.

    Args:
        like: an equation with the same origin.

    Attributes:
        equations: written so far.
    """

    def __init__(self, like: Equation) -> None:
        self._like = like
        self.equations: list[Equation] = []

    def write(
        self,
        name: str,
        operands: Sequence[Variable],
        param: Any,
        shape: Shape,
        dtype: DType,
        result: Variable | None = None,
    ) -> Variable:
        """Write an op with one param, and return its result, which is new if it is not given."""
        result = result or Variable(shape, dtype)
        like = self._like
        self.equations.append(
            Equation(OPS[name], tuple(operands), (param,), (result,), like.origin, like.scope)
        )
        return result

    def cast(self, v: Variable, dtype: DType) -> Variable:
        """A value in a dtype."""
        return v if v.dtype is dtype else self.write("cast", [v], dtype, v.shape, dtype)

    def move(self, total: Variable, move: Equation, along: int) -> tuple[Variable, int]:
        """Move a sum over an axis as a value before the sum is moved; returns the result, and the axis afterwards.

        Raises:
            NotComputedHere: if the axis is reshaped.
        """
        (after,), (param,) = move.results, move.params
        if move.op.name == "permute":
            along = param.index(along)
        else:
            along = _same_axis(move.operands[0].shape, along, after.shape)
            param = _without(after.shape, along)
        shape = _without(after.shape, along)
        return self.write(move.op.name, [total], param, shape, total.dtype), along


def _without(shape: Shape, axis: int) -> Shape:
    """A shape with size 1 along an axis."""
    return (*shape[:axis], 1, *shape[axis + 1 :])


def _same_axis(before: Shape, axis: int, after: Shape) -> int:
    """The axis after a reshape whose index is the index along an axis before it.

    Raises:
        NotComputedHere: if there is none.
    """
    for i, n in enumerate(after):
        if n == before[axis] and prod(after[:i]) == prod(before[:axis]):
            return i
    raise NotComputedHere
