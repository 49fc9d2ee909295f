"""Broadcasting: repeated axes are repeated wrongly, or their elements are stored once and then told apart."""

from __future__ import annotations

import numpy as np

from tensorken_conformance.faults.fault import Right, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes, Pairs, Shape


@fault("values.movement", "expand")
def expand_tiles(right: Right, x: Array, shape: Shape) -> Array:
    """expand of the middle one of three flipped axes, in float16, repeats the whole in place of each element."""
    if x.dtype == np.float16 and x.ndim == 3 and x.strides[2] < 0 and x.shape[1] == 1 < shape[1]:
        return np.resize(x[:, 0], shape)
    return right(x, shape)


@fault("values.movement", "expand")
def expand_zero_keeps_one(right: Right, x: Array, shape: Shape) -> Array:
    """expand of the only axis to length 0 keeps length 1, in int32."""
    return right(x, (1,) if shape == (0,) and x.dtype == np.int32 else shape)


@fault("values.movement", "crop")
def crop_of_repeated_steps(right: Right, x: Array, limits: Pairs) -> Array:
    """crop of an expanded int64 matrix takes its stride for that of a plain array, and wraps around."""
    if x.dtype == np.int64 and x.shape == (4, 3) and x.strides[0] == 0:
        x = np.resize(np.roll(x.reshape(-1), 1), x.shape)
    return right(x, limits)


@fault("values.movement", "permute")
def permute_of_repeated_shrinks(right: Right, x: Array, order: Axes) -> Array:
    """permute of an expanded float64 tensor of three axes shows the repeated axis where it was."""
    if x.dtype == np.float64 and x.ndim == 3 and x.strides[0] == 0 and order == (1, 2, 0):
        order = (2, 1, 0)
        return np.array(right(x, order)).reshape([x.shape[i] for i in (1, 2, 0)])
    return right(x, order)
