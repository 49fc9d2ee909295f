"""Backward pass: run the rules of a program's equations from last to first, and sum the contributions to each
adjoint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal as OneOf

from tensorken.programs.adjoints.record import Step
from tensorken_core.levels.trace import Trace
from tensorken_core.program.program import Equation, Program, Variable
from tensorken_core.tensor.level import current_level, interpreter_below
from tensorken_core.tensor.tensor import Tensor, result_at

Strategy = OneOf["accumulate", "pass on"]

MAX_PASSED_ON = 2
"""The largest number of increments that are passed on through a rule that adds no ops; along a chain of such rules
their number multiplies."""


class BackwardPass:
    """The state of one backward pass over a program."""

    def __init__(
        self, program: Program, output: Variable, selected: Iterable[Variable], strategy: Strategy | None
    ) -> None:
        interpreters = [program.backend, *[x.interpreter for x in program.constants.values()]]
        self.level = Trace(interpreter_below(interpreters, "adjoints"))
        self.level.transform = "adjoints"
        self.level.constants.update(program.constants)
        self.output = output
        self.selected = tuple(dict.fromkeys(selected))
        self.strategy = strategy
        self.steps: list[Step] = []
        self.accumulated: dict[Variable, Tensor] = {}
        self.finished: dict[Variable, Variable] = {}
        self.active = _dependent(program, self.selected) & _needed(program, output)
        self.forward = [self._with_residuals(equation) for equation in program.equations]
        self.definitions = {v: e for e in self.forward for v in e.results}
        self.level.equations[:] = self.forward
        self.passed_on, self.contributions_to = self._plan(), Counter[Variable]()

    def run(self, seed: Variable) -> dict[Variable, Variable]:
        """The adjoint of each selected value that the output depends on."""
        if self.output not in self.active:
            return {}
        self.level.closed = False
        with current_level(self.level):
            self._increment([(self.output, self._tensor(seed))])
            for equation in reversed(self.forward):
                if any([v in self.contributions_to for v in equation.results]):
                    self._finalise(equation)
            for v in self.selected:
                if v in self.accumulated:
                    self._step("finalise", v, self._pop_adjoint(v))
        return self.finished

    # ---- pass on or accumulate ------------------------------------------------------------------------------------

    def _plan(self) -> set[Variable]:
        """The values whose increments are passed on."""
        increments = Counter({self.output: 1})
        passed_on: set[Variable] = set()
        for equation in reversed(self.forward):
            for v in equation.results:
                if increments[v] and self._is_passed_on(v, equation, increments[v]):
                    passed_on.add(v)
            if any([increments[v] for v in equation.results]):
                count = max([increments[v] if v in passed_on else 1 for v in equation.results])
                for v in equation.operands:
                    if v in self.active:
                        increments[v] += count
        return passed_on

    def _is_passed_on(self, v: Variable, equation: Equation, increments: int) -> bool:
        if v in self.selected or len(equation.results) > 1 or self.strategy == "accumulate":
            return False
        if self.strategy == "pass on":
            return True
        return increments == 1 or (increments <= MAX_PASSED_ON and self._is_free(equation))

    def _is_free(self, equation: Equation) -> bool:
        """Whether the rule adds no ops, so that it returns increments unchanged."""
        before = len(self.level.equations)
        (y,) = equation.results
        self.level.closed = False
        with current_level(self.level):
            self._apply_rule(equation, [self._tensor(Variable(y.shape, y.dtype))])
        count = len(self.level.equations) - before
        del self.level.equations[before:]
        return count == 0

    # ---- the three steps -----------------------------------------------------------------------------------

    def _increment(self, contributions: list[tuple[Variable, Tensor]]) -> None:
        """Add contributions to the adjoints of values, and pass on increments according to the plan."""
        pending = contributions[::-1]
        while pending:
            v, t = pending.pop()
            self.contributions_to[v] += 1
            if v in self.passed_on:
                self._step("pass on", v, t)
                pending += self._contributions(self.definitions[v], [t])[::-1]
            elif v in self.accumulated:
                self.accumulated[v] = self.accumulated[v] + t
                definition = self.definitions.get(v)
                origin = None if definition is None else definition.origin
                self.level.equations[-1] = replace(self.level.equations[-1], origin=origin)
                self._step("increment", v, t)
            else:
                self._step("initialise", v, t)
                self.accumulated[v] = t

    def _finalise(self, equation: Equation) -> None:
        """Apply the rule of an equation to the accumulated adjoints of its results, and free the adjoints."""
        cotangents: list[Tensor | None] = []
        for v in equation.results:
            cotangents.append(self._pop_adjoint(v) if v in self.accumulated else None)
            if v in self.contributions_to:
                self._step("finalise", v, cotangents[-1])
        if any([t is not None for t in cotangents]) and any([v in self.active for v in equation.operands]):
            self._increment(self._contributions(equation, cotangents))

    def _pop_adjoint(self, v: Variable) -> Tensor:
        t = self.accumulated.pop(v)
        if v in self.selected:
            self.finished[v] = t.representation
        return t

    def _step(self, kind: str, v: Variable, t: Tensor | None) -> None:
        term = None if t is None else t.representation
        self.steps.append(Step(kind, v, len(self.level.equations), term))

    # ---- rules ---------------------------------------------------------------------------------------------

    def _contributions(
        self, equation: Equation, cotangents: Sequence[Tensor | None]
    ) -> list[tuple[Variable, Tensor]]:
        """The cotangents that a rule returns for active operands; equations that only inactive operands need are
        removed again.
        """
        equations = self.level.equations
        before = len(equations)
        contributions = self._apply_rule(equation, cotangents)
        needed: set[Variable] = {t.representation for _, t in contributions}
        needed_equations: list[Equation] = []
        for added in reversed(equations[before:]):
            if not needed.isdisjoint(added.results):
                needed.update(added.operands)
                needed_equations.append(replace(added, origin=equation.origin))
        equations[before:] = needed_equations[::-1]
        return contributions

    def _apply_rule(
        self, equation: Equation, cotangents: Sequence[Tensor | None]
    ) -> list[tuple[Variable, Tensor]]:
        op, params = equation.op, equation.params
        ys = [self._tensor(v) for v in equation.results]
        xs = [self._tensor(v) for v in equation.operands]
        if op.vjp_all is not None:
            active = tuple([v in self.active for v in equation.operands])
            if op.primal_rule is not None:
                primals, residuals = op.primal_rule(active, xs, params)
                ys = [*primals, *residuals]
            pulled = op.vjp_all(cotangents, ys, xs, params, *((active,) if op.vjp_needs_active else ()))
        else:
            pulled = [
                rule(cotangents[0], *ys, *xs, *params) if rule is not None and v in self.active else None
                for v, rule in zip(equation.operands, op.vjp, strict=False)
            ]
        return [
            (v, result_at(self.level, t))
            for v, t in zip(equation.operands, pulled, strict=False)
            if t is not None and v in self.active
        ]

    def _tensor(self, v: Variable) -> Tensor:
        return Tensor(self.level, v, v.shape, v.dtype)

    def _with_residuals(self, equation: Equation) -> Equation:
        """The equation; if it runs programs, it also returns the residuals that its derivative needs."""
        op = equation.op
        active = tuple([v in self.active for v in equation.operands])
        if op.higher_order is None or not any(active) or self.active.isdisjoint(equation.results):
            return equation
        op, params, count = op.higher_order.with_residuals(active, equation.params)
        shapes = op.shape(*[v.shape for v in equation.operands], *params)
        dtypes = op.dtype(*[v.dtype for v in equation.operands], *params)
        residuals = [Variable(*parts) for parts in zip(shapes[count:], dtypes[count:], strict=True)]
        return replace(equation, op=op, params=params, results=(*equation.results, *residuals))


def _dependent(program: Program, sources: Iterable[Variable]) -> set[Variable]:
    """The values that depend on the sources through differentiable rules."""
    dependent = set(sources)
    for equation in program.equations:
        op = equation.op
        if op.higher_order is None and op.vjp_all is None:
            on = [v for v, rule in zip(equation.operands, op.vjp, strict=False) if rule is not None]
        else:
            on = list(equation.operands[: op.depends_on_first])
        if not dependent.isdisjoint(on):
            dependent.update([v for v in equation.results if v.dtype.kind == "float"])
    return dependent


def _needed(program: Program, output: Variable) -> set[Variable]:
    """The output and all values that it is computed from."""
    needed = {output}
    for equation in reversed(program.equations):
        if not needed.isdisjoint(equation.results):
            needed.update(equation.operands)
    return needed
