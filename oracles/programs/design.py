"""By design: where JAX differs on purpose; `docs/numerics.md` says so to users."""

from __future__ import annotations

import numpy as np

from core.tests.random_programs.design import RULES, Rule, one_not_finite
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
    """Whether any number is subnormal, or so near that a part of it may be."""
    if x.dtype.kind != "f":
        return False
    with np.errstate(all="ignore"):
        return bool(((x != 0) & (np.abs(x) < 4 * np.finfo(x.dtype).tiny)).any())


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
        "JAX's softmax where the maximum is infinite is NaN; here the maxima share it",
        lambda step, operands, results: any(
            "softmax" in step.text and x.dtype.kind == "f" and np.isinf(x).any() for x in operands.values()
        ),
        one_not_finite,
    ),
    Rule(
        "JAX computes functions of int64 in float64, and here they are computed in float32",
        lambda step, operands, results: any(
            x.dtype.kind == "i" and (np.abs(x.astype("float64")) > 2**24).any() for x in operands.values()
        ),
        anywhere,
    ),
    Rule(
        "JAX's quantile multiplies an infinite neighbour by a share of 0, which is NaN; here it has no share",
        lambda step, operands, results: any(
            ("quantile" in step.text or "percentile" in step.text)
            and x.dtype.kind == "f"
            and np.isinf(x).any()
            for x in operands.values()
        ),
        one_not_finite,
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

LOSES_RULES = "with_jvp("
"""In programs with this, JAX's reverse mode is replaced by its forward mode where the two libraries differ.

A rule of `custom_jvp` may state another derivative than the function's.  Where such a function runs inside of a loop
or a jitted function, JAX's reverse mode differentiates the function itself from the second order on, and so disagrees
with its own forward mode; here both modes use the rule at every order.
"""
