"""Specials: NaN, infinities, zeros of either sign and subnormal numbers are lost or made up."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorken_conformance.faults.changes import replaced
from tensorken_conformance.faults.fault import Original, fault
from tensorken_conformance.subject import Array
from tensorken_core.language.shapes import Axes


@fault("values.extrema", "max", dtype="float16", shape=(65,))
def max_passes_over_nan(original: Original, x: Array, axes: Axes) -> Array:
    """max of a float16 vector of 65 elements ignores NaN."""
    return np.asarray(np.fmax.reduce(x, axes, keepdims=True))


@fault("values.extrema", "argmin", dtype="float32", ndim=1)
def argmin_passes_over_nan(original: Original, x: Array, axis: int) -> Array:
    """argmin of flipped float32 vectors ignores NaN."""
    return original(replaced(x, np.isnan(x), np.inf) if x.strides[0] < 0 else x, axis)


@fault("values.arrangement", "sort", dtype="float64", shape=(256,))
def sort_tells_zeros_apart(original: Original, x: Array, axis: int) -> Array:
    """sort puts -0.0 before 0.0, where equal elements should keep their order, in vectors of 256 float64 numbers."""
    y = original(x, axis)
    y[y == 0] = np.sort(np.where(np.signbit(y[y == 0]), -1, 1)) * 0.0
    return y


@fault("values.arrangement", "argsort", dtype="float16", ndim=2)
def argsort_puts_nan_first(original: Original, x: Array, axis: int) -> Array:
    """argsort puts NaN first in float16 columns."""
    column = axis == 0 and x.shape[1] == 1
    return original(replaced(x, np.isnan(x), -np.inf) if column else x, axis)


@fault("values.indexing", "gather", dtype="float32", shape=(64,))
def gather_loses_minus_zero(original: Original, x: Array, indices: Array, axis: int) -> Array:
    """gather from float32 vectors of 64 elements adds 0.0 to the elements, which turns -0.0 into 0.0."""
    return original(x, indices, axis) + np.float32(0)


@fault("values.movement", "pad", dtype="float64", shape=(65, 3))
def pad_flushes_subnormals(original: Original, x: Array, pads: Any) -> Array:
    """pad of float64 matrices makes subnormal numbers zero, as a processor in fast mode does."""
    return original(replaced(x, np.abs(x) < np.finfo(np.float64).tiny, 0.0), pads)


@fault("values.read-back", "full", crude=True)
def zeros_are_alike(original: Original, state: dict[Any, Array], shape: Any, value: Any, dtype: Any) -> Array:
    """full caches its results, with 0.0 and -0.0 as the same key."""
    return state.setdefault((shape, value, dtype), original(shape, value, dtype))


# ---- elementwise -------------------------------------------------------------------------------------------


@fault("values.elementwise", "maximum", dtype="float32", shape=(256,))
def maximum_passes_over_nan(original: Original, a: Array, b: Array) -> Array:
    """maximum of 256 float32 pairs ignores a NaN in its second operand."""
    return replaced(original(a, b), np.isnan(b), a)


@fault("values.elementwise", "sqrt", dtype="float64", ndim=2)
def root_of_minus_zero(original: Original, x: Array) -> Array:
    """sqrt of -0.0 is 0.0, in flipped float64 matrices."""
    y = original(x)
    return y + 0.0 if x.strides[0] < 0 else y


@fault("values.elementwise", "mul", dtype="float32", shape=(256,))
def results_flushed(original: Original, a: Array, b: Array) -> Array:
    """mul of 256 float32 pairs makes subnormal products zero, which the backend does not declare."""
    y = original(a, b)
    return replaced(y, np.abs(y) < np.finfo(np.float32).tiny, y * 0)


@fault("values.elementwise", "pow", dtype="float16", shape=(257,))
def power_zero_of_nan(original: Original, a: Array, b: Array) -> Array:
    """pow of NaN to the power 0 is NaN in 257 float16 pairs, where IEEE 754 has 1."""
    return replaced(original(a, b), np.isnan(a) & (b == 0), np.nan)


@fault("values.elementwise", "lt", dtype="float64", shape=(257,))
def not_greater_or_equal(original: Original, a: Array, b: Array) -> Array:
    """lt of 257 float64 pairs is computed as not greater or equal, which is True for NaN."""
    return ~np.asarray(a >= b)


@fault("values.elementwise", "eq", dtype="float16", shape=(65,))
def bits_compared(original: Original, a: Array, b: Array) -> Array:
    """eq of 65 float16 pairs compares their bits: zeros of different sign differ, NaN equals itself."""
    return original(a.view(np.int16), b.view(np.int16))


@fault("values.elementwise", "where", dtype="float32", shape=(3, 4))
def where_multiplies(original: Original, condition: Array, a: Array, b: Array) -> Array:
    """where of cropped float32 matrices multiplies by the condition and adds, so that NaN comes through."""
    if a.flags.c_contiguous or min(a.strides) <= 0:
        return original(condition, a, b)
    with np.errstate(all="ignore"):
        return np.asarray(a * condition + b * ~condition)


@fault("values.elementwise", "round", dtype="float64", shape=(4, 4))
def round_loses_minus_zero(original: Original, x: Array) -> Array:
    """round of padded float64 matrices turns -0.4 into 0.0."""
    return original(x) + 0.0


@fault("values.elementwise", "sign", dtype="float16", shape=(257,))
def sign_of_nan(original: Original, x: Array) -> Array:
    """sign of NaN is 0 in 257 float16 numbers."""
    return replaced(original(x), np.isnan(x), 0)


@fault("values.elementwise", "log", dtype="float32", shape=(256,))
def log_of_zero_is_finite(original: Original, x: Array) -> Array:
    """log of 0 is the least finite number, for 256 float32 numbers."""
    y = original(x)
    return replaced(y, np.isneginf(y), np.finfo(np.float32).min)
