"""Expressions: find the public operator, function or method that runs an op.

This module has no table of ops.  Python's operators, and functions and methods with the name of the op, are
candidates; a candidate is correct if its trace on operands like the equation's is this op with these params.
"""

from __future__ import annotations

import importlib
import operator
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from tensorken.arrays import functions
from tensorken.arrays.functions.constants import full_like
from tensorken.programs.passes.common_subexpressions import exact_key
from tensorken_core.language.raw import RawTensor
from tensorken_core.levels.trace import traced
from tensorken_core.program.program import Equation, Literal, Variable
from tensorken_core.tensor.tensor import Tensor

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "==": operator.eq,
    "<": operator.lt,
}
"""Python's binary operators that programs are written with; Python has no such table."""

COMPARISONS = ("==", "<")
"""Operators for which Python may exchange the operands if the first is a number."""


class Expression(NamedTuple):
    """A way to write an op.

    Attributes:
        template: a format string with a field for each operand and then each param.
        operator: the binary operator, if the expression is one.
        call: a function of the operands, then the params, that returns the result.
    """

    template: str
    operator: str | None
    call: Callable[..., Any]


def expression_of(equation: Equation, backend: RawTensor[Any]) -> Expression | None:
    """The first candidate that runs the op of an equation, on its operands with its params; None if there is none."""
    if equation.op.results != 1:
        return None
    return next((x for x in _candidates(equation) if _runs(x, equation, backend)), None)


@cache
def public_functions() -> dict[str, Callable[..., Any]]:
    """The functions of arrays that `tensorken` exports, by name."""
    result: dict[str, Callable[..., Any]] = {}
    for file in pkgutil.iter_modules(functions.__path__):
        module = importlib.import_module(f"{functions.__name__}.{file.name}")
        result.update({name: getattr(module, name) for name in getattr(module, "__all__", ())})
    return result


def _candidates(equation: Equation) -> Iterator[Expression]:
    """Operators, then methods for ops with params and functions for ops without, then functions of a list."""
    op, count = equation.op, len(equation.operands)
    fields = ["{}"] * (count + len(equation.params))
    rest = ", ".join(fields[1:])
    if op.arity == 2 and not op.params:
        for symbol, call in OPERATORS.items():
            yield Expression(f"{{}} {symbol} {{}}", symbol, call)
    if op.arity == 1 and not op.params:
        yield Expression("-{}", None, operator.neg)
    function = public_functions().get(op.name)
    if op.params and op.arity is not None:
        if op.params == ("dtype",):
            yield Expression("{}.astype({})", None, Tensor.astype)
        if hasattr(Tensor, op.name):
            method = getattr(Tensor, op.name)
            yield Expression(f"{{}}.{op.name}({rest})", None, method)
            yield Expression(
                f"{{}}.{op.name}({rest}, keepdims=True)", None, lambda *xs: method(*xs, keepdims=True)
            )
    if function is not None:
        yield Expression(f"tk.{op.name}({', '.join(fields)})", None, function)
    if function is not None and op.arity is None:
        arguments = ", ".join([f"[{', '.join(fields[:count])}]", *fields[count:]])
        yield Expression(f"tk.{op.name}({arguments})", None, lambda *xs: function([*xs[:count]], *xs[count:]))


def _runs(expression: Expression, equation: Equation, backend: RawTensor[Any]) -> bool:
    """Whether an expression traces to exactly the op of an equation, on the same operands with the same params."""
    variables = [v for v in equation.operands if not isinstance(v, Literal)] or [*equation.operands]

    def function(*tensors: Tensor) -> list[Any]:
        rest = iter(tensors)
        xs = [
            full_like(tensors[0], v.value, dtype=v.dtype, shape=v.shape)
            if isinstance(v, Literal) and len(variables) < len(equation.operands)
            else next(rest)
            for v in equation.operands
        ]
        return [expression.call(*xs, *equation.params)]

    try:
        program = traced(function, [Variable(v.shape, v.dtype) for v in variables], backend, equation.op.name)
    except Exception:  # noqa: BLE001 - a candidate may raise for these operands or params
        return False
    if len(program.equations) != 1 or program.outputs != program.equations[0].results:
        return False
    (traced_equation,) = program.equations
    operands = [v for v in traced_equation.operands if not isinstance(v, Literal)]
    return (
        traced_equation.op is equation.op
        and len(traced_equation.operands) == len(equation.operands)
        and operands == [*program.inputs]
        and exact_key(traced_equation.op, traced_equation.params) == exact_key(equation.op, equation.params)
    )
