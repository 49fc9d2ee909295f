"""The elementary functions: their facts at special operands, and their values in mpmath elsewhere.

Each row of the tables has the facts of IEEE 754 and of C's annex F at zeros, infinities, poles and outside of the
domain; an estimate by Python's math module, used only if it determines the rounded result; and the value at any
precision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mpmath import MPContext

from tensorken_conformance.numbers.rounding import Format, nearest

inf, nan = math.inf, math.nan

mp: Any = MPContext()
"""A private context, so that the precision of others does not change."""

GUARD = 96
"""The number of extra bits of computations; the formulas below lose fewer to cancellation."""

Ends = tuple[float | None, float | None, float | None, float | None]


@dataclass(frozen=True, slots=True)
class Unary:
    """A function of one number; its value at NaN is NaN.

    Attributes:
        ends: the results at -inf, -0.0, 0.0 and inf; None: the value, which has to be computed.
        value: the value elsewhere, from an mpf to an mpf at the precision of `mp`.
        estimate: the same in double; None: no estimate can be trusted.
        low, high: the ends of the domain.
        at: the results at poles and other special points.
    """

    ends: Ends
    value: Callable[[Any], Any]
    estimate: Callable[[float], float] | None
    low: float = -inf
    high: float = inf
    at: Mapping[float, float] = field(default_factory=dict)

    def fact(self, x: float) -> float | None:
        """The result at a special operand; None at an ordinary one."""
        if x != x or not self.low <= x <= self.high:
            return nan
        if x == 0.0 or abs(x) == inf:
            return self.ends[(1 if math.copysign(1.0, x) < 0.0 else 2) if x == 0.0 else 0 if x < 0.0 else 3]
        return self.at.get(x)


@dataclass(frozen=True, slots=True)
class Binary:
    """A function of two numbers.

    Attributes:
        fact: the result at special operands; None at ordinary ones.
        value: the value elsewhere, from floats to an mpf at the precision of `mp`.
        estimate: the same in double; None: no estimate can be trusted.
    """

    fact: Callable[[float, float], float | None]
    value: Callable[[float, float], Any]
    estimate: Callable[[float, float], float] | None


# ---- values that mpmath lacks ------------------------------------------------------------------------------


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _sech_squared(x: Any) -> Any:
    return mp.mpf(1) / mp.cosh(x) ** 2


def _gaussian(x: Any) -> Any:
    return mp.exp(-x * x)


def _acosh(x: Any) -> Any:
    """log1p(t + sqrt(t * (t + 2))) with t = x - 1."""
    t = x - 1
    return mp.log1p(t + mp.sqrt(t * (t + 2)))


def _logaddexp(a: float, b: float) -> Any:
    larger, smaller = mp.mpf(max(a, b)), mp.mpf(min(a, b))
    return larger + mp.log1p(mp.exp(smaller - larger))


def _erfinv(x: Any) -> Any:
    """Halley's method; each step at least doubles the number of right digits."""
    a = abs(x)
    if a < mp.ldexp(1, -mp.prec):  # x * sqrt(pi) / 2 * (1 + pi * x**2 / 12 + ...)
        return x * mp.sqrt(mp.pi) / 2
    y, half = mp.mpf(_erfinv_estimate(float(a))), a < 0.5
    for _ in range(60):
        excess = mp.erf(y) - a if half else (1 - a) - mp.erfc(y)
        step = excess * mp.exp(y * y) * mp.sqrt(mp.pi) / 2
        y -= step / (1 + y * step)
        if abs(step) < mp.ldexp(y, -mp.prec // 2):
            break
    return y if x > 0 else -y


def _angle(a: float, b: float) -> Any:
    """atan2, with the angles of axes and diagonals for infinities and zeros."""
    if math.isfinite(a) and math.isfinite(b) and a and b:
        return mp.atan2(a, b)
    if abs(a) == abs(b) == inf:
        turn = mp.pi / 4 if b > 0.0 else 3 * mp.pi / 4
    else:
        turn = mp.pi / 2 if abs(a) == inf or (b == 0.0 and a) else +mp.pi
    return -turn if _negative(a) else turn


# ---- facts of two operands (C11, F.10) ----------------------------------------------------------------------


def _negative(x: float) -> bool:
    return math.copysign(1.0, x) < 0.0


def is_odd(x: float) -> bool:
    """Whether a number is an odd integer."""
    return abs(x) < 2.0**53 and x == math.floor(x) and int(x) % 2 == 1


def _pow_fact(a: float, b: float) -> float | None:
    if b == 0.0 or a == 1.0:
        return 1.0
    if a != a or b != b:
        return nan
    if abs(b) == inf:
        return 1.0 if a == -1.0 else inf if (abs(a) > 1.0) == (b > 0.0) else 0.0
    if a == 0.0 or abs(a) == inf:
        magnitude = inf if (a == 0.0) == (b < 0.0) else 0.0
        return -magnitude if _negative(a) and is_odd(b) else magnitude
    return nan if a < 0.0 and b != math.floor(b) else None


def _pow(a: float, b: float) -> Any:
    y = mp.power(abs(a), b)
    return -y if a < 0.0 and is_odd(b) else y


def _atan2_fact(a: float, b: float) -> float | None:
    if a != a or b != b:
        return nan
    if (a == 0.0 and not _negative(b)) or (b == inf and abs(a) != inf):
        return math.copysign(0.0, a)
    return None


def _logaddexp_fact(a: float, b: float) -> float | None:
    if a != a or b != b:
        return nan
    larger = max(a, b) + 0.0  # the logarithm of 1 is 0.0
    return larger if abs(larger) == inf or min(a, b) == -inf else None


# ---- estimates that never raise ------------------------------------------------------------------------------


def _or(function: Callable[[float], float], beyond: float = inf) -> Callable[[float], float]:
    """The function, and `beyond` where it overflows."""

    def call(x: float) -> float:
        try:
            return function(x)
        except OverflowError:
            return beyond

    return call


def _pow_estimate(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return -inf if a < 0.0 and is_odd(b) else inf


def _erfinv_estimate(x: float) -> float:
    """Newton's method from the formula of S. Winitzki, "A handy approximation for the error function", 2008."""
    a = abs(x)
    log = math.log1p(-a * a)
    middle = 2.0 / (math.pi * 0.147) + log / 2.0
    y = a if a < 0.5 else math.sqrt(math.sqrt(middle * middle - log / 0.147) - middle)
    for _ in range(6):
        excess = math.erf(y) - a if a < 0.5 else (1.0 - a) - math.erfc(y)
        y -= excess * math.exp(y * y) * (math.sqrt(math.pi) / 2.0)
    return math.copysign(y, x)


def _exp_of_minus(x: float) -> float:
    return math.exp(-x) if x > -700.0 else inf


_exp = _or(math.exp)
_ODD: Ends = (None, -0.0, 0.0, None)
_TURNING: Ends = (nan, -0.0, 0.0, nan)
_LOG: Ends = (nan, -inf, -inf, inf)
_GROWING: Ends = (0.0, 1.0, 1.0, inf)
_BELL: Ends = (0.0, 1.0, 1.0, 0.0)
_TO_ONE: Ends = (-1.0, -0.0, 0.0, 1.0)
_SAME: Ends = (-inf, -0.0, 0.0, inf)

UNARY: dict[str, Unary] = {
    "exp": Unary(_GROWING, lambda x: mp.exp(x), _exp),
    "exp2": Unary(_GROWING, lambda x: mp.power(2, x), _or(math.exp2)),
    "expm1": Unary((-1.0, -0.0, 0.0, inf), lambda x: mp.expm1(x), _or(math.expm1)),
    "sigmoid": Unary((0.0, 0.5, 0.5, 1.0), _sigmoid, lambda x: 1.0 / (1.0 + _exp_of_minus(x))),
    "softplus": Unary(
        (0.0, None, None, inf),
        lambda x: mp.log1p(mp.exp(x)),
        lambda x: x if x > 700.0 else math.log1p(math.exp(x)),
    ),
    "log": Unary(_LOG, lambda x: mp.log(x), math.log, 0.0, at={1.0: 0.0}),
    "log2": Unary(_LOG, lambda x: mp.log(x) / mp.ln2, math.log2, 0.0, at={1.0: 0.0}),
    "log10": Unary(_LOG, lambda x: mp.log(x) / mp.ln10, math.log10, 0.0, at={1.0: 0.0}),
    "log1p": Unary((nan, -0.0, 0.0, inf), lambda x: mp.log1p(x), math.log1p, -1.0, at={-1.0: -inf}),
    "sqrt": Unary((nan, -0.0, 0.0, inf), lambda x: mp.sqrt(x), math.sqrt, -0.0),
    "sin": Unary(_TURNING, lambda x: mp.sin(x), math.sin),
    "cos": Unary((nan, 1.0, 1.0, nan), lambda x: mp.cos(x), math.cos),
    "tan": Unary(_TURNING, lambda x: mp.tan(x), math.tan),
    "asin": Unary(_TURNING, lambda x: mp.asin(x), math.asin, -1.0, 1.0),
    "acos": Unary((nan, None, None, nan), lambda x: mp.acos(x), math.acos, -1.0, 1.0, {1.0: 0.0}),
    "atan": Unary(_ODD, lambda x: mp.atan(x), math.atan),
    "sinh": Unary(_SAME, lambda x: mp.sinh(x), lambda x: math.copysign(_or(math.sinh)(abs(x)), x)),
    "cosh": Unary((inf, 1.0, 1.0, inf), lambda x: mp.cosh(x), _or(math.cosh)),
    "tanh": Unary(_TO_ONE, lambda x: mp.tanh(x), math.tanh),
    "sech_squared": Unary(_BELL, _sech_squared, lambda x: 1.0 / _or(math.cosh)(x) / _or(math.cosh)(x)),
    "asinh": Unary(_SAME, lambda x: mp.asinh(x), math.asinh),
    "acosh": Unary((nan, nan, nan, inf), _acosh, math.acosh, 1.0, at={1.0: 0.0}),
    "atanh": Unary(_TURNING, lambda x: mp.atanh(x), math.atanh, -1.0, 1.0, {-1.0: -inf, 1.0: inf}),
    "erf": Unary(_TO_ONE, lambda x: mp.erf(x), math.erf),
    "erfinv": Unary(_TURNING, _erfinv, _erfinv_estimate, -1.0, 1.0, {-1.0: -inf, 1.0: inf}),
    "gaussian": Unary(_BELL, _gaussian, lambda x: math.exp(-x * x)),
}
"""The rounded functions of one number, except arithmetic."""

BINARY: dict[str, Binary] = {
    "pow": Binary(_pow_fact, _pow, _pow_estimate),
    "atan2": Binary(_atan2_fact, _angle, math.atan2),
    "logaddexp": Binary(_logaddexp_fact, _logaddexp, None),
}
"""The functions of two numbers."""

_MOST_BITS = 4000
"""If so many bits leave the rounding open, the value is a tie; of these functions only powers have ties."""


def exactly(function: Unary | Binary, operands: tuple[float, ...], form: Format) -> float:
    """The value of a function, rounded once.

    Ziv's strategy: compute with more and more bits until the whole error interval rounds to one number (A. Ziv, "Fast
    evaluation of elementary mathematical functions with correctly rounded last bit", 1991).

    >>> from tensorken_conformance.numbers.rounding import FORMATS
    >>> exactly(UNARY["exp"], (2.0**-24,), FORMATS["float32"])
    1.0000001192092896
    """
    fact = function.fact(*operands)
    if fact is not None:
        return fact
    bits = form.precision + 50
    while True:
        mp.prec = bits + GUARD
        point = map(mp.mpf, operands) if isinstance(function, Unary) else operands
        n, e = _scaled(function.value(*point), bits + 32)
        result = nearest(n, e, form, 1 << 16)
        if result is not None:
            return result
        if bits > _MOST_BITS:
            rounded = nearest((n >> 100) + (n >> 99 & 1), e + 100, form)
            assert rounded is not None
            return rounded
        bits *= 2


def _scaled(value: Any, bits: int) -> tuple[int, int]:
    """n and e with n * 2**e the value, where n has so many bits."""
    sign, man, exp, size = value._mpf_
    if not man:
        return 0, 0
    places = bits - size
    n = man << places if places >= 0 else man >> -places
    return (-n if sign else n), exp - places
