"""Dead code: what no output needs goes."""

from __future__ import annotations

from tensorken_core.program.program import Equation, Program, Variable


def without_dead_code(program: Program) -> Program:
    """Only the equations and constants that some output needs; all inputs stay.  Itself if all are needed."""
    needed: set[Variable] = set(program.outputs)
    kept: list[Equation] = []
    for equation in reversed(program.equations):
        if not needed.isdisjoint(equation.results):
            kept.append(equation)
            needed.update(equation.operands)
    constants = {v: x for v, x in program.constants.items() if v in needed}
    if len(kept) == len(program.equations) and len(constants) == len(program.constants):
        return program
    return program.changed(equations=tuple(reversed(kept)), constants=constants)
