"""Bodies of softmax, log_softmax and logsumexp.

All compute exp(x - top), where top is the maximum.  The rounding error of x - top grows with its size and would cost
small terms many units in the last place, so the result is corrected by it.  Each maximum contributes exactly 1, also
an infinite one.  The other terms are summed separately and go through log1p, which keeps a small sum.  Narrower floats
are computed in float32.
"""

from __future__ import annotations

from typing import Any

from tensorken_core.language.bodies.arithmetic import in_float32
from tensorken_core.language.shapes import Axes

Tensor = Any


@in_float32
def softmax(x: Tensor, axes: Axes) -> Tensor:
    if x.size == 0:
        return x
    top, is_top = _maximum(x, axes)
    powers = is_top.where(1.0, _exp_below_maximum(x, top))
    return powers / powers.sum(axes, keepdims=True)


@in_float32
def log_softmax(x: Tensor, axes: Axes) -> Tensor:
    if x.size == 0:
        return x
    top, is_top = _maximum(x, axes)
    return is_top.where(0.0, x - top) - _log_of_sum(x, top, is_top, axes)


@in_float32
def logsumexp(x: Tensor, axes: Axes) -> Tensor:
    if x.size == 0:
        return x.sum(axes, keepdims=True).log()
    top, is_top = _maximum(x, axes)
    return top + _log_of_sum(x, top, is_top, axes)


def _maximum(x: Tensor, axes: Axes) -> tuple[Tensor, Tensor]:
    """The maximum over axes, and the mask of the elements equal to it."""
    top = x.max(axes, keepdims=True)
    return top, x.eq(top)


def _log_of_sum(x: Tensor, top: Tensor, is_top: Tensor, axes: Axes) -> Tensor:
    """log(sum(exp(x - top))) as log1p of (the number of maxima - 1) + (the sum of the other terms)."""
    rest = is_top.where(0.0, _exp_below_maximum(x, top)).sum(axes, keepdims=True)
    return (rest + (is_top.astype(x.dtype).sum(axes, keepdims=True) - 1.0)).log1p()


def _exp_below_maximum(x: Tensor, top: Tensor) -> Tensor:
    """exp(x - top) for x < top, corrected by the rounding error of x - top.

    That error is computed exactly: D. E. Knuth, "The Art of Computer Programming", volume 2, section 4.2.2, theorem B.
    """
    difference = x - top
    minus_top = difference - x
    lost = (x - (difference - minus_top)) - (top + minus_top)
    y = difference.exp()
    return y + y * (difference > float("-inf")).where(lost, 0.0)
