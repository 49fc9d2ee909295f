"""softmax, log_softmax and logsumexp; their default bodies explain the method.

Narrow floats go through float64, where neither x - max(x) nor a sum has an error that matters.  Contiguous rows are
computed block by block, so that temporaries stay in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorken_numpy.arrays import Array, Sizes
from tensorken_numpy.sums import sum_axes, wide_sum_of_rows

_BLOCK = 32768
"""How many elements are computed at a time, so that temporaries stay in the cache."""


_EXP_RANGE = 40.0
"""Within +-40 exponentials are normal numbers, and so is a sum of 2**60 of them."""

_MIN_SUM = math.exp(-_EXP_RANGE)

_NEGLIGIBLE = -_EXP_RANGE - 105.0
"""exp(_NEGLIGIBLE), divided by the smallest sum, is less than half of the smallest float32."""

_MIN_DISTANCE = 1.0
"""If all results of a row are at least this far below 0, the error of float32's logarithm does not matter."""

_MIN_MAGNITUDE: dict[Any, float] = {
    np.dtype("float16"): 2.0**-6,
    np.dtype("float32"): 1.0,
    np.dtype("float64"): 1.0,
}
"""If a result of `logsumexp`, or the maximum, is at least this large, it may have the absolute error of a sum of
rounded exponentials."""

_MIN_WIDE_SUM = 1.0 + 2.0**-20
"""If a sum of exponentials, whose largest is 1, is at least this large, its logarithm has all digits of float32."""


def has_contiguous_rows(x: Array, axes: Sizes) -> bool:
    """Whether the axes are the last ones of a row-major array of narrow floats."""
    return (
        x.dtype != np.float64
        and x.flags.c_contiguous
        and bool(axes)
        and axes[-1] == x.ndim - 1
        and len(axes) == x.ndim - axes[0]
    )


def softmax_of_rows(x: Array, axes: Sizes, y: Array) -> None:
    """Write exp(x) / sum(exp(x)) into y; x satisfies `has_contiguous_rows`.

    A block of float32 is computed in float32 if no exponential overflows, and exponentials that underflow are
    negligible in the sum: the maximum is not subtracted, so only exp and the sum round.
    """
    length = math.prod(x.shape[axes[0] :])
    xs, ys = x.reshape(-1, length), y.reshape(-1, length)
    step = max(1, _BLOCK // length)
    for start in range(0, len(xs), step):
        a, b = xs[start : start + step], ys[start : start + step]
        if x.dtype == np.float32 and _fits_float32(a):
            np.exp(a, b)
            total = sum_axes(b, (1,))
            if total.min() >= _MIN_SUM:
                np.divide(b, total, b)
                continue
        _wide_softmax(a, b)


def _fits_float32(x: Array) -> bool:
    """Whether no exponential overflows, and each is either a normal number or negligible in the smallest sum."""
    if not x.max() < _EXP_RANGE:
        return False
    return bool(x.min() > -_EXP_RANGE or not ((x < -_EXP_RANGE) & (x > _NEGLIGIBLE)).any())


def _wide_softmax(x: Array, y: Array) -> None:
    for a, b, wide, total in _shifted_rows(x, (1,), y):
        np.exp(wide, wide)
        sum_axes(wide, (1,), total)
        np.multiply(wide, 1.0 / total, wide)  # in float64 the rounding of the reciprocal does not matter
        np.copyto(b, wide, "unsafe")
        if not math.isfinite(np.add.reduce(total, None)):  # NaN, or infinite operands
            for i in np.flatnonzero(~np.isfinite(total)):
                b[i] = _softmax(a[i], (0,))


def log_softmax_of_rows(x: Array, axes: Sizes, y: Array) -> None:
    """Write x - log(sum(exp(x))) into y; x satisfies `has_contiguous_rows`.

    A block of float32 is computed in float32 as for softmax, if in addition no result is near 0, where the error of
    the logarithm would matter.
    """
    length = math.prod(x.shape[axes[0] :])
    xs, ys = x.reshape(-1, length), y.reshape(-1, length)
    step = max(1, _BLOCK // length)
    for start in range(0, len(xs), step):
        a, b = xs[start : start + step], ys[start : start + step]
        if x.dtype == np.float32 and _fits_float32(a):
            np.exp(a, b)
            log = np.log(wide_sum_of_rows(b)[:, None])
            if (log - np.maximum.reduce(a, 1, keepdims=True)).min() >= _MIN_DISTANCE:
                upper = log.astype(np.float32)
                np.subtract(a, upper, b)
                np.subtract(b, (log - upper).astype(np.float32), b)
                continue
        _wide_log_softmax(a, b)


def _wide_log_softmax(x: Array, y: Array) -> None:
    for a, b, wide, total in _shifted_rows(x, (1,), y):
        sum_axes(np.asarray(np.exp(wide)), (1,), total)
        np.subtract(wide, np.log(total), wide)
        np.copyto(b, wide, "unsafe")
        if not np.minimum.reduce(total, None) >= _MIN_WIDE_SUM:
            for i in np.flatnonzero(~(total >= _MIN_WIDE_SUM)):
                b[i] = _log_softmax(a[i], (0,))


def _shifted_rows(x: Array, axes: Sizes, y: Array) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Yield each block of rows, its part of y, x - max(x) in float64, and an array for the sums."""
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
    """Apply `of_rows` to an array of contiguous rows, else `otherwise`; the result has the shape of x."""
    if x.size == 0:
        return x
    if has_contiguous_rows(x, axes):
        y = np.empty_like(x)
        of_rows(x, axes, y)
        return y
    return otherwise(x, axes)


def softmax(x: Array, axes: Sizes) -> Array:
    """exp(x) / sum(exp(x))."""
    return _by_rows(x, axes, softmax_of_rows, _softmax)


def _softmax(x: Array, axes: Sizes) -> Array:
    _, difference, error = _shifted(x, axes)
    y = _exponentials(difference, error)
    y /= np.add.reduce(y, axes, keepdims=True)
    return y.astype(x.dtype, copy=False)


def log_softmax(x: Array, axes: Sizes) -> Array:
    """x - log(sum(exp(x)))."""
    return _by_rows(x, axes, log_softmax_of_rows, _log_softmax)


def _log_softmax(x: Array, axes: Sizes) -> Array:
    _, difference, error = _shifted(x, axes)
    y: Array = difference - _log_of_sum(difference, error, axes)
    return y.astype(x.dtype, copy=False)


def logsumexp(x: Array, axes: Sizes) -> Array:
    """log(sum(exp(x))), row by row; rows that are not contiguous are copied first."""
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
    """Write log(sum(exp(x))) along the last axes into the row-major array y.

    Blocks of narrow floats are computed in float32: the errors of exponentials and their sum are small relative to
    a result, or a maximum, far from 0.  All other rows, and rows with infinities or NaN, are computed exactly.
    """
    length = math.prod(x.shape[axes[0] :])
    xs, ys = x.reshape(-1, length), y.reshape(-1)
    magnitude, wide = _MIN_MAGNITUDE[x.dtype], x.dtype == np.float64
    step = max(1, min(len(xs), _BLOCK // length))
    scratch = np.empty((step, length), np.float64 if wide else np.float32)
    for start in range(0, len(xs), step):
        rows = xs[start : start + step]
        a = exponentials = scratch[: len(rows)]
        if x.dtype == np.float16:
            np.copyto(exponentials, rows)
        else:
            a = rows
        maximum: Any = 0.0
        if _fits_float32(a):
            np.exp(a, exponentials)
        else:
            maximum = np.maximum.reduce(a, 1)
            np.subtract(a, maximum[:, None], exponentials)
            np.exp(exponentials, exponentials)
        total = sum_axes(exponentials, (1,)).reshape(-1) if wide else wide_sum_of_rows(exponentials)
        result = np.log(total) + maximum
        ys[start : start + step] = result
        accurate = np.isfinite(result) & (total >= _MIN_SUM)
        accurate &= (np.abs(result) >= magnitude) | (np.abs(maximum) >= magnitude)
        if not accurate.all():
            others = np.flatnonzero(~accurate)
            ys[start + others] = _logsumexp(rows[others], (1,)).reshape(-1)


def _logsumexp(x: Array, axes: Sizes) -> Array:
    maximum, difference, error = _shifted(x, axes)
    y: Array = (maximum + _log_of_sum(difference, error, axes)).astype(x.dtype, copy=False)
    return y


def _shifted(x: Array, axes: Sizes) -> tuple[Array, Array, Array | None]:
    """The maximum; x minus the maximum, rounded, or 0 where both are infinite; the rounding error of the difference."""
    maximum: Array = np.maximum.reduce(x, axes, keepdims=True)
    difference = np.asarray(np.subtract(x, maximum, dtype=np.float64))
    error = None
    if x.dtype == np.float64:
        minus_maximum = difference - x
        error = (x - (difference - minus_maximum)) - (maximum + minus_maximum)
    if not np.isfinite(maximum).all():
        np.copyto(difference, 0.0, where=x == maximum)
    return maximum, difference, error


def _exponentials(difference: Array, error: Array | None) -> Array:
    y: Array = np.asarray(np.exp(difference))
    if error is not None:
        np.add(y, y * error, y, where=(y > 0.0) & (y < 1.0))  # infinite operands have no rounding error
    return y


def _log_of_sum(difference: Array, error: Array | None, axes: Sizes) -> Any:
    """log1p of (the number of maxima - 1) plus the sum of the other exponentials."""
    is_maximum = difference == 0.0
    y = _exponentials(difference, error)
    np.copyto(y, 0.0, where=is_maximum)
    count = np.add.reduce(is_maximum, axes, np.float64, keepdims=True)
    return np.log1p(np.add.reduce(y, axes, keepdims=True) + (count - 1.0))
