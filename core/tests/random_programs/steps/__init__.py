"""The steps that programs are drawn from: each kind is a row of one table."""

from __future__ import annotations

from core.tests.random_programs.steps import (
    elementwise,
    flow,
    idioms,
    indexing,
    products,
    reductions,
    shaping,
)
from core.tests.random_programs.steps.row import Row

ROWS: tuple[Row, ...] = (
    *elementwise.ROWS,
    *reductions.ROWS,
    *products.ROWS,
    *shaping.ROWS,
    *indexing.ROWS,
    *flow.ROWS,
    *idioms.ROWS,
)
"""All kinds of steps."""
