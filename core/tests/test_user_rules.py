"""custom_jvp, custom_vjp, checkpoint, linearize: right in every mode and order, under vmap, and cheap."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tensorken as tk
from core.tests.support import STACKS, array, f64, peak_of
from tensorken.errors import ArgumentError, GradientError, ShapeError, StructureError

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
def test_a_right_rule_gives_what_the_function_itself_gives(rule, transform):
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


def test_each_half_of_a_vjp_runs_once_and_the_function_only_without_derivatives():
    calls = []
    f = tk.custom_vjp(lambda x: calls.append("f") or tk.sin(x))
    f.defvjp(
        lambda x: calls.append("forward") or (tk.sin(x), x),
        lambda x, t: (calls.append("backward") or t * tk.cos(x),),
    )
    f(f64(0.5))
    assert calls == ["f"]
    calls.clear()
    assert tk.grad(f)(f64(0.5)).item() == np.cos(0.5)
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


def test_a_function_of_no_tensor_is_just_called():
    assert tk.custom_vjp(lambda n: n + 1)(2) == 3
    assert tk.custom_jvp(lambda n: n + 1)(2) == 3
    assert tk.checkpoint(lambda n: n + 1)(2) == 3


def test_the_string_backend_shows_what_a_rule_computes():
    from tensorken_string.backend import String

    with tk.use_backend(String()):
        assert str(by_vjp()(tk.symbol("w", (3, 3)), tk.symbol("x", (3,)))) == str(
            plain(tk.symbol("w", (3, 3)), tk.symbol("x", (3,)))
        )


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
def test_what_linearize_gives_is_a_function_like_any_other():
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
    "closure": (
        lambda: tk.grad(lambda x: tk.checkpoint(lambda y: y * x)(ONE).sum())(ONE),
        ArgumentError,
        "a tensor of an enclosing transform that is not among its arguments; pass it",
    ),
    "closure in vmap": (
        lambda: tk.vmap(lambda x: tk.checkpoint(lambda y: y * x)(ONE).sum())(ONE),
        ArgumentError,
        "enclosing transform",
    ),
    "closure in elementwise": (
        lambda: tk.grad(lambda x: tk.elementwise(lambda y: y * x, tk.cos)(ONE).sum())(ONE),
        ArgumentError,
        "enclosing transform",
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
    "forward returns no pair": (
        lambda: tk.grad(lambda x: ruled(tk.sin, tk.sin, lambda r, t: (t,))(x).sum())(ONE),
        ArgumentError,
        r"\(result, residuals\)",
    ),
    "backward returns no tuple": (
        lambda: tk.grad(lambda x: ruled(tk.sin, lambda x: (x, x), lambda r, t: t)(x).sum())(ONE),
        StructureError,
        "a tuple of 1 cotangents, one for each argument, got Tensor",
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
        "the function's result: .*object",
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


def test_an_op_made_for_one_call_is_not_kept():
    import gc
    import weakref

    x = f64([1.0])
    kept = []

    def once():
        f = tk.checkpoint(lambda x: tk.sin(x))
        kept.append(weakref.ref(f))
        tk.grad(lambda x: f(x).sum())(x)

    once()
    gc.collect()
    assert kept[0]() is None
