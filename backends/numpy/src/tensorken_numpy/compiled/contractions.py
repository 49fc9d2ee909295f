"""Write contractions: BLAS calls that read operands with their strides and write into the result's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tensorken_numpy.arrays import Sizes
from tensorken_numpy.compiled import layouts
from tensorken_numpy.compiled.emitter import Emitter
from tensorken_numpy.compiled.values import Value
from tensorken_numpy.compiled.writing import write_sum_of
from tensorken_numpy.contraction import for_blas, is_column_major, plan_contraction
from tensorken_numpy.sums import sum_axes

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable


def write_contraction(emitter: Emitter, equation: Equation) -> None:
    """Write sum(a * b, axes) with the calls that `contract` makes for operands of these layouts."""
    source = emitter.source
    (v,), (first, second), (axes,) = equation.results, equation.operands, equation.params
    a, b = emitter.value(first), emitter.value(second)
    if _repeated(equation, a, b):  # a contracted axis repeated in both operands counts once per repetition
        a = emitter.full(first)
    if _repeated(equation, a, b):  # the axis has size 1 in the first operand even in full
        b = emitter.full(second)
    plan = plan_contraction(a.shape, b.shape, axes)
    a = _summed(emitter, a, plan.sum_a, v)
    b = _summed(emitter, b, plan.sum_b, v)
    if plan.method == "multiply":
        target = emitter.target(v, plan.shape)
        source.line(f"{source.bound(np.multiply)}({a.name}, {b.name}, {target.name})")
        return
    a = _as_matrix(emitter, a, plan.order_a, plan.matrix_a, v)
    b = _as_matrix(emitter, b, plan.order_b, plan.matrix_b, v)
    if plan.method in ("dot", "vecdot"):
        target = emitter.target(v, plan.shape)
        inner = emitter.reshaped(target, () if plan.method == "dot" else a.shape[:-1], v)
        if (
            plan.method == "vecdot"
            and a.known
            and b.known
            and is_column_major(a.layout)
            and is_column_major(b.layout)
        ):
            _add_rows_of_products(emitter, a, b, emitter.reshaped(target, (1, *a.shape[:-1]), v))
            return
        call: Any = np.dot if plan.method == "dot" else np.vecdot
        source.line(f"{source.bound(call)}({a.name}, {b.name}, {inner.name})")
        return
    a, b = (b, a) if plan.swap else (a, b)
    a, b = _for_blas(emitter, a, v), _for_blas(emitter, b, v)
    matrix: Sizes = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    target = emitter.target(v, matrix)
    plain = len(matrix) == 2 and a.dtype in (np.float32, np.float64)
    call = np.dot if plain else np.matmul
    source.line(f"{source.bound(call)}({a.name}, {b.name}, {target.name})")
    if plan.order is not None:
        target = emitter.reshaped(target, plan.split, v)
        target = emitter.view(target, target.layout.transpose(plan.order), f".transpose({plan.order})")
    emitter.values[v] = emitter.reshaped(target, plan.shape, v)


def _add_rows_of_products(emitter: Emitter, a: Value, b: Value, y: Value) -> None:
    rows = [emitter.view(x, x.layout.T, ".T") for x in (a, b)]
    products = emitter.scratch(layouts.contiguous(rows[0].shape, a.dtype), None)
    emitter.source.line(
        f"{emitter.source.bound(np.multiply)}({rows[0].name}, {rows[1].name}, {products.name})"
    )
    emitter.source.line(f"{emitter.source.bound(sum_axes)}({products.name}, (0,), {y.name})")
    assert products.region is not None
    emitter.planner.free(products.region)


def _repeated(equation: Equation, a: Value, b: Value) -> bool:
    """Whether an axis with a size other than 1 has compact size 1 in both operands."""
    full, compact = [
        [m if n == 1 else n for n, m in zip(*shapes, strict=True)]
        for shapes in ([v.shape for v in equation.operands], [a.shape, b.shape])
    ]
    return full != compact


def _summed(emitter: Emitter, x: Value, axes: Sizes, v: Variable) -> Value:
    """Sum the contracted axes that only this operand has."""
    if not axes:
        return x
    shape = tuple([1 if i in axes else n for i, n in enumerate(x.shape)])
    target = emitter.scratch(layouts.contiguous(shape, x.dtype), emitter.lifetimes.owner(v))
    write_sum_of(emitter, x, axes, target.name)
    return target


def _as_matrix(emitter: Emitter, x: Value, order: Sizes | None, matrix: Sizes | None, v: Variable) -> Value:
    """The operand with permuted axes, as a matrix or a stack of matrices."""
    if order is not None:
        x = emitter.view(x, x.layout.transpose(order), f".transpose({order})")
    return x if matrix is None else emitter.reshaped(x, matrix, v)


def _for_blas(emitter: Emitter, x: Value, v: Variable) -> Value:
    if x.known:
        return x if for_blas(x.layout) is x.layout else emitter.copied(x, v)
    return Value(emitter.source.assign(f"{emitter.source.bound(for_blas)}({x.name})"), x.layout, known=False)
