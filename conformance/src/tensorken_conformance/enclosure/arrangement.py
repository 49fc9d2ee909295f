"""Enclosures of movement, casts, bits, argmax, sorting, gather and scatter_add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tensorken_conformance.enclosure import integers
from tensorken_conformance.enclosure.arithmetic import Rule
from tensorken_conformance.enclosure.errors import Errors
from tensorken_conformance.enclosure.interval import (
    Array,
    Interval,
    anything,
    chosen,
    combined,
    ends_of,
    exactly,
    hull,
    no_nan,
    rounded,
)
from tensorken_conformance.enclosure.reductions import summed
from tensorken_conformance.numbers.host_arrays import BITS, in_dtype
from tensorken_core.language.dtypes import DType, float32, float64, int32, int64
from tensorken_core.language.shapes import Pairs

# ---- movement ------------------------------------------------------------------------------------------------


def moved(change: Callable[..., Array]) -> Rule:
    """The rule of an op that moves elements: the op on the three arrays of the interval."""
    return lambda errors, x, *params: x.each(lambda values: change(values, *params))


def _pad(x: Array, pads: Pairs) -> Array:
    return np.pad(x, pads) if pads else x


def _crop(x: Array, limits: Pairs) -> Array:
    return x[tuple([slice(start, end) for start, end in limits])]


def concatenate(errors: Errors, *args: Any) -> Interval:
    """The concatenation of each of the three arrays."""
    *operands, axis = args
    return combined(lambda *arrays: np.concatenate(arrays, axis), *operands)


# ---- casts and bits ------------------------------------------------------------------------------------------


def cast(errors: Errors, x: Interval, dtype: DType) -> Interval:
    """Round, truncate, wrap or compare with 0, depending on the dtypes."""
    if dtype is x.dtype:
        return x
    source, target = x.dtype.kind, dtype.kind
    if target == "bool":
        certain = (x.low > 0) | (x.high < 0) | x.empty
        possible = certain | (x.low != 0) | (x.high != 0) | x.maybe_nan
        return Interval(certain, possible, no_nan(x.low), dtype)
    if source == "float":
        if target == "float":
            x = errors.flushed(x)
            return errors.flushed(rounded(x.low, x.high, x.maybe_nan, dtype, errors.steps("cast", dtype)))
        whole = Interval(_truncated(x.low, dtype), _truncated(x.high, dtype), no_nan(x.low), dtype)
        none = np.zeros(x.shape, np.int64)
        zero = Interval(none, none, no_nan(none), dtype)
        whole = chosen(x.empty, zero, whole)
        return chosen(x.maybe_nan, hull(whole, zero), whole)
    if target == "float":
        low, high = [end.astype(dtype.name).astype(np.float64) for end in (x.low, x.high)]
        return rounded(low, high, x.maybe_nan, dtype, errors.steps("cast", dtype))
    if source == "bool":
        return Interval(x.low.astype(np.int64), x.high.astype(np.int64), x.maybe_nan, dtype)
    exact = integers.known(x.low, dtype)
    return chosen(x.low == x.high, exact, integers.between(x.low, x.high, x.low == x.low, dtype))


def _truncated(x: Array, dtype: DType) -> Array:
    """Truncated towards 0, and saturated."""
    least, most = ends_of(dtype)
    inside = np.trunc(np.clip(np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf), -(2.0**63), 2.0**62))
    whole = np.where(x >= 2.0**62, 0.0, inside).astype(np.int64)
    large = np.where(np.isfinite(x) & (x >= 2.0**62) & (x < 2.0**63), x, 0.0).astype(np.int64)
    whole = np.where(x >= 2.0**63, np.iinfo(np.int64).max, np.where(x >= 2.0**62, large, whole))
    return np.clip(whole, least, most)


def to_bits(errors: Errors, x: Interval) -> Interval:
    """The bits of ends of the same sign; else all integers, since signs of zeros and bits of NaN are unknown."""
    dtype = int64 if x.dtype is float64 else int32
    low, high = [
        in_dtype(end, x.dtype.name).view(BITS[x.dtype.name]).astype(np.int64) for end in (x.low, x.high)
    ]
    one_sign = ((x.low > 0) | (x.high < 0)) & ~x.maybe_nan
    wide = anything(x.shape, dtype)
    return chosen(one_sign, Interval(np.minimum(low, high), np.maximum(low, high), no_nan(low), dtype), wide)


def from_bits(errors: Errors, x: Interval) -> Interval:
    """The float with these bits if they are known, else all numbers."""
    dtype, source = (float64, np.int64) if x.dtype is int64 else (float32, np.int32)
    return chosen(
        x.low == x.high, exactly(x.low.astype(source).view(dtype.name), dtype), anything(x.shape, dtype)
    )


# ---- places --------------------------------------------------------------------------------------------------


def _last(x: Interval, axis: int) -> Interval:
    """The interval with an axis as the last one, and bools as integers."""
    x = x.each(lambda values: np.moveaxis(values, axis, -1))
    if x.dtype.kind != "bool":
        return x
    return Interval(x.low.astype(np.int64), x.high.astype(np.int64), x.maybe_nan, x.dtype)


def _earlier(n: int) -> Array:
    """Whether element j precedes element i, at [i, j]."""
    return np.arange(n)[None, :] < np.arange(n)[:, None]


def place(sign: int) -> Rule:
    """The index of the first largest element, or of the smallest for sign -1; NaN counts as largest and smallest."""

    def rule(errors: Errors, x: Interval, axis: int) -> Interval:
        x = _last(x, axis)
        low, high = (
            (x.low, x.high) if sign > 0 else (~x.high, ~x.low) if x.dtype.kind == "int" else (-x.high, -x.low)
        )
        empty = x.empty
        n = x.shape[-1]
        earlier = _earlier(n)
        mine_high, its_low = high[..., :, None], low[..., None, :]
        above = np.where(earlier, its_low >= mine_high, its_low > mine_high) & ~empty[..., None, :]
        nan_mine, nan_its = x.maybe_nan[..., :, None], empty[..., None, :]
        # beats[i, j]: element j comes before i in every case
        beats = np.where(nan_mine, nan_its & earlier, above | nan_its)
        np.logical_and(beats, np.arange(n)[None, :] != np.arange(n)[:, None], out=beats)
        possible = ~np.logical_or.reduce(beats, -1)
        first = possible.argmax(-1)
        last = n - 1 - possible[..., ::-1].argmax(-1)
        low, high = [np.moveaxis(end.astype(np.int64)[..., None], -1, axis) for end in (first, last)]
        return Interval(low, high, no_nan(low), int32)

    return rule


def sort(errors: Errors, x: Interval, axis: int) -> Interval:
    """The sorted ends; an element that may be NaN, which comes last, counts at both positions."""
    if x.dtype.kind != "float":
        return x.each(lambda values: np.sort(values, axis))
    empty = x.empty
    low = np.sort(np.where(empty, np.inf, x.low), axis)
    high = np.sort(np.where(x.maybe_nan, np.inf, x.high), axis)
    n = x.shape[axis]
    number = np.arange(n).reshape([-1 if i == axis else 1 for i in range(x.low.ndim)])
    certain = number >= n - empty.sum(axis, keepdims=True)
    maybe = number >= n - x.maybe_nan.sum(axis, keepdims=True)
    return Interval(np.where(certain, np.inf, low), np.where(certain, -np.inf, high), maybe, x.dtype)


def argsort(errors: Errors, x: Interval, axis: int) -> Interval:
    """For each position of the result, the hull of the indices of the elements that may have this rank."""
    x = _last(x, axis)
    n = x.shape[-1]
    empty, maybe = x.empty, x.maybe_nan
    earlier = _earlier(n)
    its_high, mine_low = x.high[..., None, :], x.low[..., :, None]
    certain_before = np.where(earlier, its_high <= mine_low, its_high < mine_low) & ~maybe[..., None, :]
    certain_before |= empty[..., :, None] & ~maybe[..., None, :]
    certain_before |= empty[..., :, None] & earlier  # a NaN, or a number, that stands before a NaN
    certain_before &= np.arange(n)[None, :] != np.arange(n)[:, None]
    before = certain_before.sum(-1)
    after = np.swapaxes(certain_before, -1, -2).sum(-1)
    ranks = np.arange(n)
    possible = (before[..., None, :] <= ranks[:, None]) & (ranks[:, None] <= (n - 1 - after)[..., None, :])
    if n == 0:
        first = last = np.zeros(x.shape, np.int64)
    else:
        first, last = possible.argmax(-1), n - 1 - possible[..., ::-1].argmax(-1)
    low, high = [np.moveaxis(end.astype(np.int64), -1, axis) for end in (first, last)]
    return Interval(low, high, no_nan(low), int32)


# ---- at places -----------------------------------------------------------------------------------------------


def _taker(places: Array, axis: int) -> Callable[[Array], Array]:
    return lambda values: np.take(values, places, axis)


def gather(errors: Errors, x: Interval, indices: Interval, axis: int) -> Interval:
    """The slice at each index; the hull of the possible slices where the index is not known."""
    size = x.shape[axis]
    first, last = [np.clip(end, 0, max(size - 1, 0)) for end in (indices.low, indices.high)]
    y = x.each(lambda values: np.take(values, first, axis))
    for step in range(1, int((last - first).max(initial=0)) + 1):
        y = hull(y, x.each(_taker(np.minimum(first + step, last), axis)))
    return y


def scatter_add(errors: Errors, x: Interval, indices: Interval, axis: int, size: int) -> Interval:
    """For each position, the sum of the slices that are certainly added, and of those that may be added."""
    x = _last(x, axis)
    slots = np.arange(size)[:, None]
    certain = (indices.low == slots) & (indices.high == slots)
    possible = (indices.low <= slots) & (slots <= indices.high)
    least, most = [values[..., None, :] for values in (x.low, x.high)]
    low = np.where(certain, least, np.where(possible, np.minimum(least, 0), 0))
    high = np.where(certain, most, np.where(possible, np.maximum(most, 0), 0))
    nan = possible & x.maybe_nan[..., None, :]

    def total(values: Array) -> Array:
        return np.asarray(values.sum(-1))

    if x.dtype.kind == "int":
        exact = integers.known(total(low), x.dtype)
        bound = total(np.maximum(np.abs(low.astype(float)), np.abs(high.astype(float)))) < integers.SAFE
        unsure = (low != high).any(-1)
        y = chosen(unsure, integers.between(total(low), total(high), bound, x.dtype), exact)
    else:
        terms = possible.sum(-1).astype(float)
        y = summed(errors, Interval(low, high, nan, x.dtype), total, np.where(terms > 1, terms, 0.0), 0.0)
        magnitude = total(np.maximum(np.abs(low), np.abs(high)))
        y = replace(y, terms=np.broadcast_to(terms, y.shape), magnitude=magnitude)
    return y.each(lambda values: np.moveaxis(values, -1, axis))


RULES: dict[str, Rule] = {
    "reshape": moved(np.reshape),
    "permute": moved(np.transpose),
    "expand": moved(np.broadcast_to),
    "flip": moved(np.flip),
    "pad": moved(_pad),
    "crop": moved(_crop),
    "argmax": place(1),
    "argmin": place(-1),
    **{
        rule.__name__: rule
        for rule in (concatenate, cast, to_bits, from_bits, sort, argsort, gather, scatter_add)
    },
    "with_placement": lambda errors, x, placement, batch_axes: x,
}
