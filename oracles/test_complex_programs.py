"""Random programs of complex numbers, with their derivatives to third order, compared with JAX."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tensorken as tk

jax.config.update("jax_enable_x64", True)

Step = Callable[[Any, Any, Any], Any]

STEPS: tuple[Step, ...] = (
    lambda xp, a, b: a + b,
    lambda xp, a, b: a - 2 * b,
    lambda xp, a, b: a * b,
    lambda xp, a, b: a / (b + 3),
    lambda xp, a, b: a * (1 - 2j) + 0.5,
    lambda xp, a, b: xp.conj(a) * b,
    lambda xp, a, b: xp.real(a) * b,
    lambda xp, a, b: a - 1j * xp.imag(b),
    lambda xp, a, b: xp.abs(a + 0.5) * b,
    lambda xp, a, b: xp.angle(a + 2.5) + b,
    lambda xp, a, b: xp.exp(a * 0.3),
    lambda xp, a, b: xp.log(a + 3),
    lambda xp, a, b: xp.sqrt(a + 2.5j),
    lambda xp, a, b: xp.sin(a) + b,
    lambda xp, a, b: xp.cos(a) * 0.5,
    lambda xp, a, b: xp.tanh(a * 0.5),
    lambda xp, a, b: (a + 3) ** (0.3 * b),
    lambda xp, a, b: a**2 + b**3 * 0.1,
    lambda xp, a, b: 1 / (a + 3j),
    lambda xp, a, b: xp.arcsin(a * 0.3),
    lambda xp, a, b: xp.arctan(a * 0.3) + b,
    # Left of the imaginary axis JAX takes the other branch for the derivative, 1 / sqrt((z - 1)(z + 1)).
    lambda xp, a, b: xp.arccosh(xp.sqrt(a) + 2),
    lambda xp, a, b: xp.expm1(a * 0.2) - xp.log1p(b * 0.2),
    lambda xp, a, b: xp.where(xp.real(a) > xp.imag(b), a, b),
    lambda xp, a, b: xp.sum(a) * b * 0.3,
    lambda xp, a, b: xp.cumsum(a) - xp.prod(b) * 0.2,
    lambda xp, a, b: xp.outer(a, b) @ xp.conj(a) * 0.2,
    lambda xp, a, b: xp.vdot(a, b) * a * 0.3,
    lambda xp, a, b: xp.roll(a, 1)[::-1] + b[xp.asarray([0, 2, 0])],
    lambda xp, a, b: xp.concatenate([a[:1], b[1:]]),
)


def program(seed: int) -> Callable[[Any, Any], Any]:
    """A real-valued function of a namespace and three complex numbers, of 3 to 8 random steps."""
    rng = random.Random(seed)
    steps = [(rng.choice(STEPS), rng.random(), rng.random()) for _ in range(rng.randint(3, 8))]

    def f(xp: Any, z: Any) -> Any:
        values = [z]
        for step, i, j in steps:
            values.append(step(xp, values[int(i * len(values))], values[-1 - int(j * min(len(values), 2))]))
        y = values[-1] + values[len(values) // 2]
        return (xp.real(y) * xp.imag(y) + xp.abs(y + 0.1)).sum()

    return f


def derivatives(lib: Any, f: Callable[[Any], Any], z: Any, u: Any, v: Any) -> list[Any]:
    """The value, the gradient, its derivative along u, and the derivative of that along v."""
    gradient = lib.grad(f)

    def second(z: Any) -> Any:
        return lib.jvp(gradient, (z,), (u,))[1]

    return [f(z), gradient(z), *lib.jvp(second, (z,), (v,))]


def check(seed: int) -> None:
    f, rng = program(seed), np.random.default_rng(seed)
    z, u, v = (rng.normal(size=3) + 1j * rng.normal(size=3) for _ in range(3))
    expected = jax.jit(lambda *xs: derivatives(jax, lambda z: f(jnp, z), *xs))(z, u, v)
    found = derivatives(tk, lambda z: f(tk, z), *map(tk.asarray, (z, u, v)))
    for order, (y, right) in enumerate(zip(found, expected, strict=True)):
        a, b = np.asarray(y), np.asarray(right)
        assert np.abs(a - b).max() <= 1e-9 * (1 + np.abs(b).max()), (
            f"seed {seed}, order {order}: {a}, not {b}"
        )


@pytest.mark.parametrize("seed", range(8))
def test_derivatives_to_third_order_are_those_of_jax(seed):
    check(seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(8, 300))
def test_many_derivatives_to_third_order_are_those_of_jax(seed):
    check(seed)
