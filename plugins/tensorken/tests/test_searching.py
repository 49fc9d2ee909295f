"""Searching, sorting, sets and counting agree with numpy, for every dtype, shape and special value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tensorken as tk
from core.tests.drawing import BACKENDS, DTYPES, arrays, near, same, tensor, values
from core.tests.examples import examples
from core.tests.support import array, f64
from tensorken_core.errors import ArgumentError, ConcretizationError, DTypeError, IndexingError, ShapeError

pytestmark = pytest.mark.slow

FEW = settings(max_examples=examples(40))
OVER_BACKENDS = pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)
ORDERED = arrays(least_rank=1, greatest_rank=1)


# ---- places ------------------------------------------------------------------------------------------------


@OVER_BACKENDS
@FEW
@given(x=arrays())
def test_indices_of_nonzero_elements(backend: Any, x: Any) -> None:
    t = tensor(x, backend)
    same(tk.flatnonzero(t), np.flatnonzero(x), "int32")
    same(tk.argwhere(t), np.argwhere(x), "int32")
    if x.ndim == 0:
        with pytest.raises(ShapeError, match=r"^nonzero: a tensor of shape \(\) has no axes"):
            tk.nonzero(t)
        return
    for found in (tk.nonzero(t), tk.where(t), t.nonzero()):
        assert len(found) == x.ndim
        for mine, expected in zip(found, np.nonzero(x), strict=True):
            same(mine, expected, "int32")


def test_a_bool_may_be_the_condition() -> None:
    x = tk.tensor([1.0, 2.0])
    for true in (True, np.True_, [True], tk.tensor(True)):
        assert tk.where(true, x, 0).tolist() == [1.0, 2.0]
        assert tk.where(tk.logical_not(true), x, 0).tolist() == [0.0, 0.0]
    assert tk.where(True, 1, 2.5).item() == 1.0
    assert tk.grad(lambda x: tk.where(True, x, 0).sum())(x).tolist() == [1.0, 1.0]
    assert tk.vmap(lambda x: tk.where(False, x, 3.0))(x).tolist() == [3.0, 3.0]


def test_where_needs_both_or_neither() -> None:
    with pytest.raises(ArgumentError, match=r"^where: need both a and b, or neither"):
        tk.where(tk.tensor([True]), 1.0)


@OVER_BACKENDS
@FEW
@given(x=ORDERED, seed=st.integers(0, 99), side=st.sampled_from(["left", "right"]))
def test_places_in_an_order(backend: Any, x: Any, seed: int, side: Any) -> None:
    wanted = values(str(x.dtype), (2, 3), seed)
    expected = np.searchsorted(np.sort(x), wanted, side)
    same(tk.searchsorted(tensor(np.sort(x), backend), tensor(wanted, backend), side), expected, "int32")
    by_sorter = tk.searchsorted(
        tensor(x, backend), tensor(wanted, backend), side, tensor(np.argsort(x), backend)
    )
    same(by_sorter, expected, "int32")
    assert (
        tk.sort(tensor(x, backend)).searchsorted(tensor(wanted, backend), side).tolist() == expected.tolist()
    )


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 1000])
def test_places_in_orders_of_every_length(n: int) -> None:
    x, wanted = np.arange(n) * 2.0, np.linspace(-1.0, 2.0 * n + 1.0, 97)
    for side in ("left", "right"):
        found = tk.searchsorted(tensor(x), tensor(np.concatenate([wanted, x])), side)
        same(found, np.searchsorted(x, np.concatenate([wanted, x]), side), "int32")


def test_sorting_refuses_invalid_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"^searchsorted: side must be 'left' or 'right', got 'middle'"):
        tk.searchsorted([1.0], 1.0, "middle")
    with pytest.raises(ShapeError, match=r"^searchsorted: x must have one axis, got shape \(1, 1\)"):
        tk.searchsorted([[1.0]], 1.0)
    with pytest.raises(IndexingError, match=r"^searchsorted: index 2 is out of range"):
        tk.searchsorted([1.0], 1.0, sorter=[2])


@OVER_BACKENDS
@FEW
@given(x=arrays(least_rank=1), data=st.data(), largest=st.booleans())
def test_the_greatest(backend: Any, x: Any, data: Any, largest: bool) -> None:
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    k = data.draw(st.integers(0, x.shape[axis]))
    t = tensor(x, backend)
    found, places = tk.topk(t, k, axis, largest=largest)
    order = array(tk.argsort(t, axis, descending=largest))
    expected = np.take(order, range(k), axis)
    same(places, expected, "int32")
    same(found, np.take_along_axis(x, expected.astype(np.int64), axis))


def test_the_greatest_of_ties_and_nan() -> None:
    nan = float("nan")
    found, places = tk.topk(f64([1.0, 3.0, nan, 3.0, 2.0, nan]), 4)
    assert places.tolist() == [2, 5, 1, 3]
    assert found.tolist()[2:] == [3.0, 3.0]
    assert tk.topk(f64([1.0, 3.0, nan, 3.0, 1.0]), 3, largest=False).indices.tolist() == [0, 4, 1]
    with pytest.raises(ArgumentError, match=r"^topk: k must be from 0 to 2, the size of axis 0"):
        tk.topk([1.0, 2.0], 3)


# ---- sets --------------------------------------------------------------------------------------------------


@OVER_BACKENDS
@FEW
@given(x=arrays(), equal_nan=st.booleans())
def test_unique_is_numpys(backend: Any, x: Any, equal_nan: bool) -> None:
    t = tensor(x, backend)
    found = tk.unique(t, True, True, True, equal_nan=equal_nan)
    expected = np.unique(x, True, True, True, equal_nan=equal_nan)
    np.testing.assert_array_equal(array(found[0]), expected[0])
    assert str(found[0].dtype) == str(x.dtype)
    for mine, wanted in zip(found[1:], expected[1:], strict=True):
        same(mine, np.asarray(wanted).reshape(mine.shape), "int32")
    np.testing.assert_array_equal(array(tk.unique(t)), np.unique(x))


@OVER_BACKENDS
@FEW
@given(x=arrays())
def test_unique_is_the_standards(backend: Any, x: Any) -> None:
    t = tensor(x, backend)
    found, expected = tk.unique_all(t), np.unique_all(x)
    assert found.inverse_indices.shape == x.shape
    np.testing.assert_array_equal(array(found.values), expected.values)
    np.testing.assert_array_equal(array(found.counts), expected.counts)
    np.testing.assert_array_equal(array(found.values)[array(found.inverse_indices)], x)
    np.testing.assert_array_equal(x.ravel()[array(found.indices)], array(found.values))
    first = [
        int(np.flatnonzero(array(found.inverse_indices).ravel() == i)[0]) for i in range(len(expected.values))
    ]
    assert found.indices.tolist() == first
    assert tk.unique_counts(t)._fields == ("values", "counts")
    assert tk.unique_counts(t).counts.tolist() == found.counts.tolist()
    assert tk.unique_inverse(t)._fields == ("values", "inverse_indices")
    assert tk.unique_inverse(t).inverse_indices.tolist() == found.inverse_indices.tolist()
    np.testing.assert_array_equal(array(tk.unique_values(t)), expected.values)
    assert found._fields == ("values", "indices", "inverse_indices", "counts")


@OVER_BACKENDS
@FEW
@given(x=arrays(), seed=st.integers(0, 99), n=st.integers(0, 6), invert=st.booleans())
def test_membership(backend: Any, x: Any, seed: int, n: int, invert: bool) -> None:
    among = values(str(x.dtype), (n,), seed)
    found = tk.isin(tensor(x, backend), tensor(among, backend), invert=invert)
    same(found, np.isin(x, among, invert=invert))


# ---- counts ------------------------------------------------------------------------------------------------


@OVER_BACKENDS
@FEW
@given(x=st.lists(st.integers(0, 9), max_size=12), minlength=st.integers(0, 12))
def test_counts_of_integers(backend: Any, x: list[int], minlength: int) -> None:
    t = tk.tensor(x, "int64", backend=backend)
    weights = np.arange(len(x)) * 0.5
    same(tk.bincount(t, minlength=minlength), np.bincount(np.array(x, int), minlength=minlength), "int32")
    same(tk.bincount(t, tensor(weights, backend)), np.bincount(np.array(x, int), weights), "float64")
    same(tk.bincount(t, length=5), np.bincount(np.array(x, int), minlength=5)[:5], "int32")


def test_counting_refuses_invalid_arguments() -> None:
    with pytest.raises(IndexingError, match=r"^bincount: x must not have negative elements, got -2"):
        tk.bincount([1, -2])
    with pytest.raises(DTypeError, match=r"^bincount: x must be integers, got float32"):
        tk.bincount([1.0])
    with pytest.raises(ShapeError, match=r"^bincount: x must have one axis, got shape \(1, 1\)"):
        tk.bincount([[1]])
    with pytest.raises(ShapeError, match=r"^bincount: weights must have the shape \(1,\) of x, got \(2,\)"):
        tk.bincount([1], [1.0, 2.0])
    assert tk.bincount([1, -2, 0], length=2).tolist() == [1, 1]


@OVER_BACKENDS
@FEW
@given(x=arrays(("float64", "int32", "bool"), finite=True), bins=st.integers(1, 6), density=st.booleans())
def test_histograms(backend: Any, x: Any, bins: int, density: bool) -> None:
    t = tensor(x, backend)
    wide = x.astype("float64")
    edges = np.array([-3.0, -1.0, 0.5, 2.0, 7.0])
    weights = np.arange(x.size).reshape(x.shape) * 0.5
    for mine, theirs in (
        ({"bins": bins}, {"bins": bins}),
        ({"bins": bins, "range": (-1.0, 3.0)},) * 2,
        ({"bins": edges.tolist()}, {"bins": edges}),
        ({"bins": bins, "weights": tensor(weights, backend)}, {"bins": bins, "weights": weights}),
    ):
        counted = np.histogram(wide, **theirs, density=False)
        if density and counted[0].sum() == 0:
            continue
        counts, ends = tk.histogram(t, **mine, density=density)
        expected, wanted = np.histogram(wide, **theirs, density=density)
        near(ends, wanted, "float64" if x.dtype == "float64" else "float32")
        near(counts.astype("float64"), expected, "float64", 1e-5)


def test_histograms_refuse_invalid_arguments() -> None:
    with pytest.raises(ArgumentError, match=r"^histogram: need at least one bin, got 0"):
        tk.histogram([1.0], bins=0)
    with pytest.raises(
        ShapeError, match=r"^histogram: the edges must be a vector of at least 2, got shape \(1,\)"
    ):
        tk.histogram([1.0], bins=[1.0])


# ---- where values must be known, and where not -------------------------------------------------------------

READING = {
    "nonzero": tk.nonzero,
    "where": tk.where,
    "flatnonzero": tk.flatnonzero,
    "argwhere": tk.argwhere,
    "unique": tk.unique,
    "unique_all": tk.unique_all,
    "unique_counts": tk.unique_counts,
    "unique_inverse": tk.unique_inverse,
    "unique_values": tk.unique_values,
    "bincount": lambda x: tk.bincount(x.astype("int32")),
}


@pytest.mark.parametrize("name", READING)
def test_shapes_that_depend_on_values_are_refused_under_vmap(name: str) -> None:
    with pytest.raises(
        ConcretizationError, match=rf"^{name}: the shape of the result depends on the values.*vmap"
    ):
        tk.vmap(READING[name])(f64([[1.0, 2.0], [3.0, 4.0]]))
    with pytest.raises(ConcretizationError, match=rf"^{name}: the shape of the result depends on the values"):
        READING[name](tk.symbol("x", (3,)))


@pytest.mark.parametrize("name", READING)
def test_vmap_may_hold_values_that_all_examples_share(name: str) -> None:
    shared = f64([3.0, 0.0, 3.0])

    def f(x: tk.Tensor) -> tk.Tensor:
        found = READING[name](shared)
        first = found if isinstance(found, tk.Tensor) else found[0]
        return x * first.sum()

    result = READING[name](shared)
    total = (result if isinstance(result, tk.Tensor) else result[0]).sum().item()
    assert tk.vmap(f)(f64([1.0, 2.0])).tolist() == [total, 2.0 * total]


def test_values_found_are_differentiable() -> None:
    x = f64([3.0, 1.0, 3.0, 2.0])
    weights = f64([1.0, 10.0, 100.0])
    assert tk.grad(lambda v: (tk.unique_values(v) * weights).sum())(x).tolist() == [100.0, 1.0, 0.0, 10.0]
    assert tk.grad(lambda v: (tk.topk(v * v, 2).values * weights[:2]).sum())(x).tolist() == [
        6.0,
        0.0,
        60.0,
        0.0,
    ]
    tk.testing.check_grads(lambda v: tk.unique_all(v).values ** 2, (f64([3.0, 1.0, 2.0]),))
    tk.testing.check_grads(lambda v: tk.topk(v, 2).values ** 2, (f64([[3.0, 1.0, 2.0], [0.5, 4.0, 2.5]]),))
    tk.testing.check_grads(lambda v: v[tk.flatnonzero(v)] ** 2, (f64([3.0, -1.0, 2.0]),))
    counts = tk.grad(lambda w: (tk.bincount([0, 2, 0], w) * weights).sum())(f64([1.0, 1.0, 1.0]))
    assert counts.tolist() == [1.0, 100.0, 1.0]


BATCHED = {
    "searchsorted": lambda x: tk.searchsorted(tk.sort(x), f64([0.3, -0.4])),
    "topk": lambda x: tk.topk(x, 2).values,
    "isin": lambda x: tk.isin(x, f64([1.0, 2.0])),
    "bincount": lambda x: tk.bincount((x > 0).astype("int32"), length=2),
    "histogram": lambda x: tk.histogram(x, 3)[0],
    "edges": lambda x: tk.histogram(x, 3)[1],
}


@pytest.mark.parametrize("name", BATCHED)
def test_vmap_is_the_loop(name: str) -> None:
    x = f64(np.random.default_rng(4).normal(size=(3, 5)).round(1))
    expected = np.stack([array(BATCHED[name](row)) for row in x])
    np.testing.assert_array_equal(array(tk.vmap(BATCHED[name])(x)), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_places_are_int32(dtype: str) -> None:
    x = tensor(values(dtype, (5,), 0, finite=True))
    places = [tk.flatnonzero(x), tk.argsort(x), tk.searchsorted(x, x), tk.unique_all(x).indices]
    assert {str(p.dtype) for p in places} == {"int32"}
