"""logsumexp computes rows block by block, and rows of every kind are right in one array."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from core.tests.each import each_of
from core.tests.support import peak_of
from tensorken_numpy.backend import Numpy
from tensorken_numpy.exponential_sums import _BLOCK

RAW = Numpy()
LENGTH = 40


def rows(dtype: str) -> Any:
    """Rows whose exponentials overflow, underflow or do neither; with infinities and NaN; with results near 0."""
    rng = np.random.default_rng(0)
    table: list[Any] = [
        rng.normal(0, 1, LENGTH),
        rng.normal(0, 30, LENGTH),
        rng.normal(-300, 1, LENGTH),
        rng.normal(300, 1, LENGTH),
        np.full(LENGTH, -math.log(LENGTH)),
        [-1e-3, *[-60.0] * (LENGTH - 1)],
        [0.0, *[-80.0] * (LENGTH - 1)],
        [*[-math.inf] * (LENGTH - 1), 1.25],
        np.full(LENGTH, -math.inf),
        [math.inf, *[0.0] * (LENGTH - 1)],
        [math.inf, -math.inf] * (LENGTH // 2),
        [math.nan, *[0.0] * (LENGTH - 1)],
        [math.nan, math.inf] * (LENGTH // 2),
    ]
    return np.array(table).astype(dtype)


def exact(row: Any) -> float:
    """In Python's floats, without cancellation where the result is small."""
    values = [float(v) for v in row]
    if any(v != v for v in values):
        return math.nan
    top = max(values)
    if math.isinf(top):
        return top
    rest = sorted(values)[:-1]
    return top + math.log1p(math.fsum([math.exp(v - top) for v in rest]))


def check(x: Any, found: Any, axis: int) -> None:
    table = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
    eps, least = float(np.finfo(x.dtype).eps), float(np.finfo(x.dtype).smallest_subnormal)
    for row, y in zip(table, found.reshape(-1), strict=True):
        expected = exact(row)
        if math.isnan(expected) or math.isinf(expected):
            np.testing.assert_equal(float(y), expected)
        else:
            top = max(float(v) for v in row)
            assert abs(float(y) - expected) <= 4 * eps * max(abs(expected), abs(top)) + least, (
                float(y),
                expected,
            )


@each_of(("dtype", "count"), [(dtype, n) for dtype in ("float16", "float32", "float64") for n in (1, 3, 200)])
def test_rows_of_every_kind(dtype: str, count: int) -> None:
    """Rows of one kind alone, all kinds in one block, and many blocks; along the last axis, the first, and two
    axes.
    """
    given = rows(dtype)
    for row in given:
        x = np.array([row] * count)
        check(x, RAW.logsumexp(x, (1,)), 1)
    x = np.concatenate([given] * count)
    assert count < 200 or x.size > 3 * _BLOCK
    found = RAW.logsumexp(x, (1,))
    assert (found.shape, found.dtype) == ((len(x), 1), x.dtype)
    check(x, found, 1)
    for other in (np.asfortranarray(x), np.flip(np.flip(x).copy())):
        check(other, RAW.logsumexp(other, (1,)), 1)
    transposed = np.array(x.T, order="C")
    check(transposed, RAW.logsumexp(transposed, (0,)), 0)
    cube = x.reshape(-1, 1, 5, 8)
    found = RAW.logsumexp(cube, (2, 3))
    assert found.shape == (len(x), 1, 1, 1)
    check(x, found, 1)
    np.testing.assert_array_equal(RAW.logsumexp(x, ()), x)


def test_logsumexp_needs_little_memory() -> None:
    x = np.zeros((500, 4000), np.float32)
    for special in (0.0, 200.0, -np.inf):
        x[7, 7] = special
        assert peak_of(lambda: RAW.logsumexp(x, (1,))) < x.nbytes / 4
