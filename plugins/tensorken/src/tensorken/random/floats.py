"""Floats made of random bits: uniform, exponential and normal ones, of which the other distributions are made."""

from __future__ import annotations

import math

from tensorken.random.bits import logical_right_shift, words
from tensorken_core.language.dtypes import DType, float64, int32, int64
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor


def fractions(key: Tensor, shape: Shape, dtype: DType) -> Tensor:
    """Multiples of 2**-precision from [0, 1)."""
    precision = dtype.precision
    return _upper_bits(key, shape, dtype, precision).astype(dtype) * 2.0**-precision


def symmetric(key: Tensor, shape: Shape, dtype: DType) -> Tensor:
    """Odd multiples of 2**-precision from (-1, 1)."""
    precision = dtype.precision
    odd = _upper_bits(key, shape, dtype, precision + 1) | 1
    return (odd - (1 << precision)).astype(dtype) * 2.0**-precision


def exponentials(key: Tensor, shape: Shape, dtype: DType) -> Tensor:
    """-log(1 - u), u an odd multiple of 2**-precision from (0, 1)."""
    precision = dtype.precision
    odd = _upper_bits(key, shape, dtype, precision) | 1
    return -(odd.astype(dtype) * -(2.0**-precision)).log1p()


def normals(key: Tensor, shape: Shape, dtype: DType) -> Tensor:
    """sqrt(2) * erfinv(u), u an odd multiple of 2**-precision from (-1, 1)."""
    result: Tensor = symmetric(key, shape, dtype).apply(OPS["erfinv"]) * math.sqrt(2.0)
    return result


def _upper_bits(key: Tensor, shape: Shape, dtype: DType, count: int) -> Tensor:
    """The first `count` of the random bits for each number of a dtype, as a nonnegative integer."""
    wide = int64 if dtype is float64 else int32
    return logical_right_shift(words(key, shape, wide), 8 * wide.itemsize - count)
