"""Lowering: replace ops that a backend lacks by ops that it has."""

from __future__ import annotations

from typing import Any

from tensorken.programs.passes.equation_writer import EquationWriter
from tensorken_core.language.op import run
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Program, Variable


def lowered(program: Program, backend: RawTensor[Any]) -> Program:
    """Replace each equation whose op the backend lacks by the equations of the op's body, recursively.

    An op that runs programs is kept.  Bit for bit the same: the backend would run the same body.
    """
    writer = EquationWriter(backend)
    if not any([writer.runs_body(e.op, e.operands) for e in program.equations]):
        return program
    replacements: dict[Variable, Variable] = {}
    for e in writer.equations_of(program, replacements):
        ys = run(writer, e.op, e.operands, e.params)
        ys = (ys,) if e.op.results == 1 else ys
        if ys != e.results:
            replacements.update(zip(e.results, ys, strict=True))
    return writer.program_from(program, [replacements.get(v, v) for v in program.outputs])
