"""Scatters: a sum over rows that few numbers were scattered to is a scatter of these numbers to the rows.

The gradient of a cross-entropy by its logits sums such rows: one number stands in each, among as many zeros as classes.
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

_FEWER = 4
"""How many times fewer numbers there must be than places in all rows."""


def with_scatters_summed(program: Program, backend: RawTensor[Any]) -> Program:
    """Sums over rows of scattered numbers without the rows; the numbers that meet are added in another order."""
    return rewritten(program, backend, {SUM: (_of_rows,)})


def _of_rows(sweep: Rewriting, e: Equation) -> Variable | None:
    """sum(scatter_add(x, places).reshape(rows, columns), 1) is scatter_add(x, places // columns)."""
    rows = sweep.operands_if(e.operands[0], RESHAPE)
    found = sweep.definition(rows[0]) if rows else None
    if found is None or found.op is not SCATTER_ADD or e.params[0] != (1,):
        return None
    x, places = found.operands
    shape = e.operands[0].shape
    if len(x.shape) != 1 or len(shape) != 2 or math.prod(x.shape) * _FEWER > math.prod(shape):
        return None
    columns = Literal(places.shape, places.dtype, shape[1])
    row = sweep.write(FLOOR_DIVIDE, (places, columns))
    total = sweep.write(SCATTER_ADD, (x, row), (0, shape[0]))
    return sweep.write(RESHAPE, (total,), (e.results[0].shape,))
