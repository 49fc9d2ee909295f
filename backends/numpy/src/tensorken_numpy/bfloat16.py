"""bfloat16, whose numpy dtype is that of the package ml_dtypes, an extra.

The elementwise functions of ml_dtypes compute in float32 and round once, like all functions here.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorken_numpy.arrays import Array

try:
    from ml_dtypes import bfloat16
except ImportError:
    BFLOAT16: Any = None
else:
    BFLOAT16 = np.dtype(bfloat16)
"""The dtype of numpy's arrays; None if ml_dtypes is not installed."""

INSTALL = "pip install 'tensorken-numpy[bfloat16]'"

_LARGE = 2**40
"""From this integer on the last 16 bits are only compared with 0: the bits before them suffice to round."""


def in_float32(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of arrays of one dtype, then params; it computes bfloat16 in float32."""
    if BFLOAT16 is None:
        return function

    @functools.wraps(function)
    def call(x: Array, *others: Any) -> Any:
        if x.dtype is not BFLOAT16:
            return function(x, *others)
        wide = [y.astype(np.float32) if getattr(y, "dtype", None) is BFLOAT16 else y for y in (x, *others)]
        result = function(*wide)
        return result.astype(BFLOAT16) if result.dtype == np.float32 else result

    return call


def rounded(x: Array) -> Array:
    """Numbers of any dtype as bfloat16, rounded once.

    float64 goes by way of float32, which ml_dtypes does too, but rounded to odd there (S. Boldo, G. Melquiond,
    "Emulation of a FMA and correctly rounded sums", 2008, theorem 1).
    """
    if x.dtype.kind in "iu" and x.itemsize > 2:
        x = _with_sticky_bit(x) if x.itemsize == 8 else x.astype(np.float64)
    if x.dtype != np.float64:
        return x.astype(BFLOAT16)
    y = np.asarray(x.astype(np.float32))
    bits = y.view(np.int32)
    back = y.astype(np.float64)
    inexact = (back != x) & (bits & 1 == 0) & np.isfinite(y)
    odd = bits + np.where(inexact, np.where(np.abs(back) < np.abs(x), 1, -1), 0).astype(np.int32)
    return odd.view(np.float32).astype(BFLOAT16)


def _with_sticky_bit(x: Array) -> Array:
    """Integers as float64, which has no more than 48 bits of large ones, the last of them set if others were."""
    sticky = (x >> 16 << 16) | np.where(x & 0xFFFF, 1 << 16, 0).astype(x.dtype)
    small = x < _LARGE if x.dtype.kind == "u" else (x < _LARGE) & (x > -_LARGE)
    result: Array = np.where(small, x, sticky).astype(np.float64)
    return result
