"""Logarithms with a limit at 0, and the entropies that they make; the logistic function and its inverse.

Raises:
    DTypeError: if the function is not defined for the dtype.
    ShapeError: if the shapes do not broadcast.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.operands import floating_of
from tensorken.arrays.functions.own_derivatives import with_derivative, with_derivatives
from tensorken.special.evaluation import log1p_minus
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = ["entr", "expit", "kl_div", "logit", "rel_entr", "xlog1py", "xlogy"]


@with_derivatives(lambda a, b: 1.0 / b, lambda a, b: -_quotient(_quotient(a, b), b))
def _quotient(a: Any, b: Any) -> Any:
    """a / b, and 0 where both are 0."""
    origin = a.eq(0.0) & b.eq(0.0)
    return a / origin.where(1.0, b)


@with_derivatives(lambda x, y: y.log(), lambda x, y: _quotient(x, y))
def xlogy(x: Any, y: Any) -> Tensor:
    """x * log(y), and 0 where x is 0 and y is a number, elementwise; the shapes broadcast.

    Where x and y are 0, the derivative by x is -inf and that by y is 0.

    >>> import tensorken as tk
    >>> tk.special.xlogy([0.0, 2.0], [0.0, 1.0]).tolist()
    [0.0, 0.0]
    """
    zero = x.eq(0.0) & ((y <= 0.0) | y.eq(math.inf))
    result: Tensor = x * zero.where(1.0, y).log()
    return result


@with_derivatives(lambda x, y: y.log1p(), lambda x, y: _quotient(x, y + 1.0))
def xlog1py(x: Any, y: Any) -> Tensor:
    """x * log(1 + y), accurate for small y, and 0 where x is 0 and y is a number, elementwise; the shapes broadcast.

    Where x is 0 and y is -1, the derivative by x is -inf and that by y is 0.

    >>> import tensorken as tk
    >>> tk.special.xlog1py([0.0, 2.0], [-1.0, 0.0]).tolist()
    [0.0, 0.0]
    """
    zero = x.eq(0.0) & ((y <= -1.0) | y.eq(math.inf))
    result: Tensor = x * zero.where(0.0, y).log1p()
    return result


@with_derivative(lambda x: (x < 0.0).where(0.0, -x.log() - 1.0))
def entr(x: Any) -> Tensor:
    """-x * log(x), 0 at 0 and -inf below, elementwise: the sum over probabilities is their entropy.

    The derivative is inf at 0, and 0 below.

    >>> import tensorken as tk
    >>> print(f"{tk.special.entr([0.0, 0.5, 0.9]):.4f}")
    [0.0000 0.3466 0.0948]
    """
    inside = x > 0.0
    value = -x * inside.where(x, 1.0).log()
    return _beyond(inside, x.eq(0.0), x.eq(x), value, -math.inf)


def _slope_of_kl_div(x: Any, y: Any) -> Any:
    """1 - x / y where neither is negative, else 0; without cancellation where they are close."""
    near = (x < y + y) & (y < x + x)
    inner = near.where((y - x) / near.where(y, 1.0), 1.0 - _quotient(near.where(0.0, x), y))
    return ((x < 0.0) | (y < 0.0)).where(0.0, inner)


@with_derivatives(
    lambda x, y: ((x < 0.0) | (y < 0.0)).where(0.0, _slope_by_x(x, y) + 1.0),
    lambda x, y: ((x < 0.0) | (y < 0.0)).where(0.0, -_quotient(x, y)),
)
def rel_entr(x: Any, y: Any) -> Tensor:
    """x * log(x / y); 0 where x is 0 and y is not negative, else inf outside positive numbers; the shapes broadcast.

    Where x is 0, the derivative by x is -inf; where y is 0 as well, inf.  It is 0 where an operand is negative.

    >>> import tensorken as tk
    >>> tk.special.rel_entr([0.0, 1.0], [0.5, 1.0]).tolist()
    [0.0, 0.0]
    """
    inside = (x > 0.0) & (y > 0.0)
    a, b = inside.where(x, 1.0), inside.where(y, 1.0)
    value = a * _log_of_quotient(a, b)
    return _beyond(inside, x.eq(0.0) & (y >= 0.0), x.eq(x) & y.eq(y), value, math.inf)


@with_derivatives(
    lambda x, y: ((x < 0.0) | (y < 0.0)).where(0.0, _slope_by_x(x, y)),
    lambda x, y: _slope_of_kl_div(x, y),
)
def kl_div(x: Any, y: Any) -> Tensor:
    """x * log(x / y) - x + y; y where x is 0 and y is not negative, else inf outside positive numbers.

    Where x is 0, the derivative by x is -inf; where y is 0 as well, inf.  It is 0 where an operand is negative.

    >>> import tensorken as tk
    >>> tk.special.kl_div([0.0, 1.0], [0.5, 1.0]).tolist()
    [0.5, 0.0]
    """
    inside = (x > 0.0) & (y > 0.0)
    a, b = inside.where(x, 1.0), inside.where(y, 1.0)
    near = (a < b + b) & (b < a + a)
    distance = near.where((a - b) / b, 0.0)  # there the terms cancel: b * ((1 + d) * (log1p(d) - d) + d * d)
    close = b * ((distance + 1.0) * log1p_minus(distance, distance + 1.0) + distance * distance)
    value = near.where(close, a * _log_of_quotient(a, b) - (a - b))
    is_zero = x.eq(0.0) & (y >= 0.0)
    result: Tensor = _beyond(inside, is_zero, x.eq(x) & y.eq(y), value, math.inf) + is_zero.where(y, 0.0)
    return result


def _slope_by_x(x: Any, y: Any) -> Any:
    """log(x / y); inf where both are 0."""
    origin = x.eq(0.0) & y.eq(0.0)
    return _log_of_quotient(origin.where(1.0, x), y)


def _log_of_quotient(a: Any, b: Any) -> Any:
    """log(a / b), without rounding a / b where it is near 1."""
    near = (a < b + b) & (b < a + a)
    close = near.where((a - b) / near.where(b, 1.0), 0.0).log1p()
    return near.where(close, near.where(1.0, a).log() - near.where(1.0, b).log())


def _beyond(inside: Any, zero: Any, known: Any, value: Any, limit: float) -> Tensor:
    """The value inside a domain, 0 at its edge, the limit beyond, and NaN for NaN."""
    result: Tensor = inside.where(value, zero.where(0.0, known.where(limit, math.nan)))
    return result


def logit(p: ArrayLike) -> Tensor:
    """log(p / (1 - p)), the inverse of `expit`, elementwise; infinite at 0 and 1, NaN outside.

    >>> import tensorken as tk
    >>> tk.special.logit([0.0, 0.5, 1.0]).tolist()
    [-inf, 0.0, inf]
    """
    return _logit(p)


@with_derivative(lambda p: 1.0 / p + 1.0 / (1.0 - p))
def _logit(p: Any) -> Tensor:
    """Near 1/2 by log1p, since the logarithm is small there."""
    near = (p - 0.5).abs() < 0.25
    inner = near.where(p, 0.5)
    outer = near.where(0.25, p)
    central = ((inner + inner - 1.0) / (1.0 - inner)).log1p()
    result: Tensor = near.where(central, outer.log() - (-outer).log1p())
    return result


def expit(x: ArrayLike) -> Tensor:
    """1 / (1 + exp(-x)), the logistic function, elementwise: the same as `tk.sigmoid`.

    >>> import tensorken as tk
    >>> tk.special.expit([-1000.0, 0.0]).tolist()
    [0.0, 0.5]
    """
    return floating_of(as_tensor(x)).sigmoid()
