"""Integer bounds: upper bounds of integers of a program that are known not to be negative."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isinf
from typing import TYPE_CHECKING

from tensorken.kernels.element_indices import INDICES_BEFORE
from tensorken_core.language.dtypes import integer_bounds

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable


MAX_STEPS = 64
"""The most equations that are read to find the bound of a value; beyond them it is unknown."""


def end_of(v: Variable, producers: Mapping[Variable, Equation]) -> int | None:
    """A number larger than all elements of a value, if these are known not to be negative; else None.

    Args:
        v: of integers.
        producers: for each computed value its equation.
    """
    path: list[Equation] = []  # from the value to one whose bound does not depend on another
    while (equation := producers.get(v)) is not None and (x := _bounding(equation)) is not None:
        if len(path) == MAX_STEPS:
            return None
        path.append(equation)
        v = x
    end = _own_end(v, equation)
    for equation in reversed(path):
        name, (dtype,) = equation.op.name, [y.dtype for y in equation.results]
        if end is None or (name == "cast" and end - 1 > integer_bounds(dtype)[1]):
            return None
        if name == "minimum":
            _, high = _sorted(equation.operands)
            assert high is not None
            end = min(end, high + 1)
    return None if end is None or isinf(end) else int(end)


def _bounding(equation: Equation) -> Variable | None:
    """The operand from whose bound that of the result follows; None if there is none."""
    name, operands = equation.op.name, equation.operands
    if name in INDICES_BEFORE or (name == "cast" and operands[0].dtype.kind == "int"):
        return operands[0]
    if name == "minimum":
        x, high = _sorted(operands)
        return x if high is not None and high >= 0 else None
    return None


def _own_end(v: Variable, equation: Equation | None) -> float | None:
    """A bound that follows from the equation of a value alone; infinity if it is only known not to be negative."""
    value = getattr(v, "value", None)
    if value is not None:
        return value + 1 if value >= 0 else None
    if equation is None:
        return None
    if equation.op.name == "iota":
        shape, axis, start, step, _ = equation.params
        return int(start + (shape[axis] - 1) * step + 1)
    if equation.op.name == "maximum":
        _, low = _sorted(equation.operands)
        return inf if low is not None and low >= 0 else None
    return None


def _sorted(operands: tuple[Variable, ...]) -> tuple[Variable, int | None]:
    """The operand that is not a literal, and the number of the other; None if the other is not a literal either."""
    a, b = operands
    number: int | None = getattr(b, "value", None)
    return (a, number) if number is not None else (b, getattr(a, "value", None))
