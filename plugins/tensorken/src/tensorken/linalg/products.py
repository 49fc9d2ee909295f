"""Diagonals, traces, powers and chains of matrices."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions import diagonals
from tensorken.arrays.functions.operands import promoted_tensors
from tensorken.arrays.functions.products import matmul
from tensorken.linalg.operands import square
from tensorken.linalg.systems import inv
from tensorken_core.errors import ArgumentError, ConcretizationError, ShapeError
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "diagonal",
    "matrix_power",
    "multi_dot",
    "trace",
]


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Tensor:
    """A diagonal of each matrix, as the last axis of the result.

    The matrices are the last two axes; `tk.diagonal` uses the first two by default.

    Args:
        x: of shape (..., m, n).
        offset: the offset to the right of the main diagonal; negative is to the left.

    >>> import tensorken as tk
    >>> tk.linalg.diagonal([[1.0, 2.0], [3.0, 4.0]]).tolist()
    [1.0, 4.0]
    """
    return diagonals.diagonal(_as_matrices("diagonal", x), offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of a diagonal of each matrix.

    Args:
        x: of shape (..., m, n).
        offset: the offset to the right of the main diagonal; negative is to the left.
        dtype: the dtype of the sum; by default the dtype of x, int32 for bool.

    >>> import tensorken as tk
    >>> tk.linalg.trace([[1.0, 2.0], [3.0, 4.0]]).item()
    5.0
    """
    x = _as_matrices("trace", x)
    return diagonals.trace(x if dtype is None else x.astype(dtype), offset, -2, -1)


def matrix_power(x: ArrayLike, n: int) -> Tensor:
    """The n-th power of square matrices, by repeated squaring; a power of the inverses if n is negative.

    Args:
        x: of shape (..., m, m); integers stay integers unless n is negative.
        n: the exponent; identity matrices for 0.

    Raises:
        ShapeError: if the matrices are not square.
        LinearAlgebraError: if n is negative and a matrix is singular.

    >>> import tensorken as tk
    >>> tk.linalg.matrix_power([[1, 1], [1, 0]], 10).tolist()
    [[89, 55], [55, 34]]
    """
    try:
        count = operator.index(n)
    except ConcretizationError as error:
        raise error.at("matrix_power") from None
    except TypeError:
        raise ArgumentError(
            f"matrix_power: the exponent must be an int, got {short_repr(n)}; give one"
        ) from None
    y = as_tensor(x)
    checked = square("matrix_power", y)
    factor = inv(checked) if count < 0 else y if y.dtype.kind in ("int", "bool") else checked
    count = abs(count)
    if count == 0:
        return _identities(factor)
    result = None
    while True:
        if count & 1:
            result = factor if result is None else matmul(result, factor)
        count >>= 1
        if count == 0:
            break
        factor = matmul(factor, factor)
    assert result is not None
    return result


def multi_dot(arrays: Iterable[ArrayLike]) -> Tensor:
    """The product of a chain of matrices, in the order with the fewest multiplications.

    Args:
        arrays: at least two tensors with two axes; the first and the last may be vectors: a row and a column.

    Raises:
        ShapeError: if the sizes of adjacent tensors do not match, or a tensor has another number of axes.

    The order is found by dynamic programming: T. H. Cormen, C. E. Leiserson, R. L. Rivest, C. Stein, "Introduction to
    Algorithms", section 15.2.

    >>> import tensorken as tk
    >>> tk.linalg.multi_dot([tk.ones((10, 100)), tk.ones((100, 5)), tk.ones((5, 50))]).shape
    (10, 50)
    """
    chain = promoted_tensors("multi_dot", arrays)
    if len(chain) < 2:
        raise ArgumentError("multi_dot: need at least two matrices, got one; use the matrix itself")
    shapes = [x.shape for x in chain]
    row, column = chain[0].ndim == 1, chain[-1].ndim == 1
    if row:
        chain[0] = chain[0].reshape((1, *chain[0].shape))
    if column:
        chain[-1] = chain[-1].reshape((*chain[-1].shape, 1))
    for left, right in pairwise(chain):
        if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
            raise ShapeError(
                f"multi_dot: shapes {', '.join(map(str, shapes))} do not form a chain; each but the first and the "
                f"last needs two axes, and as many rows as the previous one has columns"
            )
    sizes = [x.shape[0] for x in chain] + [chain[-1].shape[1]]
    product = _multiplied(chain, _splits(sizes), 0, len(chain) - 1)
    return product.reshape(
        tuple([n for n, is_dropped in zip(product.shape, (row, column), strict=True) if not is_dropped])
    )


def _splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """For each part (first, last) of the chain, the matrix after which a split is cheapest."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            cost[first, last], split[first, last] = min(
                (cost[first, k] + cost[k + 1, last] + sizes[first] * sizes[k + 1] * sizes[last + 1], k)
                for k in range(first, last)
            )
    return split


def _multiplied(chain: list[Tensor], split: dict[tuple[int, int], int], first: int, last: int) -> Tensor:
    if first == last:
        return chain[first]
    k = split[first, last]
    return matmul(_multiplied(chain, split, first, k), _multiplied(chain, split, k + 1, last))


def _identities(x: Tensor) -> Tensor:
    """An identity matrix for each square matrix."""
    n = x.shape[-1]
    return x.constant([i == j for i in range(n) for j in range(n)], x.dtype, (n, n)).broadcast_to(x.shape)


def _as_matrices(name: str, x: Any) -> Tensor:
    y = as_tensor(x)
    if y.ndim < 2:
        raise ShapeError(f"{name}: need matrices, at least 2 axes, got shape {y.shape}; reshape first")
    return y
