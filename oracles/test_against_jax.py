"""Values and derivatives compared with JAX: every case in both modes, for orders 1 and 2, with and without vmap."""

from __future__ import annotations

import random
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special
import numpy as np
import pytest

import tensorken as tk
from oracles.cases import Case, Draw, all_cases

jax.config.update("jax_enable_x64", True)

EXAMPLES = 3


class JaxNames:
    """JAX's functions in one namespace, as in Tensorken."""

    def __getattr__(self, name: str) -> Any:
        for module in (jnp, jax.nn, jax.scipy.special):
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(name)


def drawn(case: Case, lead: tuple[int, ...], seed: object) -> list[Any]:
    """Operands of a case as numpy arrays, with the leading axes `lead`; no two elements are close to each other."""
    rng = random.Random(f"{case.name} {seed}")

    def operand(draw: Draw) -> Any:
        shape = (*lead, *draw.shape)
        count = int(np.prod(shape))
        steps = [(k + rng.uniform(0.25, 0.75)) / count for k in range(count)]
        rng.shuffle(steps)
        x = np.array([draw.low + (draw.high - draw.low) * s for s in steps]).reshape(shape)
        return x if draw.prepare is None else draw.prepare(x)

    return [operand(draw) for draw in case.operands]


def derivatives(library: Any, xp: Any, case: Case) -> Any:
    """A function of operands and tangents that returns the value and its first and second derivatives in all modes."""

    def value(*xs: Any) -> Any:
        return case.expression(xp, *xs)

    def leaves(y: Any) -> list[Any]:
        return list(y) if isinstance(y, tuple) else [y]

    def loss(*xs: Any) -> Any:
        total = 0.0
        for k, y in enumerate(leaves(value(*xs))):
            weights = np.cos(np.arange(int(np.prod(y.shape)), dtype="float64") + k).reshape(y.shape)
            total = total + (y * xp.asarray(weights)).sum()
        return total

    def everything(xs: Any, ts: Any) -> Any:
        gradient = library.grad(loss, tuple(range(len(xs))))

        def push(*xs: Any) -> Any:
            return library.jvp(value, tuple(xs), tuple(ts))[1]

        def push_loss(*xs: Any) -> Any:
            return library.jvp(loss, tuple(xs), tuple(ts))[1]

        results = {"value": leaves(value(*xs)), "reverse": gradient(*xs), "forward": leaves(push(*xs))}
        if case.orders > 1:
            results["forward over reverse"] = library.jvp(gradient, tuple(xs), tuple(ts))[1]
            results["reverse over forward"] = library.grad(push_loss, tuple(range(len(xs))))(*xs)
            results["forward over forward"] = [library.jvp(push_loss, tuple(xs), tuple(ts))[1]]
            results["reverse over reverse"] = library.grad(
                lambda *xs: sum((g * t).sum() for g, t in zip(gradient(*xs), ts, strict=True)),
                tuple(range(len(xs))),
            )(*xs)
        return {name: list(values) for name, values in results.items()}

    return everything


CASES = all_cases()
NAMES = JaxNames()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_values_and_derivatives_equal_those_of_jax(case: Case) -> None:
    """Under vmap and for one example; JAX runs only the batch, since its compilation takes most of the time."""
    ours, theirs = derivatives(tk, tk, case), jax.jit(jax.vmap(derivatives(jax, NAMES, case)))
    xs, ts = drawn(case, (EXAMPLES,), "x"), [np.asarray(t) * 0.5 for t in drawn(case, (EXAMPLES,), "t")]
    expected = {name: [np.asarray(y) for y in values] for name, values in theirs(xs, ts).items()}
    compare(case, tk.vmap(ours)(*as_tensors(xs, ts)), expected)
    first = {name: [y[0] for y in values] for name, values in expected.items()}
    compare(case, ours(*as_tensors([x[0] for x in xs], [t[0] for t in ts])), first)


def as_tensors(*groups: Any) -> list[Any]:
    return [[tk.tensor(np.asarray(x)) for x in group] for group in groups]


def compare(case: Case, actual: dict[str, Any], expected: dict[str, Any]) -> None:
    assert actual.keys() == expected.keys()
    for name, values in actual.items():
        assert len(values) == len(expected[name]), name
        for ours, theirs in zip(values, expected[name], strict=True):
            assert ours.shape == theirs.shape, name
            assert ours.dtype is tk.float64, name
            scale = max(1.0, float(np.abs(theirs).max(initial=0.0)))
            np.testing.assert_allclose(
                np.asarray(ours), theirs, rtol=case.tolerance, atol=case.tolerance * scale, err_msg=name
            )


def test_there_are_more_than_180_cases() -> None:
    assert len({case.name for case in CASES}) == len(CASES) > 180
