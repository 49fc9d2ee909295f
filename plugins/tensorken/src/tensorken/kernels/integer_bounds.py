"""Integer bounds: upper bounds of integers of a program that are known not to be negative."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tensorken.kernels.element_indices import INDICES_BEFORE
from tensorken_core.language.dtypes import integer_bounds

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable


def end_of(v: Variable, producers: Mapping[Variable, Equation]) -> int | None:
    """A number larger than all elements of a value, if these are known not to be negative; else None.

    Args:
        v: of integers.
        producers: for each computed value its equation.
    """
    value = getattr(v, "value", None)
    if value is not None:
        return value + 1 if value >= 0 else None
    equation = producers.get(v)
    if equation is None:
        return None
    name, operands = equation.op.name, equation.operands
    if name in INDICES_BEFORE:
        return end_of(operands[0], producers)
    if name == "cast" and operands[0].dtype.kind == "int":
        end = end_of(operands[0], producers)
        return end if end is not None and end - 1 <= integer_bounds(v.dtype)[1] else None
    if name == "iota":
        shape, axis, start, step, _ = equation.params
        return int(start + (shape[axis] - 1) * step + 1)
    if name == "minimum":
        low, high = _sorted(operands)
        if high is not None and high >= 0 and _is_not_negative(low, producers):
            return high + 1
    return None


def _is_not_negative(v: Variable, producers: Mapping[Variable, Equation]) -> bool:
    """Whether all elements of a value are known not to be negative, as those of a maximum with a number from 0 on."""
    equation = producers.get(v)
    if equation is not None and equation.op.name == "maximum":
        _, low = _sorted(equation.operands)
        return low is not None and low >= 0
    return end_of(v, producers) is not None


def _sorted(operands: tuple[Variable, ...]) -> tuple[Variable, int | None]:
    """The operand that is not a literal, and the number of the other; None if the other is not a literal either."""
    a, b = operands
    number: int | None = getattr(b, "value", None)
    return (a, number) if number is not None else (b, getattr(a, "value", None))
