"""Enclosures of integer ops: exact for known operands, from the ends if no result wraps, else all numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorken_conformance.enclosure.errors import Errors
from tensorken_conformance.enclosure.interval import Array, Interval, anything, chosen, ends_of, no_nan
from tensorken_core.language.dtypes import DType

SAFE = 2.0**62
"""If a result in float64 is smaller than this, int64 does not wrap."""


def wrapped(x: Array, dtype: DType) -> Array:
    """Integers modulo 2**bits, in two's complement."""
    return np.asarray(x).astype(dtype.name).astype(np.int64)


def known(x: Array, dtype: DType) -> Interval:
    """The interval of these integers, wrapped."""
    values = wrapped(x, dtype)
    return Interval(values, values, no_nan(values), dtype)


def between(low: Array, high: Array, fits: Array, dtype: DType) -> Interval:
    """The interval with these ends if they fit the dtype, else all its numbers."""
    least, most = ends_of(dtype)
    fits = fits & (low >= least) & (high <= most)
    return Interval(np.where(fits, low, least), np.where(fits, high, most), no_nan(low), dtype)


def by_corners(function: Callable[[Array, Array], Array], a: Interval, b: Interval) -> Interval:
    """A sum, difference or product, from its values at the ends."""
    exact = known(function(a.low, b.low), a.dtype)
    certain = (a.low == a.high) & (b.low == b.high)
    if certain.all():
        return exact
    corners = [function(p, q) for p in (a.low, a.high) for q in (b.low, b.high)]
    sizes = [
        np.abs(function(p.astype(float), q.astype(float))) for p in (a.low, a.high) for q in (b.low, b.high)
    ]
    fits = np.maximum.reduce(sizes) < SAFE
    return chosen(
        certain, exact, between(np.minimum.reduce(corners), np.maximum.reduce(corners), fits, a.dtype)
    )


def negative(x: Interval) -> Interval:
    """0 - x."""
    zero = np.zeros((1,) * x.low.ndim, x.low.dtype)
    return by_corners(np.subtract, Interval(zero, zero, no_nan(zero), x.dtype), x)


def square(x: Interval) -> Interval:
    """A product with itself, which is not negative unless it wraps."""
    y = by_corners(np.multiply, x, x)
    below = (y.low < 0) & (x.low <= 0) & (x.high >= 0) & (y.low > ends_of(x.dtype)[0])
    return Interval(np.where(below, 0, y.low), y.high, y.maybe_nan, x.dtype)


def absolute(x: Interval) -> Interval:
    """The magnitudes; that of the smallest number is itself, since its negative wraps."""
    least = ends_of(x.dtype)[0]
    exact = known(np.abs(x.low), x.dtype)
    size = np.maximum(np.abs(x.low.astype(float)), np.abs(x.high.astype(float)))
    low = np.where((x.low <= 0) & (x.high >= 0), 0, np.minimum(np.abs(x.low), np.abs(x.high)))
    fits = (size < SAFE) & ((x.low > least) | (least == 0))
    wide = between(low, np.maximum(np.abs(x.low), np.abs(x.high)), fits, x.dtype)
    return chosen(x.low == x.high, exact, wide)


def where_known(function: Callable[[Array, Array], Array]) -> Callable[..., Interval]:
    """The rule of an op whose result is known only if its operands are."""

    def rule(errors: Errors, a: Interval, b: Interval) -> Interval:
        certain = (a.low == a.high) & (b.low == b.high)
        exact = known(function(a.low, b.low), a.dtype)
        return exact if certain.all() else chosen(certain, exact, anything(certain.shape, a.dtype))

    return rule


def _divided(a: Array, b: Array) -> Array:
    """0 where b is 0; the smallest number divided by -1 wraps to itself."""
    negated = (b == -1) | (b == 0)
    quotient = np.floor_divide(a, np.where(negated, 1, b))
    return np.where(b == 0, 0, np.where(b == -1, np.negative(a), quotient))


def _remaining(a: Array, b: Array) -> Array:
    plain = (b == 0) | (b == -1)
    return np.where(plain, 0, np.remainder(a, np.where(plain, 1, b)))


_remainder = where_known(_remaining)


def remainder(a: Interval, b: Interval) -> Interval:
    """The remainder, whose magnitude is at most that of b."""
    y = _remainder(None, a, b)
    bound = (b.low == b.high) & (a.low != a.high)
    low = np.where(bound, np.minimum(b.low, 0), y.low)
    return Interval(low, np.where(bound, np.maximum(b.high, 0), y.high), y.maybe_nan, a.dtype)


def shift(errors: Errors, a: Interval, b: Interval, *, up: bool) -> Interval:
    """The shifted bits, within the width of the dtype."""
    bits = 8 * a.dtype.itemsize
    unsigned: Any = np.dtype(f"uint{bits}").type

    def moved(p: Array, q: Array) -> Array:
        inside = (q >= 0) & (q < bits)
        amount = np.where(inside, q, 0).astype(unsigned)
        source = p.astype(unsigned)
        return np.asarray(
            np.where(inside, source << amount if up else source >> amount, unsigned(0)).astype(np.int64)
        )

    return where_known(moved)(errors, a, b)


def _power(a: Array, b: Array) -> Array:
    """By squaring, which wraps; 1 / a, truncated, for negative exponents."""
    result, base, rest = np.ones_like(a), a + 0 * b, np.maximum(b, 0) + 0 * a
    result = result + 0 * b
    while rest.any():
        result = np.where(rest & 1, result * base, result)
        base, rest = base * base, rest >> 1
    inverse = np.where(np.abs(a) == 1, np.where(b & 1, a, 1), 0)
    return np.where(b < 0, inverse, result)


# ---- the cipher ----------------------------------------------------------------------------------------------

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry2x32(errors: Errors, key: Interval, counter: Interval) -> Interval:
    """Threefry-2x32 with 20 rounds: J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011."""
    certain = np.array_equal(key.low, key.high) and np.array_equal(counter.low, counter.high)
    if not certain:
        return anything(key.shape, key.dtype)
    words = [key.low[..., i].astype(np.uint32) for i in range(2)]
    words.append(words[0] ^ words[1] ^ np.uint32(0x1BD11BDA))
    x, y = [counter.low[..., i].astype(np.uint32) + words[i] for i in range(2)]
    for group in range(5):
        for places in _ROTATIONS[group % 2]:
            x = x + y
            y = ((y << np.uint32(places)) | (y >> np.uint32(32 - places))) ^ x
        x = x + words[(group + 1) % 3]
        y = y + words[(group + 2) % 3] + np.uint32(group + 1)
    return known(np.stack([x, y], -1).astype(np.int32), key.dtype)


RULES: dict[str, Callable[..., Any]] = {
    "floor_divide": where_known(_divided),
    "bitwise_and": where_known(np.bitwise_and),
    "bitwise_or": where_known(np.bitwise_or),
    "bitwise_xor": where_known(np.bitwise_xor),
    "shift_left": lambda errors, a, b: shift(errors, a, b, up=True),
    "shift_right": lambda errors, a, b: shift(errors, a, b, up=False),
    "integer_pow": where_known(_power),
    "threefry2x32": threefry2x32,
}
