"""Lowering: ops that a backend does not have, in terms of those that it has."""

from __future__ import annotations

from typing import Any

from tensorken.programs.passes.equation_writer import EquationWriter
from tensorken_core.language.op import run
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Program, Variable


def lowered(program: Program, backend: RawTensor[Any]) -> Program:
    """The equations of ops that the backend lacks replaced by those of their bodies, and so on for these.

    An op that holds programs stays.  Bit for bit the same: it is what the backend runs for such an op anyway.
    """
    writer = EquationWriter(backend)
    if not any([writer.lacks[op] for op in program.ops]):
        return program
    known: dict[Variable, Variable] = {}
    for e in writer.following(program, known):
        ys = run(writer, e.op, e.operands, e.params)
        ys = (ys,) if e.op.results == 1 else ys
        if ys != e.results:
            known.update(zip(e.results, ys, strict=True))
    return writer.finished(program, [known.get(v, v) for v in program.outputs])
