"""Fusion groups: runs of elementwise equations of one shape, which a compiler can compute block by block, in the
cache.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tensorken.programs.passes.transposes import REDUCTIONS
from tensorken_core.language.op import OPS
from tensorken_core.program.program import Equation, Literal, Program, Variable

_CAST = OPS["cast"]


@dataclass(frozen=True, eq=False, slots=True)
class FusionGroup:
    """Equations that run together, one after another.

    Attributes:
        equations: elementwise equations of one shape and scope, and their reductions if requested; or one other
            equation.
        inputs: the variables that they use and other groups define, each once; no literals.
        outputs: the variables that they define and other groups use, or that the program returns.
    """

    equations: tuple[Equation, ...]
    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]


def is_elementwise(equation: Equation) -> bool:
    """Whether each element of the result depends only on the operands' elements at the same index."""
    return equation.op.elementwise or equation.op is _CAST


def fusion_groups(program: Program, reductions: bool = False) -> tuple[FusionGroup, ...]:
    """Partition the equations of a program into groups, in an order in which the groups can run.

    An elementwise equation joins the group of its operands if all its other operands can be computed before that group
    runs.  An equation of one operand that only one other group uses moves to that group, so that its value need not be
    stored.  Otherwise the order is that of the program.

    Args:
        program: after all passes.
        reductions: whether a group also includes sums, maxima and minima of its values; nothing in the group uses
            their results.

    >>> import tensorken as tk
    >>> program = tk.trace(lambda x: (tk.exp(x) * 2 + x).sum())(tk.ones(3))
    >>> [[e.op.name for e in group.equations] for group in fusion_groups(program)]
    [['exp', 'mul', 'add'], ['sum'], ['reshape']]
    >>> [[e.op.name for e in group.equations] for group in fusion_groups(program, reductions=True)]
    [['exp', 'mul', 'add', 'sum'], ['reshape']]
    """
    equations = program.equations
    member = _assign_groups(equations, reductions)
    keys = {g: _fusion_key(e) for g, e in zip(member, equations, strict=True) if e.op not in REDUCTIONS}
    consumers: dict[Variable, set[int]] = {}
    for v in program.outputs:
        consumers.setdefault(v, set()).add(-1)
    for i in range(len(equations) - 1, -1, -1):
        _sink(i, equations, member, keys, consumers)
        for v in equations[i].operands:
            consumers.setdefault(v, set()).add(member[i])
    return tuple(
        [
            _group(members, member[members[0]], equations, consumers)
            for members in _in_order(equations, member)
        ]
    )


def _fusion_key(equation: Equation) -> Any:
    """What all equations of a group have in common, their shape and scope; None if the equation is a group of its
    own.
    """
    return (equation.results[0].shape, equation.scope) if is_elementwise(equation) else None


def _assign_groups(equations: tuple[Equation, ...], reductions: bool) -> list[int]:
    """For each equation the number of its group.

    Groups have levels: a group uses only groups of lower levels, so groups can always run in the order of their
    levels.
    """
    member: list[int] = []
    level: list[int] = []  # of each group
    parent: list[int] = []  # a union-find forest: merged groups have one root
    key_of: list[Any] = []  # of each group: its fusion key, None if nothing can join it
    producer: dict[Variable, int] = {}
    reduced: set[Variable] = set()  # results of reductions, which exist only when the group is done

    def root(g: int) -> int:
        while parent[g] != g:
            parent[g] = parent[parent[g]]
            g = parent[g]
        return g

    for equation in equations:
        producers, highest, lowest = set(), -1, 0
        for v in equation.operands:
            if v in producer:
                g = root(producer[v])
                if v in reduced:
                    lowest = max(lowest, level[g] + 1)
                else:
                    producers.add(g)
                    highest = max(highest, level[g])
        is_reduction = reductions and equation.op in REDUCTIONS
        own_key = (equation.operands[0].shape, equation.scope) if is_reduction else _fusion_key(equation)
        top = [g for g in producers if level[g] == highest]
        if own_key is not None and top and highest >= lowest and all([key_of[g] == own_key for g in top]):
            joined = top[0]
            for other in top[1:]:
                parent[other] = joined
            if is_reduction:
                reduced.update(equation.results)
        else:
            joined = len(level)
            level.append(max(highest + 1, lowest))
            parent.append(joined)
            key_of.append(None if is_reduction else own_key)
        member.append(joined)
        for v in equation.results:
            producer[v] = joined
    return [root(g) for g in member]


def _sink(
    i: int,
    equations: tuple[Equation, ...],
    member: list[int],
    keys: dict[int, Any],
    consumers: dict[Variable, set[int]],
) -> None:
    """Move an equation of one operand to the group that uses its result, if it is one group, with the same shape and
    scope.
    """
    equation = equations[i]
    used = consumers.get(equation.results[0], set())
    if len(used) != 1 or len({v for v in equation.operands if not isinstance(v, Literal)}) > 1:
        return
    (g,) = used
    if keys.get(g) is not None and keys[g] == _fusion_key(equation):
        member[i] = g


def _in_order(equations: tuple[Equation, ...], member: list[int]) -> Iterable[list[int]]:
    """The indices of the equations of each group; among the groups that can run, the one whose last equation comes
    first.
    """
    places: dict[int, list[int]] = {}
    producer: dict[Variable, int] = {}
    for i, equation in enumerate(equations):
        places.setdefault(member[i], []).append(i)
        for v in equation.results:
            producer[v] = member[i]
    needs: dict[int, set[int]] = {
        g: {producer[v] for i in members for v in equations[i].operands if v in producer} - {g}
        for g, members in places.items()
    }
    dependents: dict[int, list[int]] = {}
    for g, needed in needs.items():
        for other in needed:
            dependents.setdefault(other, []).append(g)
    ready = [(places[g][-1], g) for g, needed in needs.items() if not needed]
    heapq.heapify(ready)
    while ready:
        _, g = heapq.heappop(ready)
        yield places[g]
        for other in dependents.get(g, ()):
            needs[other].discard(g)
            if not needs[other]:
                heapq.heappush(ready, (places[other][-1], other))


def _group(
    members: list[int], number: int, equations: tuple[Equation, ...], consumers: dict[Variable, set[int]]
) -> FusionGroup:
    group = tuple([equations[i] for i in members])
    defined = {v for e in group for v in e.results}
    inputs = dict.fromkeys(
        [v for e in group for v in e.operands if v not in defined and not isinstance(v, Literal)]
    )
    outputs = [v for e in group for v in e.results if consumers.get(v, set()) - {number}]
    return FusionGroup(group, tuple(inputs), tuple(outputs))
