"""How the quantiles of the gamma distribution depend on its shape parameter, for derivatives of samples."""

from __future__ import annotations

import math
from typing import Any

from tensorken.arrays.creation import tensor
from tensorken.control_flow import fori_loop, scan
from tensorken.special.coefficients import GAUSS_LEGENDRE, PSI
from tensorken.special.evaluation import horner
from tensorken.special.gamma_functions import digamma
from tensorken_core.language.dtypes import float64
from tensorken_core.tensor.tensor import Tensor

_LARGE = 60.0
"""From this a on, the derivative is an integral by quadrature."""


def log_quantile_derivative(a: Any, y: Any) -> Tensor:
    """The derivative of y = log(x) with respect to a where gammainc(a, x) is constant, elementwise; a is positive.

    It is -d/da gammainc(a, x) divided by x times the density.  Written as an integral of log(t) - digamma(a) over one
    side of x, or as a series or a continued fraction, neither of the two is computed, so that nothing underflows.

    Args:
        a: the shape parameter, float32 or float64.
        y: logarithms, of the same shape and dtype; they may be of numbers that underflow.
    """
    large = a >= _LARGE
    b = large.where(1.0, a)
    bound = (b + 1.0).log().maximum(math.log(2.0))
    below = y < bound
    series = _series(b, below.where(y, 0.0))
    fraction = _fraction(b, below.where(bound, y.minimum(80.0)))
    c = large.where(a, _LARGE)
    far = _integral(c, large.where(y, math.log(_LARGE)).exp())
    result: Tensor = large.where(far, below.where(series, fraction))
    return result


def _series(a: Any, y: Any) -> Any:
    """The sum of x**n / (a * (a + 1) ... (a + n)) * (digamma(a + n + 1) - y) for n from 0."""
    x = y.exp()

    def body(i: Any, state: Any) -> Any:
        total, term, psi = state
        b = a + (i + 1).astype(a.dtype)
        term = term * x / b
        psi = psi + 1.0 / b
        return total + term * (psi - y), term, psi

    term, psi = 1.0 / a, digamma(a + 1.0)
    steps = 90 if a.dtype is float64 else 60
    return fori_loop(0, steps, body, (term * (psi - y), term, psi))[0]


def _fraction(a: Any, y: Any) -> Any:
    """(y - digamma(a)) * h + dh/da, where h is gamma(a) * gammaincc(a, x) / (x**a * exp(-x)) by Lentz' method."""
    x = y.exp()

    def body(i: Any, state: Any) -> Any:
        c, d, h, c_by_a, d_by_a, h_by_a = state
        n = (i + 1).astype(a.dtype)
        numerator = n * (a - n)
        b = x + (2.0 * n + 1.0) - a
        ratio = numerator / c
        c_by_a = -1.0 + (n - ratio * c_by_a) / c
        c = b + ratio
        denominator_by_a = n * d + numerator * d_by_a - 1.0
        d = 1.0 / (numerator * d + b)
        d_by_a = -d * d * denominator_by_a
        factor = c * d
        h_by_a = h_by_a * factor + h * (c_by_a * d + c * d_by_a)
        return c, d, h * factor, c_by_a, d_by_a, h_by_a

    # The first step of the fraction from an infinite c, whose derivative is then -1 at its end.
    start = 1.0 / (x + 1.0 - a)
    first = a - 1.0
    b = x + 3.0 - a
    d = 1.0 / (first * start + b)
    d_by_a = -d * d * (start + first * start * start - 1.0)
    h_by_a = start * start * b * d + start * (b * d_by_a - d)
    state = (b, d, start * b * d, b.ones_like() * -1.0, d_by_a, h_by_a)
    steps = 60 if a.dtype is float64 else 30
    _, _, h, _, _, h_by_a = fori_loop(1, steps, body, state)
    return (y - digamma(a)) * h + h_by_a


def _integral(a: Any, x: Any) -> Any:
    """The integral of (log(t) - digamma(a)) * (t / x)**(a - 1) * exp(x - t) / x over one side of x, by Gauss' rule."""
    mode = a - 1.0
    upper = x > mode
    width, distance = mode.sqrt(), (x - mode).abs()
    # The logarithm of the integrand is concave, so it falls at least so fast as at x.
    reach = (40.0 * x / distance.maximum(1e-30)).minimum((width * 13.0 - distance).maximum(width * 9.0))
    extent = upper.where(reach, -reach.minimum(x * 0.999)) / x
    square = 1.0 / (a * a)
    offset = ((x - a) / a).log1p() + 0.5 / a + square * horner(square, PSI)

    def body(total: Any, rule: Any) -> Any:
        node, weight = rule
        share = extent * node
        exponent = mode * log1p_minus(share) - (x - mode) * share
        return total + weight * (offset + share.log1p()) * exponent.exp(), None

    columns = zip(*GAUSS_LEGENDRE, strict=True)
    rules = tuple([tensor(column, a.dtype, backend=a.interpreter.base) for column in columns])
    total, _ = scan(body, a.zeros_like(), rules)
    return extent.abs() * upper.where(total, -total)


def log1p_minus(x: Any) -> Any:
    """log(1 + x) - x for x above -1, without cancellation where x is small."""
    near = x.abs() < 0.25
    z = near.where(x, 0.0)
    s = z / (z + 2.0)
    square = s * s
    inner = 2.0 * s * square * horner(square, [1.0 / (2.0 * k + 3.0) for k in range(12)]) - s * z
    return near.where(inner, near.where(0.0, x).log1p() - x)
