"""By design: where JAX differs on purpose; `docs/numerics.md` says so to users."""

from __future__ import annotations

import numpy as np

from core.tests.random_programs.design import RULES, Rule
from core.tests.random_programs.program import Array


def anywhere(found: Array, wanted: Array) -> Array:
    """All elements."""
    return np.ones(wanted.shape, bool)


def absolutely_near(found: Array, wanted: Array) -> Array:
    """Elements that differ by some hundred units of 1, or of the largest."""
    with np.errstate(all="ignore"):
        finite = np.abs(wanted[np.isfinite(wanted)].astype("float64"))
        room = 1000 * float(np.finfo(wanted.dtype).eps) * max([1.0, *finite.max(initial=0.0, keepdims=True)])
        return np.asarray(np.abs(found.astype("float64") - wanted.astype("float64")) <= room)


def subnormal(x: Array) -> bool:
    """Whether any number is subnormal."""
    if x.dtype.kind != "f":
        return False
    with np.errstate(all="ignore"):
        return bool(((x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny)).any())


RULES_OF_JAX = (
    *RULES,
    Rule(
        "JAX's derivative of tanh is 1 - tanh(x) ** 2, whose error is relative to 1; ours is as exact as tanh itself",
        lambda step, operands, results: (
            "tanh(" in step.text and "lambda" in step.text and results[0].dtype.kind == "f"
        ),
        absolutely_near,
    ),
    Rule(
        "JAX's softmax of an infinite maximum is NaN; here the maxima share it",
        lambda step, operands, results: any(
            "softmax" in step.text and x.dtype.kind == "f" and np.isposinf(x).any() for x in operands.values()
        ),
        anywhere,
    ),
    Rule(
        "XLA on a CPU takes subnormal numbers for zero",
        lambda step, operands, results: any(map(subnormal, [*operands.values(), *results])),
        anywhere,
    ),
)


REFUSED_BY_JAX = {
    "can't apply forward-mode autodiff (jvp) to a custom_vjp function": "here a rule of either kind has both modes",
    "Differentiation rule for 'custom_lin' not implemented": "the same, where a derivative is taken of that refusal",
    "scatter_mul gradients are only implemented if": "here products at places that repeat have derivatives",
}
"""What JAX says where it has no derivative, and Tensorken has one."""
