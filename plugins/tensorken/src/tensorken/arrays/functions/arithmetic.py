"""Elementwise arithmetic: sums and products, remainders, signs, minima and maxima, rounding.

Raises:
    DTypeError: if the function is not defined for the dtype.
    ShapeError: if the shapes do not broadcast.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.operands import binary_op, first_operand, first_tensor, floating_of
from tensorken_core.language.dtypes import bool_, integer_bounds, wrap_integer
from tensorken_core.language.op import OPS
from tensorken_core.tensor.coercion import pair_of_operands
from tensorken_core.tensor.dispatch import unary
from tensorken_core.tensor.normalization import integer_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "abs",
    "absolute",
    "add",
    "around",
    "ceil",
    "clip",
    "divide",
    "divmod",
    "fix",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "heaviside",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "negative",
    "positive",
    "pow",
    "power",
    "reciprocal",
    "remainder",
    "rint",
    "round",
    "sign",
    "square",
    "subtract",
    "true_divide",
    "trunc",
]


def add(a: ArrayLike, b: ArrayLike) -> Tensor:
    """a + b, elementwise; logical or for bools, as in numpy; the shapes broadcast.

    >>> import tensorken as tk
    >>> print(tk.add([1.0, 2.0], 0.5))
    [1.5 2.5]
    """
    return binary_op(OPS["add"], a, b)


def subtract(a: ArrayLike, b: ArrayLike) -> Tensor:
    """a - b, elementwise; not defined for two bools, as in numpy; the shapes broadcast.

    >>> import tensorken as tk
    >>> print(tk.subtract([3.0, 4.0], 1.0))
    [2. 3.]
    """
    return binary_op(OPS["sub"], a, b)


def multiply(a: ArrayLike, b: ArrayLike) -> Tensor:
    """a * b, elementwise; logical and for bools, as in numpy; the shapes broadcast.

    >>> import tensorken as tk
    >>> print(tk.multiply([3.0, 4.0], [2.0, 0.5]))
    [6. 2.]
    """
    return binary_op(OPS["mul"], a, b)


def divide(a: ArrayLike, b: ArrayLike) -> Tensor:
    """a / b, elementwise; float32 for ints; the shapes broadcast.

    >>> import tensorken as tk
    >>> print(tk.divide(tk.tensor([1, 3]), 2))
    [0.5 1.5]
    """
    x, y = pair_of_operands("div", a, b, first_tensor(a, b))
    return x / y


def floor_divide(a: ArrayLike, b: ArrayLike) -> Tensor:
    """floor(a / b), elementwise, without the rounding of a / b; the shapes broadcast.

    As in Python: `floor_divide(1.0, 0.1)` is 9, because the float 0.1 is slightly larger than 1/10.  Where b is 0,
    the result is infinite or NaN, and 0 for integers.  Where a or b is infinite, the result is that of a / b, as the
    array API standard prefers: `floor_divide(inf, 2.0)` is infinite and `floor_divide(1.0, -inf)` is -0.0, where
    Python and numpy have NaN and -1.

    >>> import tensorken as tk
    >>> print(tk.floor_divide(tk.tensor([7, -7]), 2))
    [ 3 -4]
    """
    x, y = pair_of_operands("floor_divide", a, b, first_tensor(a, b))
    return x // y


def remainder(a: ArrayLike, b: ArrayLike) -> Tensor:
    """a - floor(a / b) * b, elementwise, rounded once; the shapes broadcast.

    The result has the sign of b, as with Python's `%`.  Where b is 0, the result is NaN, and 0 for integers.

    >>> import tensorken as tk
    >>> print(tk.remainder(tk.tensor([7, -7]), 3))
    [1 2]
    """
    return binary_op(OPS["remainder"], a, b)


def divmod(a: ArrayLike, b: ArrayLike) -> tuple[Tensor, Tensor]:
    """`floor_divide` and `remainder`, elementwise; the shapes broadcast.

    >>> import tensorken as tk
    >>> quotient, rest = tk.divmod(tk.tensor([7, -7]), 3)
    >>> print(quotient, rest)
    [ 2 -3] [1 2]
    """
    return floor_divide(a, b), remainder(a, b)


def fmod(a: ArrayLike, b: ArrayLike) -> Tensor:
    """a - trunc(a / b) * b, elementwise, exact; the shapes broadcast.

    The result has the sign of a, as with C's fmod.  Where b is 0, the result is NaN, and 0 for integers.

    >>> import tensorken as tk
    >>> print(tk.fmod(tk.tensor([7.0, -7.0]), 3.0))
    [ 1. -1.]
    """
    x, y = pair_of_operands("fmod", a, b, first_tensor(a, b))
    if not x.dtype.inexact:
        rest = x % y
        result_of_ints: Tensor = (rest.eq(0) | (x < 0).eq(y < 0)).where(rest, rest - y)
        return result_of_ints
    negative = x < 0.0
    rest = negative.where(-x, x) % y.abs()
    result: Tensor = (x.eq(0.0) & rest.eq(0.0)).where(x, negative.where(-rest, rest))
    return result


def power(a: ArrayLike, b: ArrayLike) -> Tensor:
    """a**b, elementwise; the shapes broadcast.

    Integers wrap; for a negative integer exponent the result is 1 / a**-b truncated to an integer.

    >>> import tensorken as tk
    >>> print(tk.power(tk.tensor([1.0, 2.0, 3.0]), 2))
    [1. 4. 9.]
    """
    result: Tensor = first_operand("pow", a, b) ** b
    return result


def negative(x: ArrayLike) -> Tensor:
    """-x, elementwise; not defined for bools, as in numpy.

    >>> import tensorken as tk
    >>> print(tk.negative([1.0, -2.0]))
    [-1.  2.]
    """
    return -as_tensor(x)


def positive(x: ArrayLike) -> Tensor:
    """x.

    >>> import tensorken as tk
    >>> print(tk.positive([1.0, -2.0]))
    [ 1. -2.]
    """
    return as_tensor(x)


def square(x: ArrayLike) -> Tensor:
    """x * x, elementwise.

    >>> import tensorken as tk
    >>> print(tk.square([3.0, -4.0]))
    [ 9. 16.]
    """
    return as_tensor(x).square()


def reciprocal(x: ArrayLike) -> Tensor:
    """1 / x, elementwise; float32 for integers and bools.

    >>> import tensorken as tk
    >>> print(tk.reciprocal([2.0, -4.0]))
    [ 0.5  -0.25]
    """
    return as_tensor(x).reciprocal()


# ---- signs, minima and maxima ------------------------------------------------------------------------------


def abs(x: ArrayLike) -> Tensor:
    """The absolute value, elementwise; its derivative at 0 is 0.

    >>> import tensorken as tk
    >>> print(tk.abs([3.0, -4.0]))
    [3. 4.]
    """
    return as_tensor(x).abs()


def sign(x: ArrayLike) -> Tensor:
    """-1, 0 or 1 as x is negative, zero or positive, elementwise; NaN for NaN.

    >>> import tensorken as tk
    >>> print(tk.sign([-2.5, 0.0, 4.0]))
    [-1.  0.  1.]
    """
    return as_tensor(x).sign()


def maximum(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The larger of a and b, elementwise; NaN if either is NaN; a tie shares the derivative equally.

    For 0.0 and -0.0 the result may be either; for bools it is logical or.

    >>> import tensorken as tk
    >>> print(tk.maximum([1.0, 5.0], 3.0))
    [3. 5.]
    """
    return binary_op(OPS["maximum"], a, b)


def minimum(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The smaller of a and b, elementwise; NaN if either is NaN; a tie shares the derivative equally.

    For 0.0 and -0.0 the result may be either; for bools it is logical and.

    >>> import tensorken as tk
    >>> print(tk.minimum([1.0, 5.0], 3.0))
    [1. 3.]
    """
    return binary_op(OPS["minimum"], a, b)


def fmax(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The larger of a and b, elementwise; the other if one is NaN; the shapes broadcast.

    A tie shares the derivative equally; for 0.0 and -0.0 the result may be either.

    >>> import tensorken as tk
    >>> print(tk.fmax([1.0, float("nan")], 0.5))
    [1.  0.5]
    """
    return _unless_nan("fmax", maximum, a, b)


def fmin(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The smaller of a and b, elementwise; the other if one is NaN; the shapes broadcast.

    A tie shares the derivative equally; for 0.0 and -0.0 the result may be either.

    >>> import tensorken as tk
    >>> print(tk.fmin([1.0, float("nan")], 0.5))
    [0.5 0.5]
    """
    return _unless_nan("fmin", minimum, a, b)


def _unless_nan(name: str, extreme: Callable[[Tensor, Tensor], Tensor], a: Any, b: Any) -> Tensor:
    x, y = pair_of_operands(name, a, b, first_tensor(a, b))
    return x.eq(x).where(y.eq(y).where(extreme(x, y), x), y)


def heaviside(x: ArrayLike, at_zero: ArrayLike) -> Tensor:
    """0 below 0, 1 above, and `at_zero` at 0, elementwise; NaN for NaN; the shapes broadcast.

    >>> import tensorken as tk
    >>> print(tk.heaviside([-2.0, 0.0, 3.0], 0.5))
    [0.  0.5 1. ]
    """
    y, middle = [floating_of(z) for z in pair_of_operands("heaviside", x, at_zero, first_tensor(x, at_zero))]
    return y.eq(0).where(middle, y.sign().maximum(0))


def clip(
    x: ArrayLike,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
    *,
    a_min: ArrayLike | None = None,
    a_max: ArrayLike | None = None,
) -> Tensor:
    """x limited to the interval from min to max, elementwise; the shapes broadcast; None means no bound.

    Where min is greater than max, the result is max; where x or a bound is NaN, the result is NaN.

    Args:
        a_min, a_max: the old names of min and max in numpy.

    >>> import tensorken as tk
    >>> print(tk.clip([-2.0, 0.5, 2.0], -1.0, 1.0))
    [-1.   0.5  1. ]
    """
    min, max = a_min if min is None else min, a_max if max is None else max
    y = first_operand("clip", x, max if min is None else min)
    for op, bound in ((OPS["maximum"], min), (OPS["minimum"], max)):
        if bound is not None:
            if type(bound) is int and y.dtype.kind == "int" and (op is OPS["maximum"]) is not (bound > 0):
                low, high = integer_bounds(y.dtype)
                bound = builtins.min(builtins.max(bound, low), high)  # a bound that limits nothing
            y = binary_op(op, y, bound)
    return y


# ---- rounding to integers ----------------------------------------------------------------------------------


def floor(x: ArrayLike) -> Tensor:
    """The largest integer not greater than x, elementwise; its derivative is 0.

    >>> import tensorken as tk
    >>> print(tk.floor([-1.5, 1.8]))
    [-2.  1.]
    """
    return as_tensor(x).floor()


def ceil(x: ArrayLike) -> Tensor:
    """The smallest integer not less than x, elementwise; its derivative is 0.

    >>> import tensorken as tk
    >>> print(tk.ceil([-1.5, 1.2]))
    [-1.  2.]
    """
    return _rounded("ceil", as_tensor(x))


def trunc(x: ArrayLike) -> Tensor:
    """x truncated to an integer, elementwise; its derivative is 0.

    >>> import tensorken as tk
    >>> print(tk.trunc([-1.5, 1.8]))
    [-1.  1.]
    """
    return _rounded("trunc", as_tensor(x))


def round(x: ArrayLike, decimals: int = 0) -> Tensor:
    """x rounded to the nearest integer, elementwise; halfway cases to the even one; its derivative is 0.

    Args:
        decimals: the number of decimal places to keep: x * 10**decimals is rounded.

    >>> import tensorken as tk
    >>> print(tk.round([0.5, 1.5, -2.6]))
    [ 0.  2. -3.]
    """
    y, decimals = as_tensor(x), integer_of("round", "decimals", decimals)
    if not y.dtype.inexact:
        return _rounded_integer(y, 10**-decimals) if decimals < 0 and y.dtype is not bool_ else y
    scale = 10.0 ** builtins.abs(decimals)
    if decimals > 0:
        return unary(OPS["round"], y * scale) / scale
    return unary(OPS["round"], y / scale) * scale if decimals else unary(OPS["round"], y)


def _rounded_integer(x: Tensor, unit: int) -> Tensor:
    """Integers rounded to multiples of a power of ten; a result beyond the range of the dtype wraps."""
    low, high = integer_bounds(x.dtype)
    if unit > high:
        is_large = unit // 2 < builtins.max(high, -low)  # some numbers are nearer to the unit than to 0
        raise_to = wrap_integer(unit, x.dtype)
        zeros: Any = x * 0
        if not is_large:
            return zeros  # type: ignore[no-any-return]
        above, below = x > unit // 2, x < -(unit // 2)
        return above.where(raise_to, below.where(wrap_integer(-unit, x.dtype), zeros))
    quotient: Any = x // unit
    rest = x - quotient * unit
    half = unit // 2
    up = (rest > half) | (rest.eq(half) & (quotient & 1).eq(1))
    result: Tensor = up.where(quotient + 1, quotient) * unit
    return result


def _rounded(name: str, x: Tensor) -> Tensor:
    """Apply a rounding op to floats; return integers and bools unchanged."""
    result: Tensor = x.apply(OPS[name]) if x.dtype.inexact else x
    return result


absolute, mod, pow, true_divide, around, rint, fix = abs, remainder, power, divide, round, round, trunc
