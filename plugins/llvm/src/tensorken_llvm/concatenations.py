"""Concatenations: machine code that copies the operands to their places in the result."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from tensorken_llvm.builder import Builder, new_function
from tensorken_llvm.dtypes import BYTE, NUMPY, POINTER, index_number
from tensorken_llvm.routines import EquationRoutine

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation


@dataclass(frozen=True, slots=True, eq=False)
class Concatenation(EquationRoutine):
    """A concatenation as machine code."""

    @property
    def work(self) -> int:
        """The number of elements."""
        return prod(self.equation.results[0].shape)

    def write(self, module: ir.Module) -> ir.Function:
        """The function, whose arguments are pointers to the operands and the result."""
        (axis,) = self.equation.params
        operands, (result,) = self.equation.operands, self.equation.results
        size = NUMPY[result.dtype.name].itemsize
        name = module.get_unique_name("concatenate")
        function = new_function(module, name, [POINTER] * (len(operands) + 1))
        function.attributes.add("nounwind")
        b = Builder(function.append_basic_block("entry"))
        *sources, destination = function.args
        row = prod(result.shape[axis:]) * size

        def copy_row(i: Any) -> None:
            offset = 0
            for x, source in zip(operands, sources, strict=True):
                part = prod(x.shape[axis:]) * size
                place = b.add(b.mul(i, index_number(row)), index_number(offset))
                b.copy(
                    b.gep(destination, [place], source_etype=BYTE),
                    b.gep(source, [b.mul(i, index_number(part))], source_etype=BYTE),
                    part,
                )
                offset += part

        if self.work:
            b.loop(prod(result.shape[:axis]), copy_row)
        b.ret_void()
        return function


def is_concatenation(equation: Equation) -> bool:
    """Whether an op is a concatenation that machine code computes."""
    return equation.op.name == "concatenate" and equation.results[0].dtype.name in NUMPY
