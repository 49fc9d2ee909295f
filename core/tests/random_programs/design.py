"""The intended differences between ways to run a program, which `docs/numerics.md` documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.tests.random_programs.program import Array, Step
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
    return named and any(x.dtype.kind == "f" and (x == 0).any() for x in operands.values())


def other_sign(found: Array, wanted: Array) -> Array:
    """Elements that would be equal if a zero had the other sign: negated, the other bool, or 0 and pi by atan2."""
    if wanted.dtype == bool:
        return np.ones(wanted.shape, bool)
    pi = wanted.dtype.type(np.pi) if wanted.dtype.kind == "f" else 0
    half_turns = np.isin(np.abs(found), (0, pi)) & np.isin(np.abs(wanted), (0, pi))
    return np.asarray((np.abs(found) == np.abs(wanted)) | half_turns)


def may_overflow(step: Step, operands: Mapping[str, Array], results: Sequence[Array]) -> bool:
    """Whether a product or sum of finite operands may overflow, in a step that adds more than two terms."""
    if step.row in ELEMENTWISE:
        return False
    for x in operands.values():
        if x.dtype.kind == "f" and x.size:
            with np.errstate(all="ignore"):
                finite = np.abs(x[np.isfinite(x)].astype("float64"))
            if finite.size and float(finite.max()) >= float(np.finfo(x.dtype).max) ** 0.5 / 32:
                return any(r.dtype.kind == "f" for r in results)
    return False


def sums_infinities(step: Step, operands: Operands, results: Sequence[Array]) -> bool:
    """Whether the step sums products with infinities, or quotients by zeros."""
    added = step.row in CONTRACTIONS or any(mark in step.text for mark in ("einsum", "@", "xp.sum("))
    divided = "xp.sum(" in step.text and " / " in step.text
    return added and any(
        x.dtype.kind == "f" and (np.isinf(x).any() or (divided and (x == 0).any())) for x in operands.values()
    )


RULES = (
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
)


def by_design(
    step: Step, operands: Operands, found: Array, wanted: Array, rules: Sequence[Rule] = RULES
) -> Array:
    """Which elements may differ when a step runs in another way."""
    allowed = np.zeros(wanted.shape, bool)
    for rule in rules:
        if rule.applies(step, operands, [wanted]):
            allowed |= rule.where(found, wanted)
    return allowed
