"""vmap: in_axes and out_axes, pytrees, unbatched arguments, nesting with derivatives, errors."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import tensorken as tk
from core.tests.examples import examples
from core.tests.random_programs.draft import Draft
from core.tests.random_programs.judging import under_vmap
from core.tests.random_programs.strategies import programs
from core.tests.support import FUSED, STACKS, Counting, array, f64, peak_of
from tensorken_core.errors import (
    ArgumentError,
    AxisError,
    ConcretizationError,
    EscapedTensorError,
    ShapeError,
    StructureError,
)
from tensorken_core.levels.batch import Axis, Batch
from tensorken_core.rewriting.fuse import Fuse

pytestmark = [pytest.mark.usefixtures("on_numpy"), pytest.mark.feature(197)]
RNG = np.random.default_rng(0)


def same(result, expected, rtol=1e-12):
    expected = np.asarray(expected)
    assert result.shape == expected.shape
    np.testing.assert_allclose(array(result), expected, rtol=rtol, atol=rtol)


# ---- axes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_axis", range(-3, 3))
@pytest.mark.parametrize("out_axis", range(-3, 3))
def test_in_axes_and_out_axes_place_the_axis_of_examples(in_axis, out_axis):
    x = RNG.normal(size=(2, 3, 4))
    result = tk.vmap(lambda a: tk.sin(a), in_axis, out_axis)(f64(x))
    same(result, np.moveaxis(np.sin(x), in_axis, out_axis))


def test_each_argument_has_its_own_axis_or_is_shared():
    a, b = RNG.normal(size=(3, 5)), RNG.normal(size=(4, 5))
    f = tk.vmap(lambda a, b: a[0] * b, in_axes=(1, 1))
    same(f(f64(a), f64(b)), (a[0] * b).T)
    same(tk.vmap(lambda a, b: a * b, (None, 0))(f64(a[0]), f64(b)), a[0] * b)
    same(tk.vmap(lambda a, b: (a * b).sum(), [0, None])(f64(a), f64(a[0])), a @ a[0])


def test_in_axes_and_out_axes_are_prefixes_of_pytrees():
    params = {"w": f64(RNG.normal(size=(2, 3))), "b": (f64(RNG.normal(size=3)), None)}
    x = f64(RNG.normal(size=(3, 4)))
    f = lambda p, x: {"y": p["w"] @ x + p["b"][0][0], "parts": (x, p["w"])}  # noqa: E731
    whole = tk.vmap(f, ({"w": None, "b": None}, 1), {"y": 1, "parts": (0, None)})(params, x)
    w, b, columns = array(params["w"]), array(params["b"][0])[0], array(x)
    same(whole["y"], w @ columns + b)
    same(whole["parts"][0], columns.T)
    same(whole["parts"][1], w)
    inner = tk.vmap(f, ({"w": None, "b": (0, None)}, 1))
    with pytest.raises(ShapeError, match="examples"):
        inner(params, x)


def test_keywords_have_their_examples_along_axis_0_and_other_leaves_pass_through():
    def scaled(x, mode, *, factor):
        assert mode == "double"
        return x * factor * 2.0

    x, factor = RNG.normal(size=(3, 2)), RNG.normal(size=3)
    same(tk.vmap(scaled, (0, None))(f64(x), "double", factor=f64(factor)), 2 * x * factor[:, None])


def test_results_that_are_shared_are_repeated_or_returned_as_they_are():
    x = f64(RNG.normal(size=(3, 2)))
    same(tk.vmap(lambda a: tk.ones(2, tk.float64))(x), np.ones((3, 2)))
    same(tk.vmap(lambda a: 2.5)(x), np.full(3, 2.5))
    same(tk.vmap(lambda a: tk.ones(2, tk.float64), 0, None)(x), np.ones(2))
    same(tk.vmap(lambda: tk.ones(2), axis_size=4)(), np.ones((4, 2)))


def test_numbers_and_arrays_are_taken():
    same(tk.vmap(lambda a, b: a * b, (0, None))(np.arange(3.0), 2.0), [0.0, 2.0, 4.0])
    same(tk.vmap(lambda a: a + 1)(tk.tensor([1, 2])), [2, 3])


@pytest.mark.parametrize("size", [0, 1])
def test_batches_of_zero_and_one_example(size):
    x = f64(RNG.normal(size=(size, 3)))
    f = tk.vmap(tk.grad(lambda a: (tk.tanh(a) * a.max()).sum()))
    assert f(x).shape == (size, 3)
    i = tk.zeros((size, 2), tk.int32)
    assert tk.vmap(lambda a, k: a.gather(k, 0))(x, i).shape == (size, 2)
    assert tk.vmap(lambda a, k: a.gather(k, 0), (None, 0))(f64([1.0, 2.0]), i).shape == (size, 2)
    assert tk.vmap(tk.grad(lambda a, k: a.gather(k, 0).sum()))(x, i).shape == (size, 3)


# ---- cost --------------------------------------------------------------------------------------------------


def test_the_function_is_called_once_and_shared_work_is_done_once():
    backend, calls = Counting(), []
    stack = Fuse(backend)
    x, w = (tk.tensor(RNG.normal(size=s), backend=stack) for s in ((50, 4), (4,)))

    def f(a, w):
        calls.append(1)
        return (a * tk.exp(w)).sum()

    backend.clear()
    result = tk.vmap(f, (0, None))(x, w)
    same(result, array(x) @ np.exp(array(w)))
    assert len(calls) == 1
    assert backend.calls["exp"] == 1
    assert backend.sizes["exp", (4,)] == 1  # once for all examples, on the unbatched value


@pytest.mark.parametrize(
    "f",
    [
        lambda w: tk.vmap(lambda x: x @ w),
        lambda w: tk.vmap(tk.grad(lambda x: (x @ w).sum())),
        lambda w: lambda x: tk.grad(lambda w: tk.vmap(lambda x: (x @ w).sum())(x).sum())(w),
        lambda w: tk.vmap(lambda x: tk.jvp(lambda x: x @ w, (x,), (x,))[1]),
    ],
    ids=["vmap", "vmap(grad)", "grad(vmap)", "vmap(jvp)"],
)
def test_a_shared_matrix_is_multiplied_with_and_never_repeated(f):
    rows = 200
    w, x = (tk.tensor(RNG.normal(size=s).astype("float32")) for s in ((100, 100), (rows, 100)))
    own = f(w)
    array(own(x))
    assert (
        peak_of(lambda: array(own(x))) < 20 * rows * 100 * 4
    )  # the full products would need 100 times as much


# ---- nesting -----------------------------------------------------------------------------------------------


def loss(w, x):
    return (tk.tanh(x @ w) * x).sum() ** 2 + (x[1:] * w[0, 0]).exp().sum()


W, X = RNG.normal(size=(3, 3)) * 0.3, RNG.normal(size=(5, 3))


@pytest.mark.parametrize(
    "transformed",
    [tk.grad(loss), tk.jacfwd(loss), tk.hessian(loss), tk.jacrev(tk.jacfwd(loss)), tk.grad(loss, 1)],
)
def test_vmap_of_derivatives_is_the_loop(transformed):
    w, x = f64(W), f64(X)
    same(
        tk.vmap(transformed, (None, 0))(w, x),
        np.stack([array(transformed(w, x[i])) for i in range(5)]),
        1e-11,
    )


def test_derivatives_of_vmap_are_those_of_the_loop():
    w, x = f64(W), f64(X)
    batched = lambda w: (tk.vmap(loss, (None, 0))(w, x) ** 2).sum()  # noqa: E731
    looped = lambda w: sum(loss(w, x[i]) ** 2 for i in range(5))  # noqa: E731
    for transform in (tk.grad, tk.jacfwd, tk.hessian, lambda f: tk.jacfwd(tk.jacfwd(f))):
        same(transform(batched)(w), array(transform(looped)(w)), 1e-9)


def test_vmap_between_two_derivatives():
    w, x = f64(W), f64(X)
    per_example = lambda w: tk.vmap(tk.grad(loss, 1), (None, 0))(w, x).tanh().sum()  # noqa: E731
    looped = lambda w: sum(tk.grad(loss, 1)(w, x[i]).tanh().sum() for i in range(5))  # noqa: E731
    same(tk.grad(per_example)(w), array(tk.grad(looped)(w)), 1e-10)
    same(tk.jacfwd(tk.grad(per_example))(w), array(tk.jacfwd(tk.grad(looped))(w)), 1e-9)


def test_vmap_of_vmap_is_the_table_of_all_pairs():
    x, y = f64(X), f64(RNG.normal(size=(4, 3)))
    kernel = lambda a, b: tk.exp(-((a - b) ** 2).sum())  # noqa: E731
    table = tk.vmap(lambda a: tk.vmap(lambda b: kernel(a, b))(y))(x)
    same(table, np.exp(-((array(x)[:, None] - array(y)[None]) ** 2).sum(-1)))
    same(tk.vmap(tk.vmap(kernel, (None, 0)), (0, None))(x, y), array(table))
    third = tk.vmap(tk.vmap(tk.grad(kernel), (None, 0)), (0, None))(x, y)
    same(third[2, 1], array(tk.grad(kernel)(x[2], y[1])))


def test_values_of_enclosing_transforms_are_used_inside():
    a = f64([0.5, -1.0, 2.0])
    f = lambda a: tk.grad(lambda w: tk.vmap(lambda x: (x * w * a).sum())(f64(X)).exp().sum())(a).sum()  # noqa: E731
    looped = lambda a: tk.grad(lambda w: sum((f64(X[i]) * w * a).sum().exp() for i in range(5)))(a).sum()  # noqa: E731
    same(tk.grad(f)(a), array(tk.grad(looped)(a)), 1e-10)


@pytest.mark.filterwarnings("ignore::tensorken_core.errors.RetraceWarning")
@given(programs(whole=True), st.sampled_from(sorted(STACKS)), st.integers(0, 2**32 - 1))
@settings(max_examples=examples(60))
def test_vmap_of_a_random_program_is_the_loop(draft: Draft, stack: str, seed: int):
    """On every stack of interpreters; with integers, so results are equal."""
    with tk.use_backend(STACKS[stack]):
        assert not list(under_vmap(draft.program, {}, random.Random(seed)))


# ---- indices -----------------------------------------------------------------------------------------------


def test_indices_out_of_range_never_read_another_example():
    x = f64([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])
    wild = tk.tensor([[-7, 5], [2, -1], [1, 0]])
    taken = array(tk.vmap(lambda a, k: a.gather(k, 0))(x, wild))
    for row, own in zip(taken, array(x), strict=True):
        assert set(row) <= set(own)
    put = array(tk.vmap(lambda a, k: a.scatter_add(k, 0, 2))(x, wild))
    assert (put.sum(1) <= array(x).sum(1)).all()


@pytest.mark.parametrize("batched", [f for f in itertools.product((True, False), repeat=2) if any(f)])
@pytest.mark.parametrize("axis", [0, 1])
def test_gather_and_scatter_with_examples_of_either_operand(batched, axis):
    x, i = RNG.normal(size=(4, 3, 5)), RNG.integers(0, 3, size=(4, 6))
    xs, ks = (x if batched[0] else x[0]), (i if batched[1] else i[0])
    in_axes = tuple(0 if b else None for b in batched)
    result = tk.vmap(lambda a, k: a.gather(k, axis), in_axes)(f64(xs), tk.tensor(ks.astype("int32")))
    rows = [(x[n if batched[0] else 0], i[n if batched[1] else 0]) for n in range(4)]
    same(result, np.stack([np.take(a, k, axis) for a, k in rows]))
    wide = RNG.normal(size=(4, 6, 6))
    ws = wide if batched[0] else wide[0]
    result = tk.vmap(lambda a, k: a.scatter_add(k, axis, 4), in_axes)(f64(ws), tk.tensor(ks.astype("int32")))
    for n in range(4):
        expected = np.zeros((4, 6) if axis == 0 else (6, 4))
        np.add.at(
            expected,
            (i[n if batched[1] else 0],) if axis == 0 else (slice(None), i[n if batched[1] else 0]),
            wide[n if batched[0] else 0],
        )
        np.testing.assert_allclose(array(result)[n], expected, rtol=1e-12)


# ---- what it refuses ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (lambda x: x if x.sum() > 0 else -x, ConcretizationError),
        (lambda x: float(x.sum()), ConcretizationError),
        (lambda x: x.tolist(), ConcretizationError),
        (lambda x: np.asarray(x), ConcretizationError),
    ],
)
def test_a_batched_value_has_no_single_value(read, error):
    with pytest.raises(error, match="vmap"):
        tk.vmap(read)(f64(X))
    with pytest.raises(error, match="vmap"):  # nor when there is but one
        tk.vmap(read)(f64(X[:1]))
    same(tk.vmap(lambda x: x * 2.0)(f64(X)), 2 * X)


def test_an_unbatched_value_may_be_read():
    seen = []
    tk.vmap(lambda x, w: seen.append((float(w.sum()), w.tolist())) or x, (0, None))(f64(X), f64([1.0, 2.0]))
    assert seen == [(3.0, [1.0, 2.0])]


def test_batched_values_have_a_repr():
    seen = []
    tk.vmap(lambda x: seen.extend([str(x), repr(x)]) or x)(tk.ones((5, 3)))
    assert seen == ["<<tensor of each example, shape=(3,), dtype=float32> inside vmap>"] * 2


ERRORS = {
    "not a function": (lambda: tk.vmap(3), ArgumentError, r"^vmap: need a function, got int; .*"),
    "a number has no axis": (
        lambda: tk.vmap(tk.sin)(1.0),
        ShapeError,
        r"leaf 0 has shape \(\), .* None in in_axes",
    ),
    "a keyword has no axis": (
        lambda: tk.vmap(lambda x, s: x * s)(tk.ones(3), s=2.0),
        ShapeError,
        r"^vmap: argument leaf 1 has shape \(\), no axis to map over; pass a shared argument by position",
    ),
    "a keyword is no tensor": (
        lambda: tk.vmap(lambda x, s: x)(tk.ones(3), s="fast"),
        ArgumentError,
        r"^vmap: argument leaf 1: .* of str; .*; pass a shared argument by position",
    ),
    "two sizes": (
        lambda: tk.vmap(lambda a, b: a)(tk.ones(3), tk.ones(4)),
        ShapeError,
        r"^vmap: argument leaf 0 has 3 examples and argument leaf 1 has 4 along axis 0; need equal sizes",
    ),
    "axis_size differs": (
        lambda: tk.vmap(tk.sin, axis_size=2)(tk.ones(3)),
        ShapeError,
        r"axis_size says 2 examples",
    ),
    "axis_size is no number": (
        lambda: tk.vmap(lambda: 1.0, axis_size=2.5)(),
        ArgumentError,
        r"axis_size must be an int .*got 2.5",
    ),
    "axis_size is negative": (
        lambda: tk.vmap(lambda: 1.0, axis_size=-1)(),
        ArgumentError,
        r"axis_size must be an int .*got -1",
    ),
    "no examples": (
        lambda: tk.vmap(tk.sin, None)(tk.ones(3)),
        ArgumentError,
        r"no argument has an axis to map over; .*axis_size",
    ),
    "too many in_axes": (
        lambda: tk.vmap(tk.sin, (0, 0))(tk.ones(3)),
        ArgumentError,
        r"in_axes \(0, 0\) has 2 entries .* 1 positional",
    ),
    "in_axes of another kind": (
        lambda: tk.vmap(tk.sin, "a")(tk.ones(3)),
        ArgumentError,
        r"in_axes must be an int",
    ),
    "in_axes with a float": (
        lambda: tk.vmap(tk.sin, (0.5,))(tk.ones(3)),
        ArgumentError,
        r"ints and None, got 0.5",
    ),
    "in_axes of another structure": (
        lambda: tk.vmap(tk.sin, ({"a": 0},))(tk.ones(3)),
        StructureError,
        r"^vmap: in_axes: at \[0\]",
    ),
    "axis out of range": (
        lambda: tk.vmap(tk.sin, 1)(tk.ones(3)),
        AxisError,
        r"^vmap: axis 1 is out of range",
    ),
    "out axis out of range": (
        lambda: tk.vmap(tk.sin, 0, 2)(tk.ones(3)),
        AxisError,
        r"^vmap: axis 2 is out of range",
    ),
    "out_axes None": (
        lambda: tk.vmap(tk.sin, 0, None)(tk.ones(3)),
        ArgumentError,
        r"differs between the examples.* cannot be None",
    ),
    "out_axes of another structure": (
        lambda: tk.vmap(lambda x: (x, x), 0, (0,))(tk.ones(3)),
        StructureError,
        r"^vmap: out_axes",
    ),
    "result of another kind": (
        lambda: tk.vmap(lambda x: object())(tk.ones(3)),
        ArgumentError,
        r"^vmap: the result of the function",
    ),
    "argument of another kind": (
        lambda: tk.vmap(tk.sin)(object()),
        ArgumentError,
        r"^vmap: argument leaf 0: ",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_bad_input_gets_one_line_and_the_next_call_works(case):
    call, error, match = ERRORS[case]
    with pytest.raises(error, match=match) as caught:
        call()
    assert "\n" not in str(caught.value)
    same(tk.vmap(tk.sin)(f64(X)), np.sin(X))


def test_a_tensor_that_escapes_is_refused():
    kept = []
    tk.vmap(lambda x: kept.append(x) or x)(tk.ones((2, 3)))
    index = tk.tensor([0, 0, 0])
    for use in (lambda x: x + 1.0, lambda x: x.gather(index, 0), lambda x: x.scatter_add(index, 0, 1)):
        with pytest.raises(
            EscapedTensorError, match="vmap, which has returned; return it from the function instead"
        ):
            use(kept[0])


def test_two_tensors_that_escape_together_are_refused():
    kept = []
    tk.vmap(lambda x, k: kept.extend([x, k]) or x)(tk.ones((2, 3)), tk.tensor([[0, 1, 2], [0, 0, 0]]))
    x, k = kept
    for use in (lambda: x.gather(k, 0), lambda: x.scatter_add(k, 0, 3), lambda: x * x):
        with pytest.raises(EscapedTensorError, match="vmap, which has returned"):
            use()


def test_rows_beyond_the_range_of_an_int32_are_counted_in_int64():
    last = tk.tensor([[0], [5], [2**30 - 1]])
    rows = Batch(FUSED, Axis(3)).offset_indices(last, 2**30)
    assert rows.dtype is tk.int64
    assert rows.tolist() == [[0], [2**30 + 5], [3 * 2**30 - 1]]


def test_an_error_inside_leaves_no_level_behind():
    with pytest.raises(ZeroDivisionError):
        tk.vmap(lambda x: 1 / 0)(tk.ones(3))
    assert tk.grad(lambda x: (x * x).sum())(f64([1.0, 2.0])).interpreter is FUSED


def test_the_string_backend_shows_the_batched_expression():
    from tensorken_string.backend import String

    with tk.use_backend(String()):
        w, x = tk.symbol("w", (3,)), tk.symbol("x", (7, 3))
        assert (
            str(tk.vmap(lambda x: (x * w).sum())(x))
            == "(x * w.reshape([1, 3]).expand([7, 3])).sum([1]).reshape([7])"
        )
