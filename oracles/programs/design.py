"""The intended differences from JAX, which `docs/numerics.md` documents."""

from __future__ import annotations

import numpy as np

from core.tests.random_programs.design import RULES, Rule, one_not_finite
from core.tests.random_programs.program import Array


def anywhere(found: Array, wanted: Array) -> Array:
    """All elements."""
    return np.ones(wanted.shape, bool)


def absolutely_near(found: Array, wanted: Array) -> Array:
    """Elements that differ by at most 1000 epsilons, relative to the largest element or 1."""
    with np.errstate(all="ignore"):
        finite = np.abs(wanted[np.isfinite(wanted)].astype("float64"))
        epsilon = float(np.finfo(wanted.dtype).eps)
        tolerance = 1000 * epsilon * max([1.0, *finite.max(initial=0.0, keepdims=True)])
        return np.asarray(np.abs(found.astype("float64") - wanted.astype("float64")) <= tolerance)


def subnormal(x: Array) -> bool:
    """Whether any number is subnormal, or so small that an intermediate result may be."""
    if x.dtype.kind != "f":
        return False
    with np.errstate(all="ignore"):
        return bool(((x != 0) & (np.abs(x) < 4 * np.finfo(x.dtype).tiny)).any())


RULES_OF_JAX = (
    *RULES,
    Rule(
        "JAX's derivative of tanh is 1 - tanh(x) ** 2, whose error is relative to 1; ours is as accurate as tanh",
        lambda step, operands, results: (
            "tanh(" in step.text and "lambda" in step.text and results[0].dtype.kind == "f"
        ),
        absolutely_near,
    ),
    Rule(
        "JAX's softmax is NaN where the maximum is infinite; ours shares the total of 1 among the maxima",
        lambda step, operands, results: any(
            "softmax" in step.text and x.dtype.kind == "f" and np.isinf(x).any() for x in operands.values()
        ),
        one_not_finite,
    ),
    Rule(
        "JAX computes functions of int64 in float64, Tensorken in float32",
        lambda step, operands, results: any(
            x.dtype.kind == "i" and (np.abs(x.astype("float64")) > 2**24).any() for x in operands.values()
        ),
        anywhere,
    ),
    Rule(
        "JAX's quantile multiplies an infinite neighbour by a weight of 0, which is NaN; ours ignores the neighbour",
        lambda step, operands, results: any(
            ("quantile" in step.text or "percentile" in step.text)
            and x.dtype.kind == "f"
            and np.isinf(x).any()
            for x in operands.values()
        ),
        one_not_finite,
    ),
    Rule(
        "XLA flushes subnormal numbers to zero on a CPU",
        lambda step, operands, results: any(map(subnormal, [*operands.values(), *results])),
        anywhere,
    ),
)


REFUSED_BY_JAX = {
    "can't apply forward-mode autodiff (jvp) to a custom_vjp function": "here either kind of rule has both modes",
    "Differentiation rule for 'custom_lin' not implemented": "the same limit, in a higher derivative",
    "scatter_mul gradients are only implemented if": "here products at repeated indices have derivatives",
}
"""Error messages of JAX for derivatives that it lacks and Tensorken has."""

LOSES_RULES = "with_jvp("
"""If a program contains this text, a derivative that differs from JAX's reverse mode is compared with its forward mode.

A rule of `custom_jvp` may define another derivative than the function's.  In a loop or a jitted function, JAX's
reverse mode differentiates the function itself from the second order on, so it disagrees with JAX's forward mode;
Tensorken's modes both use the rule at every order.
"""
