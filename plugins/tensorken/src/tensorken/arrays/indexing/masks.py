"""Masks as indices: the positions of True.  Their number determines a shape, so the values of the mask are read."""

from __future__ import annotations

from itertools import compress

from tensorken_core.errors import ConcretizationError
from tensorken_core.language.dtypes import int32, int64
from tensorken_core.language.raw import RawTensor
from tensorken_core.tensor.level import lower
from tensorken_core.tensor.tensor import Tensor

FEW = 1024
"""The largest number of elements for which reading all is faster than finding the positions on the backend."""


def true_indices(name: str, mask: Tensor) -> Tensor:
    """The positions of True in the flat mask, in increasing order: 1-D, int32 if the size allows.

    For a large mask only the number of True is read; the backend computes the positions.

    Raises:
        ConcretizationError: if the mask has no known value, or different values in the examples of a batch.
    """
    size = mask.size
    dtype = int32 if size < 2**31 else int64
    try:
        base, value = lower(mask.representation, mask.interpreter)
        if not isinstance(base, RawTensor):
            raise ConcretizationError(f"{type(base).__name__} computes only shapes")
        flat = type(mask)(base, value).ravel()
        if size <= FEW:
            indices = list(compress(range(size), base.ravel(value)))
            return flat.constant(indices, dtype, (len(indices),))
        counts = flat.astype(dtype).cumsum(0)  # at each position the number of True up to there, inclusive
        count = int(counts.crop(((size - 1, size),)).item())
    except ConcretizationError as error:
        raise ConcretizationError(
            f"{name}: a mask of shape {mask.shape} has no known value here, but the size of the result depends on it; "
            f"use tk.where(mask, x, 0), or x.at[mask].set(v), which need no value"
        ) from error
    targets: Tensor = flat.where(counts - 1, count)  # every False gets one extra index, after the last
    return (one_to(counts, size) - 1).scatter_add(targets, 0, count + 1).crop(((0, count),))


def one_to(like: Tensor, count: int) -> Tensor:
    """The numbers 1, 2, ..., count, in the dtype and at the level of an integer tensor."""
    one = like.constant([1], like.dtype, (1,))
    return one.expand((count,)).cumsum(0)
