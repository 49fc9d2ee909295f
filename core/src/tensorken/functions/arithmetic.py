"""Elementwise arithmetic: sums and products, remainders, signs, extremes, rounding."""

from __future__ import annotations

from typing import Any

from tensorken.creation import as_tensor, pair_of_operands
from tensorken.functions.operands import a_tensor_of, first, of_two
from tensorken.spec.op import OPS
from tensorken.tensor import Tensor

__all__ = [
    "abs",
    "absolute",
    "add",
    "ceil",
    "clip",
    "divide",
    "floor",
    "floor_divide",
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
    "round",
    "sign",
    "square",
    "subtract",
    "true_divide",
    "trunc",
]


def add(a: Any, b: Any) -> Tensor:
    """a + b, elementwise; the shapes broadcast.

    >>> import tensorken as tk
    >>> print(tk.add([1.0, 2.0], 0.5))
    [1.5 2.5]
    """
    return of_two(OPS["add"], a, b)


def subtract(a: Any, b: Any) -> Tensor:
    """a - b, elementwise; the shapes broadcast."""
    return of_two(OPS["sub"], a, b)


def multiply(a: Any, b: Any) -> Tensor:
    """a * b, elementwise; the shapes broadcast."""
    return of_two(OPS["mul"], a, b)


def divide(a: Any, b: Any) -> Tensor:
    """a / b, elementwise; of ints in float32; the shapes broadcast.

    >>> import tensorken as tk
    >>> print(tk.divide(tk.tensor([1, 3]), 2))
    [0.5 1.5]
    """
    x, y = pair_of_operands("div", a, b, a_tensor_of(a, b))
    return x / y


def floor_divide(a: Any, b: Any) -> Tensor:
    """floor(a / b), elementwise, without the rounding of a / b; the shapes broadcast.

    As in Python: `floor_divide(1.0, 0.1)` is 9, for 0.1 is a little more than a tenth.  Where b is 0: infinite or NaN,
    for integers 0.

    >>> import tensorken as tk
    >>> print(tk.floor_divide(tk.tensor([7, -7]), 2))
    [3 -4]
    """
    x, y = pair_of_operands("floor_divide", a, b, a_tensor_of(a, b))
    return x // y


def remainder(a: Any, b: Any) -> Tensor:
    """a - floor(a / b) * b, elementwise, rounded once; the shapes broadcast.

    As Python's `%`, it has the sign of b.  Where b is 0: NaN, for integers 0.

    >>> import tensorken as tk
    >>> print(tk.remainder(tk.tensor([7, -7]), 3))
    [1 2]
    """
    return of_two(OPS["remainder"], a, b)


def power(a: Any, b: Any) -> Tensor:
    """a**b, elementwise; the shapes broadcast.

    >>> import tensorken as tk
    >>> print(tk.power(tk.tensor([1.0, 2.0, 3.0]), 2))
    [1 4 9]
    """
    result: Tensor = first("pow", a, b) ** b
    return result


def negative(x: Any) -> Tensor:
    """-x, elementwise."""
    return -as_tensor(x)


def positive(x: Any) -> Tensor:
    """x."""
    return as_tensor(x)


def square(x: Any) -> Tensor:
    """x * x, elementwise."""
    return as_tensor(x).square()


def reciprocal(x: Any) -> Tensor:
    """1 / x, elementwise; for floats."""
    return as_tensor(x).reciprocal()


# ---- signs and extremes ------------------------------------------------------------------------------------


def abs(x: Any) -> Tensor:
    """The absolute value, elementwise; its derivative at 0 is 0."""
    return as_tensor(x).abs()


def sign(x: Any) -> Tensor:
    """-1, 0 or 1 as x is negative, zero or positive, elementwise; NaN stays."""
    return as_tensor(x).sign()


def maximum(a: Any, b: Any) -> Tensor:
    """The larger of a and b, elementwise; NaN if either is; a tie shares the derivative equally."""
    return of_two(OPS["maximum"], a, b)


def minimum(a: Any, b: Any) -> Tensor:
    """The smaller of a and b, elementwise; NaN if either is; a tie shares the derivative equally."""
    return of_two(OPS["minimum"], a, b)


def clip(x: Any, min: Any = None, max: Any = None) -> Tensor:
    """x where it lies between min and max, else the bound that it passed; the shapes broadcast; None is no bound.

    >>> import tensorken as tk
    >>> print(tk.clip([-2.0, 0.5, 2.0], -1.0, 1.0))
    [-1 0.5 1]
    """
    y = as_tensor(x)
    if min is not None:
        y = maximum(y, min)
    return y if max is None else minimum(y, max)


# ---- to whole numbers --------------------------------------------------------------------------------------


def floor(x: Any) -> Tensor:
    """The largest whole number not above x, elementwise; its derivative is 0."""
    return as_tensor(x).floor()


def ceil(x: Any) -> Tensor:
    """The smallest whole number not below x, elementwise; its derivative is 0.

    >>> import tensorken as tk
    >>> print(tk.ceil([-1.5, 1.2]))
    [-1 2]
    """
    return _whole("ceil", as_tensor(x))


def trunc(x: Any) -> Tensor:
    """x without its fraction, elementwise; its derivative is 0.

    >>> import tensorken as tk
    >>> print(tk.trunc([-1.5, 1.8]))
    [-1 1]
    """
    return _whole("trunc", as_tensor(x))


def round(x: Any, decimals: int = 0) -> Tensor:
    """The nearest whole number, half-way the even one, elementwise; its derivative is 0.

    Args:
        decimals: how many digits stay behind the point, for floats: x * 10**decimals is rounded.

    >>> import tensorken as tk
    >>> print(tk.round([0.5, 1.5, -2.6]))
    [0 2 -3]
    """
    return as_tensor(x).round(decimals)


def _whole(name: str, x: Tensor) -> Tensor:
    """An op that rounds floats; others are whole."""
    result: Tensor = x.apply(OPS[name]) if x.dtype.kind == "float" else x
    return result


absolute, mod, pow, true_divide = abs, remainder, power, divide
