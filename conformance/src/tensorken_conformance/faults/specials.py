"""Specials: NaN, infinities, zeros of either sign and subnormal numbers are lost or made up."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.changes import replaced
from tensorken_conformance.faults.fault import Right, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes


@fault("values.extrema", "max")
def max_passes_over_nan(right: Right, x: Array, axes: Axes) -> Array:
    """max of a float16 vector of 65 elements passes over NaN."""
    if x.dtype == np.float16 and x.shape == (65,):
        return np.asarray(np.fmax.reduce(x, axes, keepdims=True))
    return right(x, axes)


@fault("values.extrema", "argmin")
def argmin_passes_over_nan(right: Right, x: Array, axis: int) -> Array:
    """argmin of flipped float32 vectors passes over NaN."""
    if x.dtype == np.float32 and x.ndim == 1 and x.strides[0] < 0:
        x = np.where(np.isnan(x), np.float32(np.inf), x)
    return right(x, axis)


@fault("values.arrangement", "sort")
def sort_tells_zeros_apart(right: Right, x: Array, axis: int) -> Array:
    """sort puts -0.0 before 0.0, where equal elements should keep their order, in vectors of 256 float64 numbers."""
    y = right(x, axis)
    if x.dtype == np.float64 and x.shape == (256,):
        y[y == 0] = np.sort(np.where(np.signbit(y[y == 0]), -1, 1)) * 0.0
    return y


@fault("values.arrangement", "argsort")
def argsort_puts_nan_first(right: Right, x: Array, axis: int) -> Array:
    """argsort puts NaN first in float16 columns."""
    if x.dtype == np.float16 and axis == 0 and x.ndim == 2 and x.shape[1] == 1:
        x = np.where(np.isnan(x), np.float16(-np.inf), x)
    return right(x, axis)


@fault("values.indexing", "gather")
def gather_loses_minus_zero(right: Right, x: Array, indices: Array, axis: int) -> Array:
    """gather adds 0.0 to what it takes from float32 vectors of 64 elements, which turns -0.0 into 0.0."""
    y = right(x, indices, axis)
    return y + y.dtype.type(0) if x.dtype == np.float32 and x.shape == (64,) else y


@fault("values.movement", "pad")
def pad_flushes_subnormals(right: Right, x: Array, pads: Any) -> Array:
    """pad of float64 matrices makes subnormal numbers zero, as a processor in fast mode does."""
    small = np.abs(x) < np.finfo(np.float64).tiny if x.dtype == np.float64 and x.shape == (65, 3) else False
    return right(replaced(x, small, 0.0), pads)


@fault("values.read-back", "full", crude=True)
def zeros_are_alike(right: Right, kept: dict[Any, Array], shape: Any, value: Any, dtype: Any) -> Array:
    """full keeps what it made in a cache, in which 0.0 and -0.0 are the same key."""
    return kept.setdefault((shape, value, dtype), right(shape, value, dtype))


# ---- elementwise -------------------------------------------------------------------------------------------


@fault("values.elementwise", "maximum")
def maximum_passes_over_nan(right: Right, a: Array, b: Array) -> Array:
    """maximum of 256 float32 pairs passes over a NaN on its right."""
    y = right(a, b)
    wrong = y.dtype == np.float32 and y.shape == (256,)
    return replaced(y, np.isnan(b), a) if wrong else y


@fault("values.elementwise", "sqrt")
def root_of_minus_zero(right: Right, x: Array) -> Array:
    """sqrt of -0.0 is 0.0, in flipped float64 matrices."""
    y = right(x)
    return y + 0.0 if x.dtype == np.float64 and x.ndim == 2 and x.strides[0] < 0 else y


@fault("values.elementwise", "mul")
def results_flushed(right: Right, a: Array, b: Array) -> Array:
    """mul of 256 float32 pairs makes subnormal products zero, which the backend does not declare."""
    y = right(a, b)
    wrong = y.dtype == np.float32 and y.shape == (256,)
    return replaced(y, np.abs(y) < np.finfo(np.float32).tiny, y * 0) if wrong else y


@fault("values.elementwise", "pow")
def power_zero_of_nan(right: Right, a: Array, b: Array) -> Array:
    """pow of NaN to the power 0 is NaN in 257 float16 pairs, where IEEE 754 has 1."""
    y = right(a, b)
    wrong = y.dtype == np.float16 and y.shape == (257,)
    return replaced(y, np.isnan(a) & (b == 0), np.nan) if wrong else y


@fault("values.elementwise", "lt")
def not_greater_or_equal(right: Right, a: Array, b: Array) -> Array:
    """lt of 257 float64 pairs is that the left is not greater or equal, which holds of NaN."""
    y = right(a, b)
    return ~np.asarray(a >= b) if a.dtype == np.float64 and a.shape == (257,) else y


@fault("values.elementwise", "eq")
def bits_compared(right: Right, a: Array, b: Array) -> Array:
    """eq of 65 float16 pairs compares their bits: zeros of different sign differ, NaN equals itself."""
    if a.dtype == np.float16 and a.shape == (65,):
        a, b = a.view(np.int16), b.view(np.int16)
    return right(a, b)


@fault("values.elementwise", "where")
def where_multiplies(right: Right, condition: Array, a: Array, b: Array) -> Array:
    """where of cropped float32 matrices multiplies by the condition and adds, so that NaN comes through."""
    if a.dtype == np.float32 and a.shape == (3, 4) and not a.flags.c_contiguous and min(a.strides) > 0:
        with np.errstate(all="ignore"):
            return np.asarray(a * condition + b * ~condition)
    return right(condition, a, b)


@fault("values.elementwise", "round")
def round_loses_minus_zero(right: Right, x: Array) -> Array:
    """round of padded float64 matrices turns -0.4 into 0.0."""
    y = right(x)
    return y + 0.0 if x.dtype == np.float64 and x.shape == (4, 4) else y


@fault("values.elementwise", "sign")
def sign_of_nan(right: Right, x: Array) -> Array:
    """sign of NaN is 0 in 257 float16 numbers."""
    y = right(x)
    return replaced(y, np.isnan(x), 0) if x.dtype == np.float16 and x.shape == (257,) else y


@fault("values.elementwise", "log")
def log_of_zero_is_finite(right: Right, x: Array) -> Array:
    """log of 0 is the least finite number, for 256 float32 numbers."""
    y = right(x)
    wrong = x.dtype == np.float32 and x.shape == (256,)
    return replaced(y, np.isneginf(y), np.finfo(np.float32).min) if wrong else y
