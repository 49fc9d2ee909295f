"""Contractions: sums of products by BLAS, from operands as they lie straight into the place of the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorken_numpy.compiled import layouts
from tensorken_numpy.compiled.values import Value
from tensorken_numpy.compiled.writing import write_sum_of
from tensorken_numpy.contraction import Sizes, across, for_blas, planned
from tensorken_numpy.sums import add_up

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable
    from tensorken_numpy.compiled.emission import Emitter


def write_contraction(emitter: Emitter, equation: Equation) -> None:
    """sum(a * b, axes), with the calls that `contract` makes, on operands laid out the same way."""
    source = emitter.source
    (v,), (first, second), (axes,) = equation.results, equation.operands, equation.params
    a, b = emitter.value(first), emitter.value(second)
    if _repeated(equation, a, b):  # an axis that neither operand has is added up as often as it is long
        a = emitter.full(first)
    if _repeated(equation, a, b):  # it is one that only the second operand has, in full
        b = emitter.full(second)
    how = planned(a.shape, b.shape, axes)
    a = _summed(emitter, a, how.sum_a, v)
    b = _summed(emitter, b, how.sum_b, v)
    if how.method == "multiply":
        target = emitter.target(v, how.shape)
        source.line(f"{source.bound(np.multiply)}({a.name}, {b.name}, {target.name})")
        return
    a = _brought(emitter, a, how.order_a, how.matrix_a, v)
    b = _brought(emitter, b, how.order_b, how.matrix_b, v)
    if how.method in ("dot", "vecdot"):
        target = emitter.target(v, how.shape)
        inner = emitter.reshaped(target, () if how.method == "dot" else a.shape[:-1], v)
        if how.method == "vecdot" and a.known and b.known and across(a.layout) and across(b.layout):
            _add_rows_of_products(emitter, a, b, emitter.reshaped(target, (1, *a.shape[:-1]), v))
            return
        call: Any = np.dot if how.method == "dot" else np.vecdot
        source.line(f"{source.bound(call)}({a.name}, {b.name}, {inner.name})")
        return
    a, b = (b, a) if how.swap else (a, b)
    a, b = _for_blas(emitter, a, v), _for_blas(emitter, b, v)
    matrix: Sizes = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    target = emitter.target(v, matrix)
    plain = len(matrix) == 2 and a.dtype in (np.float32, np.float64)
    call = np.dot if plain else np.matmul
    source.line(f"{source.bound(call)}({a.name}, {b.name}, {target.name})")
    if how.order is not None:
        target = emitter.reshaped(target, how.split, v)
        target = emitter.view(target, target.layout.transpose(how.order), f".transpose({how.order})")
    emitter.values[v] = emitter.reshaped(target, how.shape, v)


def _add_rows_of_products(emitter: Emitter, a: Value, b: Value, y: Value) -> None:
    rows = [emitter.view(x, x.layout.T, ".T") for x in (a, b)]
    products = emitter.scratch(layouts.contiguous(rows[0].shape, a.dtype), None)
    emitter.source.line(
        f"{emitter.source.bound(np.multiply)}({rows[0].name}, {rows[1].name}, {products.name})"
    )
    emitter.source.line(f"{emitter.source.bound(add_up)}({products.name}, (0,), {y.name})")
    assert products.place is not None
    emitter.planner.free(products.place)


def _repeated(equation: Equation, a: Value, b: Value) -> bool:
    """Whether an axis whose size is not 1 has size 1 in both operands as they are kept."""
    full, kept = [
        [m if n == 1 else n for n, m in zip(*shapes, strict=True)]
        for shapes in ([v.shape for v in equation.operands], [a.shape, b.shape])
    ]
    return full != kept


def _summed(emitter: Emitter, x: Value, axes: Sizes, v: Variable) -> Value:
    """Axes that only this operand has, summed first."""
    if not axes:
        return x
    shape = tuple([1 if i in axes else n for i, n in enumerate(x.shape)])
    target = emitter.scratch(layouts.contiguous(shape, x.dtype), emitter.lifetimes.owner(v))
    write_sum_of(emitter, x, axes, target.name)
    return target


def _brought(emitter: Emitter, x: Value, order: Sizes | None, matrix: Sizes | None, v: Variable) -> Value:
    """The operand with its axes in order, as a matrix or a stack of them."""
    if order is not None:
        x = emitter.view(x, x.layout.transpose(order), f".transpose({order})")
    return x if matrix is None else emitter.reshaped(x, matrix, v)


def _for_blas(emitter: Emitter, x: Value, v: Variable) -> Value:
    if x.known:
        return x if for_blas(x.layout) is x.layout else emitter.copied(x, v)
    return Value(emitter.source.assign(f"{emitter.source.bound(for_blas)}({x.name})"), x.layout, known=False)
