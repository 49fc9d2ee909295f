"""Tables of roots of unity, which kernels of Fourier transforms read."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from tensorken.ops.fourier_bodies import root
from tensorken_core.language.dtypes import DType, round_float
from tensorken_wgpu.wgsl.single_op import Value

MAX_COARSE = 1024
"""The most roots of all angles: their products with roots of small angles are the others."""

PARTS = {"float32": 4, "float64": 2}
"""The number of parts of a complex number: those of float32 have low parts too."""


@dataclass(frozen=True, eq=False, slots=True)
class Table(Value):
    """Roots of unity in memory: the cosines and sines of -2 pi k / n, and their low parts if they are float32.

    The roots for n = `coarse`, for all k, are followed by those for n = `length`, for k below length / coarse, with 1
    subtracted from the cosines: the products of the former with the latter are the others of `length`.
    """

    length: int

    @property
    def coarse(self) -> int:
        """The number of roots of all angles."""
        return min(self.length, MAX_COARSE)

    @property
    def fine(self) -> int:
        """The number of roots of small angles."""
        return self.length // self.coarse

    @property
    def numbers(self) -> Sequence[float]:
        """The elements."""
        return _numbers(self.coarse, self.fine, self.dtype)


@functools.lru_cache(64)
def table_of(length: int, dtype: DType) -> Table:
    """The table for transforms of this length."""
    table = Table((), dtype, length)
    return Table((table.coarse + table.fine, PARTS[dtype.name]), dtype, length)


@functools.lru_cache(16)
def _numbers(coarse: int, fine: int, dtype: DType) -> Sequence[float]:
    numbers: list[float] = []
    for k in range(coarse):
        cos, sin = root(k, coarse)
        numbers += _with_low_parts(cos, -sin, dtype)
    for k in range(fine):
        half = root(k, 2 * coarse * fine)[1]
        numbers += _with_low_parts(-2.0 * half * half, -root(k, coarse * fine)[1], dtype)
    return numbers


def _with_low_parts(cos: float, sin: float, dtype: DType) -> list[float]:
    high = [round_float(part, dtype) for part in (cos, sin)]
    return high if PARTS[dtype.name] == 2 else [*high, cos - high[0], sin - high[1]]
