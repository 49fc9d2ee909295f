"""The powers a**b and 2**b, and the hypotenuse, correctly rounded, with the special values of IEEE 754 and C."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tensorken_core.language.dtypes import DType, float64
from tensorken_reference import fixed
from tensorken_reference.function import Enclosure, Function, exponent
from tensorken_reference.rounding import FORMATS, Format, decompose, round_estimates, round_scaled, shift


def _is_odd(b: float) -> bool:
    return abs(b) < 2.0**53 and b == int(b) and int(b) % 2 == 1


def _case(a: float, b: float, form: Format) -> float | None:
    if b == 0.0 or a == 1.0:
        return 1.0
    if a != a or b != b:
        return math.nan
    if a < 0.0 and a != -math.inf and abs(b) != math.inf and b != math.floor(b):
        return math.nan
    sign = -1.0 if math.copysign(1.0, a) < 0 and _is_odd(b) else 1.0
    magnitude = _magnitude_case(abs(a), b, form)
    return None if magnitude is None else sign * magnitude


def _magnitude_case(a: float, b: float, form: Format) -> float | None:
    """The special cases for a >= 0."""
    if a == 1.0:
        return 1.0
    if a == 0.0 or math.inf in (a, abs(b)):
        return math.inf if (a > 1.0) == (b > 0.0) else 0.0
    logarithm = b * math.log(a)
    if abs(logarithm) > 750.0:
        return math.inf if logarithm > 0.0 else 0.0
    if abs(logarithm) < 2.0 ** -(form.precision + 2):
        return 1.0
    return _exact(a, b, form)


def _odd_part(x: float) -> tuple[int, int]:
    """x as n * 2**e with an odd n."""
    n, e = decompose(x)
    zeros = (n & -n).bit_length() - 1
    return n >> zeros, e + zeros


def _exact(a: float, b: float, form: Format) -> float | None:
    """a**b rounded, if it is a binary fraction short enough to be a number of the format or a tie."""
    n, e = _odd_part(a)
    k, f = _odd_part(b)
    for _ in range(-f):  # b = k / 2**-f: take as many square roots
        root = math.isqrt(n)
        if e % 2 or root * root != n:
            return None
        n, e = root, e // 2
    k <<= max(0, f)
    if n == 1:
        return round_scaled(1, e * k, form)
    if k < 0 or k * (n.bit_length() - 1) > form.precision + 1:
        return None
    return round_scaled(n**k, e * k, form)


def _enclose(a: float, b: float, bits: int) -> Enclosure:
    """exp(b * log(a)), with more digits of the logarithm for a larger b."""
    w = max(60, bits + exponent(b) + 7)
    k, f = decompose(b)
    product = shift(k * fixed.log_scaled(*decompose(abs(a)), w), f + bits - w)
    n, e = fixed.exp(product, bits)
    return (-n if a < 0.0 and _is_odd(b) else n), e - bits, 16


def hypot(dtype: DType, a: Sequence[float], b: Sequence[float]) -> list[float]:
    """sqrt(a**2 + b**2) of every pair, from integers: it can be a tie, which no enclosure could decide."""
    form = FORMATS[dtype]
    if dtype is float64:
        return [_hypot(p, q, form) for p, q in zip(a, b, strict=True)]
    return round_estimates(list(map(math.hypot, a, b)), dtype, lambda i: _hypot(a[i], b[i], form))


def _hypot(a: float, b: float, form: Format) -> float:
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.hypot(a, b)
    (n, e), (m, f) = decompose(a), decompose(b)
    least = min(e, f) - 64  # enough digits for the root of the smaller operand alone
    square = shift(n, e - least) ** 2 + shift(m, f - least) ** 2
    root = math.isqrt(square)
    return round_scaled(2 * root + (root * root != square), least - 1, form)


pow = Function(math.pow, _case, _enclose)
exp2 = Function(math.exp2, lambda b, form: _case(2.0, b, form), lambda b, bits: _enclose(2.0, b, bits))
