"""Creation: numpy's values on every backend, and constants that combine with tensors of every level."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import FUSED, STACKS, array, f64
from tensorken_core.errors import (
    ArgumentError,
    AxisError,
    DTypeError,
    ExchangeError,
    ScalarRangeError,
    ShapeError,
    TensorkenError,
)
from tensorken_core.tensor.tensor import Tensor

pytestmark = pytest.mark.usefixtures("on_numpy")

BACKENDS = [FUSED, STACKS["Fuse(Strict())"], STACKS["Fuse(Required())"], "reference"]
DTYPES = ["bool", "int32", "int64", "float16", "float32", "float64"]
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)


def same(got: Tensor, expected: Any) -> None:
    """Shape, dtype and values."""
    assert got.shape == expected.shape
    assert str(got.dtype) == str(expected.dtype)
    np.testing.assert_array_equal(array(got), expected)


# ---- constants ---------------------------------------------------------------------------------------------


@pytest.mark.feature(8, 47)
@pytest.mark.parametrize("name", ["zeros", "ones"])
@given(SHAPES, st.sampled_from(DTYPES), st.sampled_from(BACKENDS))
def test_constants_are_numpys(name, shape, dtype, backend):
    expected = getattr(np, name)(shape, dtype)
    same(getattr(tk, name)(shape, dtype, backend=backend), expected)
    same(getattr(tk, f"{name}_like")(tk.zeros(shape, dtype, backend=backend)), expected)
    assert getattr(tk, name)(shape).dtype is tk.float32
    assert getattr(tk, name)(shape, None).dtype is tk.float32


@given(SHAPES, st.sampled_from(DTYPES), st.sampled_from(BACKENDS))
def test_empty_has_a_shape_and_a_dtype(shape, dtype, backend):
    for x in (tk.empty(shape, dtype, backend=backend), tk.empty_like(tk.ones(shape, dtype, backend=backend))):
        assert (x.shape, str(x.dtype), array(x).shape) == (shape, dtype, shape)


@pytest.mark.feature(47)
@given(SHAPES, st.sampled_from([True, 3, -2, 1.5, math.inf, math.nan]), st.sampled_from(DTYPES))
def test_full_is_numpys(shape, value, dtype):
    if not math.isfinite(value) and not dtype.startswith("float"):
        if dtype != "bool":
            with pytest.raises(ScalarRangeError, match=r"^full: "):
                tk.full(shape, value, dtype)
        return
    for backend in BACKENDS:
        same(tk.full(shape, value, dtype, backend=backend), np.full(shape, value, dtype))
        same(tk.full_like(tk.zeros(shape, dtype, backend=backend), value), np.full(shape, value, dtype))


def test_full_takes_what_broadcasts():
    same(tk.full((2, 2), [1, 2]), np.full((2, 2), [1, 2], "int32"))
    same(tk.full((2, 2), np.array([1.5, 2.5])), np.full((2, 2), [1.5, 2.5]))
    same(tk.full((2,), np.int64(7)), np.full((2,), 7, "int64"))
    same(tk.full((2, 2), f64([[1.0], [2.0]]), "int32"), np.array([[1, 1], [2, 2]], "int32"))
    same(tk.full_like([0, 0], f64([1.5, 2.5])), np.array([1, 2], "int32"))
    assert tk.full((2,), 3).dtype is tk.int32
    assert tk.full((2,), 3.0).dtype is tk.float32
    assert tk.full((2,), True).dtype is tk.bool_
    assert tk.grad(lambda x: tk.full((3,), x).sum())(f64(2.0)).item() == 3.0


def test_like_takes_another_shape_dtype_and_backend():
    x = f64([[1.0, 2.0]])
    assert tk.zeros_like(x, shape=(3,)).shape == (3,)
    assert tk.ones_like(x, "int32", shape=2).tolist() == [1, 1]
    assert tk.zeros_like(x, backend="reference").backend == "reference"
    assert tk.full_like(x, 2, backend="reference").dtype is tk.float64
    assert tk.zeros_like(tk.ones(2, backend="reference")).backend == "reference"
    assert tk.zeros_like([[1, 2]]).tolist() == [[0, 0]]


@pytest.mark.feature(8)
def test_asarray_is_tensor_with_numpys_name():
    a = np.array([1.0, 2.0])
    same(tk.asarray(a), a)
    assert tk.array is tk.asarray
    assert tk.array([1, 2], "float64").dtype is tk.float64
    x = tk.asarray([1.0, 2.0])
    assert tk.asarray(x) is tk.asarray(x, copy=False) is x
    copied = tk.asarray(x, copy=True)
    assert copied is not x
    same(copied, array(x))
    assert tk.asarray(x, backend="reference").backend == "reference"
    same(tk.asarray(a, copy=False), a)
    for data in (a.astype(">f8"), [1.0], 2.0):
        with pytest.raises(
            ValueError, match=r"^asarray: cannot avoid a copy of these values; leave out copy=False"
        ):
            tk.asarray(data, copy=False)
    with pytest.raises(ExchangeError):
        tk.asarray(x, "int32", copy=False)


LIKE: dict[str, Callable[[Tensor], Tensor]] = {
    "zeros_like": tk.zeros_like,
    "ones_like": tk.ones_like,
    "empty_like": tk.empty_like,
    "full_like": lambda x: tk.full_like(x, 2.5),
    "full_like, shape": lambda x: tk.full_like(x, 2.5, shape=(3, 2)),
    "zeros": lambda x: tk.zeros(x.shape, x.dtype),
    "eye": lambda x: tk.eye(3, 2, dtype=x.dtype),
    "tri": lambda x: tk.tri(3, 2, dtype=x.dtype),
    "arange": lambda x: tk.arange(2, dtype=x.dtype),
    "linspace": lambda x: tk.linspace(0.0, 1.0, 2, dtype=x.dtype),
    "one_hot": lambda x: tk.one_hot([0, 1, 0], 2, x.dtype),
    "meshgrid": lambda x: tk.meshgrid(tk.arange(2, dtype=x.dtype), tk.arange(3, dtype=x.dtype))[0],
}


@pytest.mark.parametrize("name", LIKE)
def test_tensors_created_inside_a_transform_combine_with_its_tensors(name):
    """As a constant: at every level the derivative of x * c is c."""
    make, x = LIKE[name], f64([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    c = array(make(x) + x * 0.0)

    def f(x):
        return x * make(x)

    np.testing.assert_array_equal(array(tk.elementwise_grad(f)(x)), c)
    np.testing.assert_array_equal(array(tk.derivative(f)(x)), c)
    np.testing.assert_array_equal(array(tk.derivative(tk.elementwise_grad(f))(x)), 0.0 * c)
    batch = tk.stack([x, x + 1.0])
    np.testing.assert_array_equal(array(tk.vmap(f)(batch)), np.stack([array(f(x)) for x in batch]))
    np.testing.assert_array_equal(array(tk.vmap(tk.elementwise_grad(f))(batch)), np.stack([c, c]))
    np.testing.assert_array_equal(array(tk.elementwise_grad(tk.vmap(f))(batch)), np.stack([c, c]))


# ---- ranges ------------------------------------------------------------------------------------------------


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (ValueError, TypeError, ZeroDivisionError, IndexError):
        return None


INTS = st.integers(-20, 20)


@pytest.mark.feature(29)
@given(
    st.lists(INTS, min_size=1, max_size=3), st.sampled_from([None, "int64", "float32", "float64", "float16"])
)
def test_arange_of_ints_is_numpys(numbers, dtype):
    expected = outcome(lambda: np.arange(*numbers, dtype=dtype or "int32"))
    if expected is None:
        with pytest.raises(ArgumentError, match="must not be 0"):
            tk.arange(*numbers, dtype=dtype)
        return
    for backend in BACKENDS:
        same(tk.arange(*numbers, dtype=dtype, backend=backend), expected)


@pytest.mark.feature(29)
@given(st.floats(-20, 20), st.floats(-20, 20), st.floats(-3, 3).filter(lambda x: abs(x) > 0.01))
def test_arange_of_floats_counts_as_numpy_does_and_does_not_drift(start, stop, step):
    expected = np.arange(start, stop, step)
    got = tk.arange(start, stop, step, dtype="float64")
    assert got.shape == expected.shape
    np.testing.assert_allclose(
        array(got), expected, rtol=1e-12, atol=1e-14 * (1 + len(expected))
    )  # its step is rounded
    assert got.tolist() == [start + i * step for i in range(len(expected))]
    same(
        tk.arange(start, stop, step), array(got).astype("float32")
    )  # computed in double precision, rounded once


def test_arange_takes_numbers_of_any_kind():
    assert tk.arange(np.int64(3)).dtype is tk.int32
    assert tk.arange(tk.tensor(3)).tolist() == [0, 1, 2]
    assert tk.arange(np.float32(0.0), tk.tensor(1.0), 0.5).tolist() == [0.0, 0.5]
    assert tk.arange(2**40, 2**40 + 2, dtype="int64").tolist() == [2**40, 2**40 + 1]
    assert tk.arange(0, 1, 0.25).dtype is tk.float32
    assert tk.arange(3, step=2).tolist() == [0, 2]
    assert tk.arange(5, 2).shape == (0,)
    assert tk.arange(-1, 2, 1, "bool").tolist() == [True, False, True]


@pytest.mark.feature(29)
@given(
    st.floats(-1e6, 1e6),
    st.floats(-1e6, 1e6),
    st.integers(0, 60),
    st.booleans(),
    st.sampled_from(["float32", "float64"]),
)
def test_linspace_is_numpys(start, stop, num, endpoint, dtype):
    with np.errstate(under="ignore"):
        expected, step = np.linspace(start, stop, num, endpoint, retstep=True, dtype=dtype)
    got, distance = tk.linspace(start, stop, num, endpoint, retstep=True, dtype=dtype)
    assert got.shape == expected.shape
    assert str(got.dtype) == dtype
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(
        array(got), expected, rtol=2 * eps, atol=4 * eps * max(abs(start), abs(stop), 1e-30)
    )
    np.testing.assert_equal(distance, step)
    if num > 1 or (num and endpoint is False):
        assert got.tolist()[0] == np.dtype(dtype).type(start)
    if num > 1 and endpoint:
        assert got.tolist()[-1] == np.dtype(dtype).type(stop)


@pytest.mark.feature(29)
@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(0, 60), st.booleans())
def test_linspace_of_ints_is_rounded_down(start, stop, num, endpoint):
    exact = [
        start + (i * (stop - start)) // (num - 1 if endpoint else num) if i else start for i in range(num)
    ]
    assert tk.linspace(start, stop, num, endpoint, dtype="int32").tolist() == exact


def test_linspace_is_exact_where_it_can_be():
    assert tk.linspace(0, 49, 50, dtype="float64").tolist() == [float(k) for k in range(50)]
    assert tk.linspace(0, 1, 101, dtype="float64").tolist() == [k / 100 for k in range(101)]
    assert tk.linspace(-1e308, 1e308, 3, dtype="float64").tolist() == [-1e308, 0.0, 1e308]
    assert tk.linspace(0, 1, 5).dtype is tk.float32


@given(
    hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=2, max_side=3), st.integers(0, 4), st.booleans()
)
def test_linspace_between_tensors_is_numpys(shapes, num, endpoint):
    if not any(shapes.input_shapes):
        return
    rng = np.random.default_rng(0)
    start, stop = (rng.uniform(-1, 1, shape) for shape in shapes.input_shapes)
    for axis in range(-len(shapes.result_shape) - 1, len(shapes.result_shape) + 1):
        expected = np.linspace(start, stop, num, endpoint, axis=axis)
        got = tk.linspace(f64(start), f64(stop), num, endpoint, axis=axis)
        assert got.dtype is tk.float64
        assert got.shape == expected.shape
        np.testing.assert_allclose(array(got), expected, rtol=1e-14, atol=1e-14)


def test_linspace_and_logspace_have_derivatives():
    tk.testing.check_grads(lambda a, b: tk.linspace(a * a, b, 5), (f64([0.5, 1.0]), f64(2.0)))
    tk.testing.check_grads(lambda a: tk.logspace(a, 1.5, 4, base=2.0), (f64(0.5),))
    assert array(tk.vmap(lambda a: tk.linspace(a, 1.0, 3))(f64([0.0, 0.5]))).tolist() == [
        [0.0, 0.5, 1.0],
        [0.5, 0.75, 1.0],
    ]


@given(st.floats(-3, 3), st.floats(-3, 3), st.integers(0, 20), st.booleans(), st.sampled_from([10.0, 2.0, 2]))
def test_logspace_is_numpys(start, stop, num, endpoint, base):
    got = tk.logspace(start, stop, num, endpoint, base, "float64")
    np.testing.assert_allclose(array(got), np.logspace(start, stop, num, endpoint, base), rtol=1e-13)


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.integers(0, 20), st.booleans(), st.booleans())
def test_geomspace_is_numpys(start, stop, num, endpoint, negative):
    start, stop = (-start, -stop) if negative else (start, stop)
    got = tk.geomspace(start, stop, num, endpoint, "float64")
    np.testing.assert_allclose(array(got), np.geomspace(start, stop, num, endpoint), rtol=1e-12)
    if num:
        assert got.tolist()[0] == start
    if num > 1 and endpoint:
        assert got.tolist()[-1] == stop


def test_powers_too_large_are_infinite():
    assert tk.logspace(300, 400, 2, dtype="float64").tolist() == [1e300, math.inf]
    assert tk.geomspace(1e-320, 1e300, 3, dtype="float64").tolist()[::2] == [1e-320, 1e300]


# ---- matrices and grids ------------------------------------------------------------------------------------


def test_unit_and_triangular_matrices_are_numpys():
    for n, m, k in itertools.product(range(4), range(4), range(-5, 6)):
        for dtype, backend in (("float32", FUSED), ("int64", "reference"), ("bool", BACKENDS[1])):
            same(tk.eye(n, m, k, dtype, backend=backend), np.eye(n, m, k, dtype))
            same(tk.tri(n, m, k, dtype, backend=backend), np.tri(n, m, k, dtype))
    same(tk.eye(3), np.eye(3, dtype="float32"))
    same(tk.identity(3, "int32"), np.identity(3, "int32"))
    same(tk.tri(3), np.tri(3, dtype="float32"))
    same(tk.eye(2, k=10**12), np.zeros((2, 2), "float32"))
    same(tk.tril(tk.ones((2, 2)), 10**12), np.ones((2, 2), "float32"))


@given(st.lists(hnp.arrays("float64", st.integers(0, 3)), max_size=3), st.booleans(), st.booleans())
def test_meshgrid_is_numpys(vectors, matrix, sparse):
    indexing = "ij" if matrix else "xy"
    expected = np.meshgrid(*vectors, indexing=indexing, sparse=sparse)
    for backend in BACKENDS:
        found = [tk.tensor(v, backend=backend) for v in vectors]
        got = tk.meshgrid(*found, indexing=indexing, sparse=sparse)
        assert len(got) == len(expected)
        for mine, theirs in zip(got, expected, strict=True):
            same(mine, theirs)


@given(st.lists(st.integers(0, 3), max_size=3), st.sampled_from(["int32", "float64"]))
def test_indices_are_numpys(sizes, dtype):
    expected = np.indices(sizes, dtype)
    got = tk.indices(sizes, dtype)
    assert got.size == expected.size
    if sizes:
        same(got, expected)
    for mine, theirs in zip(tk.indices(sizes, dtype, True), np.indices(sizes, dtype, True), strict=True):
        same(mine, theirs)


def test_fromfunction_is_numpys():
    same(
        tk.fromfunction(lambda i, j: i * 10 + j, (3, 4), "float64"),
        np.fromfunction(lambda i, j: i * 10 + j, (3, 4), dtype="float64"),
    )
    assert tk.fromfunction(lambda i: i < 2, (3,)).tolist() == [True, True, False]


@pytest.mark.feature(179)
@given(
    hnp.arrays(st.sampled_from(["int32", "int64"]), SHAPES, elements=st.integers(-2, 5)),
    st.integers(0, 4),
    st.sampled_from(DTYPES),
    st.integers(0, 3),
)
def test_one_hot_is_a_row_of_the_unit_matrix(indices, classes, dtype, place):
    axis = place % (indices.ndim + 1)
    rows = np.zeros((*indices.shape, classes), dtype)
    for where in np.ndindex(indices.shape):
        if 0 <= indices[where] < classes:
            rows[(*where, indices[where])] = 1
    for backend in BACKENDS:
        x = tk.tensor(indices, backend=backend)
        same(tk.one_hot(x, classes, dtype), rows)
        same(tk.one_hot(x, classes, dtype, axis=axis), np.moveaxis(rows, -1, axis))


@pytest.mark.feature(179)
def test_one_hot_rows_are_batched():
    labels = tk.tensor([[2, 0], [1, 5]])
    same(tk.vmap(lambda x: tk.one_hot(x, 3))(labels), array(tk.one_hot(labels, 3)))
    same(
        tk.vmap(lambda x: tk.one_hot(x, 3, axis=0), out_axes=1)(labels), array(tk.one_hot(labels, 3, axis=0))
    )


@given(
    hnp.arrays(st.sampled_from(["int32", "float64"]), st.integers(0, 3), elements=st.integers(-3, 3)),
    st.one_of(st.none(), st.integers(0, 4)),
    st.booleans(),
)
def test_vander_is_numpys(x, n, increasing):
    got, expected = tk.vander(tk.tensor(x), n, increasing), np.vander(x, n, increasing)
    np.testing.assert_array_equal(array(got), expected)
    assert got.shape == expected.shape


# ---- names and mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*"arange linspace full zeros ones empty eye tri asarray".split()])
def test_creation_takes_a_dtype_a_backend_and_a_device_by_name(name):
    parameters = inspect.signature(getattr(tk, name)).parameters
    assert {"dtype", "backend", "device"} <= set(parameters)


V = tk.tensor([1.0, 2.0, 3.0], backend=FUSED)

# fmt: off
MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: tk.zeros((2**70,)), ShapeError, r"zeros: sizes \(1180.*less than 2\*\*60 elements"),
    (lambda: tk.zeros((2**40, 0, 2**40)), ShapeError, "zeros: sizes"),
    (lambda: tk.ones((1,) * 65), ShapeError, "ones: numpy has arrays of at most 64 axes, got 65"),
    (lambda: V.reshape((1,) * 64 + (3,)), ShapeError, "reshape: numpy has arrays of at most 64 axes, got 65"),
    (lambda: tk.new((0, 2**70), []), ShapeError, "new: sizes"),
    (lambda: tk.arange(2**70), ScalarRangeError, "arange: .* does not fit int32"),
    (lambda: tk.zeros((2, -1)), ShapeError, r"zeros: sizes must not be negative, got \(2, -1\)"),
    (lambda: tk.empty(1.5), ArgumentError, "empty: the sizes of a shape must be ints, got 1.5"),
    (lambda: tk.ones_like(V, shape=(-1,)), ShapeError, "ones_like: sizes must not be negative"),
    (lambda: tk.full_like(V, [1.0, 2.0]), ShapeError, r"full_like: shape \(2,\) does not broadcast to \(3,\)"),
    (lambda: tk.full_like(tk.arange(2), math.nan), ScalarRangeError, "full_like: nan does not fit int32"),
    (lambda: tk.full(2, object()), ArgumentError, "full: the value must be one number or tensor"),
    (lambda: tk.arange("3"), ArgumentError, "arange: start, stop and step must be finite numbers, got '3'"),
    (lambda: tk.arange(0, math.inf), ArgumentError, "arange: start, stop and step must be finite numbers, got inf"),
    (lambda: tk.arange(0, 2**40, 2**39), ScalarRangeError, "arange: .* does not fit int32.*int64"),
    (lambda: tk.linspace(0, 1, 5, "float64"), ArgumentError, "linspace: endpoint must be True or False, got 'float64'"),
    (lambda: tk.linspace(0, 1, 2.5), ArgumentError, "linspace: num must be an int, got 2.5"),
    (lambda: tk.linspace(0, 1, -2), ShapeError, "linspace: num must not be negative, got -2"),
    (lambda: tk.linspace(V, 1, 2, axis=2), AxisError, "linspace: axis 2 is out of range"),
    (lambda: tk.geomspace(0, 1), ArgumentError, "geomspace: start and stop must both be positive or both negative"),
    (lambda: tk.geomspace(-1, 1), ArgumentError, "geomspace: start and stop must both be positive or both negative"),
    (lambda: tk.eye(2, k=0.5), ArgumentError, "eye: the offset of the diagonal must be an int, got 0.5"),
    (lambda: tk.eye(2.0), ArgumentError, "eye: the numbers of rows and columns must be ints"),
    (lambda: tk.tri(-1), ShapeError, "tri: sizes must not be negative"),
    (lambda: tk.meshgrid(V, V, indexing="yx"), ArgumentError, "meshgrid: indexing must be 'xy' or 'ij', got 'yx'"),
    (lambda: tk.one_hot(V, 3), DTypeError, "one_hot: need integers, got float32; cast first"),
    (lambda: tk.one_hot([1], -1), ShapeError, "one_hot: sizes must not be negative"),
    (lambda: tk.one_hot([1], 2, axis=2), AxisError, "one_hot: axis 2 is out of range"),
    (lambda: tk.vander(tk.ones((2, 2))), ShapeError, r"vander: need one axis, got shape \(2, 2\)"),
]
# fmt: on


@pytest.mark.parametrize(("call", "error", "message"), MISTAKES, ids=lambda value: "")
def test_mistakes_are_one_clear_line(call, error, message):
    with pytest.raises(error, match=f"^{message}") as caught:
        call()
    assert isinstance(caught.value, TensorkenError)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_a_dtype_converts_its_argument() -> None:
    """As in numpy and JAX: `np.float32(x)`."""
    assert tk.float32(1.5).dtype is tk.float32
    assert tk.uint8([1, 2]).tolist() == [1, 2]
    assert tk.bool([0, 2]).tolist() == [False, True]
    assert tk.complex64(1.0).item() == 1 + 0j
    assert tk.grad(lambda x: tk.float64(x) ** 2)(tk.float32(3.0)).item() == 6.0


ENDS = {
    "float64": [0.1, 1e300, -math.inf, math.nan, 65504.0, 65520.0, 1e-46, 1.5 * 2.0**-25],
    "int64": [2**53 + 1, 2**62 - 1, -(2**63), 2**24 + 1],
    "uint64": [2**64 - 1, 2**63 + 1, 2**24 + 1],
    "bool": [False, True],
}
"""Numbers by the dtype of an array; others have small ones."""


@each_of("target", ["float16", "bfloat16", "float32", "float64"])
def test_an_array_of_another_dtype_gives_the_numbers_of_a_list(target: str) -> None:
    for dtype in ("bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64"):
        array = np.array(ENDS.get(dtype, [0, 1, 2, 3, 100]), dtype)
        found, expected = tk.tensor(array, target), tk.tensor(array.tolist(), target)
        assert found.dtype == expected.dtype == target
        assert str(found.tolist()) == str(expected.tolist()), dtype
        array[:] = 0
        assert str(found.tolist()) == str(expected.tolist())


@each_of("ranged", [tk.arange, tk.linspace, tk.logspace, tk.geomspace])
def test_a_range_of_more_numbers_than_memory_is_refused(ranged: Any) -> None:
    args = (0.0, 1e18) if ranged is tk.arange else (1.0, 2.0, 10**18)
    with pytest.raises(
        tk.errors.ArgumentError, match=f"^{ranged.__name__}: there is no memory for 1,000,000,"
    ):
        ranged(*args)
