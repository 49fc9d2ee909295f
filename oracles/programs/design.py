"""By design: where ways to run a program differ on purpose; `docs/numerics.md` says so to users."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from oracles.programs.program import Array, Step
from oracles.programs.steps import elementwise

ELEMENTWISE = frozenset(row.name for row in elementwise.ROWS)


@dataclass(frozen=True)
class Rule:
    """A difference that is meant.

    Attributes:
        ways: which ways differ.
        reason: why.
        applies: whether a step, with these operands and these results, may differ.
    """

    ways: tuple[str, ...]
    reason: str
    applies: Callable[[Step, Mapping[str, Array], Sequence[Array]], bool]


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


RULES = (
    Rule(
        ("reference", "JAX"),
        "where a sum or a product overflows on the way, infinities and NaN depend on the order of the terms",
        may_overflow,
    ),
    Rule(
        ("JAX",),
        "XLA on a CPU takes subnormal numbers for zero",
        lambda step, operands, results: any(map(subnormal, [*operands.values(), *results])),
    ),
)


def by_design(way: str, step: Step, operands: Mapping[str, Array], results: Sequence[Array]) -> bool:
    """Whether a step may differ when it runs in that way."""
    return any(way in rule.ways and rule.applies(step, operands, results) for rule in RULES)
