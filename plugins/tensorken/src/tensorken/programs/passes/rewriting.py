"""Rewriting: one traversal of a program that replaces equations by simpler ones or by values that exist already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

from tensorken.programs.passes.dead_code import without_dead_code
from tensorken_core.language.dtypes import wrap_integer
from tensorken_core.language.op import Op
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Equation, Literal, Program, Variable

Rule = Callable[["Rewriting", Equation], "Variable | None"]
"""The value that replaces the equation's result, or None if the rule does not apply."""


class Rewriting:
    """The state of one traversal, for rules: the equations written so far, and methods that write more.

    Attributes:
        equation: the equation that is rewritten; written equations get its line and scope.
        uses: how many equations and outputs of the program use each value.
        backend: the backend, which decides which ops may be written.
        definitions: for each value computed so far its equation, in any scope.
    """

    def __init__(self, program: Program, backend: RawTensor[Any], rules: Mapping[Op, Sequence[Rule]]) -> None:
        self.backend = backend
        self.rules = rules
        self.written: list[Equation] = []
        self.equation: Equation
        self._program = program
        self.definitions: dict[Variable, Equation] = {}

    @cached_property
    def uses(self) -> dict[Variable, int]:
        """Counted on first use, since most traversals never need the counts."""
        return uses(self._program)

    def definition(self, v: Variable) -> Equation | None:
        """The equation that defines a value, if it is in the same scope; equations of other scopes must not be
        changed.
        """
        equation = self.definitions.get(v)
        return equation if equation is not None and equation.scope == self.equation.scope else None

    def operands_if(self, v: Variable, op: Op) -> tuple[Variable, ...] | None:
        """The operands of the equation that defines a value, if its op is this one."""
        definition = self.definition(v)
        return definition.operands if definition is not None and definition.op is op else None

    def write(self, op: Op, operands: Sequence[Variable], params: tuple[Any, ...] = ()) -> Variable:
        """Write a new equation and return its result, or the value by which the rules replace it."""
        shape = op.shape(*[v.shape for v in operands], *params)
        dtype = op.result_dtype(tuple([v.dtype for v in operands]), params)
        source = self.equation
        return self.rewrite(
            Equation(op, tuple(operands), params, (Variable(shape, dtype),), source.origin, source.scope)
        )

    def rewrite(self, equation: Equation) -> Variable:
        """Apply the first rule that replaces the equation; if none does, write the equation unchanged."""
        for rule in self.rules.get(equation.op, ()):
            value = rule(self, equation)
            if value is not None:
                return value
        self.keep(equation)
        return equation.results[0]

    def keep(self, equation: Equation) -> None:
        """Write an equation unchanged."""
        self.written.append(equation)
        for v in equation.results:
            self.definitions[v] = equation


def uses(program: Program) -> dict[Variable, int]:
    """How many equations and outputs use each value; an equation that uses a value twice counts twice."""
    return Counter(chain(*[equation.operands for equation in program.equations], program.outputs))


def rewritten(program: Program, backend: RawTensor[Any], rules: Mapping[Op, Sequence[Rule]]) -> Program:
    """The program after one traversal, without dead code.

    Args:
        program: the program.
        backend: the backend, which decides which ops may be written.
        rules: for each op with one result, rules that are tried in turn until one applies.  They also apply to
            equations that rules write, so each rule must write simpler equations.
    """
    if program.ops.isdisjoint(rules):
        return program
    rewriting = Rewriting(program, backend, rules)
    replacements: dict[Variable, Variable] = {}
    for equation in program.equations:
        equation = substituted(equation, replacements)
        if equation.op not in rules:
            rewriting.keep(equation)
            continue
        rewriting.equation = equation
        value = rewriting.rewrite(equation)
        if value is not equation.results[0]:
            result = equation.results[0]
            replacements[result] = value
            rewriting.uses[value] = rewriting.uses.get(value, 0) + rewriting.uses.get(result, 0)
    if not replacements:
        return program
    outputs = tuple([replacements.get(v, v) for v in program.outputs])
    return without_dead_code(program.changed(equations=tuple(rewriting.written), outputs=outputs))


def substituted(equation: Equation, replacements: Mapping[Variable, Variable]) -> Equation:
    """The equation with some operands replaced; the same object if no operand is replaced."""
    if not replacements or replacements.keys().isdisjoint(equation.operands):
        return equation
    operands = tuple([replacements.get(v, v) for v in equation.operands])
    return Equation(equation.op, operands, equation.params, equation.results, equation.origin, equation.scope)


def number(v: Variable) -> bool | int | float | None:
    """The value of a literal; None for any other variable."""
    return v.value if isinstance(v, Literal) else None


def negated_literal(v: Variable) -> Literal | None:
    """The literal with the other sign, which wraps for integers; None if it is no literal, or a bool."""
    value = number(v)
    if value is None or v.dtype.kind == "bool":
        return None
    negated = wrap_integer(int(-value), v.dtype) if v.dtype.kind == "int" else -value
    return Literal(v.shape, v.dtype, negated)
