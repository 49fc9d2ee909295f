"""Logarithms and inverse hyperbolic functions, correctly rounded: log log2 log10 log1p logaddexp asinh acosh atanh."""

from __future__ import annotations

import math
from functools import lru_cache

from tensorken_reference import fixed
from tensorken_reference.function import Enclosure, Function, exponent, leading_zeros, odd_case, to_fixed
from tensorken_reference.rounding import Format, decompose, shift


def _log_case(x: float, form: Format) -> float | None:
    if x <= 0.0:
        return -math.inf if x == 0.0 else math.nan
    if x == 1.0:
        return 0.0
    return x if x != x or x == math.inf else None


def _enclose_log(x: float, bits: int) -> Enclosure:
    w = bits + leading_zeros(math.log(x))
    return fixed.log_scaled(*decompose(x), w), -w, 72


def _enclose_log2(x: float, bits: int) -> Enclosure:
    """The integer values, at powers of 2, are not ties, so an enclosure rounds them."""
    w = bits + leading_zeros(math.log2(x))
    n = fixed.log_scaled(*decompose(x), w)
    return (n << w + 12) // fixed.constant("ln2", w + 12), -w, 128


def _enclose_log10(x: float, bits: int) -> Enclosure:
    w = bits + leading_zeros(math.log10(x))
    n = fixed.log_scaled(*decompose(x), w)
    return (n << w + 12) // _ln10(w + 12), -w, 128


@lru_cache(64)
def _ln10(w: int) -> int:
    return fixed.log_scaled(10, 0, w)


def _log1p_case(x: float, form: Format) -> float | None:
    if x <= -1.0:
        return -math.inf if x == -1.0 else math.nan
    return x if x != x or x == math.inf or abs(x) < 2.0 ** -(form.precision + 1) else None


def _enclose_log1p(x: float, bits: int) -> Enclosure:
    w = bits + leading_zeros(x)
    n, e = decompose(x)
    if e < 0:
        return fixed.log_scaled(n + (1 << -e), e, w), -w, 72
    return fixed.log_scaled((n << e) + 1, 0, w), -w, 72


def _logaddexp_estimate(a: float, b: float) -> float:
    """The double; NaN where two terms of different sign cancel, so that few digits remain."""
    larger = max(a, b)
    y = larger + math.log1p(math.exp(-abs(a - b)))
    return y if larger >= 0.0 or abs(y) > -larger / 8 else math.nan


def _logaddexp_case(a: float, b: float, form: Format) -> float | None:
    if a != a or b != b:
        return math.nan
    larger, distance = max(a, b), abs(a - b)
    if abs(larger) == math.inf:
        return larger
    if larger == 0.0:
        return 0.0 if distance > 750.0 else None
    # The smaller operand adds at most exp(-distance), less than a quarter ulp of the larger.
    return larger if distance > 0.7 * (form.precision + 3) - math.log(abs(larger)) else None


def _enclose_logaddexp(a: float, b: float, bits: int) -> Enclosure:
    """The larger + log(1 + exp(smaller - larger))."""
    larger, smaller = max(a, b), min(a, b)
    w = bits + leading_zeros(larger + math.log1p(math.exp(smaller - larger)))
    n, k = fixed.exp(to_fixed(smaller, w) - to_fixed(larger, w), w)
    return to_fixed(larger, w) + fixed.log_scaled((1 << w) + shift(n, k), -w, w), -w, 96


def _asinh_case(x: float, form: Format) -> float | None:
    return x if abs(x) == math.inf else odd_case(x, form)


def _enclose_asinh(x: float, bits: int) -> Enclosure:
    """log(x + sqrt(x**2 + 1)), with x scaled below 1."""
    w = bits + leading_zeros(x)
    y = _log_with_root(abs(x), w, 1)
    return (y if x > 0 else -y), -w, 96


def _acosh_case(x: float, form: Format) -> float | None:
    if x < 1.0:
        return math.nan
    if x == 1.0:
        return 0.0
    return x if x != x or x == math.inf else None


def _enclose_acosh(x: float, bits: int) -> Enclosure:
    w = bits + leading_zeros(math.acosh(x))
    return _log_with_root(x, w, -1), -w, 96


def _log_with_root(x: float, w: int, sign: int) -> int:
    """log(x + sqrt(x**2 + sign)), for x > 0."""
    scale = max(0, exponent(x))
    n = to_fixed(math.ldexp(x, -scale), w)
    root = math.isqrt(n * n + sign * shift(1, 2 * (w - scale)))
    return fixed.log_scaled(n + root, scale - w, w)


def _atanh_case(x: float, form: Format) -> float | None:
    if abs(x) >= 1.0:
        return math.copysign(math.inf, x) if abs(x) == 1.0 else math.nan
    return odd_case(x, form)


def _enclose_atanh(x: float, bits: int) -> Enclosure:
    """log((1 + x) / (1 - x)) / 2."""
    w = bits + leading_zeros(x)
    n, e = decompose(x)
    one = 1 << -e
    ratio = ((one + n) << w + 54) // (one - n)
    return fixed.log_scaled(ratio, -w - 54, w), -w - 1, 80


log = Function(math.log, _log_case, _enclose_log)
log2 = Function(math.log2, _log_case, _enclose_log2)
log10 = Function(math.log10, _log_case, _enclose_log10)
log1p = Function(math.log1p, _log1p_case, _enclose_log1p)
logaddexp = Function(_logaddexp_estimate, _logaddexp_case, _enclose_logaddexp)
asinh = Function(math.asinh, _asinh_case, _enclose_asinh)
acosh = Function(math.acosh, _acosh_case, _enclose_acosh)
atanh = Function(math.atanh, _atanh_case, _enclose_atanh)
