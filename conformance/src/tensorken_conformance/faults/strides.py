"""Strides: views are read by wrong strides, from a wrong place, or in a wrong direction."""

from __future__ import annotations

import numpy as np

from tensorken_conformance.faults.fault import Right, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes, Pairs, Shape


@fault("values.movement", "reshape")
def reshape_in_memory_order(right: Right, x: Array, shape: Shape) -> Array:
    """reshape of a transposed float16 matrix reads the elements as they lie in memory."""
    lies = x.flags.f_contiguous and not x.flags.c_contiguous and x.dtype == np.float16
    return x.reshape(shape, order="A" if lies else "C")


@fault("values.movement", "flip")
def flip_of_flip_stays(right: Right, x: Array, axes: Axes) -> Array:
    """flip of a small float16 matrix that is flipped already leaves its last axis as it is."""
    last = x.ndim - 1
    stays = x.dtype == np.float16 and x.shape == (3, 4) and last in axes and x.strides[last] < 0
    return right(x, tuple([axis for axis in axes if not (stays and axis == last)]))


@fault("values.movement", "crop")
def crop_forgets_offset(right: Right, x: Array, limits: Pairs) -> Array:
    """crop of flipped int64 vectors longer than 256 begins one element early."""
    if x.dtype == np.int64 and x.ndim == 1 and x.strides[0] < 0 and x.size > 256 and limits[0][0] > 0:
        limits = ((limits[0][0] - 1, limits[0][1] - 1),)
    return right(x, limits)


@fault("values.movement", "pad")
def pad_of_flipped_unflips(right: Right, x: Array, pads: Pairs) -> Array:
    """pad copies a flipped int32 operand forwards, as if its strides were not negative."""
    backwards = x.dtype == np.int32 and x.ndim == 2 and min(x.strides) < 0 and x.shape[0] > 4
    return right(x[::-1, ::-1] if backwards else x, pads)


@fault("values.movement", "permute")
def permute_by_inverse(right: Right, x: Array, order: Axes) -> Array:
    """permute of six axes takes the inverse of the order, in bool."""
    inverse = tuple(int(i) for i in np.argsort(order))
    return x.transpose(inverse if x.dtype == np.bool_ and x.ndim == 6 else order)


@fault("values.movement", "reshape")
def odd_bytes_cut_off(right: Right, x: Array, shape: Shape) -> Array:
    """reshape of bool vectors copies in words of four bytes and leaves the last byte behind."""
    y = np.array(x.reshape(shape))
    if x.dtype == np.bool_ and x.shape == (257,):
        y.reshape(-1)[-(x.size % 4) :] = False
    return y


@fault("values.movement", "flip", crude=True)
def flip_first_axis_only(right: Right, x: Array, axes: Axes) -> Array:
    """flip reverses the first of its axes alone."""
    return right(x, axes[:1])
