"""Enclosures of elementwise ops on numbers that are exact or rounded once: + - * /, signs, extremes, whole numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorken_conformance.enclosure import integers
from tensorken_conformance.enclosure.errors import Errors
from tensorken_conformance.enclosure.interval import (
    Array,
    Interval,
    chosen,
    no_nan,
    outward,
    stepped,
)

Rule = Callable[..., Any]
"""`(errors, *operands, *params)`: what the op may give for any operands in these intervals."""


def floats(*operands: Interval) -> tuple[list[Interval], Array, Array]:
    """The operands with 1 in place of nothing but NaN; where any is NaN for certain; where any may be NaN.

    An op that gives NaN for NaN computes with the first and passes the other two to `spoilt`.
    """
    certain: Array = np.logical_or.reduce(np.broadcast_arrays(*[x.empty for x in operands]))
    maybe: Array = np.logical_or.reduce(np.broadcast_arrays(*[x.maybe_nan for x in operands]))
    if not certain.any():
        return list(operands), certain, maybe
    clean = []
    for x in operands:
        empty = x.empty
        clean.append(
            Interval(np.where(empty, 1.0, x.low), np.where(empty, 1.0, x.high), x.maybe_nan, x.dtype)
        )
    return clean, certain, maybe


def spoilt(x: Interval, certain: Array, maybe: Array) -> Interval:
    """The result, NaN where an operand was for certain, and perhaps NaN where one may have been."""
    maybe = maybe | x.maybe_nan
    if not certain.any():
        return Interval(x.low, x.high, maybe, x.dtype)
    return Interval(
        np.where(certain, np.inf, x.low), np.where(certain, -np.inf, x.high), maybe | certain, x.dtype
    )


def on_flushed_operands(rules: dict[str, Rule]) -> dict[str, Rule]:
    """The rules on operands whose subnormal numbers may be taken for zero."""

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


def add(errors: Errors, a: Interval, b: Interval) -> Interval:
    """Ends add up; float64 holds the sum of narrower floats so well that rounding it again is innocuous."""
    if a.dtype.kind == "int":
        return integers.by_corners(np.add, a, b)
    (a, b), certain, maybe = floats(a, b)
    opposite = ((a.high == np.inf) & (b.low == -np.inf)) | ((a.low == -np.inf) & (b.high == np.inf))
    low, high = a.low + b.low, a.high + b.high
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    return spoilt(errors.result("add", low, high, opposite, a.dtype), certain, maybe)


def neg(errors: Errors, x: Interval) -> Interval:
    """The ends change places."""
    if x.dtype.kind == "int":
        return integers.by_corners(lambda p, q: q - p, x, _zero(x))
    return Interval(-x.high, -x.low, x.maybe_nan, x.dtype)


def _zero(x: Interval) -> Interval:
    zero = np.zeros((1,) * x.low.ndim, x.low.dtype)
    return Interval(zero, zero, no_nan(zero), x.dtype)


def sub(errors: Errors, a: Interval, b: Interval) -> Interval:
    """As the sum with the negative, but for the error."""
    if a.dtype.kind == "int":
        return integers.by_corners(np.subtract, a, b)
    (a, b), certain, maybe = floats(a, b)
    same = ((a.high == np.inf) & (b.high == np.inf)) | ((a.low == -np.inf) & (b.low == -np.inf))
    low, high = a.low - b.high, a.high - b.low
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    return spoilt(errors.result("sub", low, high, same, a.dtype), certain, maybe)


def product_ends(a: Interval, b: Interval) -> tuple[Array, Array]:
    """The least and the largest of the four products of ends, 0 times infinity being 0."""
    corners = [p * q for p in (a.low, a.high) for q in (b.low, b.high)]
    corners = [np.where(np.isnan(c), 0.0, c) for c in corners]
    return np.minimum.reduce(corners), np.maximum.reduce(corners)


def mul(errors: Errors, a: Interval, b: Interval) -> Interval:
    """By the products of ends."""
    if a.dtype.kind == "int":
        return integers.by_corners(np.multiply, a, b)
    (a, b), certain, maybe = floats(a, b)
    undefined = (with_zero(a) & infinite(b)) | (infinite(a) & with_zero(b))
    low, high = product_ends(a, b)
    return spoilt(errors.result("mul", low, high, undefined, a.dtype), certain, maybe)


def quotient(errors: Errors, op: str, a: Interval, b: Interval) -> Interval:
    """By the quotients of ends; anything where the divisor may be zero, whose sign is not kept."""
    (a, b), certain, maybe = floats(a, b)
    by_zero = with_zero(b)
    undefined = (with_zero(a) & by_zero) | (infinite(a) & infinite(b))
    divisors = [np.where(by_zero, 1.0, end) for end in (b.low, b.high)]
    corners = [p / q for p in (a.low, a.high) for q in divisors]
    open_ended = by_zero | (infinite(a) & infinite(b))
    low = np.where(open_ended, -np.inf, np.minimum.reduce(corners))
    high = np.where(open_ended, np.inf, np.maximum.reduce(corners))
    return spoilt(errors.result(op, low, high, undefined, a.dtype), certain, maybe)


def div(errors: Errors, a: Interval, b: Interval) -> Interval:
    """The quotient."""
    return quotient(errors, "div", a, b)


def reciprocal(errors: Errors, x: Interval) -> Interval:
    """The quotient of 1."""
    one = np.ones((1,) * x.low.ndim)
    return quotient(errors, "reciprocal", Interval(one, one, no_nan(one), x.dtype), x)


def sizes(x: Interval) -> tuple[Array, Array]:
    """The least and the largest size that the element may have."""
    least = np.where(with_zero(x), 0, np.minimum(np.abs(x.low), np.abs(x.high)))
    return least, np.maximum(np.abs(x.low), np.abs(x.high))


def square(errors: Errors, x: Interval) -> Interval:
    """From the least and the largest size."""
    if x.dtype.kind == "int":
        return integers.square(x)
    (x,), certain, maybe = floats(x)
    least, largest = sizes(x)
    return spoilt(errors.result("square", least * least, largest * largest, maybe, x.dtype), certain, maybe)


# ---- signs and extremes --------------------------------------------------------------------------------------


def absolute(errors: Errors, x: Interval) -> Interval:
    """The sizes."""
    if x.dtype.kind == "int":
        return integers.absolute(x)
    (x,), certain, maybe = floats(x)
    return spoilt(Interval(*sizes(x), maybe, x.dtype), certain, maybe)


def monotone(function: Callable[[Array], Array]) -> Rule:
    """An op that is exact and does not fall, and gives NaN for NaN."""

    def rule(errors: Errors, x: Interval) -> Interval:
        (x,), certain, maybe = floats(x)
        return spoilt(Interval(function(x.low), function(x.high), maybe, x.dtype), certain, maybe)

    return rule


def extreme(function: Callable[[Array, Array], Array]) -> Rule:
    """The larger or the smaller of two."""

    def rule(errors: Errors, a: Interval, b: Interval) -> Interval:
        (a, b), certain, maybe = floats(a, b)
        return spoilt(
            Interval(function(a.low, b.low), function(a.high, b.high), maybe, a.dtype), certain, maybe
        )

    return rule


def copysign(errors: Errors, a: Interval, b: Interval) -> Interval:
    """Either sign where that of b is not known."""
    (clean, sign), certain, _ = floats(a, b)
    least, largest = sizes(clean)
    positive, negative = (sign.low > 0) & ~b.maybe_nan, (sign.high < 0) & ~b.maybe_nan
    low = np.where(positive, least, -largest)
    high = np.where(negative, -least, largest)
    nan = np.broadcast_to(a.maybe_nan, low.shape)
    return spoilt(Interval(low, high, nan, a.dtype), certain & np.broadcast_to(a.empty, low.shape), nan)


def nextafter(errors: Errors, a: Interval, b: Interval) -> Interval:
    """One step towards b; none or one where it is not known which way."""
    (a, b), certain, maybe = floats(a, b)
    name = a.dtype.name
    low = np.where(
        a.high < b.low, stepped(a.low, 1, name), np.where(a.low > b.low, stepped(a.low, -1, name), a.low)
    )
    high = np.where(
        a.low > b.high, stepped(a.high, -1, name), np.where(a.high < b.high, stepped(a.high, 1, name), a.high)
    )
    low, high = np.minimum(low, high), np.maximum(low, high)
    return spoilt(errors.flushed(Interval(low, high, maybe, a.dtype)), certain, maybe)


# ---- remainder -----------------------------------------------------------------------------------------------


def remainder(errors: Errors, a: Interval, b: Interval) -> Interval:
    """a - q * b where the whole quotient q is known, else anything between 0 and b."""
    if a.dtype.kind == "int":
        return integers.remainder(a, b)
    (a, b), certain, maybe = floats(a, b)
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
    return spoilt(errors.result("remainder", low, high, undefined, a.dtype), certain, maybe)


# ---- comparisons and choice ----------------------------------------------------------------------------------


def _truth(certain: Array, possible: Array) -> Interval:
    from tensorken_core.language.dtypes import bool_

    return Interval(certain, possible, np.zeros(certain.shape, bool), bool_)


def eq(errors: Errors, a: Interval, b: Interval) -> Interval:
    """True for certain where both are one number, the same; false where they do not meet."""
    possible = (a.low <= b.high) & (b.low <= a.high)
    certain = (a.low == b.high) & (b.low == a.high) & ~(a.maybe_nan | b.maybe_nan)
    return _truth(certain, possible | certain)


def lt(errors: Errors, a: Interval, b: Interval) -> Interval:
    """True for certain where all of a is below all of b."""
    certain = (a.high < b.low) & ~(a.maybe_nan | b.maybe_nan)
    possible = (a.low < b.high) & ~(a.empty | b.empty)
    return _truth(certain, possible | certain)


def signbit(errors: Errors, x: Interval) -> Interval:
    """Not known for NaN and zero, whose signs are not kept."""
    certain = (x.high < 0) & ~x.maybe_nan
    return _truth(certain, certain | ~((x.low > 0) & ~x.maybe_nan))


def where(errors: Errors, condition: Interval, a: Interval, b: Interval) -> Interval:
    """Both where the condition is not known."""
    one = chosen(condition.low, a, b)
    if np.array_equal(condition.low, condition.high):
        return one
    other = chosen(condition.high, a, b)
    return Interval(
        np.minimum(one.low, other.low),
        np.maximum(one.high, other.high),
        one.maybe_nan | other.maybe_nan,
        a.dtype,
    )


RULES: dict[str, Rule] = {
    **on_flushed_operands(
        {
            "add": add,
            "sub": sub,
            "mul": mul,
            "div": div,
            "reciprocal": reciprocal,
            "square": square,
            "remainder": remainder,
            "eq": eq,
            "lt": lt,
            "nextafter": nextafter,
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
    "neg": neg,
    "abs": absolute,
    "signbit": signbit,
    "copysign": copysign,
    "where": where,
}
