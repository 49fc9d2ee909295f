"""Derivatives of functions of floats, as Python source generated from the VJP rules of tensorken's ops.

The rules are in the op table, for tensors of any interpreter. Here they run on an interpreter whose representations are
Python expressions, which are then compiled. The result is as fast as a hand-written rule.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from tensorken import Tensor, float64
from tensorken_core.language.interpreter import Interpreter
from tensorken_core.language.op import OPS, Op

Pull = Callable[..., tuple[float, ...]]
"""A pullback, `(cotangent, result, *operands) -> cotangents of the operands`, of floats."""

PYTHON_SYNTAX = {
    "add": "({} + {})",
    "sub": "({} - {})",
    "mul": "({} * {})",
    "neg": "(-{})",
    "eq": "({} == {})",
    "lt": "({} < {})",
    "where": "({1} if {0} else {2})",
}
"""Ops with Python syntax; other ops are calls of the scalar functions of the op table."""


class Expressions(Interpreter[str]):
    """An interpreter whose representations are Python expressions of floats."""

    def shape(self, x: str) -> tuple[int, ...]:
        return ()

    def full(self, shape: tuple[int, ...], value: Any, dtype: Any) -> str:
        return repr(value) if math.isfinite(value) else f"float('{value!r}')"

    def interpret(self, op: Op, operands: Sequence[str], params: tuple[Any, ...]) -> str:
        if op.name in PYTHON_SYNTAX:
            return PYTHON_SYNTAX[op.name].format(*operands)
        return f"{op.name}({', '.join(operands)})"


@functools.cache
def expressions(name: str) -> tuple[str, ...]:
    """The cotangents of an elementwise op's operands, as expressions of the cotangent `t`, the result `y` and operands.

    >>> expressions("sin")
    ('(t * cos(a))',)
    >>> expressions("div")
    ('div(t, b)', '(-div((t * y), b))')
    """
    op, interpreter = OPS[name], Expressions()
    t, y, *operands = [Tensor(interpreter, text, (), float64) for text in ("t", "y", *_names(op))]
    cotangents = [None if rule is None else rule(t, y, *operands) for rule in op.vjp]
    return tuple(["0.0" if x is None else x.representation for x in cotangents])


@functools.cache
def vjp_of(name: str) -> Pull:
    """The VJP of an elementwise op, as a function of floats.

    >>> vjp_of("mul")(1.0, 15.0, 3.0, 5.0)
    (5.0, 3.0)
    """
    body = "".join([f"{expression}, " for expression in expressions(name)])
    scope = {other.name: other.scalar for other in OPS.values() if other.scalar is not None}
    pull: Pull = eval(f"lambda t, y, {', '.join(_names(OPS[name]))}: ({body})", scope)
    return pull


def _names(op: Op) -> str:
    return "abc"[: op.arity]
