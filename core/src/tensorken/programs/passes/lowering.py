"""Lowering: ops that a backend does not have, in terms of those that it has."""

from __future__ import annotations

from typing import Any

from tensorken.programs.passes.writing import Writer
from tensorken.programs.program import Program, Variable
from tensorken.spec.op import run
from tensorken.spec.raw import RawTensor


def lowered(program: Program, backend: RawTensor[Any]) -> Program:
    """The equations of ops that the backend lacks replaced by those of their bodies, and so on for these.

    An op that holds programs stays.  Bit for bit the same: it is what the backend runs for such an op anyway.
    """
    if all([backend.has(e.op) or e.op.body is None or "program" in e.op.params for e in program.equations]):
        return program
    writer = Writer(backend)
    known: dict[Variable, Variable] = {}
    for e in writer.following(program):
        ys = run(writer, e.op, [known.get(v, v) for v in e.operands], e.params)
        known.update(zip(e.results, (ys,) if e.op.results == 1 else ys, strict=True))
    return writer.finished(program, [known.get(v, v) for v in program.outputs])
