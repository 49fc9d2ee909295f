"""The circular functions and their inverses, correctly rounded: sin cos tan asin acos atan atan2."""

from __future__ import annotations

import math

from tensorken_reference import fixed
from tensorken_reference.function import Enclosure, Function, exponent, leading_zeros, odd_case, to_fixed
from tensorken_reference.rounding import Format, decompose, round_scaled, shift


def _reduce_angle(x: float, w: int) -> tuple[int, int]:
    """`(q, r)` with x = q * pi/2 + r and abs(r) <= pi/4: r at `w` bits, within 2 units."""
    p = w + max(0, exponent(x)) + 4
    half_pi = fixed.constant("pi", p - 1)
    q, r = divmod(to_fixed(x, p) + (half_pi >> 1), half_pi)
    return q, (r - (half_pi >> 1)) >> (p - w)


def _sin_case(x: float, form: Format) -> float | None:
    return math.nan if abs(x) == math.inf else odd_case(x, form)


def _enclose_sin(x: float, bits: int) -> Enclosure:
    w = bits + leading_zeros(math.sin(x))
    q, r = _reduce_angle(x, w)
    return _quadrant(q, r, w), -w, 5


def _quadrant(q: int, r: int, w: int) -> int:
    """The sine of q * pi/2 + r."""
    y = fixed.cos(r, w) if q & 1 else fixed.sin(r, w)
    return -y if q & 2 else y


def _cos_case(x: float, form: Format) -> float | None:
    if x != x or abs(x) == math.inf:
        return math.nan
    return 1.0 if abs(x) < 2.0 ** -(form.precision // 2 + 1) else None


def _enclose_cos(x: float, bits: int) -> Enclosure:
    w = bits + leading_zeros(math.cos(x))
    q, r = _reduce_angle(x, w)
    return _quadrant(q + 1, r, w), -w, 5


def _enclose_tan(x: float, bits: int) -> Enclosure:
    estimate = math.tan(x)
    large = max(0, exponent(estimate)) + 2  # 2**large bounds both tan and 1 / cos, with a margin
    w = bits + leading_zeros(estimate) + large
    q, r = _reduce_angle(x, w)
    s, c = fixed.sin(r, w), fixed.cos(r, w)
    y = (c << w) // -s if q & 1 else (s << w) // c
    return y, -w, 8 << 2 * large


def _asin_case(x: float, form: Format) -> float | None:
    return math.nan if abs(x) > 1.0 else odd_case(x, form)


def _enclose_asin(x: float, bits: int) -> Enclosure:
    w = bits + leading_zeros(x)
    n = to_fixed(x, w)
    return fixed.atan2(n, math.isqrt((1 << 2 * w) - n * n), w), -w, 36


def _acos_case(x: float, form: Format) -> float | None:
    if abs(x) > 1.0 or x != x:
        return math.nan
    return 0.0 if x == 1.0 else None


def _enclose_acos(x: float, bits: int) -> Enclosure:
    w = bits + leading_zeros(math.acos(x))
    n = to_fixed(x, w)
    return fixed.atan2(math.isqrt((1 << 2 * w) - n * n), n, w), -w, 36


def _atan2_case(y: float, x: float, form: Format) -> float | None:
    if x != x or y != y:
        return math.nan
    positive, x_infinite, y_infinite = math.copysign(1.0, x) > 0.0, abs(x) == math.inf, abs(y) == math.inf
    if x_infinite and y_infinite:
        return _eighths(1 if positive else 3, y, form)
    if x_infinite or y == 0.0:
        return _eighths(0 if positive else 4, y, form)
    if y_infinite or x == 0.0:
        return _eighths(2, y, form)
    if positive and exponent(y) - exponent(x) < -102:
        return _below_quotient(y, x, form)
    return None


def _eighths(n: int, y: float, form: Format) -> float:
    """n/8 of a full turn, with the sign of y."""
    return math.copysign(round_scaled(n * fixed.constant("pi", 128), -130, form), y)


def _below_quotient(y: float, x: float, form: Format) -> float:
    """Round a value whose magnitude is smaller than that of y / x by less than one part in 2**200."""
    (n, e), (d, f) = decompose(abs(y)), decompose(x)
    quotient, remainder = divmod(n << 64, d)
    return math.copysign(round_scaled(2 * quotient + (1 if remainder else -1), e - f - 65, form), y)


def _enclose_atan2(y: float, x: float, bits: int) -> Enclosure:
    w = bits + leading_zeros(math.atan2(y, x))
    scale = max(exponent(x), exponent(y))
    (n, e), (d, f) = decompose(y), decompose(x)
    return fixed.atan2(shift(n, e - scale + w), shift(d, f - scale + w), w), -w, 40


def _atan_case(x: float, form: Format) -> float | None:
    return _eighths(2, x, form) if abs(x) == math.inf else odd_case(x, form)


def _enclose_atan(x: float, bits: int) -> Enclosure:
    return _enclose_atan2(x, 1.0, bits)


sin = Function(math.sin, _sin_case, _enclose_sin)
cos = Function(math.cos, _cos_case, _enclose_cos)
tan = Function(math.tan, _sin_case, _enclose_tan)
asin = Function(math.asin, _asin_case, _enclose_asin)
acos = Function(math.acos, _acos_case, _enclose_acos)
atan = Function(math.atan, _atan_case, _enclose_atan)
atan2 = Function(math.atan2, _atan2_case, _enclose_atan2)
