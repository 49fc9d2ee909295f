"""The complementary error function and the normal distribution.

Raises:
    DTypeError: if the function is not defined for the dtype.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.arrays.functions.own_derivatives import with_derivative
from tensorken.special.coefficients import ERFCX
from tensorken.special.evaluation import chebyshev
from tensorken_core.language.op import OPS
from tensorken_core.tensor.tensor import Tensor

__all__ = ["erfc", "erfcx", "log_ndtr", "ndtr", "ndtri"]

_ROOT_OF_2, _ROOT_OF_PI, _ROOT_OF_2_PI = math.sqrt(2.0), math.sqrt(math.pi), math.sqrt(2.0 * math.pi)


def _gaussian(x: Any) -> Any:
    """exp(-x**2), from the exact square of x."""
    return x.apply(OPS["gaussian"])


def _scaled_tail(x: Any) -> Any:
    """exp(x**2) * erfc(x) for x >= 0; NaN below."""
    return chebyshev(1.0 - 7.5 / (x + 3.75), ERFCX) / (x + x + 1.0)


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


@with_derivative(lambda x: x * erfcx(x) * 2.0 - 2.0 / _ROOT_OF_PI)
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


def _density_body(x: Any) -> Any:
    """exp(-x**2 / 2) / sqrt(2 * pi); the square of x rounded to sixteenths is exact (W. J. Cody, 1969)."""
    size = x.abs().minimum(64.0)
    coarse = (size * 16.0).floor() / 16.0
    fine = (size - coarse) * (size + coarse)
    return (coarse * coarse * -0.5).exp() * (fine * -0.5).exp() / _ROOT_OF_2_PI


@with_derivative(lambda x: _density(x) * -x)
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


def _hazard(x: Any) -> Any:
    """The derivative of log_ndtr: the density divided by the distribution function."""
    low = x < 0.0
    tail = math.sqrt(2.0 / math.pi) / erfcx(low.where(-x, 0.0) / _ROOT_OF_2)
    upper = low.where(0.0, x)
    return low.where(tail, _density(upper) / ndtr(upper))


@with_derivative(_hazard)
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


@with_derivative(lambda p: 1.0 / _density(ndtri(p)))
def ndtri(p: Any) -> Tensor:
    """The inverse of `ndtr`, the quantile function of the standard normal distribution, elementwise.

    It is infinite at 0 and 1, and NaN outside.

    >>> import tensorken as tk
    >>> print(f"{tk.special.ndtri([0.0, 0.025, 0.5, 1e-30]):.4f}")
    [    -inf  -1.9600   0.0000 -11.4640]
    """
    share = p.minimum(
        1.0 - p
    )  # the tail; formula 26.2.23 of Abramowitz and Stegun, then two steps of Halley's method
    inside = (share > 0.0) & (share < 0.1)
    q = inside.where(share, 0.1)
    t = (q.log() * -2.0).sqrt()
    above = (t * 0.010328 + 0.802853) * t + 2.515517
    below = ((t * 0.001308 + 0.189269) * t + 1.432788) * t + 1.0
    x = above / below - t
    for _ in range(2):
        step = (ndtr(x) - q) / _density_body(x)
        x = x - step / (x * step * 0.5 + 1.0)
    x = share.eq(0.0).where(-math.inf, x)
    tail = (p > 0.5).where(-x, x)
    middle = (p + p - 1.0).apply(OPS["erfinv"]) * _ROOT_OF_2
    value = (share < 0.1).where(tail, middle)
    result: Tensor = (share < 0.0).where(math.nan, value)
    return result
