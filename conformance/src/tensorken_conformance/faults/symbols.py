"""Symbols: expressions in place of numbers have wrong shapes, change, or mean another program."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tensorken_conformance.faults.changes import rules
from tensorken_conformance.faults.fault import Course, fault
from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import Op
from tensorken_core.language.shapes import Shape
from tensorken_string.backend import Expression, String


@fault("symbolic.shapes", fuse=False)
class KeepsShape(String):
    """permute gives an expression of the shape that its operand has."""

    def permute(self, x: Expression, order: Any) -> Expression:
        y: Expression = self.interpret(super().permute.op, (x,), (order,))  # type: ignore[attr-defined]
        return replace(y, shape=x.shape)


@fault("symbolic.determinism", fuse=False)
class NumbersItsNames(String):
    """Every expression of sin carries the number of its call."""

    def __init__(self) -> None:
        self.numbers = itertools.count()

    def interpret(self, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
        y = super().interpret(op, operands, params)
        return replace(y, text=f"{y.text}#{next(self.numbers)}") if op.name == "sin" else y


@fault("symbolic.parses", fuse=False)
class NoBrackets(String):
    """Expressions of infix ops have no brackets, so products of sums read as sums of products."""

    def interpret(self, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
        y = super().interpret(op, operands, params)
        return replace(y, text=y.text[1:-1]) if op.name in ("add", "sub") else y


@fault("symbolic.refuses", fuse=False)
class MakesUpValues(String):
    """ravel gives zeros, where there are no values."""

    def ravel(self, x: Expression) -> Any:
        return [0.0] * math.prod(x.shape)


@fault("symbolic.errors", fuse=False)
class RefusesInts(String):
    """new of int32 fails with a KeyError."""

    def new(self, shape: Shape, data: Any, dtype: DType) -> Expression:
        return super().new(shape, data, {"float32": dtype, "float64": dtype, "bool": dtype}[dtype.name])


@fault("symbolic.declared", fuse=False)
class DeclaresUnknownDtype(String):
    """A dtype is declared that there is not."""

    capabilities = replace(String.capabilities, dtypes=(*String.capabilities.dtypes, "float8"))


@fault("symbolic.derivatives", fuse=False, on=String)
def cotangent_of_result() -> Course:
    """In expressions, the VJP of expand hands the cotangent on as it is, with the shape of the result."""
    with rules("expand", vjp=(lambda t, y, x, shape: t,)):
        yield None
