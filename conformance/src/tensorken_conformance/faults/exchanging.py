"""Exchanging: arrays of other libraries are taken or given with wrong values, or with memory that changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.fault import Original, fault
from tensorken_conformance.subject import Array


@fault("lifetime.exchange", method="adopt")
def never_copies(original: Original, array: Any, copy: bool) -> Array | None:
    """adopt shares the memory of an array of more than 64 elements, also if it is to copy it."""
    return original(array, copy and array.size <= 64)


@fault("lifetime.exchange", method="adopt")
def ignores_strides(original: Original, array: Any, copy: bool) -> Array | None:
    """adopt reads a column-major array as if it were row-major."""
    y = original(array, copy)
    if array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous:
        return np.asarray(array).T.reshape(array.shape)
    return y


@fault("lifetime.exchange", method="adopt")
def takes_other_byte_order(original: Original, array: Any, copy: bool) -> Array | None:
    """adopt reads bytes in the other order as they are."""
    if not array.dtype.isnative:
        return np.array(array.view(array.dtype.newbyteorder("=")))
    return original(array, copy)


@fault("lifetime.exchange", method="adopt")
def takes_unsigned_bytes(original: Original, array: Any, copy: bool) -> Array | None:
    """adopt widens unsigned bytes."""
    return array.astype("int32") if array.dtype == np.uint8 else original(array, copy)


@fault("lifetime.exchange", method="export")
def exports_one_buffer(original: Original, state: dict[Any, Array], x: Array) -> Array:
    """export writes all arrays of 257 elements into one buffer."""
    array = original(x)
    if array.size != 257:
        return array
    buffer = state.setdefault((array.shape, array.dtype), np.empty_like(array))
    buffer[...] = array
    return buffer


@fault("lifetime.exchange", method="export")
def exports_without_flips(original: Original, x: Array) -> Array:
    """export ignores negative strides of views with two axes."""
    array = original(x)
    return np.flip(array) if array.ndim == 2 and array.strides[1] < 0 else array
