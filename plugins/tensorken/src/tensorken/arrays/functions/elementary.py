"""Elementary functions: exponentials and logarithms, trigonometric and hyperbolic functions, erf.

The result is floating-point: float32 for integers and bools.

Raises:
    ShapeError: if the shapes do not broadcast.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.operands import binary_op, floating_of, unary_op
from tensorken.arrays.functions.own_derivatives import with_derivative
from tensorken_core.language.op import OPS
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = [
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "erf",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "hypot",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "rad2deg",
    "radians",
    "relu",
    "sigmoid",
    "sin",
    "sinc",
    "sinh",
    "softplus",
    "sqrt",
    "tan",
    "tanh",
]

# ---- exponentials and powers -------------------------------------------------------------------------------


def exp(x: ArrayLike) -> Tensor:
    """e**x, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.exp([0.0, 1.0]):.5f}")
    [1.00000 2.71828]
    """
    return as_tensor(x).exp()


def expm1(x: ArrayLike) -> Tensor:
    """e**x - 1, accurate for small x, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.expm1([0.0, 1e-30]):.3g}")
    [    0 1e-30]
    """
    return as_tensor(x).expm1()


def exp2(x: ArrayLike) -> Tensor:
    """2**x, elementwise.

    >>> import tensorken as tk
    >>> print(tk.exp2([-1.0, 3.0]))
    [0.5 8. ]
    """
    return unary_op("exp2", x)


def sqrt(x: ArrayLike) -> Tensor:
    """The square root, elementwise; NaN below 0.

    >>> import tensorken as tk
    >>> print(tk.sqrt([4.0, 2.25]))
    [2.  1.5]
    """
    return as_tensor(x).sqrt()


def cbrt(x: ArrayLike) -> Tensor:
    """The cube root, elementwise: negative for negative numbers; its derivative at 0 is infinite.

    >>> import tensorken as tk
    >>> print(tk.cbrt([-8.0, 0.0, 27.0]))
    [-2.  0.  3.]
    """
    return _cbrt(x)


@with_derivative(lambda x: (1.0 / _cbrt(x)).square() * (1.0 / 3.0))
def _cbrt(x: Any) -> Any:
    size = x.abs()
    inside = (size < math.inf) & ~x.eq(0.0)
    a = inside.where(size, 1.0)
    first = a ** (1.0 / 3.0)
    divisor = first.eq(0.0).where(1.0, first)  # 0 where a device takes subnormal numbers for 0
    root = first - (first - a / (divisor * divisor)) / 3.0  # a step of Newton's method
    return inside.where((x < 0.0).where(-root, root), x)


def hypot(a: ArrayLike, b: ArrayLike) -> Tensor:
    """sqrt(a**2 + b**2), without overflow, elementwise; its derivative at the origin is 0.

    >>> import tensorken as tk
    >>> print(f"{tk.hypot(3e30, 4e30):.3g}")
    5e+30
    """
    return binary_op(OPS["hypot"], a, b)


def sigmoid(x: ArrayLike) -> Tensor:
    """1 / (1 + e**-x), without overflow, elementwise.

    >>> import tensorken as tk
    >>> print(tk.sigmoid([-1000.0, 0.0, 1000.0]))
    [0.  0.5 1. ]
    """
    return as_tensor(x).sigmoid()


def relu(x: ArrayLike) -> Tensor:
    """max(x, 0), elementwise; its derivative at 0 is 0.

    >>> import tensorken as tk
    >>> print(tk.relu([-2.0, 3.0]))
    [0. 3.]
    """
    return as_tensor(x).relu()


def softplus(x: ArrayLike) -> Tensor:
    """log(1 + e**x), without overflow, elementwise: a smooth `relu`; its derivative is `sigmoid`.

    >>> import tensorken as tk
    >>> print(f"{tk.softplus([-1000.0, 0.0, 1000.0]):.5f}")
    [   0.00000    0.69315 1000.00000]
    """
    return unary_op("softplus", x)


# ---- logarithms --------------------------------------------------------------------------------------------


def log(x: ArrayLike) -> Tensor:
    """The natural logarithm, elementwise; -inf at 0, NaN below.

    >>> import tensorken as tk
    >>> print(tk.log([1.0, 0.0]))
    [  0. -inf]
    """
    return as_tensor(x).log()


def log1p(x: ArrayLike) -> Tensor:
    """log(1 + x), accurate for small x, elementwise; -inf at -1, NaN below.

    >>> import tensorken as tk
    >>> print(f"{tk.log1p([0.0, 1e-30]):.3g}")
    [    0 1e-30]
    """
    return as_tensor(x).log1p()


def log2(x: ArrayLike) -> Tensor:
    """The logarithm to base 2, elementwise; -inf at 0, NaN below; exact at powers of 2.

    >>> import tensorken as tk
    >>> print(tk.log2([0.25, 1024.0]))
    [-2. 10.]
    """
    return unary_op("log2", x)


def log10(x: ArrayLike) -> Tensor:
    """The logarithm to base 10, elementwise; -inf at 0, NaN below; exact at powers of 10.

    >>> import tensorken as tk
    >>> print(tk.log10([0.01, 1000.0]))
    [-2.  3.]
    """
    return unary_op("log10", x)


def logaddexp(a: ArrayLike, b: ArrayLike) -> Tensor:
    """log(e**a + e**b), without overflow, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.logaddexp(1000.0, 1000.0):.3f}")
    1000.693
    """
    return binary_op(OPS["logaddexp"], a, b)


# ---- trigonometric functions -------------------------------------------------------------------------------


def sin(x: ArrayLike) -> Tensor:
    """The sine of x in radians, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.sin([0.0, tk.pi / 6]):.3f}")
    [0.000 0.500]
    """
    return as_tensor(x).sin()


def cos(x: ArrayLike) -> Tensor:
    """The cosine of x in radians, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.cos([0.0, tk.pi / 3]):.3f}")
    [1.000 0.500]
    """
    return as_tensor(x).cos()


def tan(x: ArrayLike) -> Tensor:
    """The tangent of x in radians, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.tan([0.0, tk.pi / 4]):.3f}")
    [0.000 1.000]
    """
    return as_tensor(x).tan()


def sinc(x: ArrayLike) -> Tensor:
    """sin(pi * x) / (pi * x), 1 at 0 and 0 at infinity, elementwise; its derivatives are correct at 0, too.

    Near 0 it is computed by its Taylor series.

    >>> import tensorken as tk
    >>> print(f"{tk.sinc([0.0, 0.5, 1.5]):.4f}")
    [ 1.0000  0.6366 -0.2122]
    """
    y = floating_of(as_tensor(x))
    near = y.abs() < 0.25
    z: Any = near.where(y, 0.0).square() * -(math.pi**2)
    series: Any = z * _SINC[0] + _SINC[1]
    for coefficient in _SINC[2:]:
        series = series * z + coefficient
    far = near.where(1.0, y)
    if y.dtype.kind != "float":
        angle: Any = far * math.pi
        return near.where(series, angle.sin() / angle)
    finite = far.abs().eq(math.inf).where(0.0, far)
    turns = finite - unary_op("round", finite * 0.5) * 2.0  # exact: the sine is 0 at all integers
    above, below = turns > 0.5, turns < -0.5
    folded: Any = above.where(1.0 - turns, below.where(-1.0 - turns, turns))
    return near.where(series, (folded * math.pi).sin() / far / math.pi)


_SINC = [1.0 / math.factorial(2 * k + 1) for k in range(10, -1, -1)]
"""The coefficients of sin(a) / a in powers of -a**2, highest first: more than float64 needs for a up to pi / 4."""


def deg2rad(x: ArrayLike) -> Tensor:
    """Convert degrees to radians, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.deg2rad([0.0, 180.0]):.5f}")
    [0.00000 3.14159]
    """
    result: Tensor = as_tensor(x) * (math.pi / 180.0)
    return result


def rad2deg(x: ArrayLike) -> Tensor:
    """Convert radians to degrees, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.rad2deg([0.0, tk.pi]):.3f}")
    [  0.000 180.000]
    """
    result: Tensor = as_tensor(x) * (180.0 / math.pi)
    return result


def asin(x: ArrayLike) -> Tensor:
    """The angle in [-pi/2, pi/2] whose sine is x, elementwise; NaN beyond 1.

    >>> import tensorken as tk
    >>> print(f"{tk.asin([0.0, 1.0]):.5f}")
    [0.00000 1.57080]
    """
    return unary_op("asin", x)


def acos(x: ArrayLike) -> Tensor:
    """The angle in [0, pi] whose cosine is x, elementwise; NaN beyond 1.

    >>> import tensorken as tk
    >>> print(f"{tk.acos([1.0, -1.0]):.5f}")
    [0.00000 3.14159]
    """
    return unary_op("acos", x)


def atan(x: ArrayLike) -> Tensor:
    """The angle in [-pi/2, pi/2] whose tangent is x, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.atan([0.0, 1.0]):.5f}")
    [0.00000 0.78540]
    """
    return unary_op("atan", x)


def atan2(a: ArrayLike, b: ArrayLike) -> Tensor:
    """The angle in [-pi, pi] from the positive x-axis to the point (x, y) = (b, a), elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.atan2([0.0, 1.0], [-1.0, 0.0]):.5f}")
    [3.14159 1.57080]
    """
    return binary_op(OPS["atan2"], a, b)


# ---- hyperbolic functions ----------------------------------------------------------------------------------


def sinh(x: ArrayLike) -> Tensor:
    """The hyperbolic sine, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.sinh([0.0, 1.0]):.5f}")
    [0.00000 1.17520]
    """
    return unary_op("sinh", x)


def cosh(x: ArrayLike) -> Tensor:
    """The hyperbolic cosine, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.cosh([0.0, 1.0]):.5f}")
    [1.00000 1.54308]
    """
    return unary_op("cosh", x)


def tanh(x: ArrayLike) -> Tensor:
    """The hyperbolic tangent, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.tanh([0.0, 1.0]):.5f}")
    [0.00000 0.76159]
    """
    return as_tensor(x).tanh()


def asinh(x: ArrayLike) -> Tensor:
    """The inverse hyperbolic sine, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.asinh([0.0, 1.0]):.5f}")
    [0.00000 0.88137]
    """
    return unary_op("asinh", x)


def acosh(x: ArrayLike) -> Tensor:
    """The nonnegative inverse hyperbolic cosine, elementwise; NaN below 1.

    >>> import tensorken as tk
    >>> print(f"{tk.acosh([1.0, 2.0]):.5f}")
    [0.00000 1.31696]
    """
    return unary_op("acosh", x)


def atanh(x: ArrayLike) -> Tensor:
    """The inverse hyperbolic tangent, elementwise; infinite at -1 and 1, NaN beyond.

    >>> import tensorken as tk
    >>> print(tk.atanh([0.0, 1.0, 2.0]))
    [ 0. inf nan]
    """
    return unary_op("atanh", x)


# ---- error function ----------------------------------------------------------------------------------------


def erf(x: ArrayLike) -> Tensor:
    """The error function: 2 / sqrt(pi) times the integral of e**-s**2 from 0 to x, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.erf([0.0, 0.5, 3.0]):.5f}")
    [0.00000 0.52050 0.99998]
    """
    return unary_op("erf", x)


def erfinv(x: ArrayLike) -> Tensor:
    """The inverse of the error function, elementwise: infinite at -1 and 1, NaN beyond.

    >>> import tensorken as tk
    >>> print(f"{tk.erfinv([0.0, 0.5, -0.99]):.5f}")
    [ 0.00000  0.47694 -1.82139]
    """
    return unary_op("erfinv", x)


arcsin, arccos, arctan, arctan2 = asin, acos, atan, atan2
arcsinh, arccosh, arctanh = asinh, acosh, atanh
degrees, radians = rad2deg, deg2rad
