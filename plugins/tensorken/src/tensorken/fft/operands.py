"""Operands of transforms: their dtypes, lengths, axes and factors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tensorken.arrays.functions.arguments import ordered_axes_of
from tensorken_core.errors import ArgumentError, DTypeError, ShapeError
from tensorken_core.language.dtypes import float32
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.normalization import axis_of, integer_of
from tensorken_core.tensor.tensor import Tensor, as_tensor

NORMS = ("backward", "ortho", "forward")


def operand(name: str, x: Any, real: bool = False) -> Tensor:
    """x as a tensor of float32, float64, complex64 or complex128.

    Args:
        real: whether complex numbers are an error.
    """
    y = as_tensor(x)
    if real and y.dtype.kind == "complex":
        raise DTypeError(f"{name}: takes real numbers, got {y.dtype}; use tk.fft.fft, or take x.real")
    return y.astype(y.dtype.wide if y.dtype.inexact else float32)


def size_of(name: str, size: Any) -> int:
    """A length, at least 1."""
    n = integer_of(name, "a length", size)
    if n < 1:
        raise ShapeError(f"{name}: a transform needs at least 1 element, got length {n}; give a positive one")
    return n


def sizes_and_axes(
    name: str, x: Tensor, s: Sequence[int | None] | None, axes: Sequence[int] | None
) -> tuple[list[int | None], list[int]]:
    """The lengths, None for those of x, and the axes; without axes, the last ones, as many as there are lengths."""
    if s is not None and not isinstance(s, Sequence):
        raise ArgumentError(f"{name}: s must be a sequence of lengths, got {short_repr(s)}; write s=(n,)")
    sizes = None if s is None else list(s)
    if axes is None:
        count = x.ndim if sizes is None else len(sizes)
        if count > x.ndim:
            raise ArgumentError(f"{name}: {count} lengths for shape {x.shape}; give at most {x.ndim}")
        found = list(range(x.ndim - count, x.ndim))
    else:
        found = list(ordered_axes_of(name, x.shape, axes))
    if sizes is None:
        return [None] * len(found), found
    if len(sizes) != len(found):
        raise ArgumentError(f"{name}: {len(sizes)} lengths for {len(found)} axes; give each axis one")
    return [None if n is None or n == -1 else size_of(name, n) for n in sizes], found


def fitted(name: str, x: Tensor, n: int | None, axis: int) -> tuple[Tensor, int]:
    """x cropped, or padded with zeros, to n elements along the axis, which is then the last one; and n."""
    axis = axis_of(name, x.shape, axis)
    size = x.shape[axis]
    n = size_of(name, size if n is None else n)
    y = to_last(x, axis)
    before = [(0, m) for m in y.shape[:-1]]
    if n < size:
        y = y.crop([*before, (0, n)])
    elif n > size:
        y = y.pad([*[(0, 0)] * len(before), (0, n - size)])
    return y, n


def to_last(x: Tensor, axis: int) -> Tensor:
    """x with an axis as the last one."""
    return x if axis == x.ndim - 1 else x.permute((*[i for i in range(x.ndim) if i != axis], axis))


def from_last(x: Tensor, axis: int) -> Tensor:
    """x with the last axis at this position."""
    axis %= x.ndim
    last = x.ndim - 1
    return x if axis == last else x.permute((*range(axis), last, *range(axis, last)))


def factor(name: str, norm: str | None, n: int, inverse: bool) -> float:
    """The factor of a transform of n elements."""
    norm = norm or "backward"
    if norm not in NORMS:
        raise ArgumentError(f"{name}: norm must be 'backward', 'ortho' or 'forward', got {short_repr(norm)}")
    if norm == "ortho":
        return 1.0 / math.sqrt(n)
    return 1.0 / n if inverse == (norm == "backward") else 1.0


def scaled(x: Tensor, number: float) -> Tensor:
    """x times a number."""
    return x if number == 1.0 else x * number
