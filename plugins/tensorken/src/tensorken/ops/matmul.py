# mypy: disable-error-code="empty-body"
"""The op `matmul`: products of matrices, in one step where a backend computes them so.

A matrix is the last two axes of a tensor; the axes before them are a batch, of one shape for both operands.  The
function `tk.matmul` composes an expansion, a multiplication and a sum, which programs and compilers understand.  Eager
code on a backend that has `matmul` runs this op instead: one call, and one entry on a tape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorken_core.errors import ShapeError
from tensorken_core.language.declare import primitive
from tensorken_core.language.dtype_rules import numeric
from tensorken_core.language.interpreter import Interpreter, R
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Shape
from tensorken_core.tensor.tensor import Tensor


def _shape(a: Shape, b: Shape) -> Shape:
    if len(a) < 2 or len(a) != len(b) or a[:-2] != b[:-2] or a[-1] != b[-2]:
        raise ShapeError(
            f"need shapes (*batch, m, k) and (*batch, k, n), got {a} and {b}; reshape or transpose first"
        )
    return (*a[:-1], b[-1])


def _sum_of_products(a: Tensor, b: Tensor) -> Tensor:
    *batch, m, k = a.shape
    n = b.shape[-1]
    y = a.reshape((*batch, m, 1, k)) * b.mT.reshape((*batch, 1, n, k))
    return y.sum_in_own_dtype(len(batch) + 2).reshape((*batch, m, n))


def _product(a: Tensor, b: Tensor) -> Tensor:
    y: Tensor = a.apply(OPS["matmul"], b)
    return y


def _batch(flags: tuple[bool, ...], operands: Sequence[Tensor], params: tuple[Any, ...]) -> Tensor:
    """One product of matrices if only the first operand has examples, whose rows then follow one another."""
    a, b = operands
    if not flags[1] and b.ndim == 2:
        *examples, m, k = a.shape
        return _product(a.reshape((math.prod(examples) * m, k)), b).reshape((*examples, m, b.shape[1]))
    count = (a if flags[0] else b).shape[0]
    return _product(
        *[x if flag else x.broadcast_to((count, *x.shape)) for x, flag in zip(operands, flags, strict=True)]
    )


class MatrixProducts(Interpreter[R]):
    """Products of matrices."""

    @primitive(
        shape=_shape,
        dtype=numeric,
        jvp=(lambda t, y, a, b: _product(t, b), lambda t, y, a, b: _product(a, t)),
        vjp=(lambda t, y, a, b: _product(t, b.mT), lambda t, y, a, b: _product(a.mT, t)),
        batch=_batch,
        body=_sum_of_products,
        samples=((((2, 3), (3, 4)), ()), (((2, 2), (2, 2)), ()), (((2, 1, 2), (2, 2, 1)), ())),
    )
    def matmul(self, a: R, b: R) -> R:
        """The sums of products of each row of `a` with each column of `b`."""
