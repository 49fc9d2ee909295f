"""Groups of elementwise equations, which run block by block on the CPU, so that their values stay in its cache.

A group waits until an equation outside it needs one of its results, so that equations far apart can join.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from tensorken_core.language.shapes import Shape
from tensorken_core.program.program import Equation, Literal, Program, Variable

BLOCK_SIZE = 65536
"""How many elements of each value are computed at a time."""

MIN_MEMBERS = 2
"""The fewest equations of a group."""


@dataclass(slots=True, eq=False)
class Group:
    """Elementwise equations of one shape."""

    shape: Shape
    scope: int
    members: list[tuple[int, Equation]]
    merged_into: Group | None = None

    @property
    def equations(self) -> list[Equation]:
        """The equations, in the order of the program."""
        return [equation for _, equation in sorted(self.members, key=lambda member: member[0])]

    def operands(self) -> list[Variable]:
        """The values that the group takes, without literals."""
        inside = {v for _, equation in self.members for v in equation.results}
        found = [v for equation in self.equations for v in equation.operands]
        return [v for v in dict.fromkeys(found) if v not in inside and not isinstance(v, Literal)]

    def results(self, program: Program) -> list[Variable]:
        """The values that other equations use, or the program returns."""
        inside = {equation for _, equation in self.members}
        outside = {v for e in program.equations if e not in inside for v in e.operands} | {*program.outputs}
        return [v for equation in self.equations for v in equation.results if v in outside]


Unit: TypeAlias = "Equation | Group"


def grouped(program: Program, is_elementwise: Callable[[Equation], bool]) -> list[Unit]:
    """The equations in an order in which they can run, with groups in place of their members."""
    units: list[Unit] = []
    waiting: dict[Group, None] = {}
    group_of: dict[Variable, Group] = {}

    def emit(group: Group) -> None:
        del waiting[group]
        if len(group.members) < MIN_MEMBERS:
            units.extend(group.equations)
        else:
            units.append(group)

    for index, equation in enumerate(program.equations):
        sources = [_final(group_of[v]) for v in equation.operands if v in group_of]
        needed = [group for group in dict.fromkeys(sources) if group in waiting]
        shape = equation.results[0].shape if equation.results else ()
        if math.prod(shape) <= BLOCK_SIZE or not is_elementwise(equation):
            for group in needed:
                emit(group)
            units.append(equation)
            continue
        current = Group(shape, equation.scope, [(index, equation)])
        for group in needed:
            if (group.shape, group.scope) == (current.shape, current.scope):
                current = _merged(group, current)
                del waiting[group]
            else:
                emit(group)
        waiting[current] = None
        group_of.update(dict.fromkeys(equation.results, current))
    for group in list(waiting):
        emit(group)
    return units


def _final(group: Group) -> Group:
    while group.merged_into is not None:
        group = group.merged_into
    return group


def _merged(a: Group, b: Group) -> Group:
    """The smaller of two groups merged into the larger one."""
    large, small = (a, b) if len(a.members) >= len(b.members) else (b, a)
    large.members += small.members
    small.merged_into = large
    return large


def with_recomputation(program: Program, is_elementwise: Callable[[Equation], bool]) -> Program:
    """The program whose groups compute values of other groups again, if they then read fewer arrays from memory.

    A derivative needs many values of the function, all of which follow from a few.
    """
    group_of: dict[Variable, Group] = {}
    copies: dict[Equation, list[Equation]] = {}
    replaced: dict[Equation, dict[Variable, Variable]] = {}
    for group in grouped(program, is_elementwise):
        if not isinstance(group, Group):
            continue
        operands = group.operands()
        sources = dict.fromkeys([_final(group_of[v]) for v in operands if v in group_of])
        for source in sources:
            wanted = {v for v in operands if group_of.get(v) is source} - {*program.outputs}
            equations, needed = _closure(source, wanted)
            if len(needed - {*operands}) < len(wanted) and len(wanted) > 1:
                new: dict[Variable, Variable] = {}
                first = group.equations[0]
                copies.setdefault(first, []).extend([_copied(e, new) for e in equations])
                for equation in group.equations:
                    replaced.setdefault(equation, {}).update(new)
        group_of.update({v: group for equation in group.equations for v in equation.results})
    if not copies:
        return program
    result: list[Equation] = []
    for equation in program.equations:
        result += copies.get(equation, ())
        changed = replaced.get(equation)
        result.append(equation if changed is None else _with_operands(equation, changed))
    return program.changed(equations=tuple(result))


def _closure(group: Group, wanted: set[Variable]) -> tuple[list[Equation], set[Variable]]:
    """The equations of a group that the wanted values need, and the operands of these from outside the group."""
    needed, equations = set(wanted), []
    for equation in reversed(group.equations):
        if equation.results[0] in needed:
            needed.discard(equation.results[0])
            needed.update([v for v in equation.operands if not isinstance(v, Literal)])
            equations.append(equation)
    return equations[::-1], needed


def _with_operands(equation: Equation, new: dict[Variable, Variable]) -> Equation:
    operands = tuple([new.get(v, v) for v in equation.operands])
    return replace(equation, operands=operands)


def _copied(equation: Equation, new: dict[Variable, Variable]) -> Equation:
    """A copy with other results, which `new` gets."""
    results = tuple([Variable(v.shape, v.dtype) for v in equation.results])
    copy = replace(_with_operands(equation, new), results=results)
    new.update(zip(equation.results, results, strict=True))
    return copy
