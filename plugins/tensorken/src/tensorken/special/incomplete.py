"""The regularised incomplete gamma and beta functions.

Raises:
    DTypeError: if the function is not defined for the dtype.
    ShapeError: if the shapes do not broadcast.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.own_derivatives import partial_derivative, with_derivatives
from tensorken.control_flow import fori_loop
from tensorken.special.coefficients import GAUSS_LEGENDRE
from tensorken.special.evaluation import log1p_minus
from tensorken.special.gamma_functions import betaln, correction, gammaln
from tensorken_core.tensor.tensor import Tensor

__all__ = ["betainc", "gammainc", "gammaincc"]

_LARGE = 150.0
"""From this a on, the incomplete gamma functions are computed by quadrature."""

_STEPS = 150
"""The terms of the series and continued fractions of the incomplete gamma functions."""

_BETA_SERIES_STEPS = 16
"""The terms of the power series of the incomplete beta function."""

_BETA_STEPS = 200
"""The terms of the continued fraction of the incomplete beta function, which suffice to about a = b = 3 * 10^4."""

_BETA_LARGE = 1e4
"""From these a and b on, the incomplete beta function is computed by quadrature."""


def gammainc(a: ArrayLike, x: ArrayLike) -> Tensor:
    """The regularised lower incomplete gamma function P(a, x), elementwise; the shapes broadcast.

    It is 1 / gamma(a) times the integral of t**(a - 1) * exp(-t) from 0 to x; NaN for negative a or x.  It is
    computed by its series, by a continued fraction, and for large a by quadrature; so is its
    derivative by a, which is NaN at a = 0.

    >>> import tensorken as tk
    >>> print(f"{tk.special.gammainc([0.5, 3.0], [1.0, 2.0]):.4f}")
    [0.8427 0.3233]
    """
    return _gammainc(a, x)


def gammaincc(a: ArrayLike, x: ArrayLike) -> Tensor:
    """The regularised upper incomplete gamma function, 1 - P(a, x) without cancellation; see `gammainc`.

    >>> import tensorken as tk
    >>> print(f"{tk.special.gammaincc([0.5, 3.0], [1.0, 2.0]):.4f}")
    [0.1573 0.6767]
    """
    return _gammaincc(a, x)


def _gamma_density(a: Any, x: Any) -> Any:
    """The derivative of gammainc by x, x**(a - 1) * exp(-x) / gamma(a), with limits at 0 and infinity."""
    valid = (a > 0.0) & (x >= 0.0)
    far = x > 1e3 + 10.0 * a  # there it underflows
    small = valid & ~far & (a < 10.0)
    large = valid & ~far & (a >= 10.0) & (a < math.inf) & (x > 2.0 ** (2 - x.dtype.limit))
    p, q = small.where(a, 1.0), small.where(x, 1.0)
    low = q ** (p - 1.0) * (-q - gammaln(p)).exp()
    r = large.where(x, 10.0)
    b = large.where(a, 10.0)
    high = b * _density(b, r) / r
    return small.where(low, large.where(high, (valid | a.eq(0.0)).where(0.0, math.nan)))


def _partials(body: Callable[[Any, Any], Any], sign: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The derivatives of an incomplete gamma function by a and by x; that by a has the derivative of the other by x."""

    @with_derivatives(None, lambda a, x: partial_derivative(_gamma_density)(a, x) * sign)
    def by_shape(a: Any, x: Any) -> Any:
        return a.eq(0.0).where(math.nan, partial_derivative(body)(a, x))

    return by_shape, lambda a, x: _gamma_density(a, x) * sign


def _lower(a: Any, x: Any) -> Any:
    value, is_lower, limit = _incomplete(a, x)
    return limit.eq(limit).where(limit, is_lower.where(value, 1.0 - value))


def _upper(a: Any, x: Any) -> Any:
    value, is_lower, limit = _incomplete(a, x)
    return limit.eq(limit).where(1.0 - limit, is_lower.where(1.0 - value, value))


@with_derivatives(*_partials(_lower, 1.0))
def _gammainc(a: Any, x: Any) -> Any:
    return _lower(a, x)


@with_derivatives(*_partials(_upper, -1.0))
def _gammaincc(a: Any, x: Any) -> Any:
    return _upper(a, x)


def _incomplete(a: Any, x: Any) -> tuple[Any, Any, Any]:
    """The smaller function of the two, whether it is the lower one, and the lower one where it is a limit, else NaN."""
    known = a.eq(a) & x.eq(x)
    zero = (x.eq(0.0) & (a > 0.0)) | (a.eq(math.inf) & (x >= 0.0) & (x < math.inf))
    one = (a.eq(0.0) & (x > 0.0)) | (x.eq(math.inf) & (a >= 0.0) & (a < math.inf))
    limit = zero.where(x.zeros_like(), one.where(1.0, math.nan))
    valid = known & (a > 0.0) & (x > 0.0) & (a < math.inf) & (x < math.inf)
    large = valid & (a >= _LARGE)
    small = valid & (a < _LARGE)
    p, q = small.where(a, 1.0), small.where(x, 1.0)
    is_lower = q < (p < 1.0).where(0.75, p + 1.0)
    factor = _density(p, q)
    series = _series(p, is_lower.where(q, 0.5))
    fraction = p * _fraction(p, is_lower.where(p + 1.0, q))
    near = factor * is_lower.where(series, fraction)
    tail, tail_is_lower = _quadrature(large.where(a, 200.0), large.where(x, 200.0))
    value = large.where(tail, small.where(near, math.nan))
    return value, large.where(tail_is_lower, is_lower), limit


def _density(a: Any, x: Any) -> Any:
    """x**a * exp(-x) / gamma(a + 1); from a = 10 on by Stirling's correction, without differences of large numbers."""
    large = a >= 10.0
    b, c = large.where(a, 10.0), large.where(1.0, a)
    distance = (x - b) / b
    left = (distance < -0.5) & (
        b < _LARGE
    )  # there the factors have more digits than the exponent; each is taken as a square
    ratio = x / b
    bent = log1p_minus(left.where(0.0, distance), left.where(1.0, ratio))
    root = left.where(ratio, 1.0) ** (b * 0.5) * (left.where(b - x, 0.0) * 0.5).exp()
    high = (b * bent - correction(b)).exp() * root * root / (b * (2.0 * math.pi)).sqrt()
    return large.where(high, (c * x.log() - x - gammaln(c + 1.0)).exp())


def _series(a: Any, x: Any) -> Any:
    """The sum of x**n / ((a + 1) ... (a + n)) for n from 0."""

    def body(i: Any, state: Any) -> Any:
        total, term = state
        term = term * x / (a + (i + 1).astype(a.dtype))
        return total + term, term

    one = (a + x).ones_like()
    return fori_loop(0, _STEPS, body, (one, one))[0]


def _fraction(a: Any, x: Any) -> Any:
    """gamma(a) * Q(a, x) / (x**a * exp(-x)) as a continued fraction, for x > a + 1 and from 0.75 on."""

    def term(n: Any) -> tuple[Any, Any]:
        return n * (a - n), x + (2.0 * n + 1.0) - a

    return (x + 1.0 - a + _continued(term, x.zeros_like(), _STEPS)).reciprocal()


def _continued(term: Callable[[Any], tuple[Any, Any]], last: Any, count: int) -> Any:
    """A continued fraction, evaluated from its end, where rounding errors do not add up.

    Args:
        term: from n to the n-th partial numerator and denominator.
        last: the rest after the last term, 0.
        count: the number of terms.
    """

    def body(i: Any, rest: Any) -> Any:
        numerator, denominator = term((count - i).astype(last.dtype))
        return numerator / (denominator + rest)

    return fori_loop(0, count, body, last)


def _quadrature(a: Any, x: Any) -> tuple[Any, Any]:
    """The smaller function of the two by Gauss' quadrature from x to where the integrand vanishes, for large a."""
    mode = a - 1.0
    width = mode.sqrt()
    difference = (x - a) + 1.0  # from the mode, which may be rounded
    is_lower = difference <= 0.0
    distance = difference.abs()
    reach = _reach(distance / x, distance, width)
    span = is_lower.where(-reach.minimum(x * 0.999), reach)  # x + span may round to x
    total: Any = 0.0
    for node, weight in GAUSS_LEGENDRE:
        beyond = difference + span * node
        total = (mode * log1p_minus(beyond / mode, 1.0 + beyond / mode)).exp() * weight + total
    scale = (-correction(mode)).exp() / (mode * (2.0 * math.pi)).sqrt()
    return span.abs() * total * scale, is_lower


def _reach(steepness: Any, distance: Any, width: Any) -> Any:
    """How far from x the integrand of a quadrature vanishes.

    Args:
        steepness: the slope of its logarithm at x, which is concave: the logarithm falls at least so fast beyond.
        distance: of x from the mode.
        width: of the peak at the mode.
    """
    least = 2.0 ** (8 - steepness.dtype.limit)  # whose reciprocal is finite
    return (40.0 / steepness.maximum(least)).minimum((width * 11.5 - distance).maximum(width * 7.0))


def _slope_of_betainc(a: Any, b: Any, x: Any) -> Any:
    """The derivative of betainc by x, x**(a - 1) * (1 - x)**(b - 1) / beta(a, b), with limits at 0 and 1."""
    valid = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf) & (x >= 0.0) & (x <= 1.0)
    p, q, y = valid.where(a, 1.0), valid.where(b, 1.0), valid.where(x, 0.5)
    upper = y > 0.5
    near, near_power, far_power = upper.where(1.0 - y, y), upper.where(q, p), upper.where(p, q)
    large = (p >= 10.0) & (q >= 10.0)
    end = near <= 2.0 ** (2 - x.dtype.limit)
    # Where the power of a zero is infinite, it decides the derivative.
    inner = (near.eq(0.0) & (near_power < 1.0)).where(0.0, large.where(0.5, near))
    scale = ((far_power - 1.0) * (-inner).log1p() - betaln(p, q)).exp()
    low = large.where(0.5, near) ** (large.where(1.0, near_power) - 1.0) * large.where(0.0, scale)
    middle = (large & ~end).where(y, 0.5)
    high = _beta_density(large.where(p, 10.0), large.where(q, 10.0), middle) / (middle * (1.0 - middle))
    return valid.where(large.where(end.where(0.0, high), low), math.nan)


@with_derivatives(None, None, lambda a, b, x: partial_derivative(_slope_of_betainc, 0)(a, b, x))
def _betainc_by_a(a: Any, b: Any, x: Any) -> Any:
    return partial_derivative(_betainc, 0)(a, b, x)


@with_derivatives(None, None, lambda a, b, x: partial_derivative(_slope_of_betainc, 1)(a, b, x))
def _betainc_by_b(a: Any, b: Any, x: Any) -> Any:
    return partial_derivative(_betainc, 1)(a, b, x)


@with_derivatives(_betainc_by_a, _betainc_by_b, _slope_of_betainc)
def betainc(a: Any, b: Any, x: Any) -> Tensor:
    """The regularised incomplete beta function I_x(a, b) for positive a and b, elementwise; the shapes broadcast.

    It is the integral of t**(a - 1) * (1 - t)**(b - 1) from 0 to x, divided by that from 0 to 1; NaN for x outside
    [0, 1].  Where a or b is 0 or infinite, it is the limit, a step at 0 or at 1.  It is computed by a continued
    fraction, by a series or by quadrature, and so are its derivatives by a and b.

    >>> import tensorken as tk
    >>> print(f"{tk.special.betainc(2.0, 3.0, [0.0, 0.5, 1.0]):.4f}")
    [0.0000 0.6875 1.0000]
    """
    return _betainc(a, b, x)  # type: ignore[no-any-return]


def _betainc(a: Any, b: Any, x: Any) -> Any:
    proper = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf)
    of_unit = (x >= 0.0) & (x <= 1.0)
    inside = proper & (x > 0.0) & (x < 1.0)
    # As a tends to 0 or b to infinity, all mass moves to 0, as b tends to 0 or a to infinity, to 1.
    at_zero = (a.eq(0.0) & (b > 0.0)) | (b.eq(math.inf) & (a >= 0.0) & (a < math.inf))
    at_one = (b.eq(0.0) & (a > 0.0)) | (a.eq(math.inf) & (b >= 0.0) & (b < math.inf))
    step = at_zero.where(x > 0.0, x.eq(1.0)).where(x.ones_like(), 0.0)
    outside = (of_unit & (proper | at_zero | at_one)).where(step, math.nan)
    least = 2.0 ** (2 - x.dtype.limit)  # whose reciprocal is finite
    p, q = inside.where(a, 1.0).maximum(least), inside.where(b, 1.0).maximum(least)
    y = inside.where(x, 0.25)
    # the distance from the mean, without rounding the smaller of the two shares
    distance = (p > q).where((p + q) * (1.0 - y) - q, p - (p + q) * y)
    swapped = distance < 0.0
    first, second = swapped.where(q, p), swapped.where(p, q)
    share, rest = swapped.where(1.0 - y, y), swapped.where(y, 1.0 - y)
    density = _beta_density(p, q, y)
    value = density * _beta_fraction(first, second, share, rest, swapped.where(-distance, distance))
    value = swapped.where(1.0 - value, value)
    # Near an end beside which the density is infinite the fraction converges slowly.
    low = y < 0.5
    c, d, z = low.where(p, q), low.where(q, p), low.where(y, 1.0 - y)
    near_end = (c < 1.0) & (z < 0.01) & (d * z < 0.7)
    lower = _beta_series(near_end.where(c, 0.5), near_end.where(d, 0.5), near_end.where(z, 0.0))
    lower = lower * density / near_end.where(c, 0.5)
    value = near_end.where(low.where(lower, 1.0 - lower), value)
    large = inside & (p >= _BETA_LARGE) & (q >= _BETA_LARGE)
    tail, is_lower = _beta_quadrature(large.where(p, 2e4), large.where(q, 2e4), large.where(y, 0.5))
    value = large.where(is_lower.where(tail, 1.0 - tail), value)
    return inside.where(value, outside)


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    """x**a * (1 - x)**b / beta(a, b); for large a and b by Stirling's corrections, without large differences."""
    large = (a >= 10.0) & (b >= 10.0)
    p, q = large.where(a, 10.0), large.where(b, 10.0)
    total = p + q
    distance = x * q - p * (1.0 - x)
    exponent = p * log1p_minus(distance / p, x * (total / p)) + q * log1p_minus(
        -distance / q, (1.0 - x) * (total / q)
    )
    exponent = exponent - (correction(p) + correction(q) - correction(total))
    high = (p * (q / total) / (2.0 * math.pi)).sqrt() * exponent.exp()
    c, d = large.where(1.0, a), large.where(1.0, b)
    return large.where(high, (c * x.log() + d * (-x).log1p() - betaln(c, d)).exp())


def _beta_series(a: Any, b: Any, x: Any) -> Any:
    """I_x(a, b) * a over x**a * (1 - x)**b / beta(a, b), for x up to 0.01 and b * x up to 0.7, in powers of x."""

    def body(i: Any, state: Any) -> Any:
        total, term = state
        n = (i + 1).astype(a.dtype)
        term = term * ((n - b) / n * x)
        return total + term / (a + n), term

    one = (a + b + x).ones_like()
    total = fori_loop(0, _BETA_SERIES_STEPS, body, (one - 1.0, one))[0]
    return (1.0 + a * total) * (-b * (-x).log1p()).exp()


def _beta_quadrature(a: Any, b: Any, x: Any) -> tuple[Any, Any]:
    """The smaller of I_x(a, b) and its complement by Gauss' quadrature, for large a and b; see `_quadrature`.

    Places are scaled by the sum of the exponents of t**(a - 1) * (1 - t)**(b - 1).
    """
    p, q = a - 1.0, b - 1.0
    total = p + q
    difference = x * q - (1.0 - x) * p  # from the mode
    is_lower = difference <= 0.0
    distance = difference.abs()
    width = (p * (q / total)).sqrt()
    reach = _reach(distance / (x * (1.0 - x)) / total, distance, width)
    reach = reach.minimum(is_lower.where(x, 1.0 - x) * total * 0.999)
    span = is_lower.where(-reach, reach)
    result: Any = 0.0
    for node, weight in GAUSS_LEGENDRE:
        beyond = difference + span * node
        u, v = beyond / p, -beyond / q
        exponent = p * log1p_minus(u, 1.0 + u) + q * log1p_minus(v, 1.0 + v)
        result = exponent.exp() * weight + result
    scale = (correction(total) - correction(p) - correction(q)).exp() / (width * math.sqrt(2.0 * math.pi))
    return reach * result * (1.0 + 1.0 / total) * scale, is_lower


def _beta_fraction(a: Any, b: Any, x: Any, rest: Any, distance: Any) -> Any:
    """I_x(a, b) over x**a * (1 - x)**b / beta(a, b), for x up to the mean, by a continued fraction of positive terms.

    It is BFRAC of A. R. DiDonato and A. H. Morris, "Algorithm 708: Significant digit computation of the incomplete beta
    function ratios", 1992.

    Args:
        a, b, x: those of the function.
        rest: 1 - x.
        distance: a - (a + b) x, which is not negative.
    """
    first = 1.0 + distance

    def term(n: Any) -> tuple[Any, Any]:
        ratio, last = n / a, a + (2.0 * n - 1.0)
        step, share, factor = n * (b - n) * x, a / last, 1.0 + (n - 1.0) / a
        growth = (ratio + 1.0) / (1.0 + 1.0 / a + 2.0 * ratio)
        return factor * (factor + b / a) * (share * share) * (step * x), (
            n + step / last + growth * (first + n * (1.0 + rest))
        )

    return (first / (1.0 + 1.0 / a) + _continued(term, x.zeros_like(), _BETA_STEPS)).reciprocal()
