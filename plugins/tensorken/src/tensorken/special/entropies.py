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
from tensorken.special.evaluation import in_wide_floats
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = ["entr", "expit", "kl_div", "logit", "rel_entr", "xlog1py", "xlogy"]


@in_wide_floats
def xlogy(x: Any, y: Any) -> Tensor:
    """x * log(y), and 0 where x is 0 and y is a number, elementwise; the shapes broadcast.

    >>> import tensorken as tk
    >>> tk.special.xlogy([0.0, 2.0], [0.0, 1.0]).tolist()
    [0.0, 0.0]
    """
    zero = x.eq(0.0) & ((y <= 0.0) | y.eq(math.inf))
    result: Tensor = x * zero.where(1.0, y).log()
    return result


@in_wide_floats
def xlog1py(x: Any, y: Any) -> Tensor:
    """x * log(1 + y), accurate for small y, and 0 where x is 0 and y is a number, elementwise; the shapes broadcast.

    >>> import tensorken as tk
    >>> tk.special.xlog1py([0.0, 2.0], [-1.0, 0.0]).tolist()
    [0.0, 0.0]
    """
    zero = x.eq(0.0) & ((y <= -1.0) | y.eq(math.inf))
    result: Tensor = x * zero.where(0.0, y).log1p()
    return result


@in_wide_floats
def entr(x: Any) -> Tensor:
    """-x * log(x), 0 at 0 and -inf below, elementwise: the sum over probabilities is their entropy.

    >>> import tensorken as tk
    >>> print(f"{tk.special.entr([0.0, 0.5, 0.9]):.4f}")
    [0.0000 0.3466 0.0948]
    """
    inside = x > 0.0
    value = -x * inside.where(x, 1.0).log()
    return _beyond(inside, x.eq(0.0), x.eq(x), value, -math.inf)


@in_wide_floats
def rel_entr(x: Any, y: Any) -> Tensor:
    """x * log(x / y); 0 where x is 0 and y is not negative, else inf outside positive numbers; the shapes broadcast.

    >>> import tensorken as tk
    >>> tk.special.rel_entr([0.0, 1.0], [0.5, 1.0]).tolist()
    [0.0, 0.0]
    """
    inside = (x > 0.0) & (y > 0.0)
    a, b = inside.where(x, 1.0), inside.where(y, 1.0)
    value = a * _log_of_quotient(a, b)
    return _beyond(inside, x.eq(0.0) & (y >= 0.0), x.eq(x) & y.eq(y), value, math.inf)


@in_wide_floats
def kl_div(x: Any, y: Any) -> Tensor:
    """x * log(x / y) - x + y; y where x is 0 and y is not negative, else inf outside positive numbers.

    >>> import tensorken as tk
    >>> tk.special.kl_div([0.0, 1.0], [0.5, 1.0]).tolist()
    [0.5, 0.0]
    """
    inside = (x > 0.0) & (y > 0.0)
    a, b = inside.where(x, 1.0), inside.where(y, 1.0)
    value = a * _log_of_quotient(a, b) - (a - b)
    is_zero = x.eq(0.0) & (y >= 0.0)
    result: Tensor = _beyond(inside, is_zero, x.eq(x) & y.eq(y), value, math.inf) + is_zero.where(y, 0.0)
    return result


def _log_of_quotient(a: Any, b: Any) -> Any:
    """log(a / b), without rounding a / b where it is near 1."""
    near = (a < b + b) & (b < a + a)
    return near.where(((a - b) / b).log1p(), near.where(1.0, a).log() - near.where(1.0, b).log())


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


@in_wide_floats
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
