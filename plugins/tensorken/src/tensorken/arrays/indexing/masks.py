"""Masks as indices: the positions of True.  Their number determines a shape, so the values of the mask are read."""

from __future__ import annotations

from itertools import compress

from tensorken_core.errors import ConcretizationError
from tensorken_core.language.dtypes import DType, int32, position_dtype
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.level import lower
from tensorken_core.tensor.tensor import PIECE, Tensor

FEW = 1024
"""The largest number of elements for which reading all is faster than finding the positions on the backend."""


def true_indices(name: str, mask: Tensor) -> Tensor:
    """The positions of True in the flat mask, in increasing order: 1-D, int32 if the size allows.

    For a large mask only the number of True is read; the backend computes the positions.

    Raises:
        ConcretizationError: if the mask has no known value, or different values in the examples of a batch.
    """
    size = mask.size
    dtype = position_dtype(size)
    try:
        base, value = lower(mask.representation, mask.interpreter)
        if not isinstance(base, RawTensor):
            raise ConcretizationError(f"{type(base).__name__} computes only shapes")
        flat = type(mask)(base, value).ravel()
        if size <= FEW:
            indices = list(compress(range(size), base.ravel(value)))
            return flat.constant(indices, dtype, (len(indices),))
        pieces = [_within(flat, start, min(start + PIECE, size), dtype) for start in range(0, size, PIECE)]
        return pieces[0].concatenate(*pieces[1:])
    except ConcretizationError as error:
        raise ConcretizationError(
            f"{name}: a mask of shape {mask.shape} has no known value here, but the size of the result depends on it; "
            f"use tk.where(mask, x, 0), or x.at[mask].set(v), which need no value"
        ) from error


def _within(flat: Tensor, start: int, end: int, dtype: DType) -> Tensor:
    """The positions of True from a start to an end."""
    piece = flat.crop(((start, end),))
    counts = piece.astype(int32).cumsum(0)  # at each position the number of True up to there, inclusive
    count = int(counts.crop(((end - start - 1, end - start),)).item())
    targets: Tensor = piece.where(counts - 1, count)  # every False gets one extra index, after the last
    found = (one_to(counts, end - start) - 1).scatter_add(targets, 0, count + 1).crop(((0, count),))
    return found.astype(dtype) + start


def one_to(like: Tensor, count: int) -> Tensor:
    """The numbers 1, 2, ..., count, in the dtype and at the level of an integer tensor."""
    one = like.constant([1], like.dtype, (1,))
    return one.expand((count,)).cumsum(0)
