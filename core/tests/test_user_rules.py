"""custom_jvp, custom_vjp, checkpoint, linearize: right in every mode and order, under vmap, and cheap."""

from __future__ import annotations

import functools
import gc
import itertools
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import FUSED, STACKS, array, f64, peak_of
from tensorken_core.errors import (
    ArgumentError,
    DTypeError,
    EscapedTensorError,
    GradientError,
    ShapeError,
    StructureError,
)
from tensorken_core.tensor.tensor import Tensor
from tensorken_core.transforms.linearize import Linearize
from tensorken_reference.backend import Reference

pytestmark = pytest.mark.usefixtures("on_numpy")
RNG = np.random.default_rng(0)
W, X = RNG.normal(size=(3, 3)), RNG.normal(size=(5, 3))


def plain(w, x):
    return tk.tanh(x @ w) * x


def by_jvp():
    f = tk.custom_jvp(lambda w, x: plain(w, x))
    f.defjvp(lambda primals, tangents: tk.jvp(plain, primals, tangents))
    return f


def by_jvps():
    f = tk.custom_jvp(lambda w, x: plain(w, x))
    f.defjvps(
        lambda t, y, w, x: tk.jvp(lambda w: plain(w, x), (w,), (t,))[1],
        lambda t, y, w, x: tk.jvp(lambda x: plain(w, x), (x,), (t,))[1],
    )
    return f


def by_vjp():
    f = tk.custom_vjp(lambda w, x: plain(w, x))
    f.defvjp(
        lambda w, x: (plain(w, x), (w * 1.0, {"x": x, "count": 3, "y": tk.tanh(x @ w)})),
        lambda kept, t: (
            kept[1]["x"].mT @ (t * kept[1]["x"] * (1.0 - kept[1]["y"] ** 2)),
            (t * kept[1]["x"] * (1.0 - kept[1]["y"] ** 2)) @ kept[0].mT + t * kept[1]["y"],
        ),
    )
    return f


RULES = {
    "custom_jvp": by_jvp,
    "defjvps": by_jvps,
    "custom_vjp": by_vjp,
    "checkpoint": lambda: tk.checkpoint(plain),
}


def same(result, expected, rtol=1e-11):
    results, wanted = tk.tree.leaves(result), tk.tree.leaves(expected)
    assert len(results) == len(wanted)
    for a, b in zip(results, wanted, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(array(a), array(b), rtol=rtol, atol=rtol)


def total(f, w, x):
    return (f(w, x) ** 2).sum()


TRANSFORMS = {
    "value": lambda f: f,
    "grad": lambda f: tk.grad(f, (0, 1)),
    "jvp": lambda f: lambda w, x: tk.jvp(f, (w, x), (tk.sin(w), tk.cos(x))),
    "vjp": lambda f: lambda w, x: tk.vjp(f, w, x)[1](2.0),
    "linearize": lambda f: lambda w, x: tk.linearize(f, w, x)[1](tk.sin(w), tk.cos(x)),
    "fwd-over-fwd": lambda f: tk.jacfwd(tk.jacfwd(f)),
    "fwd-over-rev": lambda f: tk.jacfwd(tk.jacrev(f)),
    "rev-over-fwd": lambda f: tk.jacrev(tk.jacfwd(f)),
    "rev-over-rev": lambda f: tk.jacrev(tk.jacrev(f)),
    "third": lambda f: lambda w, x: tk.grad(lambda w: tk.hvp(lambda w: f(w, x), (w,), (w,)).sum())(w),
    "hessian of both": lambda f: tk.hessian(f, (0, 1)),
    "grad of linearize": lambda f: tk.grad(lambda w, x: tk.linearize(f, w, x)[1](w, x)),
}


@pytest.mark.feature(81, 108, 185)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("rule", RULES)
def test_a_correct_rule_equals_the_derivative_of_the_function(rule, transform):
    f, w, x = RULES[rule](), f64(W), f64(X)
    transformed = TRANSFORMS[transform]
    expected = transformed(functools.partial(total, plain))(w, x)
    same(transformed(functools.partial(total, f))(w, x), expected)


@pytest.mark.feature(108, 197)
@pytest.mark.parametrize("transform", ["value", "grad", "jvp", "linearize", "fwd-over-rev", "rev-over-fwd"])
@pytest.mark.parametrize("rule", RULES)
def test_rules_under_vmap_and_vmap_under_rules(rule, transform):
    f, w, x = RULES[rule](), f64(W), f64(np.stack([X, X * 2.0]))
    own, expected = (functools.partial(total, g) for g in (f, plain))
    transformed = TRANSFORMS[transform]
    for in_axes, args in (
        ((None, 0), (w, x)),
        ((0, None), (tk.stack([w, w * 0.5]), x[0])),
        ((0, 0), (tk.stack([w, -w]), x)),
    ):
        same(tk.vmap(transformed(own), in_axes)(*args), tk.vmap(transformed(expected), in_axes)(*args))
        batched = lambda g, in_axes=in_axes: lambda w, x: tk.vmap(g, in_axes)(w, x).sum()  # noqa: E731
        same(transformed(batched(own))(*args), transformed(batched(expected))(*args))


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("rule", RULES)
def test_rules_on_every_stack_of_interpreters(rule, stack):
    w, x = f64(W, STACKS[stack]), f64(X, STACKS[stack])
    same(
        tk.hessian(functools.partial(total, RULES[rule]()))(w, x),
        tk.hessian(functools.partial(total, plain))(w, x),
    )


# ---- the rule is what counts -------------------------------------------------------------------------------


@pytest.mark.feature(81)
def test_the_rule_is_used_and_not_the_derivative():
    @tk.custom_jvp
    def stepped(x):
        return tk.round(x)

    stepped.defjvp(lambda primals, tangents: (stepped(*primals), tangents[0] * 3.0))
    x = f64([0.2, 1.7])
    assert tk.grad(lambda x: stepped(x).sum())(x).tolist() == [3.0, 3.0]
    assert tk.jvp(stepped, (x,), (x,))[1].tolist() == pytest.approx([0.6, 5.1])
    assert tk.grad(tk.grad(lambda x: stepped(x * x).sum()))(f64(2.0)).item() == 6.0
    assert stepped.__name__ == "stepped"


def test_forward_and_backward_run_once_and_the_function_only_without_derivatives():
    calls = []
    f = tk.custom_vjp(lambda x: calls.append("f") or tk.sin(x))
    f.defvjp(
        lambda x: calls.append("forward") or (tk.sin(x), x),
        lambda x, t: (calls.append("backward") or t * tk.cos(x),),
    )
    f(f64(0.5))
    assert calls == ["f"]
    calls.clear()
    tk.grad(f)(f64(0.5))
    assert calls == [
        "f",
        "forward",
        "backward",
        "forward",
        "backward",
    ]  # traced to find captured tensors, and run
    calls.clear()
    assert tk.grad(f)(f64(0.5)).item() == np.cos(0.5)
    assert calls == ["forward", "backward"]
    calls.clear()
    tk.grad(lambda x: tk.vmap(f)(x).sum())(f64([0.5, 1.0]))
    assert calls == ["forward", "backward"]
    calls.clear()
    tk.jvp(tk.vmap(f), (f64([0.5, 1.0]),), (f64([0.5, 1.0]),))
    assert calls == ["forward", "backward"]


def test_arguments_are_pytrees_with_statics_defaults_and_integers():
    @tk.custom_vjp
    def scaled(params, index, mode="twice", *rest):
        assert mode == "twice"
        return {"y": params["a"].gather(index, 0) * 2.0, "name": "kept", "more": (params["b"][0],)}

    def forward(params, index, mode="twice", *rest):
        return scaled(params, index, mode), (params["a"].shape[0], index)

    def backward(kept, t):
        size, index = kept
        return {"a": t["y"].scatter_add(index, 0, size) * 2.0, "b": None}, None, None

    scaled.defvjp(forward, backward)
    params, index = {"a": f64([1.0, 2.0, 3.0]), "b": [f64(5.0)]}, tk.tensor([2, 2, 0])
    result = scaled(params, index=index)
    assert result["y"].tolist() == [6.0, 6.0, 2.0] and result["name"] == "kept"
    gradient = tk.grad(lambda params: scaled(params, index)["y"].sum())(params)
    assert gradient["a"].tolist() == [2.0, 0.0, 4.0]
    assert gradient["b"][0].item() == 0.0


def test_a_cotangent_of_none_is_zero_and_one_of_an_integer_is_ignored():
    f = tk.custom_vjp(lambda pair, k, x: pair["a"] * pair["b"] * x * k)
    f.defvjp(
        lambda pair, k, x: (pair["a"] * pair["b"] * x * k, k),
        lambda k, t: (None, tk.zeros((2,)), t * k),  # a float in place of an integer
    )
    pair, k, x = {"a": f64([1.0, 2.0]), "b": f64([3.0, 4.0])}, tk.tensor([5, 6]), f64([7.0, 8.0])
    pulled = tk.grad(lambda pair, x: f(pair, k, x).sum(), (0, 1))(pair, x)
    assert pulled[0]["a"].tolist() == pulled[0]["b"].tolist() == [0.0, 0.0]
    assert pulled[1].tolist() == [5.0, 6.0]
    assert tk.jvp(lambda pair, x: f(pair, k, x), (pair, x), (pair, x))[1].tolist() == [35.0, 48.0]


def test_none_from_a_rule_is_an_exact_zero():
    """So an infinite factor makes no NaN, and derivatives around the rule are kept."""
    f = tk.custom_vjp(lambda x: x * 2.0)
    f.defvjp(lambda x: (x * 2.0, None), lambda kept, t: (None,))
    infinite = f64(np.inf)
    g = lambda x: f(x) * infinite + x  # noqa: E731
    for pushed in (tk.jvp(g, (f64(1.0),), (f64(1.0),))[1], tk.linearize(g, f64(1.0))[1](1.0)):
        assert pushed.item() == 1.0
    assert tk.linearize(lambda x: f(x) + x * x, f64(1.0))[1](1.0).item() == 2.0

    rootless = tk.custom_vjp(lambda x: x * x)
    rootless.defvjp(lambda x: (x * x, (x, tk.sqrt(x))), lambda kept, t: (t * 2.0 * kept[0],))
    # the infinite derivative of a residual without a cotangent is not computed
    assert tk.grad(lambda x: tk.jvp(rootless, (x,), (f64(1.0),))[1])(f64(0.0)).item() == 2.0


def test_a_checkpoint_adds_no_nan():
    """Operands that a result does not depend on get an exact zero, so an earlier 1/0 makes no NaN."""
    zero, one = f64(0.0), f64(1.0)
    first = tk.checkpoint(lambda a, b: a * 2.0)
    assert tk.grad(lambda x: first(x, tk.sqrt(x)))(zero).item() == 2.0
    assert (
        tk.jvp(lambda x: tk.checkpoint(lambda a, b: a * tk.sqrt(b))(x, zero), (one,), (one,))[1].item() == 0.0
    )
    both = tk.checkpoint(lambda a, b: {"a": a * 2.0, "b": tk.sqrt(b)})
    assert tk.grad(lambda x: both(x, x)["a"])(zero).item() == 2.0
    assert tk.jvp(lambda x: both(x, one)["b"] * f64(np.inf) + x, (zero,), (one,))[1].item() == 1.0


@pytest.mark.parametrize("rule", RULES)
def test_after_a_rule_the_levels_are_as_before(rule):
    f, c = RULES[rule](), f64(W)

    def g(x):
        y = f(c, x)
        return tk.grad(lambda c: (y @ c).sum())(c).sum()  # runs at the level of y

    expected = lambda x: 3.0 * plain(c, x).sum()  # noqa: E731
    same(tk.grad(g)(f64(X)), tk.grad(expected)(f64(X)))
    several = f64(np.stack([X, X * 2.0]))
    same(tk.vmap(tk.grad(g))(several), tk.vmap(tk.grad(expected))(several))


def test_no_rules_give_zeros():
    f = tk.custom_jvp(lambda x, y: {"a": x * y, "b": tk.cos(x)})
    f.defjvps(None, None)
    x = f64([1.0, 2.0])
    assert tk.tree.map(lambda t: t.tolist(), tk.jvp(f, (x, x), (x, x))[1]) == {"a": [0.0] * 2, "b": [0.0] * 2}
    assert tk.grad(lambda x: f(x, x)["a"].sum())(x).tolist() == [0.0, 0.0]
    # zeros are constants, lifted to the level of the other operand
    twice = tk.jacfwd(tk.jacfwd(lambda x: f(x, x)["a"] + x**3))(x)
    assert twice[0, 0].tolist() == [6.0, 0.0]
    step = tk.custom_jvp(lambda x: x * 1.0)
    step.defjvp(lambda primals, tangents: (step(*primals), f64([0.0, 0.0])))
    assert tk.jacfwd(tk.jacfwd(lambda x: step(x) + x**3))(x)[0, 0].tolist() == [6.0, 0.0]


@pytest.mark.parametrize("stack", [FUSED, Reference()], ids=str)
def test_integers_that_a_function_returns_have_no_derivatives(stack):
    """... on whichever backend, also where they are all that another function takes."""
    first = tk.checkpoint(lambda x, k: (x * 2.0, k + 1))
    second = tk.checkpoint(lambda k: k.astype("float64") * 3.0)
    ruled = tk.custom_jvp(lambda k: k.astype("float64") * 3.0)
    ruled.defjvps(lambda t, y, k: 1 / 0)
    x, k = f64([0.5, 1.0, 2.0], stack), tk.tensor([1, 2, 3], backend=stack)

    def f(x):
        y, n = first(x, k)
        return y * n + second(n) + ruled(n)

    assert tk.grad(lambda x: f(x).sum())(x).tolist() == [4.0, 6.0, 8.0]
    assert tk.jvp(f, (x,), (x,))[1].tolist() == [2.0, 6.0, 16.0]
    assert tk.linearize(f, x)[1](x).tolist() == [2.0, 6.0, 16.0]

    counted = tk.custom_vjp(lambda x: x.astype("int32"))
    counted.defvjp(lambda x: (x.astype("int32"), x), lambda kept, t: (kept * 0.0,))
    pushed = lambda x: tk.jvp(lambda x: counted(x) * x, (x,), (x,))[1].sum()  # noqa: E731
    assert tk.grad(pushed)(x).tolist() == [0.0, 1.0, 2.0]


def test_rules_of_integer_arguments_are_not_called_and_their_cotangents_are_ignored():
    f = tk.custom_jvp(lambda x: x.astype("int32"))
    f.defjvp(lambda primals, tangents: 1 / 0)
    x = f64([1.0, 2.0])
    assert tk.jvp(f, (x,), (x,))[1].tolist() == [0, 0]
    both = tk.custom_jvp(lambda x: (x * 2.0, x.astype("int32")))
    both.defjvp(lambda primals, tangents: (both(*primals), (tangents[0] * 2.0, tk.tensor([5, 5]))))
    assert [t.tolist() for t in tk.jvp(both, (x,), (x,))[1]] == [[2.0, 4.0], [0, 0]]


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("stack", [FUSED, Reference()], ids=str)
def test_numbers_and_arrays_take_the_backend_and_dtype_of_the_tensor_arguments(dtype, stack):
    """A float32 of 0.1 would be another number, and would widen a float16."""
    x, factors = tk.tensor([0.5, 1.0], dtype, backend=stack), np.array([2.0, 3.0], dtype)
    plain = lambda x, a, s: x * a * s  # noqa: E731
    ruled = tk.custom_vjp(plain)
    ruled.defvjp(
        lambda x, a, s: (x * a * s, (a, s, 0.1)), lambda kept, t: (t * kept[0] * kept[2], None, None)
    )
    for f in (tk.checkpoint(plain), tk.custom_jvp(plain), ruled):
        same(f(x, factors, 0.1), plain(x, factors, 0.1), 0.0)
    for f in (tk.checkpoint(plain), ruled):
        derivative = lambda f: tk.grad(lambda x: f(x, factors, 0.1).sum())(x)  # noqa: E731
        same(derivative(f), derivative(plain), 1e-3 if dtype == "float16" else 1e-15)


def test_a_number_takes_the_widest_floating_dtype_of_the_arguments():
    half, double, long = tk.tensor([1.0], "float16"), f64([3.0]), tk.tensor([2], "int64")
    product = tk.checkpoint(lambda x, y, s: y * s)
    assert product(half, double, 0.1).tolist() == [3.0 * 0.1]
    assert product(long, half, 0.1).dtype is tk.float16


def test_the_pullback_of_a_vjp_is_transposed_at_zero():
    f = tk.custom_vjp(lambda x, limit: x)
    f.defvjp(lambda x, limit: (x, limit), lambda limit, t: (tk.clip(t, -limit, limit), None))
    assert tk.jvp(lambda x: f(x, 0.5), (f64(3.0),), (f64(7.0),))[1].item() == 7.0


def test_nondiff_argnums_are_passed_first():
    @functools.partial(tk.custom_jvp, nondiff_argnums=(1,))
    def applied(x, f):
        return f(x)

    applied.defjvp(lambda f, primals, tangents: (applied(primals[0], f), tangents[0] * 10.0))
    assert tk.grad(lambda x: applied(x, tk.sin))(f64(1.0)).item() == 10.0

    @functools.partial(tk.custom_vjp, nondiff_argnums=(0, 2))
    def powered(n, x, label):
        return x**n

    powered.defvjp(lambda n, x, label: (x**n, x), lambda n, label, x, t: (t * n * 100.0,))
    assert tk.grad(lambda x: powered(3.0, x, object))(f64(2.0)).item() == 300.0

    ordered = tk.custom_vjp(lambda n, m, x: x * n + m, nondiff_argnums=(1, 0))
    ordered.defvjp(lambda n, m, x: (x * n + m, x), lambda m, n, x, t: (t * (100 * n + m),))
    assert tk.grad(lambda x: ordered(3, 2, x))(f64(5.0)).item() == 302.0
    assert ordered(3, 2, f64(5.0)).item() == 17.0

    @functools.partial(tk.custom_jvp, nondiff_argnums=(-1, 0))
    def between(first, x, y, last):
        assert (first, last) == ("first", "last")
        return x - y

    between.defjvp(
        lambda last, first, primals, tangents: (
            between(first, *primals, last),
            tangents[0] * 10.0 - tangents[1],
        )
    )
    assert tk.grad(lambda x: between("first", x, 2.0 * x, "last"))(f64(1.0)).item() == 8.0
    assert between("first", f64(5.0), f64(3.0), "last").item() == 2.0


def test_defjvps_with_none_for_some_arguments():
    @functools.partial(tk.custom_jvp, nondiff_argnums=1)
    def scaled(x, label, y):
        return {"z": x * y, "label": label}

    scaled.defjvps(lambda label, t, y, *xs: {"z": t * 10.0, "label": label}, None)
    assert tk.grad(lambda x: scaled(x, "a", x)["z"])(f64(2.0)).item() == 10.0
    scaled.defjvps(None, None)
    assert tk.grad(lambda x: scaled(x, "a", x)["z"])(f64(2.0)).item() == 0.0


def test_the_outer_of_two_nested_rules_is_used():
    inner = tk.custom_jvp(tk.sin)
    inner.defjvps(lambda t, y, x: t * 3.0)
    outer = tk.custom_jvp(inner)
    with pytest.raises(GradientError, match="has no rule"):
        tk.grad(outer)(f64(1.0))
    outer.defjvp(lambda primals, tangents: (outer(*primals), tangents[0] * 5.0))
    assert tk.grad(outer)(f64(1.0)).item() == 5.0
    assert tk.grad(inner)(f64(1.0)).item() == 3.0


def test_a_function_without_tensor_arguments_is_called_directly():
    assert tk.custom_vjp(lambda n: n + 1)(2) == 3
    assert tk.custom_jvp(lambda n: n + 1)(2) == 3
    assert tk.checkpoint(lambda n: n + 1)(2) == 3


def test_the_string_backend_shows_the_expression_of_a_rule():
    from tensorken_string.backend import String

    with tk.use_backend(String()):
        assert str(by_vjp()(tk.symbol("w", (3, 3)), tk.symbol("x", (3,)))) == str(
            plain(tk.symbol("w", (3, 3)), tk.symbol("x", (3,)))
        )


# ---- the result that a rule gives --------------------------------------------------------------------------


def another_result_by_jvp():
    f = tk.custom_jvp(lambda x: x * x)
    f.defjvp(lambda p, t: (tk.sin(p[0]), t[0] * tk.cos(p[0]) * 3.0))
    return f


def another_result_by_vjp():
    f = tk.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (tk.sin(x), x), lambda x, t: (t * tk.cos(x) * 3.0,))
    return f


# JAX's results for the square of f at 0.5: f is x squared, its rule returns sine and three times its derivative.
OF_ANOTHER_RESULT = {
    "value": (lambda f: f(f64(0.5)), 0.0625),
    "value beside the gradient": (lambda f: tk.value_and_grad(f)(f64(0.5))[0], 0.22984884706593015),
    "value of jvp": (lambda f: tk.jvp(f, (f64(0.5),), (f64(1.0),))[0], 0.22984884706593015),
    "value of linearize": (lambda f: tk.linearize(f, f64(0.5))[0], 0.22984884706593015),
    "gradient": (lambda f: tk.grad(f)(f64(0.5)), 2.5244129544236893),
    "tangent": (lambda f: tk.jvp(f, (f64(0.5),), (f64(1.0),))[1], 2.5244129544236893),
    "second": (lambda f: tk.grad(tk.grad(f))(f64(0.5)), 3.2418138352088386),
    "third": (lambda f: tk.grad(tk.grad(tk.grad(f)))(f64(0.5)), -10.097651817694759),
    "jit": (lambda f: tk.jit(tk.grad(tk.grad(f)))(f64(0.5)), 3.2418138352088386),
    "of jit": (lambda f: tk.grad(tk.grad(tk.jit(f)))(f64(0.5)), 3.2418138352088386),
    "value beside the gradient of jit": (
        lambda f: tk.value_and_grad(tk.jit(f))(f64(0.5))[0],
        0.22984884706593015,
    ),
    "value beside the gradient of a checkpoint": (
        lambda f: tk.value_and_grad(tk.checkpoint(f))(f64(0.5))[0],
        0.22984884706593015,
    ),
    "value of jvp of a checkpoint": (
        lambda f: tk.jvp(tk.checkpoint(f), (f64(0.5),), (f64(1.0),))[0],
        0.22984884706593015,
    ),
    "second of a checkpoint": (lambda f: tk.grad(tk.grad(tk.checkpoint(f)))(f64(0.5)), 3.2418138352088386),
    "value beside the gradient of a scan": (
        lambda f: tk.value_and_grad(lambda x: tk.scan(lambda h, _: (f(h), None), x, None, length=1)[0])(
            f64(0.5)
        )[0],
        0.22984884706593015,
    ),
    "value beside the gradient of vmap": (
        lambda f: tk.value_and_grad(lambda x: tk.vmap(f)(x).sum())(f64([0.5, 0.5]))[0],
        0.4596976941318603,
    ),
}


@each_of(
    ("rule", "case"),
    [(rule, case) for rule in (another_result_by_jvp, another_result_by_vjp) for case in OF_ANOTHER_RESULT],
)
def test_the_result_of_the_rule_is_the_result_where_it_is_differentiated(rule, case):
    function, expected = OF_ANOTHER_RESULT[case]
    f = rule()
    assert function(lambda x: f(x) ** 2).item() == pytest.approx(expected, rel=1e-13)


def test_a_straight_through_estimator_in_the_idiom_of_jax():
    """The rule differentiates x + stop_gradient(round(x) - x)."""
    rounded = tk.custom_jvp(lambda x: tk.round(x))

    @rounded.defjvp
    def rule(primals, tangents):
        through = lambda x: x + tk.stop_gradient(tk.round(x) - x)  # noqa: E731
        return tk.jvp(through, primals, tangents)

    f = lambda x: rounded(x) ** 3  # noqa: E731
    assert [tk.grad(f)(f64(1.7)).item(), tk.grad(tk.grad(f))(f64(1.7)).item()] == [12.0, 12.0]
    assert tk.grad(tk.grad(tk.grad(f)))(f64(1.7)).item() == 6.0


def unlike(of):
    """Rules whose result differs in structure, shape or dtype from that of the function, which is 2 x."""
    by_jvp, by_vjp = tk.custom_jvp(lambda x: x * 2.0), tk.custom_vjp(lambda x: x * 2.0)
    by_jvp.defjvp(lambda p, t: (of(p[0]), tk.tree.map(lambda y: y, of(t[0]))))
    by_vjp.defvjp(lambda x: (of(x), None), lambda _, t: (t,))
    return by_jvp, by_vjp


UNLIKE = {
    "structure": (lambda x: (x, x), StructureError, "the result of the (rule|forward half): at the top"),
    "shape": (
        lambda x: x[None],
        ShapeError,
        r"is float64 \(1,\), but the function.s is float64 \(\); make",
    ),
    "dtype": (
        lambda x: x.astype("float32"),
        DTypeError,
        r"is float32 \(\), but the function.s is float64",
    ),
}


@each_of("case", UNLIKE)
def test_a_result_of_another_structure_shape_or_dtype_is_refused(case):
    of, error, match = UNLIKE[case]
    for f in unlike(of):
        g = lambda x, f=f: tk.tree.leaves(f(x))[0].sum()  # noqa: E731
        for derivative in (
            lambda g=g: tk.grad(g)(f64(0.5)),
            lambda g=g: tk.jvp(g, (f64(0.5),), (f64(1.0),)),
            lambda g=g: tk.grad(tk.jit(g))(f64(0.5)),
            lambda g=g: tk.grad(lambda x: tk.vmap(g)(x).sum())(f64([0.5])),
            lambda g=g: tk.linearize(g, f64(0.5)),
        ):
            with pytest.raises(error, match=match) as caught:
                derivative()
            assert "\n" not in str(caught.value)


def test_numbers_in_the_result_of_a_rule_take_its_dtype():
    f = tk.custom_jvp(lambda x: x * 0.0 + 2.0)
    f.defjvp(lambda p, t: (2.0, t[0]))
    assert tk.jvp(f, (f64(0.5),), (f64(3.0),))[0].dtype is tk.float64
    assert tk.grad(f)(f64(0.5)).item() == 1.0


# ---- a rule that applies its function to its tangent ----------------------------------------------------------


def negated():
    f = tk.custom_jvp(lambda x: -x)
    f.defjvp(lambda p, t: (f(*p), f(t[0])))
    return f


def cubed():
    f = tk.custom_jvp(lambda x: x * 3.0)
    f.defjvp(lambda p, t: (f(*p) + p[0] ** 3, f(t[0]) * p[0] ** 2))
    return f


def through(apply):
    """... which it does inside something else."""

    def make():
        f = tk.custom_jvp(lambda x: x * 3.0)
        f.defjvp(lambda p, t: (f(*p), apply(f, t[0])))
        return f

    return make


# JAX's results at 0.5; None where JAX's scan disagrees with its own unrolled loop, with which we agree.
OF_ITS_TANGENT = {
    "grad": (lambda f: tk.grad(f), (-1.0, 0.75, 18.0, 3.0, 6.0)),
    "jvp": (lambda f: lambda x: tk.jvp(f, (x,), (f64(1.0),))[1], (-1.0, 0.75, 18.0, 3.0, 6.0)),
    "second": (lambda f: tk.grad(tk.grad(lambda x: f(x) ** 2)), (2.0, 12.75, 324.0 * 2, 18.0, 72.0)),
    "third": (lambda f: tk.grad(tk.grad(tk.grad(lambda x: f(x) ** 2))), (0.0, 54.0, 0.0, 0.0, 0.0)),
    "jit of grad": (lambda f: tk.jit(tk.grad(f)), (-1.0, 0.75, 18.0, 3.0, 6.0)),
    "grad of jit": (lambda f: tk.grad(tk.jit(f)), (-1.0, 0.75, 18.0, 3.0, 6.0)),
    "vmap": (
        lambda f: lambda x: tk.grad(lambda x: tk.vmap(f)(x * tk.ones(2, "float64")).sum())(x),
        (-2.0, 1.5, 36.0, 6.0, 12.0),
    ),
    "scan": (
        lambda f: tk.grad(lambda x: tk.scan(lambda h, u: (f(h) * u, None), x, f64([1.0, 2.0]))[0]),
        (2.0, 11.8828125, 648.0, 18.0, 72.0),
    ),
}
OF_THEMSELVES = (
    negated,
    cubed,
    through(lambda f, t: tk.scan(lambda h, u: (f(h) * u, None), t, f64([1.0, 2.0]))[0]),
    through(lambda f, t: tk.jit(f)(t)),
    through(lambda f, t: tk.vmap(f)(t * tk.ones(2, "float64")).sum()),
)


@each_of("case", OF_ITS_TANGENT)
def test_a_rule_that_applies_its_function_to_its_tangent(case):
    derivative, expected = OF_ITS_TANGENT[case]
    found = [derivative(make())(f64(0.5)).item() for make in OF_THEMSELVES]
    assert found == pytest.approx(expected, rel=1e-12)


# ---- symbolic zeros --------------------------------------------------------------------------------------------


def test_symbolic_zeros_are_none_in_each_mode():
    seen = []
    f = tk.custom_jvp(lambda p, n, k: {"y": p["a"] * p["b"] * n, "k": k})

    def rule(primals, tangents):
        (p, n, k), (dp, dn, dk) = primals, tangents
        assert dk is None
        seen.append((dp["a"] is not None, dp["b"] is not None, dn is not None))
        parts = [
            None if dp["a"] is None else dp["a"] * p["b"] * n,
            None if dp["b"] is None else dp["b"] * p["a"] * n,
            None if dn is None else dn * p["a"] * p["b"],
        ]
        return f(p, n, k), {"y": sum([t for t in parts if t is not None], start=0.0), "k": None}

    f.defjvp(rule, symbolic_zeros=True)
    a, b, n, k = f64(2.0), f64(3.0), f64(5.0), tk.tensor(7)
    run = lambda a, n: f({"a": a, "b": b}, n, k)["y"]  # noqa: E731
    assert tk.grad(run)(a, n).item() == 15.0
    assert tk.jvp(lambda n: run(a, n), (n,), (n,))[1].item() == 30.0
    assert tk.linearize(run, a, n)[1](a, n).item() == 60.0
    assert tk.grad(tk.jit(run))(a, n).item() == 15.0
    assert tk.jit(tk.grad(run, 1))(a, n).item() == 6.0
    assert tk.vmap(tk.grad(run), (0, None))(f64([2.0, 4.0]), n).tolist() == [15.0, 15.0]
    assert tk.grad(lambda n: tk.vmap(run, (0, None))(f64([2.0, 4.0]), n).sum())(n).item() == 18.0
    assert tk.grad(tk.grad(run), 1)(a, n).item() == 3.0
    patterns = set(seen)
    assert {(True, False, False), (False, False, True), (True, False, True)} <= patterns
    assert (False, False, False) not in patterns
    f.defjvp(rule)  # without the option the rule gets tensors of zeros for floats
    seen.clear()
    assert tk.grad(run)(a, n).item() == 15.0
    assert set(seen) == {(True, True, True)}


def test_a_rule_pushes_its_own_arguments_forward():
    """The tangents of integers and bools are None, as `tk.jvp` takes them, also in programs and batches."""
    f = tk.custom_jvp(lambda x, i, more: (x[i] * 2.0, i + 1, more))
    f.defjvp(
        lambda primals, tangents: tk.jvp(lambda x, i, more: (x[i] * 2.0, i + 1, more), primals, tangents)
    )
    x, i, more = f64([1.0, 2.0, 3.0]), tk.tensor(1), tk.tensor(True)
    y, t = tk.jvp(f, (x, i, more), (x, None, None))
    assert [v.item() for v in (*y, *t)] == [4.0, 2, True, 4.0, 0, False]
    expected = [0.0, 2.0, 0.0]
    for g in (tk.grad(lambda x: f(x, i, more)[0]), tk.jit(tk.grad(lambda x: f(x, i, more)[0]))):
        assert g(x).tolist() == expected
    of_each = tk.vmap(lambda i: tk.grad(lambda x: f(x, i, more)[0])(x))
    assert of_each(tk.tensor([0, 2])).tolist() == [[2.0, 0.0, 0.0], [0.0, 0.0, 2.0]]
    f.defjvp(lambda primals, tangents: (f(*primals), (tangents[0].sum(), None, None)))
    assert tk.jvp(f, (x, i, more), (x, None, None))[1][0].item() == 6.0
    f.defjvp(lambda primals, tangents: (f(*primals), (tangents[0], None, None)))
    with pytest.raises(ShapeError, match=r": the tangent of the result has shape"):
        tk.jvp(f, (x, i, more), (x, None, None))


def test_a_tangent_that_is_none_is_zero_at_any_depth():
    f = tk.custom_jvp(lambda x: {"a": (x, x * 2.0), "b": x * 3.0})
    f.defjvp(lambda p, t: (f(*p), {"a": None, "b": t[0] * 3.0}), symbolic_zeros=True)
    pushed = tk.jvp(f, (f64(2.0),), (f64(1.0),))[1]
    assert [t.item() for t in tk.tree.leaves(pushed)] == [0.0, 0.0, 3.0]
    assert tk.grad(lambda x: f(x)["a"][0] + f(x)["b"])(f64(2.0)).item() == 3.0
    f.defjvp(lambda p, t: (f(*p), None), symbolic_zeros=True)
    assert tk.grad(lambda x: f(x)["b"] + x)(f64(2.0)).item() == 1.0


# ---- checkpoint --------------------------------------------------------------------------------------------


def test_checkpoint_runs_again_and_keeps_only_the_arguments():
    calls = []

    def block(x):
        calls.append(1)
        for _ in range(30):
            x = tk.sin(x)
        return x

    def chain(f):
        def run(x):
            for _ in range(4):
                x = f(x)
            return x.sum()

        return run

    x = f64(RNG.normal(size=20_000))
    same(tk.grad(chain(tk.checkpoint(block)))(x), tk.grad(chain(block))(x))
    calls.clear()
    tk.grad(chain(tk.checkpoint(block)))(x)
    assert len(calls) == 8  # once forward, once for the derivative
    whole = peak_of(lambda: tk.grad(chain(block))(x))
    thrifty = peak_of(lambda: tk.grad(chain(tk.checkpoint(block)))(x))
    assert thrifty < whole / 2.5


def test_checkpoint_takes_statics_and_integers_and_keywords():
    @tk.checkpoint
    def f(x, index, n, *, scale):
        return {"y": tk.sin(x.gather(index, 0)) ** n * scale, "index": index + 1}

    x, index = f64([0.1, 0.2, 0.3]), tk.tensor([0, 0, 2])
    assert f(x, index, 2, scale=3.0)["index"].tolist() == [1, 1, 3]
    gradient = tk.grad(lambda x: f(x, index, 2, scale=3.0)["y"].sum())(x)
    np.testing.assert_allclose(
        array(gradient), 3 * np.sin(2 * np.array([0.1, 0, 0.3])) * [2, 0, 1], rtol=1e-12
    )
    assert tk.jvp(lambda x: f(x, index, 2, scale=3.0), (x,), (x,))[1]["y"].shape == (3,)


# ---- linearize ---------------------------------------------------------------------------------------------


@pytest.mark.feature(185)
def test_linearize_runs_the_function_once_for_many_tangents():
    calls = []

    def f(p, n):
        calls.append(1)
        return {"y": tk.tanh(p["w"] @ p["x"]), "sum": p["x"].sum(), "constant": n * 0.0}

    params = {"w": f64(W), "x": f64(X[0])}
    y, push_forward = tk.linearize(f, params, f64(1.0))
    for seed in range(3):
        t = {"w": f64(W + seed), "x": f64(X[seed])}
        same(push_forward(t, 0.0), tk.jvp(f, (params, f64(1.0)), (t, f64(0.0)))[1])
    assert len(calls) == 4
    same(y, f(params, f64(1.0)))
    rows = tk.vmap(lambda t: push_forward({"w": f64(np.zeros((3, 3))), "x": t}, 0.0)["y"])(f64(np.eye(3)))
    same(rows.mT, tk.jacfwd(lambda x: f({"w": f64(W), "x": x}, f64(1.0))["y"])(f64(X[0])))


@pytest.mark.feature(185)
def test_the_result_of_linearize_is_an_ordinary_function():
    x = f64(X[0])
    f = lambda x: tk.tanh(x * x.sum()) * x.max()  # noqa: E731
    push_forward = tk.linearize(f, x)[1]
    u = f64(X[1])
    same(tk.grad(lambda t: (push_forward(t) * u).sum())(x), tk.vjp(f, x)[1](u)[0])
    same(tk.jvp(push_forward, (x,), (u,))[1], push_forward(u))
    same(
        tk.vmap(lambda x: tk.linearize(f, x)[1](x))(f64(X)),
        tk.vmap(lambda x: tk.jvp(f, (x,), (x,))[1])(f64(X)),
    )
    several = lambda x: (tk.stack([x, x * x]), tk.sort(x))  # noqa: E731
    same(tk.linearize(several, x)[1](u), tk.jvp(several, (x,), (u,))[1])


def test_a_tensor_that_escapes_linearize_is_refused():
    kept = []
    tk.linearize(lambda x: kept.append(x) or x * 2.0, f64(X[0]))
    with pytest.raises(EscapedTensorError, match="linearize, which has returned"):
        kept[0] * kept[0]


def test_a_tensor_that_escapes_a_function_of_one_example_is_refused():
    kept = []
    tk.vmap(tk.checkpoint(lambda x: kept.append(x) or x * 2.0))(f64(X))
    with pytest.raises(EscapedTensorError, match="vmap, which has returned"):
        kept[0] * kept[0]


def test_linearize_keeps_only_values_on_the_path_of_tangents():
    level = Linearize(FUSED)
    x = Tensor(level, level.variable(f64(X[0]).representation))
    y = tk.round(x) * 2.0 + tk.sin(f64(X[1]))
    assert y.interpreter is level and not level.steps
    tk.sin(x)
    assert [step.op.name for step in level.steps] == ["sin"]


def test_concurrent_threads_linearize_independently():
    class Slow(itertools.count):
        def __next__(self):
            place = super().__next__()
            time.sleep(1e-5)  # lets another thread run
            return place

    def f(x):
        def power(n):
            y = x
            for _ in range(n):
                y = y * x
            return y

        with ThreadPoolExecutor(4) as pool:
            return sum(pool.map(power, range(10, 14)))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(itertools, "count", Slow)
        push_forward = tk.linearize(f, f64(1.0))[1]
    assert push_forward(1.0).item() == 11 + 12 + 13 + 14


# ---- what they refuse --------------------------------------------------------------------------------------


def ruled(f, forward=None, backward=None):
    own = tk.custom_vjp(f)
    if backward is not None:
        own.defvjp(forward, backward)
    return own


def pushed(rule):
    own = tk.custom_jvp(lambda x: x * 2.0)
    own.defjvp(rule)
    return own


def ruled_by_argument(f, *rules):
    own = tk.custom_jvp(f)
    own.defjvps(*rules)
    return own


ONE = f64([1.0, 2.0])
BAD = {
    "no jvp": (
        lambda: tk.grad(lambda x: tk.custom_jvp(tk.sin)(x).sum())(ONE),
        GradientError,
        "custom_jvp has no rule; .*defjvp",
    ),
    "no vjp": (
        lambda: tk.grad(lambda x: ruled(tk.sin)(x).sum())(ONE),
        GradientError,
        "custom_vjp has no rule; .*defvjp",
    ),
    "closure in elementwise": (
        lambda: tk.grad(lambda x: tk.elementwise(lambda y: y * x, tk.cos)(ONE).sum())(ONE),
        ArgumentError,
        "enclosing transform",
    ),
    "closure of the rule": (
        lambda: tk.jvp(lambda x: pushed(lambda p, t: (p[0], t[0] * x))(x), (ONE,), (ONE,)),
        GradientError,
        "closes over a tensor that is being differentiated, .*; pass the tensor as an argument",
    ),
    "closure of the rule in vmap": (
        lambda: tk.jvp(tk.vmap(lambda x: pushed(lambda p, t: (p[0], t[0] * x))(x)), (ONE,), (ONE,)),
        GradientError,
        "closes over a tensor that is being differentiated, .*; pass the tensor as an argument",
    ),
    "closure of the rule in grad": (
        lambda: tk.grad(lambda x: pushed(lambda p, t: (p[0], t[0] * x))(x).sum())(ONE),
        GradientError,
        "closes over a tensor that is being differentiated, .*; pass the tensor as an argument",
    ),
    "closure of a derivative": (
        lambda: tk.jvp(lambda x: tk.elementwise(tk.sin, lambda y: x)(x), (ONE,), (ONE,)),
        ArgumentError,
        "jvp: a derivative rule used a tensor of an enclosing transform",
    ),
    "elementwise changes the shape": (
        lambda: tk.elementwise(lambda x: x.sum(), tk.cos)(ONE),
        ShapeError,
        r"must keep the shape \(2,\), got \(\)",
    ),
    "a derivative of another shape": (
        lambda: tk.jvp(tk.elementwise(tk.sin, lambda y: ONE), (ONE[0],), (ONE[0],)),
        ShapeError,
        r"the derivative has shape \(2,\), need \(\)",
    ),
    "a derivative of a wider dtype": (
        lambda: tk.grad(tk.elementwise(tk.sin, lambda y: ONE[0]))(tk.tensor(1.0)),
        GradientError,
        "the derivative is float64, need float32",
    ),
    "rule returns no pair": (
        lambda: tk.jvp(pushed(lambda p, t: t[0]), (ONE,), (ONE,)),
        ArgumentError,
        r"returns \(result, tangent\), got Tensor",
    ),
    "rule's tangent has another shape": (
        lambda: tk.jvp(pushed(lambda p, t: (p[0], t[0].sum())), (ONE,), (ONE,)),
        ShapeError,
        r"shape \(\), need \(2,\)",
    ),
    "rule's tangent has another structure": (
        lambda: tk.jvp(pushed(lambda p, t: (p[0], t)), (ONE,), (ONE,)),
        StructureError,
        "tangent of the result: at the top: expected a leaf",
    ),
    "too few rules": (
        lambda: tk.grad(lambda x: ruled_by_argument(lambda x, y: x * y, None)(x, x).sum())(ONE),
        ArgumentError,
        "custom_jvp has 1 rules by defjvps for 2 arguments; give one for each",
    ),
    "forward returns no pair": (
        lambda: tk.grad(lambda x: ruled(tk.sin, tk.sin, lambda r, t: (t,))(x).sum())(ONE),
        ArgumentError,
        r"\(result, residuals\)",
    ),
    "backward returns no tuple": (
        lambda: tk.grad(lambda x: ruled(tk.sin, lambda x: (x, x), lambda r, t: t)(x).sum())(ONE),
        StructureError,
        "a tuple of 1 cotangents, one per argument, got Tensor",
    ),
    "backward returns too many": (
        lambda: tk.grad(lambda x: ruled(tk.sin, lambda x: (x, x), lambda r, t: (t, t))(x).sum())(ONE),
        StructureError,
        "got 2",
    ),
    "cotangent of another shape": (
        lambda: tk.grad(lambda x: ruled(tk.sin, lambda x: (x, x), lambda r, t: (t.sum(),))(x).sum())(ONE),
        ShapeError,
        r"the cotangent has shape \(\), need \(2,\)",
    ),
    "cotangent of another structure": (
        lambda: tk.grad(lambda x: ruled(tk.sin, lambda x: (x, x), lambda r, t: ((t, t),))(x).sum())(ONE),
        StructureError,
        "expected a leaf",
    ),
    "result of another kind": (
        lambda: tk.checkpoint(lambda x: object())(ONE),
        ArgumentError,
        "the result of the function: .*object",
    ),
    "argument of another kind": (
        lambda: tk.checkpoint(tk.sin)(object()),
        ArgumentError,
        "argument leaf 0: .*object",
    ),
    "keyword-only argument": (
        lambda: tk.custom_jvp(keyword_only)(ONE, n=2),
        ArgumentError,
        "n cannot be keyword-only; make them positional",
    ),
    "not a function": (
        lambda: tk.custom_jvp(3),
        ArgumentError,
        "custom_jvp: need a function, got int",
    ),
    "linearize an integer": (
        lambda: tk.linearize(tk.square, tk.tensor([1])),
        GradientError,
        "linearize: cannot differentiate int32",
    ),
    "linearize's tangent": (
        lambda: tk.linearize(tk.square, ONE)[1](1.0),
        ShapeError,
        r"shape \(\), need \(2,\)",
    ),
    "linearize's tangents": (
        lambda: tk.linearize(tk.square, ONE)[1](ONE, ONE),
        StructureError,
        "linearize: tangents",
    ),
}


def keyword_only(x, *, n):
    return x * n


@pytest.mark.parametrize("case", BAD)
def test_bad_rules_get_one_line_and_the_next_call_works(case):
    call, error, match = BAD[case]
    with pytest.raises(error, match=match) as caught:
        call()
    assert "\n" not in str(caught.value)
    same(
        tk.grad(functools.partial(total, by_vjp()))(f64(W), f64(X)),
        tk.grad(functools.partial(total, plain))(f64(W), f64(X)),
    )


@pytest.mark.parametrize("transform", ["vjp", "jvp", "linearize", "grad", "fwd-over-rev"])
@pytest.mark.parametrize("rule", RULES)
def test_a_level_with_rules_on_its_tape_is_freed_without_the_garbage_collector(rule, transform):
    f, kept = RULES[rule](), []

    def noted(w, x):
        kept.extend([weakref.ref(w.interpreter), weakref.ref(x.interpreter)])
        return total(f, w, x)

    gc.collect()
    gc.disable()
    try:
        TRANSFORMS[transform](noted)(f64(W), f64(X))
        assert {level() for level in kept} <= {None, FUSED}
    finally:
        gc.enable()


def test_an_op_made_for_one_call_is_not_kept():
    x = f64([1.0])
    kept = []

    def once():
        f = tk.checkpoint(lambda x: tk.sin(x))
        kept.append(weakref.ref(f))
        tk.grad(lambda x: f(x).sum())(x)

    once()
    gc.collect()
    assert kept[0]() is None
