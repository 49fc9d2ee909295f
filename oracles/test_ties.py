"""Derivatives at ties compared with JAX: the ties of the law derivatives.decisions, and the documented differences."""

from __future__ import annotations

import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from oracles.test_against_jax import JaxNames
from tensorken_conformance.laws.derivatives.ties import TIES, Tie

jax.config.update("jax_enable_x64", True)

EXPRESSIONS_FOR_JAX = {
    "topk": lambda x: jax.lax.top_k(x, 2)[0],
    "topk-smallest": lambda x: -jax.lax.top_k(-x, 2)[0],
    "running-maximum": lambda x: jax.lax.scan(lambda m, row: (jnp.maximum(m, row),) * 2, x[:, 0], x.T)[1],
}
"""Expressions of the rows that JAX writes differently."""

DIFFERENT = {
    "sort-descending": "equal elements come in reverse order",
    "fmax": "the derivative of a tie goes to one operand",
    "fmin": "the derivative of a tie goes to one operand",
    "spread-of-equals": "NaN",
}
"""The rows where JAX's derivative differs, with JAX's result; docs/numerics.md documents them."""


def gradients_in_jax(tie: Tie, name: str, w: Any, xs: Any) -> list[Any]:
    """JAX's gradients of the sum of the row's elements, multiplied by `w`."""
    call = EXPRESSIONS_FOR_JAX.get(name) or (lambda *xs: tie.call(JaxNames(), *xs))
    loss = lambda *xs: (call(*xs) * w).sum()  # noqa: E731
    return [np.asarray(g) for g in jax.jit(jax.grad(loss, tuple(range(len(xs)))))(*map(jnp.asarray, xs))]


@pytest.mark.parametrize("name", sorted(TIES))
def test_derivatives_at_ties_equal_those_of_jax(name: str) -> None:
    tie, rng = TIES[name], random.Random(name)
    xs = tie.draw(rng)
    value = tie.value(*xs)
    w = np.array([rng.choice((1.0, 2.0, 3.0, -1.0)) for _ in range(value.size)]).reshape(value.shape)
    theirs, ours = gradients_in_jax(tie, name, w, xs), tie.gradients(w, xs)
    same = all(np.allclose(a, b, rtol=1e-12, atol=1e-12) for a, b in zip(theirs, ours, strict=True))
    assert same is (name not in DIFFERENT), (theirs, ours)
