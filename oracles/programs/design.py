"""The intended differences from JAX, which `docs/numerics.md` documents."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from core.tests.random_programs.design import RULES, Operands, Rule, one_not_finite
from core.tests.random_programs.numbers import (
    Array,
    epsilon,
    inexact,
    kind,
    magnitudes,
    parts,
    smallest_normal,
)
from core.tests.random_programs.program import Step


def everywhere(actual: Array, expected: Array) -> Array:
    """All elements."""
    return np.ones(expected.shape, bool)


def within_tolerance(actual: Array, expected: Array) -> Array:
    """The elements that differ by at most 10,000 epsilons, relative to the largest element or 1."""
    with np.errstate(all="ignore"):
        sizes = magnitudes(expected)
        tolerance = 10_000 * epsilon(expected) * max(1.0, float(sizes[np.isfinite(sizes)].max(initial=0.0)))
        return np.all(
            [np.abs(a - b) <= tolerance for a, b in zip(parts(actual), parts(expected), strict=True)], axis=0
        )


def subnormal(x: Array) -> bool:
    """Whether any number is subnormal, or so small that an intermediate result may be subnormal."""
    if not inexact(x):
        return False
    bound = 4 * smallest_normal(x)
    with np.errstate(all="ignore"):
        return any(bool(((part != 0) & (np.abs(part) < bound)).any()) for part in parts(x))


ALONE = (
    "jit of a number alone",
    "jit that returns a number",
    "fori_loop of a number",
    "grad in a number",
)
"""Rows with functions of Python numbers, or derivatives by them.

Their results are tensors of the numbers' default dtypes; in JAX they still take the dtypes of others.  JAX adds two
bools as bools, Tensorken as Python does.
"""


def is_alone(step: Step) -> bool:
    """Whether the step is of one of these rows, or repeats such a step."""
    return step.row in ALONE or "(lambda r: r[0] * r[1])(xp.jit(" in step.text


def adds_bools(step: Step, operands: Operands) -> bool:
    """Whether a function of bools alone adds them."""
    return is_alone(step) and any(type(x) is bool for x in operands.values())


def has_negative_number(step: Step, operands: Operands, results: Sequence[Array]) -> bool:
    """Whether an unsigned tensor meets a negative Python number."""
    numbers = [x for x in operands.values() if x.ndim == 0 and kind(x) in "if"]
    negative = any(x < 0 for x in numbers) or re.search(r"(< |, )-\d", step.text) is not None
    return negative and any(kind(x) == "u" for x in operands.values())


def within_float32(actual: Array, expected: Array) -> Array:
    """The elements that agree to the digits of float32."""
    with np.errstate(all="ignore"):
        sizes = magnitudes(expected)
        return np.abs(actual - expected) <= 1e-6 * max(1.0, float(sizes[np.isfinite(sizes)].max(initial=0.0)))


RULES_OF_JAX = (
    *RULES,
    Rule(
        "a number that jit returns is a tensor; JAX's is still a number, which takes the dtypes of others",
        lambda step, operands, results: "(lambda r: r[0] * r[1])(xp.jit(" in step.text,
        everywhere,
    ),
    Rule(
        "JAX's top_k has 0.0 before -0.0, which are equal",
        lambda step, operands, results: (
            "topk" in step.row and any(inexact(x) and (x == 0).any() for x in operands.values())
        ),
        everywhere,
    ),
    Rule(
        "the result of a function of Python floats alone is a float32; JAX's with 64 bits enabled is a float64",
        lambda step, operands, results: is_alone(step),
        within_float32,
    ),
    Rule(
        "JAX's derivative of tanh, 1 - tanh(x) ** 2, has an error relative to 1; Tensorken's is relative to the result",
        lambda step, operands, results: (
            "tanh(" in step.text and "lambda" in step.text and inexact(results[0])
        ),
        within_tolerance,
    ),
    Rule(
        "JAX's softmax is NaN where the maximum is infinite; Tensorken's shares the total of 1 among the maxima",
        lambda step, operands, results: any(
            "softmax" in step.text and inexact(x) and np.isinf(x).any() for x in operands.values()
        ),
        one_not_finite,
    ),
    Rule(
        "JAX computes functions of int64 in float64, Tensorken in float32",
        lambda step, operands, results: any(
            kind(x) in "iu" and (np.abs(x.astype("float64")) > 2**24).any() for x in operands.values()
        ),
        everywhere,
    ),
    Rule(
        "JAX's quantile multiplies an infinite neighbour by a weight of 0, which is NaN; Tensorken's ignores it",
        lambda step, operands, results: any(
            ("quantile" in step.text or "percentile" in step.text) and inexact(x) and np.isinf(x).any()
            for x in operands.values()
        ),
        one_not_finite,
    ),
    Rule(
        "JAX's sums and products along an axis wrap in narrow integers; Tensorken's have 32 bits, as numpy's have 64",
        lambda step, operands, results: (
            ("cumsum(" in step.text or "cumprod(" in step.text or "cumulative_" in step.text)
            and any(kind(x) in "iu" and x.dtype.itemsize < 4 for x in operands.values())
        ),
        everywhere,
    ),
    Rule(
        "JAX compares and clips unsigned integers with negative Python numbers modulo 2**bits; Tensorken by value",
        has_negative_number,
        everywhere,
    ),
    Rule(
        "JAX's traced powers of integers read the six lowest bits of the exponent only",
        lambda step, operands, results: (
            "**" in step.text and any(x.ndim == 0 and kind(x) == "i" and x >= 64 for x in operands.values())
        ),
        everywhere,
    ),
    Rule(
        "Tensorken's Cholesky factor of a matrix that is not positive definite is NaN above the diagonal, too",
        lambda step, operands, results: "cholesky" in step.text,
        one_not_finite,
    ),
    Rule(
        "JAX's all and any of complex numbers see their real parts only",
        lambda step, operands, results: (
            step.row in ("all", "any") and any(kind(x) == "c" for x in operands.values())
        ),
        everywhere,
    ),
    Rule(
        "XLA flushes subnormal numbers to zero on a CPU",
        lambda step, operands, results: any(map(subnormal, [*operands.values(), *results])),
        everywhere,
    ),
)


NEVER_ENDS = "JAX's gcd of the smallest integer never ends"


def never_ends(step: Step, operands: Operands) -> bool:
    """Whether JAX would compute this step for ever."""
    named = "gcd(" in step.text or "lcm(" in step.text
    arrays = [np.asarray(x) for x in operands.values()]
    return named and any(kind(x) == "i" and (x == np.iinfo(x.dtype).min).any() for x in arrays)


REFUSED_BY_JAX = {
    NEVER_ENDS: "Tensorken's wraps, as numpy's",
    "can't apply forward-mode autodiff (jvp) to a custom_vjp function": "Tensorken's custom_vjp has forward mode",
    "Differentiation rule for 'custom_lin' not implemented": "the same limit for a higher derivative",
    "scatter_mul gradients are only implemented if": "Tensorken differentiates products at repeated indices",
}
"""Parts of error messages of JAX for derivatives that only Tensorken supports, with the reasons."""

KINK = "abs("
"""If a program contains this text and a complex leaf has a zero, only its first derivative is compared with JAX's.

The modulus has no derivative at 0.  Tensorken's derivatives of all orders are 0 there; JAX's first is 0, and its
second is that of the quotient by 1.
"""

CUT = "asin("
"""If a program contains this text and a leaf is complex, its derivatives are not compared with JAX's.

JAX's derivative of asin at a branch cut is that of the other side of the cut.
"""

LOSES_PRECISION, LOST = "tanh(", 1e-8
"""If a program contains this text, derivatives agree to a relative error of 1e-8.

JAX's derivative of tanh, 1 - tanh(x) ** 2, has an error relative to 1, which further derivatives multiply.
"""

LOSES_CUSTOM_RULES = "with_jvp("
"""If a program contains this text, a derivative that differs from JAX's reverse mode is compared with its forward mode.

A rule of `custom_jvp` may define another derivative than the function's.  In a loop or a jitted function, JAX's
reverse mode differentiates the function itself from the second order on, so it disagrees with JAX's forward mode;
Tensorken's modes both use the rule at every order.
"""
