"""Scatters: replace a sum of a scatter over its rows by a scatter of the numbers to the row indices.

The gradient of a cross-entropy with respect to its logits has such sums: each row has one number, and zeros for all
other classes.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.programs.passes.rewriting import Rewriting, rewritten
from tensorken_core.language.op import OPS
from tensorken_core.language.raw import RawTensor
from tensorken_core.program.program import Equation, Literal, Program, Variable

FLOOR_DIVIDE, RESHAPE, SCATTER_ADD, SUM = (
    OPS[name] for name in ("floor_divide", "reshape", "scatter_add", "sum")
)

_MIN_RATIO = 4
"""The smallest ratio of the number of elements in all rows to the number of scattered numbers."""


def with_scatters_summed(program: Program, backend: RawTensor[Any]) -> Program:
    """Sum scattered numbers by row without storing the rows; numbers of the same row are added in another order."""
    return rewritten(program, backend, {SUM: (_of_rows,)})


def _of_rows(rewriting: Rewriting, e: Equation) -> Variable | None:
    """sum(scatter_add(x, indices).reshape(rows, columns), 1) is scatter_add(x, indices // columns)."""
    rows = rewriting.operands_if(e.operands[0], RESHAPE)
    scatter = rewriting.definition(rows[0]) if rows else None
    if scatter is None or scatter.op is not SCATTER_ADD or e.params[0] != (1,):
        return None
    x, indices = scatter.operands
    shape = e.operands[0].shape
    if len(x.shape) != 1 or len(shape) != 2 or math.prod(x.shape) * _MIN_RATIO > math.prod(shape):
        return None
    columns = Literal(indices.shape, indices.dtype, shape[1])
    row = rewriting.write(FLOOR_DIVIDE, (indices, columns))
    total = rewriting.write(SCATTER_ADD, (x, row), (0, shape[0]))
    return rewriting.write(RESHAPE, (total,), (e.results[0].shape,))
