"""Blocks, concatenation by indexing, and changes of the number of elements.

Raises:
    ShapeError: if shapes do not fit together.
"""

from __future__ import annotations

import math
from typing import Any

from tensorken.array_like import ArrayLike
from tensorken.arrays.creation import ShapeLike, shape_of
from tensorken.arrays.functions.cumulative import diff
from tensorken.arrays.functions.joining import concatenate
from tensorken.arrays.functions.operands import first_operand, promoted_tensors
from tensorken.arrays.functions.ranges import arange, linspace
from tensorken.arrays.functions.searching import nonzero_indices
from tensorken.arrays.functions.shaping import transpose
from tensorken_core.errors import ArgumentError, ShapeError
from tensorken_core.language.dtypes import bool_, int32
from tensorken_core.language.shapes import short_repr
from tensorken_core.tensor.coercion import as_operand
from tensorken_core.tensor.tensor import Tensor, as_tensor

__all__ = ["block", "c_", "ediff1d", "fill_diagonal", "r_", "resize", "trim_zeros"]


def block(tensors: ArrayLike) -> Tensor:
    """A tensor assembled from nested lists of blocks: the innermost lists along the last axis, outer ones before it.

    Raises:
        ArgumentError: if lists are empty, or not nested equally deep.
        ShapeError: if the sizes of blocks do not fit together.

    >>> import tensorken as tk
    >>> tk.block([[tk.ones((2, 2)), tk.zeros((2, 1))], [5.0, 6.0, 7.0]]).tolist()
    [[1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [5.0, 6.0, 7.0]]
    """
    leaves: list[Any] = []
    depth = _depth(tensors, leaves)
    pieces = promoted_tensors("block", leaves)
    rank = max([depth, *[piece.ndim for piece in pieces]])
    filled = iter([piece.reshape((1,) * (rank - piece.ndim) + piece.shape) for piece in pieces])

    def joined(part: Any, level: int) -> Tensor:
        if not isinstance(part, list):
            return next(filled)
        return concatenate([joined(inner, level + 1) for inner in part], rank - depth + level)

    return joined(tensors, 0)


def _depth(part: Any, leaves: list[Any]) -> int:
    """The depth of nested lists; their leaves are appended in order."""
    if not isinstance(part, list):
        leaves.append(part)
        return 0
    depths = {_depth(inner, leaves) for inner in part}
    if len(depths) != 1:
        raise ArgumentError(
            "block: lists must have elements and be nested equally deep; write [[a, b], [c, d]]"
        )
    return 1 + depths.pop()


class Concatenation:
    """An object that concatenates what is between its brackets: tensors, numbers, and slices, which mean ranges."""

    __slots__ = ("_axis", "_name", "_new_at", "_rank")

    def __init__(self, name: str, axis: int, rank: int, new_at: int) -> None:
        self._name, self._axis, self._rank, self._new_at = name, axis, rank, new_at

    def __repr__(self) -> str:
        return f"tensorken.{self._name}"

    def __getitem__(self, key: Any) -> Tensor:
        items = list(key) if isinstance(key, tuple) else [key]
        axis, rank, new_at = self._axis, self._rank, self._new_at
        if items and isinstance(items[0], str):
            axis, rank, new_at = self._directive(items.pop(0))
        like = next((item for item in items if isinstance(item, Tensor)), None)
        pieces = []
        for item in items:
            if isinstance(item, slice):
                piece = _range(item)
            elif isinstance(item, str):
                raise ArgumentError(f"{self._name}: a string must be the first entry, got {short_repr(item)}")
            else:
                piece = as_tensor(item) if like is None else as_operand(self._name, item, like)
            added = rank - piece.ndim
            if added > 0:
                first = new_at if new_at >= 0 else new_at + added + 1
                own = list(range(added, rank))
                order = list(range(added))
                order[first:first] = own
                spread = piece.reshape((1,) * added + piece.shape)
                piece = spread if piece.ndim == 0 else transpose(spread, order)
            pieces.append(piece)
        return concatenate(pieces, axis)

    def _directive(self, text: str) -> tuple[int, int, int]:
        """The axis, the least number of axes, and where the axes of a vector are among them."""
        try:
            numbers = [int(part) for part in text.split(",")]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 3:
            raise ArgumentError(
                f"{self._name}: a directive has one to three ints, such as '0,2', got {short_repr(text)}; "
                f"there are no matrices of numpy's own class"
            )
        axis, rank, new_at = [*numbers, *[self._axis, 1, -1][len(numbers) :]]
        return axis, rank, new_at


def _range(item: slice) -> Tensor:
    """The numbers from start to stop; an imaginary step is a count, and includes the stop."""
    start = 0 if item.start is None else item.start
    step = 1 if item.step is None else item.step
    numbers: Tensor = (
        linspace(start, item.stop, int(abs(step)))
        if isinstance(step, complex)
        else arange(start, item.stop, step)
    )
    return numbers


r_ = Concatenation("r_", 0, 1, -1)
"""`r_[...]` concatenates along the first axis: tensors, numbers, and slices, which mean ranges.

>>> import tensorken as tk
>>> tk.r_[1:4, 0, tk.tensor([7, 8])].tolist(), tk.r_[0.0:1.0:3j].tolist()
([1, 2, 3, 0, 7, 8], [0.0, 0.5, 1.0])
"""

c_ = Concatenation("c_", -1, 2, 0)
"""`c_[...]` concatenates along the last axis; vectors become columns.

>>> import tensorken as tk
>>> tk.c_[tk.tensor([1, 2]), tk.tensor([3, 4])].tolist()
[[1, 3], [2, 4]]
"""


def resize(x: ArrayLike, new_shape: ShapeLike) -> Tensor:
    """The elements of x in another shape, repeated in order as often as needed; zeros if x has none.

    Raises:
        ShapeError: if a size is negative.

    >>> import tensorken as tk
    >>> tk.resize([1, 2, 3], (2, 4)).tolist()
    [[1, 2, 3, 1], [2, 3, 1, 2]]
    """
    y = as_tensor(x).ravel()
    shape = shape_of("resize", new_shape)
    size = math.prod(shape)
    if y.size == 0:
        return y.pad(((0, size),)).reshape(shape)
    count = -(-size // y.size)
    rows = y.reshape((1, y.size)).expand((count, y.size)).reshape((count * y.size,))
    return rows.crop(((0, size),)).reshape(shape)


def ediff1d(x: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Tensor:
    """The differences of neighbours in the flattened x, between values to put before and after them.

    >>> import tensorken as tk
    >>> tk.ediff1d([1, 2, 4], to_end=9).tolist()
    [1, 2, 9]
    """
    y = first_operand("ediff1d", x, to_begin).ravel()
    ends = [
        None if e is None else as_operand("ediff1d", e, y).astype(y.dtype).ravel() for e in (to_begin, to_end)
    ]
    pieces = [ends[0], diff(y), ends[1]]
    return concatenate([piece for piece in pieces if piece is not None])


def trim_zeros(x: ArrayLike, trim: str = "fb") -> Tensor:
    """A vector without its leading and trailing zeros.

    Args:
        trim: "f" removes zeros at the front, "b" at the back, "fb" both.

    Raises:
        ShapeError: if x is not a vector.
        ArgumentError: if `trim` has other letters.
        ConcretizationError: if the values are not known, as under vmap: the shape of the result depends on them.

    >>> import tensorken as tk
    >>> tk.trim_zeros([0, 0, 1, 0, 2, 0]).tolist()
    [1, 0, 2]
    """
    y = as_tensor(x)
    letters = set(str(trim).lower())
    if y.ndim != 1:
        raise ShapeError(f"trim_zeros: need a vector, got shape {y.shape}; crop other tensors by slices")
    if not letters or not letters <= {"f", "b"}:
        raise ArgumentError(f"trim_zeros: trim must be 'f', 'b' or 'fb', got {short_repr(trim)}")
    kept = nonzero_indices("trim_zeros", y.astype(bool_))
    if kept.size == 0:
        return y.crop(((0, 0),))
    start = int(kept[0]) if "f" in letters else 0
    return y.crop(((start, int(kept[-1]) + 1 if "b" in letters else y.size),))


def fill_diagonal(x: ArrayLike, val: ArrayLike, wrap: bool = False) -> Tensor:
    """A copy of x with values on its main diagonal.

    It is numpy's function for immutable tensors: the result is returned, and x stays as it is.

    Args:
        val: a number, or values, which are repeated in order as often as needed.
        wrap: whether the diagonal of a tall matrix begins again below it.

    Raises:
        ShapeError: if x has fewer than two axes, or more than two of different sizes.

    >>> import tensorken as tk
    >>> tk.fill_diagonal(tk.zeros((2, 2)), 5.0).tolist()
    [[5.0, 0.0], [0.0, 5.0]]
    """
    y = as_tensor(x)
    if y.ndim < 2 or (y.ndim > 2 and len(set(y.shape)) > 1):
        raise ShapeError(f"fill_diagonal: need two axes, or more of one size, got shape {y.shape}")
    if y.ndim == 2:
        step = y.shape[1] + 1
        end = y.size if wrap else min(y.size, y.shape[1] * y.shape[1])
    else:
        step, end = sum([math.prod(y.shape[i + 1 :]) for i in range(y.ndim)]), y.size
    positions = y.constant(range(0, end, step), int32, (len(range(0, end, step)),))
    values = as_operand("fill_diagonal", val, y).astype(y.dtype)
    return y.ravel().at[positions].set(resize(values, positions.size)).reshape(y.shape)
