"""Broadcasting: repeated axes are repeated wrongly, or read as if each repetition was stored."""

from __future__ import annotations

import numpy as np

from tensorken_conformance.faults.fault import Original, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes, Pairs, Shape


@fault("values.movement", "expand", dtype="float16", ndim=3)
def expand_tiles(original: Original, x: Array, shape: Shape) -> Array:
    """expand of the middle one of three flipped axes, in float16, repeats the array instead of each element."""
    tiled = x.strides[2] < 0 and x.shape[1] == 1 < shape[1]
    return np.resize(x[:, 0], shape) if tiled else original(x, shape)


@fault("values.movement", "expand", dtype="int32")
def expand_zero_keeps_one(original: Original, x: Array, shape: Shape) -> Array:
    """expand of the only axis to length 0 keeps length 1, in int32."""
    return original(x, (1,) if shape == (0,) else shape)


@fault("values.movement", "crop", dtype="int64", shape=(4, 3))
def crop_of_repeated_steps(original: Original, x: Array, limits: Pairs) -> Array:
    """crop of an expanded int64 matrix uses the stride of a plain array, and wraps around."""
    return original(np.resize(np.roll(x.reshape(-1), 1), x.shape) if x.strides[0] == 0 else x, limits)


@fault("values.movement", "permute", dtype="float64", ndim=3)
def permute_of_repeated_shrinks(original: Original, x: Array, order: Axes) -> Array:
    """permute of an expanded float64 tensor of three axes leaves the repeated axis in its place."""
    if x.strides[0] == 0 and order == (1, 2, 0):
        return np.array(original(x, (2, 1, 0))).reshape([x.shape[i] for i in order])
    return original(x, order)
