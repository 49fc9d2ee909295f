"""Reductions and scans of a row: the elements along an axis, as bool, int or float."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import accumulate
from math import nan
from typing import Any

from tensorken_core.language.dtypes import DType
from tensorken_reference.conversion import wrap
from tensorken_reference.sums import running_sums, sums


def largest(row: Sequence[Any]) -> Any:
    """The first maximum; NaN if any value is NaN."""
    return nan if any(map(operator.ne, row, row)) else max(row)


def smallest(row: Sequence[Any]) -> Any:
    """The first minimum; NaN if any value is NaN."""
    return nan if any(map(operator.ne, row, row)) else min(row)


def index_of(row: Sequence[Any], value: Any) -> int:
    """The first index of a value; for NaN the first index of any NaN."""
    return row.index(value) if value == value else [v == v for v in row].index(False)


def argsort_row(row: Sequence[Any]) -> list[int]:
    """The indices that sort a row, stably, NaN last."""
    return sorted(range(len(row)), key=lambda i: (row[i] != row[i], row[i]))


def running_totals(row: Sequence[Any], dtype: DType) -> list[Any]:
    """The sums of the first value, of the first two, and so on."""
    return running_sums(row, dtype) if dtype.kind == "float" else wrap(accumulate(row), dtype)


def row_sums(rows: Sequence[Sequence[Any]], dtype: DType) -> tuple[Any, ...]:
    """The sum of each row."""
    return tuple(sums(rows, dtype) if dtype.kind == "float" else wrap(map(sum, rows), dtype))
