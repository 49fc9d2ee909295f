"""Tensor: its attributes, creation and export, operators, and its behaviour as a Python object."""

from __future__ import annotations

import array as arrays
import copy
import gc
import importlib.metadata
import itertools
import math
import operator
import pickle
import random
import struct
import weakref

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import FUSED, STACKS, Counting, array, f64
from tensorken_core.errors import ImmutableError, IndexingError, ShapeError, TensorkenError
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.tensor.tensor import Tensor
from tensorken_numpy.backend import Numpy

pytestmark = pytest.mark.usefixtures("on_numpy")

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3)
ARRAYS = hnp.arrays(st.sampled_from(["bool", "int32", "int64", "float16", "float32", "float64"]), SHAPES)


def same(got, expected):
    """Shape, dtype and every bit."""
    read = array(got)
    assert got.shape == read.shape == expected.shape
    assert str(got.dtype) == str(read.dtype) == str(expected.dtype)
    assert read.tobytes() == np.ascontiguousarray(expected).tobytes()


# ---- in and out --------------------------------------------------------------------------------------------


@pytest.mark.feature(5, 8, 9)
@given(ARRAYS)
def test_values_are_returned_unchanged(values):
    for stack in STACKS.values():
        x = tk.tensor(values, backend=stack)
        same(x, values)
        assert (x.ndim, x.size) == (values.ndim, values.size)
        np.testing.assert_equal(x.tolist(), values.tolist())
        same(x.ravel(), values.reshape(values.size))
        same(tk.new(values.shape, values.reshape(values.size), backend=stack), values)


@pytest.mark.feature(9)
@pytest.mark.parametrize(
    "shape", [(), (0,), (2, 0), (0, 2), (2, 0, 3), (0, 0), (1, 2, 0, 3), (2, 1, 3), (1, 1, 1)]
)
def test_nested_lists_of_every_shape(shape):
    values = np.arange(math.prod(shape), dtype="int32").reshape(shape)
    assert tk.tensor(values).tolist() == values.tolist()
    if 0 not in shape:  # a list without numbers does not determine the dtype
        same(tk.tensor(values.tolist(), "int32"), values)


@pytest.mark.feature(8)
def test_data_in_many_forms():
    expected = [[1.0, 2.0], [3.0, 4.0]]
    forms = [
        expected,
        tuple(map(tuple, expected)),
        np.array(expected, "float32"),
        np.array(expected, ">f4"),
        np.asfortranarray(np.array(expected, "float32")),
        np.array([[4.0, 3.0], [2.0, 1.0]], "float32")[::-1, ::-1],
        [np.array([1.0, 2.0]), arrays.array("f", [3.0, 4.0])],
        [tk.tensor([1.0, 2.0]), tk.tensor([3.0, 4.0])],
        [[tk.tensor(1.0), 2.0], (3.0, tk.tensor(4.0))],
        memoryview(struct.pack("4f", 1, 2, 3, 4)).cast("f", (2, 2)),
        tk.tensor(expected),
    ]
    for form in forms:
        x = tk.tensor(form)
        assert (x.tolist(), x.shape, x.dtype) == (expected, (2, 2), tk.float32)
    assert tk.tensor(range(3)).tolist() == [0, 1, 2]
    assert tk.tensor(np.array([1, 250], "uint8"), "float32").tolist() == [1.0, 250.0]
    assert tk.tensor(np.array([1, -3], "int8"), "int64").tolist() == [1, -3]
    assert tk.tensor(np.array([2**63 - 1], "uint64"), "int64").tolist() == [2**63 - 1]
    assert tk.tensor(np.float64(2.5)).dtype is tk.float64
    assert tk.tensor([1.9, -1.9], "int32").tolist() == [1, -1]
    assert tk.tensor(1.9, "int32").item() == tk.full((), 1.9, "int32").item() == 1
    assert tk.tensor([0.0, 2.0], "bool").tolist() == [False, True]


@pytest.mark.feature(13, 45)
@pytest.mark.parametrize("stack", STACKS)
def test_neither_side_sees_changes_of_the_other(stack):
    values = np.array([1.0, 2.0, 3.0])
    x = tk.tensor(values, backend=STACKS[stack])
    y = x + 0.0
    values[0] = 9.0
    assert x.tolist() == [1.0, 2.0, 3.0]
    for z in (x, x.reshape(3, 1), x[1:], x.expand((3,)), x.T, tk.stop_gradient(x), y, x.ravel(), x.realize()):
        out = np.array(z)
        out[...] = -1.0
        flat = z.flat()
        flat[...] = -1.0
    assert x.tolist() == y.tolist() == [1.0, 2.0, 3.0]
    data = bytearray(struct.pack("2d", 1.0, 2.0))
    z = tk.tensor(memoryview(data).cast("d"), backend=STACKS[stack])
    data[:] = bytes(len(data))
    assert z.tolist() == [1.0, 2.0]


@pytest.mark.feature(13)
def test_a_tensor_cannot_be_changed():
    x = tk.tensor([1.0, 2.0])
    with pytest.raises(ImmutableError, match=r"x\.at\[i\]\.set\(v\)"):
        x[0] = 3.0
    with pytest.raises(ImmutableError, match=r"tk\.delete\(x, i, axis\)"):
        del x[0]
    for change in (
        lambda: setattr(x, "shape", (2, 1)),
        lambda: setattr(x, "color", "red"),
    ):
        with pytest.raises(AttributeError):
            change()
    before = x
    x += 1.0
    x *= 2.0
    assert (before.tolist(), x.tolist()) == ([1.0, 2.0], [4.0, 6.0])


@pytest.mark.feature(8, 47, 29, 175)
def test_creation():
    assert tk.zeros((2, 3)).tolist() == [[0.0] * 3] * 2
    assert tk.ones(3).tolist() == [1.0] * 3
    assert tk.full((2,), 7).tolist() == [7, 7]
    assert tk.full((2, 1), tk.tensor([3.0])).tolist() == [[3.0], [3.0]]
    assert tk.scalar(2.0).shape == ()
    assert tk.zeros(()).item() == 0.0
    assert tk.zeros(np.int64(2)).shape == tk.zeros((np.int32(2),)).shape == (2,)
    x = f64([[1.0, 2.0]])
    for like, value in ((tk.zeros_like, 0.0), (tk.ones_like, 1.0)):
        assert (like(x).tolist(), like(x).dtype) == ([[value] * 2], tk.float64)
        assert like(x, "int32").dtype is tk.int32
    assert tk.full_like(x, 5).tolist() == [[5.0, 5.0]]
    for n, m in itertools.product(range(5), repeat=2):
        same(tk.eye(n, m), np.eye(n, m, dtype="float32"))
    assert tk.eye(3).tolist() == tk.eye(3, 3).tolist()


@pytest.mark.feature(29, 175)
@given(st.integers(-20, 20), st.integers(-20, 20), st.integers(-5, 5).filter(bool))
def test_arange_is_range(start, stop, step):
    assert tk.arange(start, stop, step).tolist() == list(range(start, stop, step))
    assert tk.arange(start).tolist() == list(range(start))


@pytest.mark.feature(29)
@given(st.floats(-10, 10), st.floats(-10, 10), st.integers(0, 60))
def test_linspace_ends_at_stop_and_does_not_drift(start, stop, num):
    got = tk.linspace(start, stop, num, dtype="float64").tolist()
    assert len(got) == num
    if num:
        assert got[0] == start
    if num > 1:
        assert got[-1] == stop
        np.testing.assert_allclose(got, np.linspace(start, stop, num), rtol=1e-14, atol=1e-14)


@pytest.mark.feature(175)
def test_random_numbers_depend_only_on_the_seed():
    one, same_again, other = (tk.randn((50, 20), random.Random(seed)) for seed in (1, 1, 2))
    assert one.tolist() == same_again.tolist() != other.tolist()
    assert one.tolist() == tk.randn((50, 20), random.Random(1), backend=Numpy()).tolist()
    assert abs(one.mean().item()) < 0.1
    assert abs((one * one).mean().item() - 1.0) < 0.15


# ---- broadcasting and operators ----------------------------------------------------------------------------


@pytest.mark.feature(17, 18, 19)
@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=4, min_side=0, max_side=3))
def test_shapes_broadcast_as_in_numpy(shapes):
    (a, b), expected = shapes.input_shapes, shapes.result_shape
    x, y = (
        np.arange(math.prod(a), dtype="float64").reshape(a),
        np.arange(math.prod(b), dtype="float64").reshape(b) + 0.5,
    )
    for stack in ("Fuse(Numpy())", "Fuse(Strict())", "Numpy()"):
        p, q = f64(x, STACKS[stack]), f64(y, STACKS[stack])
        assert (p + q).shape == expected
        same(p - q, x - y)
        same(tk.where(p < q, p, q), np.where(x < y, x, y))
        same(p.broadcast_to(expected), np.array(np.broadcast_to(x, expected)))


@pytest.mark.feature(17, 18)
@given(SHAPES, SHAPES)
def test_shapes_that_do_not_broadcast_are_refused(a, b):
    try:
        np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(ShapeError, match=r"^add: shapes .* do not broadcast"):
            tk.zeros(a) + tk.zeros(b)
    else:
        assert (tk.zeros(a) + tk.zeros(b)).shape == np.broadcast_shapes(a, b)


@pytest.mark.feature(14, 16, 70)
@pytest.mark.parametrize(
    "apply",
    [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
     operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne],
)  # fmt: skip
def test_operators_take_tensors_numbers_and_arrays_on_either_side(apply):
    a, b = np.array([1.5, 4.0, 0.5]), np.array([2.0, 4.0, 3.0])
    expected = apply(a, b)
    for got in (apply(f64(a), f64(b)), apply(f64(a), b), apply(f64(a), b.tolist())):
        np.testing.assert_allclose(array(got), expected, rtol=1e-15)
    reflected = apply(a, f64(b))  # numpy leaves it to the tensor
    assert isinstance(reflected, Tensor)
    np.testing.assert_allclose(array(reflected), expected, rtol=1e-15)
    np.testing.assert_allclose(array(apply(f64(a), 2.0)), apply(a, 2.0), rtol=1e-15)
    np.testing.assert_allclose(array(apply(2.0, f64(a))), apply(2.0, a), rtol=1e-15)
    assert apply(f64(a), 2).dtype is apply(f64(a), 2.0).dtype


@pytest.mark.feature(14)
def test_numbers_are_not_made_full_size():
    backend = Counting()
    x = tk.tensor(np.ones((100, 100)), backend=Fuse(backend))
    backend.clear()
    ((x + 2.0) * 3.0).realize()
    assert backend.sizes["full", (1, 1)] == 2 == backend.calls["full"] if backend.calls["full"] else True
    assert not any(name == "full" and math.prod(shape) > 1 for name, shape in backend.sizes)


@pytest.mark.feature(16)
def test_equality_with_other_objects_is_false():
    x = tk.tensor([1.0, 2.0])
    assert (x == None) is False  # noqa: E711
    assert (x != None) is True  # noqa: E711
    assert (x == "a") is False
    assert (x == [1.0, 3.0]).tolist() == [True, False]
    assert x in [None, x]
    assert 2.0 in x
    assert 3.0 not in x


def test_division_and_remainder_of_floats_follow_python():
    pairs = [(7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (-7.5, -2.0), (0.0, 3.0)]
    a, b = f64([p[0] for p in pairs]), f64([p[1] for p in pairs])
    assert (a // b).tolist() == [p // q for p, q in pairs]
    assert (a % b).tolist() == [p % q for p, q in pairs]
    quotient, rest = divmod(a, b)
    assert (quotient.tolist(), rest.tolist()) == ([p // q for p, q in pairs], [p % q for p, q in pairs])


# ---- movement and reduction --------------------------------------------------------------------------------


@pytest.mark.feature(21, 22, 26, 27, 30, 31, 32, 33, 53)
def test_movements_and_reductions_against_numpy():
    values = np.arange(24.0).reshape(2, 3, 4)
    for stack in STACKS.values():
        x = f64(values, stack)
        for axes in (None, 0, -1, (0, 2), (-1, 0, 1), (), [1]):
            numpy_axes = tuple(axes) if isinstance(axes, list) else axes
            for keepdims in (False, True):
                same(x.sum(axes, keepdims), values.sum(numpy_axes, keepdims=keepdims))
                same(x.max(axes, keepdims), values.max(numpy_axes, keepdims=keepdims))
                same(x.min(axes, keepdims), values.min(numpy_axes, keepdims=keepdims))
                np.testing.assert_allclose(
                    array(x.mean(axes, keepdims)), values.mean(numpy_axes, keepdims=keepdims)
                )
        same(x.T, values.T)
        same(x.mT, values.swapaxes(-1, -2))
        same(x.permute(2, 0, 1), values.transpose(2, 0, 1))
        same(x.permute((-1, 0, 1)), values.transpose(2, 0, 1))
        same(x.transpose(), values.T)
        same(x.reshape(4, -1), values.reshape(4, -1))
        same(x.reshape((-1,)), values.reshape(-1))
        same(x.reshape(np.int64(6), 4), values.reshape(6, 4))
        same(x.flip(), np.flip(values))
        same(x.flip((0, -1)), np.flip(values, (0, 2)))
        same(x.crop(((0, 1), (1, 3), (2, 2))), values[0:1, 1:3, 2:2])
        same(x.pad(((0, 0), (1, 2), (0, 1))), np.pad(values, ((0, 0), (1, 2), (0, 1))))
        same(x.cumsum(1), values.cumsum(1))
        same(x.cumsum(), values.cumsum())
        assert x.argmax().item() == 23
        assert x.argmax(1).tolist() == values.argmax(1).tolist()
        assert x.argmax(-1, keepdims=True).shape == (2, 3, 1)
    with_nan = f64([[1.0, math.nan], [math.inf, -math.inf]])
    assert math.isnan(with_nan.max().item())
    assert array(with_nan.max(1)).tolist()[1] == math.inf
    assert with_nan.argmax().item() == 1


@pytest.mark.feature(174)
def test_pieces_and_axes_of_size_one():
    a, b = np.arange(6.0).reshape(2, 3), np.arange(3.0).reshape(1, 3)
    same(tk.concatenate([f64(a), f64(b)]), np.concatenate([a, b]))
    same(tk.concatenate([f64(a), f64(a)], -1), np.concatenate([a, a], -1))
    same(tk.stack([f64(a), f64(a)], 1), np.stack([a, a], 1))
    same(tk.stack(f64(a)), a)
    same(tk.expand_dims(f64(a), -1), a[..., None])
    same(tk.squeeze(f64(b)), b.squeeze())
    same(tk.squeeze(f64(b), (0,)), b.squeeze(0))
    same(tk.transpose(f64(a), (1, 0)), a.T)
    same(tk.dot(f64(a), f64(a.T)), a @ a.T)
    same(
        tk.dot(f64(np.ones((2, 3, 4))), f64(np.ones((5, 4, 2)))),
        np.dot(np.ones((2, 3, 4)), np.ones((5, 4, 2))),
    )
    for axis in range(2):
        same(tk.take(f64(a), [-1, 0, 1], axis), np.take(a, [-1, 0, 1], axis))
    same(tk.take(f64(a), [[5, 0], [-6, 2]]), np.take(a, [[5, 0], [-6, 2]]))


@pytest.mark.feature(48, 134, 177)
@pytest.mark.parametrize(
    ("left", "right"),
    [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 2)), ((5, 2, 3), (3, 2)), ((4, 1, 2, 3), (5, 3, 2)),
     ((2, 0), (0, 3)), ((0, 2), (2, 3)), ((0,), (0,)), ((5, 0, 2, 3), (3,))],
)  # fmt: skip
def test_matmul_follows_numpy(left, right):
    rng = np.random.default_rng(0)
    for dtype in ("float64", "float32", "int32"):
        a, b = (rng.integers(-5, 5, shape).astype(dtype) for shape in (left, right))
        for stack in STACKS.values():
            x, y = tk.tensor(a, backend=stack), tk.tensor(b, backend=stack)
            same(x @ y, np.asarray(a @ b))
            same(a @ y, np.asarray(a @ b))
            same(tk.matmul(x, b), np.asarray(a @ b))


@pytest.mark.feature(178)
def test_softmax_and_its_kin_are_stable():
    x = f64([[1000.0, 1001.0], [-1000.0, -1000.0]])
    e = 1 / (1 + math.e)
    np.testing.assert_allclose(array(tk.softmax(x)), [[e, 1 - e], [0.5, 0.5]], rtol=1e-14)
    np.testing.assert_allclose(array(tk.log_softmax(x)), np.log([[e, 1 - e], [0.5, 0.5]]), rtol=1e-13)
    np.testing.assert_allclose(
        array(tk.logsumexp(x, 1)), [1001 - math.log(1 - e), math.log(2) - 1000], rtol=1e-14
    )
    assert tk.logsumexp(f64([-math.inf, -math.inf])).item() == -math.inf
    assert tk.logsumexp(f64([0.0, math.inf])).item() == math.inf
    assert tk.softmax(f64([-math.inf, 0.0])).tolist() == [0.0, 1.0]
    assert tk.softmax(x, 0).shape == tk.softmax(x, (0, 1)).shape == (2, 2)
    assert tk.logsumexp(x, 0, keepdims=True).shape == (1, 2)
    assert [tk.grad(tk.sigmoid)(f64(v)).item() for v in (-1000.0, 1000.0)] == [0.0, 0.0]
    assert tk.grad(tk.tanh)(f64(-60.0)).item() == pytest.approx(4 * math.exp(-120.0), rel=1e-15)
    assert tk.grad(lambda x: tk.softmax(x)[0, 0])(x).shape == (2, 2)


# ---- as a Python object ------------------------------------------------------------------------------------


@pytest.mark.feature(180)
def test_one_number():
    x = f64([[2.5]])
    assert (x.item(), float(x), int(x), bool(x), bool(x * 0)) == (2.5, 2.5, 2, True, False)
    assert type(x.item()) is float
    assert type(tk.tensor(3).item()) is int
    assert type(tk.tensor(True).item()) is bool
    assert math.sin(x) == math.sin(2.5)
    assert list(range(tk.tensor(2))) == [0, 1]
    assert ["a", "b"][tk.tensor(1)] == "b"
    assert bool(f64(math.nan))
    assert tk.grad(lambda x: x * 2.0 if x > 0 else -x)(f64(-3.0)).item() == -1.0  # a condition on a value


def test_items_have_places():
    x = f64([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert (x.item(1, 2), x.item(-2), x[0].item(1)) == (6.0, 5.0, 2.0)
    with pytest.raises(IndexingError, match="index: 6 is out of range"):
        x.item(6)
    with pytest.raises(IndexingError, match="index: 3 indices"):
        x.item(0, 0, 0)


def test_the_module_knows_its_version():
    assert tk.__version__ == importlib.metadata.version("tensorken-core")
    with pytest.raises(AttributeError, match="module 'tensorken' has no attribute 'jitt'"):
        tk.jitt  # noqa: B018, reading it is the test


def test_python_rounds_tensors():
    assert round(f64([0.5, 1.5, -2.6])).tolist() == [0.0, 2.0, -3.0]
    assert round(f64(2.347), 2).item() == pytest.approx(2.35)
    assert round(tk.tensor([3])).dtype is tk.int32


def test_methods_take_the_arguments_of_the_functions():
    x = f64([[1.0, 2.0], [3.0, 4.0]])
    assert x.ravel("F").tolist() == x.flatten("F").tolist() == [1.0, 3.0, 2.0, 4.0]
    assert x.astype("float32", copy=False).dtype is tk.float32


def test_length_and_iteration_go_along_the_first_axis():
    x = f64([[1.0, 2.0], [3.0, 4.0]])
    assert len(x) == 2
    assert [row.tolist() for row in x] == [[1.0, 2.0], [3.0, 4.0]]
    a, b = x
    assert (a.tolist(), b.tolist()) == ([1.0, 2.0], [3.0, 4.0])
    assert [row.tolist() for row in reversed(x)] == [[3.0, 4.0], [1.0, 2.0]]
    assert list(tk.zeros((0, 3))) == []
    assert [float(v) for v in f64([1.0, 2.0])] == [1.0, 2.0]
    assert tk.grad(lambda x: sum(row[0] * (i + 1) for i, row in enumerate(x)))(x).tolist() == [
        [1.0, 0.0],
        [2.0, 0.0],
    ]


def test_a_tensor_is_freed_with_its_last_reference():
    x = f64([1.0])
    kept = weakref.ref(x)
    del x
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("dtype", ["bool", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_tensor_survives_pickling(dtype, protocol, monkeypatch):
    """An interpreter that was passed as an object has no name to look up, so the default backend loads it."""
    asked = []

    def resolve(backend=None, device=None):
        asked.append(backend)
        return FUSED

    monkeypatch.setattr("tensorken.arrays.creation.resolve", resolve)
    values = np.array([[1, 0, 1], [0, 1, 1]], dtype)
    x = tk.tensor(values).T[1:]
    y = pickle.loads(pickle.dumps(x, protocol))
    same(y, np.ascontiguousarray(values.T[1:]))
    assert asked[-1] is None
    empty = tk.tensor(np.zeros((2, 0), dtype))
    same(pickle.loads(pickle.dumps(empty, protocol)), np.zeros((2, 0), dtype))


def test_copies_of_a_tensor_are_the_tensor_itself():
    x = f64([1.0, 2.0])
    tree = {"x": [x], "n": [1]}
    twin = copy.deepcopy(tree)
    assert x.copy() is x
    assert x.copy() is copy.copy(x) is copy.deepcopy(x) is twin["x"][0] is x
    assert twin["n"] is not tree["n"]
    assert +x is x


def test_numpy_reads_a_tensor():
    x = f64([[1.0, 2.0]])
    assert np.array(x).tolist() == np.asarray(x).tolist() == [[1.0, 2.0]]
    assert np.array(x, "float32").dtype == np.float32
    assert np.array(x, copy=True).flags.writeable
    assert np.sin(np.asarray(x)).shape == (1, 2)
    assert not np.array(x, copy=False).flags.writeable
    with pytest.raises(ValueError, match="cop"):
        np.array(x, "float32", copy=False)


@pytest.mark.feature(102, 181)
def test_a_tensor_is_an_interpreter_and_a_representation():
    x = f64([1.0, 2.0])
    assert x.interpreter is FUSED
    again = Tensor(x.interpreter, x.representation)
    assert (again.shape, again.dtype, again.tolist()) == ((2,), tk.float64, [1.0, 2.0])

    def f(x):
        assert (x.shape, x.dtype, x.tolist(), float(x[0])) == ((2,), tk.float64, [1.0, 2.0], 1.0)
        assert x.backend == f64(0.0).backend
        return x.sum()

    tk.grad(f)(x)
    tk.jvp(f, (x,), (x,))


@pytest.mark.feature(20)
def test_a_billion_repeated_elements_cost_nothing():
    x = tk.ones((1,)).expand((10**9,))
    assert x.size == 10**9
    assert (x * 2.0).sum().item() == 2e9
    assert x.max().item() == 1.0


@pytest.mark.feature(6)
def test_to_moves_the_values():
    other = Numpy()
    x = tk.tensor([[1, 2], [3, 4]]).T
    y = x.to(other)
    assert y.interpreter is other
    same(y, np.array([[1, 3], [2, 4]], "int32"))
    assert x.to(FUSED) is x
    assert (y + 1).interpreter is other


def test_numpy_cannot_swallow_a_derivative() -> None:
    with pytest.raises(tk.errors.ConcretizationError, match=r"^__array__: .* inside grad"):
        tk.grad(lambda x: tk.tensor(np.sin(np.asarray(x))).sum())(tk.tensor([1.0, 2.0]))
    assert np.asarray(tk.tensor([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_a_tensor_is_unpickled_on_the_backend_of_its_name() -> None:
    x = tk.tensor([1.0, 2.0], backend="reference")
    loaded = pickle.loads(pickle.dumps(x))
    assert (loaded.tolist(), loaded.backend) == ([1.0, 2.0], "reference")


REFLECTED = (
    "radd rsub rmul rtruediv rfloordiv rmod rpow rdivmod rmatmul rand ror rxor rlshift rrshift".split()
)


@each_of(("dtype", "name"), [(d, n) for d in ("int32", "uint8", "float32", "bool") for n in REFLECTED])
def test_a_reflected_operator_of_two_tensors_is_the_operator(dtype, name):
    x, y = (tk.tensor(values).astype(dtype) for values in ([7, 2, 3, 0], [2, 5, 1, 0]))

    def numbers(f):
        try:
            result = f(x, y)
        except TensorkenError as error:
            return type(error)
        return [repr(z.tolist()) for z in (result if isinstance(result, tuple) else (result,))]

    plain = lambda x, y: getattr(x, f"__{name[1:]}__")(y)  # noqa: E731
    reflected = lambda x, y: getattr(y, f"__{name}__")(x)  # noqa: E731
    assert numbers(reflected) == numbers(tk.jit(reflected)) == numbers(plain)


def test_an_operand_that_is_no_data_is_refused_by_every_operator():
    x = tk.tensor([1, 2])
    for name in REFLECTED:
        for call in (f"__{name}__", f"__{name[1:]}__"):
            with pytest.raises(
                (TensorkenError, TypeError), match=r"cannot combine a tensor with|unsupported"
            ):
                getattr(x, call)(object())
