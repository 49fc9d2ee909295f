"""Enclosures of elementary functions, from their values at the ends and at the extrema between them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import mpmath
import numpy as np

from tensorken_conformance.enclosure.arithmetic import (
    Rule,
    floats,
    infinite,
    on_flushed_operands,
    propagates_nan,
    sizes,
    spoilt,
    with_zero,
)
from tensorken_conformance.enclosure.errors import Errors, with_hull
from tensorken_conformance.enclosure.interval import LIBRARY, PRECISION, Array, Interval, no_nan, outward

Function = Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class Monotone:
    """A function that increases (or decreases) on its whole domain.

    Attributes:
        function: in float64.
        spare: its largest error in representable numbers.
        domain: where it is not NaN.
        falls: whether it falls.
    """

    function: Function
    spare: int = LIBRARY
    domain: tuple[float, float] = (-math.inf, math.inf)
    falls: bool = False


def _sigmoid(x: Array) -> Array:
    z = np.exp(-np.abs(x))
    return np.where(x < 0, z, 1.0) / (1.0 + z)


def _softplus(x: Array) -> Array:
    return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))


def _sech_squared(x: Array) -> Array:
    e = np.exp(-2.0 * np.abs(x))
    return 4.0 * e / (1.0 + e) ** 2


def _gaussian(x: Array) -> Array:
    """From the square in two parts: the first has so few bits that it is exact."""
    a = np.minimum(np.abs(x), 30.0)
    upper = np.rint(a * 2.0**20) / 2.0**20
    return np.exp(-upper * upper) * np.exp((upper - a) * (upper + a))


_erf: Function = np.vectorize(math.erf, otypes=[float])


@functools.lru_cache(maxsize=1 << 16)
def _inverse_of_erf(x: float) -> float:
    if abs(x) >= 1.0:
        return math.copysign(math.inf, x)
    return float(mpmath.erfinv(x))


_erfinv: Function = np.vectorize(_inverse_of_erf, otypes=[float])

MONOTONE = {
    "exp": Monotone(np.exp),
    "expm1": Monotone(np.expm1),
    "exp2": Monotone(np.exp2),
    "sqrt": Monotone(np.sqrt, 0, (0.0, math.inf)),
    "log": Monotone(np.log, domain=(0.0, math.inf)),
    "log1p": Monotone(np.log1p, domain=(-1.0, math.inf)),
    "log2": Monotone(np.log2, domain=(0.0, math.inf)),
    "log10": Monotone(np.log10, domain=(0.0, math.inf)),
    "asin": Monotone(np.arcsin, domain=(-1.0, 1.0)),
    "acos": Monotone(np.arccos, domain=(-1.0, 1.0), falls=True),
    "atan": Monotone(np.arctan),
    "sinh": Monotone(np.sinh),
    "tanh": Monotone(np.tanh),
    "asinh": Monotone(np.arcsinh),
    "acosh": Monotone(np.arccosh, domain=(1.0, math.inf)),
    "atanh": Monotone(np.arctanh, domain=(-1.0, 1.0)),
    "erf": Monotone(_erf),
    "erfinv": Monotone(_erfinv, domain=(-1.0, 1.0)),
    "sigmoid": Monotone(_sigmoid, 2 * LIBRARY),
    "softplus": Monotone(_softplus, 2 * LIBRARY),
}

EVEN = {
    "cosh": Monotone(np.cosh),
    "sech_squared": Monotone(_sech_squared, 2 * LIBRARY, falls=True),
    "gaussian": Monotone(_gaussian, 2 * LIBRARY, falls=True),
}
"""Even functions."""


def monotone(name: str, facts: Monotone) -> Rule:
    """The rule of an op that is monotone on its domain, and NaN outside."""
    least, most = facts.domain

    @propagates_nan
    def rule(errors: Errors, x: Interval) -> Interval:
        outside = (x.low < least) | (x.high > most)
        nowhere = (x.high < least) | (x.low > most)
        low, high = _ends(facts, np.clip(x.low, least, most), np.clip(x.high, least, most))
        return spoilt(errors.result(name, low, high, outside, x.dtype), nowhere, outside)

    return rule


def even(name: str, facts: Monotone) -> Rule:
    """The rule of an even op."""

    @propagates_nan
    def rule(errors: Errors, x: Interval) -> Interval:
        low, high = _ends(facts, *sizes(x))
        return errors.result(name, low, high, no_nan(low), x.dtype)

    return rule


def _ends(facts: Monotone, low: Array, high: Array) -> tuple[Array, Array]:
    """The lower and the upper end of a function between two numbers."""
    low, high = facts.function(low), facts.function(high)
    if facts.falls:
        low, high = high, low
    return outward(low, high, facts.spare) if facts.spare else (low, high)


# ---- circular functions --------------------------------------------------------------------------------------

_FAR = 1e5
"""Beyond this, multiples of pi / 2 in float64 are too inexact to compare with an end."""


def _has_multiple(low: Array, high: Array, offset: float, period: float) -> Array:
    """Whether offset + k * period may lie between the ends, for an integer k; false if the ends are equal."""
    slack = 1e-9
    first = np.ceil((low - offset) / period - slack)
    last = np.floor((high - offset) / period + slack)
    return np.asarray(((first <= last) & (low != high)) | ((high - low) >= period))


def _angles(x: Interval) -> tuple[Array, Array, Array]:
    """Finite ends, and where the interval is infinite or too far from 0."""
    p, q = [np.where(infinite(x), 0.0, end) for end in (x.low, x.high)]
    return p, q, infinite(x) | ((np.maximum(np.abs(p), np.abs(q)) > _FAR) & (p != q))


def _periodic(errors: Errors, name: str, x: Interval, low: Array, high: Array) -> Interval:
    """The result with these ends, NaN at infinities."""
    endless = infinite(x)
    return spoilt(errors.result(name, low, high, endless, x.dtype), endless & (x.low == x.high), endless)


def _wave(name: str, function: Function, top: float, bottom: float) -> Rule:
    """sin or cos, with a maximum at `top`, a minimum at `bottom`, and the period 2 * pi."""

    @propagates_nan
    def rule(errors: Errors, x: Interval) -> Interval:
        p, q, far = _angles(x)
        ends = function(p), function(q)
        low, high = outward(np.minimum(*ends), np.maximum(*ends), LIBRARY)
        low = np.where(far | _has_multiple(p, q, bottom, 2 * math.pi), -1.0, low)
        high = np.where(far | _has_multiple(p, q, top, 2 * math.pi), 1.0, high)
        return _periodic(errors, name, x, low, high)

    return rule


@propagates_nan
def tan(errors: Errors, x: Interval) -> Interval:
    """The tangent increases between its poles."""
    p, q, far = _angles(x)
    low, high = outward(np.tan(p), np.tan(q), LIBRARY)
    anything = far | _has_multiple(p, q, math.pi / 2, math.pi)
    return _periodic(errors, "tan", x, np.where(anything, -np.inf, low), np.where(anything, np.inf, high))


@propagates_nan
def atan2(errors: Errors, a: Interval, b: Interval) -> Interval:
    """The hull of the values at the corners, unless the box meets the negative half-line, where the angle jumps."""
    corners = [np.arctan2(p, q) for p in (a.low, a.high) for q in (b.low, b.high)]
    low, high = outward(np.minimum.reduce(corners), np.maximum.reduce(corners), LIBRARY)
    jumps = with_zero(a) & (b.low <= 0)
    low, high = np.where(jumps, -math.pi, low), np.where(jumps, math.pi, high)
    return errors.result("atan2", low, high, no_nan(low), a.dtype)


# ---- two operands --------------------------------------------------------------------------------------------


def hypot(errors: Errors, a: Interval, b: Interval) -> Interval:
    """The hypotenuse of the magnitudes; infinite if either is, even if the other is NaN."""
    (p, q), certain, maybe = floats(a, b)
    ends = [np.hypot(*pair) for pair in zip(sizes(p), sizes(q), strict=True)]
    low, high = outward(ends[0], ends[1], LIBRARY)
    y = spoilt(errors.result("hypot", low, high, maybe, a.dtype), certain, maybe)
    return with_hull(y, y.maybe_nan & (infinite(a) | infinite(b)), np.inf) if maybe.any() else y


@propagates_nan
def logaddexp(errors: Errors, a: Interval, b: Interval) -> Interval:
    """Increases with both operands; near 0 the error is that of rounding the larger operand."""
    low, high = outward(np.logaddexp(a.low, b.low), np.logaddexp(a.high, b.high), LIBRARY)
    largest = np.maximum(sizes(a)[1], sizes(b)[1])
    units = errors.steps("logaddexp", a.dtype) + 1.0
    slack = np.where(np.isfinite(largest), largest, 0.0) * 2.0 * PRECISION[a.dtype.name] * units
    return errors.result("logaddexp", low - slack, high + slack, no_nan(low), a.dtype)


def pow_(errors: Errors, a: Interval, b: Interval) -> Interval:
    """The values at corners for a positive base, or by the parity of an integer exponent; NaN to the power 0 is 1."""
    (p, q), certain, maybe = floats(a, b)
    bases, exponents = sizes(p), (q.low, q.high)
    corners = [np.power(s, e) for s in bases for e in exponents]
    low, high = outward(np.minimum.reduce(corners), np.maximum.reduce(corners), LIBRARY)
    single = q.low == q.high
    whole = single & (np.floor(q.low) == q.low)
    odd = whole & (np.remainder(np.where(np.isfinite(q.low), q.low, 0.0), 2.0) == 1.0)
    even_power = whole & ~odd
    negative = ((p.low < 0) | (with_zero(p) & (q.low < 0))) & ~even_power  # a zero may be a negative one
    fractional = (p.low < 0) & ~whole & np.isfinite(q.low)
    undefined = fractional | ((p.low < 0) & ~single)
    certain = certain | (fractional & single & (p.high < 0) & (p.low > -np.inf))
    mirrored = (p.high < 0) & odd
    low, high = np.where(negative, -high, low), np.where(mirrored, -low, high)
    y = spoilt(errors.result("pow", low, high, undefined, a.dtype), certain, maybe)
    if not maybe.any():
        return y
    may_be_one = y.maybe_nan & (with_zero(b) | ((a.low <= 1) & (a.high >= 1)))
    return with_hull(y, np.broadcast_to(may_be_one, y.shape), 1.0)


RULES: dict[str, Rule] = on_flushed_operands(
    {
        **{name: monotone(name, facts) for name, facts in MONOTONE.items()},
        **{name: even(name, facts) for name, facts in EVEN.items()},
        "sin": _wave("sin", np.sin, math.pi / 2, -math.pi / 2),
        "cos": _wave("cos", np.cos, 0.0, math.pi),
        "tan": tan,
        "atan2": atan2,
        "hypot": hypot,
        "logaddexp": logaddexp,
        "pow": pow_,
    }
)
