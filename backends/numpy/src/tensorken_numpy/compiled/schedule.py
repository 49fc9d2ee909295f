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
    from tensorken_core.program.program import Equation, Program, Variable

BLOCK = 32768
"""How many elements are computed at a time: so few that what lies between stays in the cache."""

LONGEST_ROW = 2 * BLOCK
"""How many elements a row may have whose sum is taken within a group."""

PATIENCE = 512
"""For how many equations a group may wait for others to join."""

REDUCTIONS = frozenset({"sum", "prod", "max", "min"})
ROWS = frozenset({"softmax", "log_softmax", "logsumexp"})


@dataclass(slots=True, eq=False)
class Group:
    """Equations that run block by block.

    Attributes:
        shape: what is divided into blocks.
        lead: blocks are cut along axes before this one alone.
        scope: of all its equations.
        members: the equations, with their places in the program.
        touched: the place of the last of them.
        into: the group that this one has become part of.
    """

    shape: Sizes
    lead: int
    scope: int
    members: list[tuple[int, Equation]]
    touched: int
    into: Group | None = None


Unit: TypeAlias = "Equation | Group"


def schedule(
    program: Program, small: dict[Variable, Sizes], groupable: Callable[[Equation], bool]
) -> list[Unit]:
    """The equations of a program in an order in which they can be run, groups in place of their members."""
    units: list[Unit] = []
    waiting: dict[Group, None] = {}  # the one that was touched last is the last
    makers: dict[Variable, Group] = {}

    def emit(group: Group) -> None:
        del waiting[group]
        group.members.sort(key=lambda member: member[0])
        units.append(group)

    for place, equation in enumerate(program.equations):
        makes = [_last(makers[v]) for v in equation.operands if v in makers]
        needed = [group for group in dict.fromkeys(makes) if group in waiting]
        own = _alone(place, equation, small, bool(needed)) if groupable(equation) else None
        joined = []
        if own is not None:
            for group in needed:
                cut = _cut_of_both(group, own)
                if cut is not None:
                    own = _joined(group, own, cut)
                    joined.append(group)
            if not joined and (equation.op.name == "expand" or math.prod(own.shape) <= BLOCK):
                own = None
        for group in needed:
            if group in joined:
                del waiting[group]
            else:
                emit(group)
        if own is None:
            units.append(equation)
        else:
            own.touched = place
            waiting[own] = None
            makers.update(dict.fromkeys(equation.results, own))
        while waiting and place - (oldest := next(iter(waiting))).touched > PATIENCE:
            emit(oldest)
    for group in list(waiting):
        emit(group)
    return units


def _last(group: Group) -> Group:
    while group.into is not None:
        group = group.into
    return group


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
    group = Group(shape, lead, equation.scope, [(place, equation)], place)
    return group if _can_be_cut(shape, lead) else None


def _cut_of_both(a: Group, b: Group) -> tuple[Sizes, int] | None:
    """The shape and lead of two groups as one; None if no block of rows is what both are about."""
    if a.scope != b.scope or len(a.shape) != len(b.shape):
        return None
    shape, lead = [], min(a.lead, b.lead)
    for i, (n, m) in enumerate(zip(a.shape, b.shape, strict=True)):
        if n != m:
            if n != 1 != m:
                return None
            lead = min(lead, i)
        shape.append(max(n, m))
    return (tuple(shape), lead) if _can_be_cut(tuple(shape), lead) else None


def _joined(a: Group, b: Group, cut: tuple[Sizes, int]) -> Group:
    """The larger of two groups, with the members of the other."""
    large, other = (a, b) if len(a.members) >= len(b.members) else (b, a)
    large.members += other.members
    large.shape, large.lead = cut
    other.into = large
    return large


def _can_be_cut(shape: Sizes, lead: int) -> bool:
    return math.prod(shape[:lead]) > 1 and (lead == len(shape) or math.prod(shape[lead:]) <= LONGEST_ROW)
