"""Conversion of operands to tensors of one backend and one dtype."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorken_core.errors import ArgumentError
from tensorken_core.language.dtypes import float32
from tensorken_core.language.op import OPS, Op
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.coercion import as_operand, common_dtype
from tensorken_core.tensor.dispatch import binary, unary
from tensorken_core.tensor.level import deepest
from tensorken_core.tensor.tensor import Tensor, as_tensor
from tensorken_core.tensor.value import V


def unary_op(name: str, x: Any) -> Tensor:
    """Apply the elementwise op of this name to one operand."""
    return unary(OPS[name], as_tensor(x))


def binary_op(op: Op, a: Any, b: Any) -> Tensor:
    """Apply an elementwise op to two operands; one may be a number."""
    return binary(op, first_operand(op.name, a, b), b)


def first_operand(name: str, a: Any, b: Any) -> Tensor:
    """Convert the first operand to a tensor, on the backend of the second operand if it is a tensor."""
    return as_operand(name, a, b) if isinstance(b, Tensor) else as_tensor(a)


def first_tensor(a: Any, b: Any) -> Tensor:
    """The first operand that is a tensor; if neither is, the first converted to a tensor."""
    return a if isinstance(a, Tensor) else b if isinstance(b, Tensor) else as_tensor(a)


def floating_of(x: V) -> V:
    """x in float32 if it is neither floating-point nor complex."""
    return x if x.dtype.inexact else x.astype(float32)


def as_tensors(name: str, tensors: Any) -> list[Tensor]:
    """Convert a sequence of operands to tensors, and check that their interpreters can be combined."""
    operands = list(tensors) if isinstance(tensors, Iterable) else []
    if not operands:
        raise ArgumentError(
            f"{name}: need a sequence of at least one tensor, got {short_repr(tensors)}; write {name}([a, b])"
        )
    like = min([x for x in operands if isinstance(x, Tensor)], key=lambda x: x.is_number, default=None)
    xs = [as_tensor(x) if like is None else as_operand(name, x, like) for x in operands]
    interpreters = {x.interpreter for x in xs}
    if len(interpreters) > 1:
        deepest(list(interpreters), name)
    return xs


def promoted_tensors(name: str, tensors: Any) -> list[Tensor]:
    """Convert a sequence of operands to tensors of one dtype, and check that their interpreters can be combined."""
    pieces = as_tensors(name, tensors)
    dtype = common_dtype(pieces)
    return [piece.astype(dtype) for piece in pieces]
