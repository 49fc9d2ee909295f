"""Reductions: the WGSL accumulator of each op whose elements combine many elements of the operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorken_wgpu.wgsl.ops import Accumulator, maxima, sums

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation


def accumulator_of(equation: Equation) -> Accumulator:
    """How an op combines elements."""
    dtype = equation.operands[0].dtype.name
    return maxima(dtype) if equation.op.name == "max" else sums(dtype)
