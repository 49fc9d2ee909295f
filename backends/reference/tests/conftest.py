"""The oracles of these tests: roundings and values that share no code with the backend."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tensorken_core.language.dtypes import DType
from tensorken_reference.backend import Reference


def _nearest(value: Fraction, dtype: DType) -> float:
    """The number of the dtype nearest to an exact value, by comparing numpy's neighbours; ties to even."""
    kind: Any = np.dtype(dtype.name).type
    info = ml_dtypes.finfo(kind)
    largest = Fraction(float(info.max))
    step = largest - Fraction(float(np.nextafter(kind(info.max), kind(0))))
    if abs(value) >= largest + step / 2:
        return math.inf if value > 0 else -math.inf
    with np.errstate(over="ignore", under="ignore"):
        near = kind(float(min(max(value, -largest), largest)))
        candidates = [near, np.nextafter(near, kind(-np.inf)), np.nextafter(near, kind(np.inf))]
    unsigned = {2: np.uint16, 4: np.uint32, 8: np.uint64}[dtype.itemsize]
    best = min(
        (c for c in candidates if np.isfinite(c)),
        key=lambda c: (abs(Fraction(float(c)) - value), int(np.array(c, kind).view(unsigned)) & 1),
    )
    return float(best)


@pytest.fixture(scope="session")
def nearest() -> Callable[[Fraction, DType], float]:
    return _nearest


@pytest.fixture(scope="session")
def reference() -> Reference:
    return Reference()
