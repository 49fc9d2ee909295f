"""The gamma function and its relatives: logarithm, derivatives, the zeta function, the beta function.

Raises:
    DTypeError: if the function is not defined for the dtype.
    ShapeError: if the shapes do not broadcast.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arithmetic import round
from tensorken.arrays.functions.own_derivatives import with_derivative
from tensorken.special.coefficients import EULER_MACLAURIN, PSI, STIRLING, ZETA_MINUS_1
from tensorken.special.evaluation import horner, in_wide_floats
from tensorken_core.errors import ArgumentError
from tensorken_core.tensor.normalization import integer_of
from tensorken_core.tensor.tensor import Tensor

__all__ = ["betaln", "digamma", "gammaln", "polygamma", "psi", "zeta"]

_EULER = 0.5772156649015329
_SERIES = [1.0 - _EULER, *[(-1.0) ** k * z / k for k, z in enumerate(ZETA_MINUS_1, 2)]]
"""log(gamma(2 + z)) / z in powers of z."""


def correction(x: Any) -> Any:
    """Stirling's correction: log(gamma(x)) - ((x - 1/2) * log(x) - x + log(2 * pi) / 2), for x from 10 on."""
    reciprocal = 1.0 / x
    return reciprocal * horner(reciprocal * reciprocal, STIRLING)


@with_derivative(lambda x: digamma(x))
def gammaln(x: Any) -> Tensor:
    """log(abs(gamma(x))), elementwise; infinite at 0, -1, -2 and so on.

    Up to 10.5 it is reduced to the Taylor series at 2, above it is Stirling's series; below 1/2 it is reflected.

    >>> import tensorken as tk
    >>> print(f"{tk.special.gammaln([0.5, 1.0, 10.0]):.4f}")
    [ 0.5724  0.0000 12.8018]
    """
    low = x < 0.0
    a = low.where(1.0 - x, x)
    small = a < 10.5
    # In steps of 1 down to the interval from 1.5 to 2.5; the logarithm of the product of the steps is added.
    y = small.where(a, 2.0)
    product = y.ones_like()
    for _ in range(8):
        high = y >= 2.5
        y = high.where(y - 1.0, y)
        product = high.where(product * y, product)
    tiny, middle = y < 0.5, y < 1.5
    z = tiny.where(y, middle.where(y - 1.0, y - 2.0))
    below = tiny | middle
    near = z * horner(z, _SERIES) - below.where(z, 0.0).log1p() - tiny.where(y, 1.0).log() + product.log()
    large = small.where(10.5, a)
    far = (large - 0.5) * (large.log() - 1.0) - 0.5 + 0.5 * math.log(2.0 * math.pi) + correction(large)
    far = large.eq(math.inf).where(math.inf, far)
    positive = small.where(near, far)
    distance = (x - round(low.where(x, 0.5))).abs()
    reflected = math.log(math.pi) - (low.where(distance, 0.5) * math.pi).sin().log() - positive
    result: Tensor = low.where(x.eq(-math.inf).where(math.inf, reflected), positive)
    return result


@with_derivative(lambda x: polygamma(1, x))
def digamma(x: Any) -> Tensor:
    """The derivative of log(gamma(x)), elementwise; NaN at -1, -2 and so on.

    It is increased in steps of 1 to the asymptotic series; below 0 it is reflected.

    >>> import tensorken as tk
    >>> print(f"{tk.special.digamma([0.5, 1.0, 10.0]):.4f}")
    [-1.9635 -0.5772  2.2518]
    """
    low = x < 0.0
    y = low.where(1.0 - x, x)
    total = y.zeros_like()
    for _ in range(10):
        small = y < 10.0
        total = small.where(total + 1.0 / y, total)
        y = small.where(y + 1.0, y)
    reciprocal = 1.0 / y
    square = reciprocal * reciprocal
    positive = y.log() - reciprocal * 0.5 - square * horner(square, PSI) - total
    distance = low.where(x - round(low.where(x, 0.0)), 0.25)
    angle = distance * math.pi
    reflected = distance.eq(0.0).where(math.nan, positive - math.pi * angle.cos() / angle.sin())
    result: Tensor = low.where(reflected, positive)
    return result


psi = digamma


def polygamma(n: int, x: ArrayLike) -> Tensor:
    """The n-th derivative of `digamma`, elementwise, for x > 0; for n = 0 and 1 for all x, else NaN below 0.

    Args:
        n: an int from 0.

    Raises:
        ArgumentError: if n is negative or no int.

    >>> import tensorken as tk
    >>> print(f"{tk.special.polygamma(1, [1.0, 2.0]):.4f}")
    [1.6449 0.6449]
    """
    order = integer_of("polygamma", "n", n)
    if order < 0:
        raise ArgumentError(f"polygamma: n must not be negative, got {n}")
    if order == 0:
        return digamma(x)
    if order == 1:
        return _trigamma(x)
    sign = 1.0 if order % 2 else -1.0
    result: Tensor = zeta(order + 1.0, x) * (sign * math.factorial(order))
    return result


@in_wide_floats
def _trigamma(x: Any) -> Tensor:
    """The derivative of digamma; below 0 it is reflected."""
    low = x < 0.0
    positive = zeta(2.0, low.where(1.0 - x, x))
    distance = low.where(x - round(low.where(x, 0.0)), 0.5)
    ratio: Any = math.pi / (distance * math.pi).sin()
    result: Tensor = low.where(ratio * ratio - positive, positive)
    return result


def zeta(s: ArrayLike, q: ArrayLike = 1.0) -> Tensor:
    """Hurwitz' zeta function, the sum of (q + k)**-s for k from 0, elementwise; NaN for s < 1 or q < 0.

    With q = 1 it is Riemann's zeta function.  It is the sum of Euler and Maclaurin with 10 terms and 12 corrections.

    >>> import tensorken as tk
    >>> print(f"{tk.special.zeta([2.0, 4.0], 1.0):.4f}")
    [1.6449 1.0823]
    """
    return _zeta(s, q)


@in_wide_floats
def _zeta(s: Any, q: Any) -> Tensor:
    inside = (s > 1.0) & (q > 0.0)
    exponent, start = inside.where(s, 2.0), inside.where(q, 1.0)
    total: Any = 0.0
    for k in range(10):
        total = (start + float(k)) ** -exponent + total
    last = start + 10.0
    power = last**-exponent
    total = total + power * (last / (exponent - 1.0) + 0.5)
    factor = exponent * power / last
    for k, coefficient in enumerate(EULER_MACLAURIN):
        total = total + factor * coefficient
        factor = factor * ((exponent + (2.0 * k + 1.0)) / last) * ((exponent + (2.0 * k + 2.0)) / last)
    is_pole = (s.eq(1.0) & (q > 0.0)) | (q.eq(0.0) & (s >= 1.0))
    result: Tensor = inside.where(total, is_pole.where(math.inf, math.nan))
    return result


@in_wide_floats
def betaln(a: Any, b: Any) -> Tensor:
    """log(gamma(a) * gamma(b) / gamma(a + b)) for positive a and b, elementwise; the shapes broadcast.

    Where one is large, the differences of large logarithms are avoided by Stirling's corrections.

    >>> import tensorken as tk
    >>> print(f"{tk.special.betaln([1.0, 1e8], [2.0, 1.0]):.4f}")
    [ -0.6931 -18.4207]
    """
    low, high = a.minimum(b), a.maximum(b)
    large, both = high >= 10.0, low >= 10.0
    x, y = large.where(low, 1.0), large.where(high, 10.0)
    total = x + y
    tail = correction(y) - correction(total) - (y - 0.5) * (x / y).log1p()
    one = gammaln(both.where(1.0, x)) + x - x * total.log() + tail
    deep = both.where(low, 10.0)
    two = (
        0.5 * math.log(2.0 * math.pi)
        - deep.log() * 0.5
        + deep * (deep / total).log()
        + correction(deep)
        + tail
    )
    small_low, small_high = large.where(1.0, low), large.where(1.0, high)
    direct = gammaln(small_low) + (gammaln(small_high) - gammaln(small_low + small_high))
    result: Tensor = large.where(both.where(two, one), direct)
    return result
