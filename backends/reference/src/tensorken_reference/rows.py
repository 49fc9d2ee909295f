"""What reductions and scans do to the elements along an axis: a row of bool, int or float."""

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
    """The first of the largest values; NaN if one is."""
    return nan if any(map(operator.ne, row, row)) else max(row)


def smallest(row: Sequence[Any]) -> Any:
    """The first of the smallest values; NaN if one is."""
    return nan if any(map(operator.ne, row, row)) else min(row)


def place_of(row: Sequence[Any], value: Any) -> int:
    """Where a value stands first in a row; NaN stands where any NaN does."""
    return row.index(value) if value == value else [v == v for v in row].index(False)


def ascending(row: Sequence[Any]) -> list[int]:
    """The places of a row's values in ascending order, equal ones in theirs, NaN last."""
    return sorted(range(len(row)), key=lambda i: (row[i] != row[i], row[i]))


def running(row: Sequence[Any], dtype: DType) -> list[Any]:
    """The sums of the first value, of the first two, and so on."""
    return running_sums(row, dtype) if dtype.kind == "float" else wrap(accumulate(row), dtype)


def totals(rows: Sequence[Sequence[Any]], dtype: DType) -> tuple[Any, ...]:
    """The sum of each row."""
    return tuple(sums(rows, dtype) if dtype.kind == "float" else wrap(map(sum, rows), dtype))
