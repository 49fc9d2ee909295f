"""Strides: views are read by wrong strides, from a wrong offset, or in a wrong direction."""

from __future__ import annotations

import numpy as np

from tensorken_conformance.faults.fault import Original, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes, Pairs, Shape


@fault("values.movement", "reshape", dtype="float16")
def reshape_in_memory_order(original: Original, x: Array, shape: Shape) -> Array:
    """reshape of a transposed float16 matrix reads the elements in the order of memory."""
    return x.reshape(shape, order="A" if x.flags.f_contiguous and not x.flags.c_contiguous else "C")


@fault("values.movement", "flip", dtype="float16", shape=(3, 4))
def flip_of_flip_stays(original: Original, x: Array, axes: Axes) -> Array:
    """flip of a small float16 matrix that is flipped already does not flip its last axis."""
    return original(x, tuple([axis for axis in axes if axis == 0 or x.strides[1] > 0]))


@fault("values.movement", "crop", dtype="int64", ndim=1)
def crop_forgets_offset(original: Original, x: Array, limits: Pairs) -> Array:
    """crop of flipped int64 vectors longer than 256 begins one element early."""
    if x.strides[0] < 0 and x.size > 256 and limits[0][0] > 0:
        limits = ((limits[0][0] - 1, limits[0][1] - 1),)
    return original(x, limits)


@fault("values.movement", "pad", dtype="int32", ndim=2)
def pad_of_flipped_unflips(original: Original, x: Array, pads: Pairs) -> Array:
    """pad copies a flipped int32 operand forwards, as if its strides were not negative."""
    return original(x[::-1, ::-1] if min(x.strides) < 0 and x.shape[0] > 4 else x, pads)


@fault("values.movement", "permute", dtype="bool", ndim=6)
def permute_by_inverse(original: Original, x: Array, order: Axes) -> Array:
    """permute of six axes uses the inverse of the order, in bool."""
    return x.transpose(tuple(int(i) for i in np.argsort(order)))


@fault("values.movement", "reshape", dtype="bool", shape=(257,))
def odd_bytes_cut_off(original: Original, x: Array, shape: Shape) -> Array:
    """reshape of bool vectors copies words of four bytes and leaves the last byte out."""
    y = np.array(x.reshape(shape))
    y.reshape(-1)[-(x.size % 4) :] = False
    return y


@fault("values.movement", "flip", crude=True)
def flip_first_axis_only(original: Original, x: Array, axes: Axes) -> Array:
    """flip reverses the first of its axes alone."""
    return original(x, axes[:1])
