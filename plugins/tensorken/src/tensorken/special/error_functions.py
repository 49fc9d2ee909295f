"""The complementary error function and the normal distribution.

Raises:
    DTypeError: if the function is not defined for the dtype.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from tensorken.arrays.functions.own_derivatives import with_derivative
from tensorken.control_flow import fori_loop
from tensorken.special.coefficients import ERFCX
from tensorken.special.evaluation import chebyshev
from tensorken_core.language.dtypes import float32, float64
from tensorken_core.language.op import OPS
from tensorken_core.tensor.tensor import Tensor

__all__ = ["erfc", "erfcx", "log_ndtr", "ndtr", "ndtri"]

_ROOT_OF_2, _ROOT_OF_PI, _ROOT_OF_2_PI = math.sqrt(2.0), math.sqrt(math.pi), math.sqrt(2.0 * math.pi)


def _gaussian(x: Any) -> Any:
    """exp(-x**2), from the exact square of x."""
    return x.apply(OPS["gaussian"])


def _scaled_tail(x: Any) -> Any:
    """exp(x**2) * erfc(x) for x >= 0; NaN below."""
    return chebyshev(1.0 - 7.5 / (x + 3.75), ERFCX) * 0.5 / (x + 0.5)


@with_derivative(lambda x: _gaussian(x) * (-2.0 / _ROOT_OF_PI))
def erfc(x: Any) -> Tensor:
    """1 - erf(x) without cancellation, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.special.erfc([0.0, 1.0, 9.0]):.4g}")
    [        1    0.1573 4.137e-37]
    """
    size = x.abs()
    tail = _gaussian(size) * _scaled_tail(size)
    tail = (x < 0.0).where(2.0 - tail, tail)
    near = size < 0.5
    result: Tensor = near.where(1.0 - near.where(x, 0.0).apply(OPS["erf"]), tail)
    return result


@with_derivative(lambda x: _slope_of_erfcx(x))
def erfcx(x: Any) -> Tensor:
    """exp(x**2) * erfc(x) without overflow or underflow for positive x, elementwise.

    >>> import tensorken as tk
    >>> print(f"{tk.special.erfcx([0.0, 1.0, 1e4]):.4g}")
    [        1    0.4276 5.642e-05]
    """
    size = x.abs()
    tail = _scaled_tail(size)
    result: Tensor = (x < 0.0).where(2.0 / _gaussian(x) - tail, tail)
    return result


def _slope_of_erfcx(x: Any) -> Any:
    return _scaled_integral(1)(x) * -2.0


@functools.cache
def _scaled_integral(n: int) -> Callable[[Any], Any]:
    """exp(x**2) times the n-th repeated integral of erfc from x to infinity, with its derivative.

    Its derivative is -2 * (n + 1) times the next one.  All are positive, so nothing cancels, as it would in the formula
    2 * x * erfcx(x) - 2 / sqrt(pi).  Up to x = 1 the recurrence of W. Gautschi, "Error function and Fresnel integrals",
    formula 7.2.5 of Abramowitz and Stegun, goes upwards; above, it is a continued fraction.
    """

    @with_derivative(lambda x: _scaled_integral(n + 1)(x) * (-2.0 * (n + 1)))
    def scaled_integral(x: Any) -> Any:
        near = x < 1.0
        inner, outer = near.where(x, 1.0), near.where(1.0, x)
        before: Any = 2.0 / _ROOT_OF_PI
        last = erfcx(inner)
        for k in range(1, n + 1):
            before, last = last, (before - inner * last * 2.0) * (0.5 / k)
        quotients = _quotients(n, outer)
        return near.where(last, math.prod(quotients[1:], start=quotients[0]) * _scaled_tail(outer))

    return scaled_integral


def _quotients(n: int, x: Any) -> list[Any]:
    """The quotients of consecutive scaled integrals of erfc, of orders k and k - 1 for k from n to 1, for x from 1."""
    steps = 40 if x.dtype is float32 else 140
    order = float(n + steps)
    start = ((x * x + 2.0 * order).sqrt() + x).reciprocal()  # of a fraction that repeats the same term

    def body(i: Any, quotient: Any) -> Any:
        return 0.5 / (x + (order - i.astype(x.dtype)) * quotient)

    quotient = fori_loop(0, steps - 1, body, start)
    quotients = []
    for k in range(n, 0, -1):
        quotient = 0.5 / (x + (k + 1.0) * quotient)
        quotients.append(quotient)
    return quotients


def _density_body(x: Any) -> Any:
    """exp(-x**2 / 2) / sqrt(2 * pi); the square of x rounded to sixteenths is exact (W. J. Cody, 1969)."""
    size = x.abs().minimum(64.0)
    coarse = (size * 16.0).floor() / 16.0
    fine = (size - coarse) * (size + coarse)
    return (coarse * coarse * -0.5).exp() * (fine * -0.5).exp() / _ROOT_OF_2_PI


def _slope_of_density(x: Any) -> Any:
    """-x times the density, 0 where that is 0, since x may be infinite there."""
    density = _density(x)
    return density * density.eq(0.0).where(0.0, -x)


@with_derivative(_slope_of_density)
def _density(x: Any) -> Tensor:
    """The density of the standard normal distribution."""
    return _density_body(x)  # type: ignore[no-any-return]


@with_derivative(lambda x: _density(x))
def ndtr(x: Any) -> Tensor:
    """The distribution function of the standard normal distribution, elementwise; accurate in the lower tail.

    >>> import tensorken as tk
    >>> print(f"{tk.special.ndtr([-10.0, 0.0, 1.0]):.4g}")
    [7.62e-24      0.5   0.8413]
    """
    size = x.abs()
    tail = _density_body(x) * _scaled_tail(size / _ROOT_OF_2) * (_ROOT_OF_2_PI / 2.0)
    tail = (x > 0.0).where(1.0 - tail, tail)
    near = size < 1.0
    inner = (near.where(x, 0.0) / _ROOT_OF_2).apply(OPS["erf"])
    result: Tensor = near.where(inner * 0.5 + 0.5, tail)
    return result


_FAR = {float32: 1e4, float64: 1e9}
"""From this x on, the slope of the hazard at -x is -1."""


def _slope_of_hazard(x: Any) -> Any:
    """The derivative of the hazard h, -h * (x + h), without cancellation where x is negative."""
    low = x < 0.0
    far = x < -_FAR[x.dtype]
    y = (low & ~far).where(-x, 1.0) / _ROOT_OF_2
    value = erfcx(y)
    below = _scaled_integral(1)(y) / value / value * (-2.0 / _ROOT_OF_PI)
    upper = low.where(0.0, x)
    ratio = _density(upper) / ndtr(upper)
    above = -ratio * (ratio.eq(0.0).where(0.0, upper) + ratio)
    return low.where(far.where(-1.0, below), above)


@with_derivative(_slope_of_hazard)
def _hazard(x: Any) -> Any:
    """The derivative of log_ndtr: the density divided by the distribution function."""
    low = x < 0.0
    tail = math.sqrt(2.0 / math.pi) / erfcx(low.where(-x, 0.0) / _ROOT_OF_2)
    upper = low.where(0.0, x)
    return low.where(tail, _density(upper) / ndtr(upper))


@with_derivative(lambda x: _hazard(x))
def log_ndtr(x: Any) -> Tensor:
    """The logarithm of `ndtr`, elementwise, without underflow.

    >>> import tensorken as tk
    >>> print(f"{tk.special.log_ndtr([-100.0, 0.0, 1.0]):.5g}")
    [ -5005.5 -0.69315 -0.17275]
    """
    low = x < -1.0
    tail = _scaled_tail(low.where(-x, 1.0) / _ROOT_OF_2)
    far = low.where(x, 0.0)
    upper = low.where(0.0, x)
    result: Tensor = low.where(far * far * -0.5 + (tail * 0.5).log(), (-ndtr(-upper)).log1p())
    return result


@with_derivative(lambda p: ndtri(p) * _slope_of_quantile(p).square())
def _slope_of_quantile(p: Any) -> Any:
    """The derivative of ndtri, 1 / density, as 1 / (tail * hazard), which is accurate where the density is small."""
    share = (p > 0.5).where(1.0 - p, p)
    return 1.0 / share.eq(0.0).where(0.0, share * _hazard(-ndtri(p).abs()))


@with_derivative(lambda p: _slope_of_quantile(p))
def ndtri(p: Any) -> Tensor:
    """The inverse of `ndtr`, the quantile function of the standard normal distribution, elementwise.

    It is infinite at 0 and 1, and NaN outside.

    >>> import tensorken as tk
    >>> print(f"{tk.special.ndtri([0.0, 0.025, 0.5, 1e-30]):.4f}")
    [    -inf  -1.9600   0.0000 -11.4640]
    """
    # of the tail, by formula 26.2.23 of Abramowitz and Stegun, then three steps of Newton's method for the logarithm
    share = p.minimum(1.0 - p)
    inside = (share > 0.0) & (share < 0.1)
    q = inside.where(share, 0.1)
    t = (q.log() * -2.0).sqrt()
    above = (t * 0.010328 + 0.802853) * t + 2.515517
    below = ((t * 0.001308 + 0.189269) * t + 1.432788) * t + 1.0
    x = above / below - t
    exponent = q.log()
    for _ in range(3):
        tail = _scaled_tail(-x / _ROOT_OF_2)
        logarithm = x * x * -0.5 + (tail * 0.5).log()
        x = x - (logarithm - exponent) * tail * (_ROOT_OF_PI / _ROOT_OF_2)
    x = share.eq(0.0).where(-math.inf, x)
    tail = (p > 0.5).where(-x, x)
    middle = (p + p - 1.0).apply(OPS["erfinv"]) * _ROOT_OF_2
    value = (share < 0.1).where(tail, middle)
    result: Tensor = (share < 0.0).where(math.nan, value)
    return result
