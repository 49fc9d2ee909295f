"""Ulp: how far a result is from the true one, counted in representable numbers.

All NaNs are alike.  The two zeros are not: what should be a zero and has the other sign is as far off as can be, since
the sign of a zero decides what a quotient or a logarithm makes of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

FAR = 2**62
"""The distance of what is not near in any sense: NaN from a number, a zero from that of the other sign."""

_BITS: dict[str, Any] = {"float16": np.int16, "float32": np.int32, "float64": np.int64}


def distance(got: Array, expected: Array) -> Array:
    """How many representable numbers lie between results and what they should be, the last one counted.

    An infinity is the number after the largest.  Ints count their difference, bools count 1.

    Args:
        got: results, of any dtype of the language.
        expected: as many of the same dtype.

    Returns:
        int64, FAR at most.

    >>> distance(np.float32([1.0, np.inf, 0.0]), np.float32([1.0000001, 3.4028235e38, -0.0])).tolist()
    [1, 1, 4611686018427387904]
    """
    if got.dtype.kind != "f":
        return _between(got.astype(np.int64), expected.astype(np.int64))
    bits = _BITS[got.dtype.name]
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
    """The same, but counted in the spacing of the largest of the operands where that is larger than the result.

    So is measured what the rounding of an operand alone would change by as much.

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
            apart / np.spacing(np.minimum(largest, np.finfo(got.dtype).max)).astype(np.float64)
        )
    near = np.isfinite(spacings) & (spacings < found)
    result: Array = np.where(near, np.where(near, spacings, 0).astype(np.int64), found)
    return result


def _between(a: Array, b: Array) -> Array:
    """abs(a - b) of int64, FAR at most."""
    halves = np.abs(a // 2 - b // 2)
    result: Array = np.where(halves >= FAR // 2, FAR, np.abs(a - b))
    return np.minimum(result, FAR)
