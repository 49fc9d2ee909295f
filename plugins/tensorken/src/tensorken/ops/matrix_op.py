"""The declaration of ops on matrices: their shape rules, dtype rule and samples.

A matrix is the last two axes of a tensor.  The axes before them are a batch, of one shape for all operands of an op.
So an op on matrices has no axes among its params, and under vmap it has one more batch axis.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorken.ops.matrices import as_column, identity
from tensorken_core.errors import DTypeError, ShapeError
from tensorken_core.language.declare import Method, primitive
from tensorken_core.language.dtype_rules import floating
from tensorken_core.language.dtypes import DType
from tensorken_core.language.op import Sample
from tensorken_core.language.shapes import Shape


def matrices(x: Shape) -> Shape:
    """The shape of matrices of any size."""
    if len(x) < 2:
        raise ShapeError(f"need matrices, at least 2 axes, got shape {x}; reshape first")
    return x


def square(x: Shape) -> Shape:
    """The shape of square matrices."""
    if len(x) < 2 or x[-1] != x[-2]:
        raise ShapeError(f"need square matrices, got shape {x}; give as many rows as columns")
    return x


def system(a: Shape, b: Shape, *params: Any) -> Shape:
    """The shape of the right-hand sides b, which are the columns of a matrix, of a system with square matrix a."""
    if len(matrices(b)) != len(square(a)) or a[:-1] != b[:-1]:
        raise ShapeError(
            f"need matrices with equal batch axes and equal numbers of rows, got shapes {a} and {b}; broadcast first"
        )
    return b


def dominant(x: Any, *rest: Any) -> tuple[Any, ...]:
    """The operands, with large increasing numbers added to the diagonal of the first.

    Such a matrix is well conditioned, its lower triangle defines a positive definite matrix, and its eigenvalues and
    singular values are well separated.
    """
    m, n = x.shape[-2:]
    return (
        x + identity(x, m, n) * as_column(x.constant([6 * (i + 1) for i in range(m)], x.dtype, (m,))),
        *rest,
    )


SQUARES: tuple[Sample, ...] = ((((3, 3),), ()), (((2, 2, 2),), ()))
"""A square matrix, and a batch of two."""


def matrix_op(
    *,
    shape: Callable[..., Any] = square,
    results: int = 1,
    params: tuple[str, ...] = (),
    adjust_samples: Callable[..., Any] = dominant,
    samples: tuple[Sample, ...] = SQUARES,
    **facts: Any,
) -> Callable[[Method], Method]:
    """Declare an op on matrices of one dtype, float32 or float64; narrower floats are too imprecise for them.

    By default it takes one square matrix.
    """

    def rule(*args: Any) -> Any:
        dtype: DType = floating(*args[: len(args) - len(params)])
        if dtype.wide is not dtype:
            raise DTypeError(f"not defined for {dtype}; it takes float32, float64; cast first (x.astype)")
        return dtype if results == 1 else (dtype,) * results

    facts |= {"results": results, "adjust_samples": adjust_samples, "samples": samples}
    return primitive(shape=shape, dtype=rule, params=params, **facts)
