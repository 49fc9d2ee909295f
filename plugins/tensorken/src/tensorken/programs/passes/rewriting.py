"""Rewriting: one sweep over a program that puts values it has, or simpler equations, in place of equations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

from tensorken.programs.passes.dead_code import without_dead_code
from tensorken_core.language.op import Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Equation, Literal, Program, Variable

Rule = Callable[["Rewriting", Equation], "Variable | None"]
"""The value that the equation's result is, or None if the rule has nothing to say."""


class Rewriting:
    """A sweep, as rules see it: what has been written so far, and how to write more.

    Attributes:
        equation: the one being rewritten; what is written comes from its line, in its scope.
        uses: how many equations and outputs of the program use a value.
        backend: which ops may be written.
    """

    def __init__(self, program: Program, backend: RawTensor[Any], rules: Mapping[Op, Sequence[Rule]]) -> None:
        self.backend = backend
        self.rules = rules
        self.written: list[Equation] = []
        self.equation: Equation
        self._program = program
        self._definitions: dict[Variable, Equation] = {}

    @cached_property
    def uses(self) -> dict[Variable, int]:
        """Counted when a rule first asks or gives a value: in most sweeps none does."""
        return uses(self._program)

    def definition(self, v: Variable) -> Equation | None:
        """The equation of the same scope that defines a value; what another scope does is nobody else's business."""
        found = self._definitions.get(v)
        return found if found is not None and found.scope == self.equation.scope else None

    def operands_if(self, v: Variable, op: Op) -> tuple[Variable, ...] | None:
        """The operands of the op that defines a value, if it is this one."""
        found = self.definition(v)
        return found.operands if found is not None and found.op is op else None

    def write(self, op: Op, operands: Sequence[Variable], params: tuple[Any, ...] = ()) -> Variable:
        """The result of a new equation, or what the rules put in its place."""
        shape = op.shape(*[v.shape for v in operands], *params)
        dtype = op.result_dtype(tuple([v.dtype for v in operands]), params)
        at = self.equation
        return self.rewrite(
            Equation(op, tuple(operands), params, (Variable(shape, dtype),), at.origin, at.scope)
        )

    def rewrite(self, equation: Equation) -> Variable:
        """What the first rule makes of an equation that makes anything of it; else it is written as it is."""
        for rule in self.rules.get(equation.op, ()):
            value = rule(self, equation)
            if value is not None:
                return value
        self.keep(equation)
        return equation.results[0]

    def keep(self, equation: Equation) -> None:
        """Write an equation as it is."""
        self.written.append(equation)
        for v in equation.results:
            self._definitions[v] = equation


def uses(program: Program) -> dict[Variable, int]:
    """How many equations and outputs use each value; an equation that uses it twice counts twice."""
    return Counter(chain(*[equation.operands for equation in program.equations], program.outputs))


def rewritten(program: Program, backend: RawTensor[Any], rules: Mapping[Op, Sequence[Rule]]) -> Program:
    """The program after one sweep, without the equations that nothing needs any more.

    Args:
        program: what to rewrite.
        backend: which ops may be written.
        rules: for an op of one result, tried in turn until one gives a value; also for the equations that rules write,
            so they must lead to simpler ones.
    """
    if program.ops.isdisjoint(rules):
        return program
    sweep = Rewriting(program, backend, rules)
    known: dict[Variable, Variable] = {}
    for equation in program.equations:
        equation = substituted(equation, known)
        if equation.op not in rules:
            sweep.keep(equation)
            continue
        sweep.equation = equation
        value = sweep.rewrite(equation)
        if value is not equation.results[0]:
            result = equation.results[0]
            known[result] = value
            sweep.uses[value] = sweep.uses.get(value, 0) + sweep.uses.get(result, 0)
    if not known:
        return program
    outputs = tuple([known.get(v, v) for v in program.outputs])
    return without_dead_code(program.changed(equations=tuple(sweep.written), outputs=outputs))


def substituted(equation: Equation, known: Mapping[Variable, Variable]) -> Equation:
    """The equation with other values for some of its operands; itself if none is among them."""
    if not known or known.keys().isdisjoint(equation.operands):
        return equation
    operands = tuple([known.get(v, v) for v in equation.operands])
    return Equation(equation.op, operands, equation.params, equation.results, equation.origin, equation.scope)


def number(v: Variable) -> bool | int | float | None:
    """The number that all elements of a value are, if it stands in the program."""
    return v.value if isinstance(v, Literal) else None
