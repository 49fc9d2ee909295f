"""Online sums: the sum of exp(x - m) over a row with the maximum m, added in the loop that finds the maximum.

The sum is of exp(x - n) for the largest element n so far; where a larger one is found, it is multiplied by the
exponential of the difference.  So a row is read once for both.  Source: M. Milakov and N. Gimelshein, "Online
normalizer calculation for softmax", 2018.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from tensorken_wgpu.wgsl import Accumulator, expressions
from tensorken_wgpu.writer import Writer

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable

MIN_LENGTH = 1024
"""Shorter rows are read again from a cache."""

MIN_STEPS = 4
"""The fewest neighbours that are added at once: for all of them, the sum is multiplied once."""

_NAN = {"float32": "nan()", "float64": "nan_f64()"}
"""NaN of each dtype whose sums are added in this way."""


def sums_of_maxima(
    reductions: Collection[Variable], producers: Mapping[Variable, Equation], read: Collection[Variable]
) -> dict[Variable, Variable]:
    """For maxima of rows the sums of exponentials of differences from them, among the reductions of a kernel.

    Args:
        reductions: of the kernel.
        producers: for each computed value its equation.
        read: the values that the kernel may read from memory.
    """
    found = {}
    for v in reductions:
        if producers[v].op.name != "sum" or v.dtype.name not in _NAN:
            continue
        (exponential,) = producers[v].operands
        difference = _operands(exponential, "exp", producers, read)
        operands = _operands(difference[0], "sub", producers, read) if difference else ()
        maximum = _operands(operands[1], "expand", producers, read) if operands else ()
        for m in maximum:
            if m in reductions and producers[m].op.name == "max" and producers[m].operands[0] is operands[0]:
                found[m] = v
    return found


def _operands(
    v: Variable, op: str, producers: Mapping[Variable, Equation], read: Collection[Variable]
) -> Sequence[Variable]:
    """The operands of a value that the kernel computes by this op; () for other values."""
    equation = producers.get(v)
    return () if equation is None or equation.op.name != op or v in read else equation.operands


class OnlineSum:
    """Writes the parts of a kernel that concern a maximum and a sum.

    Args:
        writer: of the kernel.
        maximum: how maxima are combined.
        total: how sums are combined.
    """

    def __init__(self, writer: Writer, maximum: Accumulator, total: Accumulator) -> None:
        self._writer = writer
        self._maximum = maximum
        self._total = total
        self._ops = expressions(maximum.dtype)

    def add(self, maximum: str, total: str, elements: Sequence[str]) -> None:
        """Add elements to the variables of a maximum and a sum."""
        largest = maximum
        for element in elements:
            largest = self._maximum.combine(largest, element)
        largest, base = self._base(largest)
        terms = [self._exponential(element, base) for element in elements]
        new_total = f"{total} * {self._exponential(maximum, base)}"
        for term in terms:
            new_total = self._total.combine(new_total, term)
        self._writer.line(f"{total} = {new_total};")
        self._writer.line(f"{maximum} = {largest};")

    def combine(self, maximum: tuple[str, str], total: tuple[str, str]) -> None:
        """Combine the maxima and sums of two parts of a row in the variables of the first part.

        The products are rounded, so that exchanged parts give the same bits.
        """
        largest, base = self._base(self._maximum.combine(*maximum))
        multiplied = self._ops["mul"]
        parts = [multiplied(s, self._exponential(m, base)) for m, s in zip(maximum, total, strict=True)]
        self._writer.line(f"{total[0]} = {self._total.combine(*parts)};")
        self._writer.line(f"{maximum[0]} = {largest};")

    def finish(self, maximum: str, total: str) -> str:
        """The sum; NaN if no element is larger than -infinity, as differences of infinities are."""
        return self._ops["where"](self._is_least(maximum), _NAN[self._maximum.dtype], total)

    def _base(self, largest: str) -> tuple[str, str]:
        """The names of the largest element, and of the number to subtract: 0 in place of -infinity."""
        writer, type_name = self._writer, self._maximum.type
        name, base = writer.new_name(), writer.new_name()
        writer.line(f"let {name}: {type_name} = {largest};")
        zero = self._total.start
        writer.line(f"let {base}: {type_name} = {self._ops['where'](self._is_least(name), zero, name)};")
        return name, base

    def _exponential(self, x: str, base: str) -> str:
        return self._ops["exp"](self._ops["sub"](x, base))

    def _is_least(self, x: str) -> str:
        return self._ops["eq"](x, self._maximum.start)
