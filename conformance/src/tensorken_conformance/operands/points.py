"""Points: numbers at which an elementwise op may fail: poles, thresholds, limits of the format, and ties."""

from __future__ import annotations

import math
import random
from functools import cache

from tensorken_conformance.numbers.rounding import Format
from tensorken_conformance.oracles.elementwise_functions import UNARY
from tensorken_core.language.op import Op

inf = math.inf

Places = tuple[tuple[tuple[float, float], ...], tuple[float, ...]]
"""The intervals in which an op varies, and the points near which it may fail."""


@cache
def places(name: str, form: Format) -> Places:
    """The intervals and points of an op in a format."""
    over, under = math.log(form.max), math.log(form.smallest) - 1.0
    low, bits = math.log(form.tiny), form.precision * math.log(2.0)
    log2 = math.log(2.0)
    bell = math.sqrt(-under)
    half_pi = math.pi / 2
    turns = ((-7.0, 7.0), (-1000.0, 1000.0)), tuple(k * half_pi for k in (1, 2, 3, 4, 22, 51, 355, 710))
    logarithm = ((0.4, 2.5), (0.0, 1000.0)), (1.0, 0.5, 2.0, 10.0, 100.0, 1000.0, 1e-3)
    table: dict[str, Places] = {
        "exp": (((under, over), (-1.0, 1.0)), (over, low, under, bits, -bits)),
        "exp2": (
            ((under / log2, over / log2), (-1.0, 1.0)),
            (form.top, form.least, form.least - 1.0, low / log2),
        ),
        "expm1": (((-1.0, 1.0), (-bits - 2.0, over)), (over, -bits, log2 / 2, -log2 / 2, bits)),
        "sigmoid": (((-2.0, 2.0), (under, bits + 4.0)), (low, under, bits, -over)),
        "softplus": (((-2.0, 2.0), (under, bits + 4.0)), (low, under, bits)),
        "log": logarithm,
        "log2": logarithm,
        "log10": logarithm,
        "log1p": (((-1.0, 1.0), (0.0, 1000.0)), (-1.0, -0.5, 1.0)),
        "sqrt": (((0.0, 4.0), (0.0, 1000.0)), (1.0, 2.0, 4.0)),
        "sin": turns,
        "cos": turns,
        "tan": turns,
        "asin": (((-1.0, 1.0),), (0.5, -0.5, 1.0, -1.0)),
        "acos": (((-1.0, 1.0),), (0.5, -0.5, 1.0, -1.0)),
        "atan": (((-1.0, 1.0), (-40.0, 40.0)), (1.0, -1.0, 2.0**form.precision)),
        "sinh": (((-1.0, 1.0), (-over, over)), (over, over + log2, -over - log2)),
        "cosh": (((-1.0, 1.0), (-over, over)), (over, over + log2, -over - log2)),
        "tanh": (((-1.0, 1.0), (-bits, bits)), (bits / 2, -bits / 2, 0.55)),
        "sech_squared": (((-2.0, 2.0), (under / 2, -under / 2)), (low / 2, under / 2, -under / 2)),
        "asinh": (((-1.0, 1.0), (-1000.0, 1000.0)), (1.0, math.sqrt(form.max), 2.0**form.precision)),
        "acosh": (((1.0, 2.0), (1.0, 1000.0)), (1.0, 2.0, math.sqrt(form.max), 2.0**form.precision)),
        "atanh": (((-1.0, 1.0),), (1.0, -1.0, 0.5, -0.5)),
        "erf": (((-1.5, 1.5), (-6.0, 6.0)), (1.0, -1.0, math.sqrt(bits), -math.sqrt(bits))),
        "erfinv": (((-1.0, 1.0), (0.98, 1.0)), (1.0, -1.0, 0.5, -0.5)),
        "gaussian": (((-1.5, 1.5), (-bell, bell)), (math.sqrt(-low), bell, -bell)),
        "pow": (((0.0, 4.0), (-4.0, 4.0)), (1.0, -1.0)),
        "atan2": (((-2.0, 2.0), (-1000.0, 1000.0)), (1.0, -1.0)),
        "logaddexp": (((-2.0, 2.0), (under, over)), (-log2, 0.0)),
    }
    return table.get(name, (((-2.0, 2.0), (-1000.0, 1000.0)), (1.0, -1.0)))


def _domain(op: Op) -> tuple[float, float]:
    row = UNARY.get(op.name)
    return (row.low, row.high) if row else (-inf, inf)


def small(op: Op, form: Format, rng: random.Random) -> float:
    """A small integer; a multiple of 1/8 if the op is not defined far from 0."""
    low, high = _domain(op)
    if high - low < 8.0:
        return rng.randint(-8, 8) / 8.0
    return float(rng.randint(math.ceil(max(low, -12)), 12))


def ordinary(op: Op, form: Format, rng: random.Random) -> float:
    """A number from an interval, near a point, or from any binade of the middle half of the exponents."""
    low, high = _domain(op)
    intervals, around = places(op.name, form)
    while True:
        way = rng.randrange(8)
        if way < 4:
            value = rng.uniform(*rng.choice(intervals))
        elif way < 6:
            value = _near(rng.choice(around), form, rng)
        else:
            exponent = rng.randrange(form.least // 2, form.top // 2)
            value = rng.choice((-1, 1)) * math.ldexp(rng.uniform(1.0, 2.0), exponent)
        if low <= value <= high:
            return value


def _near(centre: float, form: Format, rng: random.Random) -> float:
    return centre * (1.0 + rng.uniform(-1.0, 1.0) * 2.0 ** -rng.randrange(1, form.precision + 1))


def _steps(centre: float, form: Format) -> list[float]:
    """A number, its neighbours, and their opposites."""
    unit = math.ulp(centre) * 2.0 ** (53 - form.precision)
    return [sign * v for v in (centre, centre - unit, centre + unit) for sign in (1.0, -1.0)]


def extremes(op: Op, form: Format, rng: random.Random) -> list[float]:
    """The ends of the format and of ints, the neighbours of 1 and of the op's points, and huge numbers."""
    top, tiny, least, whole = form.max, form.tiny, form.smallest, 2.0**form.precision
    found = [top, -top, top * (1.0 - 2.0**-form.precision), tiny, -tiny, tiny - least, tiny + least]
    found += [least, -least, top / 2, math.sqrt(top), math.sqrt(tiny), 1.0 / top]
    found += [*_steps(1.0, form), 1.0 - 2.0**-form.precision, 2.0**-form.precision - 1.0]
    found += [whole - 1.0, whole, whole / 2 - 0.5, whole / 2 + 1.0, -whole, 0.0, -0.0]
    found += [2.0**31, -(2.0**31), 2.0**31 - 1.0, 2.0**63, -(2.0**63)]
    found += [2.0**32, 2147483520.0, 2.0**63 - 1024.0]
    for point in places(op.name, form)[1]:
        found += _steps(point, form) if point else []
    huge = [math.ldexp(rng.uniform(1.0, 2.0), rng.randrange(form.top // 2, form.top - 1)) for _ in range(12)]
    found += [1e22, 2.0**120, *huge, *[-v for v in huge[:4]]]
    return [v for v in found if abs(v) <= top]


def thresholds(op: Op, form: Format, rng: random.Random) -> list[tuple[float, ...]]:
    """Pairs whose result is near the largest or the smallest number."""
    found: list[tuple[float, ...]] = []
    least = form.smallest
    for edge in (form.max, form.tiny, least, least / 2 if form.least > -1074 else least):
        log = math.log(edge)
        for _ in range(4):
            a = math.ldexp(rng.uniform(1.0, 2.0), rng.randrange(-6, 7))
            jitter = 1.0 + rng.uniform(-2.0, 2.0) * 2.0**-form.precision
            if op.name == "pow" and a != 1.0:
                found.append((a, log / math.log(a) * jitter))
                found.append((-a, float(round(log / math.log(a)))))
            elif op.name == "mul":
                found.append((a, edge / a * jitter))
            elif op.name == "div":
                found.append((edge / a * jitter if a > 1 else a * edge, 1.0 / a if a > 1 else a))
            elif op.name in ("add", "sub"):
                found.append((edge / 2 * jitter, (edge / 2 if op.name == "add" else -edge / 2) * a))
            elif op.name == "hypot":
                found.append((edge * 0.6 * jitter, edge * 0.8))
            elif op.name == "atan2":
                found.append((edge * a if edge < 1 else edge / a / 2, a))
    if op.name == "pow":
        ulp = 2.0 ** (1 - form.precision)
        found += [(1.0 + ulp, k / ulp) for k in (1.0, -1.0, 8.0, 64.0)]
        found += [(1.0 - ulp, k / ulp) for k in (1.0, -1.0, 11.0)]
        found += [(-1.0, 2.0**form.precision - 1.0), (-1.0, 2.0**form.precision)]
        found += [(-2.0, 3.0), (-2.0, 2.5), (-8.0, 1 / 3)]
    return found


# ---- ties ----------------------------------------------------------------------------------------------------


def ties(op: Op, form: Format, rng: random.Random) -> list[float]:
    """Half-integers; numbers near 1 and 0 whose results are near ties; numbers whose squares are ties."""
    p = form.precision
    found = [k + 0.5 for k in range(-6, 6)] + [k / 4.0 for k in (-7, -5, -3, -1, 1, 3, 5, 7)]
    found += [2.0 ** (p - 2) + 0.5, 2.0 ** (p - 2) + 1.5, 0.5 - 2.0 ** -(p + 1)]
    found += [2.0 ** (p - 1) - 0.5, 2.0**p - 1.0]
    found += [sign * 2.0**-k for k in (p - 1, p, p + 1, p // 2, p // 2 + 1) for sign in (1.0, -1.0)]
    found += [-v for v in (2.0 ** (p - 2) + 0.5, 2.0 ** (p - 1) - 0.5)]
    if op.name in ("square", "pow", "mul"):
        half = (p + 1) // 2
        while len(found) < 48:
            n = rng.randrange(2 ** (half - 1) + 1, 2 ** (half + 1), 2)
            if (n * n).bit_length() == p + 1:
                found.append(math.ldexp(n, rng.randrange(-6, 6)))
    if op.name == "exp2":
        found += [form.least - 1.0, form.least - 0.5, form.least - 2.0, float(form.least)]
    low, high = _domain(op)
    if op.name == "cast":  # ties of narrower formats, and numbers that become ties if they are rounded twice
        for narrow in (11, 24, 8):
            for _ in range(12):
                odd = 2 * rng.randrange(2 ** (narrow - 1), 2**narrow) + 1
                tie = math.ldexp(odd, -narrow - rng.randrange(-3, 4))
                found += [tie, -tie, tie * (1.0 + 2.0**-36), tie * (1.0 - 2.0**-36)]
        found += [(2 * k + 1) * 2.0 ** (least - 1) for least in (-24, -149, -133) for k in (0, 1, 2, 7)]
        overflow = [65519.0, 65519.996, 65520.0, 65520.004, 2.0**128 - 2.0**103, 2.0**128 - 2.0**102]
        overflow += [2.0**128 - 2.0**119, (2.0**128 - 2.0**119) * (1.0 - 2.0**-40)]  # in bfloat16
        found = [*overflow, *[-v for v in overflow], *found]
    return [v for v in found if low <= v <= high]


def tied_rows(op: Op, form: Format, rng: random.Random, arity: int) -> list[tuple[float, ...]]:
    """Pairs whose sum, product, remainder, power or hypotenuse lies half-way between two numbers."""
    p = form.precision
    found: list[tuple[float, ...]] = []
    for _ in range(16):
        n = rng.randrange(2 ** (p - 1), 2**p)
        shift = rng.randrange(-8, 4)
        if op.name in ("add", "sub"):
            sign = rng.choice((1.0, -1.0))
            found.append((sign * math.ldexp(n, shift), math.ldexp(0.5, shift) * rng.choice((1.0, -1.0))))
            found.append((math.ldexp(0.5, shift), sign * math.ldexp(n, shift)))
        elif op.name == "mul":
            a, b = _factors(p, rng)
            found.append(
                (math.ldexp(a, shift), math.ldexp(b, rng.randrange(-8, 4)) * rng.choice((1.0, -1.0)))
            )
        elif op.name == "div":
            found.append((math.ldexp(2 * rng.randrange(1, 2 ** (p - 2)) + 1, form.least + p), 2.0 ** (p + 1)))
        elif op.name == "remainder":
            found.append((-math.ldexp(0.5, shift), math.ldexp(n, shift)))
            found.append((math.ldexp(0.5, shift), -math.ldexp(n, shift)))
        elif op.name == "pow":
            k = rng.choice((2, 3, 4, 5))
            r = rng.randrange(3, 2 ** ((p + 1 + k - 1) // k), 2)
            if (r**k).bit_length() == p + 1 and r**4 < 2**p:
                found += [(float(r), float(k)), (float(r**2), k / 2), (float(r**4), k / 4)]
            elif (r**k).bit_length() == p + 1:
                found.append((float(r), float(k)))
        elif op.name == "hypot":
            for _ in range(20):  # Pythagorean triples
                m = rng.randrange(math.isqrt(2 ** (p - 1)), math.isqrt(2 ** (p + 1)))
                q = rng.randrange(1, m)
                a, b, c = m * m - q * q, 2 * m * q, m * m + q * q
                if c.bit_length() == p + 1 and c % 2 and max(_odd(a), _odd(b)) < 2**p:
                    found.append((float(a), float(b)))
                    break
    return found if arity == 2 else [(*row, *[0.5] * (arity - 2)) for row in found]


def _odd(n: int) -> int:
    return n // (n & -n)


def _factors(p: int, rng: random.Random) -> tuple[int, int]:
    """Two odd numbers whose product has one bit more than a significand."""
    while True:
        bits = rng.randrange(2, p)
        a = rng.randrange(2 ** (bits - 1) + 1, 2**bits, 2)
        b = rng.randrange(1, max(2, 2 ** (p + 2) // a)) | 1
        if (a * b).bit_length() == p + 1 and b < 2**p:
            return a, b
