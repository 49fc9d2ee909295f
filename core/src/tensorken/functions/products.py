"""Products of matrices and vectors: sums of elementwise products, which the interpreters below never build."""

from __future__ import annotations

from typing import Any

from tensorken.creation import pair_of_operands
from tensorken.dispatch import binary
from tensorken.errors import DTypeError, ShapeError
from tensorken.functions.operands import a_tensor_of
from tensorken.spec.dtypes import bool_
from tensorken.spec.op import OPS
from tensorken.tensor import Tensor

__all__ = [
    "dot",
    "matmul",
]


def matmul(a: Any, b: Any) -> Tensor:
    """The matrix product, by numpy's rules: leading axes are a batch and broadcast, one axis is a row or column.

    The product of every row with every column, summed: the interpreters below keep it from ever being built.

    Raises:
        ShapeError: if an operand has no axes, or the inner sizes differ.

    >>> import tensorken as tk
    >>> (tk.tensor([[1.0, 2.0]]) @ tk.tensor([3.0, 4.0])).tolist()
    [11.0]
    """
    a, b = pair_of_operands("matmul", a, b, a_tensor_of(a, b))
    if a.ndim == 0 or b.ndim == 0:
        raise ShapeError(
            f"matmul: need at least one axis each, got shapes {a.shape} and {b.shape}; use * to scale"
        )
    if a.dtype is bool_:
        raise DTypeError(
            f"matmul: not defined for bool, got shapes {a.shape} and {b.shape}; cast first (x.astype)"
        )
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise ShapeError(
            f"matmul: inner sizes differ, {a.shape} @ {b.shape}: axis -1 of the first has {a.shape[-1]}, "
            f"axis {-2 if b.ndim > 1 else -1} of the second has {inner}; transpose one"
        )
    rows, columns = a, b
    if b.ndim > 1:
        if a.ndim > 1:
            rows = a.reshape((*a.shape[:-1], 1, a.shape[-1]))
            columns = b.reshape((*b.shape[:-2], 1, *b.shape[-2:]))
        columns = columns.mT
    try:
        return binary(OPS["mul"], rows, columns).sum(-1)
    except ShapeError:
        raise ShapeError(
            f"matmul: the batch axes of {a.shape} @ {b.shape} do not broadcast; need equal sizes, or 1"
        ) from None


def dot(a: Any, b: Any) -> Tensor:
    """numpy's dot: the sum over the last axis of a and the last but one of b, with all other axes side by side."""
    x, y = pair_of_operands("dot", a, b, a_tensor_of(a, b))
    if x.ndim == 0 or y.ndim == 0:
        return x * y
    if (x.ndim <= 2 and y.ndim <= 2) or y.ndim == 1:
        return matmul(x, y)
    outer = x.reshape(x.shape[:-1] + (1,) * (y.ndim - 1) + x.shape[-1:])
    inner = y.ndim - 2
    if x.shape[-1] != y.shape[inner]:
        raise ShapeError(f"dot: sizes differ, axis -1 of {x.shape} and axis -2 of {y.shape}; transpose one")
    order = tuple([i for i in range(y.ndim) if i != inner]) + (inner,)
    return (outer * y.permute(order)).sum(-1)
