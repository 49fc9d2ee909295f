"""Updates for every kind of key: `x.at[key].set(v)` and the other methods against numpy, also for repeated indices."""

from __future__ import annotations

import math
import re
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import tensorken as tk
from core.tests import keys
from core.tests.each import each_of
from core.tests.examples import examples
from core.tests.support import FUSED, STACKS, Counting, array, f64
from tensorken_core.errors import DTypeError, ShapeError
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.rewriting.shape_tracker import ShapeTracker
from tensorken_reference.backend import Reference
from tensorken_string.backend import String

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_numpy")]

BACKENDS = {
    **{name: STACKS[name] for name in ("Fuse(Numpy())", "Fuse(Strict())", "Fuse(Required())")},
    "Reference()": Reference(),
}

UFUNCS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "max": np.maximum,
    "min": np.minimum,
}
CHANGES = ("set", *UFUNCS)

PLACES = {
    "x.at": (lambda v, key: np.asarray(v[key]), lambda x: x.at),
    "oindex": (keys.outer, lambda x: x.at.oindex),
    "vindex": (keys.vectorized, lambda x: x.at.vindex),
}
"""For each kind of indexing numpy's key, and the object to index."""


def fitted(value, ndim):
    """The value without axes of size 1 in front that the part has not, as numpy assigns it."""
    return value.reshape(value.shape[max(value.ndim - ndim, 0) :])


def changed(change, values, places, value):
    """numpy's result, written one position at a time."""
    flat = values.copy().reshape(-1)
    each = np.broadcast_to(fitted(value, places.ndim), places.shape).astype(values.dtype).reshape(-1)
    if change == "set":
        for place, one in zip(places.reshape(-1), each, strict=True):
            flat[place] = one
    else:
        UFUNCS[change].at(flat, places.reshape(-1), each)
    return flat.reshape(values.shape)


@st.composite
def cases(draw, way):
    """Values, a key, the positions in the flattened array that it selects, and values to write there."""
    shape = draw(keys.shapes(3))
    key = draw(keys.keys(shape))
    try:
        places = PLACES[way][0](np.arange(math.prod(shape)).reshape(shape), key)
    except IndexError:
        assume(False)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = [draw(st.sampled_from([n, n, 1])) for n in places.shape]
    sizes = (
        sizes[draw(st.integers(0, len(sizes))) :]
        if draw(st.booleans())
        else [1] * draw(st.integers(0, 2)) + sizes
    )
    return rng.integers(-3, 4, shape), key, places, rng.integers(1, 4, sizes) * rng.choice([1, -1], sizes)


# ---- values ------------------------------------------------------------------------------------------------


@pytest.mark.feature(13, 168, 169, 170)
@pytest.mark.parametrize("way", PLACES)
@pytest.mark.parametrize("change", CHANGES)
@settings(max_examples=examples(40))
@given(data=st.data())
def test_writing_is_numpys(change, way, data):
    values, key, places, value = data.draw(cases(way))
    dtype = data.draw(st.sampled_from(["float64", "float32"] if change == "divide" else keys.DTYPES[1:]))
    values, value = values.astype(dtype), value.astype(dtype)
    expected = changed(change, values, places, value)
    if way == "x.at" and change != "set":
        whole = values.copy()
        UFUNCS[change].at(whole, key, fitted(value, places.ndim))
        np.testing.assert_array_equal(whole, expected)
    for backend in BACKENDS.values():
        x = tk.tensor(values, backend=backend)
        got = getattr(PLACES[way][1](x)[keys.on(backend, key)], change)(tk.tensor(value, backend=backend))
        assert got.dtype is x.dtype
        if change == "divide":  # by the product of the values for one position
            np.testing.assert_allclose(array(got), expected, rtol=1e-6)
        else:
            assert array(got).tobytes() == expected.tobytes()
        assert array(x).tobytes() == values.tobytes()


@pytest.mark.feature(170)
@given(cases("x.at"))
def test_setting_is_numpys_assignment(drawn):
    """Also for bools and signed zeros; for a repeated position the last value is written."""
    values, key, places, value = drawn
    for x, v in ((values > 0, value > 0), (values * 0.5, value * -0.0), (values * -0.0, value / 3.0)):
        expected = np.array(x)
        expected[key] = fitted(np.array(v), places.ndim)
        for backend in BACKENDS.values():
            got = tk.tensor(np.array(x), backend=backend).at[key].set(tk.tensor(v, backend=backend))
            assert array(got).tobytes() == expected.tobytes()


@pytest.mark.feature(170)
@given(st.lists(st.integers(0, 5), max_size=40), st.sampled_from(CHANGES))
def test_many_values_for_one_place(places, change):
    rng = np.random.default_rng(len(places))
    values, value = rng.normal(size=(6, 2)), rng.normal(size=(len(places), 2))
    expected = values.copy()
    for place, one in zip(places, value, strict=True):
        expected[place] = one if change == "set" else UFUNCS[change](expected[place], one)
    for backend in BACKENDS.values():
        got = getattr(f64(values, backend).at[places], change)(f64(value, backend))
        np.testing.assert_allclose(array(got), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.feature(170)
def test_a_value_for_all_places_needs_no_order():
    """One value for all positions is written without sorting, and a mask is not read."""
    backend = Counting()
    x = tk.tensor(np.zeros((50, 4)), backend=Fuse(backend))
    many = tk.tensor([3, 3, 1], backend=x.interpreter)
    for value in (1.0, tk.tensor([1.0, 2.0, 3.0, 4.0], "float64", backend=x.interpreter)):
        backend.clear()
        x.at[many].set(value)
        x.at[x > 1.0].set(1.0)
        x.at[many, :2].set(1.0)
        assert backend.calls["argsort"] == 0
    backend.clear()
    x.at[many].set(np.ones((3, 1)))
    assert backend.calls["argsort"] == 1
    backend.clear()
    x.at[many[1:]].set(np.ones((2, 1)))
    x.at[[True] * 50].set(np.ones((50, 1)))
    x.at[many].add(np.ones((3, 1)))
    assert backend.calls["argsort"] == 0
    string = String()
    y, mask = tk.symbol("Y", (3,), backend=string), tk.symbol("m", (3,), "bool", backend=string)
    assert str(y.at[mask].set(1.0)) == "m.where(1.0.reshape([1]).expand([3]), Y)"


@pytest.mark.feature(13, 170)
def test_written_values_take_the_dtype():
    x = tk.tensor([5, 6, 7])
    assert x.at[[0, 0]].set([1.9, 2.9]).tolist() == [2, 6, 7]
    assert x.at[[0, 2]].add(0.6).tolist() == [5, 6, 7]
    assert x.at[[0, 0]].add(0.6).tolist() == [6, 6, 7]
    assert x.at[[0, 0]].multiply([1.5, 2.0]).tolist() == [15, 6, 7]
    assert x.at[[1, 1]].max([6.5, 8.5]).tolist() == [5, 8, 7]
    assert x.at[[1, 1]].min(True).tolist() == [5, 1, 7]
    assert x.at[[0, 2]].divide(2).tolist() == [2, 6, 3]
    assert x.at[1].divide(4).tolist() == [5, 1, 7]
    assert x.at[x > 5].add(0.5).tolist() == [5, 6, 7]
    assert x.at[[1]].add(True).tolist() == [5, 7, 7]
    large = tk.tensor([2**24 + 1, 0])  # more than float32 can tell
    for change in ("set", "add", "multiply", "max"):
        assert getattr(large.at[[1]], change)(1.5).tolist()[0] == 2**24 + 1
        assert getattr(large.at[tk.tensor([False, True])], change)(1.5).tolist()[0] == 2**24 + 1
    bools = tk.tensor([True, False, False])
    assert bools.at[[0, 1, 1]].set([False, True, False]).tolist() == [False, False, False]
    assert bools.at[[1, 1]].max([True, False]).tolist() == [True, True, False]
    assert bools.at[:2].min(True).tolist() == [True, False, False]
    assert bools.at[bools].set(2).tolist() == [True, False, False]
    assert bools.at[[0, 0, 1, 1]].add([True, True, False, True]).tolist() == [True, True, False]
    assert bools.at[:2].multiply([True, True]).tolist() == [True, False, False]
    assert bools.at[[0, 0]].multiply([True, False]).tolist() == [False, False, False]
    assert bools.at[1].add(0.5).tolist() == [True, True, False]


@pytest.mark.feature(13)
def test_a_value_that_does_not_fit_is_refused():
    x = tk.zeros((4, 3))
    for key, value in (
        (tk.s_[[0, 1]], np.zeros(2)),
        (tk.s_[[0, 1]], np.zeros((3, 3))),
        (tk.s_[[0, 1]], np.zeros((2, 1, 3))),
        (tk.s_[:, [0, 1]], np.zeros((4, 3))),
        (tk.s_[[0, 1], [0, 1]], np.zeros((1, 3))),
        (tk.s_[1], np.zeros((3, 1))),
        (tk.s_[np.eye(4, 3) > 0], np.zeros(4)),
        (tk.s_[[]], np.zeros((2, 3))),
    ):
        part = np.zeros((4, 3))[key].shape
        for change in CHANGES:
            with pytest.raises(
                ShapeError, match=r"^at: a value of shape .* does not broadcast to the indexed shape"
            ) as caught:
                getattr(x.at[key], change)(value)
            assert str(value.shape) in str(caught.value)
            assert str(part) in str(caught.value)


@pytest.mark.feature(13)
def test_zeros_elsewhere_keep_their_sign():
    for backend, change in product((FUSED, Reference()), CHANGES):
        x = f64([-0.0, 0.0, -0.0, 1.0], backend)
        for key in ([1, 1], tk.s_[1:2], [False, True, False, False]):
            got = getattr(x.at[key], change)(2.0)
            assert np.signbit(array(got))[[0, 2, 3]].tolist() == [True, True, False]
    assert array(x.at[[0, 1]].multiply(-1.0)).tobytes() == np.array([0.0, -0.0, -0.0, 1.0]).tobytes()


@pytest.mark.feature(170)
def test_counting():
    """The bigrams of some words, all at once."""
    words = ["anna", "nan", "ana"]
    letters = {letter: i for i, letter in enumerate(".an")}
    pairs = [(a, b) for word in words for a, b in zip(f".{word}", f"{word}.", strict=True)]
    first, second = ([letters[pair[k]] for pair in pairs] for k in (0, 1))
    counts = tk.zeros((3, 3), "int32").at[first, second].add(1)
    assert counts.tolist() == [[0, 2, 1], [2, 0, 3], [1, 3, 1]]
    assert counts.sum().item() == len(pairs)


@pytest.mark.feature(173)
@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize("dtype", keys.DTYPES)
def test_a_copy_that_can_be_changed(backend, dtype):
    x = tk.zeros((2, 3), dtype, backend=backend)
    values = x.to_mutable()
    values[0, 1] = 1
    values[-1, -1] = values[0, 1]
    assert (values.shape, values.format) == ((2, 3), x.dtype.format)
    back = tk.tensor(values, backend=backend)
    assert back.dtype is x.dtype
    assert back.tolist() == np.array([[0, 1, 0], [0, 0, 1]], dtype).tolist()
    assert x.tolist() == np.zeros((2, 3), dtype).tolist()
    with pytest.raises(IndexError):
        values[2, 0] = 1
    one = tk.full((), 1, dtype, backend=backend).to_mutable()
    one[()] = 0
    assert tk.tensor(one).tolist() == 0
    assert np.asarray(values).base is not None


@pytest.mark.feature(173)
def test_in_place_changes_are_refused():
    with pytest.raises(ShapeError, match=r"^to_mutable: shape \(0, 3\) has no elements"):
        tk.zeros((0, 3)).to_mutable()
    for narrow in ("float16", "bfloat16"):
        with pytest.raises(DTypeError, match=rf"^to_mutable: {narrow}.*cast"):
            tk.zeros(3, narrow).to_mutable()
    with pytest.raises(tk.errors.ConcretizationError, match=r"^to_mutable: .* is inside grad"):
        tk.grad(lambda x: x.sum() * x.to_mutable()[0])(tk.ones(3))


# ---- derivatives -------------------------------------------------------------------------------------------


@pytest.mark.feature(171)
@pytest.mark.parametrize("way", PLACES)
@given(data=st.data())
def test_the_derivative_of_set_goes_to_the_written_value(way, data):
    values, key, places, value = data.draw(cases(way))
    x, v = values + 0.5, value + 0.25
    weights = np.cos(np.arange(1.0, 1.0 + x.size)).reshape(x.shape)
    # For each position the number of the value that remains; 0 where none is written.
    numbers = np.arange(1, 1 + v.size).reshape(v.shape)
    stays = changed("set", np.zeros(x.shape, int), places, numbers)
    to_v = np.zeros(1 + v.size)
    np.add.at(to_v, stays.ravel(), weights.ravel())

    def f(x, v):
        return (PLACES[way][1](x)[key].set(v) * f64(weights)).sum()

    by_x, by_v = tk.grad(f, (0, 1))(f64(x), f64(v))
    np.testing.assert_array_equal(array(by_x), np.where(stays > 0, 0.0, weights))
    np.testing.assert_allclose(array(by_v), to_v[1:].reshape(v.shape), rtol=1e-13, atol=1e-14)
    pushed = tk.jvp(f, (f64(x), f64(v)), (f64(x), f64(v)))[1].item()
    assert pushed == pytest.approx(f(f64(x), f64(v)).item(), rel=1e-11, abs=1e-11)


KEYS = {
    "repeated": [0, -1, 0, 2, 0],
    "pairs": ([0, 1, 0], [1, 2, 1]),
    "between": tk.s_[1:, [2, 2]],
    "outer": np.ix_([0, 0, 1], [2, 1]),
    "mask": np.array([[True, False, True]] * 2 + [[False, True, True]] * 2),
    "reversed": tk.s_[::-2, 1],
}


@pytest.mark.feature(108, 171)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("key", KEYS)
def test_derivatives_against_differences(key, change):
    rng = np.random.default_rng(1)
    x, key = f64(rng.normal(size=(4, 3))), KEYS[key]
    for shape in (x[key].shape, (), (1,)):
        v = f64(rng.normal(size=shape) + 2.0 * (change == "divide"))
        f = lambda x, v: (getattr(x.at[key], change)(v) ** 2 * x.cos()).sum()  # noqa: E731
        tk.testing.check_grads(f, (x, v), order=2)


@pytest.mark.feature(171)
def test_products_with_zeros_have_their_derivatives():
    x, v = f64([2.0, 3.0]), f64([0.0, 5.0, 7.0])
    f = lambda x, v: x.at[[0, 0, 1]].multiply(v).sum()  # noqa: E731
    by_x, by_v = tk.grad(f, (0, 1))(x, v)
    assert by_x.tolist() == [0.0, 7.0]
    assert by_v.tolist() == [10.0, 0.0, 3.0]
    assert tk.grad(f, 1)(x, f64([0.0, 0.0, 7.0])).tolist() == [0.0, 0.0, 3.0]
    assert tk.grad(f, 1)(x, f64([1.0, math.inf, 0.0])).tolist() == [math.inf, 2.0, 3.0]


@each_of("change", CHANGES)
def test_a_compiled_change_is_the_same(change):
    """With repeated positions, which are unknown while a program is compiled."""
    f = lambda x, v: getattr(x.at[:, [0, 2, 2]], change)(v)  # noqa: E731
    x, v = f64([[1.0, 5.0, 3.0], [2.0, 0.5, -4.0]]), f64([[2.0, 4.0, -8.0], [2.0, 1.0, -2.0]])
    assert tk.jit(f)(x, v).tolist() == f(x, v).tolist()
    gradient = tk.grad(lambda x, v: f(x, v).sum(), (0, 1))
    for compiled, expected in zip(tk.jit(gradient)(x, v), gradient(x, v), strict=True):
        assert compiled.tolist() == expected.tolist()


@pytest.mark.feature(171)
@pytest.mark.parametrize("change", ["max", "min"])
def test_ties_share_equally(change):
    sign = 1.0 if change == "max" else -1.0
    f = lambda x, v: (getattr(x.at[[0, 0, 0, 1, 1]], change)(v) * f64([6.0, 10.0, 1.0])).sum()  # noqa: E731
    x, v = f64([2.0, 1.0, 9.0]) * sign, f64([2.0, 1.0, 2.0, 4.0, 4.0]) * sign
    by_x, by_v = tk.grad(f, (0, 1))(x, v)
    assert by_x.tolist() == [2.0, 0.0, 1.0]
    assert by_v.tolist() == [2.0, 0.0, 2.0, 5.0, 5.0]
    assert tk.jvp(f, (x, v), (f64([1.0, 0.0, 0.0]), f64([0.0, 0.0, 1.0, 0.0, 1.0])))[1].item() == 9.0
    pair = tk.grad(lambda x, v: getattr(x.at[[1]], change)(v).sum(), (0, 1))(x, x[1:2])
    assert [array(t).tolist() for t in pair] == [[1.0, 0.5, 1.0], [0.5]]


@pytest.mark.feature(171)
@pytest.mark.parametrize("change", CHANGES)
def test_infinities_elsewhere_do_no_harm(change):
    """In elements of the tensor that are not named, and in values that are overwritten."""
    x = np.array([math.inf, 2.0, math.nan, -math.inf, 3.0])
    rest = np.array([True, False, True, True, False])
    for key, value in (([1, 4, 1], [5.0, 7.0, 6.0]), ([4, 1], [5.0, 5.0]), (~rest, 5.0), (~rest, [5.0, 7.0])):
        v = f64(value)
        f = lambda x, v: getattr(x.at[key], change)(v)  # noqa: B023, E731
        got = array(f(f64(x), v))
        assert got[rest].tobytes() == x[rest].tobytes()
        assert np.isfinite(got[~rest]).all()
        by_x, by_v = tk.grad(lambda x, v: f(x, v).sum(), (0, 1))(f64(x), v)  # noqa: B023
        assert array(by_x)[rest].tolist() == [1.0] * 3
        assert np.isfinite(array(by_x)).all()
        assert np.isfinite(array(by_v)).all()
        pushed = array(tk.jvp(f, (f64(x), v), (tk.ones_like(f64(x)), tk.ones_like(v)))[1])
        assert np.isfinite(pushed).all()
    lost = tk.value_and_grad(lambda v: tk.zeros(2, "float64").at[[0, 0]].set(v).sum())(f64([math.nan, 1.0]))
    assert [array(part).tolist() for part in lost] == [1.0, [0.0, 1.0]]


# ---- batches -----------------------------------------------------------------------------------------------


@pytest.mark.feature(170, 171)
@pytest.mark.parametrize("change", CHANGES)
@each_of("axes", [axes for axes in product((0, None), repeat=3) if 0 in axes])
def test_a_batch_is_a_loop(axes, change):
    """Also if only some examples have repeated positions."""
    rng = np.random.default_rng(0)
    indices = tk.tensor([[0, 1, -1], [2, 2, -2], [3, 3, 3]])
    stacked = (f64(rng.normal(size=(3, 4, 2))), indices, f64(rng.normal(size=(3, 3, 2)) + 3.0))
    arguments = [a if axis == 0 else a[1] for a, axis in zip(stacked, axes, strict=True)]
    examples = [[a[b] if axis == 0 else a for a, axis in zip(arguments, axes, strict=True)] for b in range(3)]
    for f in (
        lambda x, i, v: getattr(x.at[i], change)(v),
        lambda x, i, v: getattr(x.at[::-1, i % 2], change)(v[:, 0]),
        lambda x, i, v: getattr(x.at[i, i % 2], change)(v[:, 0]),
        lambda x, i, v: getattr(x.at.oindex[i, i % 2], change)(v[:, :1]),
        lambda x, i, v: getattr(x.at[i[0]], change)(v[0]),
        lambda x, i, v: getattr(x.at[v[0, 0] < x], change)(v[0, 0]),
    ):
        got = tk.vmap(f, axes)(*arguments)
        np.testing.assert_allclose(array(got), np.stack([array(f(*e)) for e in examples]), rtol=1e-13)
        compiled = tk.jit(tk.vmap(f, axes))(*arguments)
        assert compiled.shape == got.shape
        np.testing.assert_allclose(array(compiled), array(got), rtol=1e-13)
        gradient = tk.grad(lambda x, v, i: (f(x, i, v) ** 2).sum(), (0, 1))  # noqa: B023
        batched = tk.vmap(lambda x, i, v: gradient(x, v, i), axes)(*arguments)  # noqa: B023
        single = [gradient(x, v, i) for x, i, v in examples]
        for k in (0, 1):
            np.testing.assert_allclose(array(batched[k]), np.stack([array(e[k]) for e in single]), rtol=1e-13)
        outside = tk.grad(lambda x, v: (tk.vmap(f, axes)(x, arguments[1], v) ** 2).sum(), (0, 1))  # noqa: B023
        for k, place in ((0, 0), (1, 2)):
            pulled = array(outside(arguments[0], arguments[2])[k])
            each = np.stack([array(e[k]) for e in single])
            np.testing.assert_allclose(
                pulled, each if axes[place] == 0 else each.sum(0), rtol=1e-12, atol=1e-13
            )


@pytest.mark.feature(170)
@pytest.mark.parametrize("change", CHANGES)
@each_of("places", [[0], [1, 3], [2, 2, -2], [[0, 1], [1, 0]]])
@each_of("given", [True, False])
def test_constant_places_under_jit(given, places, change):
    """A backend without the op runs its body, which checks for repeated positions."""
    x, v = f64(np.arange(8.0).reshape(4, 2) - 3.0), f64(np.arange(8.0).reshape(2, 2, 2) + 0.5)

    def f(x, v):
        changed = getattr((x if given else f64(np.ones((4, 2)))).at[np.array(places)], change)(v[0, 0])
        return changed + v.sum()

    np.testing.assert_array_equal(array(tk.jit(f)(x, v)), array(f(x, v)))
    compiled, eager = (
        tk.jit(tk.grad(lambda *xs: (f(*xs) ** 2).sum(), (0, 1))),
        tk.grad(lambda *xs: (f(*xs) ** 2).sum(), (0, 1)),
    )
    for got, wanted in zip(compiled(x, v), eager(x, v), strict=True):
        np.testing.assert_allclose(array(got), array(wanted), rtol=1e-13)


@pytest.mark.feature(170)
@pytest.mark.parametrize("change", CHANGES)
def test_shapes_are_known_without_values(change):
    string = String()
    x, i = tk.symbol("X", (4, 3), backend=string), tk.symbol("i", (5,), "int32", backend=string)
    assert getattr(x.at[i], change)(x[i]).shape == (4, 3)
    assert getattr(x.at[i, i], change)(1.0).shape == (4, 3)
    y = tk.zeros((4, 3), backend=ShapeTracker(string))
    assert getattr(y.at[[0, 0, 1]], change)(y[:3]).shape == (4, 3)


def test_a_part_prints_how_to_use_it() -> None:
    assert re.search(r"shape \(2, 3\); call get\(\), set\(v\)", repr(tk.ones((2, 3)).at[0]))
