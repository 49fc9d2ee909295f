"""Sums of many elements: as accurate as numpy's own for any length, and the same compiled or not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken_numpy.backend import Numpy
from tensorken_numpy.contraction import contract, is_column_major
from tensorken_numpy.sums import (
    BLAS_MAX_ROW,
    BLAS_MIN_SIZE,
    MAX_FLOAT32_SUM,
    sum_axes,
    sums_columns,
    sums_rows,
    wide_sum_of_rows,
)

LENGTHS = [4, 5, 7, 64, 65, 257, 512, 513, 1000, 1021, 2048, 4096, 4099, 6007, 12345, 65536, 100_003]
"""Short, long and prime lengths, and lengths that divide evenly."""


def drawn(dtype: str, *shape: int) -> Any:
    return np.random.default_rng(len(shape)).normal(1.0, 3.0, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", LENGTHS)
def test_errors_are_those_of_short_sums(length: int, dtype: str) -> None:
    """At most BLAS_MAX_ROW additions in sequence: in pieces, pieces of pieces and a rest."""
    for count in (1, 3, -(-BLAS_MIN_SIZE // length)):
        x = drawn(dtype, count, length)
        found = sum_axes(x, (1,))
        assert (found.shape, found.dtype) == ((count, 1), x.dtype)
        eps = float(np.finfo(dtype).eps) / 2
        for row, y in zip(x.astype(float), found[:, 0], strict=True):
            bound = (BLAS_MAX_ROW + 20) * eps * math.fsum(abs(row))
            assert abs(float(y) - math.fsum(row)) <= bound


def test_mean_errors_are_at_most_twice_those_of_pairwise_sums() -> None:
    x = np.abs(drawn("float32", 200, 10_000))
    expected = np.array([math.fsum(row) for row in x.astype(float)])
    ours, theirs = [
        np.abs(y.astype(float) - expected).mean() for y in (sum_axes(x, (1,))[:, 0], np.add.reduce(x, 1))
    ]
    assert ours <= 2 * theirs


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", LENGTHS)
def test_sums_over_the_first_axis(count: int, dtype: str) -> None:
    """In pieces as above, or row after row as numpy does."""
    for length in (1, 3, -(-BLAS_MIN_SIZE // count)):
        x = drawn(dtype, count, length)
        found = sum_axes(x, (0,))
        assert (found.shape, found.dtype) == ((1, length), x.dtype)
        eps = float(np.finfo(dtype).eps) / 2
        for column, y in zip(x.T.astype(float), found[0], strict=True):
            assert abs(float(y) - math.fsum(column)) <= count * eps * math.fsum(abs(column))


def test_dot_products_of_column_major_operands() -> None:
    a, b = drawn("float32", 300, 40).T[:, None], drawn("float32", 300, 1, 40).T
    assert (
        is_column_major(a[:, 0])
        and is_column_major(b[:, 0])
        and not is_column_major(np.ascontiguousarray(a[:, 0]))
    )
    found = contract(a, b, (2,))
    expected = (a.astype(float) * b).sum(2, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-3)
    compiled = tk.jit(lambda a, b: (a * b).sum(0))
    x, y = tk.tensor(a[:, 0].T), tk.tensor(b[:, 0].T)
    assert compiled(x, y).tolist() == (x * y).sum(0).tolist() == found[:, 0, 0].tolist()


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
def test_any_axes_and_any_layout(axes: tuple[int, ...]) -> None:
    x = drawn("float64", 20, 30, 40)
    for view in (x, x.T, x[::-1], x[:, 3:], x[..., ::2], np.broadcast_to(x[:1], x.shape)):
        np.testing.assert_allclose(
            sum_axes(view, axes), view.sum(axes, keepdims=True), rtol=1e-12, atol=1e-11
        )
        target = np.empty(view.sum(axes, keepdims=True).shape)
        assert sum_axes(view, axes, target) is target
        np.testing.assert_allclose(target, sum_axes(view, axes), rtol=1e-12, atol=1e-11)


def test_numpy_sums_integers_float16_and_few_elements() -> None:
    assert sums_rows(drawn("float32", 64, 64), (1,)) and sums_columns(drawn("float32", 64, 64), (0,))
    for x in (drawn("float32", 63, 64), drawn("float16", 64, 64), drawn("float32", 64, 64).T):
        assert not sums_columns(x, (0,))
    assert not sums_columns(drawn("float32", 64, 64), (0, 1)) and not sums_columns(
        drawn("float32", 64, 64), ()
    )
    for x, axes in [
        (drawn("float32", 63, 64), (1,)),
        (drawn("float16", 64, 64), (1,)),
        (np.ones((64, 64), np.int32), (1,)),
        (drawn("float32", 64, 64), (0,)),
        (drawn("float32", 64, 64), ()),
        (drawn("float32", 4096, 3), (1,)),
        (drawn("float32", 0, 64), (1,)),
    ]:
        assert not sums_rows(x, axes)
        assert sum_axes(x, axes).dtype == x.dtype


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
def test_infinities_and_nan_affect_only_their_row(special: float) -> None:
    x = drawn("float32", 100, 1000)
    x[7, 999] = special
    found = sum_axes(x, (1,))[:, 0]
    assert math.isnan(found[7]) if math.isnan(special) else found[7] == special
    assert np.isfinite(np.delete(found, 7)).all()
    assert (
        np.signbit(sum_axes(np.full((64, 64), -0.0, np.float32), (1,))).any()
        == np.signbit(np.add.reduce(np.full((64, 64), -0.0, np.float32), 1)).any()
    )


@pytest.mark.parametrize("shape", [(128, 64), (5000,), (3, 4096), (40, 1000), (2, 6007)])
def test_the_same_bits_compiled(shape: tuple[int, ...]) -> None:
    x = tk.tensor(drawn("float32", *shape), backend=Numpy())

    def sums(x: Any) -> Any:
        return x.sum(-1), x.sum(), x.reshape((-1,)).sum()

    for y, z in zip(sums(x), tk.jit(sums)(x), strict=True):
        np.testing.assert_array_equal(np.asarray(y), np.asarray(z))


@pytest.mark.parametrize("length", LENGTHS)
def test_wide_sums_have_the_error_of_their_float32_pieces(length: int) -> None:
    x = np.abs(drawn("float32", 40, length))
    found = wide_sum_of_rows(x)
    assert (found.shape, found.dtype) == ((40,), np.float64)
    expected = np.array([math.fsum(row) for row in x.astype(float)])
    assert (np.abs(found - expected) <= MAX_FLOAT32_SUM * 2.0**-24 * expected).all()
    assert np.abs(found / expected - 1.0).mean() <= 2.0**-24
