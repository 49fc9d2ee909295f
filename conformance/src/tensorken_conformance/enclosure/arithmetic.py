"""Enclosures of elementwise ops that are exact or rounded once: + - * /, signs, extremes, rounding to integers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tensorken_conformance.enclosure import integers
from tensorken_conformance.enclosure.errors import Errors
from tensorken_conformance.enclosure.interval import Array, Interval, chosen, hull, no_nan, outward, stepped
from tensorken_core.language.dtypes import bool_

Rule = Callable[..., Any]
"""`(errors, *operands, *params)`: the interval of the op's results for any operands in these intervals."""


def floats(*operands: Interval) -> tuple[list[Interval], Array, Array]:
    """The operands with 1 in place of certain NaNs; where any is certainly NaN; where any may be NaN."""
    certain: Array = np.logical_or.reduce(np.broadcast_arrays(*[x.empty for x in operands]))
    maybe: Array = np.logical_or.reduce(np.broadcast_arrays(*[x.maybe_nan for x in operands]))
    if not certain.any():
        return list(operands), certain, maybe
    clean = []
    for x in operands:
        empty = x.empty
        clean.append(replace(x, low=np.where(empty, 1.0, x.low), high=np.where(empty, 1.0, x.high)))
    return clean, certain, maybe


def spoilt(x: Interval, certain: Array, maybe: Array) -> Interval:
    """The result, NaN where an operand was certainly NaN, and perhaps NaN where one may have been."""
    maybe = maybe | x.maybe_nan
    if not certain.any():
        return Interval(x.low, x.high, maybe, x.dtype)
    return Interval(
        np.where(certain, np.inf, x.low), np.where(certain, -np.inf, x.high), maybe | certain, x.dtype
    )


def propagates_nan(rule: Rule) -> Rule:
    """The rule of an op that returns NaN for NaN, from one for operands that are numbers.

    A param, if there is one, is the axes over which the op reduces or that it normalizes.
    """

    @functools.wraps(rule)
    def call(errors: Errors, *args: Any) -> Interval:
        operands = [x for x in args if isinstance(x, Interval)]
        numbers, *nan = floats(*operands)
        y = rule(errors, *numbers, *args[len(operands) :])
        for axes in args[len(operands) :]:
            nan = [
                np.broadcast_to(np.logical_or.reduce(places, axes, keepdims=True), y.shape) for places in nan
            ]
        return spoilt(y, *nan)

    return call


def on_flushed_operands(rules: dict[str, Rule]) -> dict[str, Rule]:
    """The rules of ops that may flush subnormal operands to zero."""

    def flushing(rule: Rule) -> Rule:
        def call(errors: Errors, *args: Any) -> Any:
            return rule(errors, *[errors.flushed(x) if isinstance(x, Interval) else x for x in args])

        return call

    return {name: flushing(rule) for name, rule in rules.items()}


def infinite(x: Interval) -> Array:
    """Where the element may be infinite."""
    return np.asarray((x.low == -np.inf) | (x.high == np.inf))


def with_zero(x: Interval) -> Array:
    """Where the element may be zero."""
    return (x.low <= 0) & (x.high >= 0)


# ---- + - * / -------------------------------------------------------------------------------------------------


def added_in_turn(errors: Errors, a: Interval, b: Interval) -> Array | float:
    """The additional error where several scattered slices are added to the other operand in turn; infinity adds none.

    The pass `updates` adds them so: its result is a sum of all slices and the operand.
    """
    bound: Array | float = 0.0
    for x, y in ((a, b), (b, a)):
        if x.terms is not None and x.magnitude is not None:
            size = x.magnitude + np.maximum(np.abs(y.low), np.abs(y.high))
            error = errors.gamma(x.terms + 1.0, x.dtype) * size
            bound = bound + np.where((x.terms > 1) & np.isfinite(error), error, 0.0)
    return bound


@propagates_nan
def add(errors: Errors, a: Interval, b: Interval) -> Interval:
    """The sums of ends; for narrower floats the rounding to float64 before the final rounding is innocuous."""
    if a.dtype.kind == "int":
        return integers.by_corners(np.add, a, b)
    opposite = ((a.high == np.inf) & (b.low == -np.inf)) | ((a.low == -np.inf) & (b.high == np.inf))
    low, high = a.low + b.low, a.high + b.high
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    in_turn = added_in_turn(errors, a, b)
    return errors.result("add", low - in_turn, high + in_turn, opposite, a.dtype)


def neg(errors: Errors, x: Interval) -> Interval:
    """The negated ends, exchanged."""
    if x.dtype.kind == "int":
        return integers.negative(x)
    return -x


@propagates_nan
def sub(errors: Errors, a: Interval, b: Interval) -> Interval:
    """The sum with the negative, with the error of `sub`."""
    if a.dtype.kind == "int":
        return integers.by_corners(np.subtract, a, b)
    same = ((a.high == np.inf) & (b.high == np.inf)) | ((a.low == -np.inf) & (b.low == -np.inf))
    low, high = a.low - b.high, a.high - b.low
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    in_turn = added_in_turn(errors, a, b)
    return errors.result("sub", low - in_turn, high + in_turn, same, a.dtype)


def product_ends(a: Interval, b: Interval) -> tuple[Array, Array]:
    """The least and the largest of the four products of ends, 0 times infinity being 0."""
    corners = [p * q for p in (a.low, a.high) for q in (b.low, b.high)]
    corners = [np.where(np.isnan(c), 0.0, c) for c in corners]
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


@propagates_nan
def mul(errors: Errors, a: Interval, b: Interval) -> Interval:
    """The hull of the products of ends."""
    if a.dtype.kind == "int":
        return integers.by_corners(np.multiply, a, b)
    undefined = (with_zero(a) & infinite(b)) | (infinite(a) & with_zero(b))
    low, high = product_ends(a, b)
    return errors.result("mul", low, high, undefined, a.dtype)


def quotient(op: str) -> Callable[[Errors, Interval, Interval], Interval]:
    """The hull of the quotients of ends; all numbers if the divisor may be zero, whose sign is unknown."""

    @propagates_nan
    def rule(errors: Errors, a: Interval, b: Interval) -> Interval:
        by_zero, both_infinite = with_zero(b), infinite(a) & infinite(b)
        undefined = (with_zero(a) & by_zero) | both_infinite
        corners = [p / np.where(by_zero, 1.0, q) for p in (a.low, a.high) for q in (b.low, b.high)]
        low = np.where(by_zero | both_infinite, -np.inf, np.minimum.reduce(corners))
        high = np.where(by_zero | both_infinite, np.inf, np.maximum.reduce(corners))
        return errors.result(op, low, high, undefined, a.dtype)

    return rule


def reciprocal(errors: Errors, x: Interval) -> Interval:
    """The quotient of 1 and the operand."""
    one = np.ones((1,) * x.low.ndim)
    return quotient("reciprocal")(errors, Interval(one, one, no_nan(one), x.dtype), x)


def sizes(x: Interval) -> tuple[Array, Array]:
    """The smallest and the largest magnitude that the element may have."""
    least = np.where(with_zero(x), 0, np.minimum(np.abs(x.low), np.abs(x.high)))
    return least, np.maximum(np.abs(x.low), np.abs(x.high))


@propagates_nan
def square(errors: Errors, x: Interval) -> Interval:
    """The squares of the smallest and the largest magnitude."""
    if x.dtype.kind == "int":
        return integers.square(x)
    least, largest = sizes(x)
    return errors.result("square", least * least, largest * largest, no_nan(least), x.dtype)


# ---- signs and extremes --------------------------------------------------------------------------------------


@propagates_nan
def absolute(errors: Errors, x: Interval) -> Interval:
    """The interval of magnitudes."""
    if x.dtype.kind == "int":
        return integers.absolute(x)
    return Interval(*sizes(x), no_nan(x.low), x.dtype)


def monotone(function: Callable[[Array], Array]) -> Rule:
    """The rule of an exact, non-decreasing op that returns NaN for NaN."""

    @propagates_nan
    def rule(errors: Errors, x: Interval) -> Interval:
        return Interval(function(x.low), function(x.high), no_nan(x.low), x.dtype)

    return rule


def extreme(function: Callable[[Array, Array], Array]) -> Rule:
    """The larger or the smaller of two."""

    @propagates_nan
    def rule(errors: Errors, a: Interval, b: Interval) -> Interval:
        low, high = function(a.low, b.low), function(a.high, b.high)
        return Interval(low, high, no_nan(low), a.dtype)

    return rule


def copysign(errors: Errors, a: Interval, b: Interval) -> Interval:
    """Either sign if that of b is unknown."""
    (clean, sign), certain, _ = floats(a, b)
    least, largest = sizes(clean)
    positive, negative = (sign.low > 0) & ~b.maybe_nan, (sign.high < 0) & ~b.maybe_nan
    low = np.where(positive, least, -largest)
    high = np.where(negative, -least, largest)
    nan = np.broadcast_to(a.maybe_nan, low.shape)
    return spoilt(Interval(low, high, nan, a.dtype), certain & np.broadcast_to(a.empty, low.shape), nan)


@propagates_nan
def nextafter(errors: Errors, a: Interval, b: Interval) -> Interval:
    """One step towards b; none or one if the direction is unknown."""
    name = a.dtype.name
    low = np.where(
        a.high < b.low, stepped(a.low, 1, name), np.where(a.low > b.low, stepped(a.low, -1, name), a.low)
    )
    high = np.where(
        a.low > b.high, stepped(a.high, -1, name), np.where(a.high < b.high, stepped(a.high, 1, name), a.high)
    )
    low, high = np.minimum(low, high), np.maximum(low, high)
    return errors.flushed(Interval(low, high, no_nan(low), a.dtype))


# ---- remainder -----------------------------------------------------------------------------------------------


@propagates_nan
def remainder(errors: Errors, a: Interval, b: Interval) -> Interval:
    """a - q * b if the integer quotient q is known, else the interval between 0 and b."""
    if a.dtype.kind == "int":
        return integers.remainder(a, b)
    undefined = with_zero(b) | infinite(a)
    exact = (a.low == a.high) & (b.low == b.high) & ~undefined
    divisors = [np.where(with_zero(b), 1.0, end) for end in (b.low, b.high)]
    here = np.where(exact, np.remainder(np.where(exact, a.low, 1.0), np.where(exact, b.low, 1.0)), 0.0)
    corners = [p / q for p in (a.low, a.high) for q in divisors]
    below, above = outward(np.minimum.reduce(corners), np.maximum.reduce(corners), 1)
    whole = np.floor(below)
    known = (whole == np.floor(above)) & np.isfinite(whole) & ~infinite(b) & ~with_zero(b)
    taken = [np.where(known, whole, 0.0) * q for q in divisors]
    low, high = outward(a.low - np.maximum(*taken), a.high - np.minimum(*taken), 0)
    slack = (
        np.maximum(np.abs(a.low), np.abs(a.high)) + np.maximum(np.abs(taken[0]), np.abs(taken[1]))
    ) * 2.0**-52
    least, most = np.minimum(b.low, 0.0), np.maximum(b.high, 0.0)
    low = np.where(exact, here, np.where(known, np.maximum(low - slack, least), least))
    high = np.where(exact, here, np.where(known, np.minimum(high + slack, most), most))
    return errors.result("remainder", low, high, undefined, a.dtype)


# ---- comparisons and choice ----------------------------------------------------------------------------------


def _truth(certain: Array, possible: Array) -> Interval:
    return Interval(certain, possible, no_nan(certain), bool_)


def eq(errors: Errors, a: Interval, b: Interval) -> Interval:
    """Certainly true if both are the same single number; false if the intervals do not overlap."""
    possible = (a.low <= b.high) & (b.low <= a.high)
    certain = (a.low == b.high) & (b.low == a.high) & ~(a.maybe_nan | b.maybe_nan)
    return _truth(certain, possible | certain)


def lt(errors: Errors, a: Interval, b: Interval) -> Interval:
    """Certainly true if all of a is below all of b."""
    certain = (a.high < b.low) & ~(a.maybe_nan | b.maybe_nan)
    possible = (a.low < b.high) & ~(a.empty | b.empty)
    return _truth(certain, possible | certain)


def signbit(errors: Errors, x: Interval) -> Interval:
    """Unknown for NaN and zero, whose signs intervals do not keep."""
    certain = (x.high < 0) & ~x.maybe_nan
    return _truth(certain, certain | ~((x.low > 0) & ~x.maybe_nan))


def where(errors: Errors, condition: Interval, a: Interval, b: Interval) -> Interval:
    """The hull of both if the condition is unknown."""
    one = chosen(condition.low, a, b)
    if np.array_equal(condition.low, condition.high):
        return one
    return hull(one, chosen(condition.high, a, b))


_FLUSHING: tuple[Rule, ...] = (add, sub, mul, reciprocal, square, remainder, eq, lt, nextafter)

RULES: dict[str, Rule] = {
    **on_flushed_operands(
        {
            **{rule.__name__: rule for rule in _FLUSHING},
            "div": quotient("div"),
            "sign": monotone(np.sign),
            "relu": monotone(lambda x: np.maximum(x, 0.0)),
            "maximum": extreme(np.maximum),
            "minimum": extreme(np.minimum),
            "floor": monotone(np.floor),
            "ceil": monotone(np.ceil),
            "trunc": monotone(np.trunc),
            "round": monotone(np.rint),
        }
    ),
    **{rule.__name__: rule for rule in (neg, signbit, copysign, where)},
    "abs": absolute,
}
