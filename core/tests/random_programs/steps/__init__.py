"""The steps that programs are drawn from: each kind is a row of one table."""

from __future__ import annotations

from core.tests.random_programs.steps import (
    carries,
    complex_numbers,
    elementwise,
    flow,
    idioms,
    indexing,
    integers,
    products,
    python_numbers,
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
    *integers.ROWS,
    *complex_numbers.ROWS,
    *python_numbers.ROWS,
    *carries.ROWS,
)
"""All kinds of steps."""
