"""Contractions: sums of products by BLAS.  A plan, cached by the two shapes, classifies axes as batch, contracted or
free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from tensorken_core.language.shapes import contraction_axes
from tensorken_numpy.arrays import Array, Sizes
from tensorken_numpy.sums import BLAS_MIN_SIZE, sum_axes


@dataclass(frozen=True, slots=True)
class Plan:
    """The BLAS routine for two shapes, and the permutations and reshapes of its operands and its result."""

    sum_a: Sizes  # contracted axes that only the first operand has
    sum_b: Sizes
    order_a: Sizes | None  # permutation of its axes; None: unchanged
    order_b: Sizes | None
    matrix_a: Sizes | None  # the shape that `method` takes; None: unchanged
    matrix_b: Sizes | None
    swap: bool  # compute second @ first
    method: str  # dot, vecdot, matmul or multiply
    split: Sizes  # shape of the result with one size per axis, without axes of size 1
    order: Sizes | None  # permutation of these axes; None: unchanged
    shape: Sizes


def contract(a: Array, b: Array, axes: Sizes) -> Array:
    """sum(a * b, axes) with reduced axes kept at size 1; along each axis the sizes are equal or one of them is 1."""
    plan = plan_contraction(a.shape, b.shape, axes)
    if plan.sum_a:
        a = sum_axes(a, plan.sum_a)
    if plan.sum_b:
        b = sum_axes(b, plan.sum_b)
    if plan.method == "multiply":
        return np.multiply(a, b)
    if plan.order_a is not None:
        a = a.transpose(plan.order_a)
    if plan.order_b is not None:
        b = b.transpose(plan.order_b)
    if plan.matrix_a is not None:
        a = a.reshape(plan.matrix_a)
    if plan.matrix_b is not None:
        b = b.reshape(plan.matrix_b)
    if plan.method == "dot":
        y: Any = np.dot(a, b)
    elif plan.method == "vecdot":
        y = (
            sum_axes(np.multiply(a.T, b.T), (0,))
            if is_column_major(a) and is_column_major(b)
            else np.vecdot(a, b)
        )
    elif plan.swap:
        y = np.matmul(for_blas(b), for_blas(a))
    else:
        y = np.matmul(for_blas(a), for_blas(b))
    if plan.order is not None:
        y = y.reshape(plan.split).transpose(plan.order)
    return y.reshape(plan.shape)  # type: ignore[no-any-return]


def multiply_matrices(a: Array, b: Array) -> Array:
    """The products of matrices, with the bits of `contract`."""
    *batch, m, k = a.shape
    n = b.shape[-1]
    if m > 1 and k > 1 and n > 1:
        return np.matmul(for_blas(a), for_blas(b))  # type: ignore[no-any-return]
    rows, columns = a.reshape((*batch, m, 1, k)), b.swapaxes(-1, -2).reshape((*batch, 1, n, k))
    return contract(rows, columns, (len(batch) + 2,)).reshape((*batch, m, n))


def is_column_major(x: Array) -> bool:
    """Whether a large stack of rows is stored column by column.

    Then products of rows are summed over the first axis: one dot product after the other would stride through all
    memory.
    """
    return x.ndim == 2 and x.size >= BLAS_MIN_SIZE and x.T.flags.c_contiguous and not x.flags.c_contiguous


def for_blas(x: Array) -> Array:
    """The matrices with one contiguous axis; for others numpy's fallback loop is far slower than a copy."""
    strides, itemsize = x.strides, x.itemsize
    if strides[-1] == itemsize or (len(strides) > 1 and strides[-2] == itemsize):
        return x
    return np.ascontiguousarray(x)


@lru_cache(maxsize=4096)
def plan_contraction(shape_a: Sizes, shape_b: Sizes, axes: Sizes) -> Plan:
    """The plan for operands of these shapes."""
    batch, rows, columns, inner, sum_a, sum_b, _ = contraction_axes(shape_a, shape_b, axes)
    full = tuple([m if n == 1 else n for n, m in zip(shape_a, shape_b, strict=True)])
    shape = tuple([1 if i in axes else n for i, n in enumerate(full)])

    def size(group: list[int]) -> int:
        return math.prod([full[i] for i in group])

    if not inner:
        method = "multiply"
    elif rows or columns:
        method = "matmul"
    else:
        method = "vecdot" if batch else "dot"
    swap = bool(rows and columns) and columns[0] < rows[0]
    first, second = (columns, rows) if swap else (rows, columns)
    lead = [size(batch)] if batch else []
    grouped_a = grouped_b = [batch, inner]
    if method == "matmul":
        # The left operand is (batch, its free axes, inner), the right one (batch, inner, its free axes).
        grouped_a = [batch, inner, rows] if swap else [batch, rows, inner]
        grouped_b = [batch, columns, inner] if swap else [batch, inner, columns]
    matrix_a = (*lead, *[size(group) for group in grouped_a[1:]])
    matrix_b = (*lead, *[size(group) for group in grouped_b[1:]])
    result = batch + first + second
    ascending = sorted(result)
    sizes_a = tuple([1 if i in sum_a else n for i, n in enumerate(shape_a)])
    sizes_b = tuple([1 if i in sum_b else n for i, n in enumerate(shape_b)])
    order_a, order_b = _order(grouped_a, len(full)), _order(grouped_b, len(full))
    return Plan(
        sum_a=tuple(sum_a),
        sum_b=tuple(sum_b),
        order_a=None if order_a == tuple(range(len(full))) else order_a,
        order_b=None if order_b == tuple(range(len(full))) else order_b,
        matrix_a=None if _permuted(sizes_a, order_a) == matrix_a else matrix_a,
        matrix_b=None if _permuted(sizes_b, order_b) == matrix_b else matrix_b,
        swap=swap,
        method=method,
        split=tuple([full[i] for i in result]),
        order=None if result == ascending else tuple([result.index(i) for i in ascending]),
        shape=shape,
    )


def _order(groups: list[list[int]], rank: int) -> Sizes:
    """The axes group by group, then the axes of size 1."""
    named = [i for group in groups for i in group]
    return tuple(named + [i for i in range(rank) if i not in named])


def _permuted(sizes: Sizes, order: Sizes) -> Sizes:
    return tuple([sizes[i] for i in order])
