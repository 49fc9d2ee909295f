"""The derivatives of functions of floats, as plain Python: what the rules of tensorken's ops come down to.

The rules are written once, in the op table, for tensors of any interpreter.  Here is one more: its representations are
Python expressions.  A rule that runs on it writes itself down; compiled, it costs what the same line by hand would.
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
"""`(cotangent, result, *operands) -> cotangents of the operands`, all floats."""

WRITTEN = {
    "add": "({} + {})",
    "sub": "({} - {})",
    "mul": "({} * {})",
    "neg": "(-{})",
    "eq": "({} == {})",
    "lt": "({} < {})",
    "where": "({1} if {0} else {2})",
}
"""Ops that are written as Python has them; the others are calls of what the op table has for numbers."""


class Expressions(Interpreter[str]):
    """Computes nothing and writes down expressions of floats."""

    def shape(self, x: str) -> tuple[int, ...]:
        return ()

    def full(self, shape: tuple[int, ...], value: Any, dtype: Any) -> str:
        return repr(value) if math.isfinite(value) else f"float('{value!r}')"

    def interpret(self, op: Op, operands: Sequence[str], params: tuple[Any, ...]) -> str:
        if op.name in WRITTEN:
            return WRITTEN[op.name].format(*operands)
        return f"{op.name}({', '.join(operands)})"


@functools.cache
def expressions(name: str) -> tuple[str, ...]:
    """The cotangents of an elementwise op's operands, in terms of the result's `t`, the result `y` and operands.

    >>> expressions("sin")
    ('(t * cos(a))',)
    >>> expressions("div")
    ('div(t, b)', '(-div((t * y), b))')
    """
    op, interpreter = OPS[name], Expressions()
    t, y, *operands = [Tensor(interpreter, text, (), float64) for text in ("t", "y", *_names(op))]
    pulled = [None if rule is None else rule(t, y, *operands) for rule in op.vjp]
    return tuple(["0.0" if x is None else x.representation for x in pulled])


@functools.cache
def pull_of(name: str) -> Pull:
    """The function that pulls the cotangent of an elementwise op's result back to its operands.

    >>> pull_of("mul")(1.0, 15.0, 3.0, 5.0)
    (5.0, 3.0)
    """
    body = "".join([f"{expression}, " for expression in expressions(name)])
    known = {other.name: other.scalar for other in OPS.values() if other.scalar is not None}
    pull: Pull = eval(f"lambda t, y, {', '.join(_names(OPS[name]))}: ({body})", known)
    return pull


def _names(op: Op) -> str:
    return "abc"[: op.arity]
