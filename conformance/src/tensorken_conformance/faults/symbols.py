"""Symbols: symbolic expressions have wrong shapes, change, or mean another program."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tensorken_conformance.faults.fault import fault, fault_in_rule
from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import Op
from tensorken_core.language.shapes import Shape
from tensorken_string.backend import Expression, String


@fault("symbolic.shapes", fuse=False, on=String, method="interpret")
def keeps_shape(original: Any, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
    """permute returns an expression of the shape of its operand."""
    y = original(op, operands, params)
    return replace(y, shape=operands[0].shape) if op.name == "permute" else y


@fault("symbolic.determinism", fuse=False, on=String, method="interpret")
def numbers_its_names(original: Callable[..., Any], state: dict[int, None], op: Op, *rest: Any) -> Any:
    """Every expression of sin has the number of the call in its text."""
    state[len(state)] = None
    y = original(op, *rest)
    return replace(y, text=f"{y.text}#{len(state)}") if op.name == "sin" else y


@fault("symbolic.parses", fuse=False, on=String, method="interpret")
def no_brackets(original: Any, op: Op, operands: Sequence[Expression], params: tuple[Any, ...]) -> Any:
    """Expressions of infix ops have no brackets, so products of sums read as sums of products."""
    y = original(op, operands, params)
    return replace(y, text=y.text[1:-1]) if op.name in ("add", "sub") else y


@fault("symbolic.refuses", fuse=False, on=String, method="ravel")
def makes_up_values(original: Callable[..., Any], x: Expression) -> Any:
    """ravel returns zeros, though there are no values."""
    return [0.0] * math.prod(x.shape)


@fault("symbolic.errors", fuse=False, on=String, method="new")
def refuses_ints(original: Callable[..., Any], shape: Shape, data: Any, dtype: DType) -> Any:
    """new of int32 fails with a KeyError."""
    return original(shape, data, {"float32": dtype, "float64": dtype, "bool": dtype}[dtype.name])


@fault("symbolic.declared", fuse=False)
class DeclaresUnknownDtype(String):
    """A dtype that does not exist is declared."""

    capabilities = replace(String.capabilities, dtypes=(*String.capabilities.dtypes, "float8"))


@fault_in_rule("symbolic.derivatives", op="expand", modes=("vjp",), fuse=False, on=String)
def cotangent_of_result(original: Any, t: Any, y: Any, x: Any, shape: Any) -> Any:
    """In expressions, the VJP of expand returns the cotangent unchanged, with the shape of the result."""
    return t
