"""Schedule: the order in which equations run, and which run together, one cache-sized block after the other.

Elementwise equations of many elements join, and with them reductions along trailing axes: what these give for a block
of rows is needed for that block only.  A group waits until something outside needs a result of it, so that equations
that stand apart in the program come together; one that nothing joins for a while is run, as it keeps operands alive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tensorken_numpy.compiled.smallness import is_elementwise
from tensorken_numpy.contraction import Sizes

if TYPE_CHECKING:
    from tensorken.programs.program import Equation, Program, Variable

BLOCK = 32768
"""How many elements are computed at a time: so few that what lies between stays in the cache."""

LONGEST_ROW = 2 * BLOCK
"""How many elements a row may have whose sum is taken within a group."""

PATIENCE = 512
"""For how many equations a group may wait for others to join."""

REDUCTIONS = frozenset({"sum", "prod", "max", "min"})
ROWS = frozenset({"softmax", "log_softmax", "logsumexp"})


@dataclass(slots=True)
class Group:
    """Equations that run block by block.

    Attributes:
        shape: what is divided into blocks.
        lead: blocks are cut along axes before this one alone.
        scope: of all its equations.
        members: the equations, with their places in the program.
        results: all that they define.
        touched: the place of the last of them.
    """

    shape: Sizes
    lead: int
    scope: int
    members: list[tuple[int, Equation]]
    results: set[Variable]
    touched: int


Unit: TypeAlias = "Equation | Group"


def schedule(
    program: Program, small: dict[Variable, Sizes], groupable: Callable[[Equation], bool]
) -> list[Unit]:
    """The equations of a program in an order in which they can be run, groups in place of their members."""
    units: list[Unit] = []
    waiting: list[Group] = []
    for place, equation in enumerate(program.equations):
        needed = [g for g in waiting if not g.results.isdisjoint(equation.operands)]
        own = _alone(place, equation, small, bool(needed)) if groupable(equation) else None
        joined = []
        if own is not None:
            for group in needed:
                both = merged(group, own)
                if both is not None:
                    own = both
                    joined.append(group)
            if not joined and (equation.op.name == "expand" or math.prod(own.shape) <= BLOCK):
                own = None
        for group in list(waiting):
            if group in joined:
                waiting.remove(group)
            elif group in needed or place - group.touched > PATIENCE:
                waiting.remove(group)
                units.append(group)
        if own is None:
            units.append(equation)
        else:
            waiting.append(own)
    return units + waiting


def _alone(place: int, equation: Equation, small: dict[Variable, Sizes], follows: bool) -> Group | None:
    """A group of this equation; None if it cannot be in any."""
    name = equation.op.name
    shape = small[equation.results[0]]
    lead = len(shape)
    if name in REDUCTIONS or name in ROWS:
        (axes,) = equation.params
        shape = small[equation.operands[0]]
        lead = min(axes, default=lead)
        if shape != equation.operands[0].shape:
            return None
    elif not is_elementwise(equation) and not (name == "expand" and follows):
        return None
    group = Group(shape, lead, equation.scope, [(place, equation)], set(equation.results), place)
    return group if _can_be_cut(shape, lead) else None


def merged(a: Group, b: Group) -> Group | None:
    """The two as one; None if no block of rows is what both are about."""
    if a.scope != b.scope or len(a.shape) != len(b.shape):
        return None
    shape, lead = [], min(a.lead, b.lead)
    for i, (n, m) in enumerate(zip(a.shape, b.shape, strict=True)):
        if n != m:
            if n != 1 != m:
                return None
            lead = min(lead, i)
        shape.append(max(n, m))
    if not _can_be_cut(tuple(shape), lead):
        return None
    return Group(
        tuple(shape), lead, a.scope, sorted([*a.members, *b.members], key=lambda m: m[0]), a.results | b.results,
        max(a.touched, b.touched),
    )  # fmt: skip


def _can_be_cut(shape: Sizes, lead: int) -> bool:
    return math.prod(shape[:lead]) > 1 and (lead == len(shape) or math.prod(shape[lead:]) <= LONGEST_ROW)
