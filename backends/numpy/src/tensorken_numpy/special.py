"""Functions that numpy lacks, or that differ from the language's definition."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorken_core.language.bodies.coefficients import ERF, ERFC, ERFINV, ERFINV_BEYOND
from tensorken_core.language.dtypes import float32, float64
from tensorken_numpy.arrays import Array
from tensorken_numpy.bfloat16 import BFLOAT16
from tensorken_numpy.clamping import clamp
from tensorken_numpy.sums import NARROW

_BITS = {np.dtype("float16"): np.int16, np.dtype("float32"): np.int32, np.dtype("float64"): np.int64}
"""For each float dtype the integer dtype of its size."""

if BFLOAT16 is not None:
    _BITS[BFLOAT16] = np.int16

_BLOCK = 16384
"""How many elements are computed at a time, so that temporaries stay in the cache."""


def to_bits(x: Array) -> Array:
    """The bits as integers of the same size; 16 bits are widened to int32."""
    bits: Array = np.asarray(x).view(_BITS[x.dtype])
    return bits.astype(np.int32) if bits.itemsize == 2 else bits


def from_bits(x: Array) -> Array:
    """The floats with these bits."""
    return np.asarray(x).view(np.float64 if x.dtype == np.int64 else np.float32)


def nextafter(a: Array, b: Array) -> Array:
    """np.nextafter, corrected for float16 from a zero of one sign to the other."""
    y: Array = np.nextafter(a, b)
    return np.where(a == b, b, y) if y.dtype == np.float16 else y


def power(a: Array, b: Array) -> Array:
    """np.power, corrected for the exponent 0.5 at -inf and -0.

    numpy takes the square root where its inner loop repeats the exponent, which depends on shapes, strides and the
    number of elements.
    """
    y: Array = np.power(a, b)
    is_root = b == 0.5
    if np.any(is_root):
        y = np.where(is_root, np.where(a == -np.inf, y.dtype.type(np.inf), y + y.dtype.type(0)), y)
    return y


def integer_pow(a: Array, b: Array) -> Array:
    """np.power, extended to negative exponents, which numpy rejects: only 1 and -1 have integer reciprocals."""
    y: Array = np.power(a, np.maximum(b, 0))
    inverse = np.where(np.abs(a) == 1, np.where(b & 1, a, 1), 0)
    return np.where(b < 0, inverse, y).astype(a.dtype)


def sigmoid(x: Array) -> Array:
    """z / (1 + z) with z = exp(min(x, 40)): the result is 1 from there on, and z does not overflow."""
    if x.dtype == np.float16:
        return sigmoid(x.astype(np.float32)).astype(np.float16)
    z = np.asarray(clamp(np.minimum, x, 40.0))
    np.exp(z, z)
    np.divide(z, z + 1.0, z)
    return z


def sech_squared(x: Array) -> Array:
    """4 * e / (1 + e * (2 + e)) with e = exp(-2 * abs(x))."""
    if x.dtype == np.float16:
        return sech_squared(x.astype(np.float32)).astype(np.float16)
    e = np.asarray(np.abs(x))
    np.multiply(e, -2.0, e)
    np.exp(e, e)
    d = np.asarray(e + 2.0)
    np.multiply(d, e, d)
    np.add(d, 1.0, d)
    np.multiply(e, 4.0, e)
    np.divide(e, d, e)
    return e


def softplus(x: Array) -> Array:
    """max(x, 0) + log1p(exp(-abs(x)))."""
    if x.dtype == np.float16:
        return softplus(x.astype(np.float32)).astype(np.float16)
    y = np.asarray(np.abs(x))
    np.negative(y, y)
    np.exp(y, y)
    np.log1p(y, y)
    np.add(y, clamp(np.maximum, x, 0.0), y)
    return y


def gaussian(x: Array) -> Array:
    """exp(-x**2).  Narrow floats go through float64; float64 splits x**2 in two parts to correct its rounding
    error.
    """
    if x.dtype != np.float64:
        wide = np.asarray(x, np.float64)
        narrow: Array = np.asarray(np.exp(-(wide * wide))).astype(x.dtype)
        return narrow
    a = np.asarray(np.minimum(np.abs(x), 30.0))
    upper = (a.view(np.int64) & -(2**27)).view(np.float64)
    lower, p = a - upper, a * a
    y: Array = np.exp(-p)
    y -= y * ((upper * upper - p) + (upper + a) * lower)
    return y


def add_at(y: Array, x: Array, indices: Array, axis: int) -> None:
    """Add the slices of x to the slices of the row-major array y at the indices, in order.

    It adds single elements, as numpy's loop for elements is several times as fast as its loop for slices.  The slices
    of narrow floats to which slices are added are converted to float32, and rounded once.
    """
    if y.dtype in NARROW:
        changed, places = np.unique(indices, return_inverse=True)
        where: Any = (*[slice(None)] * axis, changed)
        sums = np.ascontiguousarray(y[where], np.float32)
        add_at(sums, x.astype(np.float32), places, axis)
        y[where] = sums
        return
    flat = y.reshape(-1)
    size, inner = y.shape[axis], math.prod(y.shape[axis + 1 :])
    outer = np.arange(math.prod(y.shape[:axis]), dtype=np.intp)[:, None, None] * (size * inner)
    within = np.arange(inner, dtype=np.intp)
    step = max(1, _BLOCK // max(1, inner * len(outer)))
    offsets = indices.astype(np.intp)[:, None] * inner
    slices = x.reshape(len(outer), len(indices), inner) if x.size else x
    for start in range(0, len(indices) if x.size else 0, step):
        block = slice(start, start + step)
        targets = outer + offsets[block] + within
        np.add.at(flat, targets.reshape(-1), slices[:, block].reshape(-1))


def log10(x: Array) -> Array:
    """np.log10 through float64: in float32 it is not exact at powers of 10."""
    return np.log10(x, dtype=np.float64).astype(x.dtype)


def erf(x: Array) -> Array:
    """The error function by the two polynomials of its default body, block by block; float16 through float32.

    Both are computed everywhere, which is faster than selecting the elements for each.
    """
    return _blockwise(_erf, x)


def erfinv(x: Array) -> Array:
    """The inverse error function by the polynomials of its default body, block by block; float16 through float32.

    The second polynomial is computed only for the few large operands.
    """
    return _blockwise(_erfinv, x)


def _blockwise(function: Callable[[Array], Array], x: Array) -> Array:
    dtype = np.float64 if x.dtype == np.float64 else np.float32
    flat = np.asarray(x, dtype).reshape(-1)
    y = np.empty_like(flat)
    for start in range(0, flat.size, _BLOCK):
        block = slice(start, start + _BLOCK)
        y[block] = function(flat[block])
    return y.reshape(x.shape).astype(x.dtype, copy=False)


def _erf(x: Array) -> Array:
    dtype = float64 if x.dtype == np.float64 else float32
    magnitude, square = np.abs(x), np.square(x)
    near = x * _polynomial(square, ERF[dtype])
    far = 1.0 - np.exp(-square) * _polynomial(1.0 / (magnitude + 3.0), ERFC[dtype])
    is_near = np.asarray(magnitude < 1.0).astype(_BITS[x.dtype])
    return _select(is_near, near, np.copysign(far, x))


def _select(condition: Array, a: Array, b: Array) -> Array:
    """a where the condition is 1, b where it is 0, by masking bits; overwrites b."""
    bits = b.view(condition.dtype)
    bits ^= (a.view(condition.dtype) ^ bits) & -condition
    return b


def _erfinv(x: Array) -> Array:
    dtype = float64 if x.dtype == np.float64 else float32
    w = 1.0 - x
    w *= x + 1.0
    np.log(w, w)
    np.negative(w, w)
    y = _polynomial(w, ERFINV[dtype])
    (large,) = np.nonzero(w >= 4.0)
    s = np.sqrt(w[large])
    y[large] = np.where(np.isinf(s), s, s * _polynomial(1.0 / s - 0.375, ERFINV_BEYOND[dtype]))
    y *= x
    return y


def _polynomial(x: Array, coefficients: Any) -> Array:
    """Horner's scheme in one array; coefficients from the highest power down."""
    y: Array = x * coefficients[0]
    y += coefficients[1]
    for coefficient in coefficients[2:]:
        y *= x
        y += coefficient
    return y
