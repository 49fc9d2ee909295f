"""Products are exact before they are rounded; bits and neighbouring floats are those of the dtype."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tensorken_core.language.dtypes import FLOATS, DType, bfloat16, float16, float32, float64, int32, int64
from tensorken_reference.backend import Reference
from tensorken_reference.products import row_products, running_products
from tensorken_reference.rounding import round_doubles

inf, nan = math.inf, math.nan
EVERY_FLOAT = pytest.mark.parametrize("dtype", FLOATS, ids=str)
BITS = {float16: np.int16, bfloat16: np.int16, float32: np.int32, float64: np.int64}


def same(a: float, b: float) -> bool:
    return (a != a and b != b) or (a == b and math.copysign(1.0, a) == math.copysign(1.0, b))


def is_nearest(y: float, exact: Fraction, dtype: DType) -> bool:
    """Whether no neighbouring float is nearer to the exact value, which is within the dtype's range."""
    kind = np.dtype(dtype.name).type
    around = [float(np.nextafter(kind(y), kind(side))) for side in (-inf, inf)]
    return all(abs(exact - Fraction(y)) <= abs(exact - Fraction(v)) for v in around if math.isfinite(v))


@EVERY_FLOAT
def test_products_are_rounded_once(dtype: DType) -> None:
    rng = random.Random(1)
    for length in range(1, 40):
        row = round_doubles([rng.uniform(-1.7, 1.7) for _ in range(length)], dtype)
        running = running_products(row, dtype)
        assert running[-1] == row_products([row], dtype)[0]
        exact = Fraction(1)
        for value, y in zip(row, running, strict=True):
            exact *= Fraction(value)
            assert is_nearest(y, exact, dtype)


@EVERY_FLOAT
def test_products_of_specials(dtype: DType) -> None:
    top, bottom = (
        float(ml_dtypes.finfo(dtype.name).max),
        float(ml_dtypes.finfo(dtype.name).smallest_subnormal),
    )
    rows: list[tuple[list[float], float]] = [
        ([], 1.0),
        ([0.0, -1.0], -0.0),
        ([-0.0, -3.0, -2.0], -0.0),
        ([inf, -2.0], -inf),
        ([inf, 0.0], nan),
        ([0.0, nan], nan),
        ([top, 2.0], inf),
        ([top, 2.0, 0.5], top),
        ([top, -2.0], -inf),
        ([bottom, 0.5], 0.0),
        ([-bottom, 0.25], -0.0),
        ([bottom, 0.5, 2.0], bottom),
    ]
    for row, expected in rows:
        assert same(row_products([row], dtype)[0], expected), row


def test_products_of_integers_wrap() -> None:
    row = [3, -7, 2**20, 2**20, 5]
    with np.errstate(over="ignore"):
        for dtype in (int32, int64):
            assert (
                running_products(row, dtype)
                == np.cumprod(np.array(row, dtype.name), dtype=dtype.name).tolist()
            )
    assert row_products([[], row], int32) == [1, 0]


@EVERY_FLOAT
def test_bits_and_back(dtype: DType, reference: Reference) -> None:
    info: Any = ml_dtypes.finfo(dtype.name)
    values = [0.0, -0.0, 1.0, -1.5, inf, -inf, nan, -nan, info.max, info.tiny, info.smallest_subnormal]
    x = reference.new((11,), [float(v) for v in values], dtype)
    bits = np.array(x.data, dtype.name).view(BITS[dtype])
    found = reference.to_bits(x)
    assert found.data == tuple(bits.tolist())
    assert found.dtype is (int64 if dtype is float64 else int32)
    if dtype.wide is dtype:
        back = reference.from_bits(found)
        assert back.dtype is dtype
        assert reference.to_bits(back).data == found.data


@EVERY_FLOAT
def test_neighbours(dtype: DType, reference: Reference) -> None:
    info: Any = ml_dtypes.finfo(dtype.name)
    values = [0.0, 1.0, 1.5, inf, nan, info.max, info.tiny, info.smallest_subnormal, 2.0, 0.1]
    values = [float(v) * sign for v in values for sign in (1, -1)]
    a, b = np.meshgrid(np.array(values, dtype.name), np.array(values, dtype.name))
    found = reference.nextafter(*[reference.new((v.size,), v.ravel().tolist(), dtype) for v in (a, b)])
    with np.errstate(all="ignore"):
        expected = np.where(a == b, b, np.nextafter(a, b)).ravel().tolist()  # numpy returns a for float16
    assert all(map(same, found.data, expected))
