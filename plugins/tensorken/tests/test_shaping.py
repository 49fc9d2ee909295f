"""Shapes, orders, joins, repeats and margins: numpy's results bit by bit, derivatives, vmap as a loop, mistakes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import tensorken as tk
from core.tests.examples import examples
from core.tests.support import FUSED, STACKS, array, f64
from tensorken_core.errors import (
    ArgumentError,
    AxisError,
    IndexingError,
    MixedBackendError,
    ShapeError,
    TensorkenError,
)
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.rewriting.shape_tracker import ShapeTracker
from tensorken_core.tensor.tensor import Tensor
from tensorken_numpy.backend import Numpy

pytestmark = pytest.mark.usefixtures("on_numpy")

FEW = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
BACKENDS = [FUSED, STACKS["Fuse(Strict())"], STACKS["Fuse(Required())"], "reference"]
DTYPES = st.sampled_from(["bool", "int32", "int64", "float16", "float32", "float64"])
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.5, -2.0]


@st.composite
def arrays(draw: st.DrawFn, min_dims: int = 0, max_dims: int = 3, max_side: int = 3) -> Any:
    """Arrays of every dtype, with sizes 0 and 1, NaN, infinities, signed zeros, and negative strides."""
    shape = draw(hnp.array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=0, max_side=max_side))
    return draw(filled(shape))


@st.composite
def filled(draw: st.DrawFn, shape: tuple[int, ...], dtype: str | None = None) -> Any:
    dtype = draw(DTYPES) if dtype is None else dtype
    if dtype == "bool":
        elements: Any = st.booleans()
    elif dtype.startswith("int"):
        elements = st.integers(-(2**31), 2**31 - 1)
    else:
        elements = st.sampled_from(SPECIAL)
    values = draw(hnp.arrays(dtype, shape, elements=elements))
    return values[tuple(slice(None, None, draw(st.sampled_from([1, -1]))) for _ in shape)]


def same(got: Any, expected: Any) -> None:
    """Shape, dtype and every bit, of one result or of several."""
    if isinstance(expected, list | tuple):
        assert len(got) == len(expected)
        for mine, theirs in zip(got, expected, strict=True):
            same(mine, theirs)
        return
    assert got.shape == expected.shape
    assert str(got.dtype) == str(expected.dtype)
    read = array(got)
    assert read.shape == expected.shape
    if expected.dtype.kind == "f":  # the bits of a NaN are unspecified
        np.testing.assert_array_equal(read, expected)
        np.testing.assert_array_equal(
            np.signbit(read[~np.isnan(read)]), np.signbit(expected[~np.isnan(expected)])
        )
    else:
        assert read.tobytes() == np.ascontiguousarray(expected).tobytes()


def alike(mine: Callable[[Any], Any], theirs: Callable[[], Any]) -> None:
    """Both fail, ours with one of our errors; or both give the same, on every backend."""
    try:
        expected = theirs()
    except (ValueError, IndexError, TypeError):
        with pytest.raises(TensorkenError):
            mine(FUSED)
        return
    for backend in BACKENDS:
        same(mine(backend), expected)


# ---- one tensor --------------------------------------------------------------------------------------------

Draw = Any
Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def axis_in(draw: Draw, a: Any, beyond: int = 0) -> int:
    """An axis, now and then one too many."""
    return draw(st.integers(-a.ndim - 1, a.ndim + beyond))


def some_axes(draw: Draw, a: Any) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(-a.ndim, max(a.ndim - 1, 0)), max_size=a.ndim)))


def any_axes(draw: Draw, a: Any) -> Any:
    return draw(st.sampled_from([None, axis_in(draw, a), some_axes(draw, a)]))


def an_order(draw: Draw, a: Any) -> tuple[int, ...]:
    return tuple(draw(st.permutations(range(a.ndim))))


def another_shape(draw: Draw, a: Any) -> tuple[int, ...]:
    sizes = [a.size] if draw(st.booleans()) else list(draw(st.permutations(a.shape)))
    sizes += [1] * draw(st.integers(0, 2))
    if sizes and draw(st.booleans()):
        sizes[draw(st.integers(0, len(sizes) - 1))] = -1
    return tuple(sizes)


def a_larger_shape(draw: Draw, a: Any) -> tuple[int, ...]:
    kept = tuple(draw(st.integers(0, 3)) if n == 1 else n for n in a.shape)
    return tuple(draw(st.lists(st.integers(0, 2), max_size=2))) + kept


def shifts(draw: Draw, a: Any) -> tuple[Any, ...]:
    shift = st.integers(-7, 7)
    if draw(st.booleans()) or not a.ndim:
        return (draw(shift), draw(st.sampled_from([None, axis_in(draw, a)])))
    axes = some_axes(draw, a)
    by = draw(shift) if not axes or draw(st.booleans()) else tuple(draw(shift) for _ in axes)
    return (by, axes) if axes else (by,)


def cuts(draw: Draw, a: Any, n: int) -> Any:
    return (
        draw(st.integers(1, 4))
        if draw(st.booleans())
        else draw(st.lists(st.integers(-n - 1, n + 2), max_size=3))
    )


def size_of(a: Any, axis: int) -> int:
    return a.shape[axis] if -a.ndim <= axis < a.ndim else 1


def split_arguments(draw: Draw, a: Any) -> Arguments:
    axis = axis_in(draw, a)
    return (cuts(draw, a, size_of(a, axis)), axis), {}


def repeats(draw: Draw, a: Any) -> Arguments:
    axis = draw(st.sampled_from([None, axis_in(draw, a)]))
    n = a.size if axis is None else size_of(a, axis)
    several = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    return (draw(st.one_of(st.integers(0, 3), several)), axis), {}


def exchanged(draw: Draw, a: Any) -> Arguments:
    if draw(st.booleans()):
        return (axis_in(draw, a), axis_in(draw, a)), {}
    count = draw(st.integers(0, a.ndim))
    return (an_order(draw, a)[:count], an_order(draw, a)[:count]), {}


def plain(*found: Callable[[Draw, Any], Any]) -> Callable[[Draw, Any], Arguments]:
    return lambda draw, a: (tuple([f(draw, a) for f in found]), {})


TURNS = plain(lambda draw, a: draw(st.integers(-3, 6)), lambda draw, a: (axis_in(draw, a), axis_in(draw, a)))
ORDER = plain(lambda draw, a: draw(st.sampled_from("CF")))
DIAGONALS = plain(lambda draw, a: draw(st.integers(-4, 4)))

ONE: dict[str, Callable[[Draw, Any], Arguments]] = {
    "reshape": plain(another_shape, lambda draw, a: draw(st.sampled_from("CF"))),
    "ravel": ORDER,
    "transpose": plain(an_order),
    "permute_dims": plain(an_order),
    "matrix_transpose": plain(),
    "swapaxes": plain(axis_in, axis_in),
    "moveaxis": exchanged,
    "rollaxis": plain(axis_in, lambda draw, a: axis_in(draw, a, 1)),
    "expand_dims": plain(
        lambda draw, a: draw(st.sampled_from([axis_in(draw, a, 1), (0, -1), (1, 0), (0, 0), ()]))
    ),
    "squeeze": plain(any_axes),
    "broadcast_to": plain(a_larger_shape),
    "flip": plain(any_axes),
    "fliplr": plain(),
    "flipud": plain(),
    "rot90": TURNS,
    "roll": lambda draw, a: (shifts(draw, a), {}),
    "atleast_1d": plain(),
    "atleast_2d": plain(),
    "atleast_3d": plain(),
    "split": split_arguments,
    "array_split": split_arguments,
    "hsplit": plain(lambda draw, a: cuts(draw, a, 3)),
    "vsplit": plain(lambda draw, a: cuts(draw, a, 3)),
    "dsplit": plain(lambda draw, a: cuts(draw, a, 3)),
    "unstack": lambda draw, a: ((), {"axis": axis_in(draw, a)}),
    "tile": plain(
        lambda draw, a: draw(st.one_of(st.integers(0, 3), st.lists(st.integers(0, 2), max_size=4)))
    ),
    "repeat": repeats,
    "diagonal": plain(lambda draw, a: draw(st.integers(-4, 4)), axis_in, axis_in),
    "diag": DIAGONALS,
    "diagflat": DIAGONALS,
    "tril": DIAGONALS,
    "triu": DIAGONALS,
}
"""For each function of one tensor, under numpy's name, the arguments that it is tried with."""

# numpy makes a matrix of a vector for tril and triu, and finds an axis in a number, which the standard does not.
DEPARTURES: dict[str, Callable[[Any], bool]] = {
    "tril": lambda a: a.ndim < 2,
    "triu": lambda a: a.ndim < 2,
    "unstack": lambda a: a.ndim == 0,
    "squeeze": lambda a: a.ndim == 0,
    "repeat": lambda a: a.ndim == 0,
}


@pytest.mark.slow
@pytest.mark.feature(174)
@pytest.mark.parametrize("name", ONE)
@FEW
@given(st.data())
def test_functions_of_one_tensor_are_numpys(name, data):
    a = data.draw(arrays())
    if name in DEPARTURES and DEPARTURES[name](a):
        return
    positional, keywords = ONE[name](data.draw, a)
    mine, theirs = getattr(tk, name), getattr(np, name)
    alike(
        lambda backend: mine(tk.tensor(a, backend=backend), *positional, **keywords),
        lambda: theirs(a, *positional, **keywords),
    )


@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles_need_matrices(name):
    with pytest.raises(ShapeError, match=rf"^{name}: need at least 2 axes, got shape \(3,\)"):
        getattr(tk, name)([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("swapaxes", (0, 1)),
        ("flatten", ()),
        ("repeat", (2, 1)),
        ("diagonal", (1,)),
        ("trace", ()),
        ("squeeze", ()),
    ],
)
def test_methods_are_the_functions(method, arguments):
    a = np.arange(6.0).reshape(2, 3)
    same(getattr(f64(a), method)(*arguments), np.asarray(getattr(a, method)(*arguments)))


def test_flatten_is_ravel():
    a = np.arange(6.0).reshape(2, 3)
    same(tk.flatten(f64(a)), a.flatten())
    same(tk.flatten(f64(a), "F"), a.flatten("F"))
    same(f64(a).flatten("F"), a.flatten("F"))


# ---- several tensors ---------------------------------------------------------------------------------------


@st.composite
def families(draw: st.DrawFn, alike_in_full: bool = False) -> tuple[list[Any], int]:
    """Arrays of one dtype whose shapes may differ along one axis."""
    shape = list(draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)))
    axis = draw(st.integers(-len(shape), max(len(shape) - 1, 0)))
    dtype, found = draw(DTYPES), []
    for _ in range(draw(st.integers(1, 3))):
        sizes = list(shape)
        if sizes and not alike_in_full:
            sizes[axis] = draw(st.integers(0, 3))
        found.append(draw(filled(tuple(sizes), dtype)))
    return found, axis


@pytest.mark.feature(174)
@pytest.mark.parametrize("name", ["concatenate", "concat"])
@FEW
@given(families(), st.booleans())
def test_concatenation_is_numpys(name, family, flat):
    pieces, axis = family
    place = None if flat else axis
    alike(
        lambda backend: getattr(tk, name)([tk.tensor(a, backend=backend) for a in pieces], axis=place),
        lambda: getattr(np, name)(pieces, axis=place),
    )


@pytest.mark.feature(174)
@FEW
@given(families(alike_in_full=True), st.integers(-4, 3))
def test_stack_is_numpys(family, axis):
    pieces, _ = family
    alike(
        lambda backend: tk.stack([tk.tensor(a, backend=backend) for a in pieces], axis),
        lambda: np.stack(pieces, axis),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
@FEW
@given(st.one_of(families(), families(alike_in_full=True)))
def test_stacks_along_given_axes_are_numpys(name, family):
    pieces, _ = family
    alike(
        lambda backend: getattr(tk, name)([tk.tensor(a, backend=backend) for a in pieces]),
        lambda: getattr(np, name)(pieces),
    )


@FEW
@given(families(), st.booleans())
def test_append_is_numpys(family, flat):
    pieces, axis = family
    place = None if flat else axis
    first, last = pieces[0], pieces[-1]
    alike(
        lambda backend: tk.append(tk.tensor(first, backend=backend), tk.tensor(last, backend=backend), place),
        lambda: np.append(first, last, place),
    )


@FEW
@given(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, min_side=0, max_side=3), st.data())
def test_broadcasting_several_is_numpys(shapes, data):
    found = [data.draw(filled(shape)) for shape in shapes.input_shapes]
    assert tk.broadcast_shapes(*shapes.input_shapes) == shapes.result_shape
    alike(
        lambda backend: tk.broadcast_arrays(*[tk.tensor(a, backend=backend) for a in found]),
        lambda: np.broadcast_arrays(*found),
    )


@FEW
@given(st.lists(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3), max_size=3))
def test_shapes_that_do_not_broadcast_are_refused(shapes):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ShapeError, match=r"^broadcast_shapes: shapes .* do not broadcast"):
            tk.broadcast_shapes(*shapes)
    else:
        assert tk.broadcast_shapes(*shapes) == expected


@FEW
@given(st.data())
def test_delete_is_numpys(data):
    a = data.draw(arrays(min_dims=1))
    axis = data.draw(st.sampled_from([None, axis_in(data.draw, a)]))
    n = a.size if axis is None else size_of(a, axis)
    obj = data.draw(some_places(n, n))
    theirs = np.array(obj) if isinstance(obj, list) and obj else obj
    alike(
        lambda backend: tk.delete(tk.tensor(a, backend=backend), obj, axis),
        lambda: np.delete(a, theirs, axis),
    )


@FEW
@given(st.data())
def test_insert_is_numpys(data):
    a = data.draw(
        filled(data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3)), "float32")
    )
    axis = data.draw(st.sampled_from([None, axis_in(data.draw, a)]))
    n = a.size if axis is None else size_of(a, axis)
    obj = data.draw(some_places(n, n + 1))
    values = data.draw(
        filled(
            data.draw(hnp.array_shapes(min_dims=0, max_dims=1 if axis is None else a.ndim, max_side=3)),
            "float32",
        )
    )
    if isinstance(obj, list) and any(not -n <= i <= n for i in obj):  # numpy wraps some of them round
        with pytest.raises(TensorkenError):
            tk.insert(tk.tensor(a), obj, tk.tensor(values), axis)
        return
    theirs = np.array(obj) if isinstance(obj, list) else obj
    alike(
        lambda backend: tk.insert(
            tk.tensor(a, backend=backend), obj, tk.tensor(values, backend=backend), axis
        ),
        lambda: np.insert(a, theirs, values, axis),
    )


def some_places(n: int, end: int) -> Any:
    """An int, ints, a slice or a mask, now and then out of range."""
    index = st.integers(-n - 1, end)
    masks = [st.lists(st.booleans(), min_size=n, max_size=n)] if n else []
    return st.one_of(index, st.lists(index, min_size=1, max_size=3), st.slices(n), *masks)


def test_joining_promotes():
    joined = tk.concatenate([tk.tensor([1], "int64"), tk.tensor([0.5], "float32"), tk.tensor([True])])
    assert (joined.tolist(), joined.dtype) == ([1.0, 0.5, 1.0], tk.float32)
    assert tk.concatenate([[1], [2]], dtype="float64").dtype is tk.float64
    assert tk.stack([1, 2.5], dtype="int64").tolist() == [1, 2]
    assert tk.concat([f64([1.0]), [2.0]]).dtype is tk.float64
    assert tk.broadcast_arrays() == ()


# ---- margins -----------------------------------------------------------------------------------------------


@st.composite
def widths(draw: st.DrawFn, rank: int) -> Any:
    """Every form of numpy's argument for a pair of values for each axis."""
    n = st.integers(0, 4)
    pair = st.tuples(n, n)
    forms = [
        n,
        pair,
        st.tuples(n),
        st.lists(pair, min_size=1, max_size=1),
        st.lists(pair, min_size=rank, max_size=rank),
    ]
    forms.append(st.lists(st.tuples(n), min_size=rank, max_size=rank))
    forms.append(st.lists(pair, min_size=rank + 1, max_size=rank + 1))
    if rank:
        forms.append(st.dictionaries(st.integers(-rank, rank - 1), st.one_of(n, pair), max_size=rank))
    return draw(st.one_of(*forms))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric", "wrap"])
@FEW
@given(st.data())
def test_pad_is_numpys(mode, data):
    a = data.draw(arrays(min_dims=1))
    margins = data.draw(widths(a.ndim))
    if isinstance(margins, dict) and len({axis % a.ndim for axis in margins}) != len(margins):
        return
    alike(
        lambda backend: tk.pad(tk.tensor(a, backend=backend), margins, mode),
        lambda: np.pad(a, margins, mode),
    )


@FEW
@given(st.data())
def test_constants_in_the_margins_are_numpys(data):
    a = data.draw(
        filled(data.draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3)), "float32")
    )
    n = st.sampled_from([0.0, -0.0, 1.5, math.inf, math.nan, 3])
    pair = st.tuples(n, n)
    values = data.draw(st.one_of(n, pair, st.lists(pair, min_size=a.ndim, max_size=a.ndim)))
    margins = data.draw(widths(a.ndim).filter(lambda given: not isinstance(given, dict)))
    alike(
        lambda backend: tk.pad(tk.tensor(a, backend=backend), margins, constant_values=values),
        lambda: np.pad(a, margins, constant_values=values),
    )


def test_pad_takes_pairs_as_ever_and_tensors_as_constants():
    x = f64([[1.0, 2.0]])
    same(tk.pad(x, ((1, 0), (0, 1))), np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 0.0]]))
    same(tk.pad(x, np.array([[1, 0], [0, 1]])), np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 0.0]]))
    same(tk.pad(x, tk.tensor([[1, 0], [0, 1]])), np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 0.0]]))
    same(tk.pad(f64(3.0), ()), np.array(3.0))
    same(tk.pad(x, 1, "empty"), np.pad(np.array([[1.0, 2.0]]), 1))
    same(tk.pad(tk.tensor([1, 2]), 1, constant_values=2.9), np.array([2, 1, 2, 2], "int32"))
    same(tk.pad(tk.tensor([True]), 1, constant_values=True), np.array([True] * 3))
    assert tk.grad(lambda c: tk.pad(x, 1, constant_values=c).sum())(f64(5.0)).item() == 10.0


# ---- derivatives, vmap, shapes alone -----------------------------------------------------------------------

CALLS: dict[str, Callable[[Tensor], Tensor]] = {
    "reshape": lambda x: tk.reshape(x, (4, 3), "F"),
    "ravel": lambda x: tk.ravel(x, "F"),
    "matrix_transpose": tk.matrix_transpose,
    "swapaxes": lambda x: tk.swapaxes(x, 0, 1),
    "moveaxis": lambda x: tk.moveaxis(x, 0, -1),
    "rollaxis": lambda x: tk.rollaxis(x, 1),
    "expand_dims": lambda x: tk.expand_dims(x, (0, -1)),
    "squeeze": lambda x: tk.squeeze(x.reshape((3, 1, 4))),
    "broadcast_to": lambda x: tk.broadcast_to(x, (2, 3, 4)),
    "broadcast_arrays": lambda x: tk.broadcast_arrays(x, x[0])[1],
    "flip": lambda x: tk.flip(x, 1),
    "rot90": lambda x: tk.rot90(x, 3),
    "roll": lambda x: tk.roll(x, (1, -2), (0, 1)),
    "roll, flat": lambda x: tk.roll(x, 5),
    "concatenate": lambda x: tk.concatenate([x, x * x, x], 1),
    "concatenate, flat": lambda x: tk.concatenate([x, x * x], None),
    "stack": lambda x: tk.stack([x, x * x], 1),
    "hstack": lambda x: tk.hstack([x, x]),
    "vstack": lambda x: tk.vstack([x, x]),
    "dstack": lambda x: tk.dstack([x, x]),
    "column_stack": lambda x: tk.column_stack([x[:, 0], x]),
    "append": lambda x: tk.append(x, x[:1], 0),
    "delete": lambda x: tk.delete(x, [0, -1], 1),
    "insert": lambda x: tk.insert(x, [1, 3], x[:, :1] * x[:, 1:2], 1),
    "split": lambda x: tk.split(x, 2, 1)[1],
    "array_split": lambda x: tk.array_split(x, 2)[0],
    "unstack": lambda x: tk.unstack(x, 1)[2],
    "tile": lambda x: tk.tile(x, (2, 1, 2)),
    "repeat": lambda x: tk.repeat(x, 2, 0),
    "repeat, each": lambda x: tk.repeat(x, [2, 0, 1], 0),
    "pad": lambda x: tk.pad(x, 1),
    "pad, constant": lambda x: tk.pad(x, ((1, 2), (0, 1)), constant_values=2.0),
    "pad, edge": lambda x: tk.pad(x, 2, "edge"),
    "pad, reflect": lambda x: tk.pad(x, 3, "reflect"),
    "pad, symmetric": lambda x: tk.pad(x, 3, "symmetric"),
    "pad, wrap": lambda x: tk.pad(x, 3, "wrap"),
    "diagonal": lambda x: tk.diagonal(x, 1),
    "diag": lambda x: tk.diag(x[0], -1),
    "diag of a matrix": tk.diag,
    "diagflat": tk.diagflat,
    "trace": tk.Tensor.trace,
    "tril": lambda x: tk.tril(x, 1),
    "triu": tk.triu,
    "vander": lambda x: tk.vander(x[0]),
    "atleast_3d": tk.atleast_3d,
}

X = np.random.default_rng(0).uniform(0.5, 1.5, (3, 4))


@pytest.mark.feature(174)
@pytest.mark.parametrize("name", CALLS)
def test_derivatives(name):
    f = CALLS[name]
    tk.testing.check_grads(lambda x: f(x * x), (f64(X),))


@pytest.mark.parametrize("name", CALLS)
def test_vmap_is_the_loop(name):
    f, batch = CALLS[name], f64(np.stack([X, X + 1.0]))
    expected = np.stack([array(f(x)) for x in batch])
    same(tk.vmap(f)(batch), expected)
    same(tk.vmap(f, in_axes=1)(batch.swapaxes(0, 1)), expected)
    slopes = tk.grad(lambda x: (f(x) ** 2).sum())
    np.testing.assert_allclose(
        array(tk.vmap(slopes)(batch)), np.stack([array(slopes(x)) for x in batch]), rtol=1e-14
    )
    np.testing.assert_allclose(
        array(tk.grad(lambda xs: (tk.vmap(f)(xs) ** 2).sum())(batch)),
        array(tk.vmap(slopes)(batch)),
        rtol=1e-14,
    )


@pytest.mark.parametrize("name", CALLS)
def test_shapes_are_known_without_values(name):
    x = tk.tensor(X, backend=ShapeTracker(Fuse(Numpy())))
    assert CALLS[name](x).shape == CALLS[name](f64(X)).shape
    assert CALLS[name](tk.symbol("x", (3, 4))).shape == CALLS[name](f64(X)).shape


def test_elements_off_the_diagonal_have_no_effect():
    x = f64([[1.0, math.inf], [math.nan, 2.0]])
    assert tk.diagonal(x).tolist() == [1.0, 2.0]
    assert x.trace().item() == 3.0
    assert tk.grad(lambda x: x.trace() ** 2)(x).tolist() == [[6.0, 0.0], [0.0, 6.0]]
    assert tk.tril(x[:, ::-1].T, -1).tolist() == [[0.0, 0.0], [1.0, 0.0]]


def test_repeats_may_be_a_tensor_whose_values_are_known():
    assert tk.repeat([1, 2, 3], tk.tensor([0, 2, 1])).tolist() == [2, 2, 3]
    assert tk.repeat([1, 2, 3], np.array([2])).tolist() == [1, 1, 2, 2, 3, 3]
    with pytest.raises(TensorkenError, match="vmap"):
        tk.vmap(lambda n: tk.repeat(tk.tensor([1, 2]), n))(tk.tensor([[1, 2], [2, 1]]))


# ---- mistakes ----------------------------------------------------------------------------------------------

V = tk.tensor([1.0, 2.0, 3.0], backend=FUSED)
M = tk.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], backend=FUSED)

# fmt: off
MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: tk.reshape(M, (4, 2)), ShapeError, r"reshape: cannot reshape \(2, 3\) \(6 elements\) to \(4, 2\) \(8\)"),
    (lambda: tk.reshape(M, 6, "A"), ArgumentError, "reshape: order must be 'C' or 'F', got 'A'"),
    (lambda: tk.swapaxes(M, 0, 2), AxisError, r"swapaxes: axis 2 is out of range for shape \(2, 3\)"),
    (lambda: tk.moveaxis(M, (0, 0), (0, 1)), AxisError, r"moveaxis: axes \(0, 0\) name an axis twice"),
    (lambda: tk.moveaxis(M, (0, 1), 0), ArgumentError, r"moveaxis: 2 source axes and 1 destinations for shape"),
    (lambda: tk.expand_dims(M, (0, 0)), AxisError, "expand_dims: axes .* twice"),
    (lambda: tk.squeeze(M, 1), ShapeError, r"squeeze: axis 1 of shape \(2, 3\) has size 3, need 1; leave this axis"),
    (lambda: tk.matrix_transpose(V), ShapeError, r"matrix_transpose: need at least 2 axes, got shape \(3,\)"),
    (lambda: tk.fliplr(V), AxisError, r"fliplr: axis 1 is out of range for shape \(3,\)"),
    (lambda: tk.rot90(M, axes=(0, 0)), AxisError, "rot90: axes .* twice"),
    (lambda: tk.rot90(M, axes=(0,)), AxisError, r"rot90: need two axes of shape \(2, 3\)"),
    (lambda: tk.rot90(M, 0.5), ArgumentError, "rot90: k must be an int, got 0.5"),
    (lambda: tk.roll(M, (1, 2, 3), (0, 1)), ArgumentError, "roll: 3 shifts and 2 axes .*; give each axis one shift"),
    (lambda: tk.roll(M, 0.5), ArgumentError, "roll: a shift must be an int, got 0.5"),
    (lambda: tk.concat([M, V]), ShapeError, r"concat: .* equal except along axis 0, got \(2, 3\) and \(3,\)"),
    (lambda: tk.hstack([M, tk.ones((3, 3))]), ShapeError, "hstack: shapes must be equal except along axis 1"),
    (lambda: tk.append(M, V, 0), ShapeError, "append: shapes must be equal"),
    (lambda: tk.delete(V, 3), IndexingError, "delete: index 3 is out of range for 3 slices; they run from -3 to 2"),
    (lambda: tk.delete(V, [True]), IndexingError, "delete: a mask of size 1 does not fit 3 slices"),
    (lambda: tk.insert(V, 0.5, 1), IndexingError, "insert: need ints, a slice or a vector of bools, got 0.5"),
    (lambda: tk.insert(V, [0, 1], [1, 2, 3]), ShapeError, r"insert: values of shape \(3,\) do not broadcast to \(2,\)"),
    (lambda: tk.concatenate([V], 1), AxisError, r"concatenate: axis 1 is out of range for shape \(3,\)"),
    (lambda: tk.stack([]), ArgumentError, r"stack: need a sequence of at least one tensor, got \[\]"),
    (lambda: tk.split(V, 2), ShapeError, r"split: axis 0 of shape \(3,\) has size 3, which is not a multiple of 2"),
    (lambda: tk.array_split(V, 0), ArgumentError, "array_split: need at least 1 part, got 0"),
    (lambda: tk.split(V, 0.5), ArgumentError, "split: need a number of parts or a sequence of int indices, got 0.5"),
    (lambda: tk.vsplit(V, 1), ShapeError, r"vsplit: need at least 2 axes, got shape \(3,\); use tk.split"),
    (lambda: tk.tile(V, -1), ShapeError, "tile: repetitions must not be negative"),
    (lambda: tk.tile(V, 1.5), ArgumentError, "tile: repetitions must be ints, got 1.5"),
    (lambda: tk.repeat(V, [1, 2]), ShapeError, r"repeat: 2 repeats for axis 0 of shape \(3,\); give 1, or 3"),
    (lambda: tk.repeat(V, [1, -2, 0]), ShapeError, "repeat: repetitions must not be negative"),
    (lambda: tk.pad(M, ((1, 1), (1, 1), (1, 1))), ShapeError, r"pad: shape \(2, 3\) needs 2 pairs in pad_width, got 3"),
    (lambda: tk.pad(M, -1), ShapeError, "pad: widths must not be negative"),
    (lambda: tk.pad(M, (1, 2, 3)), ArgumentError, "pad: pad_width must be one number, a pair, or a pair for each of 2"),
    (lambda: tk.pad(M, 1.5), ArgumentError, "pad: widths must be ints, got 1.5"),
    (lambda: tk.pad(M, 1, "mirror"), ArgumentError, "pad: unknown mode 'mirror'; use constant, empty, edge, reflect"),
    (lambda: tk.pad(tk.ones((0, 2)), 1, "edge"), ShapeError, r"pad: axis 0 of shape \(0, 2\) has no element to repeat"),
    (lambda: tk.broadcast_arrays(M, tk.ones(2)), ShapeError, "broadcast_arrays: shapes .* do not broadcast"),
    (lambda: tk.broadcast_shapes((-1,)), ShapeError, "broadcast_shapes: sizes must not be negative"),
    (lambda: tk.diagonal(M, axis1=1, axis2=-1), AxisError, "diagonal: axis1 and axis2 are both axis 1"),
    (lambda: tk.diagonal(V), ShapeError, r"diagonal: need at least 2 axes, got shape \(3,\)"),
    (lambda: V.trace(), ShapeError, r"trace: need at least 2 axes, got shape \(3,\)"),
    (lambda: tk.diag(tk.ones((1, 1, 1))), ShapeError, r"diag: need 1 or 2 axes, got shape \(1, 1, 1\)"),
    (lambda: tk.diag(V, 0.5), ArgumentError, "diag: the offset of the diagonal must be an int, got 0.5"),
    (lambda: tk.hstack([V, tk.ones(3, backend=Numpy())]), MixedBackendError, "hstack: .* different backends"),
]
# fmt: on


@pytest.mark.parametrize(("call", "error", "message"), MISTAKES, ids=lambda value: "")
def test_mistakes_are_one_clear_line(call, error, message):
    with pytest.raises(error, match=f"^{message}") as caught:
        call()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200
