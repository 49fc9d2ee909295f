"""The steps that programs are drawn from: each kind is a row of one table."""

from __future__ import annotations

from oracles.programs.steps import elementwise, flow, indexing, products, reductions, shaping
from oracles.programs.steps.row import Row

ROWS: tuple[Row, ...] = (
    *elementwise.ROWS,
    *reductions.ROWS,
    *products.ROWS,
    *shaping.ROWS,
    *indexing.ROWS,
    *flow.ROWS,
)
"""All kinds of steps."""
