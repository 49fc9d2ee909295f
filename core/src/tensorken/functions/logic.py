"""Elementwise comparisons, choices, logic and bits."""

from __future__ import annotations

from typing import Any

from tensorken.creation import as_operand, as_tensor, pair_of_operands
from tensorken.functions.operands import a_tensor_of, of_two
from tensorken.spec.dtypes import bool_
from tensorken.spec.op import OPS
from tensorken.tensor import Tensor

__all__ = [
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
    "isfinite",
    "isinf",
    "isnan",
    "left_shift",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
    "right_shift",
    "where",
]

# ---- comparisons -------------------------------------------------------------------------------------------


def equal(a: Any, b: Any) -> Tensor:
    """Whether a equals b, elementwise, as bool."""
    return of_two(OPS["eq"], a, b)


def not_equal(a: Any, b: Any) -> Tensor:
    """Whether a differs from b, elementwise, as bool; NaN differs from all, itself too."""
    return ~equal(a, b)


def less(a: Any, b: Any) -> Tensor:
    """Whether a is less than b, elementwise, as bool."""
    return of_two(OPS["lt"], a, b)


def less_equal(a: Any, b: Any) -> Tensor:
    """Whether a is less than b or equals it, elementwise, as bool.

    >>> import tensorken as tk
    >>> tk.less_equal([1.0, 2.0, 3.0], 2.0).tolist()
    [True, True, False]
    """
    x, y = pair_of_operands("less_equal", a, b, a_tensor_of(a, b))
    return x <= y


def greater(a: Any, b: Any) -> Tensor:
    """Whether a is greater than b, elementwise, as bool."""
    x, y = pair_of_operands("greater", a, b, a_tensor_of(a, b))
    return x > y


def greater_equal(a: Any, b: Any) -> Tensor:
    """Whether a is greater than b or equals it, elementwise, as bool."""
    x, y = pair_of_operands("greater_equal", a, b, a_tensor_of(a, b))
    return x >= y


def isnan(x: Any) -> Tensor:
    """Whether x is NaN, elementwise, as bool.

    >>> import tensorken as tk
    >>> tk.isnan([0.0, float("inf"), float("nan")]).tolist()
    [False, False, True]
    """
    y = as_tensor(x)
    return ~y.eq(y)


def isinf(x: Any) -> Tensor:
    """Whether x is infinite, elementwise, as bool.

    >>> import tensorken as tk
    >>> tk.isinf([0.0, float("-inf"), float("nan")]).tolist()
    [False, True, False]
    """
    y = as_tensor(x)
    return y.abs().eq(float("inf")) if y.dtype.kind == "float" else ~y.eq(y)


def isfinite(x: Any) -> Tensor:
    """Whether x is neither infinite nor NaN, elementwise, as bool.

    >>> import tensorken as tk
    >>> tk.isfinite([0.0, float("inf"), float("nan")]).tolist()
    [True, False, False]
    """
    y = as_tensor(x)
    return y.abs() < float("inf") if y.dtype.kind == "float" else y.eq(y)


# ---- choices -----------------------------------------------------------------------------------------------


def where(condition: Any, a: Any, b: Any) -> Tensor:
    """a where the bool condition holds, else b; the three shapes broadcast.

    The operand not chosen contributes neither value nor derivative, whatever it is.  (A derivative that is infinite
    there still meets a zero cotangent on its way back, and gives NaN: guard the operand as well.)

    >>> import tensorken as tk
    >>> tk.where(tk.tensor([True, False]), 1.0, 2.0).tolist()
    [1.0, 2.0]
    """
    test = (
        as_operand("where", condition, a_tensor_of(a, b))
        if isinstance(a, Tensor) or isinstance(b, Tensor)
        else as_tensor(condition)
    )
    return test.where(a, b)


# ---- logic: numbers are true where they are not 0 ----------------------------------------------------------


def logical_and(a: Any, b: Any) -> Tensor:
    """Whether a and b are both true, elementwise, as bool; a number is true if it is not 0; the shapes broadcast.

    >>> import tensorken as tk
    >>> tk.logical_and([True, True, False], [True, False, False]).tolist()
    [True, False, False]
    """
    x, y = _truths("logical_and", a, b)
    return x & y


def logical_or(a: Any, b: Any) -> Tensor:
    """Whether a or b or both are true, elementwise, as bool; a number is true if it is not 0; the shapes broadcast."""
    x, y = _truths("logical_or", a, b)
    return x | y


def logical_xor(a: Any, b: Any) -> Tensor:
    """Whether one of a and b is true, elementwise, as bool; a number is true if it is not 0; the shapes broadcast."""
    x, y = _truths("logical_xor", a, b)
    return x ^ y


def logical_not(x: Any) -> Tensor:
    """Whether x is false, elementwise, as bool; a number is false if it is 0."""
    return ~as_tensor(x).astype(bool_)


def _truths(name: str, a: Any, b: Any) -> tuple[Tensor, Tensor]:
    x, y = pair_of_operands(name, a, b, a_tensor_of(a, b))
    return x.astype(bool_), y.astype(bool_)


# ---- bits --------------------------------------------------------------------------------------------------


def bitwise_and(a: Any, b: Any) -> Tensor:
    """The bits that a and b share, in two's complement, elementwise; for ints and bools; the shapes broadcast.

    >>> import tensorken as tk
    >>> print(tk.bitwise_and(tk.tensor([12, 10]), 6))
    [4 2]
    """
    x, y = pair_of_operands("bitwise_and", a, b, a_tensor_of(a, b))
    return x & y


def bitwise_or(a: Any, b: Any) -> Tensor:
    """The bits that a or b has, in two's complement, elementwise; for ints and bools; the shapes broadcast."""
    x, y = pair_of_operands("bitwise_or", a, b, a_tensor_of(a, b))
    return x | y


def bitwise_xor(a: Any, b: Any) -> Tensor:
    """The bits in which a and b differ, in two's complement, elementwise; for ints and bools; the shapes broadcast."""
    x, y = pair_of_operands("bitwise_xor", a, b, a_tensor_of(a, b))
    return x ^ y


def bitwise_invert(x: Any) -> Tensor:
    """The bits that x has not, in two's complement: -1 - x, elementwise; for ints and bools."""
    return ~as_tensor(x)


def bitwise_left_shift(a: Any, b: Any) -> Tensor:
    """a * 2**b, elementwise, wrapping; 0 where b is negative or not below the number of bits; for ints.

    >>> import tensorken as tk
    >>> print(tk.bitwise_left_shift(tk.tensor([1, 3]), 4))
    [16 48]
    """
    x, y = pair_of_operands("bitwise_left_shift", a, b, a_tensor_of(a, b))
    return x << y


def bitwise_right_shift(a: Any, b: Any) -> Tensor:
    """floor(a / 2**b), elementwise; 0 or -1 where b is negative or not below the number of bits; for ints."""
    x, y = pair_of_operands("bitwise_right_shift", a, b, a_tensor_of(a, b))
    return x >> y


bitwise_not = invert = bitwise_invert
left_shift, right_shift = bitwise_left_shift, bitwise_right_shift
