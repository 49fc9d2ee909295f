"""Elementary functions of float32 and float64, without branches, so that LLVM's vectoriser makes vectors of them.

A function that is not defined here is computed by its default body, from the functions that are.  Two numbers named
high and low are one number with twice the digits: their sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from tensorken_core.language.bodies import coefficients as shared
from tensorken_core.language.dtypes import DType, float32, float64
from tensorken_core.language.op import OPS
from tensorken_llvm import elementary_coefficients as own
from tensorken_llvm.builder import Builder, has_wide_vectors, new_function
from tensorken_llvm.dtypes import BIT
from tensorken_llvm.elementary_numbers import Function, Number
from tensorken_llvm.elementary_rare import rarely
from tensorken_llvm.elementary_remainders import (
    LARGE,
    exact_sum,
    remainder_of_half_pi,
    remainder_of_large,
)


@dataclass(frozen=True, slots=True)
class Format:
    """A float dtype.

    Attributes:
        digits: bits of the significand that are stored.
        bias: of the exponent.
        exp: below the first number exp is 0, above the second it is infinity; the first gives whole exponents of 2
            below `zero`.
        exp2: the same for exp2.
        expm1: below minus this number expm1 is -1.
        tanh: from here on tanh is 1.
        sinh: from here on sinh and cosh overflow.
    """

    digits: int
    bias: int
    exp: tuple[float, float]
    exp2: tuple[float, float]
    expm1: float
    tanh: float
    sinh: float

    @property
    def shifter(self) -> float:
        """Adding this number rounds to a whole number, which the lowest bits of the sum then have."""
        return 1.5 * 2.0**self.digits

    @property
    def zero(self) -> float:
        """A number from 0.5 to 2 times 2 to a power below this number rounds to 0."""
        return -self.digits - self.bias - 1.5

    @property
    def smallest(self) -> float:
        """The smallest number that is not subnormal."""
        return 2.0 ** (1 - self.bias)


FORMATS: Mapping[DType, Format] = {
    float32: Format(23, 127, (-106.5, 89.0), (-154.0, 129.0), 18.0, 9.1, 89.6),
    float64: Format(52, 1023, (-748.0, 710.0), (-1079.0, 1025.0), 38.0, 19.1, 710.7),
}


def _format(x: Number) -> Format:
    return FORMATS[x.dtype]


def _whole(x: Number) -> tuple[Number, Number]:
    """x rounded to a whole number, and an integer with the same lowest bits."""
    shifter = _format(x).shifter
    shifted = x + shifter
    return shifted - shifter, shifted.bits()


def _power_of_two(bits: Number, like: Number) -> Number:
    """2**n, for the lowest bits of n and a normal result."""
    f = _format(like)
    return ((bits + f.bias) << f.digits).from_bits()


def _scaled(y: Number, n: Number, bits: Number) -> Number:
    """y * 2**n for a whole number n and an integer with its lowest bits; subnormal results and overflow are right.

    Without an instruction for it in two steps.  Processors take a hundred cycles longer for a product that rounds to
    0, as in a softmax with a mask, than for one of which a factor is 0; so y, between 0.5 and 2, becomes 0 there.
    """
    f = _format(y)
    y = (n < f.zero).where(0.0, y)
    if has_wide_vectors():
        return y.scaled((bits - y.scalar(f.shifter).bits()).truncated())
    shifter = f.shifter + f.bias
    shifted = n.fma(0.5, shifter)
    rest = (n - (shifted - shifter)) + shifter
    return y * (shifted.bits() << f.digits).from_bits() * (rest.bits() << f.digits).from_bits()


def _ordered_sum(a: Number, b: Number) -> tuple[Number, Number]:
    """a + b as high and low, where a is 0 or not smaller; T. J. Dekker, 1971."""
    high = a + b
    return high, b - (high - a)


def _product(a: Number, b: Any) -> tuple[Number, Number]:
    """a * b as high and low."""
    high = a * b
    return high, a.fma(b, -high)


def _signed(y: Number, negative: Number) -> Number:
    """y with its sign changed where bit 1 of an integer is set."""
    return (y.bits() ^ ((negative & 2) << (_width(y) - 2))).from_bits()


def _width(x: Number) -> int:
    return 8 * x.dtype.itemsize


# ---- exponentials ------------------------------------------------------------------------------------------


def _reduced(x: Number) -> tuple[Number, Number, Number]:
    """n, an integer with its lowest bits, and r with x = n * log(2) + r."""
    high, low = shared.LN2[x.dtype]
    shifter = _format(x).shifter
    shifted = x.fma(1.0 / math.log(2.0), shifter)
    n = shifted - shifter
    return n, shifted.bits(), n.fma(-low, n.fma(-high, x))


def _expm1_of_rest(r: Number) -> Number:
    return (r * r).fma(r.polynomial(shared.EXPM1[r.dtype]), r)


def exp(x: Number, low: Number | None = None) -> Number:
    """exp(x), or exp(x + low) for a small low: exp(r) * 2**n.

    The series is added to 1 + r as high and low; float32, whose published bound is wider, saves two additions.
    """
    n, bits, r = _reduced(x.clip(*_format(x).exp))
    if low is None and x.dtype is float32:
        return _scaled(_expm1_of_rest(r) + 1.0, n, bits)
    if low is not None:
        r, low = _ordered_sum(r, low)
    one, rest = _ordered_sum(r.scalar(1.0), r)
    if low is not None:
        rest = rest + low
    return _scaled(one + (r * r).fma(r.polynomial(shared.EXPM1[x.dtype]), rest), n, bits)


def exp2(x: Number) -> Number:
    """2**n * exp(r * log(2)) with x = n + r."""
    x = x.clip(*_format(x).exp2)
    n, bits = _whole(x)
    rest = x - n
    log2, low = own.LN2[x.dtype]
    r = rest * log2
    y = (r * r).fma(r.polynomial(shared.EXPM1[x.dtype]), rest * low)
    return _scaled(rest.fma(log2, y) + 1.0, n, bits)


def expm1(x: Number) -> Number:
    """2**n * expm1(r) + (2**n - 1), halved, as 2**n may overflow."""
    f = _format(x)
    n, bits, r = _reduced(x.clip(-f.expm1, f.exp[1]))
    p = _expm1_of_rest(r)
    half = _power_of_two(bits - 1, x)
    y = half.fma(p, half - 0.5)
    y = n.eq(0.0).where(p, y + y)
    return x.eq(0.0).where(x, y)


def sigmoid(x: Number) -> Number:
    """1 / (1 + exp(-x)), from z = exp(-abs(x)); where that is small and x negative, z - z**2 / (1 + z)."""
    z = exp(-x.abs())
    above = (x < 0.0).where(z, 1.0)
    y = above / (z + 1.0)
    return (above < 0.2).where(above.fma(-y, above), y)


def tanh(x: Number) -> Number:
    """e / (e + 2) with e = expm1(2 * abs(x)); near 0 a / (1 + ...), which rounds less."""
    a, z = x.abs(), x * x
    near = a < 0.55
    a = (a > _format(x).tanh).where(_format(x).tanh, a)
    _, bits, r = _reduced(a + a)
    power = _power_of_two(bits, x)
    e = power.fma(_expm1_of_rest(r), power - 1.0)
    series = z.fma(z.polynomial(own.TANH[x.dtype]), 1.0)
    return (near.where(a, e) / near.where(series, e + 2.0)).copysign(x)


def sech_squared(x: Number) -> Number:
    """4 * e / (1 + e)**2 with e = exp(-2 * abs(x)), multiplied out to round less."""
    e = exp(x.abs() * -2.0)
    return e * 4.0 / e.fma(e + 2.0, 1.0)


def sinh(x: Number) -> Number:
    """2 * (e + e / (4 * e + 1)) with e = expm1(abs(x)) / 4, which does not overflow."""
    f, a = _format(x), x.abs()
    _, bits, r = _reduced((a > f.sinh).where(f.sinh, a))
    power = _power_of_two(bits - 2, x)
    e = power.fma(_expm1_of_rest(r), power - 0.25)
    y = e + e / e.fma(4.0, 1.0)
    return (a < 2.0**-f.digits).where(x, (y + y).copysign(x))


def cosh(x: Number) -> Number:
    """2 * e + 1 / (8 * e) with e = exp(abs(x)) / 4, which does not overflow."""
    f, a = _format(x), x.abs()
    _, bits, r = _reduced((a > f.sinh).where(f.sinh, a))
    power = _power_of_two(bits - 2, x)
    e = power.fma(_expm1_of_rest(r), power)
    return (e + e) + 0.125 / e


def gaussian(x: Number) -> Number:
    """exp(-(p + r)), where p is x * x, rounded, and r what that lost; beyond 30 the result is 0."""
    a = x.abs()
    a = (a > 30.0).where(30.0, a)
    p, r = _product(a, a)
    return exp(-p, -r)


# ---- logarithms --------------------------------------------------------------------------------------------


def _parted(x: Number) -> tuple[Number, Number]:
    """k and m with x = m * 2**k, m in [sqrt(1/2), sqrt(2)), for positive finite x."""
    f = _format(x)
    subnormal = x < f.smallest
    bits = subnormal.where(x * 2.0 ** (f.digits + 1), x).bits()
    root, one = x.scalar(math.sqrt(0.5)).bits(), x.scalar(1.0).bits()
    moved = bits + (one - root)
    magic = x.scalar(2.0**f.digits)
    k = (magic.bits() | (moved >> f.digits)).from_bits()
    k = k - subnormal.where(magic.scalar(2.0**f.digits + f.bias + f.digits + 1), 2.0**f.digits + f.bias)
    return k, ((moved & (2**f.digits - 1)) + root).from_bits()


def _log_of_sum(f: Number, k: Number | None = None) -> Number:
    """log(1 + f) + k * log(2), with 1 + f in [sqrt(1/2), sqrt(2)).

    It is f - (h - s * (h + R)) with h = f**2 / 2 and 2 * atanh(s) = 2 * s + s * R.
    The way of fdlibm (K. C. Ng, e_log.c, 1993), with a polynomial of our own.
    """
    high, low = shared.LN2[f.dtype]
    s = f / (f + 2.0)
    z, h = s * s, f * f * 0.5
    rest = z * z.fma(z.polynomial(own.LOG[f.dtype]), 1.0 / 3.0)
    if k is None:
        return f - (h - s * (h + (rest + rest)))
    y = s.fma(h + (rest + rest), k * low)
    return k.fma(high, f - (h - y))


def _log_at_edges(x: Number, y: Number) -> Number:
    """y where x is positive and finite, else the logarithm of x."""
    y = (x < math.inf).where(y, x)
    y = (x <= 0.0).where(x.eq(0.0).where(y.scalar(-math.inf), math.nan), y)
    return y


def log(x: Number) -> Number:
    """log(m) + k * log(2) with x = m * 2**k."""
    k, m = _parted(x)
    return _log_at_edges(x, _log_of_sum(m - 1.0, k))


def log1p(x: Number) -> Number:
    """log(u) + c with u = 1 + x, rounded, and c, which that lost, added to the significand of u."""
    f = _format(x)
    u, c = exact_sum(x, x.scalar(1.0))
    k, m = _parted(u)
    _, bits = _whole(-(k > 64.0).where(64.0, k))  # beyond, c does not matter
    c = c * _power_of_two(bits, x)
    y = _log_of_sum((m - 1.0) + c, k)
    y = (x.abs() < 2.0 ** -(f.digits + 2)).where(x, y)
    y = (x < math.inf).where(y, x)
    return (x <= -1.0).where(x.eq(-1.0).where(y.scalar(-math.inf), math.nan), y)


def _log1p_of_exp(x: Number) -> Number:
    """log(1 + z) with z = exp(x), at most 1; beyond sqrt(2) - 1 as log(2) + log(1 + (z - 1) / 2)."""
    z = exp(x)
    beyond = z > math.sqrt(2.0) - 1.0
    f = beyond.where(z * 0.5 - 0.5, z)
    return _log_of_sum(f, beyond.where(z.scalar(1.0), 0.0))


def softplus(x: Number) -> Number:
    """max(x, 0) + log(1 + exp(-abs(x)))."""
    return (x < 0.0).where(0.0, x) + _log1p_of_exp(-x.abs())


def logaddexp(a: Number, b: Number) -> Number:
    """The larger, plus log(1 + exp(-abs(a - b))); two equal infinities have no difference."""
    return (a < b).where(b, a) + _log1p_of_exp(a.eq(b).where(0.0, -(a - b).abs()))


def _long_log(m: Number) -> tuple[Number, Number]:
    """log(m) as high and low, for m in [sqrt(1/2), sqrt(2)): 2 * s * (1 + z * (1/3 + z * P(z)))."""
    f = m - 1.0
    d, d_low = _ordered_sum(m.scalar(2.0), f)
    inverse = 1.0 / d
    s = f * inverse
    s_low = (s.fma(-d, f) - s * d_low) * inverse
    z, z_low = _product(s, s)
    z_low = (s + s).fma(s_low, z_low)
    third, third_low = own.THIRD[m.dtype]
    p, p_low = _ordered_sum(m.scalar(third), z * z.polynomial(own.LOG[m.dtype]))
    q, q_low = _product(z, p)
    q_low = q_low + (z * (p_low + third_low) + z_low * p)
    t, t_low = _product(s, q)
    t_low = t_low + (s * q_low + s_low * q)
    high, low = _ordered_sum(s, t)
    low = low + (t_low + s_low)
    return high + high, low + low


def log2(x: Number) -> Number:
    """k + log(m) / log(2) with x = m * 2**k: exact for powers of two."""
    k, m = _parted(x)
    y = _log_of_sum(m - 1.0)
    scale, scale_low = own.LOG2_E[x.dtype]
    return _log_at_edges(x, y.fma(scale, y.fma(scale_low, k)))


def log10(x: Number) -> Number:
    """k * log10(2) + log(m) / log(10), with twice the digits."""
    k, m = _parted(x)
    high, low = _times(_long_log(m), own.LOG10_E[x.dtype])
    scale, scale_low = own.LOG10_2[x.dtype]
    p, p_low = _product(k, scale)
    whole, rest = _ordered_sum(p, high)
    return _log_at_edges(x, whole + (rest + (low + k.fma(scale_low, p_low))))


def _times(number: tuple[Number, Number], constant: tuple[float, float]) -> tuple[Number, Number]:
    high, low = _product(number[0], constant[0])
    return high, low + (number[0] * constant[1] + number[1] * constant[0])


def pow(x: Number, y: Number) -> Number:
    """exp(y * log(abs(x))), with twice the digits; the sign and the edges by IEEE 754."""
    f, a = _format(x), x.abs()
    k, m = _parted(a)
    high, low = _long_log(m)
    ln2, ln2_low = shared.LN2[x.dtype]
    high, rest = _ordered_sum(k * ln2, high)
    low = low + k.fma(ln2_low, rest)
    high, low = _ordered_sum(high, low)
    p, p_low = _product(y, high)
    p_low = y.fma(low, p_low)
    p = a.eq(0.0).where(y * -math.inf, (a < math.inf).where(p, y * a))
    p_low = (p.abs() < -f.exp[0]).where(p_low, 0.0)
    size = exp((y.eq(0.0) | a.eq(1.0)).where(0.0, p), p_low)
    whole, half = y.trunc().eq(y), y * 0.5
    odd = whole & half.trunc().eq(half).where(False, True)
    found = _signed(size, odd.where(x.bits() >> (_width(x) - 2), 0))
    return (x < 0.0).where((whole | a.eq(math.inf)).where(found, math.nan), found)


# ---- circular functions ------------------------------------------------------------------------------------


def _sin_of_rest(r: Number, low: Number) -> tuple[Number, Number]:
    z = r * r
    return _ordered_sum(r, (r * z).fma(z.polynomial(own.SIN[r.dtype]), low))


def _cos_of_rest(r: Number, low: Number) -> tuple[Number, Number]:
    z, z_low = _product(r, r)
    h = z * 0.5
    w = 1.0 - h
    rest = (z * z).fma(z.polynomial(own.COS[r.dtype]), -r.fma(low, z_low * 0.5))
    return _ordered_sum(w, ((1.0 - w) - h) + rest)


def _circular(name: str, of_rest: Callable[[Number, Number, Number], Number], x: Number) -> Number:
    """A function of the remainder of abs(x) by pi / 2."""
    a, large = x.abs(), LARGE[x.dtype]
    others = rarely(name, lambda a: of_rest(*remainder_of_large(a)), large, a)
    y = of_rest(*remainder_of_half_pi(a))
    return ((a >= large) & (a < math.inf)).where(others, y)


def _sin_of_quarters(quarters: Number, r: Number, low: Number) -> Number:
    s, c = _sin_of_rest(r, low), _cos_of_rest(r, low)
    return _signed((quarters & 1).eq(0).where(s[0], c[0]), quarters)


def _tan_of_quarters(quarters: Number, r: Number, low: Number) -> Number:
    """sin(r) / cos(r), or -cos(r) / sin(r); the remainder of the division corrects the quotient."""
    even = (quarters & 1).eq(0)
    s, c = _sin_of_rest(r, low), _cos_of_rest(r, low)
    above, above_low = [even.where(x, y) for x, y in zip(s, c, strict=True)]
    below, below_low = [even.where(x, y) for x, y in zip(c, s, strict=True)]
    inverse = 1.0 / below
    y = above * inverse
    y = y + (y.fma(-below, above) + y.fma(-below_low, above_low)) * inverse
    return _signed(y, quarters << 1)


def sin(x: Number) -> Number:
    """The sine or cosine of the remainder, as the quadrant has it."""
    return _signed(_circular("sin", _sin_of_quarters, x), x.bits() >> (_width(x) - 2))


def cos(x: Number) -> Number:
    """The sine of another quarter turn."""
    return _circular("cos", lambda quarters, r, low: _sin_of_quarters(quarters + 1, r, low), x)


def tan(x: Number) -> Number:
    """The quotient of sine and cosine of the remainder."""
    return _signed(_circular("tan", _tan_of_quarters, x), x.bits() >> (_width(x) - 2))


# ---- others ------------------------------------------------------------------------------------------------


def erf(x: Number) -> Number:
    """The default body, with an exponential that cannot underflow: from 6 on the result is 1."""
    a, z = x.abs(), x * x
    b = (a > 6.0).where(6.0, a)
    _, bits, r = _reduced(-(b * b))
    power = _power_of_two(bits, x)
    e = power.fma(_expm1_of_rest(r), power)
    far = 1.0 - e * (1.0 / (b + 3.0)).polynomial(shared.ERFC[x.dtype])
    return (a < 1.0).where(x * z.polynomial(shared.ERF[x.dtype]), far.copysign(x))


def remainder(a: Number, b: Number) -> Number:
    """With the sign of b, from the exact remainder of abs(a) by abs(b); for a large quotient that is C's fmod."""
    p, q = a.abs(), b.abs()
    quotient, large = p / q, 2.0 ** _format(a).digits
    others = rarely(
        "remainder", lambda p, q, _: p.like(p.builder.frem(p.value, q.value)), large, p, q, quotient
    )
    rest = quotient.trunc().fma(-q, p)  # exact; negative where the quotient was rounded up
    rest = (p < q).where(p, (rest < 0.0).where(rest + q, rest))
    rest = (quotient >= large).where(others, rest)
    opposite = (rest > 0.0) & ((a.bits() ^ b.bits()) < 0)
    return opposite.where(q - rest, rest).copysign(b)


def _by_body(name: str) -> Function:
    """The default body of an op."""
    body = OPS[name].body
    assert body is not None
    return body


NATIVE: dict[str, Function] = {
    function.__name__: function
    for function in (
        exp, exp2, expm1, sigmoid, tanh, sech_squared, gaussian, log, log1p, log2, log10, softplus, logaddexp, pow,
        sinh, cosh, sin, cos, tan, erf, remainder,
    )
}  # fmt: skip
"""Functions of their own."""

BY_BODY = (
    "asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh", "erfinv", "hypot", "signbit",
)  # fmt: skip
"""Ops that are computed by their default bodies."""

_FUNCTIONS: dict[str, Function] = {
    **NATIVE,
    **{name: _by_body(name) for name in BY_BODY},
    "round": Number.round,
    "to_bits": Number.bits,
    "from_bits": Number.from_bits,
    "nextafter": _by_body("nextafter"),
    "integer_pow": _by_body("integer_pow"),
}


def _written(name: str) -> Callable[..., Any]:
    """The function that writes an op: as a call, which LLVM inlines before it makes vectors of loops.

    So the text of a large program is short, and quick code, which LLVM does not optimise, is too.
    """

    def inlined(b: Builder, operands: Sequence[Any]) -> Any:
        return _FUNCTIONS[name](*[Number(b, x, _FUNCTIONS) for x in operands]).value

    def write(b: Builder, *operands: Any) -> Any:
        if any([isinstance(x, ir.Constant) or b.is_invariant(x) for x in operands]):
            return inlined(b, operands)  # such operands make some functions cheaper
        types = [x.type for x in operands]
        own_name = f"{name} of {types[0]}"
        function = b.module.globals.get(own_name)
        if function is None:
            function = new_function(b.module, own_name, types, BIT if name == "signbit" else types[0])
            for attribute in ("alwaysinline", "nounwind", "willreturn", "memory(none)"):
                set.add(function.attributes, attribute)  # llvmlite knows few attributes
            inner = Builder(function.append_basic_block("entry"))
            inner.ret(inlined(inner, function.args))
        return b.call(function, operands)

    return write


NARROW = {name: _written(name) for name in (*NATIVE, *BY_BODY)}
"""The functions of floats that may be computed in a wider dtype and rounded."""

FLOATS = {**NARROW, "nextafter": _written("nextafter")}
"""The functions of float32 and float64."""

INTEGERS = {"integer_pow": _written("integer_pow")}
"""The functions of integers."""
