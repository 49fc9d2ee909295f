"""Exponentials, hyperbolic functions and erf, correctly rounded: exp expm1 sigmoid tanh sinh cosh erf."""

from __future__ import annotations

import math

from tensorken_reference import fixed
from tensorken_reference.function import Enclosure, Function, leading_zeros, odd_case, to_fixed
from tensorken_reference.rounding import Format, decompose, shift


def _exp_case(x: float, form: Format) -> float | None:
    if x != x or x > 745.0:
        return x + math.inf
    if x < -750.0:
        return 0.0
    return 1.0 if abs(x) < 2.0 ** -(form.precision + 2) else None


def _enclose_exp(x: float, bits: int) -> Enclosure:
    n, k = fixed.exp(to_fixed(x, bits), bits)
    return n, k - bits, 12


def _expm1_case(x: float, form: Format) -> float | None:
    if abs(x) < 2.0 ** -(form.precision + 1):
        return x
    return -1.0 if x < -(form.precision + 2) else _exp_case(x, form)


def _enclose_expm1(x: float, bits: int) -> Enclosure:
    w = bits + leading_zeros(x)
    n, k = fixed.exp(to_fixed(x, w), w)
    return shift(n, k) - (1 << w), -w, 12 << max(0, k)


def _sigmoid_case(x: float, form: Format) -> float | None:
    if x != x or x < -750.0:
        return x if x != x else 0.0
    if x > form.precision + 2:
        return 1.0
    return 0.5 if abs(x) < 2.0 ** -(form.precision + 1) else None


def _enclose_sigmoid(x: float, bits: int) -> Enclosure:
    n, k = fixed.exp(-abs(to_fixed(x, bits)), bits)
    denominator = (1 << bits) + (n >> -k)
    if x > 0:
        return (1 << 2 * bits) // denominator, -bits, 16
    return (n << bits) // denominator, k - bits, 48


def _tanh_case(x: float, form: Format) -> float | None:
    return math.copysign(1.0, x) if abs(x) > form.precision / 2 + 2 else odd_case(x, form)


def _enclose_tanh(x: float, bits: int) -> Enclosure:
    w = bits + leading_zeros(x)
    n, k = fixed.exp(-2 * abs(to_fixed(x, w)), w)
    e = n >> -k
    y = (((1 << w) - e) << w) // ((1 << w) + e)
    return (y if x > 0 else -y), -w, 32


def _sinh_case(x: float, form: Format) -> float | None:
    return math.copysign(math.inf, x) if abs(x) > 745.0 else odd_case(x, form)


def _enclose_sinh(x: float, bits: int) -> Enclosure:
    w = bits + leading_zeros(x)
    n, k = fixed.exp(abs(to_fixed(x, w)), w)
    y = n - ((1 << 2 * w) // n >> 2 * k)
    return (y if x > 0 else -y), k - w - 1, 32


def _cosh_case(x: float, form: Format) -> float | None:
    if x != x or abs(x) > 745.0:
        return abs(x) + math.inf
    return 1.0 if abs(x) < 2.0 ** -(form.precision // 2 + 1) else None


def _enclose_cosh(x: float, bits: int) -> Enclosure:
    n, k = fixed.exp(abs(to_fixed(x, bits)), bits)
    return n + ((1 << 2 * bits) // n >> 2 * k), k - bits - 1, 32


def _erf_case(x: float, form: Format) -> float | None:
    if x != x or x == 0.0:
        return x
    return math.copysign(1.0, x) if x * x > 0.7 * (form.precision + 2) else None


def _enclose_erf(x: float, bits: int) -> Enclosure:
    """2 / sqrt(pi) * x * exp(-x**2) * (1 + (2x**2) / 3 + (2x**2)**2 / (3*5) + ...); DLMF 7.6.2."""
    w = bits + 16
    square = _square(x, w)
    total = term = 1 << w
    n = 1
    while term:
        n += 2
        term = (term * square >> (w - 1)) // n
        total += term
    gauss, k = fixed.exp(-square, w)
    scale = math.isqrt((1 << 3 * w + 2) // fixed.constant("pi", w))
    n, e = decompose(x)
    y = n * ((total * gauss >> (w - k)) * scale >> w)
    return y, e - w, abs(n) << 12  # at most 400 terms, each within a few units


def _square(x: float, w: int) -> int:
    n, e = decompose(x)
    return shift(n * n, 2 * e + w)


exp = Function(math.exp, _exp_case, _enclose_exp)
expm1 = Function(math.expm1, _expm1_case, _enclose_expm1)
sigmoid = Function(lambda x: 1.0 / (1.0 + math.exp(-x)), _sigmoid_case, _enclose_sigmoid)
tanh = Function(math.tanh, _tanh_case, _enclose_tanh)
sinh = Function(math.sinh, _sinh_case, _enclose_sinh)
cosh = Function(math.cosh, _cosh_case, _enclose_cosh)
erf = Function(math.erf, _erf_case, _enclose_erf)
