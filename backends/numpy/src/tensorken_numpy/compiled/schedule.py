"""The schedule: the order of equations, and the fusion groups that run one cache-sized block after the other.

Elementwise equations on many elements are fused, and with them reductions along trailing axes, whose results for a
block of rows are needed for that block only.  A group waits until an equation outside it needs one of its results,
so that equations far apart in the program can join.  A group that no equation joins for a while is scheduled, as it
keeps operands alive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tensorken_numpy.arrays import Sizes
from tensorken_numpy.compiled.predicates import is_elementwise

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Program, Variable

BLOCK_SIZE = 32768
"""How many elements are computed at a time, so that temporaries stay in the cache."""

MAX_ROW = 2 * BLOCK_SIZE
"""The most elements of a row that is reduced within a group."""

MAX_WAIT = 512
"""The number of equations after which a group no longer waits for others to join."""

REDUCTIONS = frozenset({"sum", "prod", "max", "min"})
ROW_OPS = frozenset({"softmax", "log_softmax", "logsumexp"})


@dataclass(slots=True, eq=False)
class FusionGroup:
    """Equations that run block by block.

    Attributes:
        shape: of the arrays that are divided into blocks.
        lead: only axes before this one are cut.
        scope: of all its equations.
        members: the equations, with their indices in the program.
        last_index: index of the last of them.
        merged_into: the group that this one was merged into.
    """

    shape: Sizes
    lead: int
    scope: int
    members: list[tuple[int, Equation]]
    last_index: int
    merged_into: FusionGroup | None = None


Unit: TypeAlias = "Equation | FusionGroup"


def schedule(
    program: Program, compact: dict[Variable, Sizes], groupable: Callable[[Equation], bool]
) -> list[Unit]:
    """The equations in an order in which they can run, with fusion groups in place of their members."""
    units: list[Unit] = []
    waiting: dict[FusionGroup, None] = {}  # ordered by `last_index`
    producers: dict[Variable, FusionGroup] = {}

    def emit(group: FusionGroup) -> None:
        del waiting[group]
        group.members.sort(key=lambda member: member[0])
        units.append(group)

    for index, equation in enumerate(program.equations):
        sources = [_final_group(producers[v]) for v in equation.operands if v in producers]
        needed = [group for group in dict.fromkeys(sources) if group in waiting]
        current = _new_group(index, equation, compact, bool(needed)) if groupable(equation) else None
        joined = []
        if current is not None:
            for group in needed:
                shape_and_lead = _merged_shape(group, current)
                if shape_and_lead is not None:
                    current = _merge(group, current, shape_and_lead)
                    joined.append(group)
            if not joined and (equation.op.name == "expand" or math.prod(current.shape) <= BLOCK_SIZE):
                current = None
        for group in needed:
            if group in joined:
                del waiting[group]
            else:
                emit(group)
        if current is None:
            units.append(equation)
        else:
            current.last_index = index
            waiting[current] = None
            producers.update(dict.fromkeys(equation.results, current))
        while waiting and index - (oldest := next(iter(waiting))).last_index > MAX_WAIT:
            emit(oldest)
    for group in list(waiting):
        emit(group)
    return units


def _final_group(group: FusionGroup) -> FusionGroup:
    while group.merged_into is not None:
        group = group.merged_into
    return group


def _new_group(
    index: int, equation: Equation, compact: dict[Variable, Sizes], follows: bool
) -> FusionGroup | None:
    """A new group of this equation; None if it cannot be in a group."""
    name = equation.op.name
    shape = compact[equation.results[0]]
    lead = len(shape)
    if name in REDUCTIONS or name in ROW_OPS:
        (axes,) = equation.params
        shape = compact[equation.operands[0]]
        lead = min(axes, default=lead)
        if shape != equation.operands[0].shape:
            return None
    elif not is_elementwise(equation) and not (name == "expand" and follows):
        return None
    group = FusionGroup(shape, lead, equation.scope, [(index, equation)], index)
    return group if _is_divisible(shape, lead) else None


def _merged_shape(a: FusionGroup, b: FusionGroup) -> tuple[Sizes, int] | None:
    """The shape and lead of the merged group; None if no block of rows suits both."""
    if a.scope != b.scope or len(a.shape) != len(b.shape):
        return None
    shape, lead = [], min(a.lead, b.lead)
    for i, (n, m) in enumerate(zip(a.shape, b.shape, strict=True)):
        if n != m:
            if n != 1 != m:
                return None
            lead = min(lead, i)
        shape.append(max(n, m))
    return (tuple(shape), lead) if _is_divisible(tuple(shape), lead) else None


def _merge(a: FusionGroup, b: FusionGroup, shape_and_lead: tuple[Sizes, int]) -> FusionGroup:
    """Merge the smaller of two groups into the larger one."""
    large, other = (a, b) if len(a.members) >= len(b.members) else (b, a)
    large.members += other.members
    large.shape, large.lead = shape_and_lead
    other.merged_into = large
    return large


def _is_divisible(shape: Sizes, lead: int) -> bool:
    return math.prod(shape[:lead]) > 1 and (lead == len(shape) or math.prod(shape[lead:]) <= MAX_ROW)
