"""The transforms that users call: arguments, results, extra results, trees, shapes of Jacobians, and the checker."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import FUSED, STACKS, Counting, array, close, f64
from tensorken_core.errors import GradientError, StructureError
from tensorken_core.language.op import Op
from tensorken_core.levels.reverse import NOTHING, SHAPE_AND_DTYPE
from tensorken_core.rewriting.fuse import Fuse
from tensorken_core.tensor.tensor import apply

pytestmark = pytest.mark.usefixtures("on_numpy")


def cubes(x):
    return (x * x * x).sum()


# ---- arguments and results ---------------------------------------------------------------------------------


@pytest.mark.feature(67, 68, 76, 140)
@pytest.mark.parametrize(
    ("argnums", "expected"),
    [
        (0, 20.0),
        (1, 10.0),
        (2, 8.0),
        (-1, 8.0),
        (-3, 20.0),
        ((0,), (20.0,)),
        ((2, 0), (8.0, 20.0)),
        ([1, -1], (10.0, 8.0)),
        ((), ()),
    ],
)
def test_argnums_choose_positions_and_their_order(argnums, expected):
    def f(a, b, c):
        return a * b * c

    got = tk.grad(f, argnums)(2.0, 4.0, 5.0)
    assert (tuple(g.item() for g in got) if isinstance(expected, tuple) else got.item()) == expected
    value, again = tk.value_and_grad(f, argnums)(2.0, 4.0, 5.0)
    assert value.item() == 40.0
    assert tk.tree.map(float, again) == tk.tree.map(float, got)


@pytest.mark.feature(67)
def test_one_argument_in_a_tuple_gives_a_tuple():
    assert [g.item() for g in tk.grad(lambda x: x * x, (0,))(3.0)] == [6.0]
    assert tk.grad(lambda x: x * x, ())(3.0) == ()


def test_keywords_and_other_arguments_pass_through():
    seen = []

    def f(x, power, *, scale, name="f"):
        seen.append((power, name))
        return scale * x**power

    assert tk.grad(f)(2.0, 3.0, scale=0.5).item() == 6.0
    assert tk.grad(f, 0)(2.0, 3.0, scale=2.0, name="g").item() == 24.0
    assert seen == [(3.0, "f"), (3.0, "g")]
    assert tk.derivative(f)(2.0, 3.0, scale=0.5).item() == 6.0
    assert tk.jacrev(f)(2.0, 3.0, scale=0.5).item() == 6.0
    assert tk.jacfwd(f)(2.0, 3.0, scale=0.5).item() == 6.0


def test_only_differentiated_arguments_must_be_floats():
    def f(x, indices, mode, nothing):
        assert mode == "sum"
        assert nothing is None
        return tk.take(x, indices).sum()

    assert tk.grad(f)(f64([1.0, 2.0, 3.0]), tk.tensor([0, 0, 2]), "sum", None).tolist() == [2.0, 0.0, 1.0]


@pytest.mark.feature(70)
def test_arguments_may_be_numbers_lists_of_tensors_and_arrays():
    assert tk.grad(lambda x: x * x)(3.0).dtype is tk.float32
    assert tk.grad(lambda x: (x * x).sum())(np.array([1.0, 2.0])).dtype is tk.float64
    got = tk.grad(lambda xs: xs[0] * xs[1])([2.0, 3.0])
    assert [g.item() for g in got] == [3.0, 2.0]


@pytest.mark.feature(163)
def test_the_transformed_function_keeps_its_name_and_text():
    def loss(x):
        """What is lost."""
        return cubes(x)

    for transform in (
        tk.grad,
        tk.value_and_grad,
        tk.elementwise_grad,
        tk.derivative,
        tk.jacfwd,
        tk.jacrev,
        tk.hessian,
    ):
        assert transform(loss).__name__ == "loss"
        assert transform(loss).__doc__ == "What is lost."
    assert tk.grad(functools.partial(lambda a, x: a * x, 3.0))(2.0).item() == 3.0


@pytest.mark.feature(78)
def test_value_and_grad_calls_the_function_once():
    calls = []

    def f(x):
        calls.append(1)
        return cubes(x)

    value, gradient = tk.value_and_grad(f)(f64([1.0, 2.0]))
    assert (value.item(), gradient.tolist()) == (9.0, [3.0, 12.0])
    assert len(calls) == 1
    tk.grad(f, (0,))(f64([1.0]))
    assert len(calls) == 2


@pytest.mark.feature(80)
def test_the_gradient_of_a_vector_is_refused_and_has_two_other_names():
    x = f64([0.5, 2.0])
    with pytest.raises(
        GradientError,
        match=r"^grad needs a scalar-valued function, got shape \(2,\); use jacrev, vjp or elementwise_grad$",
    ):
        tk.grad(tk.sin)(x)
    close(tk.elementwise_grad(tk.sin)(x), np.cos([0.5, 2.0]))
    close(tk.derivative(tk.sin)(x), np.cos([0.5, 2.0]))
    close(tk.elementwise_grad(lambda x: x[:, None] * x)(x), [5.0, 5.0])  # the sum over all outputs


@pytest.mark.feature(105)
@pytest.mark.parametrize("constant", [5.0, 5, True])
def test_a_constant_function(constant):
    x = f64([1.0, 2.0])
    assert tk.grad(lambda x: float(constant))(x).tolist() == [0.0, 0.0]
    y, t = tk.jvp(lambda x: constant, (x,), (x,))
    assert (y.item(), t.item()) == (constant, 0)
    assert y.dtype is t.dtype
    y, _ = tk.vjp(lambda x: {"y": constant}, x)
    assert y["y"].item() == constant
    assert tk.jacfwd(lambda x: f64([1.0, 2.0, 3.0]))(x).tolist() == [[0.0, 0.0]] * 3
    assert tk.jacrev(lambda x: f64([1.0, 2.0, 3.0]))(x).tolist() == [[0.0, 0.0]] * 3


@pytest.mark.feature(93)
def test_the_identity_and_a_result_that_comes_twice():
    x = f64([1.0, 2.0])
    y, pull_back = tk.vjp(lambda x: x, x)
    assert y.tolist() == [1.0, 2.0]
    assert pull_back(f64([3.0, 4.0]))[0].tolist() == [3.0, 4.0]
    _, pull_back = tk.vjp(lambda x: (x, x, x * 2.0), x)
    assert pull_back((x, x, x))[0].tolist() == [4.0, 8.0]
    assert tk.jvp(lambda x: (x, x), (x,), (x,))[1][1].tolist() == [1.0, 2.0]
    assert tk.jacrev(lambda x: x)(x).tolist() == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.feature(89, 138)
def test_the_same_tensor_as_two_arguments_is_two_variables():
    x = f64(3.0)
    assert [g.item() for g in tk.grad(lambda a, b: a * a * b, (0, 1))(x, x)] == [18.0, 9.0]
    assert [g.item() for g in tk.vjp(lambda a, b: a * b, x, x)[1](1.0)] == [3.0, 3.0]
    assert tk.grad(lambda a: a * x)(x).item() == 3.0  # x itself is a constant, though a is the same tensor


# ---- extra results and unused arguments --------------------------------------------------------------------


@pytest.mark.feature(195)
def test_extra_results_come_out_as_plain_tensors():
    def f(x):
        hidden = x * 2.0
        return (hidden * hidden).sum(), {"hidden": hidden, "name": "f", "count": 3, "outside": outside}

    outside = f64(7.0)
    x = f64([1.0, 2.0])
    gradient, aux = tk.grad(f, has_aux=True)(x)
    assert gradient.tolist() == [8.0, 16.0]
    (value, more), again = tk.value_and_grad(f, has_aux=True)(x)
    assert (value.item(), again.tolist()) == (20.0, [8.0, 16.0])
    _, pull_back, of_vjp = tk.vjp(f, x, has_aux=True)
    _, tangent, of_jvp = tk.jvp(f, (x,), (x,), has_aux=True)
    assert (pull_back(1.0)[0].tolist(), tangent.item()) == ([8.0, 16.0], 40.0)
    for extra in (aux, more, of_vjp, of_jvp):
        assert extra["hidden"].interpreter is FUSED
        assert (extra["hidden"] + 1.0).tolist() == [3.0, 5.0]
        assert (extra["name"], extra["count"], extra["outside"]) == ("f", 3, outside)


@pytest.mark.feature(108)
def test_extra_results_of_an_inner_transform_keep_the_outer_derivative():
    def f(x):
        inner = lambda y: ((y * y * x).sum(), y * x)  # noqa: E731
        gradient, aux = tk.grad(inner, has_aux=True)(x)
        return (gradient * aux).sum()  # 2x² · x²

    assert tk.grad(f)(f64(2.0)).item() == 8 * 8.0
    assert tk.derivative(f)(f64(2.0)).item() == 8 * 8.0


@pytest.mark.feature(84, 195)
@each_of("wrap", [lambda f: f, tk.jit, lambda f: tk.vmap(f, axis_size=2, in_axes=None, out_axes=None)])
@each_of("point", [[1.0, 2.0], [3.0]])
def test_jacobians_and_hessians_have_extra_results(wrap, point):
    def f(x):
        hidden = x * 2.0
        steps = tk.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2.0, c[2]), (0, x, hidden))
        return (hidden * hidden).sum() * x, {"hidden": hidden, "outside": outside, "steps": steps, "count": 3}

    outside, x = f64(7.0), f64(point)
    for transform in (tk.jacfwd, tk.jacrev, tk.hessian):
        forward = (
            f if transform is tk.jacfwd else lambda x: (f(x)[0], {**f(x)[1], "steps": (3, x * 8.0, x * 2.0)})
        )
        found, aux = wrap(transform(forward, has_aux=True))(x)
        wanted = transform(lambda x: forward(x)[0])(x)  # noqa: B023
        assert found.tolist() == wanted.tolist()
        assert aux["hidden"].interpreter is x.interpreter
        assert aux["hidden"].tolist() == (x * 2.0).tolist()
        assert [float(aux["outside"]), int(aux["count"]), int(aux["steps"][0])] == [7.0, 3, 3]
        assert [y.tolist() for y in aux["steps"][1:]] == [(x * 8.0).tolist(), (x * 2.0).tolist()]


def test_a_jacobian_with_extra_results_needs_a_pair():
    for transform in (tk.jacfwd, tk.jacrev, tk.hessian):
        with pytest.raises(TypeError, match=r"has_aux=True needs a function that returns a pair"):
            transform(cubes, has_aux=True)(f64([1.0, 2.0]))


# ---- integers among the primals ----------------------------------------------------------------------------


def scaled_rows(tree, mask):
    """Floats, integers and bools in one tree."""
    return tk.where(mask, tree["table"][tree["rows"]] * tree["count"], 0.0)


def mixed_primals():
    tree = {"table": f64([1.0, 2.0, 3.0]), "rows": tk.tensor([2, 0, 2]), "count": 2}
    return tree, tk.tensor([True, True, False])


@pytest.mark.feature(72, 73)
@each_of("wrap", [lambda f: f, tk.jit, tk.checkpoint])
def test_the_cotangent_of_an_integer_primal_is_none(wrap):
    y, pull_back = tk.vjp(wrap(scaled_rows), *mixed_primals())
    assert y.tolist() == [6.0, 2.0, 0.0]
    tree, mask = pull_back(f64([1.0, 10.0, 100.0]))
    assert mask is None
    assert sorted(tree) == ["count", "rows", "table"]
    assert (tree["count"], tree["rows"], tree["table"].tolist()) == (None, None, [20.0, 0.0, 2.0])


@pytest.mark.feature(72, 73)
@each_of("wrap", [lambda f: f, tk.jit])
def test_the_tangent_of_an_integer_primal_is_none(wrap):
    primals, f = mixed_primals(), wrap(scaled_rows)
    tangents = {"table": f64([1.0, 10.0, 100.0]), "rows": None, "count": None}, None
    y, t = tk.jvp(f, primals, tangents)
    assert (y.tolist(), t.tolist()) == ([6.0, 2.0, 0.0], [200.0, 2.0, 0.0])
    y, push_forward = tk.linearize(f, *primals)
    assert (y.tolist(), push_forward(*tangents).tolist()) == ([6.0, 2.0, 0.0], [200.0, 2.0, 0.0])
    jitted = tk.jit(lambda primals, t: tk.linearize(f, *primals)[1]({**tangents[0], "table": t}, None))
    assert jitted(primals, tangents[0]["table"]).tolist() == [200.0, 2.0, 0.0]


def test_integers_among_primals_pass_nested_transforms():
    def slope(x, n):
        return tk.vjp(lambda x, n: x**3 * n, x, n)[1](1.0)[0]

    x, n = f64(2.0), tk.tensor(5)
    assert slope(x, n).item() == 60.0
    assert tk.grad(slope)(x, n).item() == 60.0
    assert tk.jvp(slope, (x, n), (1.0, None))[1].item() == 60.0
    assert tk.vmap(slope)(f64([1.0, 2.0]), tk.tensor([1, 5])).tolist() == [3.0, 60.0]


def test_the_cotangent_of_an_integer_result_may_be_none():
    _, pull_back = tk.vjp(lambda x: (x * x, x.argmax()), f64([1.0, 3.0]))
    assert pull_back((f64([1.0, 1.0]), None))[0].tolist() == [2.0, 6.0]


@each_of(
    ("call", "error", "message"),
    [
        (
            lambda: tk.vjp(tk.square, 3),
            GradientError,
            r"^vjp: cannot differentiate int32 .* pass floats \(x.astype\('float32'\)\)$",
        ),
        (
            lambda: tk.jvp(tk.multiply, (2.0, 3), (1.0, 1.0)),
            GradientError,
            r"^jvp: the primal at \[1\] is int32, whose tangent must be None; ",
        ),
        (
            lambda: tk.jvp(tk.multiply, (2.0, 3), (1.0, tk.tensor(1))),
            GradientError,
            r"^jvp: the primal at \[1\] is int32, whose tangent must be None; ",
        ),
        (
            lambda: tk.jvp(tk.multiply, (2.0, 3), (None, None)),
            StructureError,
            r"^jvp: tangents: at \[0\]: expected a leaf, got None",
        ),
        (
            lambda: tk.jvp(tk.multiply, (2.0, 3), (1.0, (None,))),
            StructureError,
            r"^jvp: tangents: at \[1\]: expected a leaf, got a tuple of 1",
        ),
        (
            lambda: tk.vjp(tk.multiply, 2.0, 3)[1](None),
            StructureError,
            r"^vjp: cotangent: at the top: expected a leaf, got None",
        ),
        (
            lambda: tk.linearize(tk.multiply, 2.0, 3)[1](1.0),
            StructureError,
            r"^linearize: tangents: at the top: expected a tuple of 2",
        ),
    ],
)
def test_tangents_that_do_not_fit_integers_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.feature(110, 141)
def test_an_unused_argument_has_zeros_or_is_refused():
    f = lambda a, b: cubes(a["x"])  # noqa: E731
    arguments = {"x": f64([1.0]), "y": f64([[2.0, 3.0]])}, f64(4.0)
    (first, second) = tk.grad(f, (0, 1))(*arguments)
    assert (first["x"].tolist(), first["y"].tolist(), second.item()) == ([3.0], [[0.0, 0.0]], 0.0)
    with pytest.raises(
        GradientError, match=r'the value does not depend on argument \[0\]\["y"\]; drop it, or pass'
    ):
        tk.grad(f, (0, 1), allow_unused=False)(*arguments)
    assert tk.grad(f, 0, allow_unused=False)({"x": f64([2.0])}, 1.0)["x"].tolist() == [12.0]


def test_an_argument_used_only_by_a_constant_function_is_unused():
    with pytest.raises(GradientError, match="does not depend on argument"):
        tk.grad(lambda x: tk.stop_gradient(x).sum(), allow_unused=False)(f64([1.0]))


# ---- trees -------------------------------------------------------------------------------------------------

Pair = namedtuple("Pair", "left right")


@dataclasses.dataclass
class Layer:
    weight: Any
    bias: Any


@pytest.mark.feature(195, 198)
def test_arguments_and_results_may_be_trees():
    at = {"layers": [Layer(f64([[1.0, 2.0]]), f64([3.0])), None], "pair": Pair(f64(4.0), (f64(5.0),))}

    def f(p):
        layer = p["layers"][0]
        return (layer.weight * 2.0).sum() * p["pair"].left + layer.bias.sum() * p["pair"].right[0]

    got = tk.grad(f)(at)
    assert got["layers"][0].weight.tolist() == [[8.0, 8.0]]
    assert got["layers"][0].bias.tolist() == [5.0]
    assert got["layers"][1] is None
    assert isinstance(got["pair"], Pair)
    assert (got["pair"].left.item(), got["pair"].right[0].item()) == (6.0, 3.0)
    ones = tk.tree.map(tk.ones_like, at)
    assert tk.jvp(f, (at,), (ones,))[1].item() == 16.0 + 5.0 + 6.0 + 3.0
    assert tk.tree.structure(tk.hvp(f, (at,), (ones,))) == tk.tree.structure(at)


@pytest.mark.feature(195)
def test_functions_from_trees_to_trees():
    def f(p, c):
        return [p["a"] * c, {"sum": p["a"].sum() + c, "n": None}]

    at = {"a": f64([1.0, 2.0])}, f64(3.0)
    y, pull_back = tk.vjp(f, *at)
    assert (y[0].tolist(), y[1]["sum"].item(), y[1]["n"]) == ([3.0, 6.0], 6.0, None)
    tree, number = pull_back([f64([1.0, 10.0]), {"sum": f64(100.0), "n": None}])
    assert (tree["a"].tolist(), number.item()) == ([103.0, 130.0], 121.0)
    y, t = tk.jvp(f, at, ({"a": f64([1.0, 0.0])}, f64(1.0)))
    assert (t[0].tolist(), t[1]["sum"].item()) == ([4.0, 2.0], 2.0)
    j = tk.jacrev(f, (0, 1))(*at)
    k = tk.jacfwd(f, (0, 1))(*at)
    for jacobian in (j, k):
        assert jacobian[0][0]["a"].tolist() == [[3.0, 0.0], [0.0, 3.0]]
        assert jacobian[0][1].tolist() == [1.0, 2.0]
        assert jacobian[1]["sum"][0]["a"].tolist() == [1.0, 1.0]
        assert jacobian[1]["sum"][1].item() == 1.0


def test_empty_trees_have_empty_derivatives():
    assert tk.grad(lambda p: f64(1.0))({}) == {}
    assert tk.grad(lambda p, x: x * 1.0, (0, 1))([], f64(2.0))[0] == []
    y, pull_back = tk.vjp(lambda x: (), f64(1.0))
    assert y == ()
    assert pull_back(())[0].item() == 0.0
    assert tk.jvp(lambda: f64(2.0), (), ())[0].item() == 2.0
    for jacobian in (tk.jacfwd, tk.jacrev):
        assert jacobian(lambda x: {})(f64(1.0)) == {}
        assert jacobian(lambda p: {"y": f64([1.0, 2.0])})({}) == {"y": {}}
        assert jacobian(lambda p, x: x * x, (0, 1))([], f64(3.0))[1].item() == 6.0
    assert tk.hessian(lambda p: f64(1.0))([]) == []


@pytest.mark.feature(88)
def test_the_structure_of_a_cotangent_must_be_that_of_the_result():
    _, pull_back = tk.vjp(lambda x: {"a": x, "b": [x]}, f64(1.0))
    with pytest.raises(
        StructureError, match=r"^vjp: cotangent: at \[.b.\]: expected a list of 1, got a tuple of 1"
    ):
        pull_back({"a": f64(1.0), "b": (f64(1.0),)})
    assert pull_back({"a": f64(1.0), "b": [f64(2.0)]})[0].item() == 3.0


# ---- pullbacks ---------------------------------------------------------------------------------------------


@pytest.mark.feature(88, 91)
def test_a_pullback_may_be_called_many_times_and_is_linear():
    _, pull_back = tk.vjp(
        lambda a, b: tk.tanh(a @ b) * b.sum(), f64([[1.0, 0.5], [0.2, -1.0]]), f64([0.3, 0.7])
    )
    u, v = f64([1.0, -2.0]), f64([0.5, 4.0])
    first = [array(t) for t in pull_back(u)]
    combined = [array(t) for t in pull_back(u * 2.0 + v)]
    again = [array(t) for t in pull_back(u)]
    for one, two, three, other in zip(first, combined, again, pull_back(v), strict=True):
        assert one.tobytes() == three.tobytes()
        np.testing.assert_allclose(two, 2 * one + array(other), rtol=1e-13)


@pytest.mark.feature(88)
def test_a_number_is_a_cotangent_of_a_scalar():
    _, pull_back = tk.vjp(cubes, f64([1.0, 2.0]))
    for one in (1.0, 1, True, f64(1.0), np.array(1.0)):
        assert pull_back(one)[0].tolist() == [3.0, 12.0]


@pytest.mark.feature(88, 195)
def test_integer_results_have_no_cotangent():
    x = f64([3.0, 1.0, 2.0])
    y, pull_back = tk.vjp(lambda x: (x.argmax(), x * 2.0), x)
    assert y[0].item() == 0
    assert pull_back((tk.tensor(5), f64([1.0, 2.0, 3.0])))[0].tolist() == [2.0, 4.0, 6.0]
    y, t = tk.jvp(lambda x: (x.argmax(), x > 1.5), (x,), (x,))
    assert (t[0].item(), t[0].dtype, t[1].tolist()) == (0, tk.int32, [False, False, False])


# ---- Jacobians ---------------------------------------------------------------------------------------------

RANKS = [(), (2,), (2, 3), (0,), (2, 0), (1, 1, 2)]


@pytest.mark.feature(81, 82, 83, 85)
@pytest.mark.parametrize(("inputs", "outputs"), list(itertools.product(RANKS, RANKS)))
@pytest.mark.parametrize("jacobian", [tk.jacfwd, tk.jacrev])
def test_a_jacobian_has_the_shape_of_the_output_and_then_of_the_input(jacobian, inputs, outputs):
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((*outputs, *inputs))
    w = f64(weights)

    def f(x):
        rows = w.reshape(math.prod(outputs), math.prod(inputs))
        return (rows @ x.reshape(math.prod(inputs))).reshape(outputs)

    got = jacobian(f)(f64(rng.standard_normal(inputs)))
    assert got.shape == (*outputs, *inputs)
    close(got, weights)


@pytest.mark.feature(84, 85)
@pytest.mark.parametrize("shape", RANKS)
def test_a_hessian_of_any_rank(shape):
    x = np.random.default_rng(0).standard_normal(shape)
    expected = np.zeros((*shape, *shape))
    for index in np.ndindex(shape):
        expected[index + index] = 6 * x[index]
    for outer, inner in itertools.product((tk.jacfwd, tk.jacrev), repeat=2):
        got = outer(inner(cubes))(f64(x))
        assert got.shape == (*shape, *shape)
        close(got, expected)
    close(tk.hessian(cubes)(f64(x)), expected)


@pytest.mark.feature(82, 83)
@pytest.mark.parametrize("jacobian", [tk.jacfwd, tk.jacrev])
def test_a_jacobian_keeps_the_dtype_of_each_output_and_input(jacobian):
    f = lambda p, q: {"sum": p["x"].sum() + q[1], "wide": p["x"].astype("float64") * q[0]}  # noqa: E731
    p, q = {"x": tk.tensor([1.0, 2.0])}, (f64([3.0, 4.0]), tk.tensor(5.0))
    blocks = jacobian(f, (0, 1))(p, q)
    assert blocks["sum"][0]["x"].tolist() == [1.0, 1.0]
    assert [part.tolist() for part in blocks["sum"][1]] == [[0.0, 0.0], 1.0]
    assert blocks["wide"][0]["x"].tolist() == [[3.0, 0.0], [0.0, 4.0]]
    assert [part.tolist() for part in blocks["wide"][1]] == [[[1.0, 0.0], [0.0, 2.0]], [0.0, 0.0]]
    assert [part.dtype for part in blocks["wide"][1]] == [
        tk.float64,
        tk.float64 if jacobian is tk.jacfwd else tk.float32,
    ]
    alone = jacobian(lambda a, b: a * a + b.sum(), (0, 1))(f64(3.0), tk.zeros((0,), tk.float64))
    assert [part.tolist() for part in alone] == [6.0, []]


@pytest.mark.feature(83)
def test_a_jacobian_of_integers_is_refused_by_reverse_mode():
    with pytest.raises(GradientError, match=r"^jacrev: cannot differentiate int32 of shape \(2,\)"):
        tk.jacrev(lambda x: x.astype("int32"))(f64([1.0, 2.0]))


@pytest.mark.feature(84, 195)
def test_a_hessian_over_two_arguments_has_four_blocks():
    f = lambda a, b: (a * a * b).sum()  # noqa: E731
    (aa, ab), (ba, bb) = tk.hessian(f, (0, 1))(f64([1.0, 2.0]), f64([3.0, 4.0]))
    assert aa.tolist() == [[6.0, 0.0], [0.0, 8.0]]
    assert ab.tolist() == ba.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert bb.tolist() == [[0.0, 0.0], [0.0, 0.0]]


@pytest.mark.feature(83)
def test_jacfwd_costs_the_inputs_and_jacrev_the_outputs():
    """A tall function is cheaper forward, a wide one in reverse."""
    backend = Counting()
    stack = Fuse(backend)
    tall = tk.tensor(np.ones((40, 2)), backend=stack)

    def work(jacobian, f, x):
        backend.clear()
        array(jacobian(f)(x))
        return sum(count * math.prod(shape) for (_, shape), count in backend.sizes.items())

    up, down = (lambda x: tall @ tk.sin(x)), (lambda x: tk.sin(x) @ tall)
    two, forty = (
        tk.tensor([0.1, 0.2], "float64", backend=stack),
        tk.tensor([0.1] * 40, "float64", backend=stack),
    )
    assert work(tk.jacfwd, up, two) * 5 < work(tk.jacrev, up, two)
    assert work(tk.jacrev, down, forty) * 5 < work(tk.jacfwd, down, forty)


def test_stop_gradient_takes_trees():
    def f(p):
        fixed = tk.stop_gradient(p)
        return (p["a"] * fixed["a"]).sum() + p["b"][0] * fixed["b"][0]

    gradient = tk.grad(f)({"a": tk.tensor([1.0, 2.0]), "b": [3.0]})
    assert gradient["a"].tolist() == [1.0, 2.0]
    assert gradient["b"][0].item() == 3.0


# ---- stop_gradient, hvp ------------------------------------------------------------------------------------


@pytest.mark.feature(75)
def test_stop_gradient_is_a_constant_in_every_mode():
    f = lambda x: x * tk.stop_gradient(x) * x  # noqa: E731
    assert tk.grad(f)(f64(3.0)).item() == 18.0
    assert tk.derivative(f)(f64(3.0)).item() == 18.0
    assert tk.grad(tk.grad(f))(f64(3.0)).item() == 6.0
    assert tk.grad(lambda x: tk.stop_gradient(x * x) + x)(f64(3.0)).item() == 1.0
    assert tk.stop_gradient(f64([1.0])).tolist() == [1.0]
    # it stops the derivative of every level below that runs now
    g = tk.grad(lambda x: tk.grad(lambda y: y * y * tk.stop_gradient(x))(x))
    assert g(f64(3.0)).item() == 6.0


@pytest.mark.feature(75)
def test_a_tensor_from_outside_is_a_constant():
    c = f64([2.0, 3.0])
    assert tk.grad(lambda x: (x * c).sum())(f64([1.0, 1.0])).tolist() == [2.0, 3.0]
    assert tk.jvp(lambda x: x * c, (f64([1.0, 1.0]),), (c,))[1].tolist() == [4.0, 9.0]


@pytest.mark.feature(200)
def test_hvp_of_several_arguments():
    f = lambda a, b: (a * a * b).sum()  # noqa: E731
    a, b = f64([1.0, 2.0]), f64([3.0, 4.0])
    got = tk.hvp(f, (a, b), (f64([1.0, 0.0]), f64([0.0, 1.0])))
    assert [g.tolist() for g in got] == [[6.0, 4.0], [2.0, 0.0]]


@pytest.mark.feature(196)
def test_exact_zeros_keep_nan_out():
    """Inactive derivatives are not evaluated: no log of a negative base, no infinite derivative times zero."""
    assert tk.grad(lambda x: x**3.0)(f64(-2.0)).item() == 12.0
    assert tk.derivative(lambda x: x**3.0)(f64(-2.0)).item() == 12.0
    assert tk.jvp(lambda x, y: x * tk.log(y), (f64(2.0), f64(1.0)), (f64(1.0), f64(0.0)))[1].item() == 0.0
    assert tk.grad(lambda x: tk.where(x > 0, tk.log(tk.where(x > 0, x, 1.0)), 0.0))(f64(0.0)).item() == 0.0
    assert tk.grad(lambda x: tk.maximum(x, 0.0) * tk.sqrt(f64(0.0)))(f64(1.0)).item() == 0.0


@pytest.mark.feature(22, 137)
def test_ties_share_the_derivative():
    assert tk.grad(tk.max)(f64([2.0, 5.0, 5.0])).tolist() == [0.0, 0.5, 0.5]
    assert tk.grad(tk.min)(f64([2.0, 2.0, 5.0])).tolist() == [0.5, 0.5, 0.0]
    assert [g.item() for g in tk.grad(tk.maximum, (0, 1))(f64(1.0), f64(1.0))] == [0.5, 0.5]
    assert [g.item() for g in tk.grad(tk.minimum, (0, 1))(f64(1.0), f64(2.0))] == [1.0, 0.0]
    assert tk.grad(tk.relu)(f64(0.0)).item() == 0.0
    assert tk.grad(tk.abs)(f64(0.0)).item() == 1.0
    assert tk.grad(tk.grad(lambda x: tk.abs(x) ** 2))(f64(0.0)).item() == 2.0
    assert tk.jvp(lambda x: x.max(0), (f64([5.0, 5.0]),), (f64([1.0, 3.0]),))[1].item() == 2.0


@pytest.mark.feature(166)
def test_casts_between_floats_are_linear_and_others_stop():
    x = f64([1.5, -2.5])
    assert tk.grad(lambda x: (x.astype("float32") * 3.0).sum())(x).tolist() == [3.0, 3.0]
    assert tk.grad(lambda x: (x.astype("float32") * 3.0).sum())(x).dtype is tk.float64
    assert tk.jvp(lambda x: x.astype("float32"), (x,), (x,))[1].dtype is tk.float32
    assert tk.grad(lambda x: (x.astype("int32") * x).sum())(x).tolist() == [1.0, -2.0]
    assert tk.grad(lambda x: (x.astype("bool").astype("float64") * x).sum())(x).tolist() == [1.0, 1.0]
    assert tk.grad(lambda x: (x * tk.tensor([2, 3])).sum())(x).tolist() == [2.0, 3.0]


@pytest.mark.feature(92)
def test_a_dual_number_by_hand():
    """(3, 1)² = (9, 6), in the representation itself."""
    seen = []

    def f(x):
        y = x * x
        seen.append(y.representation)
        return y

    tk.jvp(f, (f64(3.0),), (f64(1.0),))
    (dual,) = seen
    assert FUSED.value(dual.primal).item() == 9.0
    assert FUSED.value(dual.tangent).item() == 6.0


@pytest.mark.feature(129)
def test_unrequested_derivatives_are_not_computed():
    backend = Counting()
    stack = Fuse(backend)
    a, b = (tk.tensor(np.full((3, 3), v), backend=stack) for v in (2.0, 3.0))

    def products(argnums):
        backend.clear()
        tk.tree.map(array, tk.grad(lambda a, b: tk.tanh(a @ b).sum(), argnums)(a, b))
        return backend.calls["fused_multiply_add"]

    assert products((0, 1)) == 3
    assert products(0) == products(1) == 2


# ---- the checker -------------------------------------------------------------------------------------------


@pytest.mark.feature(79, 199)
def test_check_grads_accepts_correct_derivatives():
    tk.testing.check_grads(
        lambda x, p: tk.tanh(x @ p["w"]) * p["b"],
        (f64([[0.1, 0.5]]), {"w": f64([[1.0], [2.0]]), "b": f64(0.5)}),
        order=3,
    )
    tk.testing.check_grads(lambda x: (x * x, [tk.sin(x)]), (f64([0.3, 1.0]),), modes=("fwd",))
    tk.testing.check_grads(tk.sigmoid, (tk.tensor([0.3, -1.0]),))


def wrong(jvp, vjp):
    """The sine, with these rules."""
    return Op("wrong", 1, lambda x: x, lambda d: d, jvp=(jvp,), vjp=(vjp,), body=lambda x: x.sin())


RIGHT = lambda t, y, x: t * x.cos()  # noqa: E731


@pytest.mark.feature(199)
@pytest.mark.parametrize(
    ("op", "found"),
    [
        (wrong(lambda t, y, x: t * x.cos() * 1.01, RIGHT), "fwd gives"),
        (wrong(RIGHT, lambda t, y, x: t * x.cos() * 0.99), "rev gives"),
        (wrong(RIGHT, lambda t, y, x: None), "rev gives"),
        (wrong(lambda t, y, x: -t * x.cos(), RIGHT), "fwd gives"),
        (wrong(lambda t, y, x: t * tk.stop_gradient(x.cos()), RIGHT), "fwd of "),
        (wrong(RIGHT, lambda t, y, x: t * tk.stop_gradient(x.cos())), "rev of "),
    ],
)
def test_check_grads_finds_wrong_rules(op, found):
    x = f64([0.3, -1.2, 2.0])
    with pytest.raises(AssertionError, match=rf"^check_grads: .*{found}.* finite differences give"):
        tk.testing.check_grads(lambda x: apply(op, (x,)), (x,))
    tk.testing.check_grads(lambda x: apply(wrong(RIGHT, RIGHT), (x,)), (x,), order=3)


@pytest.mark.feature(106, 136)
def test_a_user_op_is_differentiated_like_other_ops():
    """Rules may read size, ndim, shape and dtype of values that the tape did not keep."""
    reads = Op(
        "reads", 1, lambda x: x, lambda d: d,
        jvp=(lambda t, y, x: t * (x.size + x.ndim),),
        vjp=(lambda t, y, x: (t * (x.size + x.ndim)).astype(x.dtype).reshape(x.shape),),
        body=lambda x: x * (x.size + x.ndim),
        samples=((((2,),), ()),),
    )  # fmt: skip
    f = lambda x: apply(reads, (x,))  # noqa: E731
    x = f64([1.0, 2.0, 3.0])
    tk.testing.check_grads(f, (x,), order=3)
    assert reads.tape_needs[(True,)] == (NOTHING, SHAPE_AND_DTYPE)
    for stack in STACKS.values():
        assert tk.grad(lambda x: f(x).sum())(f64([1.0, 2.0], stack)).tolist() == [3.0, 3.0]


@pytest.mark.feature(106)
def test_an_op_with_several_results():
    """Quotient and remainder, with one rule for all tangents and one for all cotangents."""

    def push(tangents, ys, xs, params):
        (a, b), (q, _) = tangents, ys
        zero = xs[0].zeros_like()
        a, b = (zero if t is None else t for t in (a, b))
        return None, a - q * b

    def pull(cotangents, ys, xs, params):
        _, t = cotangents
        if t is None:
            return None, None
        return t, -(ys[0] * t)

    def body(a, b):
        q = (a / b).floor()
        return q, a - q * b

    divmod_op = Op(
        "divmod",
        2,
        lambda a, b: (a, b),
        lambda a, b: (a, b),
        jvp_all=push,
        vjp_all=pull,
        body=body,
        results=2,
    )

    def f(a, b):
        q, r = apply(divmod_op, (a, b))
        return q, r * r

    a, b = f64([7.5, -3.0]), f64([2.0, 2.5])
    tk.testing.check_grads(lambda a, b: f(a, b)[1], (a, b), order=2)
    for stack in STACKS.values():
        q, r = f(f64([7.5, -3.0], stack), f64([2.0, 2.5], stack))
        assert (q.tolist(), r.tolist()) == ([3.0, -2.0], [2.25, 4.0])
    assert tk.grad(lambda a: f(a, b)[0].sum())(a).tolist() == [0.0, 0.0]
    # the gradients of r² by a and by b: 2r and -2rq
    got = tk.grad(lambda a, b: f(a, b)[1].sum(), (0, 1))(a, b)
    assert [g.tolist() for g in got] == [[3.0, 4.0], [-9.0, 8.0]]


def test_rules_of_an_op_with_several_results_apply_to_the_first_result():
    def body(a):
        whole = a.floor()
        return a - whole, whole

    parts = Op("parts", 1, lambda a: (a, a), lambda a: (a, a), jvp=(lambda t, *_: t,), body=body, results=2)
    a, t = f64([7.5, -3.25]), f64([1.0, 2.0])
    assert [x.tolist() for x in tk.jvp(lambda a: apply(parts, (a,)), (a,), (t,))[1]] == [
        [1.0, 2.0],
        [0.0, 0.0],
    ]


# ---- against closed forms ----------------------------------------------------------------------------------

SMALL = st.floats(-2.0, 2.0, allow_subnormal=False)


@pytest.mark.feature(66, 83)
@given(st.lists(SMALL, min_size=1, max_size=4), st.lists(SMALL, min_size=4, max_size=4))
def test_both_modes_give_the_derivative_of_a_polynomial(xs, coefficients):
    def f(x):
        y = x * 0.0
        for c in coefficients:
            y = y * x + c
        return y

    x = np.array(xs)
    expected = np.polyval(np.polyder(np.array(coefficients)), x)
    close(tk.derivative(f)(f64(xs)), expected, 1e-10)
    close(tk.elementwise_grad(f)(f64(xs)), expected, 1e-10)
    close(
        tk.derivative(tk.elementwise_grad(f))(f64(xs)),
        np.polyval(np.polyder(np.array(coefficients), 2), x),
        1e-10,
    )


@pytest.mark.feature(132, 133, 134)
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 2)),
        ((2, 3), (3, 4)),
        ((5, 2, 3), (3, 4)),
        ((2, 3), (5, 3, 4)),
        ((5, 2, 3), (5, 3, 4)),
        ((5, 1, 2, 3), (6, 3, 4)),
        ((5, 2, 3), (3,)),
        ((3,), (5, 3, 4)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 3)),
        ((1, 1), (1, 1)),
    ],
)
def test_matmul_of_every_rank_and_its_cotangents(left, right):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(left), rng.standard_normal(right)
    expected = a @ b
    u = rng.standard_normal(expected.shape)
    y, pull_back = tk.vjp(tk.matmul, f64(a), f64(b))
    close(y, expected)
    for got, x, place in zip(pull_back(f64(u)), (a, b), (0, 1), strict=True):
        assert got.shape == x.shape
        for index in np.ndindex(x.shape):
            unit = np.zeros_like(x)
            unit[index] = 1.0
            pushed = unit @ b if place == 0 else a @ unit
            assert array(got)[index] == pytest.approx((u * pushed).sum(), rel=1e-11, abs=1e-12)
