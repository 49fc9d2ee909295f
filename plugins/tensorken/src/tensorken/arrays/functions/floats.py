"""Functions on special values of floats: infinities, NaN, signed zeros, adjacent numbers.

Raises:
    DTypeError: if the function is not defined for the dtype.
    ShapeError: if the shapes do not broadcast.
"""

from __future__ import annotations

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.operands import binary_op, unary_op
from tensorken.arrays.functions.promotion import finfo
from tensorken.complex_numbers.tensor import ComplexTensor
from tensorken_core.errors import DTypeError
from tensorken_core.language.dtypes import int32
from tensorken_core.language.op import OPS
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "copysign",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "nan_to_num",
    "nextafter",
    "signbit",
]

# ---- infinities and NaN ------------------------------------------------------------------------------------


def isnan(x: ArrayLike) -> Tensor:
    """Whether x is NaN, elementwise, as bool.

    >>> import tensorken as tk
    >>> tk.isnan([0.0, float("inf"), float("nan")]).tolist()
    [False, False, True]
    """
    y = as_tensor(x)
    return ~y.eq(y)


def isinf(x: ArrayLike) -> Tensor:
    """Whether x is infinite, elementwise, as bool.

    >>> import tensorken as tk
    >>> tk.isinf([0.0, float("-inf"), float("nan")]).tolist()
    [False, True, False]
    """
    y = as_tensor(x)
    if isinstance(y, ComplexTensor):
        return isinf(y.real) | isinf(y.imag)
    return y.abs().eq(float("inf")) if y.dtype.kind == "float" else ~y.eq(y)


def isfinite(x: ArrayLike) -> Tensor:
    """Whether x is neither infinite nor NaN, elementwise, as bool.

    >>> import tensorken as tk
    >>> tk.isfinite([0.0, float("inf"), float("nan")]).tolist()
    [True, False, False]
    """
    y = as_tensor(x)
    if isinstance(y, ComplexTensor):
        return isfinite(y.real) & isfinite(y.imag)
    return y.abs() < float("inf") if y.dtype.kind == "float" else y.eq(y)


def isposinf(x: ArrayLike) -> Tensor:
    """Whether x is infinity, elementwise, as bool.

    >>> import tensorken as tk
    >>> tk.isposinf([0.0, float("inf"), float("-inf")]).tolist()
    [False, True, False]
    """
    return _is_infinity("isposinf", as_tensor(x), float("inf"))


def isneginf(x: ArrayLike) -> Tensor:
    """Whether x is minus infinity, elementwise, as bool.

    >>> import tensorken as tk
    >>> tk.isneginf([0.0, float("inf"), float("-inf")]).tolist()
    [False, False, True]
    """
    return _is_infinity("isneginf", as_tensor(x), float("-inf"))


def _is_infinity(name: str, x: Tensor, infinity: float) -> Tensor:
    if x.dtype.kind == "complex":
        raise DTypeError(f"{name}: not defined for {x.dtype}; take x.real or x.imag, or use tk.isinf")
    return x.eq(infinity) if x.dtype.inexact else ~x.eq(x)


def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """x with NaN and infinities replaced by numbers; the derivative there is 0.

    Args:
        copy: has no effect, as tensors are immutable.
        nan: the replacement of NaN.
        posinf, neginf: the replacements of the infinities; by default the largest and the smallest finite number.

    >>> import tensorken as tk
    >>> print(tk.nan_to_num([1.0, float("nan"), float("inf")], posinf=9.0))
    [1. 0. 9.]
    """
    y = as_tensor(x)
    if isinstance(y, ComplexTensor):
        real, imag = [nan_to_num(part, copy, nan, posinf, neginf) for part in (y.real, y.imag)]
        return ComplexTensor(real, imag)
    if y.dtype.kind != "float":
        return y
    limit = finfo(y.dtype).max
    result = y.eq(float("inf")).where(limit if posinf is None else posinf, y)
    result = y.eq(float("-inf")).where(-limit if neginf is None else neginf, result)
    return isnan(y).where(nan, result)


# ---- signs and adjacent numbers ----------------------------------------------------------------------------


def signbit(x: ArrayLike) -> Tensor:
    """Whether the sign bit is set, elementwise, as bool: for negative numbers, -0.0, and NaN with a negative sign.

    Of bools and unsigned integers it never is.

    >>> import tensorken as tk
    >>> tk.signbit([-1.0, -0.0, 0.0]).tolist()
    [True, True, False]
    """
    y = as_tensor(x)
    if y.dtype.inexact:
        return unary_op("signbit", y)
    result: Tensor = y < 0 if y.dtype.kind == "int" else y.astype(int32) < 0
    return result


def copysign(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The magnitude of a with the sign of b, also where b is a zero or NaN, elementwise; the shapes broadcast.

    >>> import tensorken as tk
    >>> print(tk.copysign([1.0, -2.0], [-0.0, 3.0]))
    [-1.  2.]
    """
    return binary_op(OPS["copysign"], a, b)


def nextafter(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The next float after a towards b, elementwise; b where a equals b; its derivative with respect to a is 1.

    >>> import tensorken as tk
    >>> tk.nextafter(tk.tensor(1.0, "float64"), 2.0).item() == 1.0 + 2.0**-52
    True
    """
    return binary_op(OPS["nextafter"], a, b)
