"""checkpoint, custom_jvp and custom_vjp over functions that close over values of enclosing transforms."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of
from core.tests.support import array, f64

pytestmark = [
    pytest.mark.usefixtures("on_numpy"),
    pytest.mark.filterwarnings("ignore::tensorken_core.errors.RetraceWarning"),
]

X, C = 0.3, 1.5

Call = Callable[[Any, Any], Any]
"""From x and c to a scalar; the function inside takes x as its argument and closes over c."""


def plain(x, c):
    return tk.sin(x * c) * c + x * x


def checkpointed(x, c):
    return tk.checkpoint(lambda y: plain(y, c))(x)


def checkpointed_twice(x, c):
    return tk.checkpoint(lambda y: tk.checkpoint(lambda z: plain(z, c) * y / x)(y))(x)


def checkpointed_without_arguments(x, c):
    return tk.checkpoint(lambda: plain(x, c))()


def checkpointed_pytree(x, c):
    closed = {"c": [c], "x": x}
    return tk.checkpoint(lambda p, n: {"y": plain(p["x"], closed["c"][0]) * n, "n": n})({"x": x}, 1)["y"]


CHECKPOINTED = [checkpointed, checkpointed_twice, checkpointed_without_arguments, checkpointed_pytree]

XS = np.array([0.4, 0.9])

NESTINGS: dict[str, Callable[[Call], Call]] = {
    "plain": lambda f: f,
    "jit": lambda f: lambda x, c: tk.jit(f)(x, c),
    "jit closes over c": lambda f: lambda x, c: tk.jit(lambda x: f(x, c))(x),
    "vmap": lambda f: lambda x, c: tk.vmap(f)(x * f64(XS), c * f64(XS)).sum(),
    "vmap closes over c": lambda f: lambda x, c: tk.vmap(lambda x: f(x, c))(x * f64(XS)).sum(),
    "vmap of c alone": lambda f: lambda x, c: tk.vmap(lambda c: f(x, c))(c * f64(XS)).sum(),
    "vmap of jit": lambda f: lambda x, c: tk.vmap(tk.jit(f))(x * f64(XS), c * f64(XS)).sum(),
    "jit of vmap": lambda f: lambda x, c: tk.jit(tk.vmap(f))(x * f64(XS), c * f64(XS)).sum(),
    "scan": lambda f: lambda x, c: tk.scan(lambda h, u: (f(h, u * c), h), x, f64(XS))[0],
    "scan over slices": lambda f: lambda x, c: tk.scan(lambda h, u: (h + f(u * x, c), h), x, f64(XS))[0],
    "fori_loop": lambda f: lambda x, c: tk.fori_loop(0, 2, lambda i, h: f(h, c * x) * 0.5, x),
    "cond": lambda f: lambda x, c: tk.cond(x > 0.0, lambda x: f(x, c * x), lambda x: x, x),
    "checkpoint": lambda f: lambda x, c: tk.checkpoint(lambda x: f(x, c))(x),
    "grad inside": lambda f: lambda x, c: tk.grad(lambda y: f(y * x, c))(x) * c,
    "jvp inside": lambda f: lambda x, c: tk.jvp(lambda y: f(y * x, c), (x,), (c,))[1],
    "linearize inside": lambda f: lambda x, c: tk.linearize(lambda y: f(y * x, c), x)[1](c),
}

DERIVATIVES: dict[str, Callable[[Call], Any]] = {
    "value": lambda f: f(f64(X), f64(C)),
    "grad": lambda f: tk.grad(f, (0, 1))(f64(X), f64(C)),
    "grad of c": lambda f: tk.grad(f, 1)(f64(X), f64(C)),
    "jvp": lambda f: tk.jvp(f, (f64(X), f64(C)), (f64(0.7), f64(-0.2))),
    "linearize": lambda f: tk.linearize(f, f64(X), f64(C))[1](f64(0.7), f64(-0.2)),
    "jit of grad": lambda f: tk.jit(tk.grad(f, (0, 1)))(f64(X), f64(C)),
    "vmap of grad": lambda f: tk.vmap(tk.grad(f, (0, 1)))(f64(XS), f64(XS[::-1].copy())),
    "second": lambda f: tk.grad(lambda x, c: tk.grad(f)(x, c) * c + tk.grad(f, 1)(x, c), (0, 1))(
        f64(X), f64(C)
    ),
    "forward over reverse": lambda f: tk.jvp(tk.grad(f, 1), (f64(X), f64(C)), (f64(1.0), f64(0.5)))[1],
    "third": lambda f: tk.grad(lambda x, c: tk.jvp(tk.grad(f, 1), (x, c), (f64(1.0), f64(0.5)))[1], (0, 1))(
        f64(X), f64(C)
    ),
}


def same(result: Any, expected: Any) -> None:
    results, wanted = tk.tree.leaves(result), tk.tree.leaves(expected)
    assert len(results) == len(wanted)
    for a, b in zip(results, wanted, strict=True):
        np.testing.assert_allclose(array(a), array(b), rtol=1e-10, atol=1e-12)


@functools.cache
def expected(outer: str, inner: str, derivative: str) -> Any:
    return DERIVATIVES[derivative](NESTINGS[outer](NESTINGS[inner](plain)))


def check(call: Call, outer: str, inner: str, derivatives: Any) -> None:
    nested = NESTINGS[outer](NESTINGS[inner](call))
    for name in derivatives:
        try:
            same(DERIVATIVES[name](nested), expected(outer, inner, name))
        except Exception as error:
            error.add_note(f"derivative {name}")
            raise


@each_of(("call", "inner"), [(call, inner) for call in CHECKPOINTED for inner in NESTINGS])
def test_a_checkpoint_that_closes_over_values_is_the_function_itself(call, inner):
    check(call, "plain", inner, ("grad", "third") if call is checkpointed else ("grad",))


@pytest.mark.nightly
@each_of(("call", "inner"), [(call, inner) for call in CHECKPOINTED for inner in NESTINGS])
def test_each_derivative_of_a_checkpoint_that_closes_over_values(call, inner):
    check(call, "plain", inner, DERIVATIVES)


@pytest.mark.nightly
@each_of(("outer", "inner"), [(outer, inner) for outer in NESTINGS for inner in NESTINGS if outer != "plain"])
def test_each_nesting_in_each_other(outer, inner):
    check(checkpointed, outer, inner, ("value", "grad", "jvp", "third"))


def test_a_checkpoint_keeps_captured_values_but_not_inner_ones():
    def grown(f: Callable[[Any], Any]) -> int:
        """How many values the derivative of four blocks keeps between the two halves of a program."""
        from tensorken.compilation.call_op import forward_backward_of

        def chain(w, x):
            for _ in range(4):
                x = f(w)(x)
            return x

        program = tk.trace(chain)(f64(np.ones(3)), f64(np.ones(3)))
        return len(forward_backward_of(program, (True, True)).residuals)

    def block(w, x):
        for _ in range(10):
            x = tk.sin(x * w)
        return x

    closed = grown(lambda w: tk.checkpoint(lambda x: block(w, x)))
    assert closed == grown(lambda w: lambda x: tk.checkpoint(block)(w, x))
    assert closed < grown(lambda w: lambda x: block(w, x)) / 4


def test_a_checkpoint_of_a_module_in_a_jitted_step():
    class Module:
        def __init__(self, w):
            self.w = w

        def __call__(self, x):
            return tk.tanh(x @ self.w)

    def loss(w, x, wrap):
        module = Module(w)
        return (wrap(lambda x: module(module(x)))(x) ** 2).sum()

    w, x = f64(np.arange(9.0).reshape(3, 3) / 10), f64([[1.0, -2.0, 0.5]])
    expected = tk.grad(lambda w: loss(w, x, lambda f: f))(w)
    same(tk.jit(tk.grad(lambda w, x: loss(w, x, tk.checkpoint)))(w, x), expected)
    same(tk.grad(tk.jit(lambda w, x: loss(w, x, tk.checkpoint)))(w, x), expected)
    same(tk.grad(lambda w: loss(w, x, tk.checkpoint))(w), expected)


def test_a_checkpoint_that_needs_a_captured_value_raises_an_error():
    def f(x):
        return tk.checkpoint(lambda y: y * x if y > 0.0 else y)(x)

    with pytest.raises(tk.errors.ConcretizationError, match=r"tk\.cond") as caught:
        tk.grad(f)(f64(1.0))
    assert "\n" not in str(caught.value)
    assert tk.grad(lambda x: tk.checkpoint(lambda y: y * 3.0 if y > 0.0 else y)(x))(f64(1.0)).item() == 3.0


# ---- custom rules --------------------------------------------------------------------------------------------


def by_jvp(x, c):
    f = tk.custom_jvp(lambda x: plain(x, c))
    f.defjvp(lambda p, t: (f(*p), t[0] * (tk.cos(p[0] * c) * c * c + 2.0 * p[0])))
    return f(x)


def by_jvp_of_the_function(x, c):
    f = tk.custom_jvp(lambda x: plain(x, c))
    f.defjvp(lambda p, t: tk.jvp(lambda x: plain(x, c), p, t))
    return f(x)


def by_jvps(x, c):
    f = tk.custom_jvp(lambda x, n: plain(x, c) * n)
    f.defjvps(lambda t, y, x, n: t * (tk.cos(x * c) * c * c + 2.0 * x) * n, None)
    return f(x, 1.0)


def by_vjp(x, c):
    f = tk.custom_vjp(lambda x: plain(x, c))
    f.defvjp(
        lambda x: (f(x), (x, c * c)), lambda r, t: (t * (tk.cos(r[0] * c) * r[1] + 2.0 * r[0]) * (c / c),)
    )
    return f(x)


def by_vjp_backward_alone(x, c):
    f = tk.custom_vjp(lambda x, c: plain(x, c))
    f.defvjp(lambda x, k: (plain(x, k), x), lambda x, t: (t * (tk.cos(x * c) * c * c + 2.0 * x), None))
    return f(x, c)


def by_both_inside_each_other(x, c):
    inner = tk.custom_jvp(lambda y: tk.sin(y * c))
    inner.defjvp(lambda p, t: (inner(*p), t[0] * tk.cos(p[0] * c) * c))
    outer = tk.custom_vjp(lambda x: inner(x) * c + x * x)
    outer.defvjp(lambda x: (outer(x), x), lambda x, t: (tk.vjp(lambda x: inner(x) * c + x * x, x)[1](t)[0],))
    return outer(x)


def under_a_checkpoint(x, c):
    return tk.checkpoint(lambda x: by_jvp(x, c))(x)


RULED = [
    by_jvp,
    by_jvp_of_the_function,
    by_jvps,
    by_vjp,
    by_vjp_backward_alone,
    by_both_inside_each_other,
    under_a_checkpoint,
]

DERIVATIVES_BY_X: dict[str, Callable[[Call], Any]] = {
    "value": lambda f: f(f64(X), f64(C)),
    "grad": lambda f: tk.grad(f)(f64(X), f64(C)),
    "jvp": lambda f: tk.jvp(lambda x: f(x, f64(C)), (f64(X),), (f64(0.7),)),
    "linearize": lambda f: tk.linearize(lambda x: f(x, f64(C)), f64(X))[1](f64(0.7)),
    "jit of grad": lambda f: tk.jit(tk.grad(f))(f64(X), f64(C)),
    "vmap of grad": lambda f: tk.vmap(tk.grad(f))(f64(XS), f64(XS[::-1].copy())),
    "second": lambda f: tk.grad(tk.grad(f))(f64(X), f64(C)),
    "forward over reverse": lambda f: tk.vmap(lambda x, c: tk.derivative(tk.grad(f))(x, c))(f64(XS), f64(XS)),
    "third": lambda f: tk.grad(tk.grad(tk.grad(f)))(f64(X), f64(C)),
    "third, forward in the middle": lambda f: tk.grad(tk.derivative(tk.grad(f)))(f64(X), f64(C)),
}

NESTINGS_BY_X: dict[str, Callable[[Call], Call]] = {
    **{
        name: nesting
        for name, nesting in NESTINGS.items()
        if name not in ("cond", "fori_loop", "jvp inside", "linearize inside")
    },
    "cond": lambda f: lambda x, c: tk.cond(c > 0.0, lambda x: f(x, c * 2.0), lambda x: x, x),
    "fori_loop": lambda f: lambda x, c: tk.fori_loop(0, 2, lambda i, h: f(h, c * 0.5) * 0.5, x),
    "jit inside": lambda f: lambda x, c: tk.jit(lambda x: f(x, tk.sin(c)))(x),
    "stop_gradient": lambda f: lambda x, c: f(x, tk.stop_gradient(x) * c),
}


@functools.cache
def expected_by_x(outer: str, inner: str, derivative: str) -> Any:
    return DERIVATIVES_BY_X[derivative](NESTINGS_BY_X[outer](NESTINGS_BY_X[inner](plain)))


def check_by_x(call: Call, outer: str, inner: str, derivatives: Any) -> None:
    nested = NESTINGS_BY_X[outer](NESTINGS_BY_X[inner](call))
    for name in derivatives:
        try:
            same(DERIVATIVES_BY_X[name](nested), expected_by_x(outer, inner, name))
        except Exception as error:
            error.add_note(f"derivative {name}")
            raise


@each_of(("call", "inner"), [(call, inner) for call in (by_jvp, by_vjp) for inner in NESTINGS_BY_X])
def test_a_custom_rule_that_closes_over_values_is_right(call, inner):
    check_by_x(call, "plain", inner, ("grad", "second"))


@each_of("call", RULED)
def test_each_way_to_close_over_values_in_each_derivative(call):
    check_by_x(call, "jit", "vmap", ("grad", "third"))
    check_by_x(call, "plain", "plain", DERIVATIVES_BY_X)


@pytest.mark.nightly
@each_of(("call", "inner"), [(call, inner) for call in RULED for inner in NESTINGS_BY_X])
def test_each_rule_in_each_nesting(call, inner):
    check_by_x(call, "plain", inner, DERIVATIVES_BY_X)


@pytest.mark.nightly
@each_of(
    ("outer", "inner"),
    [(outer, inner) for outer in NESTINGS_BY_X for inner in NESTINGS_BY_X if outer != "plain"],
)
def test_custom_rules_in_each_nesting_of_nestings(outer, inner):
    for call in (by_jvp, by_vjp):
        check_by_x(call, outer, inner, ("value", "grad", "jvp", "third"))


REFUSED: dict[str, Call] = {
    "the function": lambda x, c: by_vjp(x, c),
    "the function alone": lambda x, c: by_jvp(f64(2.0), c) * x,
    "the rule": lambda x, c: by_vjp_backward_alone(x, c),
    "in a loop": lambda x, c: tk.scan(lambda h, u: (by_jvp(h, c) * u, None), x, f64(XS))[0],
    "in jit": lambda x, c: tk.jit(by_jvp)(x, c),
    "in vmap": lambda x, c: tk.vmap(by_vjp)(x * f64(XS), c * f64(XS)).sum(),
    "in checkpoint": lambda x, c: tk.checkpoint(by_jvp)(x, c),
}


@each_of("case", REFUSED)
def test_a_custom_rule_that_closes_over_a_differentiated_tensor_is_refused(case):
    f = REFUSED[case]
    for derivative in (
        lambda: tk.grad(f, (0, 1))(f64(X), f64(C)),
        lambda: tk.jvp(f, (f64(X), f64(C)), (f64(1.0), f64(1.0))),
        lambda: tk.linearize(f, f64(X), f64(C))[1](f64(1.0), f64(1.0)),
        lambda: tk.jit(tk.grad(f, (0, 1)))(f64(X), f64(C)),
    ):
        with pytest.raises(
            tk.errors.GradientError, match="closes over a tensor that is being differentiated"
        ) as caught:
            derivative()
        assert "\n" not in str(caught.value)
    assert f(f64(X), f64(C)).shape == ()


def test_tensors_captured_only_by_the_rule_may_be_differentiated_without_the_arguments():
    f = lambda c: by_vjp_backward_alone(f64(X), tk.stop_gradient(c)) + by_rule_alone(f64(X), c) * c  # noqa: E731
    assert tk.grad(f)(f64(C)).item() == tk.sin(f64(X)).item()


def by_rule_alone(x, c):
    f = tk.custom_jvp(lambda x: tk.sin(x))
    f.defjvp(lambda p, t: (f(*p), t[0] * c))
    return f(x)


def test_adjoints_refuse_differentiated_captured_tensors():
    program = tk.trace(by_jvp)(f64(X), f64(C))
    with pytest.raises(tk.errors.GradientError, match="closes over"):
        program.adjoints(inputs=1)


def test_unused_captured_tensors_are_ignored():
    """It runs again when the transform of such a tensor has returned."""

    def f(wrap):
        def g(x):
            return wrap(lambda y: (tk.stop_gradient(x), x * 2.0, tk.sin(y))[2])(x)

        return g

    def ruled(h):
        own = tk.custom_vjp(h)
        own.defvjp(lambda y: (own(y), (h(y), y)[1]), lambda y, t: (h(y) * 0.0 + t * tk.cos(y),))
        return own

    for wrap in (tk.checkpoint, ruled):
        assert tk.grad(tk.grad(f(wrap)))(f64(0.5)).item() == pytest.approx(-np.sin(0.5), rel=1e-14)


def test_tensors_captured_by_a_rule_inside_a_checkpoint_are_found():
    """The checkpoint's own value does not need it, only its derivative does."""

    def inside(y, c):
        by_jvp = tk.custom_jvp(tk.sin)
        by_jvp.defjvp(lambda p, t: (by_jvp(*p), t[0] * tk.cos(p[0]) * c))
        by_vjp = tk.custom_vjp(tk.sin)
        by_vjp.defvjp(lambda x: (by_vjp(x), x), lambda x, t: (t * tk.cos(x) * c,))
        return by_jvp(y) + by_vjp(y)

    block = tk.checkpoint(lambda y: inside(y, tk.stop_gradient(kept[0])))  # made outside of all transforms
    kept = []

    def f(x):
        kept[:] = [x]
        return block(x)

    expected = 2.0 * np.cos(0.5) * 0.5
    assert tk.grad(f)(f64(0.5)).item() == pytest.approx(expected)
    assert tk.jvp(f, (f64(0.5),), (f64(1.0),))[1].item() == pytest.approx(expected)
    assert tk.vmap(tk.grad(f))(f64([0.5])).tolist() == pytest.approx([expected])
    g = lambda x: tk.checkpoint(lambda y: inside(y, tk.stop_gradient(x)))(x)  # noqa: E731
    assert tk.grad(g)(f64(0.5)).item() == pytest.approx(expected)


def test_a_rule_may_call_its_function_with_another_function_each_time() -> None:
    """The derivative of a fixed point is a fixed point of another function; the rules of all orders end."""
    traced = []

    @functools.partial(tk.custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f, a, x):
        return tk.while_loop(
            lambda c: tk.abs(c[0] - c[1]) > 1e-13, lambda c: (c[1], f(a, c[1])), (x, f(a, x))
        )[1]

    def adjoint_step(f, packed, u):
        a, result, cotangent = packed
        return cotangent + tk.vjp(lambda x: f(a, x), result)[1](u)[0]

    def backward(f, kept, cotangent):
        traced.append(f)
        a, result = kept
        adjoint = fixed_point(functools.partial(adjoint_step, f), (a, result, cotangent), cotangent)
        return tk.vjp(lambda a: f(a, result), a)[1](adjoint)[0], tk.zeros_like(result)

    fixed_point.defvjp(lambda f, a, x: (y := fixed_point(f, a, x), (a, y)), backward)

    def root(a):
        return fixed_point(lambda a, x: 0.5 * (x + a / x), a, a)

    derivative, formulas = root, (2.0**0.5, 0.5 * 2.0**-0.5, -0.25 * 2.0**-1.5, 0.375 * 2.0**-2.5)
    for wanted in formulas:
        assert derivative(f64(2.0)).item() == pytest.approx(wanted, rel=1e-10)
        derivative = tk.grad(derivative)
    assert len(traced) < 200
