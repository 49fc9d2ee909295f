"""Symbols: expressions in place of numbers have wrong shapes, change, or mean another program."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tensorken.spec.op import Op
from tensorken_conformance.faults.fault import fault
from tensorken_string.backend import Expression, String


@fault("symbolic.shapes", fuse=False)
class KeepsShape(String):
    """permute gives an expression of the shape that its operand has."""

    def permute(self, x: Expression, order: Any) -> Expression:
        y: Expression = self.interpret(super().permute.op, (x,), (order,))  # type: ignore[attr-defined]
        return replace(y, shape=x.shape)


@fault("symbolic.determinism", fuse=False)
class NumbersItsNames(String):
    """Every expression of exp carries the number of its call."""

    def __init__(self) -> None:
        self.numbers = itertools.count()

    def interpret(self, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
        y = super().interpret(op, operands, params)
        return replace(y, text=f"{y.text}#{next(self.numbers)}") if op.name == "exp" else y


@fault("symbolic.parses", fuse=False)
class NoBrackets(String):
    """Expressions of infix ops have no brackets, so products of sums read as sums of products."""

    def interpret(self, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
        y = super().interpret(op, operands, params)
        return replace(y, text=y.text[1:-1]) if op.name in ("add", "sub") else y
