"""log(sum(exp(x))) and the weights of its terms; their default bodies tell how and why.

Narrow floats go by way of float64, where neither x - top nor a sum loses anything that would tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_numpy.contraction import Array, Sizes


def softmax(x: Array, axes: Sizes) -> Array:
    """exp(x) / sum(exp(x))."""
    if x.size == 0:
        return x
    _, difference, lost = _below_top(x, axes)
    y = _powers(difference, lost)
    y /= np.add.reduce(y, axes, keepdims=True)
    return y.astype(x.dtype, copy=False)


def log_softmax(x: Array, axes: Sizes) -> Array:
    """x - log(sum(exp(x)))."""
    if x.size == 0:
        return x
    _, difference, lost = _below_top(x, axes)
    y: Array = difference - _log_of_sum(difference, lost, axes)
    return y.astype(x.dtype, copy=False)


def logsumexp(x: Array, axes: Sizes) -> Array:
    """log(sum(exp(x)))."""
    if x.size == 0:
        y: Array = np.log(np.add.reduce(x, axes, keepdims=True))
        return y
    top, difference, lost = _below_top(x, axes)
    y = top + _log_of_sum(difference, lost, axes)
    return y.astype(x.dtype, copy=False)


def _below_top(x: Array, axes: Sizes) -> tuple[Array, Array, Array | None]:
    """The maximum; x minus it, rounded, 0 also where both are infinite; what the rounding lost."""
    top: Array = np.maximum.reduce(x, axes, keepdims=True)
    difference = np.asarray(np.subtract(x, top, dtype=np.float64))
    lost = None
    if x.dtype == np.float64:
        minus_top = difference - x
        lost = (x - (difference - minus_top)) - (top + minus_top)
    if not np.isfinite(top).all():
        np.copyto(difference, 0.0, where=x == top)
    return top, difference, lost


def _powers(difference: Array, lost: Array | None) -> Array:
    y: Array = np.asarray(np.exp(difference))
    if lost is not None:
        np.add(y, y * lost, y, where=(y > 0.0) & (y < 1.0))  # of an infinite operand nothing is lost
    return y


def _log_of_sum(difference: Array, lost: Array | None, axes: Sizes) -> Any:
    """log1p(the number of maxima - 1, and the sum of the others)."""
    is_top = difference == 0.0
    y = _powers(difference, lost)
    np.copyto(y, 0.0, where=is_top)
    count = np.add.reduce(is_top, axes, np.float64, keepdims=True)
    return np.log1p(np.add.reduce(y, axes, keepdims=True) + (count - 1.0))
