"""Enclosures of sums, products, extremes and norms over axes, of sums of products, and of convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tensorken_conformance.enclosure import integers
from tensorken_conformance.enclosure.arithmetic import (
    Rule,
    floats,
    infinite,
    on_flushed_operands,
    product_ends,
    propagates_nan,
    sizes,
    spoilt,
    with_zero,
)
from tensorken_conformance.enclosure.errors import Errors
from tensorken_conformance.enclosure.interval import (
    LARGEST,
    LIBRARY,
    SMALLEST_NORMAL,
    Array,
    Interval,
    anything,
    chosen,
    no_nan,
    outward,
    rounded,
)
from tensorken_conformance.oracles.windows import kernels_of, windows_of
from tensorken_core.language.op import OPS
from tensorken_core.language.shapes import Axes

Total = Callable[[Array], Array]
"""A sum, or running sum, of an array along the axes at hand."""


def _any(places: Array, total: Total) -> Array:
    """Whether a condition holds for one of the terms."""
    return total(places.astype(float)) > 0


def summed(errors: Errors, x: Interval, total: Total, terms: float | Array, lost: float) -> Interval:
    """The sum of n terms, in any order: its error is at most gamma(n) times the sum of magnitudes.

    Args:
        errors: of the backend.
        x: the terms; they may be products that were not rounded.
        total: sums them.
        terms: n.
        lost: the additional error of each term.
    """
    (x,), certain, maybe = floats(x)
    finite = [np.where(np.isfinite(end), end, 0.0) for end in (x.low, x.high)]
    largest = np.maximum(np.abs(finite[0]), np.abs(finite[1]))
    size = total(largest)
    bound = errors.gamma(terms, x.dtype) * size + terms * 2.0**-52 * size + terms * lost
    low, high = total(finite[0]) - bound, total(finite[1]) + bound
    down, up = _any(x.low == -np.inf, total), _any(x.high == np.inf, total)
    low = np.where(down, -np.inf, np.where(_any(x.low == np.inf, total), np.inf, low))
    high = np.where(up, np.inf, np.where(_any(x.high == -np.inf, total), -np.inf, high))
    overflows = (size + bound > LARGEST[x.dtype.name]) & ~np.isinf(low * 0.0 + high * 0.0)
    low, high = np.where(overflows, -np.inf, low), np.where(overflows, np.inf, high)
    y = rounded(low, high, (down & up) | overflows, x.dtype, 0)
    return spoilt(errors.flushed(y), _any(certain, total), _any(maybe, total))


def _count(x: Interval, axes: Axes) -> int:
    return math.prod([x.shape[i] for i in axes])


def _over(axes: Axes) -> Total:
    return lambda x: np.add.reduce(x, axes, keepdims=True)


def _integer_sum(x: Interval, total: Total) -> Interval:
    """The wrapped sum of known terms; else the sums of ends, if they cannot wrap."""
    exact = integers.known(total(x.low), x.dtype)
    uncertain = _any(x.low != x.high, total)
    if not uncertain.any():
        return exact
    size = total(np.maximum(np.abs(x.low.astype(float)), np.abs(x.high.astype(float))))
    wide = integers.between(total(x.low), total(x.high), size < integers.SAFE, x.dtype)
    return chosen(uncertain, wide, exact)


def sum_(errors: Errors, x: Interval, axes: Axes) -> Interval:
    """The sums of ends, with one more rounding for products that a fused sum has not rounded."""
    if x.dtype.kind == "int":
        return _integer_sum(x, _over(axes))
    count = _count(x, axes)
    if count == 1:
        return x
    lost = errors.lost(x.dtype) if errors.flushes(x.dtype) else 0.0
    return summed(errors, x, _over(axes), count + 1 if count else 0, lost)


def cumsum(errors: Errors, x: Interval, axis: int) -> Interval:
    """The running sums of ends."""

    def total(values: Array) -> Array:
        return np.asarray(np.add.accumulate(values, axis))

    if x.dtype.kind == "int":
        return _integer_sum(x, total)
    terms = np.arange(1.0, x.shape[axis] + 1.0).reshape([-1 if i == axis else 1 for i in range(x.low.ndim)])
    lost = errors.lost(x.dtype) if errors.flushes(x.dtype) else 0.0
    return summed(errors, x, total, np.where(terms > 1, terms + 1, 0), lost)


def fused_multiply_add(errors: Errors, a: Interval, b: Interval, axes: Axes) -> Interval:
    """The sums of the products of ends."""
    if a.dtype.kind == "int":
        return _integer_sum(integers.by_corners(np.multiply, a, b), _over(axes))
    (p, q), certain, maybe = floats(a, b)
    undefined = (with_zero(p) & infinite(q)) | (infinite(p) & with_zero(q))
    product = spoilt(Interval(*product_ends(p, q), undefined, a.dtype), certain, maybe)
    count = _count(product, axes)
    y = summed(errors, product, _over(axes), count, errors.lost(a.dtype))
    return _perhaps_overflown(y, (p, q), (q, p), axes)


def _perhaps_overflown(y: Interval, operands: Any, others: Any, axes: Axes) -> Interval:
    """All numbers where a partial sum of one operand, over axes that the other lacks, may overflow."""
    for x, other in zip(operands, others, strict=True):
        alone = tuple([i for i in axes if other.shape[i] == 1 and x.shape[i] > 1])
        total = _over(alone)(sizes(x)[1])
        if alone and (total * (1.0 + 2.0**-10) > LARGEST[y.dtype.name]).any():
            return anything(y.shape, y.dtype)
    return y


# ---- products ------------------------------------------------------------------------------------------------


def multiplied(errors: Errors, x: Interval, times: Total, total: Total, terms: float | Array) -> Interval:
    """The product of n factors: its relative error is gamma(n) if no partial product leaves the normal range."""
    if x.dtype.kind == "int":
        exact = integers.known(times(x.low), x.dtype)
        uncertain = _any(x.low != x.high, total)
        return integers.between(exact.low, exact.high, ~uncertain, x.dtype)
    (x,), certain, maybe = floats(x)
    least, largest = sizes(x)
    has_zero, has_infinity = _any(least == 0, total), _any(np.isinf(largest), total)
    low, high = times(least), times(np.where((largest == 0) & np.isinf(largest), 1.0, largest))
    high = np.where(np.isnan(high), 0.0, high)
    low = np.where(np.isnan(low), 0.0, low)
    share = errors.gamma(terms, x.dtype) + np.asarray(terms) * 2.0**-52
    low, high = low * (1.0 - np.minimum(share, 1.0)), np.where(high == 0.0, 0.0, high * (1.0 + share))
    peak, trough = times(np.maximum(largest, 1.0)), times(np.where(least == 0.0, 1.0, np.minimum(least, 1.0)))
    many = np.asarray(terms) > 0
    overflows = many & (peak * (1.0 + share) >= LARGEST[x.dtype.name])
    underflows = many & (trough * (1.0 - np.minimum(share, 1.0)) < SMALLEST_NORMAL[x.dtype.name])
    undefined = (has_zero | underflows) & (has_infinity | overflows)
    high = np.where(overflows & ~(high == 0.0), np.inf, high)
    high = np.where(
        underflows & np.isfinite(high),
        high + errors.lost(x.dtype) * np.maximum(peak, 1.0) * (np.asarray(terms) + 1.0),
        high,
    )
    high = np.where(undefined, np.inf, high)
    low = np.where(underflows | undefined, 0.0, low)
    negative = total((x.high < 0).astype(float)) % 2.0 == 1.0
    unsure = _any((x.low < 0) & (x.high >= 0), total)
    least, most = np.where(unsure | negative, -high, low), np.where(negative & ~unsure, -low, high)
    y = rounded(least, most, undefined, x.dtype, 0)
    return spoilt(errors.flushed(y), _any(certain, total), _any(maybe, total))


def prod(errors: Errors, x: Interval, axes: Axes) -> Interval:
    """The products of magnitudes."""
    count = _count(x, axes)
    if count == 1:
        return x
    return multiplied(
        errors, x, lambda v: np.multiply.reduce(v, axes, keepdims=True), _over(axes), max(count - 1, 0)
    )


def cumprod(errors: Errors, x: Interval, axis: int) -> Interval:
    """The running products of magnitudes."""
    terms = np.arange(0.0, x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.low.ndim)])
    times, total = (lambda v: np.multiply.accumulate(v, axis)), (lambda v: np.add.accumulate(v, axis))
    return multiplied(errors, x, times, total, terms)


# ---- extremes and norms --------------------------------------------------------------------------------------


def extreme(function: Any) -> Rule:
    """The rule of a maximum or minimum over axes."""

    @propagates_nan
    def rule(errors: Errors, x: Interval, axes: Axes) -> Interval:
        low, high = [function.reduce(end, axes, keepdims=True) for end in (x.low, x.high)]
        return Interval(low, high, no_nan(low), x.dtype)

    return rule


def _length(x: Array, axes: Axes) -> Array:
    """The root of the sum of squares, also if these overflow or underflow."""
    y = np.sqrt(_over(axes)(x * x))
    largest = np.maximum.reduce(x, axes, keepdims=True, initial=0.0)
    scaled = ~((y > 1e-140) & (y < 1e140)) & (largest > 0) & np.isfinite(largest)
    if not scaled.any():
        return np.asarray(y)
    ratio = x / np.where(scaled, largest, 1.0)
    return np.where(scaled, largest * np.sqrt(_over(axes)(np.where(scaled, ratio, 0.0) ** 2)), y)


@propagates_nan
def norm(errors: Errors, x: Interval, axes: Axes) -> Interval:
    """The root of the sum of squares: its relative error is half of gamma(n), plus some roundings."""
    count = _count(x, axes)
    least, largest = sizes(x)
    low, high = outward(_length(least, axes), _length(largest, axes), LIBRARY + count)
    share = errors.gamma(count + 4, x.dtype)
    zero = high <= LIBRARY * 5e-324
    low = np.where(zero, 0.0, low * (1.0 - np.minimum(share, 1.0)))
    high = np.where(zero, 0.0, high * (1.0 + share))
    return errors.result("norm", low, high, no_nan(low), x.dtype)


def matmul(errors: Errors, a: Interval, b: Interval) -> Interval:
    """The sums of the products of rows and columns."""
    rows, columns = a.each(lambda values: values[..., None]), b.each(lambda values: values[..., None, :, :])
    y = fused_multiply_add(errors, rows, columns, (len(a.shape) - 1,))
    return y.each(lambda values: values[..., 0, :])


def convolution(errors: Errors, x: Interval, kernel: Interval, *params: Any) -> Interval:
    """The sums of the products of windows and kernels."""
    groups = params[-1]
    shape = OPS["convolution"].shape(x.shape, kernel.shape, *params)
    a = x.each(lambda values: windows_of(values, kernel.shape, *params))
    b = kernel.each(lambda values: kernels_of(values, groups))
    return fused_multiply_add(errors, a, b, (4,)).each(lambda values: values.reshape(shape))


_SUMS: tuple[Rule, ...] = (cumsum, fused_multiply_add, convolution, matmul, prod, cumprod, norm)

RULES: dict[str, Rule] = {
    **on_flushed_operands({"sum": sum_, **{rule.__name__: rule for rule in _SUMS}}),
    "max": extreme(np.maximum),
    "min": extreme(np.minimum),
}
