"""Derivatives of random numbers have the accuracy stated in docs/numerics.md, on numpy and in the default bodies."""

from __future__ import annotations

from core.tests.each import each_of
from core.tests.support import Required
from tensorken_numpy.backend import Numpy
from tools import random_numerics
from tools.random_numerics import DTYPES, ROWS, Row

STATED = random_numerics.published()
EACH = [(name, row, dtype) for name, rows in ROWS.items() for row in rows for dtype in DTYPES]


def test_the_table_has_every_row() -> None:
    assert list(STATED) == [(name, row.parameters) for name, rows in ROWS.items() for row in rows]


@each_of("backend", (Numpy(), Required()))
@each_of(("name", "row", "dtype"), EACH)
def test_derivatives_are_as_accurate_as_stated(name: str, row: Row, dtype: str, backend: object) -> None:
    error, at = random_numerics.measure(row, dtype, 6, 1, backend)
    stated = STATED[name, row.parameters][DTYPES.index(dtype)]
    assert error <= stated, f"{name} at {at} is off by {error} units, not {stated}"
