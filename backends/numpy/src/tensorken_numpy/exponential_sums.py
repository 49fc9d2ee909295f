"""log(sum(exp(x))) and the weights of its terms; their default bodies tell how and why.

Narrow floats go by way of float64, where neither x - top nor a sum loses anything that would tell; their rows, where
these lie one after another, block by block, so that what lies between stays in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorken_numpy.contraction import Array, Sizes
from tensorken_numpy.sums import add_up, wide_sum_of_rows

_BLOCK = 32768
"""How many elements are computed at a time: so few that what lies between stays in the cache."""


_MODERATE = 40.0
"""Powers of operands within this are normal numbers, and so is a sum of 2**60 of them."""

_SMALLEST_SUM = math.exp(-_MODERATE)

_NOTHING = -_MODERATE - 105.0
"""The power of this, over the smallest sum, is less than half of the smallest float32."""

_CLEARLY_BELOW = 1.0
"""How far the results of a row are below 0 at least, where the error of the logarithm, as that of exp, is no matter."""

_CLEAR_OF_ZERO: dict[Any, float] = {
    np.dtype("float16"): 2.0**-6,
    np.dtype("float32"): 1.0,
    np.dtype("float64"): 1.0,
}
"""Results of `logsumexp` this far from 0, or of such maxima, may have the absolute error of a sum of rounded powers."""

_CLEAR = 1.0 + 2.0**-20
"""A sum of powers, of which the largest is 1, that is so far from 1 that its logarithm has all digits of float32."""


def in_rows(x: Array, axes: Sizes) -> bool:
    """Whether the axes are the last ones of a row-major array of narrow floats."""
    return (
        x.dtype != np.float64
        and x.flags.c_contiguous
        and bool(axes)
        and axes[-1] == x.ndim - 1
        and len(axes) == x.ndim - axes[0]
    )


def softmax_of_rows(x: Array, axes: Sizes, y: Array) -> None:
    """exp(x) / sum(exp(x)) of what is `in_rows`, into y.

    Blocks of float32 whose powers neither overflow nor vanish, unless they are nothing beside the sum, stay in float32:
    there nothing is subtracted, so only exp and the sum are not exact.
    """
    length = math.prod(x.shape[axes[0] :])
    xs, ys = x.reshape(-1, length), y.reshape(-1, length)
    step = max(1, _BLOCK // length)
    for start in range(0, len(xs), step):
        a, b = xs[start : start + step], ys[start : start + step]
        if x.dtype == np.float32 and _is_moderate(a):
            np.exp(a, b)
            total = add_up(b, (1,))
            if total.min() >= _SMALLEST_SUM:
                np.divide(b, total, b)
                continue
        _wide_softmax(a, b)


def _is_moderate(x: Array) -> bool:
    """Whether powers do not overflow, and have all digits or are nothing beside a sum that is not too small."""
    if not x.max() < _MODERATE:
        return False
    return bool(x.min() > -_MODERATE or not ((x < -_MODERATE) & (x > _NOTHING)).any())


def _wide_softmax(x: Array, y: Array) -> None:
    for a, b, wide, total in _powers_of_rows(x, (1,), y):
        np.exp(wide, wide)
        add_up(wide, (1,), total)
        np.multiply(wide, 1.0 / total, wide)  # in float64 the rounding of the reciprocal does not tell
        np.copyto(b, wide, "unsafe")
        if not math.isfinite(np.add.reduce(total, None)):  # NaN, or infinite operands
            for i in np.flatnonzero(~np.isfinite(total)):
                b[i] = _softmax(a[i], (0,))


def log_softmax_of_rows(x: Array, axes: Sizes, y: Array) -> None:
    """x - log(sum(exp(x))) of what is `in_rows`, into y.

    Blocks of float32 as for softmax, where moreover no result is near 0: there the error of the logarithm would tell.
    """
    length = math.prod(x.shape[axes[0] :])
    xs, ys = x.reshape(-1, length), y.reshape(-1, length)
    step = max(1, _BLOCK // length)
    for start in range(0, len(xs), step):
        a, b = xs[start : start + step], ys[start : start + step]
        if x.dtype == np.float32 and _is_moderate(a):
            np.exp(a, b)
            log = np.log(wide_sum_of_rows(b)[:, None])
            if (log - np.maximum.reduce(a, 1, keepdims=True)).min() >= _CLEARLY_BELOW:
                upper = log.astype(np.float32)
                np.subtract(a, upper, b)
                np.subtract(b, (log - upper).astype(np.float32), b)
                continue
        _wide_log_softmax(a, b)


def _wide_log_softmax(x: Array, y: Array) -> None:
    for a, b, wide, total in _powers_of_rows(x, (1,), y):
        add_up(np.asarray(np.exp(wide)), (1,), total)
        np.subtract(wide, np.log(total), wide)
        np.copyto(b, wide, "unsafe")
        if not np.minimum.reduce(total, None) >= _CLEAR:
            for i in np.flatnonzero(~(total >= _CLEAR)):
                b[i] = _log_softmax(a[i], (0,))


def _powers_of_rows(x: Array, axes: Sizes, y: Array) -> Iterator[tuple[Array, Array, Array, Array]]:
    """For each block: its rows, those of the result, what they are below their tops, and a place for their sums."""
    length = math.prod(x.shape[axes[0] :])
    xs, ys = x.reshape(-1, length), y.reshape(-1, length)
    step = max(1, min(len(xs), _BLOCK // length))
    scratch, totals = np.empty((step, length)), np.empty((step, 1))
    for start in range(0, len(xs), step):
        a = xs[start : start + step]
        wide, total = scratch[: len(a)], totals[: len(a)]
        np.copyto(wide, a)
        np.copyto(total, np.maximum.reduce(a, 1, keepdims=True))
        np.subtract(wide, total, wide)
        yield a, ys[start : start + step], wide, total


def _by_rows(
    x: Array,
    axes: Sizes,
    of_rows: Callable[[Array, Sizes, Array], None],
    otherwise: Callable[[Array, Sizes], Array],
) -> Array:
    """A result of the shape of x, row by row where x has rows."""
    if x.size == 0:
        return x
    if in_rows(x, axes):
        y = np.empty_like(x)
        of_rows(x, axes, y)
        return y
    return otherwise(x, axes)


def softmax(x: Array, axes: Sizes) -> Array:
    """exp(x) / sum(exp(x))."""
    return _by_rows(x, axes, softmax_of_rows, _softmax)


def _softmax(x: Array, axes: Sizes) -> Array:
    _, difference, lost = _below_top(x, axes)
    y = _powers(difference, lost)
    y /= np.add.reduce(y, axes, keepdims=True)
    return y.astype(x.dtype, copy=False)


def log_softmax(x: Array, axes: Sizes) -> Array:
    """x - log(sum(exp(x)))."""
    return _by_rows(x, axes, log_softmax_of_rows, _log_softmax)


def _log_softmax(x: Array, axes: Sizes) -> Array:
    _, difference, lost = _below_top(x, axes)
    y: Array = difference - _log_of_sum(difference, lost, axes)
    return y.astype(x.dtype, copy=False)


def logsumexp(x: Array, axes: Sizes) -> Array:
    """log(sum(exp(x))), row by row; where elements of a row do not lie next to each other, they are copied first."""
    if x.size == 0:
        empty: Array = np.log(np.add.reduce(x, axes, keepdims=True))
        return empty
    if not axes:
        return _logsumexp(x, axes)
    y = np.empty([1 if i in axes else n for i, n in enumerate(x.shape)], x.dtype)
    kept = [i for i in range(x.ndim) if i not in axes]
    logsumexp_of_rows(x.transpose([*kept, *axes]), tuple(range(len(kept), x.ndim)), y)
    return y


def logsumexp_of_rows(x: Array, axes: Sizes, y: Array) -> None:
    """log(sum(exp(x))) along the last axes, into y, which is row-major.

    Block by block, narrow floats in float32: the errors of the powers and of their sum are small beside a result, or a
    maximum, that is clear of 0.  The other rows, and those with infinities and NaN, are computed exactly, all at once.
    """
    length = math.prod(x.shape[axes[0] :])
    xs, ys = x.reshape(-1, length), y.reshape(-1)
    clear, wide = _CLEAR_OF_ZERO[x.dtype], x.dtype == np.float64
    step = max(1, min(len(xs), _BLOCK // length))
    scratch = np.empty((step, length), np.float64 if wide else np.float32)
    for start in range(0, len(xs), step):
        own = xs[start : start + step]
        a = powers = scratch[: len(own)]
        if x.dtype == np.float16:
            np.copyto(powers, own)
        else:
            a = own
        top: Any = 0.0
        if _is_moderate(a):
            np.exp(a, powers)
        else:
            top = np.maximum.reduce(a, 1)
            np.subtract(a, top[:, None], powers)
            np.exp(powers, powers)
        total = add_up(powers, (1,)).reshape(-1) if wide else wide_sum_of_rows(powers)
        found = np.log(total) + top
        ys[start : start + step] = found
        good = np.isfinite(found) & (total >= _SMALLEST_SUM)
        good &= (np.abs(found) >= clear) | (np.abs(top) >= clear)
        if not good.all():
            rows = np.flatnonzero(~good)
            ys[start + rows] = _logsumexp(own[rows], (1,)).reshape(-1)


def _logsumexp(x: Array, axes: Sizes) -> Array:
    top, difference, lost = _below_top(x, axes)
    y: Array = (top + _log_of_sum(difference, lost, axes)).astype(x.dtype, copy=False)
    return y


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
