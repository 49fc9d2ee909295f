"""Dead code: drop equations without effects that no output needs."""

from __future__ import annotations

from tensorken_core.program.program import Equation, Program, Variable


def without_dead_code(program: Program) -> Program:
    """Keep only the equations and constants that some output or effect needs; all inputs are kept.  The same program if
    all are needed.
    """
    needed: set[Variable] = set(program.outputs)
    kept: list[Equation] = []
    opaque = program.opaque
    for equation in reversed(program.equations):
        if not needed.isdisjoint(equation.results) or (opaque and equation.has_effect):
            kept.append(equation)
            needed.update(equation.operands)
    constants = {v: x for v, x in program.constants.items() if v in needed}
    if len(kept) == len(program.equations) and len(constants) == len(program.constants):
        return program
    return program.changed(equations=tuple(reversed(kept)), constants=constants)
