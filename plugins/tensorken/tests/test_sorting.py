"""Sorting agrees with numpy's stable sort, in the body and in numpy's override, and is differentiable."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import FUSED, STACKS, Counting, Required, array
from tensorken_core.errors import AxisError, DTypeError, IndexingError, ShapeError
from tensorken_core.rewriting.fuse import Fuse
from tensorken_numpy.backend import Numpy

pytestmark = pytest.mark.slow

inf, nan = math.inf, math.nan
BACKENDS = {"body": Required(), "fused body": Fuse(Required()), "numpy": Numpy()}
DTYPES = ("bool", "int32", "int64", "float16", "float32", "float64")

Array = np.ndarray[Any, Any]


def drawn(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Few different values, so that there are ties; of floats also NaN, infinities and both zeros."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("int"):
        ends = np.iinfo(dtype)
        return rng.choice(np.array([ends.min, ends.max, -1, 0, 1, 2, 3], dtype), shape)
    return rng.choice(np.array([nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, 3.5], dtype), shape)


def tensor(x: Array, backend: Any = FUSED) -> tk.Tensor:
    return tk.tensor(x.ravel().tolist(), x.dtype.name, backend=backend).reshape(x.shape)


def assert_same(y: tk.Tensor, expected: Array) -> None:
    """Equal to the bit: -0.0 is not 0.0."""
    found = array(y)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    if expected.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(found)[expected == 0], np.signbit(expected)[expected == 0])


def over_backends(test: Any) -> Any:
    return pytest.mark.parametrize("backend", BACKENDS.values(), ids=BACKENDS)(test)


# ---- values ------------------------------------------------------------------------------------------------


@over_backends
@each_of("dtype", DTYPES)
@each_of("n", [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33, 100])
def test_every_length_and_dtype(n: int, dtype: str, backend: Any) -> None:
    x = drawn((3, n), dtype, n)
    assert_same(tk.argsort(tensor(x, backend)), np.argsort(x, 1, kind="stable").astype(np.int32))
    assert_same(tk.sort(tensor(x, backend)), np.sort(x, 1, kind="stable"))


@over_backends
@pytest.mark.parametrize("shape", [(6,), (5, 1), (1, 5), (0, 4), (4, 0), (2, 3, 4), (2, 0, 3), (3, 1, 2, 4)])
def test_every_axis(shape: tuple[int, ...], backend: Any) -> None:
    x = drawn(shape, "float32", 1)
    for axis in range(-len(shape), len(shape)):
        assert_same(tk.argsort(tensor(x, backend), axis), np.argsort(x, axis, kind="stable").astype(np.int32))
        assert_same(tk.sort(tensor(x, backend), axis), np.sort(x, axis, kind="stable"))
    assert_same(tk.sort(tensor(x, backend), None), np.sort(x, None, kind="stable"))
    assert_same(tk.argsort(tensor(x, backend), None), np.argsort(x, None, kind="stable").astype(np.int32))


@over_backends
@given(values=st.lists(st.floats(width=32) | st.sampled_from([0.0, -0.0, nan, inf, 1.0]), max_size=70))
def test_any_floats(values: list[float], backend: Any) -> None:
    x = np.array(values, np.float32)
    assert_same(tk.argsort(tensor(x, backend)), np.argsort(x, kind="stable").astype(np.int32))
    assert_same(tk.sort(tensor(x, backend)), np.sort(x, kind="stable"))


@over_backends
@given(values=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=70))
def test_any_integers(values: list[int], backend: Any) -> None:
    x = np.array(values, np.int64)
    assert_same(tk.argsort(tensor(x, backend)), np.argsort(x, kind="stable").astype(np.int32))


@over_backends
@pytest.mark.parametrize("dtype", DTYPES)
def test_descending_is_ascending_backwards_but_for_ties(dtype: str, backend: Any) -> None:
    x = drawn((4, 11), dtype, 5)
    places = array(tk.argsort(tensor(x, backend), descending=True))
    np.testing.assert_array_equal(places, [descending(row) for row in x.tolist()])
    assert_same(tk.sort(tensor(x, backend), descending=True), np.take_along_axis(x, places, 1))


def descending(row: list[float]) -> list[int]:
    """The indices in descending order by Python's stable sort; NaN is the greatest."""
    return sorted(range(len(row)), key=lambda i: (row[i] == row[i], -row[i]))


def test_methods_and_functions_agree() -> None:
    x = tk.tensor([[3, 1, 2], [0, 5, 4]], backend=FUSED)
    assert x.sort().tolist() == tk.sort(x).tolist() == [[1, 2, 3], [0, 4, 5]]
    assert x.argsort(0).tolist() == tk.argsort(x, 0).tolist() == [[1, 0, 0], [0, 1, 1]]
    assert x.sort(None, descending=True).tolist() == [5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize("stack", STACKS)
def test_every_stack_of_interpreters_sorts_the_same(stack: str) -> None:
    x = drawn((5, 6), "float64", 9)
    assert_same(tk.sort(tensor(x, STACKS[stack]), 0), np.sort(x, 0, kind="stable"))
    assert_same(tk.argsort(tensor(x, STACKS[stack]), 1), np.argsort(x, 1, kind="stable").astype(np.int32))


def test_the_network_works_on_whole_arrays() -> None:
    """The body runs log(n) * (log(n) + 1) / 2 exchanges for every n, not a loop over elements."""

    class Counted(Counting):
        argsort = Required.argsort

    counted = Counted()
    x = tensor(drawn((1, 256), "float32", 3), counted)
    counted.clear()
    tk.argsort(x)
    assert counted.calls["flip"] == 2 * (8 * 9 // 2)
    assert max(math.prod(shape) for _, shape in counted.sizes) <= 256


def test_an_axis_is_needed() -> None:
    with pytest.raises(AxisError, match=r"^sort: axis -1 is out of range for shape \(\)"):
        tk.sort(tk.tensor(1.0, backend=FUSED))
    with pytest.raises(AxisError, match=r"^argsort: axis 2 is out of range"):
        tk.argsort(tk.tensor([[1.0]], backend=FUSED), 2)


# ---- derivatives -------------------------------------------------------------------------------------------


@over_backends
@pytest.mark.parametrize(
    ("shape", "axis"), [((7,), 0), ((3, 5), 1), ((4, 3), 0), ((2, 3, 4), 1), ((3, 1), 1)]
)
def test_derivatives_follow_the_elements(shape: tuple[int, ...], axis: int, backend: Any) -> None:
    rng = np.random.default_rng(3)
    x = rng.permutation(math.prod(shape)).reshape(shape) * 0.5 + 0.25
    weights = tensor(rng.normal(size=shape), backend)

    def f(x: Any) -> Any:
        return (tk.sort(x * x - 3.0 * x, axis) ** 3 * weights).sum()

    tk.testing.check_grads(f, (tensor(x / math.prod(shape), backend),), order=2)


@over_backends
def test_each_cotangent_returns_to_its_element(backend: Any) -> None:
    """Of equal elements, the first takes the first cotangent."""
    x = tensor(np.array([[2.0, 1.0, 2.0, 0.0]]), backend)
    y, pull_back = tk.vjp(lambda x: tk.sort(x), x)
    (pulled,) = pull_back(tensor(np.array([[10.0, 20.0, 30.0, 40.0]]), backend))
    assert y.tolist() == [[0.0, 1.0, 2.0, 2.0]]
    assert pulled.tolist() == [[30.0, 20.0, 40.0, 10.0]]
    _, pushed = tk.jvp(
        lambda x: tk.sort(x, descending=True), (x,), (tensor(np.array([[1.0, 2.0, 3.0, 4.0]]), backend),)
    )
    assert pushed.tolist() == [[1.0, 3.0, 2.0, 4.0]]


def test_places_have_no_derivative() -> None:
    x = tk.tensor([3.0, 1.0, 2.0], backend=FUSED)
    slope = tk.grad(lambda x: (tk.argsort(x).astype("float32") * x).sum())(x)
    assert slope.tolist() == [1.0, 2.0, 0.0]


# ---- elements by their places ------------------------------------------------------------------------------


@over_backends
@pytest.mark.parametrize(
    ("shape", "places", "axis"),
    [
        ((4,), (2,), 0),
        ((3, 4), (3, 2), 1),
        ((3, 4), (5, 4), 0),
        ((3, 4), (1, 2), 1),
        ((1, 4), (3, 2), 1),
        ((2, 3, 4), (2, 2, 4), -2),
        ((2, 3), (2, 0), 1),
        ((0, 3), (0, 2), 1),
    ],
)
def test_take_along_axis(shape: tuple[int, ...], places: tuple[int, ...], axis: int, backend: Any) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape)
    n = shape[axis]
    index = rng.integers(-n, n, places) if n else np.zeros(places, int)
    found = tk.take_along_axis(tensor(x, backend), tensor(index.astype(np.int32), backend), axis)
    assert_same(found, np.take_along_axis(x, index, axis))


def test_take_along_axis_is_differentiable() -> None:
    x = tensor(np.arange(6.0).reshape(2, 3) / 4)
    index = tensor(np.array([[0, 0], [2, -2]]))
    tk.testing.check_grads(lambda x: tk.take_along_axis(x, index) ** 3, (x,), order=2)
    assert tk.grad(lambda x: tk.take_along_axis(x, index).sum())(x).tolist() == [
        [2.0, 0.0, 0.0],
        [0.0, 1.0, 1.0],
    ]


def test_the_mistakes_of_take_along_axis_are_named() -> None:
    x = tk.tensor([[1.0, 2.0]], backend=FUSED)
    with pytest.raises(IndexingError, match=r"take_along_axis: indices from 0 to 2 are out of range"):
        tk.take_along_axis(x, tk.tensor([[0, 2]], backend=FUSED))
    with pytest.raises(DTypeError, match=r"take_along_axis: indices must be integers, got float32"):
        tk.take_along_axis(x, x)
    with pytest.raises(ShapeError, match=r"take_along_axis: indices need as many axes as x"):
        tk.take_along_axis(x, tk.tensor([0], backend=FUSED))
    with pytest.raises(ShapeError, match=r"take_along_axis: shapes .* do not broadcast"):
        tk.take_along_axis(tk.ones((2, 3), backend=FUSED), tk.zeros((3, 1), "int32", backend=FUSED))


# ---- the places of extremes --------------------------------------------------------------------------------


@over_backends
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["argmin", "argmax"])
def test_the_first_extreme_along_every_axis(name: str, dtype: str, backend: Any) -> None:
    x = drawn((4, 5, 3), dtype, 11)
    for axis in range(3):
        expected = getattr(np, name)(x, axis).astype(np.int32)
        assert_same(getattr(tk, name)(tensor(x, backend), axis), expected)
        assert (
            getattr(tensor(x, backend), name)(axis, keepdims=True).shape
            == np.expand_dims(expected, axis).shape
        )
    assert getattr(tk, name)(tensor(x, backend)).item() == getattr(np, name)(x)
    assert getattr(tk, name)(tensor(x, backend), keepdims=True).shape == (1, 1, 1)


@over_backends
@pytest.mark.parametrize("name", ["argmin", "argmax"])
def test_extremes_of_no_elements_are_errors(name: str, backend: Any) -> None:
    x = tk.zeros((2, 0), backend=backend)
    with pytest.raises(ShapeError, match=f"^{name}: no elements to reduce"):
        getattr(tk, name)(x, 1)
    assert getattr(tk, name)(x.reshape((0, 2)), 1).shape == (0,)


def test_every_kind_of_sorting_is_stable() -> None:
    x = np.array([2, 1, 2, 1])
    for kind in ("quicksort", "mergesort", "heapsort", "stable"):
        assert (
            tk.argsort(x, kind=kind).tolist() == np.argsort(tk.asarray(x), kind=kind).tolist() == [1, 3, 0, 2]
        )
        assert tk.asarray(x).sort(kind=kind).tolist() == [1, 1, 2, 2]
