"""Covariances and correlations of variables.

Raises:
    DTypeError: if the function is not defined for the dtype.
    ShapeError: if there are more than two axes, or shapes do not fit together.
"""

from __future__ import annotations

from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.functions.arithmetic import clip
from tensorken.arrays.functions.broadcasting import atleast_2d
from tensorken.arrays.functions.complex_parts import conj, real
from tensorken.arrays.functions.diagonals import diagonal
from tensorken.arrays.functions.operands import first_operand, floating_of, promoted_tensors
from tensorken.arrays.indexing.checks import require
from tensorken.complex_numbers.tensor import ComplexTensor
from tensorken_core.errors import ShapeError
from tensorken_core.language.dtypes import real_dtype
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.normalization import integer_of
from tensorken_core.tensor.tensor import Tensor

__all__ = ["corrcoef", "cov"]


def cov(
    x: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
) -> Tensor:
    """The covariance matrix of variables: a row of x is a variable, a column an observation.

    The covariance of complex variables is the mean of a * conj(b), for their differences a and b from the means.

    Args:
        x: one variable or a matrix of several.
        y: further variables with the same observations.
        rowvar: whether rows are variables; else columns are.
        bias: whether to divide by the number of observations; by default by one less.
        ddof: the number to subtract from the number of observations, instead of `bias`.
        fweights: for each observation an integer, the times that it was observed.
        aweights: for each observation its weight.

    Returns:
        A square matrix, or for a single variable a tensor of shape (); float32 for ints and bools.

    Raises:
        ArgumentError: if ddof is no integer, or a weight is known to be negative, or one of fweights to be no integer.
        ShapeError: if there are more than two axes, or shapes do not fit together.

    >>> import tensorken as tk
    >>> tk.cov([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    rows = _variables("cov", x, y, rowvar)
    count = rows.shape[1]
    weights: Any = None
    for given in (fweights, aweights):
        if given is not None:
            w = as_operand("cov", given, rows)
            if given is fweights and w.dtype.kind != "int":
                require("cov", "fweights", w.eq(w.floor()) if w.dtype.inexact else ~w.eq(w), "integers", w)
            require("cov", "fweights" if given is fweights else "aweights", w >= 0, "at least 0", w)
            w = w.astype(real_dtype(rows.dtype))
            if w.shape != (count,):
                raise ShapeError(f"cov: need a weight for each of {count} observations, got shape {w.shape}")
            weights = w if weights is None else weights * w
    subtracted = (0 if bias else 1) if ddof is None else integer_of("cov", "ddof", ddof)
    total: Any = count if weights is None else weights.sum()
    degrees: Any = total - subtracted
    if aweights is not None and subtracted:
        a = as_operand("cov", aweights, rows).astype(real_dtype(rows.dtype))
        degrees = total - subtracted * (weights * a).sum() / total
    weighed = rows if weights is None else rows * weights
    distance: Any = rows - weighed.sum(1, True) / total
    products = (distance if weights is None else distance * weights) @ conj(distance).mT
    matrix: Tensor = products / (
        max(degrees, 0) if isinstance(degrees, int | float) else degrees.maximum(0.0)
    )
    return matrix.reshape(()) if matrix.shape == (1, 1) else matrix


def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True) -> Tensor:
    """Pearson's correlation coefficients of variables: the covariances divided by the standard deviations.

    Args:
        x: one variable or a matrix of several.
        y: further variables with the same observations.
        rowvar: whether rows are variables; else columns are.

    Raises:
        ShapeError: if there are more than two axes, or shapes do not fit together.

    >>> import tensorken as tk
    >>> tk.corrcoef([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    c: Any = cov(x, y, rowvar)
    if c.ndim == 0:
        one: Tensor = c / c
        return one
    deviations = real(diagonal(c)).sqrt()
    r = c / deviations.reshape((-1, 1)) / deviations
    if isinstance(r, ComplexTensor):
        return ComplexTensor(clip(r.real, -1.0, 1.0), clip(r.imag, -1.0, 1.0))
    return clip(r, -1.0, 1.0)


def _variables(name: str, x: Any, y: Any, rowvar: bool) -> Tensor:
    """The variables as rows of one floating-point matrix."""
    given = [first_operand(name, x, y)] if y is None else promoted_tensors(name, (x, y))
    for one in given:
        if one.ndim > 2:
            raise ShapeError(f"{name}: need at most two axes, got shape {one.shape}; reshape first")
    rows = [floating_of(one if rowvar or one.ndim < 2 else one.mT) for one in given]
    rows = [atleast_2d(one) for one in rows]
    if len({one.shape[1] for one in rows}) > 1:
        raise ShapeError(
            f"{name}: x and y have {rows[0].shape[1]} and {rows[1].shape[1]} observations; give equally many"
        )
    return rows[0].concatenate(*rows[1:], axis=0)
