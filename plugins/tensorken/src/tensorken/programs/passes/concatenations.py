"""Concatenations: replace a sum of padded, adjacent values by a concatenation.

The derivative of a split is such a sum, for example of a product that is split into queries, keys and values.
"""

from __future__ import annotations

from typing import Any

from tensorken.programs.passes.rewriting import Rewriting, rewritten
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Equation, Program, Variable

ADD, CONCATENATE, PAD = OPS["add"], OPS["concatenate"], OPS["pad"]

_PaddedPart = tuple[Variable, int, int, int]
"""A value, the axis along which it is padded, and the numbers of zeros before and after it."""


def joined(program: Program, backend: RawTensor[Any]) -> Program:
    """Replace sums of padded values that do not overlap by one `concatenate`.

    The same numbers, except that a -0.0 stays -0.0, where its sum with a padding of 0.0 is 0.0.
    """
    return rewritten(
        program,
        backend,
        {ADD: (_sum_of_disjoint_parts,), CONCATENATE: (_flattened,)} if backend.has(CONCATENATE) else {},
    )


def _sum_of_disjoint_parts(rewriting: Rewriting, e: Equation) -> Variable | None:
    """The sum of two adjacent parts."""
    parts = [_padded_part(rewriting, v) for v in e.operands]
    if parts[0] is None or parts[1] is None or parts[0][1] != parts[1][1]:
        return None
    (a, axis, start, _), (b, _, second, after) = sorted([parts[0], parts[1]], key=lambda part: part[2])
    if start + a.shape[axis] != second:
        return None
    both = rewriting.write(CONCATENATE, (a, b), (axis,))
    if start == 0 and after == 0:
        return both
    pads = [(0, 0)] * len(both.shape)
    pads[axis] = (start, after)
    return rewriting.write(PAD, (both,), (tuple(pads),))


def _padded_part(rewriting: Rewriting, v: Variable) -> _PaddedPart | None:
    """The value that is padded along one axis to give v; None if v has other uses, since the pad would remain."""
    definition = rewriting.definition(v)
    if definition is None or definition.op is not PAD or rewriting.uses.get(v, 0) > 1:
        return None
    padded = [i for i, pad in enumerate(definition.params[0]) if pad != (0, 0)]
    if len(padded) != 1:
        return None
    axis = padded[0]
    before, after = definition.params[0][axis]
    return definition.operands[0], axis, before, after


def _flattened(rewriting: Rewriting, e: Equation) -> Variable | None:
    """A concatenation of concatenations that have no other use, as one."""
    operands: list[Variable] = []
    for v in e.operands:
        definition = rewriting.definition(v)
        nested = definition is not None and definition.op is CONCATENATE and definition.params == e.params
        operands += (
            definition.operands
            if definition is not None and nested and rewriting.uses.get(v, 0) <= 1
            else [v]
        )
    return rewriting.write(CONCATENATE, operands, e.params) if len(operands) > len(e.operands) else None
