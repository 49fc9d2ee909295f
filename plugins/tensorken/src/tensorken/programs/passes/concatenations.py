"""Concatenations: a sum of what stands side by side, each padded to the whole, is these joined.

Such sums are what the derivative of a split is: of queries, keys and values that one product gives, for example.
"""

from __future__ import annotations

from typing import Any

from tensorken.programs.passes.rewriting import Rewriting, rewritten
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Equation, Program, Variable

ADD, CONCATENATE, PAD = OPS["add"], OPS["concatenate"], OPS["pad"]

_Span = tuple[Variable, int, int, int]
"""A value, the axis along which it is padded, where it starts there, and what follows it."""


def joined(program: Program, backend: RawTensor[Any]) -> Program:
    """Padded values that are added, and do not overlap, joined by one `concatenate`.

    The same numbers; a -0.0 stays one, where the sum with a padding of 0.0 is 0.0.
    """
    return rewritten(
        program,
        backend,
        {ADD: (_side_by_side,), CONCATENATE: (_flattened,)} if backend.has(CONCATENATE) else {},
    )


def _side_by_side(sweep: Rewriting, e: Equation) -> Variable | None:
    """The sum of two that touch."""
    spans = [_span(sweep, v) for v in e.operands]
    if spans[0] is None or spans[1] is None or spans[0][1] != spans[1][1]:
        return None
    (a, axis, start, _), (b, _, second, after) = sorted([spans[0], spans[1]], key=lambda span: span[2])
    if start + a.shape[axis] != second:
        return None
    both = sweep.write(CONCATENATE, (a, b), (axis,))
    if start == 0 and after == 0:
        return both
    pads = [(0, 0)] * len(both.shape)
    pads[axis] = (start, after)
    return sweep.write(PAD, (both,), (tuple(pads),))


def _span(sweep: Rewriting, v: Variable) -> _Span | None:
    """What a value is a padding of, along one axis; None if it is used elsewhere too, as nothing would be saved."""
    found = sweep.definition(v)
    if found is None or found.op is not PAD or sweep.uses.get(v, 0) > 1:
        return None
    padded = [i for i, pad in enumerate(found.params[0]) if pad != (0, 0)]
    if len(padded) != 1:
        return None
    axis = padded[0]
    before, after = found.params[0][axis]
    return found.operands[0], axis, before, after


def _flattened(sweep: Rewriting, e: Equation) -> Variable | None:
    """What is joined from joined values that serve for nothing else."""
    operands: list[Variable] = []
    for v in e.operands:
        found = sweep.definition(v)
        nested = found is not None and found.op is CONCATENATE and found.params == e.params
        operands += found.operands if found is not None and nested and sweep.uses.get(v, 0) <= 1 else [v]
    return sweep.write(CONCATENATE, operands, e.params) if len(operands) > len(e.operands) else None
