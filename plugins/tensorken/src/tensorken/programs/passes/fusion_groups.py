"""Groups: runs of elementwise equations of one shape, which a compiler may compute block by block, in the cache."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tensorken_core.language.op import OPS
from tensorken_core.program.program import Equation, Literal, Program, Variable

_CAST = OPS["cast"]
_REDUCTIONS = frozenset(OPS[name] for name in ("sum", "max", "min"))


@dataclass(frozen=True, eq=False, slots=True)
class FusionGroup:
    """Equations to be run together, one after another.

    Attributes:
        equations: elementwise ones of one shape and scope, and reductions of these if asked for; or a single other one.
        inputs: what they use that is defined outside, each once; no literals.
        outputs: what they define that is used outside, or that the program returns.
    """

    equations: tuple[Equation, ...]
    inputs: tuple[Variable, ...]
    outputs: tuple[Variable, ...]


def is_elementwise(equation: Equation) -> bool:
    """Whether each element of the result follows from the elements of the operands at its place."""
    return equation.op.elementwise or equation.op is _CAST


def fusion_groups(program: Program, reductions: bool = False) -> tuple[FusionGroup, ...]:
    """The equations of a program, each in one group, in an order in which the groups can be run.

    An elementwise equation joins the group of its operands if all else that it needs can be there before that group
    runs.  One that is made of a single value and used in a single other group moves there: its value need not be kept
    until then.  Otherwise the order is that of the program.

    Args:
        program: after all passes.
        reductions: whether sums, maxima and minima of what a group computes belong to it as well; nothing in the group
            uses their results.

    >>> import tensorken as tk
    >>> program = tk.trace(lambda x: (tk.exp(x) * 2 + x).sum())(tk.ones(3))
    >>> [[e.op.name for e in group.equations] for group in groups(program)]
    [['exp', 'mul', 'add'], ['sum'], ['reshape']]
    >>> [[e.op.name for e in group.equations] for group in groups(program, reductions=True)]
    [['exp', 'mul', 'add', 'sum'], ['reshape']]
    """
    equations = program.equations
    member = _joined(equations, reductions)
    kinds = {g: _fusion_key(e) for g, e in zip(member, equations, strict=True) if e.op not in _REDUCTIONS}
    consumers: dict[Variable, set[int]] = {}
    for v in program.outputs:
        consumers.setdefault(v, set()).add(-1)
    for i in range(len(equations) - 1, -1, -1):
        _sink(i, equations, member, kinds, consumers)
        for v in equations[i].operands:
            consumers.setdefault(v, set()).add(member[i])
    return tuple([_group(run, member[run[0]], equations, consumers) for run in _in_order(equations, member)])


def _fusion_key(equation: Equation) -> Any:
    """What the equations of a group share; None if it joins none."""
    return (equation.results[0].shape, equation.scope) if is_elementwise(equation) else None


def _joined(equations: tuple[Equation, ...], reductions: bool) -> list[int]:
    """For each equation the number of its group.

    Groups have levels: what a group uses is of lower levels, so groups can always be run in the order of these.
    """
    member: list[int] = []
    level: list[int] = []  # of each group
    parent: list[int] = []  # groups that have been merged lead to one
    kind: list[Any] = []  # of each group: what its equations share, None if nothing can join it
    maker: dict[Variable, int] = {}
    reduced: set[Variable] = set()  # what is there when its group is done, and no sooner

    def root(g: int) -> int:
        while parent[g] != g:
            parent[g] = parent[parent[g]]
            g = parent[g]
        return g

    for equation in equations:
        above, highest, lowest = set(), -1, 0
        for v in equation.operands:
            if v in maker:
                g = root(maker[v])
                if v in reduced:
                    lowest = max(lowest, level[g] + 1)
                else:
                    above.add(g)
                    highest = max(highest, level[g])
        trails = reductions and equation.op in _REDUCTIONS
        mine = (equation.operands[0].shape, equation.scope) if trails else _fusion_key(equation)
        top = [g for g in above if level[g] == highest]
        if mine is not None and top and highest >= lowest and all([kind[g] == mine for g in top]):
            joined = top[0]
            for other in top[1:]:
                parent[other] = joined
            if trails:
                reduced.update(equation.results)
        else:
            joined = len(level)
            level.append(max(highest + 1, lowest))
            parent.append(joined)
            kind.append(None if trails else mine)
        member.append(joined)
        for v in equation.results:
            maker[v] = joined
    return [root(g) for g in member]


def _sink(
    i: int,
    equations: tuple[Equation, ...],
    member: list[int],
    kinds: dict[int, Any],
    consumers: dict[Variable, set[int]],
) -> None:
    """Move an equation of one operand to the group of its consumers, if they are in one, of its shape and scope."""
    equation = equations[i]
    used = consumers.get(equation.results[0], set())
    if len(used) != 1 or len({v for v in equation.operands if not isinstance(v, Literal)}) > 1:
        return
    (g,) = used
    if kinds.get(g) is not None and kinds[g] == _fusion_key(equation):
        member[i] = g


def _in_order(equations: tuple[Equation, ...], member: list[int]) -> Iterable[list[int]]:
    """The places of the equations of each group; of the groups that can be run the one that ends first goes first."""
    places: dict[int, list[int]] = {}
    maker: dict[Variable, int] = {}
    for i, equation in enumerate(equations):
        places.setdefault(member[i], []).append(i)
        for v in equation.results:
            maker[v] = member[i]
    needs: dict[int, set[int]] = {
        g: {maker[v] for i in run for v in equations[i].operands if v in maker} - {g}
        for g, run in places.items()
    }
    waiting: dict[int, list[int]] = {}
    for g, needed in needs.items():
        for other in needed:
            waiting.setdefault(other, []).append(g)
    ready = [(places[g][-1], g) for g, needed in needs.items() if not needed]
    heapq.heapify(ready)
    while ready:
        _, g = heapq.heappop(ready)
        yield places[g]
        for other in waiting.get(g, ()):
            needs[other].discard(g)
            if not needs[other]:
                heapq.heappush(ready, (places[other][-1], other))


def _group(
    run: list[int], number: int, equations: tuple[Equation, ...], consumers: dict[Variable, set[int]]
) -> FusionGroup:
    members = tuple([equations[i] for i in run])
    defined = {v for e in members for v in e.results}
    inputs = dict.fromkeys(
        [v for e in members for v in e.operands if v not in defined and not isinstance(v, Literal)]
    )
    outputs = [v for e in members for v in e.results if consumers.get(v, set()) - {number}]
    return FusionGroup(members, tuple(inputs), tuple(outputs))
