"""Elementwise comparisons, logic and bits.

Raises:
    DTypeError: if the function is not defined for the dtype.
    ShapeError: if the shapes do not broadcast.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.floats import isnan
from tensorken.arrays.functions.operands import first_tensor, floating_of
from tensorken.arrays.functions.reductions import all
from tensorken_core.language.dtypes import bool_
from tensorken_core.tensor.coercion import pair_of_operands
from tensorken_core.tensor.number import is_number
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "allclose",
    "array_equal",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "equal",
    "greater",
    "greater_equal",
    "invert",
    "isclose",
    "left_shift",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
    "right_shift",
]

# ---- comparisons -------------------------------------------------------------------------------------------


def equal(a: ArrayLike, b: ArrayLike) -> Tensor:
    """Whether a equals b, elementwise, as bool.

    >>> import tensorken as tk
    >>> tk.equal([1.0, 2.0], 2.0).tolist()
    [False, True]
    """
    return _compared("equal", operator.eq, a, b)


def not_equal(a: ArrayLike, b: ArrayLike) -> Tensor:
    """Whether a differs from b, elementwise, as bool; NaN differs from everything, including NaN.

    >>> import tensorken as tk
    >>> tk.not_equal([1.0, float("nan")], 1.0).tolist()
    [False, True]
    """
    return ~equal(a, b)


def less(a: ArrayLike, b: ArrayLike) -> Tensor:
    """Whether a is less than b, elementwise, as bool.

    >>> import tensorken as tk
    >>> tk.less([1.0, 2.0], 2.0).tolist()
    [True, False]
    """
    return _compared("less", operator.lt, a, b)


def less_equal(a: ArrayLike, b: ArrayLike) -> Tensor:
    """Whether a is less than b or equals it, elementwise, as bool.

    >>> import tensorken as tk
    >>> tk.less_equal([1.0, 2.0, 3.0], 2.0).tolist()
    [True, True, False]
    """
    return _compared("less_equal", operator.le, a, b)


def greater(a: ArrayLike, b: ArrayLike) -> Tensor:
    """Whether a is greater than b, elementwise, as bool.

    >>> import tensorken as tk
    >>> tk.greater([2.0, 3.0], 2.0).tolist()
    [False, True]
    """
    return _compared("greater", operator.gt, a, b)


def greater_equal(a: ArrayLike, b: ArrayLike) -> Tensor:
    """Whether a is greater than b or equals it, elementwise, as bool.

    >>> import tensorken as tk
    >>> tk.greater_equal([1.0, 2.0], 2.0).tolist()
    [False, True]
    """
    return _compared("greater_equal", operator.ge, a, b)


def _compared(name: str, compare: Callable[[Any, Any], Any], a: Any, b: Any) -> Tensor:
    """The comparison of two operands, of a number with a tensor by value, also beyond the range of its dtype."""
    if (isinstance(a, Tensor) and is_number(b)) or (isinstance(b, Tensor) and is_number(a)):
        result: Tensor = compare(a, b)
    else:
        result = compare(*pair_of_operands(name, a, b, first_tensor(a, b)))
    return result


# ---- comparisons with a tolerance --------------------------------------------------------------------------


def isclose(
    a: ArrayLike, b: ArrayLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Whether a and b differ by no more than atol + rtol * abs(b), elementwise, as bool; the shapes broadcast.

    An infinity is close only to itself.

    Args:
        equal_nan: whether NaN is close to NaN.

    >>> import tensorken as tk
    >>> tk.isclose([1.0, 2.0], [1.000001, 2.1]).tolist()
    [True, False]
    """
    x, y = pair_of_operands("isclose", a, b, first_tensor(a, b))
    equal: Any = x.eq(y)
    p, q = floating_of(x), floating_of(y)
    within: Any = ((p - q).abs() <= q.abs() * rtol + atol) & (q.abs() < float("inf"))
    close: Tensor = equal | within
    return close | (isnan(x) & isnan(y)) if equal_nan else close


def allclose(
    a: ArrayLike, b: ArrayLike, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Tensor:
    """Whether all elements are close (see `isclose`), as one bool; the shapes broadcast.

    >>> import tensorken as tk
    >>> bool(tk.allclose([1.0, 2.0], [1.000001, 2.0]))
    True
    """
    return all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a: ArrayLike, b: ArrayLike, equal_nan: bool = False) -> Tensor:
    """Whether a and b have the same shape and equal elements, as one bool.

    Args:
        equal_nan: whether NaN equals NaN.

    >>> import tensorken as tk
    >>> bool(tk.array_equal([1, 2], [1, 2])), bool(tk.array_equal([1, 2], [[1, 2]]))
    (True, False)
    """
    x, y = pair_of_operands("array_equal", a, b, first_tensor(a, b))
    if x.shape != y.shape:
        return x.constant([False], bool_, (1,)).reshape(())
    equal = x.eq(y)
    return all(equal | (isnan(x) & isnan(y)) if equal_nan else equal)


# ---- logic: a number is true if it is not 0 ----------------------------------------------------------------


def logical_and(a: ArrayLike, b: ArrayLike) -> Tensor:
    """Whether a and b are both true, elementwise, as bool; a number is true if it is not 0; the shapes broadcast.

    >>> import tensorken as tk
    >>> tk.logical_and([True, True, False], [True, False, False]).tolist()
    [True, False, False]
    """
    x, y = _truths("logical_and", a, b)
    return x & y


def logical_or(a: ArrayLike, b: ArrayLike) -> Tensor:
    """Whether a or b or both are true, elementwise, as bool; a number is true if it is not 0; the shapes broadcast.

    >>> import tensorken as tk
    >>> tk.logical_or([True, False], [False, False]).tolist()
    [True, False]
    """
    x, y = _truths("logical_or", a, b)
    return x | y


def logical_xor(a: ArrayLike, b: ArrayLike) -> Tensor:
    """Whether exactly one of a and b is true, elementwise, as bool; a nonzero number is true; the shapes broadcast.

    >>> import tensorken as tk
    >>> tk.logical_xor([True, True], [True, False]).tolist()
    [False, True]
    """
    x, y = _truths("logical_xor", a, b)
    return x ^ y


def logical_not(x: ArrayLike) -> Tensor:
    """Whether x is false, elementwise, as bool; a number is false if it is 0.

    >>> import tensorken as tk
    >>> tk.logical_not([True, False]).tolist()
    [False, True]
    """
    return ~as_tensor(x).astype(bool_)


def _truths(name: str, a: Any, b: Any) -> tuple[Tensor, Tensor]:
    x, y = pair_of_operands(name, a, b, first_tensor(a, b))
    return x.astype(bool_), y.astype(bool_)


# ---- bits --------------------------------------------------------------------------------------------------


def bitwise_and(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The bitwise and of a and b, in two's complement, elementwise; for ints and bools; the shapes broadcast.

    >>> import tensorken as tk
    >>> print(tk.bitwise_and(tk.tensor([12, 10]), 6))
    [4 2]
    """
    x, y = pair_of_operands("bitwise_and", a, b, first_tensor(a, b))
    return x & y


def bitwise_or(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The bitwise or of a and b, in two's complement, elementwise; for ints and bools; the shapes broadcast.

    >>> import tensorken as tk
    >>> print(tk.bitwise_or(tk.tensor([12, 10]), 6))
    [14 14]
    """
    x, y = pair_of_operands("bitwise_or", a, b, first_tensor(a, b))
    return x | y


def bitwise_xor(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The bitwise exclusive or of a and b, in two's complement, elementwise; for ints and bools; the shapes broadcast.

    >>> import tensorken as tk
    >>> print(tk.bitwise_xor(tk.tensor([12, 10]), 6))
    [10 12]
    """
    x, y = pair_of_operands("bitwise_xor", a, b, first_tensor(a, b))
    return x ^ y


def bitwise_invert(x: ArrayLike) -> Tensor:
    """The bitwise inverse of x, in two's complement: -1 - x, elementwise; for ints and bools.

    >>> import tensorken as tk
    >>> print(tk.bitwise_invert(tk.tensor([0, 5])))
    [-1 -6]
    """
    return ~as_tensor(x)


def bitwise_left_shift(a: ArrayLike, b: ArrayLike) -> Tensor:
    """a * 2**b, elementwise, wrapping; 0 where b is negative or not below the number of bits; for ints.

    >>> import tensorken as tk
    >>> print(tk.bitwise_left_shift(tk.tensor([1, 3]), 4))
    [16 48]
    """
    x, y = pair_of_operands("bitwise_left_shift", a, b, first_tensor(a, b))
    return x << y


def bitwise_right_shift(a: ArrayLike, b: ArrayLike) -> Tensor:
    """floor(a / 2**b), elementwise; 0 or -1 where b is negative or not below the number of bits; for ints.

    >>> import tensorken as tk
    >>> print(tk.bitwise_right_shift(tk.tensor([16, -5]), 2))
    [ 4 -2]
    """
    x, y = pair_of_operands("bitwise_right_shift", a, b, first_tensor(a, b))
    return x >> y


bitwise_not = invert = bitwise_invert
left_shift, right_shift = bitwise_left_shift, bitwise_right_shift
