"""Elementwise ops on Python floats: math functions that follow IEEE 754 and never raise."""

from __future__ import annotations

import builtins
import math
import struct
from collections.abc import Callable
from typing import TypeVar

Number = TypeVar("Number", int, float)


def _total(function: Callable[[float], float], default: Callable[[float], float]) -> Callable[[float], float]:
    """`function`, but with the value of IEEE 754 where the math module raises."""

    def call(x: float) -> float:
        try:
            return function(x)
        except (ValueError, OverflowError):
            return default(x)

    return call


def _nan(x: float) -> float:
    return math.nan


exp = _total(math.exp, lambda x: math.inf)
exp2 = _total(math.exp2, lambda x: math.inf)
log = _total(math.log, lambda x: -math.inf if x == 0 else math.nan)
log2 = _total(math.log2, lambda x: -math.inf if x == 0 else math.nan)
log10 = _total(math.log10, lambda x: -math.inf if x == 0 else math.nan)
sin = _total(math.sin, _nan)
cos = _total(math.cos, _nan)
tan = _total(math.tan, _nan)
sqrt = _total(math.sqrt, _nan)
log1p = _total(math.log1p, lambda x: -math.inf if x == -1 else math.nan)
expm1 = _total(math.expm1, lambda x: math.inf)
sinh = _total(math.sinh, lambda x: math.copysign(math.inf, x))
cosh = _total(math.cosh, lambda x: math.inf)
asin = _total(math.asin, _nan)
acos = _total(math.acos, _nan)
acosh = _total(math.acosh, _nan)
atanh = _total(math.atanh, lambda x: math.copysign(math.inf, x) if abs(x) == 1 else math.nan)


def div(a: float, b: float) -> float:
    """a / b, with IEEE's infinities and NaN where b is 0."""
    if b != 0 or math.isnan(b):
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)


def pow(a: float, b: float) -> float:
    """a**b as C's pow."""
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:
        if a == 0:
            return math.copysign(math.inf, a) if b % 2 == 1 else math.inf
        return math.nan


def sigmoid(x: float) -> float:
    """1 / (1 + e**-x)."""
    z = exp(-abs(x))
    return (z if x < 0 else 1.0) / (1.0 + z)


def logaddexp(a: float, b: float) -> float:
    """log(e**a + e**b)."""
    return maximum(a, b) + (math.log(2.0) if a == b else log1p(exp(-abs(a - b))))


def softplus(x: float) -> float:
    """log(1 + e**x)."""
    return maximum(x, 0.0) + log1p(exp(-abs(x)))


def sech_squared(x: float) -> float:
    """1 / cosh(x)**2, multiplied out so that 1 + ... rounds once."""
    e = exp(-2.0 * abs(x))
    return 4.0 * e / (1.0 + e * (2.0 + e))


def gaussian(x: float) -> float:
    """e**-(x**2), as the product of exp(-s) for an exact square s near x**2, and exp(s - x**2)."""
    a = minimum(abs(x), 30.0)
    upper = a if a != a else builtins.round(a * 2.0**20) / 2.0**20
    return exp(-upper * upper) * exp((upper - a) * (upper + a))


def erfinv(x: float) -> float:
    """The y with erf(y) = x: six steps of Newton's method, beyond 1/2 towards erfc(y) = 1 - x."""
    a = abs(x)
    if not a < 1.0:
        return math.copysign(math.inf, x) if a == 1.0 else math.nan
    half = a < 0.5
    # S. Winitzki, "A handy approximation for the error function and its inverse", 2008.
    log = math.log1p(-a * a)
    middle = 2.0 / (math.pi * 0.147) + log / 2.0
    y = a if half else math.sqrt(math.sqrt(middle * middle - log / 0.147) - middle)
    for _ in range(6):
        excess = math.erf(y) - a if half else (1.0 - a) - math.erfc(y)
        y -= excess * math.exp(y * y) * (math.sqrt(math.pi) / 2.0)
    return math.copysign(y, x)


def sign(x: float) -> float:
    """-1, 0 or 1; NaN propagates."""
    return x if x != x else math.copysign(1.0, x) if x else 0.0


def maximum(a: float, b: float) -> float:
    """The larger number; NaN if either is NaN."""
    return b if a < b or b != b else a


def minimum(a: float, b: float) -> float:
    """The smaller number; NaN if either is NaN."""
    return b if b < a or b != b else a


def relu(x: float) -> float:
    """max(x, 0); NaN propagates."""
    return x if x > 0 or x != x else 0.0


# ---- bits and neighbours -------------------------------------------------------------------------------------


def to_bits(x: float) -> int:
    """The 64 bits of x, in two's complement."""
    (bits,) = struct.unpack("<q", struct.pack("<d", x))
    return int(bits)


def from_bits(x: int) -> float:
    """The float with these 64 bits."""
    (value,) = struct.unpack("<d", struct.pack("<q", x))
    return float(value)


def signbit(x: float) -> bool:
    """Whether the sign bit is set, also for a zero or NaN."""
    return math.copysign(1.0, x) < 0.0


# ---- rounding, and remainders --------------------------------------------------------------------------------


def _to_whole(function: Callable[[float], int]) -> Callable[[float], float]:
    """`function` as a float with the sign of its operand; infinities and NaN are unchanged."""

    def call(x: float) -> float:
        return math.copysign(function(x), x) if math.isfinite(x) else x

    return call


round = _to_whole(builtins.round)
trunc = _to_whole(math.trunc)
ceil = _to_whole(math.ceil)
floor = _to_whole(math.floor)


def remainder(a: Number, b: Number) -> Number:
    """a % b; where b is 0, NaN for floats and 0 for integers."""
    if isinstance(a, int):
        return a % b if b else 0
    return a % b if b and math.isfinite(a) else math.nan


def integer_pow(a: int, b: int) -> int:
    """a**b modulo 2**64; 1 / a**-b truncated where b is negative."""
    if b < 0:
        return 0 if abs(a) != 1 else a if b % 2 else 1
    return builtins.pow(a, b, 1 << 64)
