"""The regularised incomplete gamma and beta functions.

Raises:
    DTypeError: if the function is not defined for the dtype.
    ShapeError: if the shapes do not broadcast.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.control_flow import fori_loop
from tensorken.special.coefficients import GAUSS_LEGENDRE
from tensorken.special.evaluation import in_wide_floats
from tensorken.special.gamma_functions import betaln, correction, gammaln
from tensorken_core.tensor.tensor import Tensor

__all__ = ["betainc", "gammainc", "gammaincc"]

_LARGE = 150.0
"""From this a on, the incomplete gamma functions are computed by quadrature."""

_STEPS = 150
"""The terms of the series and continued fractions of the incomplete gamma functions."""

_BETA_STEPS = 200
"""The pairs of terms of the continued fraction of the incomplete beta function, which suffice to about a = b = 10^4."""


def gammainc(a: ArrayLike, x: ArrayLike) -> Tensor:
    """The regularised lower incomplete gamma function P(a, x), elementwise; the shapes broadcast.

    It is 1 / gamma(a) times the integral of t**(a - 1) * exp(-t) from 0 to x; NaN for negative a or x.  It is
    computed by its series, by a continued fraction, and for large a by quadrature; so are its derivatives.

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


@in_wide_floats
def _gammainc(a: Any, x: Any) -> Any:
    value, is_lower, limit = _incomplete(a, x)
    return limit.eq(limit).where(limit, is_lower.where(value, 1.0 - value))


@in_wide_floats
def _gammaincc(a: Any, x: Any) -> Any:
    value, is_lower, limit = _incomplete(a, x)
    return limit.eq(limit).where(1.0 - limit, is_lower.where(1.0 - value, value))


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
    is_lower = q < p + 1.0
    factor = _density(p, q)
    series = _series(p, is_lower.where(q, 0.5)) / p
    fraction = _fraction(p, is_lower.where(p + 1.0, q))
    near = factor * is_lower.where(series, fraction)
    tail, tail_is_lower = _quadrature(large.where(a, 200.0), large.where(x, 200.0))
    value = large.where(tail, small.where(near, math.nan))
    return value, large.where(tail_is_lower, is_lower), limit


def _density(a: Any, x: Any) -> Any:
    """x**a * exp(-x) / gamma(a); from a = 10 on by Stirling's correction, without differences of large numbers."""
    large = a >= 10.0
    b, c = large.where(a, 10.0), large.where(1.0, a)
    distance = (x - b) / b
    near = distance.abs() < 0.5
    inner = near.where(distance, 0.0)
    bent = near.where(inner - inner.log1p(), distance - near.where(1.0, x / b).log())
    high = (b / (2.0 * math.pi)).sqrt() * (-b * bent - correction(b)).exp()
    return large.where(high, (c * x.log() - x - gammaln(c)).exp())


def _series(a: Any, x: Any) -> Any:
    """The sum of x**n / ((a + 1) ... (a + n)) for n from 0."""

    def body(i: Any, state: Any) -> Any:
        total, term = state
        term = term * x / (a + (i + 1).astype(a.dtype))
        return total + term, term

    one = (a + x).ones_like()
    return fori_loop(0, _STEPS, body, (one, one))[0]


def _fraction(a: Any, x: Any) -> Any:
    """gamma(a) * Q(a, x) / (x**a * exp(-x)) as a continued fraction by Lentz' method, for x > a + 1."""
    tiny = 1e-30

    def body(i: Any, state: Any) -> Any:
        c, d, h = state
        n = (i + 1).astype(a.dtype)
        numerator = n * (a - n)
        b = x + (2.0 * n + 1.0) - a
        d = _away_from_zero(numerator * d + b, tiny)
        c = _away_from_zero(b + numerator / c, tiny)
        d = 1.0 / d
        return c, d, h * c * d

    b = x + 1.0 - a
    start = 1.0 / b
    return fori_loop(0, _STEPS, body, (b.ones_like() / tiny, start, start))[2]


def _away_from_zero(x: Any, tiny: float) -> Any:
    return (x.abs() < tiny).where(tiny, x)


def _quadrature(a: Any, x: Any) -> tuple[Any, Any]:
    """The smaller function of the two by Gauss' quadrature from x to where the integrand vanishes, for large a."""
    mode = a - 1.0
    width = mode.sqrt()
    is_lower = x <= mode
    distance = (x - mode).abs()
    steepness = distance / x  # the logarithm of the integrand is concave, so it falls at least so fast
    reach = (40.0 / steepness.maximum(1e-30)).minimum((width * 11.5 - distance).maximum(width * 7.0))
    end = is_lower.where((x - reach).maximum(x * 1e-3), x + reach)
    total: Any = 0.0
    for node, weight in GAUSS_LEGENDRE:
        t = x + (end - x) * node
        share = (t - mode) / mode
        near = share.abs() < 0.5
        inner = near.where(share, 0.0)
        bent = near.where(inner.log1p() - inner, near.where(1.0, t / mode).log() - share)
        total = (mode * bent).exp() * weight + total
    scale = (-correction(mode)).exp() / (mode * (2.0 * math.pi)).sqrt()
    return (end - x).abs() * total * scale, is_lower


@in_wide_floats
def betainc(a: Any, b: Any, x: Any) -> Tensor:
    """The regularised incomplete beta function I_x(a, b) for positive a and b, elementwise; the shapes broadcast.

    It is the integral of t**(a - 1) * (1 - t)**(b - 1) from 0 to x, divided by that from 0 to 1; NaN for x outside
    [0, 1].  It is computed by a continued fraction, and so are its derivatives.

    >>> import tensorken as tk
    >>> print(f"{tk.special.betainc(2.0, 3.0, [0.0, 0.5, 1.0]):.4f}")
    [0.0000 0.6875 1.0000]
    """
    valid = (a > 0.0) & (b > 0.0) & (a < math.inf) & (b < math.inf) & (x >= 0.0) & (x <= 1.0)
    ends = valid & (x.eq(0.0) | x.eq(1.0))
    inside = valid & ~ends
    p, q, y = inside.where(a, 1.0), inside.where(b, 1.0), inside.where(x, 0.25)
    swapped = y > (p + 1.0) / (p + q + 2.0)
    first, second = swapped.where(q, p), swapped.where(p, q)
    share = swapped.where(1.0 - y, y)
    value = _beta_density(p, q, y) / first * _beta_fraction(first, second, share)
    value = swapped.where(1.0 - value, value)
    return inside.where(value, ends.where(x, math.nan))  # type: ignore[no-any-return]


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    """x**a * (1 - x)**b / beta(a, b); for large a and b by Stirling's corrections, without large differences."""
    large = (a >= 10.0) & (b >= 10.0)
    p, q = large.where(a, 10.0), large.where(b, 10.0)
    total = p + q
    distance = x * q - p * (1.0 - x)
    exponent = p * _bent(distance / p) + q * _bent(-distance / q)
    exponent = exponent - (correction(p) + correction(q) - correction(total))
    high = (p * (q / total) / (2.0 * math.pi)).sqrt() * exponent.exp()
    c, d = large.where(1.0, a), large.where(1.0, b)
    return large.where(high, (c * x.log() + d * (-x).log1p() - betaln(c, d)).exp())


def _bent(share: Any) -> Any:
    """log1p(share) - share."""
    return share.log1p() - share


def _beta_fraction(a: Any, b: Any, x: Any) -> Any:
    """The continued fraction of the incomplete beta function by Lentz' method, two terms a step."""
    tiny = 1e-30

    def term(numerator: Any, c: Any, d: Any, h: Any) -> Any:
        d = 1.0 / _away_from_zero(numerator * d + 1.0, tiny)
        c = _away_from_zero(1.0 + numerator / c, tiny)
        return c, d, h * c * d

    def body(i: Any, state: Any) -> Any:
        n = (i + 1).astype(a.dtype)
        even = n * (b - n) * x / ((a + (2.0 * n - 1.0)) * (a + 2.0 * n))
        odd = -(a + n) * (a + b + n) * x / ((a + 2.0 * n) * (a + (2.0 * n + 1.0)))
        return term(odd, *term(even, *state))

    start = 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0), tiny)
    return fori_loop(0, _BETA_STEPS, body, (x.ones_like(), start, start))[2]
