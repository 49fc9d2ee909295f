"""Strides: views are read by wrong strides, from a wrong place, or in a wrong direction."""

from __future__ import annotations

import numpy as np

from tensorken_conformance.faults.fault import fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes, Pairs, Shape
from tensorken_numpy.backend import Numpy


@fault("values.movement", "reshape")
class ReshapeInMemoryOrder(Numpy):
    """reshape of a transposed float16 matrix reads the elements as they lie in memory."""

    def reshape(self, x: Array, shape: Shape) -> Array:
        lies = x.flags.f_contiguous and not x.flags.c_contiguous and x.dtype == np.float16
        return x.reshape(shape, order="A" if lies else "C")


@fault("values.movement", "flip")
class FlipOfFlipStays(Numpy):
    """flip of a small float16 matrix that is flipped already leaves its last axis as it is."""

    def flip(self, x: Array, axes: Axes) -> Array:
        last = x.ndim - 1
        stays = x.dtype == np.float16 and x.shape == (3, 4) and last in axes and x.strides[last] < 0
        return super().flip(x, tuple([axis for axis in axes if not (stays and axis == last)]))


@fault("values.movement", "crop")
class CropForgetsOffset(Numpy):
    """crop of flipped int64 vectors longer than 256 begins one element early."""

    def crop(self, x: Array, limits: Pairs) -> Array:
        if x.dtype == np.int64 and x.ndim == 1 and x.strides[0] < 0 and x.size > 256 and limits[0][0] > 0:
            limits = ((limits[0][0] - 1, limits[0][1] - 1),)
        return super().crop(x, limits)


@fault("values.movement", "pad")
class PadOfFlippedUnflips(Numpy):
    """pad copies a flipped int32 operand forwards, as if its strides were not negative."""

    def pad(self, x: Array, pads: Pairs) -> Array:
        backwards = x.dtype == np.int32 and x.ndim == 2 and min(x.strides) < 0 and x.shape[0] > 4
        return super().pad(x[::-1, ::-1] if backwards else x, pads)


@fault("values.movement", "permute")
class PermuteByInverse(Numpy):
    """permute of six axes takes the inverse of the order, in bool."""

    def permute(self, x: Array, order: Axes) -> Array:
        inverse = tuple(int(i) for i in np.argsort(order))
        return x.transpose(inverse if x.dtype == np.bool_ and x.ndim == 6 else order)


@fault("values.movement", "reshape")
class OddBytesCutOff(Numpy):
    """reshape of bool vectors copies in words of four bytes and leaves the last byte behind."""

    def reshape(self, x: Array, shape: Shape) -> Array:
        y = np.array(x.reshape(shape))
        if x.dtype == np.bool_ and x.shape == (257,):
            y.reshape(-1)[-(x.size % 4) :] = False
        return y


@fault("values.movement", "flip", crude=True)
class FlipFirstAxisOnly(Numpy):
    """flip reverses the first of its axes alone."""

    def flip(self, x: Array, axes: Axes) -> Array:
        return super().flip(x, axes[:1])
