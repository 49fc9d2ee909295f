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
    pytest.mark.filterwarnings("ignore::tensorken.errors.RetraceWarning"),
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
    few = call is not checkpointed
    check(call, "plain", inner, ("grad", "jvp", "third") if few else DERIVATIVES)


@pytest.mark.deep
@each_of(("outer", "inner"), [(outer, inner) for outer in NESTINGS for inner in NESTINGS if outer != "plain"])
def test_each_nesting_in_each(outer, inner):
    check(checkpointed, outer, inner, ("value", "grad", "jvp", "third"))


def test_a_checkpoint_keeps_what_it_closes_over_and_not_what_is_inside():
    def grown(f: Callable[[Any], Any]) -> int:
        """How many values the derivative of four blocks keeps between the two halves of a program."""
        from tensorken.calls import halves_of

        def chain(w, x):
            for _ in range(4):
                x = f(w)(x)
            return x

        program = tk.trace(chain)(f64(np.ones(3)), f64(np.ones(3)))
        return len(halves_of(program, (True, True)).kept)

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


def test_a_checkpoint_that_closes_over_values_and_asks_for_one_says_so():
    def f(x):
        return tk.checkpoint(lambda y: y * x if y > 0.0 else y)(x)

    with pytest.raises(tk.errors.ConcretizationError, match=r"tk\.cond") as caught:
        tk.grad(f)(f64(1.0))
    assert "\n" not in str(caught.value)
    assert tk.grad(lambda x: tk.checkpoint(lambda y: y * 3.0 if y > 0.0 else y)(x))(f64(1.0)).item() == 3.0
