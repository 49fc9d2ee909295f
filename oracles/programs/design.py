"""By design: where ways to run a program differ on purpose; `docs/numerics.md` says so to users."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from oracles.programs.program import Array, Step
from oracles.programs.steps import elementwise, products

CONTRACTIONS = frozenset(row.name for row in products.ROWS)
ELEMENTWISE = frozenset(row.name for row in elementwise.ROWS)


Operands = Mapping[str, Array]


@dataclass(frozen=True)
class Rule:
    """A difference that is meant.

    Attributes:
        ways: which ways differ.
        reason: why.
        applies: whether results of a step may differ, from its operands and what eager evaluation gave.
        where: which elements may, from what was found and what eager evaluation gave.
    """

    ways: tuple[str, ...]
    reason: str
    applies: Callable[[Step, Operands, Sequence[Array]], bool]
    where: Callable[[Array, Array], Array]


def anywhere(found: Array, wanted: Array) -> Array:
    """All elements."""
    return np.ones(wanted.shape, bool)


def one_not_finite(found: Array, wanted: Array) -> Array:
    """Elements of which one is not finite."""
    return np.asarray(~np.isfinite(found) | ~np.isfinite(wanted))


def none_finite(found: Array, wanted: Array) -> Array:
    """Elements that are infinities or NaN both times."""
    return np.asarray(~np.isfinite(found) & ~np.isfinite(wanted))


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


def may_overflow(step: Step, operands: Mapping[str, Array], results: Sequence[Array]) -> bool:
    """Whether a product or sum of finite operands may be beyond the range, in a step that adds up more than two."""
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
    """Whether products with infinities are added up."""
    added = step.row in CONTRACTIONS or "einsum" in step.text or "@" in step.text
    return added and any(x.dtype.kind == "f" and np.isinf(x).any() for x in operands.values())


RULES = (
    Rule(
        ("reference", "JAX", "jit", "vmap"),
        "where a sum or a product overflows on the way, infinities and NaN depend on the order of the terms",
        may_overflow,
        one_not_finite,
    ),
    Rule(
        ("reference", "JAX", "jit", "vmap"),
        "a factor that does not vary along the axes of a sum is taken out of it, an infinite one too",
        sums_infinities,
        none_finite,
    ),
    Rule(
        ("JAX",),
        "JAX's derivative of tanh is 1 - tanh(x) ** 2, whose error is relative to 1; ours is as exact as tanh itself",
        lambda step, operands, results: (
            "tanh(" in step.text and "lambda" in step.text and results[0].dtype.kind == "f"
        ),
        absolutely_near,
    ),
    Rule(
        ("JAX",),
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


def by_design(way: str, step: Step, operands: Operands, found: Array, wanted: Array) -> Array:
    """Which elements may differ when a step runs in that way."""
    allowed = np.zeros(wanted.shape, bool)
    for rule in RULES:
        if way in rule.ways and rule.applies(step, operands, [wanted]):
            allowed |= rule.where(found, wanted)
    return allowed
