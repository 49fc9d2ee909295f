"""Ulp: the distance of a result from the true one, in representable numbers.

All NaNs are alike.  The two zeros are not: a zero with the wrong sign has the largest distance, since the sign of a
zero changes the result of a quotient or a logarithm.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.numbers.host_arrays import BITS, is_float
from tensorken_conformance.numbers.rounding import FORMATS

Array = np.ndarray[Any, Any]

FAR = 2**62
"""The largest distance: of NaN from a number, of a zero from the other zero."""


def distance(got: Array, expected: Array) -> Array:
    """The number of representable steps from results to the expected values, as int64, at most FAR.

    Infinity is the number after the largest.  The distance of ints is their difference, that of bools is 1.

    >>> distance(np.float32([1.0, np.inf, 0.0]), np.float32([1.0000001, 3.4028235e38, -0.0])).tolist()
    [1, 1, 4611686018427387904]
    """
    if not is_float(got):
        return np.asarray(np.minimum(abs(got.astype(object) - expected.astype(object)), FAR)).astype(np.int64)
    bits = BITS[got.dtype.name]
    a, b = np.ascontiguousarray(got).view(bits), np.ascontiguousarray(expected).view(bits)
    same = a == b
    if same.all():
        return np.zeros(got.shape, np.int64)
    mask = np.iinfo(bits).max
    up, down = (a & mask).astype(np.int64), (b & mask).astype(np.int64)
    opposite = (a < 0) != (b < 0)
    apart = np.where(opposite, np.minimum(up, FAR // 2) + np.minimum(down, FAR // 2), np.abs(up - down))
    nans = np.isnan(got), np.isnan(expected)
    wrong = (nans[0] != nans[1]) | (opposite & ((up == 0) | (down == 0)))
    result: Array = np.where(wrong, FAR, np.where(nans[0] & nans[1], 0, np.minimum(apart, FAR)))
    return result


def distance_beside(got: Array, expected: Array, operands: tuple[Array, ...]) -> Array:
    """The distance in the spacing of the largest operand, if that is larger than the result.

    The rounding of an operand alone may change the result by as much.

    >>> a = np.float32([1.0])
    >>> distance_beside(np.float32([1e-7]), np.float32([2e-7]), (a, -a)).tolist()
    [1]
    """
    found = distance(got, expected)
    if not found.any():
        return found
    largest = np.max(np.abs(np.stack([expected, *operands])), 0)
    with np.errstate(all="ignore"):
        apart = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        spacings = np.ceil(
            apart
            / np.spacing(np.minimum(largest, np.array(FORMATS[got.dtype.name].max, got.dtype))).astype(
                np.float64
            )
        )
    near = np.isfinite(spacings) & (spacings < found)
    result: Array = np.where(near, np.where(near, spacings, 0).astype(np.int64), found)
    return result
