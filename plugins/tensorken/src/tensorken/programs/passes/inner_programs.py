"""Inner programs: the programs of branches and loops, which passes rewrite along with the program around them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tensorken_core.program.program import Program


def runs_programs(program: Program) -> bool:
    """Whether a program has branches or loops."""
    return any([op.higher_order is not None for op in program.ops])


def inner_programs(program: Program) -> list[Program]:
    """The programs that branches and loops run, each once, in the order of their equations."""
    if not runs_programs(program):
        return []
    runs = [
        e.op.higher_order.layout(e.params).programs
        for e in program.equations
        if e.op.higher_order is not None
    ]
    return list(dict.fromkeys([p for programs in runs for p in programs]))


def with_inner_programs(program: Program, change: Callable[[Program], Program]) -> Program:
    """Replace each inner program p by `change(p)`, which must have the same inputs and outputs."""
    changed = {p: change(p) for p in inner_programs(program)}
    if all([p is q for p, q in changed.items()]):
        return program
    equations = [
        e
        if e.op.higher_order is None
        else replace(e, params=tuple([changed[p] if isinstance(p, Program) else p for p in e.params]))
        for e in program.equations
    ]
    return program.changed(equations=tuple(equations))
