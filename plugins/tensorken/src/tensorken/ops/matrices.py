"""Functions of matrices for bodies and rules; a matrix is the last two axes of a tensor, the other axes are a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorken_core.language.dtypes import complex64, complex128, float32, float64, int32

Tensor = Any

EPSILON = {float32: 2.0**-23, float64: 2.0**-52, complex64: 2.0**-23, complex128: 2.0**-52}
"""The distance from 1 to the next larger number."""


def is_complex(x: Tensor) -> bool:
    """Whether the elements are complex numbers, which are pairs of real tensors."""
    return x.dtype.kind == "complex"  # type: ignore[no-any-return]


def conjugate(x: Tensor) -> Tensor:
    """The complex conjugates; real numbers are their own."""
    return type(x)(x.real, -x.imag, x.is_real) if is_complex(x) else x


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transposes; of real matrices, the transposes."""
    return conjugate(x.mT)


def real_part(x: Tensor) -> Tensor:
    """The real parts; of real numbers, they themselves."""
    return x.real if is_complex(x) else x


def square_of_modulus(x: Tensor) -> Tensor:
    """The squares of the moduli, which are real."""
    return x.real.square() + x.imag.square() if is_complex(x) else x.square()


def phase(x: Tensor) -> Tensor:
    """x / |x|, and 1 where x is 0; of real numbers 1 or -1."""
    return x.eq(0.0).where(1.0, x.sign()) if is_complex(x) else (x < 0.0).where(-1.0, x.ones_like())


def row_indices(x: Tensor, m: int) -> Tensor:
    """0, 1, ..., m - 1 as a column, at the level of x."""
    return x.constant(range(m), int32, (m, 1))


def column_indices(x: Tensor, n: int) -> Tensor:
    """0, 1, ..., n - 1 as a row, at the level of x."""
    return x.constant(range(n), int32, (1, n))


def identity(x: Tensor, m: int, n: int) -> Tensor:
    """An m by n identity matrix for each matrix of x, in the dtype of x."""
    ones = row_indices(x, m).eq(column_indices(x, n)).astype(x.dtype)
    return ones.broadcast_to((*x.shape[:-2], m, n))


def lower_triangle(x: Tensor, diagonal: int = 0) -> Tensor:
    """The elements on and below a diagonal, zeros above it."""
    m, n = x.shape[-2:]
    return (column_indices(x, n) <= row_indices(x, m) + diagonal).where(x, 0.0)


def upper_triangle(x: Tensor, diagonal: int = 0) -> Tensor:
    """The elements on and above a diagonal, zeros below it."""
    m, n = x.shape[-2:]
    return (column_indices(x, n) >= row_indices(x, m) + diagonal).where(x, 0.0)


def halved_triangle(x: Tensor) -> Tensor:
    """The lower triangle with half of the diagonal; for Hermitian x, its sum with its adjoint is x."""
    return (lower_triangle(x) + lower_triangle(x, -1)) * 0.5


def from_lower(x: Tensor) -> Tensor:
    """The symmetric, or Hermitian, matrix with the lower triangle of x; imaginary parts of its diagonal are ignored."""
    if not is_complex(x):
        return lower_triangle(x) + lower_triangle(x, -1).mT
    below = lower_triangle(x.imag, -1)
    return type(x)(from_lower(x.real), below - below.mT)


def diagonal(x: Tensor) -> Tensor:
    """The elements on the main diagonal, as the last axis; NaN or infinity off the diagonal has no effect."""
    m, n = x.shape[-2:]
    kept = row_indices(x, m).eq(column_indices(x, n)).where(x, 0.0)
    return kept.sum_in_own_dtype(-1 if m <= n else -2)


def diagonal_matrix(x: Tensor) -> Tensor:
    """The square matrix with the last axis of x on its diagonal and zeros elsewhere."""
    n = x.shape[-1]
    column = x.reshape((*x.shape, 1))
    return row_indices(x, n).eq(column_indices(x, n)).where(column, 0.0)


def rows(x: Tensor, start: int, end: int) -> Tensor:
    """The rows from start to end (exclusive)."""
    if (start, end) == (0, x.shape[-2]):
        return x
    return x.crop((*[(0, n) for n in x.shape[:-2]], (start, end), (0, x.shape[-1])))


def columns(x: Tensor, start: int, end: int) -> Tensor:
    """The columns from start to end (exclusive)."""
    if (start, end) == (0, x.shape[-1]):
        return x
    return x.crop((*[(0, n) for n in x.shape[:-1]], (start, end)))


def row_at(x: Tensor, k: Any) -> Tensor:
    """Row k; k is an int, or in a loop step that is traced an int32 tensor of shape (1,)."""
    return rows(x, k, k + 1) if isinstance(k, int) else x.gather(k, x.ndim - 2)


def column_at(x: Tensor, k: Any) -> Tensor:
    """Column k; see `row_at` for k."""
    return columns(x, k, k + 1) if isinstance(k, int) else x.gather(k, x.ndim - 1)


def as_row(x: Tensor) -> Tensor:
    """The last axis as a row vector; times a matrix it scales the columns."""
    return x.reshape((*x.shape[:-1], 1, x.shape[-1]))


def as_column(x: Tensor) -> Tensor:
    """The last axis as a column vector; times a matrix it scales the rows."""
    return x.reshape((*x.shape, 1))


def product(x: Tensor) -> Tensor:
    """The product of the elements along the last axis, multiplied in pairs; 1 if there are none."""
    n = x.shape[-1]
    if n == 0:
        return x.sum(-1) + 1.0
    while n > 1:
        half = n // 2
        pairs = columns(x, 0, half) * columns(x, half, 2 * half)
        x = pairs if n % 2 == 0 else pairs.concatenate(columns(x, n - 1, n), axis=-1)
        n = x.shape[-1]
    return x.reshape(x.shape[:-1])


def gaps_of(values: Tensor) -> Tensor:
    """The differences values[j] - values[i], in row i and column j."""
    return as_row(values) - as_column(values)


def divided_by_gaps(x: Tensor, gaps: Tensor) -> Tensor:
    """x / gaps, and 0 on the diagonal; not finite where two values are equal."""
    n = x.shape[-1]
    same = row_indices(x, n).eq(column_indices(x, n))
    return same.where(0.0, x / same.where(1.0, gaps))


def divided_by_all_gaps(x: Tensor, values: Tensor, terms: Sequence[Tensor]) -> Tensor:
    """x / the gaps of values, and 0 where two values are equal and x is 0, both up to rounding errors.

    That is the derivative of a function that does not depend on the basis for equal values, such as a projector.

    Args:
        terms: the matrices whose sum or difference x is; their largest element decides which elements of x are 0.
    """
    gaps, n = gaps_of(values), x.shape[-1]
    unit = 16.0 * n * 2.0**-values.dtype.precision
    size, *rest = [term.abs().max((-2, -1), keepdims=True) for term in terms]
    for other in rest:
        size = size.maximum(other)
    equal = gaps.abs() <= values.abs().max(-1, keepdims=True).reshape((*values.shape[:-1], 1, 1)) * unit
    zero = equal & (x.abs() <= size * (4.0 * unit))
    none = zero.where(True, row_indices(x, n).eq(column_indices(x, n)))
    return none.where(0.0, x / none.where(1.0, gaps))
