"""A backend that calls each function of the array API standard directly, which shows how the library differs.

Its base is the project of `tensorken new backend arrays --from array-api`.
"""

from __future__ import annotations

from typing import Any

import array_api_strict as xp
import numpy as np
from tensorken_arrays.backend import Arrays

NAMES = """
    abs sign maximum minimum reciprocal round trunc ceil remainder signbit copysign nextafter neg:negative square pow
    floor_divide shift_left:bitwise_left_shift shift_right:bitwise_right_shift expm1 log1p log2 log10 tan asin acos atan
    atan2 sinh cosh tanh asinh acosh atanh hypot logaddexp lt:less
"""
"""The elementwise ops, each with the name of its function where that is another one."""


class Direct(Arrays):
    """Every op that the standard has, as the library computes it; `Arrays` works around the differences."""

    def cast(self, x: Any, dtype: Any) -> Any:
        return _quiet(xp.astype)(x, getattr(xp, dtype.name))

    def sum(self, x: Any, axes: Any) -> Any:
        return xp.sum(x, axis=axes, keepdims=True, dtype=x.dtype)

    def max(self, x: Any, axes: Any) -> Any:
        return xp.max(x, axis=axes, keepdims=True)

    def min(self, x: Any, axes: Any) -> Any:
        return xp.min(x, axis=axes, keepdims=True)

    def argmax(self, x: Any, axis: int) -> Any:
        return xp.astype(xp.argmax(x, axis=axis, keepdims=True), xp.int32)

    def argmin(self, x: Any, axis: int) -> Any:
        return xp.astype(xp.argmin(x, axis=axis, keepdims=True), xp.int32)

    def prod(self, x: Any, axes: Any) -> Any:
        return _quiet(xp.prod)(x, axis=axes, keepdims=True, dtype=x.dtype)

    def cumsum(self, x: Any, axis: int) -> Any:
        return _quiet(xp.cumulative_sum)(x, axis=axis, dtype=x.dtype)

    def cumprod(self, x: Any, axis: int) -> Any:
        return _quiet(xp.cumulative_prod)(x, axis=axis, dtype=x.dtype)

    def sort(self, x: Any, axis: int) -> Any:
        return xp.sort(x, axis=axis)

    def argsort(self, x: Any, axis: int) -> Any:
        return xp.astype(xp.argsort(x, axis=axis), xp.int32)

    def concatenate(self, *pieces: Any) -> Any:
        *arrays, axis = pieces
        return xp.concat(arrays, axis=axis)


def _quiet(function: Any) -> Any:
    """A function that does not warn of special values."""
    return np.errstate(all="ignore")(function)


for _names in NAMES.split():
    _name, _, _other = _names.partition(":")
    _call = _quiet(getattr(xp, _other or _name))
    setattr(Direct, _name, lambda self, *operands, call=_call: call(*operands))
