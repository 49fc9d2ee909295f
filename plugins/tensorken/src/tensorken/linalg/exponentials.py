"""Exponentials of matrices."""

from __future__ import annotations

import math

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arithmetic import ceil
from tensorken.arrays.functions.elementary import exp2, log2
from tensorken.arrays.functions.floats import nan_to_num
from tensorken.arrays.functions.products import matmul
from tensorken.arrays.functions.stop_gradient import stop_gradient
from tensorken.linalg.operands import square
from tensorken.linalg.systems import solve
from tensorken_core.errors import ConcretizationError
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = ["expm"]

COEFFICIENTS = tuple(
    math.factorial(26 - k) * math.factorial(13) // (math.factorial(13 - k) * math.factorial(k))
    for k in range(14)
)
"""The coefficients of the numerator of the Padé approximant of order 13 of the exponential."""

LARGEST_NORM = 5.371920351148152
"""The largest 1-norm for which the approximant is exact to float64: N. J. Higham, "The Scaling and Squaring Method for
the Matrix Exponential Revisited", 2005, table 2.3."""

SQUARINGS = 32
"""The number of squarings in a program, where the norm is not known."""


def expm(x: ArrayLike) -> Tensor:
    """The exponentials of square matrices, by scaling, a Padé approximant and squaring.

    In a program the norm is not known: there the scaling is by at most 2**32.

    Args:
        x: of shape (..., n, n).

    Raises:
        ShapeError: if the matrices are not square.

    >>> import tensorken as tk
    >>> print(tk.linalg.expm([[0.0, 1.0], [0.0, 0.0]]))
    [[1. 1.]
     [0. 1.]]
    """
    y = square("expm", as_tensor(x))
    if y.dtype.wide is not y.dtype:
        return expm(y.astype(y.dtype.wide)).astype(y.dtype)
    if y.shape[-1] == 0:
        return y
    norm = abs(stop_gradient(y)).sum(-2).max(-1)
    # NaN and infinite norms need no squarings: their exponentials are NaN.
    count = nan_to_num(ceil(log2(norm / LARGEST_NORM)).maximum(0.0), nan=0.0, posinf=0.0)
    scaled = y * exp2(-count)[..., None, None]
    u, v = _parts(scaled)
    result = solve(v - u, v + u)
    for i in range(_most(count)):
        result = (count > i)[..., None, None].where(matmul(result, result), result)
    return result


def _most(count: Tensor) -> int:
    """The largest number of squarings, or a limit where the values are not known."""
    if count.size == 0:
        return 0
    try:
        return int(count.max())
    except ConcretizationError:
        return SQUARINGS


def _parts(a: Tensor) -> tuple[Tensor, Tensor]:
    """The odd and the even part of the numerator of the approximant."""
    b = [float(c) for c in COEFFICIENTS]
    n = a.shape[-1]
    identity = a.constant([i == j for i in range(n) for j in range(n)], a.dtype, (n, n))
    a2 = matmul(a, a)
    a4 = matmul(a2, a2)
    a6 = matmul(a4, a2)
    odd = matmul(a6, b[13] * a6 + b[11] * a4 + b[9] * a2)
    even = matmul(a6, b[12] * a6 + b[10] * a4 + b[8] * a2)
    u = matmul(a, odd + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * identity)
    v = even + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * identity
    return u, v
