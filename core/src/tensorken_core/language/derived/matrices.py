"""The declaration of ops on matrices: their shape rules, dtype rule and samples.

A matrix is the last two axes; all axes before them are a batch, the same for all operands of an op.  So an op on
matrices has no axes among its params, and batching it adds one axis in front.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorken_core.errors import DTypeError, ShapeError
from tensorken_core.language.bodies.matrices import as_column, identity
from tensorken_core.language.declare import Method, primitive
from tensorken_core.language.dtype_rules import floating
from tensorken_core.language.dtypes import DType, float16
from tensorken_core.language.op import Sample
from tensorken_core.language.shapes import Shape


def matrices(x: Shape) -> Shape:
    """Matrices of any shape."""
    if len(x) < 2:
        raise ShapeError(f"need matrices, at least 2 axes, got shape {x}; reshape first")
    return x


def square(x: Shape) -> Shape:
    """Square matrices."""
    if len(x) < 2 or x[-1] != x[-2]:
        raise ShapeError(
            f"need square matrices, the last two sizes equal, got shape {x}; give as many rows as columns"
        )
    return x


def system(a: Shape, b: Shape, *params: Any) -> Shape:
    """A square matrix, and the right-hand sides as columns of another."""
    if len(matrices(b)) != len(square(a)) or a[:-1] != b[:-1]:
        raise ShapeError(
            f"need matrices of one batch and one number of rows, got shapes {a} and {b}; broadcast them first"
        )
    return b


def dominant(x: Any, *rest: Any) -> tuple[Any, ...]:
    """The first operand with large numbers, each larger than the one before, added on its diagonals.

    Such a matrix is well conditioned, its lower triangle is that of a positive definite one, and its eigenvalues and
    singular values are apart.
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
    """Declare an op on matrices of one dtype, float32 or float64: float16 has too few digits to eliminate or rotate.

    By default it takes one square matrix.
    """

    def rule(*args: Any) -> Any:
        dtype: DType = floating(*args[: len(args) - len(params)])
        if dtype is float16:
            raise DTypeError("not defined for float16; it takes float32, float64; cast first (x.astype)")
        return dtype if results == 1 else (dtype,) * results

    facts |= {"results": results, "adjust_samples": adjust_samples, "samples": samples}
    return primitive(shape=shape, dtype=rule, params=params, **facts)
