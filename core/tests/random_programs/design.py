"""The intended differences between ways to run a program, which `docs/numerics.md` documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.tests.random_programs.numbers import Array, inexact, kind, largest, magnitudes, parts
from core.tests.random_programs.program import Step
from core.tests.random_programs.steps import elementwise, products

CONTRACTIONS = frozenset(row.name for row in products.ROWS)
ELEMENTWISE = frozenset(row.name for row in elementwise.ROWS)


Operands = Mapping[str, Array]


@dataclass(frozen=True)
class Rule:
    """An intended difference.

    Attributes:
        reason: the reason for it.
        applies: whether results of a step may differ, from its operands and eager results.
        where: which elements may differ, from the actual and the eager result.
    """

    reason: str
    applies: Callable[[Step, Operands, Sequence[Array]], bool]
    where: Callable[[Array, Array], Array]


def one_not_finite(found: Array, wanted: Array) -> Array:
    """Elements that are not finite in one of the two results."""
    return np.asarray(~np.isfinite(found) | ~np.isfinite(wanted))


def none_finite(found: Array, wanted: Array) -> Array:
    """Elements that are infinite or NaN in both results."""
    return np.asarray(~np.isfinite(found) & ~np.isfinite(wanted))


def zeros(found: Array, wanted: Array) -> Array:
    """Elements that are zeros in both results."""
    return np.asarray((found == 0) & (wanted == 0))


def chooses_zeros(step: Step, operands: Operands, results: Sequence[Array]) -> bool:
    """Whether the step selects among operands, which may be zeros of both signs."""
    return any(name in step.text for name in ("max", "min", "clip", "relu", "ptp"))


def sees_signs(step: Step, operands: Operands, results: Sequence[Array]) -> bool:
    """Whether the result depends on the sign of a zero among the operands."""
    named = any(name in step.text for name in ("atan2", "copysign", "signbit", "reciprocal", " / "))
    return named and any(inexact(x) and any((p == 0).any() for p in parts(x)) for x in operands.values())


def other_sign(found: Array, wanted: Array) -> Array:
    """Elements that would be equal if a zero had the other sign: negated, the other bool, or 0 and pi by atan2."""
    if wanted.dtype == bool:
        return np.ones(wanted.shape, bool)
    pi = float(np.asarray(np.pi, wanted.dtype)) if kind(wanted) == "f" else 0.0
    same = np.ones(wanted.shape, bool)
    for a, b in zip(parts(found), parts(wanted), strict=True):
        half_turns = np.isin(np.abs(a), (0, pi)) & np.isin(np.abs(b), (0, pi))
        same &= (np.abs(a) == np.abs(b)) | half_turns | (np.isnan(a) & np.isnan(b))
    return same


def may_overflow(step: Step, operands: Mapping[str, Array], results: Sequence[Array]) -> bool:
    """Whether a product or sum of finite operands may overflow, in a step that adds more than two terms."""
    if step.row in ELEMENTWISE:
        return False
    for x in operands.values():
        if inexact(x) and x.size:
            sizes = magnitudes(x)
            if sizes[np.isfinite(sizes)].max(initial=0.0) >= largest(x) ** 0.5 / 32:
                return any(map(inexact, results))
    return False


def sums_infinities(step: Step, operands: Operands, results: Sequence[Array]) -> bool:
    """Whether the step sums products with infinities, or quotients by zeros."""
    added = step.row in CONTRACTIONS or any(mark in step.text for mark in ("einsum", "@", "xp.sum("))
    divided = "xp.sum(" in step.text and " / " in step.text
    return added and any(
        inexact(x) and (np.isinf(x).any() or (divided and (x == 0).any())) for x in operands.values()
    )


def of_nan(step: Step, operands: Operands, results: Sequence[Array]) -> bool:
    """Whether the result depends on the sign of a NaN."""
    named = any(name in step.text for name in ("copysign", "signbit"))
    return named and any(inexact(x) and np.isnan(x).any() for x in operands.values())


RULES = (
    Rule("the sign of a NaN that an op makes is not defined", of_nan, lambda found, wanted: wanted == wanted),
    Rule("the maximum and the minimum of 0.0 and -0.0 may be either", chooses_zeros, zeros),
    Rule("a sum of zeros may have either sign where a factor is moved out of it", sees_signs, other_sign),
    Rule(
        "where an intermediate result overflows, infinities and NaN depend on the order of the terms",
        may_overflow,
        one_not_finite,
    ),
    Rule(
        "a factor that is constant along the axes of a sum is moved out of it, also an infinite one",
        sums_infinities,
        none_finite,
    ),
    Rule(
        "the parts of a complex number of which one is infinite or NaN depend on the order of the terms",
        lambda step, operands, results: any(kind(x) == "c" for x in (*operands.values(), *results)),
        none_finite,
    ),
)


REFUSALS = {
    "does not fit": "a Python number is outside of the range of the tensor's dtype, as for numpy",
    "complex numbers have no order": "the array API standard has no order of them; numpy has one in some functions",
    "no elements to reduce": "numpy and JAX have no extreme of no elements either",
    "a transform needs at least 1 element": "numpy and JAX transform no empty axis either",
    "take x.real, x.imag or abs(x)": "the function is not defined for complex numbers",
}
"""Parts of messages of errors for steps of wide programs that are refused by design, with the reasons."""


def refused_by_rule(error: Exception) -> str | None:
    """The part of the message by which a refusal is intended; None if it is not."""
    return next((part for part in REFUSALS if part in str(error)), None)


def by_design(
    step: Step, operands: Operands, found: Array, wanted: Array, rules: Sequence[Rule] = RULES
) -> Array:
    """Which elements may differ when a step runs in another way."""
    allowed = np.zeros(wanted.shape, bool)
    operands = {name: np.asarray(x) for name, x in operands.items()}
    for rule in rules:
        if rule.applies(step, operands, [wanted]):
            allowed |= rule.where(found, wanted)
    return allowed
