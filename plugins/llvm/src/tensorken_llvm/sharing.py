"""Sharing: kernels that do the same with other values are one function of a module.

Two kernels are the same if their texts are: the equations from which they compute what they write, with values as
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from llvmlite import ir

from tensorken.kernels.nests import FusionGroup
from tensorken_llvm.keys import op_text, params_text
from tensorken_llvm.products import MatrixProduct, Operand

if TYPE_CHECKING:
    from tensorken_core.program.program import Equation, Variable


def shared(module: ir.Module, text: str | None, write: Callable[[], ir.Function]) -> ir.Function:
    """The function of a module with a text, written if there is none.

    Args:
        module: of the function.
        text: of the kernel; None for one that is like no other.
        write: writes it.
    """
    if text is None:
        return write()
    known = vars(module).setdefault("functions_by_text", {})  # the functions refer to the module
    if text not in known:
        known[text] = write()
    return known[text]


def product_text(product: MatrixProduct) -> str:
    """The text of a product of matrices."""
    numbers = {v: i for i, v in enumerate((*product.reads, product.result))}

    def part(x: Any) -> Any:
        if isinstance(x, Operand):
            return numbers[x.value], x.offset, x.strides
        return x.dtype.name if x is product.result else x

    return str([part(getattr(product, field.name)) for field in fields(product)])


def kernel_text(
    group: FusionGroup,
    producers: Mapping[Variable, Equation],
    kept: Collection[Variable],
    operands: Sequence[Variable],
    *others: Any,
) -> str | None:
    """The text of a kernel; None if the params of an op have none.

    Args:
        group: what the kernel computes.
        producers: for each computed value its equation.
        kept: the values in memory.
        operands: those that the kernel reads, and then those that it writes.
        others: further facts.
    """
    memory = {v: i for i, v in enumerate(operands)}
    numbers: dict[Variable, int] = {}
    lines = [str((group.rows.shape, group.rows.axes, group.rows.owner is None, *others))]
    pending = list(reversed(group.values))
    while pending:  # the operands of an equation come before it
        v = pending[-1]
        if v in numbers:
            pending.pop()
            continue
        equation = producers.get(v) if v not in kept or v in group.values else None
        if equation is not None:
            missing = [x for x in equation.operands if x not in numbers]
            if missing:
                pending += missing
                continue
            params = params_text(equation.params)
            if params is None:
                return None
            places = [equation.results.index(v), *[numbers[x] for x in equation.operands]]
            lines.append(f"{op_text(equation.op)} {places} {params}")
        elif hasattr(v, "value"):
            lines.append(repr(v.value))
        elif v not in memory:
            return None
        lines.append(f"{v.dtype.name} {v.shape} {memory.get(v)} {v in kept}")
        numbers[v] = len(numbers)
        pending.pop()
    for values in (group.values, group.written):
        lines.append(str([numbers[v] for v in values]))
    return "\n".join(lines)
