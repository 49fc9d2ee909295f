"""The parts of floating-point numbers, and powers and logarithms with base 2.

Raises:
    DTypeError: if the function is not defined for the dtype.
    ShapeError: if the shapes do not broadcast.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arithmetic import abs, power, trunc
from tensorken.arrays.functions.floats import copysign, nextafter
from tensorken.arrays.functions.operands import first_operand, first_tensor, floating_of, unary_op
from tensorken.arrays.functions.own_derivatives import with_derivative, with_derivatives
from tensorken.arrays.functions.promotion import finfo
from tensorken_core.errors import DTypeError
from tensorken_core.language.dtypes import DType, float32, float64, int32, int64
from tensorken_core.language.op import OPS
from tensorken_core.tensor.coercion import as_operand, pair_of_operands
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = ["fabs", "float_power", "frexp", "ldexp", "logaddexp2", "modf", "spacing"]

_LN2 = math.log(2.0)

_BITS: dict[DType, tuple[DType, int, int]] = {float32: (int32, 23, 127), float64: (int64, 52, 1023)}
"""For each dtype its integers, the number of stored bits of the mantissa, and the bias of the exponent."""


def frexp(x: ArrayLike) -> tuple[Tensor, Tensor]:
    """The mantissa m with 0.5 <= abs(m) < 1 and the int32 exponent e with x = m * 2**e, elementwise.

    Of 0, infinities and NaN the mantissa is the number itself, and the exponent is 0.

    >>> import tensorken as tk
    >>> [part.tolist() for part in tk.frexp([8.0, -0.75, 0.0])]
    [[0.5, -0.75, 0.0], [4, 0, 0]]
    """
    y: Any = floating_of(as_tensor(x))
    if y.dtype.kind == "complex":
        raise DTypeError(f"frexp: not defined for {y.dtype}; take x.real, x.imag or abs(x)")
    wide = y.astype(y.dtype.wide)
    _, width, bias = _BITS[wide.dtype]
    regular = (wide.abs() < math.inf) & ~wide.eq(0.0)
    small = wide.abs() < finfo(wide.dtype).smallest_normal
    scaled = small.where(wide * 2.0**width, wide)
    bits = scaled.apply(OPS["to_bits"])
    field = bits.apply(OPS["shift_right"], bits.scalar(width)) & (2 * bias + 1)
    exponent = field.astype(int32) - (bias - 1) - small.astype(int32) * width
    exponent = regular.where(exponent, 0)
    return _scaled(wide, -exponent).astype(y.dtype), exponent


def ldexp(x: ArrayLike, exponent: ArrayLike) -> Tensor:
    """x * 2**exponent for integer exponents, elementwise, without an overflow between; the shapes broadcast.

    Raises:
        DTypeError: for complex numbers, and if the exponents are not ints.

    >>> import tensorken as tk
    >>> tk.ldexp([5.0, 1.0], [1, -2]).tolist()
    [10.0, 0.25]
    """
    y: Any = floating_of(first_operand("ldexp", x, exponent))
    if y.dtype.kind != "float":
        raise DTypeError(f"ldexp: not defined for {y.dtype}; multiply by 2.0**exponent")
    n = as_operand("ldexp", exponent, y)
    if n.dtype.kind != "int":
        raise DTypeError(f"ldexp: exponents must be int32 or int64, got {n.dtype}; cast them (x.astype)")
    n = n.in_index_dtype()
    wide = y.astype(y.dtype.wide)
    result: Tensor = _scaled(wide, n).astype(y.dtype)
    return result


def _scaled(x: Any, exponent: Any) -> Any:
    """x * 2**exponent as three products with exact powers; the result is rounded in the last one alone."""
    integers, width, bias = _BITS[x.dtype]
    left = exponent.maximum(-3 * bias).minimum(3 * bias)
    powers = []
    for _ in range(3):
        part = left.maximum(1 - bias).minimum(bias)
        bits = (part + bias).astype(integers)
        powers.append(bits.apply(OPS["shift_left"], bits.scalar(width)).apply(OPS["from_bits"]))
        left = left - part
    return x * powers[2] * powers[1] * powers[0]


def modf(x: ArrayLike) -> tuple[Tensor, Tensor]:
    """The fractional and the integral part, elementwise; both have the sign of x.

    >>> import tensorken as tk
    >>> [part.tolist() for part in tk.modf([2.5, -0.5])]
    [[0.5, -0.5], [2.0, -0.0]]
    """
    y: Any = floating_of(as_tensor(x))
    return _fraction(y), trunc(y)


@with_derivative(lambda x: x.abs().eq(math.inf).where(0.0, 1.0))
def _fraction(x: Any) -> Any:
    """x minus its integral part, with the sign of x, whose derivative would be that of abs at integers."""
    finite = x.abs() < math.inf
    fraction = finite.where(x, 0.0) - finite.where(trunc(x), 0.0)
    return x.eq(x).where(copysign(fraction, x), x)


def spacing(x: ArrayLike) -> Tensor:
    """The distance from x to the next number away from 0, with the sign of x, elementwise; NaN for infinities.

    >>> import tensorken as tk
    >>> tk.spacing(1.0).item() == tk.finfo(tk.float32).eps
    True
    """
    y: Any = floating_of(as_tensor(x))
    size = y.abs()
    above, below = nextafter(size, math.inf), nextafter(size, 0.0)
    step = above.eq(math.inf).where(size - below, above - size)
    signed = (y < 0.0).where(-step, step)
    result: Tensor = (size < math.inf).where(signed, math.nan)
    return result


def fabs(x: ArrayLike) -> Tensor:
    """The absolute value as a floating-point number, elementwise: float32 for ints and bools.

    >>> import tensorken as tk
    >>> tk.fabs([-1, 2]).tolist()
    [1.0, 2.0]
    """
    return abs(floating_of(as_tensor(x)))


def float_power(a: ArrayLike, b: ArrayLike) -> Tensor:
    """a**b in floating-point numbers, elementwise: float32 for ints and bools; the shapes broadcast.

    >>> import tensorken as tk
    >>> tk.float_power([2, 4], [-1, 2]).tolist()
    [0.5, 16.0]
    """
    x, y = pair_of_operands("float_power", a, b, first_tensor(a, b))
    return power(floating_of(x), floating_of(y))


def logaddexp2(a: ArrayLike, b: ArrayLike) -> Tensor:
    """log2(2**a + 2**b), without overflow, elementwise; the shapes broadcast.

    >>> import tensorken as tk
    >>> tk.logaddexp2(1000.0, 1000.0).item()
    1001.0
    """
    x, y = [floating_of(z) for z in pair_of_operands("logaddexp2", a, b, first_tensor(a, b))]
    return _logaddexp2(x, y)


def _share(a: Any, b: Any) -> Any:
    """2**a / (2**a + 2**b); a half of equal infinities."""
    difference = a - b
    difference = difference.eq(difference).where(difference, a.eq(b).where(0.0, difference))
    smaller = unary_op("exp2", -difference.abs())
    return (difference < 0.0).where(smaller, 1.0) / (smaller + 1.0)


@with_derivatives(_share, lambda a, b: _share(b, a))
def _logaddexp2(a: Any, b: Any) -> Any:
    difference = a.eq(b).where(0.0, (a - b).abs())
    return a.maximum(b) + unary_op("exp2", -difference).log1p() / _LN2
