"""The logarithm and its kin, each correctly rounded: log log1p asinh acosh atanh."""

from __future__ import annotations

import math

from tensorken_reference import fixed
from tensorken_reference.function import Enclosure, Function, exponent, odd_case, small, to_fixed
from tensorken_reference.rounding import Format, decompose, shift


def _log_case(x: float, form: Format) -> float | None:
    if x <= 0.0:
        return -math.inf if x == 0.0 else math.nan
    if x == 1.0:
        return 0.0
    return x if x != x or x == math.inf else None


def _enclose_log(x: float, bits: int) -> Enclosure:
    w = bits + small(math.log(x))
    return fixed.log_scaled(*decompose(x), w), -w, 48


def _log1p_case(x: float, form: Format) -> float | None:
    if x <= -1.0:
        return -math.inf if x == -1.0 else math.nan
    return x if x != x or x == math.inf or abs(x) < 2.0 ** -(form.precision + 1) else None


def _enclose_log1p(x: float, bits: int) -> Enclosure:
    w = bits + small(x)
    n, e = decompose(x)
    if e < 0:
        return fixed.log_scaled(n + (1 << -e), e, w), -w, 48
    return fixed.log_scaled((n << e) + 1, 0, w), -w, 48


def _asinh_case(x: float, form: Format) -> float | None:
    return x if abs(x) == math.inf else odd_case(x, form)


def _enclose_asinh(x: float, bits: int) -> Enclosure:
    """log(x + sqrt(x**2 + 1)), x being scaled to below 1."""
    w = bits + small(x)
    y = _log_with_root(abs(x), w, 1)
    return (y if x > 0 else -y), -w, 64


def _acosh_case(x: float, form: Format) -> float | None:
    if x < 1.0:
        return math.nan
    if x == 1.0:
        return 0.0
    return x if x != x or x == math.inf else None


def _enclose_acosh(x: float, bits: int) -> Enclosure:
    w = bits + small(math.acosh(x))
    return _log_with_root(x, w, -1), -w, 64


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
    w = bits + small(x)
    n, e = decompose(x)
    one = 1 << -e
    ratio = ((one + n) << w + 54) // (one - n)
    return fixed.log_scaled(ratio, -w - 54, w), -w - 1, 52


log = Function(math.log, _log_case, _enclose_log)
log1p = Function(math.log1p, _log1p_case, _enclose_log1p)
asinh = Function(math.asinh, _asinh_case, _enclose_asinh)
acosh = Function(math.acosh, _acosh_case, _enclose_acosh)
atanh = Function(math.atanh, _atanh_case, _enclose_atanh)
