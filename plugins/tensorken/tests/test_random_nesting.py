"""Random nestings of all transforms, over random small functions, compared with derivatives of plain loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import tensorken as tk
from core.tests.each import each_of
from core.tests.examples import examples
from core.tests.support import array, f64
from tensorken_core.tensor.tensor import Tensor

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("on_numpy"), pytest.mark.feature(81, 108, 185, 197)]

Function = Callable[[Tensor], Tensor]
"""From three numbers to three numbers, so that every transform of one is one again."""

RNG = np.random.default_rng(0)
W, C, ROWS = RNG.normal(size=(3, 3)) * 0.5, RNG.normal(size=3), RNG.normal(size=(2, 3))
PLACES = np.array([[2, 0, 0], [1, 1, 2]], "int32")


# ---- what the functions are made of ------------------------------------------------------------------------

PARTS: dict[str, Function] = {
    "sin": tk.sin,
    "tanh of a product": lambda x: tk.tanh(x @ f64(W)),
    "softmax": lambda x: (x - tk.logsumexp(x)).exp(),
    "norm": lambda x: x / (1.0 + (x * x).sum()).sqrt(),
    "gather": lambda x: x.gather(tk.tensor(PLACES[0]), 0) * x,
    "scatter": lambda x: x.scatter_add(tk.tensor(PLACES[1]), 0, 3).sin(),
    "pad and crop": lambda x: tk.concatenate([x[1:] * x[0], x[:1]]).sin(),
    "choose": lambda x: tk.where(x > 0.1, x * x, -x).sin(),
    "reverse": lambda x: tk.flip(x) + 0.5 * tk.cumsum(x, 0),
    "part constant": lambda x: tk.stack([x[0].sin(), x[1] * 0.0 + 2.0, tk.asarray(0.5, "float64")]),
    "constant": lambda x: f64(C),
    "gradient at a constant": lambda x: tk.grad(lambda c: (c * x).sin().sum())(f64(C)),
    "linearized at a constant": lambda x: tk.linearize(lambda c: (c * x).sin(), f64(C))[1](f64(C)),
    "pushed at a constant": lambda x: tk.jvp(lambda c: (c * x).sin(), (f64(C),), (f64(C),))[1],
    "Jacobian at a constant": lambda x: tk.jacrev(lambda c: (c * x).sin())(f64(C)) @ f64(C),
    "checkpointed": tk.checkpoint(lambda x: tk.tanh(x * x.sum())),
    "two results": lambda x: (lambda a, b: tk.sin(a) * b)(*tk.checkpoint(lambda x: (x * 2.0, x.cos()))(x)),
    "batch of constants": lambda x: tk.vmap(lambda c: (c * x).sum().sin())(f64(W)),
    "elementwise": tk.elementwise(lambda x: x.sin() * 2.0, lambda x: x.cos() * 2.0),
    "identity": lambda x: x,
    "diagonal of a product": lambda x: tk.sum((x[:, None] * x[None, :]).sin() * f64(W), axis=1),
}


# ---- transforms, and what each means -----------------------------------------------------------------------


def _itself(t: Tensor, x: Tensor) -> Tensor:
    """t, by derivatives at a constant in which t and x are values of enclosing transforms."""
    return tk.grad(lambda c: (c * t).sum() + (c * x).sum())(f64(C)) - tk.grad(lambda c: (c * x).sum())(f64(C))


def _ruled_forward(g: Function) -> Function:
    f = tk.custom_jvp(lambda x: g(x))
    f.defjvp(lambda primals, tangents: (f(*primals), tk.jvp(g, primals, (_itself(*tangents, *primals),))[1]))
    return f


def _ruled_back(g: Function) -> Function:
    f = tk.custom_vjp(lambda x, k, scale: g(x) * scale)
    f.defvjp(
        lambda x, k, scale: (g(x) * scale, (x, {"k": k}, scale, 0.5)),
        lambda kept, t: (
            tk.vjp(g, kept[0])[1](_itself(t, kept[0]) * kept[2] * (kept[3] + 0.5))[0],
            None,
            None,
        ),
    )
    return lambda x: f(x, tk.tensor(PLACES[0]), 0.7)


def _ruled_back_residual(g: Function) -> Function:
    """The residual is a value of the function, so its derivative takes part at the second order."""
    f = tk.custom_vjp(lambda x: tk.tanh(g(x)))
    f.defvjp(
        lambda x: (lambda y: (y, (y, x)))(tk.tanh(g(x))),
        lambda kept, t: (tk.vjp(g, kept[1])[1](t * (1.0 - kept[0] * kept[0]))[0],),
    )
    return f


def _closing_forward(g: Function) -> Function:
    """Function and rule close over a value that depends on the argument but has no derivative."""

    def of(x: Tensor) -> Tensor:
        factor = tk.stop_gradient(tk.cos(x))
        f = tk.custom_jvp(lambda y: g(y) * factor)
        f.defjvp(lambda primals, tangents: (f(*primals), tk.jvp(g, primals, tangents)[1] * factor))
        return f(x)

    return of


def _closing_back(g: Function) -> Function:
    def of(x: Tensor) -> Tensor:
        factor = tk.stop_gradient(tk.cos(x))
        f = tk.custom_vjp(lambda y: g(y) * factor)
        f.defvjp(lambda y: (f(y), y), lambda y, t: tk.vjp(g, y)[1](t * factor))
        return f(x)

    return of


def _checkpointed(g: Function) -> Function:
    f = tk.checkpoint(lambda x, places, factor: {"y": g(x) * factor, "taken": places + 1})
    return lambda x: f(x, tk.tensor(PLACES[1]), 0.9)["y"]


def _basis(g: Function, x: Tensor) -> list[Tensor]:
    """The columns of the Jacobian, one a pass."""
    return [tk.jvp(g, (x,), (f64(row),))[1] for row in np.eye(3)]


def _looped(h: Callable[..., Tensor], *rows: Tensor) -> Tensor:
    return tk.stack([h(*[x[i] for x in rows]) for i in range(rows[0].shape[0])])


TRANSFORMS: dict[str, tuple[Callable[[Function], Function], Callable[[Function], Function]]] = {
    "grad": (
        lambda g: tk.grad(lambda x: (g(x) * f64(C)).sum()),
        lambda g: lambda x: tk.vjp(g, x)[1](f64(C))[0],
    ),
    "grad with an outer value": (
        lambda g: lambda x: tk.grad(lambda y: (g(y * x) * x).sum())(x),
        lambda g: lambda x: tk.vjp(lambda y: g(y * x), x)[1](x)[0],
    ),
    "jvp": (
        lambda g: lambda x: tk.jvp(g, (x,), (tk.cos(x),))[1],
        lambda g: lambda x: sum((t * c for t, c in zip(_basis(g, x), tk.cos(x), strict=True)), start=0.0 * x),
    ),
    "linearize": (
        lambda g: lambda x: (lambda y, push: push(x) + push(f64(C)) * y)(*tk.linearize(g, x)),
        lambda g: lambda x: tk.jvp(g, (x,), (x,))[1] + tk.jvp(g, (x,), (f64(C),))[1] * g(x),
    ),
    "linearize under vmap": (
        lambda g: lambda x: tk.vmap(tk.linearize(g, x)[1])(f64(ROWS)).sum(0),
        lambda g: lambda x: _looped(lambda t: tk.jvp(g, (x,), (t,))[1], f64(ROWS)).sum(0),
    ),
    "pullback under vmap": (
        lambda g: lambda x: tk.vmap(tk.vjp(g, x)[1])(f64(ROWS))[0].sum(0),
        lambda g: lambda x: _looped(lambda t: tk.vjp(g, x)[1](t)[0], f64(ROWS)).sum(0),
    ),
    "jacfwd": (
        lambda g: lambda x: tk.jacfwd(g)(x) @ f64(C),
        lambda g: lambda x: tk.jvp(g, (x,), (f64(C),))[1],
    ),
    "jacrev": (
        lambda g: lambda x: f64(C) @ tk.jacrev(g)(x),
        lambda g: lambda x: tk.vjp(g, x)[1](f64(C))[0],
    ),
    "jacobian of two by two": (
        lambda g: (
            lambda x: (lambda blocks: blocks["b"][0].mT @ x + blocks["a"][1] @ f64(C))(
                tk.jacrev(lambda y, z: {"a": g(y * z), "b": g(y + z)}, (0, 1))(x, tk.sin(x))
            )
        ),
        lambda g: (
            lambda x: (
                tk.vjp(lambda y: g(y + tk.sin(x)), x)[1](x)[0]
                + tk.jvp(lambda z: g(x * z), (tk.sin(x),), (f64(C),))[1]
            )
        ),
    ),
    "checkpoint": (_checkpointed, lambda g: lambda x: g(x) * 0.9),
    "custom_jvp": (_ruled_forward, lambda g: g),
    "custom_vjp": (_ruled_back, lambda g: lambda x: g(x) * 0.7),
    "custom_vjp with residuals": (_ruled_back_residual, lambda g: lambda x: tk.tanh(g(x))),
    "checkpoint that closes over its argument": (
        lambda g: lambda x: tk.checkpoint(lambda y: g(y * x) * tk.sin(x))(tk.cos(x)),
        lambda g: lambda x: g(tk.cos(x) * x) * tk.sin(x),
    ),
    "custom_jvp that closes over a value": (
        _closing_forward,
        lambda g: lambda x: g(x) * tk.stop_gradient(tk.cos(x)),
    ),
    "custom_vjp that closes over a value": (
        _closing_back,
        lambda g: lambda x: g(x) * tk.stop_gradient(tk.cos(x)),
    ),
    "vmap": (
        lambda g: lambda x: tk.vmap(lambda c: g(x * c))(f64(ROWS)).sum(0),
        lambda g: lambda x: _looped(lambda c: g(x * c), f64(ROWS)).sum(0),
    ),
    "vmap over the argument": (
        lambda g: lambda x: tk.vmap(lambda e, k: g(x * e)[k], out_axes=0)(x, tk.arange(3)),
        lambda g: lambda x: tk.stack([g(x * x[i])[i] for i in range(3)]),
    ),
    "vmap along axis 1": (
        lambda g: lambda x: tk.vmap(g, 1, 1)(tk.stack([x, f64(C) * x], axis=1)) @ f64(C[:2]),
        lambda g: lambda x: g(x) * float(C[0]) + g(f64(C) * x) * float(C[1]),
    ),
    "vmap of indices": (
        lambda g: lambda x: tk.vmap(lambda k: g(x).gather(k, 0) * k)(tk.tensor(PLACES)).sum(0),
        lambda g: lambda x: sum((g(x).gather(tk.tensor(k), 0) * tk.tensor(k) for k in PLACES), start=0.0 * x),
    ),
    "vmap of what is shared": (
        lambda g: lambda x: tk.vmap(lambda y, c: (g(y), c), (None, 0), (None, 0))(x, f64(ROWS))[0],
        lambda g: g,
    ),
    "vmap of one": (
        lambda g: lambda x: tk.vmap(lambda y, z: g(y) * z, (0, None))(x[None], x)[0],
        lambda g: lambda x: g(x) * x,
    ),
    "vmap of none": (
        lambda g: lambda x: g(x) + tk.vmap(lambda c: g(x * c))(tk.zeros((0, 3), tk.float64)).sum(0),
        lambda g: g,
    ),
}


@dataclass(frozen=True)
class Nesting:
    """Parts, applied one after the other, and transforms of that, the innermost first."""

    parts: tuple[str, ...]
    transforms: tuple[str, ...]

    def built(self, which: int) -> Function:
        """The function: 0 with the transforms, 1 with their definition."""

        def f(x: Tensor) -> Tensor:
            for part in self.parts:
                x = PARTS[part](x)
            return x

        for name in self.transforms:
            f = TRANSFORMS[name][which](f)
        return f


nestings = st.builds(
    Nesting,
    st.lists(st.sampled_from(sorted(PARTS)), min_size=1, max_size=3).map(tuple),
    st.lists(st.sampled_from(sorted(TRANSFORMS)), min_size=1, max_size=4).map(tuple),
)


def check(nesting: Nesting) -> None:
    x = f64([0.4, -0.7, 1.1])
    result, expected = nesting.built(0)(x), nesting.built(1)(x)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype) == ((3,), tk.float64)
    wanted = array(expected)
    np.testing.assert_allclose(array(result), wanted, rtol=1e-9, atol=1e-9 * (1.0 + np.abs(wanted).max()))


@each_of("outer", TRANSFORMS)
@pytest.mark.parametrize("inner", TRANSFORMS)
def test_each_transform_of_each_equals_the_loop(outer, inner):
    check(Nesting(("gather", "tanh of a product", "gradient at a constant"), (inner, outer)))


@example(Nesting(("two results",), ("linearize",)))
@example(Nesting(("sin",), ("custom_jvp", "linearize", "grad")))  # a tangent below the level of the operands
@given(nestings)
@settings(max_examples=examples(120))
def test_a_random_nesting_equals_the_loop(nesting):
    check(nesting)
