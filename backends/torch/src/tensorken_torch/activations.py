"""Activation functions of torch in groups of elementwise equations, found by their values.

A group of ops without comparisons and rounding is an analytic function, so its values at some points tell which one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tensorken_core.language.observe import UNOBSERVED
from tensorken_core.program.program import Program

ANALYTIC = frozenset(
    ("add sub mul div neg square pow exp tanh erf gaussian sigmoid sech_squared reciprocal sqrt").split()
)

aten: Any = torch.ops.aten


def gelu(x: Tensor) -> Tensor:
    """x times the normal distribution."""
    return functional.gelu(x)


def gelu_backward(x: Tensor, t: Tensor) -> Tensor:
    """The cotangent of the operand of `gelu`."""
    result: Tensor = aten.gelu_backward(t, x)
    return result


def tanh_gelu(x: Tensor) -> Tensor:
    """The approximation of `gelu` by tanh."""
    return functional.gelu(x, approximate="tanh")


def tanh_gelu_backward(x: Tensor, t: Tensor) -> Tensor:
    """The cotangent of the operand of `tanh_gelu`."""
    result: Tensor = aten.gelu_backward(t, x, approximate="tanh")
    return result


def silu(x: Tensor) -> Tensor:
    """x times its sigmoid."""
    return functional.silu(x)


def silu_backward(x: Tensor, t: Tensor) -> Tensor:
    """The cotangent of the operand of `silu`."""
    result: Tensor = aten.silu_backward(t, x)
    return result


FUNCTIONS: dict[int, tuple[Callable[..., Tensor], ...]] = {
    1: (tanh_gelu, gelu, silu),
    2: (tanh_gelu_backward, gelu_backward, silu_backward),
}
"""The functions by their number of operands."""

TOLERANCE = 1e-8
"""The largest absolute difference of values at the points, which are at most 4."""


def activation_of(
    program: Program, run: Callable[[Sequence[Tensor]], Sequence[Tensor]]
) -> tuple[Callable[..., Tensor], tuple[int, ...]] | None:
    """The activation function that a program computes, and the order of its inputs; None if there is none.

    Args:
        program: elementwise equations.
        run: runs the program on float64.
    """
    count = len(program.inputs)
    if len(program.outputs) != 1 or count not in FUNCTIONS:
        return None
    if not ANALYTIC.issuperset([op.name for op in program.ops]):
        return None
    xs = _points()[:count]
    token = UNOBSERVED.set(True)
    try:
        (y,) = run(xs)
    finally:
        UNOBSERVED.reset(token)
    for function in FUNCTIONS[count]:
        for order in ((0,),) if count == 1 else ((0, 1), (1, 0)):
            if torch.allclose(y, function(*[xs[i] for i in order]), rtol=0.0, atol=TOLERANCE):
                return function, order
    return None


def _points() -> list[Tensor]:
    """Two sequences of different points."""
    x = torch.linspace(-4.0, 4.0, 64, dtype=torch.float64, device="cpu")
    return [x, torch.cos(3.0 * x)]
