"""Indexing with arrays and masks: `x[...]` as numpy has it, `oindex` and `vindex` as NEP 21, derivatives, vmap."""

from __future__ import annotations

import math
from array import array as buffer
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import tensorken as tk
from core.tests import keys
from core.tests.each import each_of
from core.tests.examples import examples
from core.tests.support import FUSED, STACKS, Counting, array, f64
from tensorken_core.errors import ConcretizationError, DTypeError, IndexingError, MixedBackendError
from tensorken_core.rewriting.fuse import Fuse
from tensorken_reference.backend import Reference
from tensorken_string.backend import String

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_numpy")]

BACKENDS = {
    **{name: STACKS[name] for name in ("Fuse(Numpy())", "Fuse(Strict())", "Required()")},
    "Reference()": Reference(),
}


def numbered(shape, dtype="float64"):
    """1, 2, ... in a shape; True, False, ... as bools."""
    return (
        (np.arange(1, 1 + math.prod(shape)) % (2 if dtype == "bool" else 1000)).reshape(shape).astype(dtype)
    )


def same(got, expected):
    assert got.shape == expected.shape
    assert got.dtype.name == expected.dtype.name
    assert array(got).tobytes() == np.ascontiguousarray(expected).tobytes()


@st.composite
def cases(draw):
    shape = draw(keys.shapes())
    return numbered(shape, draw(st.sampled_from(keys.DTYPES))), draw(keys.keys(shape))


# ---- reading -----------------------------------------------------------------------------------------------


WAYS = {
    "x[key]": (lambda v, key: np.asarray(v[key]), lambda x: x, lambda x: x.at),
    "oindex": (keys.outer, lambda x: x.oindex, lambda x: x.at.oindex),
    "vindex": (keys.vectorized, lambda x: x.vindex, lambda x: x.at.vindex),
}
"""For each kind of indexing numpy's key, the object to read from, and the object to write to."""


@pytest.mark.feature(56, 168, 169, 170)
@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=examples(200))
@given(drawn=cases())
def test_reading_is_numpys(way, drawn):
    values, key = drawn
    means, reader, writer = WAYS[way]
    try:
        expected = means(values, key)
    except IndexError:
        for backend in BACKENDS.values():
            with pytest.raises(IndexingError, match=r"^index: "):
                reader(tk.tensor(values, backend=backend))[keys.on(backend, key)]
        return
    for backend in BACKENDS.values():
        x = tk.tensor(values, backend=backend)
        same(reader(x)[key], expected)
        same(reader(x)[keys.on(backend, key)], expected)
        same(writer(x)[key].get(), expected)


@pytest.mark.feature(169)
@given(st.data())
def test_outer_indexing_is_numpys_with_ix(data):
    shape = data.draw(keys.shapes(3).filter(lambda shape: shape))
    lists = [data.draw(st.lists(st.integers(-n, n - 1), max_size=4) if n else st.just([])) for n in shape]
    values = numbered(shape)
    same(f64(values).oindex[tuple(lists)], values[np.ix_(*[np.array(each, int) for each in lists])])
    same(
        f64(values)[np.ix_(*[np.array(each, int) for each in lists])],
        values[np.ix_(*[np.array(each, int) for each in lists])],
    )


@pytest.mark.feature(170)
def test_the_forms_of_an_index():
    values = numbered((4, 3))
    x = f64(values)
    rows = values[[2, 0, -1]]
    for key in (
        [2, 0, -1], ([2, 0, -1],), ((2, 0, -1),), tk.tensor([2, 0, -1]), tk.tensor([2, 0, -1], "int64"),
        np.array([2, 0, -1], np.int8), np.array([2, 0, 3], np.uint8), np.array([2, 0, 3], np.uint64),
        np.array([2, 0, -1], ">i4"), np.array([2, 9, 0, 9, -1])[::2], buffer("h", [2, 0, -1]), [tk.tensor(2), 0, -1],
    ):  # fmt: skip
        same(x[key], rows)
    same(x[range(2)], values[:2])
    same(x[np.uint8(2)], values[2])
    same(x[tk.tensor(-1), tk.tensor([1, 0])], values[-1, [1, 0]])
    same(x[[True, False, False, True]], values[[0, 3]])
    same(x[x > 4.0], values[values > 4.0])
    same(x[values > 4.0], values[values > 4.0])
    same(x[[]], values[[]])
    same(x[[[]], 0], values[[[]], 0])
    same(x[:, np.zeros(0, np.int64)], values[:, []])
    same(x[tk.tensor([[[1]]])], values[[[[1]]]])
    same(f64(7.0)[True], np.array([7.0]))
    same(f64(7.0)[False], np.zeros(0))
    same(f64(7.0)[np.array(True), None], np.array([[7.0]]))


@pytest.mark.feature(170)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("sizes", [(0,), (3, 0), (0, 2), (0, 0, 4), (3, 0, 0)])
def test_a_mask_with_a_size_of_zero_holds_nowhere(sizes, backend):
    """Empty masks for axes of any size, which the array API standard allows, and numpy's equivalent."""
    values, mask = numbered((3, 2, 4)), np.zeros(sizes, bool)
    x = f64(values, BACKENDS[backend])
    tensor = tk.zeros(sizes, dtype=tk.bool, backend=x.interpreter)
    for key in (mask, tensor):
        same(x[key], values[mask])
        same(x.at[key].set(0.0), values)
    same(x[..., np.zeros(0, bool)], values[..., np.zeros(0, bool)])
    sums = tk.grad(lambda x: x[tensor].sum())(x)
    same(sums, np.zeros((3, 2, 4)))
    each = tk.vmap(lambda x: x[tensor])(tk.stack([x, x]))
    same(each, np.stack([values[mask], values[mask]]))


@pytest.mark.feature(170)
def test_a_large_mask_is_searched_by_the_backend():
    values = np.random.default_rng(0).normal(size=(60, 50))
    for backend in BACKENDS.values():
        x = f64(values, backend)
        same(x[x > 0.0], values[values > 0.0])
        same(x[x > 9.0], values[values > 9.0])
        same(x[:, x[0] > 0.0], values[:, values[0] > 0.0])


@pytest.mark.feature(170)
def test_indexing_runs_one_gather_for_each_index_array():
    """The indices of one key are one gather; slices between them are applied before it."""
    backend = Counting()
    x = tk.tensor(np.zeros((50, 40, 30)), backend=Fuse(backend))
    some = tk.tensor([3, 4, 5], backend=x.interpreter)
    for take, gathers, most in (
        (lambda: x[some], 1, 3 * 40 * 30),
        (lambda: x[:, some], 1, 3 * 50 * 30),
        (lambda: x[0, :, some], 1, 1200),
        (lambda: x[1, some, ::2], 1, 1200),
        (lambda: x[some, some], 1, 90),
        (lambda: x.oindex[some, :2, some], 2, 2 * 50 * 30),
    ):
        backend.clear()
        take().realize()
        assert backend.calls["gather"] == gathers
        assert max(math.prod(shape) for name, shape in backend.sizes if name != "reshape") <= most


@pytest.mark.feature(172)
def test_keys_are_made_ahead():
    values = numbered((4, 3))
    key = tk.s_[1:, ..., None, [0, 2]]
    assert key == (slice(1, None), ..., None, [0, 2])
    assert tk.s_[3] == 3
    assert tk.s_[::2] == slice(None, None, 2)
    assert repr(tk.s_) == "tensorken.s_"
    same(f64(values)[key], values[key])
    same(f64(values).at[tk.s_[1:, 0]].set(0.0).oindex[tk.s_[1:, [0]]], np.zeros((3, 1)))


# ---- what does not fit -------------------------------------------------------------------------------------

V, M, T = numbered((3,)), numbered((2, 3)), numbered((2, 3, 4))

MISTAKES = {
    "beyond the end": (V, tk.s_[[0, 3]], r"from 0 to 3 are out of range for axis 0 of shape \(3,\).* -3 to 2"),
    "before the start": (M, tk.s_[:, [-4]], r"index -4 is out of range for axis 1 of shape \(2, 3\)"),
    "the axis is named as it was": (T, tk.s_[0, None, :, [1, 7]], r"1 to 7 .* axis 2 of shape \(2, 3, 4\)"),
    "behind a mask": (T, tk.s_[np.ones((2, 3), bool), [4]], r"index 4 .* axis 2 of shape \(2, 3, 4\)"),
    "an int beside an array": (M, tk.s_[2, [0]], r"2 is out of range for axis 0 of shape \(2, 3\)"),
    "an empty axis": (np.zeros((0, 3)), tk.s_[[0]], r"index 0 .* axis 0 of shape \(0, 3\); it has no elements"),
    "many": (V, tk.s_[list(range(100))], r"from 0 to 99 are out of range"),
    "beyond int32": (V, tk.s_[[2**40]], r"index 1099511627776 is out of range"),
    "beyond int64": (V, tk.s_[[2**70]], r"\[1180591620717411303424\] is not a valid index"),
    "ragged": (V, tk.s_[[[0], [1, 2]]], r"is not a valid index: tensor: ragged"),
    "do not broadcast": (T, tk.s_[[0, 1], [0, 1, 2]], r"shapes \(2,\) and \(3,\) do not broadcast.*x\.oindex"),
    "floats": (V, tk.s_[np.array([1.0])], r"need integers or bools, got float64 of shape \(1,\); cast"),
    "floats in a list": (V, tk.s_[[1.0]], r"need integers or bools, got float32 of shape \(1,\)"),
    "a float": (V, tk.s_[1.5], r"float is not a valid index for shape \(3,\); use ints, slices"),
    "complex": (V, tk.s_[np.array([1j])], r"need integers or bools, got complex128 of shape \(1,\); cast"),
    "a dict": (V, tk.s_[{}], r"dict is not a valid index"),
    "a long mask": (V, tk.s_[[True] * 4], r"mask of shape \(4,\) indexes axes of sizes \(3,\) of shape \(3,\)"),
    "an empty mask of another size": (M, tk.s_[np.ones((0, 2), bool)], r"mask of shape \(0, 2\) .* sizes \(2, 3\)"),
    "a mask of wrong rank": (M, tk.s_[:, M > 1], r"2 indices for shape|3 indices for shape \(2, 3\)"),
    "a mask at the wrong axis": (M, tk.s_[:, [True, False]], r"mask of shape \(2,\) .* sizes \(3,\) of shape \(2, 3\)"),
    "too many": (M, tk.s_[[0], [0], [0]], r"3 indices for shape \(2, 3\), which has 2 axes"),
    "two gaps": (M, tk.s_[..., [0], ...], r"only one \.\.\."),
    "a number has no axis": (np.array(1.0), tk.s_[[0]], r"1 indices for shape \(\)"),
}  # fmt: skip


@pytest.mark.feature(55, 168)
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_key_that_does_not_fit_is_refused(mistake):
    values, key, message = MISTAKES[mistake]
    with pytest.raises(IndexingError, match=rf"^index: .*(?:{message})") as caught:
        f64(values)[key]
    assert len(str(caught.value)) < 200
    assert "\n" not in str(caught.value)
    with pytest.raises(IndexError):
        f64(values).at[key].set(0.0)
    with pytest.raises((IndexError, ValueError, OverflowError)):  # also in numpy
        values[key]


IN_RANGE = {
    "x[i]": lambda x, i: x[i],
    "x[:, i]": lambda x, i: x[:, i],
    "x[i, i]": lambda x, i: x[i, i],
    "x.oindex[i, i]": lambda x, i: x.oindex[i, i],
    "x.vindex[:, i]": lambda x, i: x.vindex[:, i],
    "x.at[i].add": lambda x, i: x.at[i].add(1.0),
    "x.at[:, i].set": lambda x, i: x.at[:, i].set(1.0),
    "take": lambda x, i: tk.take(x, i, 0),
    "take_along_axis": lambda x, i: tk.take_along_axis(x, i.reshape(-1, 1), 0),
}


LEVELS = {
    "none": lambda f, x, xs, i, b: f(x, i),
    "grad": lambda f, x, xs, i, b: tk.grad(total(f))(x, i),
    "jvp": lambda f, x, xs, i, b: tk.jvp(lambda x: f(x, i), (x,), (x,)),
    "jvp of grad": lambda f, x, xs, i, b: tk.jvp(tk.grad(lambda x: total(f)(x, i)), (x,), (x,)),
    "vmap": lambda f, x, xs, i, b: tk.vmap(f)(xs, b),
    "vmap, x shared": lambda f, x, xs, i, b: tk.vmap(f, (None, 0))(x, b),
    "vmap, indices shared": lambda f, x, xs, i, b: tk.vmap(f, (0, None))(xs, i),
    "vmap of grad": lambda f, x, xs, i, b: tk.vmap(tk.grad(total(f)))(xs, b),
    "grad of vmap": lambda f, x, xs, i, b: tk.grad(lambda xs: tk.vmap(total(f))(xs, b).sum())(xs),
    "vmap of vmap": lambda f, x, xs, i, b: tk.vmap(tk.vmap(f, (None, 0)), (0, None))(xs, b),
    "vmap inside": lambda f, x, xs, i, b: tk.vmap(tk.vmap(f, (0, None)), (None, 0))(xs, b),
}


def total(f):
    return lambda x, i: (f(x, i) ** 2).sum()


@pytest.mark.feature(168)
@each_of("level", LEVELS)
@pytest.mark.parametrize("way", IN_RANGE)
def test_an_index_out_of_range_is_found_at_every_level(way, level):
    """Also where only one example of a batch has it: never is another example's row taken."""
    x, xs = f64(numbered((3, 3))), f64(numbered((4, 3, 3)))
    good = tk.tensor([[0, -3], [2, 1], [1, 1], [-1, 2]])
    LEVELS[level](IN_RANGE[way], x, xs, good[0], good)
    for bad in (3, -4):
        message = rf"^(index|take\w*): .*{bad}\b.* out of range for axis \d of shape \(3, 3\)"
        with pytest.raises(IndexingError, match=message):
            LEVELS[level](IN_RANGE[way], x, xs, good[0].at[1].set(bad), good.at[2, 1].set(bad))


@pytest.mark.feature(168)
@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize("way", IN_RANGE)
def test_an_index_without_a_value_is_clamped(way, backend):
    """Whoever runs the program: compiled, op by op, or on another backend than the one it was traced on."""
    f = IN_RANGE[way]
    x = f64(numbered((3, 3)))
    program = tk.trace(f)(x, tk.tensor([0, 0]))
    moved = [y.to(backend) for y in (x, tk.tensor([7, -9]))]
    expected = f(x, tk.tensor([2, 0])).tolist()
    assert tk.jit(f)(*moved).tolist() == program(*moved).tolist() == expected
    assert tk.vmap(tk.jit(f), (None, 0))(moved[0], tk.stack([moved[1]])).tolist() == [expected]
    with pytest.raises(IndexingError, match=r"axis \d of shape .* has no elements"):
        tk.jit(f)(tk.zeros((0, 0)), tk.tensor([0, 1]))


@pytest.mark.feature(168, 124)
def test_an_example_that_has_no_part_in_a_choice_or_a_loop_may_have_any_index():
    x, ends = tk.tensor([1.0, 2.0, 3.0]), tk.tensor([3, 1, 2])

    def marked(i):
        return tk.cond(i < 3, lambda i: x.at[i].set(0.0), lambda i: x, i)

    def total(start):
        return tk.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] + x[s[0]]), (start, 0.0))[1]

    assert tk.vmap(marked)(ends).tolist() == [[1.0, 2.0, 3.0], [1.0, 0.0, 3.0], [1.0, 2.0, 0.0]]
    assert tk.vmap(total)(ends).tolist() == [0.0, 5.0, 3.0]


@pytest.mark.feature(168)
def test_take_accepts_every_kind_of_index():
    x = f64([10.0, 20.0, 30.0])
    assert tk.take(x, 1).item() == 20.0
    assert tk.take(x, np.int64(-1)).item() == 30.0
    assert tk.take(x, []).shape == (0,)
    assert tk.take(x, [[0], [2]]).tolist() == [[10.0], [30.0]]
    assert tk.take_along_axis(x, [2, 0], 0).tolist() == [30.0, 10.0]
    with pytest.raises(DTypeError, match=r"^take: indices must be integers, got float32"):
        tk.take(x, [0.5])
    with pytest.raises(IndexingError, match=r"^take: str is not a valid index"):
        tk.take(x, "1")


# ---- without values ----------------------------------------------------------------------------------------


@pytest.mark.feature(170)
def test_an_expression_is_indexed_by_its_name():
    backend = String()
    x = tk.symbol("X", (4, 3), backend=backend)
    i, k = tk.symbol("i", (2,), "int32", backend=backend), tk.symbol("k", (), "int32", backend=backend)
    assert str(x[i]) == "X.gather((i < 0).where((i + 4), i), 0)"
    assert str(x[:, i]) == "X.gather((i < 0).where((i + 3), i), 1)"
    assert x[k].shape == (3,)
    assert x[k, i].shape == (2,)
    assert "cast(int64)" in str(tk.symbol("Y", (2**20, 2**20), backend=backend)[i, i])
    assert "int64" not in str(tk.symbol("Y", (2**15, 2**16 - 1), backend=backend)[i, i])
    assert "cast(int64)" in str(
        tk.symbol("Y", (2**20, 2**20), backend=backend).at.oindex[i, i].add(x[i, 0][:, None])
    )
    assert x.at[i].add(1.0).shape == x.at[i].set(x[i]).shape == x.at[i].max(1.0).shape == (4, 3)
    mask = tk.symbol("m", (4,), "bool", backend=backend)
    assert str(x.at[mask].set(1.0)).startswith("m.reshape([4, 1]).expand([4, 3]).where(")
    with pytest.raises(
        ConcretizationError, match=r"^index: a mask of shape \(4,\) has no known value here.*tk\.where"
    ):
        x[mask]


# ---- derivatives -------------------------------------------------------------------------------------------


@pytest.mark.feature(171)
@pytest.mark.parametrize("way", WAYS)
@given(drawn=cases())
def test_cotangents_add_up_where_places_repeat(way, drawn):
    values, key = drawn
    means, reader, _ = WAYS[way]
    try:
        part = means(np.arange(values.size).reshape(values.shape), key)
    except IndexError:
        assume(False)
    x = numbered(values.shape)
    cotangent = np.cos(np.arange(1.0, 1 + part.size)).reshape(part.shape)
    expected = np.zeros(values.size)
    np.add.at(expected, part.ravel(), cotangent.ravel())
    y, pull_back = tk.vjp(lambda x: reader(x)[key], f64(x))
    assert array(y).tolist() == means(x, key).tolist()
    pulled = array(pull_back(f64(cotangent))[0])
    np.testing.assert_allclose(pulled, expected.reshape(x.shape), rtol=1e-14, atol=1e-15)
    pushed = tk.jvp(lambda x: reader(x)[key], (f64(x),), (f64(np.sin(x)),))[1]
    assert array(pushed).tolist() == means(np.sin(x), key).tolist()


@pytest.mark.feature(108, 171)
def test_derivatives_of_any_order():
    x = f64(np.random.default_rng(0).normal(size=(4, 3)))
    mask = tk.tensor(array(x) > 0.0)
    for f in (
        lambda x: (x[[0, -1, 0], [1, 1, 1]] ** 3).sum() * x[[2]].sum(),
        lambda x: (x[1:, [0, 0, 2]] * x.oindex[[0, 1, 0], [2, 2, 1]]).sum() ** 2,
        lambda x: (x[mask] ** 3).sum() * x[x < 0.0].sum(),
        lambda x: (x.vindex[::2, [[0], [1]]] ** 2).sum() * tk.take(x, [0, 0]).sum(),
    ):
        tk.testing.check_grads(f, (x,), order=3)


@pytest.mark.feature(171)
def test_infinities_elsewhere_do_no_harm():
    x = f64([[math.inf, 1.0], [math.nan, 3.0], [-math.inf, 5.0]])
    column = tk.tensor([1, 1, 1])
    for f in (
        lambda x: x[[0, 2, 0], [1, 1, 1]],
        lambda x: x[np.array([[False, True]] * 3)],
        lambda x: x.oindex[[0, 1, 2], [1]],
        lambda x: tk.take_along_axis(x, column.reshape(3, 1), 1),
        lambda x: x[:, 1][[2, 1, 0]],
    ):
        y, gradient = tk.value_and_grad(lambda x: (f(x) ** 2).sum())(x)  # noqa: B023
        assert math.isfinite(y.item())
        assert array(gradient)[:, 0].tolist() == [0.0, 0.0, 0.0]
        assert np.isfinite(array(gradient)).all()
        pushed = tk.jvp(f, (x,), (tk.ones_like(x),))[1]
        assert array(pushed).tolist() == np.ones(pushed.shape).tolist()


# ---- masks and levels --------------------------------------------------------------------------------------


@pytest.mark.feature(170)
def test_a_mask_is_read_through_derivatives():
    f = lambda x: (x[x > 0.0] ** 2).sum()  # noqa: E731
    x = f64([-1.0, 2.0, 3.0])
    assert tk.grad(f)(x).tolist() == [0.0, 4.0, 6.0]
    assert tk.jvp(f, (x,), (x,))[1].item() == 26.0
    assert tk.hessian(f)(x).tolist() == [[0.0] * 3, [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]


@pytest.mark.feature(170)
def test_a_mask_in_a_batch_must_be_shared():
    xs, mask = f64(numbered((4, 3))), tk.tensor([True, False, True])
    same(tk.vmap(lambda x: x[mask])(xs), numbered((4, 3))[:, [0, 2]])
    same(tk.vmap(lambda x, m: x[m], (0, None))(xs, mask), numbered((4, 3))[:, [0, 2]])
    for call in (
        lambda x: x[x > 2.0],
        lambda x: x.oindex[x > 2.0],
        lambda x: x.at[x > 2.0].set([1.0, 2.0, 3.0]),
    ):
        with pytest.raises(
            ConcretizationError,
            match=r"^index: a mask of shape \(3,\) has no known value here.*tk\.where.*x\.at\[mask\]\.set\(v\)",
        ):
            tk.vmap(call)(xs)
    assert tk.vmap(lambda x: x.at[x > 2.0].set(0.0))(xs).tolist() == [[1.0, 2.0, 0.0], *[[0.0] * 3] * 3]


@pytest.mark.feature(170, 171)
@pytest.mark.parametrize("axes", [axes for axes in product((0, None), repeat=3) if any(a == 0 for a in axes)])
def test_a_batch_is_a_loop(axes):
    rng = np.random.default_rng(0)
    stacked = (
        f64(rng.normal(size=(3, 4, 5))),
        tk.tensor(rng.integers(-4, 4, (3, 2)).astype("int32")),
        tk.tensor(rng.integers(-5, 5, (3, 6, 1))),
    )
    arguments = [a if axis == 0 else a[0] for a, axis in zip(stacked, axes, strict=True)]
    examples = [[a[b] if axis == 0 else a for a, axis in zip(arguments, axes, strict=True)] for b in range(3)]
    for f in (
        lambda x, i, k: x[i],
        lambda x, i, k: x[:, k],
        lambda x, i, k: x[i, k],
        lambda x, i, k: x[k % 4, None, i],
        lambda x, i, k: x[i[0]],
        lambda x, i, k: x[i[0], k[0]],
        lambda x, i, k: x[::-1, k[1]],
        lambda x, i, k: x.oindex[i, k],
        lambda x, i, k: x.vindex[1:, k],
    ):
        got = tk.vmap(f, axes)(*arguments)
        expected = np.stack([array(f(*example)) for example in examples])
        assert array(got).tobytes() == expected.tobytes()
        gradient = tk.grad(lambda x, i, k: (f(x, i, k) ** 3).sum())  # noqa: B023
        got = tk.vmap(gradient, axes)(*arguments)
        np.testing.assert_allclose(array(got), np.stack([array(gradient(*e)) for e in examples]), rtol=1e-13)


@pytest.mark.feature(170)
def test_it_is_the_backend_of_the_tensor_that_indexes():
    x = f64([1.0, 2.0, 3.0], Reference())
    assert x[[2, 0]].interpreter is x.interpreter
    assert x[np.array([True, False, True])].tolist() == [1.0, 3.0]
    assert x[True].interpreter is x.interpreter
    with pytest.raises(MixedBackendError):
        x[tk.tensor([0, 1], backend=FUSED)]
