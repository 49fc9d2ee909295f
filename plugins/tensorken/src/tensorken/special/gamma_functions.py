"""The gamma function and its relatives: logarithm, derivatives, the zeta function, the beta function.

Raises:
    DTypeError: if the function is not defined for the dtype.
    ShapeError: if the shapes do not broadcast.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arithmetic import round
from tensorken.arrays.functions.operands import floating_of
from tensorken.arrays.functions.own_derivatives import partial_derivative, with_derivative, with_derivatives
from tensorken.special.coefficients import EULER_MACLAURIN, PSI, STIRLING, ZETA_MINUS_1
from tensorken.special.evaluation import horner
from tensorken_core.errors import ArgumentError
from tensorken_core.language.bodies.arithmetic import in_float32
from tensorken_core.tensor.normalization import integer_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

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
    tiny = distance < 1e-9  # there its product with pi may be subnormal
    angle = low.where(distance, 0.5) * math.pi
    reflected = tiny.where(-distance.log(), math.log(math.pi) - angle.sin().log()) - positive
    pole = distance.eq(0.0) | x.eq(-math.inf)
    result: Tensor = low.where(pole.where(math.inf, reflected), positive)
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
    """The n-th derivative of `digamma`, elementwise; for n > 0 infinite at 0, -1, -2 and so on.

    Args:
        n: an int from 0.

    Raises:
        ArgumentError: if n is negative or no int.

    >>> import tensorken as tk
    >>> print(f"{tk.special.polygamma(1, [1.0, 2.0, -0.5]):.4f}")
    [1.6449 0.6449 8.9348]
    """
    order = integer_of("polygamma", "n", n)
    if order < 0:
        raise ArgumentError(f"polygamma: n must not be negative, got {n}")
    return _polygamma(order)(x) if order else digamma(x)


@functools.cache
def _polygamma(n: int) -> Callable[[ArrayLike], Tensor]:
    """The n-th derivative of digamma for n > 0, with its derivative; below 0 it is reflected."""
    sign = 1.0 if n % 2 else -1.0

    @with_derivative(lambda x: _polygamma(n + 1)(x))
    def polygamma(x: Any) -> Any:
        low = x < 0.0
        positive = _series(x.ones_like() * (n + 1.0), low.where(1.0 - x, x)) * float(math.factorial(n))
        distance = low.where(x - round(low.where(x, 0.5)), 0.25)
        pole = distance.eq(0.0) | x.eq(-math.inf)
        cotangent = _cotangent(pole.where(0.25, distance))
        reflected = -positive - _derivative_of_cotangent(n, cotangent) * math.pi ** (n + 1)
        return low.where(pole.where(sign * math.inf, reflected), positive * sign)

    return polygamma


def _cotangent(x: Any) -> Any:
    """The cotangent of pi * x for x from -1/2 to 1/2, which is 0 at both ends."""
    steep = x.abs() > 0.25
    angle = steep.where(0.5 - x.abs(), x) * math.pi
    return steep.where(x.sign() * (angle.sin() / angle.cos()), angle.cos() / steep.where(1.0, angle).sin())


def _derivative_of_cotangent(n: int, cotangent: Any) -> Any:
    """The n-th derivative of the cotangent as a polynomial of it, whose coefficients have one sign."""
    terms = [0, 1]
    for _ in range(n):
        slopes = [k * terms[k] for k in range(1, len(terms))]
        terms = [-(a + b) for a, b in zip([*slopes, 0, 0], [0, 0, *slopes], strict=True)]
    coefficients = [float(term) for term in reversed(terms) if term]  # every other one is 0
    square, result = cotangent * cotangent, coefficients[0]
    for coefficient in coefficients[1:]:
        result = square * result + coefficient
    return cotangent * result if n % 2 == 0 else result


def zeta(s: ArrayLike, q: ArrayLike | None = None) -> Tensor:
    """Hurwitz' zeta function, the sum of (q + k)**-s for k from 0, elementwise; NaN for s < 1.

    Without q it is Riemann's zeta function, which is defined for s < 1, too.  For negative q, s must be an integer,
    else the result is NaN.  It is the sum of Euler and Maclaurin with 10 terms and 12 corrections; negative q and s are
    reflected.

    >>> import tensorken as tk
    >>> print(f"{tk.special.zeta([2.0, 4.0, -1.0]):.4f}")
    [ 1.6449  1.0823 -0.0833]
    >>> print(f"{tk.special.zeta(2.0, [1.0, -0.5]):.4f}")
    [1.6449 8.9348]
    """
    if q is None:
        of_one: Tensor = _riemann(floating_of(as_tensor(s)))
        return of_one
    positive = isinstance(q, (int, float)) and q > 0
    return _hurwitz(s, q) if positive else _zeta(s, q)


@with_derivatives(None, lambda s, q: -s * _hurwitz(s + 1.0, q))
def _hurwitz(s: Any, q: Any) -> Tensor:
    """Hurwitz' zeta function for q >= 0, else NaN."""
    inside = (s >= 1.0) & (q >= 0.0)
    result: Tensor = inside.where(_series(inside.where(s, 2.0), inside.where(q, 1.0)), math.nan)
    return result


def _series(s: Any, q: Any) -> Any:
    """The sum of Euler and Maclaurin, for q >= 0 and s above -1."""
    total: Any = 0.0
    for k in range(10):
        total = (q + float(k)) ** -s + total
    infinite = q.eq(math.inf)
    last = infinite.where(1.0, q) + 10.0
    power = last ** (1.0 - s)  # last**-s may underflow where the result does not
    total = total + power / (s - 1.0) + power / last * 0.5
    slow = s.minimum(1e3)  # beyond, the power is 0
    factor = slow * (power / last) / last
    for k, coefficient in enumerate(EULER_MACLAURIN):
        total = total + factor * coefficient
        factor = factor * ((slow + (2.0 * k + 1.0)) / last) * ((slow + (2.0 * k + 2.0)) / last)
    return infinite.where(0.0, total)


@with_derivatives(lambda s, q: _by_order(s, q), lambda s, q: -s * _zeta(s + 1.0, q))
def _zeta(s: Any, q: Any) -> Tensor:
    """Hurwitz' zeta function; for negative q by the sum over all integers k, which is periodic."""
    low = q < 0.0
    whole = s.floor().eq(s)
    positive = _hurwitz(s, low.where(1.0 - q, q))
    distance = low.where(q - round(low.where(q, 0.5)), 0.25)
    even = (s * 0.5).floor().eq(s * 0.5)
    pole = distance.eq(0.0) | q.eq(-math.inf)
    near = pole.where(0.25, distance.abs())
    nearest, next_nearest = near**-s, (1.0 - near) ** -s  # of odd s they cancel at halves
    after, before = [_hurwitz(s, low.where(start, 1.0)) for start in (1.0 + near, 2.0 - near)]
    reflected = even.where(
        nearest + (next_nearest + after + before) - positive,
        (nearest - next_nearest + (after - before)) * distance.sign() + positive,
    )
    of_integers = pole.where(
        (s >= 1.0).where(math.inf, math.nan), (whole & (s > 1.0)).where(reflected, math.nan)
    )
    result: Tensor = low.where(s.eq(1.0).where(math.inf, of_integers), positive)
    return result


def _by_order(s: Any, q: Any) -> Any:
    """The derivative of the zeta function by s; NaN for negative q, where s is an integer."""
    low = q < 0.0
    return low.where(math.nan, partial_derivative(_hurwitz)(s, low.where(1.0, q)))


@in_float32
def _riemann(s: Any) -> Tensor:
    """Riemann's zeta function; below -1/2 it is reflected."""
    low = s < -0.5
    positive = _series(low.where(1.0 - s, s), s.ones_like())
    inner = low.where(s, -1.0)
    turns = inner * 0.5 - round(inner * 0.25) * 2.0
    above, below = turns > 0.5, turns < -0.5
    sine = (above.where(1.0 - turns, below.where(-1.0 - turns, turns)) * math.pi).sin()
    growth = (inner * math.log(2.0 * math.pi) + gammaln(1.0 - inner)).exp() * (1.0 / math.pi)
    result: Tensor = low.where(sine * growth * positive, positive)
    return result


def _growth_of_digamma(a: Any, b: Any) -> Any:
    """digamma(a + b) - digamma(a), for positive numbers as a sum of positive terms."""
    inside = (a >= 0.0) & (a + b >= 0.0) & (a < math.inf) & (b < math.inf)
    x, step = inside.where(a, 1.0), inside.where(b, 1.0)
    total: Any = 0.0
    for k in range(10):
        total = total + step / (x + (step + float(k))) / (x + float(k))
    x = x + 10.0
    y = x + step
    total = total + (step / x).log1p() + step / x / y * 0.5
    u, v = 1.0 / (x * x), 1.0 / (y * y)
    # The difference of two values of a polynomial divided by that of its operands.
    power, quotient, polynomial = u.ones_like(), u.ones_like(), u * 0.0
    for coefficient in PSI:
        polynomial = polynomial + quotient * coefficient
        power = power * v
        quotient = quotient * u + power
    total = total + step / x / y * (1.0 / x + 1.0 / y) * polynomial
    other = inside | a.eq(math.inf)
    return inside.where(
        total, other.where(0.0, digamma(other.where(1.0, a + b)) - digamma(other.where(1.0, a)))
    )


@with_derivatives(lambda a, b: -_growth_of_digamma(a, b), lambda a, b: -_growth_of_digamma(b, a))
def betaln(a: Any, b: Any) -> Tensor:
    """log(abs(gamma(a) * gamma(b) / gamma(a + b))), elementwise; the shapes broadcast.

    Where one is large, the differences of large logarithms are avoided by Stirling's corrections.

    >>> import tensorken as tk
    >>> print(f"{tk.special.betaln([1.0, 1e8], [2.0, 1.0]):.4f}")
    [ -0.6931 -18.4207]
    """
    low, high = a.minimum(b), a.maximum(b)
    infinite = high.eq(math.inf) & low.eq(low)
    pole = low.eq(0.0) & high.eq(high)
    large = (high >= 10.0) & ((low > 0.0) | (low + high >= 10.0)) & ~infinite
    both = large & (low >= 10.0)
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
    other = large | infinite | pole
    small_low, small_high = other.where(1.0, low), other.where(1.0, high)
    direct = gammaln(small_low) + (gammaln(small_high) - gammaln(small_low + small_high))
    value = large.where(both.where(two, one), direct)
    far = (low > 0.0).where(value.scalar(-math.inf), math.inf)
    result: Tensor = (infinite | pole).where(far, value)
    return result
