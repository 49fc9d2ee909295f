"""checkpoint and custom rules compared with JAX, for functions that close over traced values, in nested transforms."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tensorken as tk
from core.tests.each import each_of

jax.config.update("jax_enable_x64", True)

pytestmark = pytest.mark.filterwarnings("ignore::tensorken_core.errors.RetraceWarning")

X, C, XS, CS = 0.3, 1.5, [0.3, 0.7], [1.5, 2.5]


class Jax:
    """JAX's functions in one namespace."""

    def __getattr__(self, name: str) -> Any:
        for module in (jnp, jax, jax.lax):
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(name)

    def array(self, data: Any) -> Any:
        return jnp.asarray(data, "float64")


class Ours:
    """Tensorken's functions of the same names."""

    def __getattr__(self, name: str) -> Any:
        return getattr(tk, name)

    def array(self, data: Any) -> Any:
        return tk.tensor(data, "float64")


# ---- functions of a library, x and c; their rules close over c ---------------------------------------------------


def checkpointed(xp: Any, x: Any, c: Any) -> Any:
    return xp.checkpoint(lambda y: xp.sin(y * c) * c)(x)


def by_jvp(xp: Any, x: Any, c: Any, of_function: bool = True, of_rule: bool = True) -> Any:
    f = xp.custom_jvp(lambda y: xp.sin(y) * (c if of_function else 1.0))
    f.defjvp(lambda p, t: (f(*p), t[0] * xp.cos(p[0]) * (c if of_rule else 2.0)))
    return f(x)


def by_vjp(
    xp: Any, x: Any, c: Any, of_function: bool = True, of_forward: bool = True, of_backward: bool = True
) -> Any:
    f = xp.custom_vjp(lambda y: xp.sin(y) * (c if of_function else 1.0))
    f.defvjp(
        lambda y: (f(y), y * c if of_forward else y),
        lambda r, t: (t * xp.cos(r) * (c if of_backward else 2.0),),
    )
    return f(x)


def another_result_by_jvp(xp: Any, x: Any, c: Any) -> Any:
    f = xp.custom_jvp(lambda y: y * y)
    f.defjvp(lambda p, t: (xp.sin(p[0] * c), t[0] * xp.cos(p[0]) * 3.0))
    return f(x) ** 2


def another_result_by_vjp(xp: Any, x: Any, c: Any) -> Any:
    f = xp.custom_vjp(lambda y: y * y)
    f.defvjp(lambda y: (xp.sin(y) * y, y), lambda y, t: (t * xp.cos(y) * 3.0,))
    return f(x) ** 2


def straight_through(xp: Any, x: Any, c: Any) -> Any:
    f = xp.custom_jvp(lambda y: xp.round(y))
    f.defjvp(lambda p, t: xp.jvp(lambda y: y + xp.stop_gradient(xp.round(y) - y), p, t))
    return f(x * 4.0) ** 3


def function_of_the_tangent(xp: Any, x: Any, c: Any) -> Any:
    f = xp.custom_jvp(lambda y: y * 3.0)
    f.defjvp(lambda p, t: (f(*p), f(t[0]) * xp.cos(p[0])))
    return f(x) ** 2


def function_of_the_tangent_and_another_result(xp: Any, x: Any, c: Any) -> Any:
    f = xp.custom_jvp(lambda y: y * 3.0)
    f.defjvp(lambda p, t: (f(*p) + p[0] ** 3, f(t[0]) * p[0] ** 2))
    return f(x) ** 2


Function = Callable[[Any, Any, Any], Any]

FUNCTIONS: dict[str, Function] = {
    "checkpoint": checkpointed,
    "custom_jvp, function": lambda *a: by_jvp(*a, of_rule=False),
    "custom_jvp, rule": lambda *a: by_jvp(*a, of_function=False),
    "custom_jvp, both": by_jvp,
    "custom_vjp, function": lambda *a: by_vjp(*a, of_forward=False, of_backward=False),
    "custom_vjp, forward": lambda *a: by_vjp(*a, of_function=False, of_backward=False),
    "custom_vjp, backward": lambda *a: by_vjp(*a, of_function=False, of_forward=False),
    "custom_vjp, all": by_vjp,
    "another result by jvp": another_result_by_jvp,
    "another result by vjp": another_result_by_vjp,
    "straight through": straight_through,
    "function of the tangent": function_of_the_tangent,
    "function of the tangent and another result": function_of_the_tangent_and_another_result,
}


def ones(xp: Any) -> Any:
    return xp.array([1.0, 1.0])


NESTINGS: dict[str, Callable[[Any, Function], Callable[[Any, Any], Any]]] = {
    "plain": lambda xp, f: lambda x, c: f(xp, x, c),
    "jit": lambda xp, f: lambda x, c: xp.jit(lambda x, c: f(xp, x, c))(x, c),
    "vmap": lambda xp, f: (
        lambda x, c: xp.vmap(lambda x, c: f(xp, x, c))(x * ones(xp), c * xp.array(CS)).sum()
    ),
    "scan": lambda xp, f: lambda x, c: xp.scan(lambda h, u: (f(xp, h, u * c), h), x, xp.array([1.0, 2.0]))[0],
    "cond": lambda xp, f: lambda x, c: xp.cond(c > 0, lambda x: f(xp, x, c * 2.0), lambda x: x, x),
    "checkpoint": lambda xp, f: lambda x, c: xp.checkpoint(lambda x: f(xp, x, c))(x),
}

DERIVATIVES: dict[str, Callable[[Any, Callable[[Any, Any], Any]], Any]] = {
    "value and gradient": lambda xp, f: xp.value_and_grad(f)(xp.array(X), xp.array(C)),
    "by c": lambda xp, f: xp.grad(f, 1)(xp.array(X), xp.array(C)),
    "jvp": lambda xp, f: xp.jvp(lambda x: f(x, xp.array(C)), (xp.array(X),), (xp.array(0.5),)),
    "second": lambda xp, f: xp.grad(xp.grad(f))(xp.array(X), xp.array(C)),
    "third": lambda xp, f: xp.grad(xp.grad(xp.grad(f)))(xp.array(X), xp.array(C)),
    "jit of grad": lambda xp, f: xp.jit(xp.grad(f))(xp.array(X), xp.array(C)),
    "vmap of grad": lambda xp, f: xp.vmap(xp.grad(f))(xp.array(XS), xp.array(CS)),
}

FEW = ("value and gradient", "second")
"""The derivatives that are compared in each nesting; the others are compared only without nesting."""

JAX_DIFFERS = {
    ("function of the tangent", "scan", "second"),
    ("function of the tangent and another result", "scan", "second"),
}
"""Cases where the second derivative of JAX's scan differs from that of an unrolled loop in JAX and in Tensorken."""


def numbers(value: Any) -> list[Any]:
    return [np.asarray(y) for y in tk.tree.leaves(value)]


@each_of("function", FUNCTIONS)
def test_nested_rules_equal_those_of_jax(function: str) -> None:
    """The results equal JAX's; where JAX raises an error, Tensorken returns a result or raises a GradientError."""
    compared = 0
    for nesting in NESTINGS:
        for derivative in DERIVATIVES if nesting == "plain" else FEW:
            compared += compare_with_jax(function, nesting, derivative)
    assert compared >= 6, compared


def compare_with_jax(function: str, nesting: str, derivative: str) -> bool:
    """Compare the results with JAX's; returns whether JAX returned any."""
    theirs, ours = [
        lambda xp=xp: numbers(DERIVATIVES[derivative](xp, NESTINGS[nesting](xp, FUNCTIONS[function])))
        for xp in (Jax(), Ours())
    ]
    try:
        expected = theirs()
    except Exception:  # noqa: BLE001, JAX raises several error classes
        with suppress(tk.errors.GradientError):
            ours()
        return False
    if (function, nesting, derivative) in JAX_DIFFERS:
        return False
    where = f"{nesting}, {derivative}"
    for a, b in zip(ours(), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13, err_msg=where)
    return True
