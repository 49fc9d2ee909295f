"""Sums of many elements: as accurate as numpy's own, whatever the lengths, and the same compiled or not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from tensorken_numpy.backend import Numpy
from tensorken_numpy.contraction import across, contract
from tensorken_numpy.sums import LONGEST, MANY, SHORT, add_up, in_many_columns, in_many_rows, wide_sum_of_rows

LENGTHS = [4, 5, 7, 64, 65, 257, 512, 513, 1000, 1021, 2048, 4096, 4099, 6007, 12345, 65536, 100_003]
"""Short, long and prime ones, and those that are cut evenly."""


def drawn(dtype: str, *shape: int) -> Any:
    return np.random.default_rng(len(shape)).normal(1.0, 3.0, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", LENGTHS)
def test_errors_are_those_of_short_sums(length: int, dtype: str) -> None:
    """At most LONGEST additions one after another, in pieces, pieces of pieces and a rest."""
    for count in (1, 3, -(-MANY // length)):
        x = drawn(dtype, count, length)
        found = add_up(x, (1,))
        assert (found.shape, found.dtype) == ((count, 1), x.dtype)
        eps = float(np.finfo(dtype).eps) / 2
        for row, y in zip(x.astype(float), found[:, 0], strict=True):
            bound = (LONGEST + 20) * eps * math.fsum(abs(row))
            assert abs(float(y) - math.fsum(row)) <= bound


def test_in_practice_they_are_no_larger_than_those_of_sums_in_pairs() -> None:
    x = np.abs(drawn("float32", 200, 10_000))
    right = np.array([math.fsum(row) for row in x.astype(float)])
    ours, theirs = [
        np.abs(y.astype(float) - right).mean() for y in (add_up(x, (1,))[:, 0], np.add.reduce(x, 1))
    ]
    assert ours <= 2 * theirs


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", LENGTHS)
def test_rows_are_added_up_as_well_as_columns(count: int, dtype: str) -> None:
    """In pieces as above, or, where there are none, row after row as numpy does."""
    for length in (1, 3, -(-MANY // count)):
        x = drawn(dtype, count, length)
        found = add_up(x, (0,))
        assert (found.shape, found.dtype) == ((1, length), x.dtype)
        eps = float(np.finfo(dtype).eps) / 2
        for column, y in zip(x.T.astype(float), found[0], strict=True):
            assert abs(float(y) - math.fsum(column)) <= count * eps * math.fsum(abs(column))


def test_rows_of_products_are_added_up_where_these_lie_across() -> None:
    a, b = drawn("float32", 300, 40).T[:, None], drawn("float32", 300, 1, 40).T
    assert across(a[:, 0]) and across(b[:, 0]) and not across(np.ascontiguousarray(a[:, 0]))
    found = contract(a, b, (2,))
    right = (a.astype(float) * b).sum(2, keepdims=True)
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-3)
    compiled = tk.jit(lambda a, b: (a * b).sum(0))
    x, y = tk.tensor(a[:, 0].T), tk.tensor(b[:, 0].T)
    assert compiled(x, y).tolist() == (x * y).sum(0).tolist() == found[:, 0, 0].tolist()


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
def test_any_axes_and_any_layout(axes: tuple[int, ...]) -> None:
    x = drawn("float64", 20, 30, 40)
    for view in (x, x.T, x[::-1], x[:, 3:], x[..., ::2], np.broadcast_to(x[:1], x.shape)):
        np.testing.assert_allclose(add_up(view, axes), view.sum(axes, keepdims=True), rtol=1e-12, atol=1e-11)
        target = np.empty(view.sum(axes, keepdims=True).shape)
        assert add_up(view, axes, target) is target
        np.testing.assert_allclose(target, add_up(view, axes), rtol=1e-12, atol=1e-11)


def test_integers_halves_and_few_elements_are_added_by_numpy() -> None:
    assert in_many_rows(drawn("float32", 64, 64), (1,)) and in_many_columns(drawn("float32", 64, 64), (0,))
    for x in (drawn("float32", 63, 64), drawn("float16", 64, 64), drawn("float32", 64, 64).T):
        assert not in_many_columns(x, (0,))
    assert not in_many_columns(drawn("float32", 64, 64), (0, 1)) and not in_many_columns(
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
        assert not in_many_rows(x, axes)
        assert add_up(x, axes).dtype == x.dtype


@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_stays_in_its_row(special: float) -> None:
    x = drawn("float32", 100, 1000)
    x[7, 999] = special
    found = add_up(x, (1,))[:, 0]
    assert math.isnan(found[7]) if math.isnan(special) else found[7] == special
    assert np.isfinite(np.delete(found, 7)).all()
    assert (
        np.signbit(add_up(np.full((64, 64), -0.0, np.float32), (1,))).any()
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
def test_wide_sums_are_off_by_short_ones_alone(length: int) -> None:
    x = np.abs(drawn("float32", 40, length))
    found = wide_sum_of_rows(x)
    assert (found.shape, found.dtype) == ((40,), np.float64)
    right = np.array([math.fsum(row) for row in x.astype(float)])
    assert (np.abs(found - right) <= SHORT * 2.0**-24 * right).all()
    assert np.abs(found / right - 1.0).mean() <= 2.0**-24
