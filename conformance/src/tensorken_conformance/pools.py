"""Pools: the value classes, and rows of operands of each for an op: what laws on values compute with.

A pool is the same for an op, a dtype, a class, a seed and a size, in every process.  Numbers are drawn where an op may
go wrong: around its poles, thresholds and the ends of its domain, at the edges of the format, and where results tie.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tensorken.spec.dtypes import DType
from tensorken.spec.op import Op
from tensorken_conformance.oracles.elementwise_functions import UNARY
from tensorken_conformance.oracles.rounding import FORMATS, Format

Array = np.ndarray[Any, Any]

FLOATS = ("small", "normals", "zeros", "infinities", "nans", "subnormals", "extremes", "ties", "mixed")
INTS = ("small", "zeros", "extremes", "powers", "mixed")
BOOLS = ("mixed",)

ORDINARY = ("small", "normals")
"""The classes of what users compute with most."""

EXHAUSTIVE = "exhaustive"
"""All numbers of a format with 16 bits."""

inf, nan = math.inf, math.nan

Draw = Callable[[random.Random], float]


def classes(dtype: DType) -> tuple[str, ...]:
    """The value classes that make sense for a dtype.

    >>> from tensorken.spec.dtypes import int32
    >>> classes(int32)
    ('small', 'zeros', 'extremes', 'powers', 'mixed')
    """
    return {"float": FLOATS, "int": INTS, "bool": BOOLS}[dtype.kind]


@cache
def rows(op: Op, dtype: DType, value_class: str, seed: int, count: int) -> tuple[Array, ...]:
    """Rows of operands for an op.

    Args:
        op: an elementwise op, or one of a single operand.
        dtype: of the data among its operands.
        value_class: one of `classes(dtype)`, or EXHAUSTIVE.
        seed: of what is drawn.
        count: how many rows there are at most; classes of few numbers have fewer.

    Returns:
        One array of one axis for each operand, not to be written to; row i is the i-th element of every one.
        Conditions are bool, all else is of the dtype.

    >>> from tensorken.spec.dtypes import float32
    >>> from tensorken.spec.op import OPS
    >>> sorted(rows(OPS["exp"], float32, "infinities", 0, 96)[0].tolist())
    [-inf, inf]
    """
    if value_class == EXHAUSTIVE:
        return (np.arange(2**16, dtype=np.uint16).view(np.float16),)
    arity = op.arity or 1
    rng = random.Random(f"{seed} {op.name} {dtype.name} {value_class}")
    places = [i for i in range(arity) if not op.roles or op.roles[i] != "condition"]
    if value_class == "mixed" and dtype.kind != "bool":
        drawn = _mixed(op, dtype, seed, count, len(places), rng)
    else:
        drawn = _drawn(op, dtype, value_class, count, len(places), rng)
    rng.shuffle(drawn)
    columns = iter(np.array([row[i] for row in drawn], dtype.name) for i in range(len(places)))
    found = [
        next(columns) if i in places else np.array([rng.random() < 0.5 for _ in drawn], bool)
        for i in range(arity)
    ]
    for column in found:
        column.flags.writeable = False
    return tuple(found)


Row = tuple[Any, ...]


def _mixed(op: Op, dtype: DType, seed: int, count: int, arity: int, rng: random.Random) -> list[Row]:
    """As many rows of every class, special numbers beside ordinary ones."""
    names = [name for name in classes(dtype) if name != "mixed"]
    share = -(-count // len(names))
    found: list[Row] = []
    for name in names:
        some = _drawn(op, dtype, name, max(16, 2 * share), arity, rng)
        found += rng.sample(some, min(share, len(some)))
    return found[:count]


def _drawn(op: Op, dtype: DType, value_class: str, count: int, arity: int, rng: random.Random) -> list[Row]:
    if dtype.kind == "bool":
        return [tuple([rng.random() < 0.5 for _ in range(arity)]) for _ in range(count)]
    if dtype.kind == "int":
        return _of_ints(op, dtype, value_class, count, arity, rng)
    return _of_floats(op, dtype, value_class, count, arity, rng)


def _crossed(
    musts: Sequence[Any], others: Sequence[Any], arity: int, count: int, rng: random.Random
) -> list[Row]:
    """Rows in which each number that must occur meets all of its kind and some others, in every place."""
    if arity == 1:
        return [(x,) for x in musts]
    pairs = [(a, b) for a in musts for b in musts]
    if len(pairs) > count // 2:
        pairs = rng.sample(pairs, count // 2)
    while others and len(pairs) < count:
        a, b = rng.choice(musts), rng.choice(others)
        pairs += [(a, b), (b, a)]
    return pairs[:count]


# ---- ints ----------------------------------------------------------------------------------------------------


def _of_ints(op: Op, dtype: DType, value_class: str, count: int, arity: int, rng: random.Random) -> list[Row]:
    bits = 8 * dtype.itemsize
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if value_class == "small":
        return [tuple([rng.randint(-12, 12) for _ in range(arity)]) for _ in range(count)]
    if value_class == "zeros":
        return _crossed([0], [1, -1, 2, low, high, rng.randint(3, high)], arity, min(count, 24), rng)
    if value_class == "extremes":
        musts = [low, low + 1, -1, 0, 1, high - 1, high, low // 2, high // 2 + 1]
        return _crossed(musts, [rng.randint(low, high) for _ in range(12)], arity, count, rng)
    powers = [1 << rng.randrange(bits - 1) for _ in range(4)]
    musts = [p + d for p in (*powers, 1 << (bits - 2)) for d in (-1, 0, 1)]
    musts += [-p for p in powers] + [0, 1, 2, 7, 8, bits // 2, bits - 2, bits - 1, bits, bits + 1, -1, -bits]
    if op.name == "cast":  # ties and thresholds of rounding to the significands of floats
        for p in (11, 24, 53):
            musts += [
                v for v in ((1 << p) + 1, (1 << p) + 3, -(1 << p) - 1, (3 << p) + 2) if low <= v <= high
            ]
        musts += [v for v in (65504, 65519, 65520, 2**31, -(2**31), 2**32 + 1, 2**40 + 3) if low <= v <= high]
        for shift in range(bits - 1):
            musts += [
                v for v in ((2**24 + 1) << shift, (2**53 + 1) << shift, (2**11 + 1) << shift) if v <= high
            ]
            musts += [((2**11 + 1) << shift) + 1] if ((2**11 + 1) << shift) < high else []
            musts += [((2**24 + 1) << shift) + 1] if ((2**24 + 1) << shift) < high else []
    return _crossed(musts, [rng.randint(low, high) for _ in range(12)], arity, count, rng)


# ---- floats --------------------------------------------------------------------------------------------------


def _of_floats(
    op: Op, dtype: DType, value_class: str, count: int, arity: int, rng: random.Random
) -> list[Row]:
    form = FORMATS[dtype]
    fit = _fitter(dtype)
    ordinary = [fit(_ordinary(op, form, rng)) for _ in range(16)]
    tiny, least, top = form.tiny, form.smallest, form.max
    if value_class in ORDINARY:
        draw = _small if value_class == "small" else _ordinary
        found = [tuple([fit(draw(op, form, rng)) for _ in range(arity)]) for _ in range(count)]
        return _related(found, dtype, 2 if value_class == "small" else 3, rng) if arity > 1 else found
    if value_class == "zeros":
        return _crossed([0.0, -0.0], [1.0, -1.0, 0.5, -3.0, *ordinary[:6]], arity, min(count, 48), rng)
    if value_class == "infinities":
        others = [0.0, -0.0, 1.0, -1.0, 2.0, -3.0, 0.5, -0.5, top, -least, *ordinary]
        return _crossed([inf, -inf], others, arity, count, rng)
    if value_class == "nans":
        others = [0.0, -0.0, 1.0, -1.0, inf, -inf, top, least, *ordinary]
        return _crossed([nan, -nan], others, arity, count, rng)
    if value_class == "subnormals":
        musts = [least, -least, 2 * least, 3 * least, tiny - least, least - tiny, tiny / 2]
        some = count if arity == 1 else 12
        musts += [
            rng.choice((-1, 1)) * least * rng.randrange(1, 1 << rng.randrange(1, form.precision))
            for _ in range(some)
        ]
        others = [1.0, -1.0, 2.0, 0.5, -0.75, tiny, -tiny, top, 0.0, -0.0, 1.0 / tiny, *ordinary]
        return _crossed(musts[:count], others, arity, count, rng)
    musts = [fit(v) for v in _ties(op, form, rng)] if value_class == "ties" else []
    if value_class == "ties":
        pairs = (
            [tuple([fit(v) for v in row]) for row in _tied_rows(op, form, rng, arity)] if arity > 1 else []
        )
        return _cut(
            [*pairs, *_crossed(musts, ordinary[:4], arity, max(8, count - len(pairs) // 2), rng)], count, rng
        )
    musts = [fit(v) for v in _extremes(op, form, rng)]
    pairs = [tuple([fit(v) for v in row]) for row in _thresholds(op, form, rng)] if arity == 2 else []
    return _cut(
        [*pairs, *_crossed(musts, ordinary[:6], arity, max(8, count - len(pairs) // 2), rng)], count, rng
    )


def _cut(found: list[Row], count: int, rng: random.Random) -> list[Row]:
    return found if len(found) <= count else rng.sample(found, count)


def _fitter(dtype: DType) -> Callable[[float], float]:
    kind = np.dtype(dtype.name).type

    def fit(value: float) -> float:
        with np.errstate(over="ignore", under="ignore"):
            return float(kind(value))

    return fit


def _related(found: list[Row], dtype: DType, ways: int, rng: random.Random) -> list[Row]:
    """Some rows with equal, opposite and neighbouring operands, which drawn ones never are."""
    kind = np.dtype(dtype.name).type
    for i in range(0, len(found), 4):
        first, *rest = found[i]
        way = rng.randrange(ways)
        other = (first, -first, float(np.nextafter(kind(first), kind(rng.choice((-inf, inf))))))[way]
        found[i] = (first, other, *rest[1:]) if len(rest) == 1 else (first, *rest[:-1], other)
    return found


# ---- where an op is interesting ------------------------------------------------------------------------------

Places = tuple[tuple[tuple[float, float], ...], tuple[float, ...]]
"""Intervals in which it does its work, and points around which it may go wrong."""


@cache
def places(name: str, form: Format) -> Places:
    """Where an op does its work in a format, and where it may go wrong."""
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
            (form.limit, form.least, form.least - 1.0, low / log2),
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


def _small(op: Op, form: Format, rng: random.Random) -> float:
    """A small whole number; eighths where the op is not defined far from 0."""
    low, high = _domain(op)
    if high - low < 8.0:
        return rng.randint(-8, 8) / 8.0
    return float(rng.randint(math.ceil(max(low, -12)), 12))


def _ordinary(op: Op, form: Format, rng: random.Random) -> float:
    """From an interval, or near a point, or from any binade of the middle half of the exponents."""
    low, high = _domain(op)
    intervals, around = places(op.name, form)
    while True:
        way = rng.randrange(8)
        if way < 4:
            value = rng.uniform(*rng.choice(intervals))
        elif way < 6:
            value = _near(rng.choice(around), form, rng)
        else:
            exponent = rng.randrange(form.least // 2, form.limit // 2)
            value = rng.choice((-1, 1)) * math.ldexp(rng.uniform(1.0, 2.0), exponent)
        if low <= value <= high:
            return value


def _near(centre: float, form: Format, rng: random.Random) -> float:
    return centre * (1.0 + rng.uniform(-1.0, 1.0) * 2.0 ** -rng.randrange(1, form.precision + 1))


def _steps(centre: float, form: Format) -> list[float]:
    """A number, those next to it, and their opposites."""
    unit = math.ulp(centre) * 2.0 ** (53 - form.precision)
    return [sign * v for v in (centre, centre - unit, centre + unit) for sign in (1.0, -1.0)]


def _extremes(op: Op, form: Format, rng: random.Random) -> list[float]:
    top, tiny, whole = form.max, form.tiny, 2.0**form.precision
    found = [
        top,
        -top,
        top * (1.0 - 2.0**-form.precision),
        tiny,
        -tiny,
        tiny - form.smallest,
        tiny + form.smallest,
    ]
    found += [form.smallest, -form.smallest, top / 2, math.sqrt(top), math.sqrt(tiny), 1.0 / top]
    found += [*_steps(1.0, form), 1.0 - 2.0**-form.precision, 2.0**-form.precision - 1.0]
    found += [whole - 1.0, whole, whole / 2 - 0.5, whole / 2 + 1.0, -whole, 0.0, -0.0]
    found += [
        2.0**31,
        -(2.0**31),
        2.0**31 - 1.0,
        2.0**63,
        -(2.0**63),
        2.0**32,
        2147483520.0,
        2.0**63 - 1024.0,
    ]
    for point in places(op.name, form)[1]:
        found += _steps(point, form) if point else []
    huge = [
        math.ldexp(rng.uniform(1.0, 2.0), rng.randrange(form.limit // 2, form.limit - 1)) for _ in range(12)
    ]
    found += [1e22, 2.0**120, *huge, *[-v for v in huge[:4]]]
    return [v for v in found if abs(v) <= top]


def _thresholds(op: Op, form: Format, rng: random.Random) -> list[Row]:
    """Pairs whose result is about the largest or the smallest number."""
    found: list[Row] = []
    for edge in (
        form.max,
        form.tiny,
        form.smallest,
        form.smallest / 2 if form.least > -1074 else form.smallest,
    ):
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
        found += [(1.0 + ulp, k / ulp) for k in (1.0, -1.0, 8.0, 64.0)] + [
            (1.0 - ulp, k / ulp) for k in (1.0, -1.0, 11.0)
        ]
        found += [
            (-1.0, 2.0**form.precision - 1.0),
            (-1.0, 2.0**form.precision),
            (-2.0, 3.0),
            (-2.0, 2.5),
            (-8.0, 1 / 3),
        ]
    return found


# ---- ties ----------------------------------------------------------------------------------------------------


def _ties(op: Op, form: Format, rng: random.Random) -> list[float]:
    """Halves; what lies next to 1 and 0 by just so much that results near 1 are next to ties; squares that are ties."""
    p = form.precision
    found = [k + 0.5 for k in range(-6, 6)] + [k / 4.0 for k in (-7, -5, -3, -1, 1, 3, 5, 7)]
    found += [
        2.0 ** (p - 2) + 0.5,
        2.0 ** (p - 2) + 1.5,
        0.5 - 2.0 ** -(p + 1),
        2.0 ** (p - 1) - 0.5,
        2.0**p - 1.0,
    ]
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
    if (
        op.name == "cast"
    ):  # ties of narrower formats, and what is so near them that rounding twice makes it one
        for narrow in (11, 24):
            for _ in range(12):
                tie = math.ldexp(
                    2 * rng.randrange(2 ** (narrow - 1), 2**narrow) + 1, -narrow - rng.randrange(-3, 4)
                )
                found += [tie, -tie, tie * (1.0 + 2.0**-36), tie * (1.0 - 2.0**-36)]
        found += [(2 * k + 1) * 2.0 ** (least - 1) for least in (-24, -149) for k in (0, 1, 2, 7)]
        found += [65519.0, 65519.996, 65520.0, 65520.004, 2.0**128 - 2.0**103, 2.0**128 - 2.0**102]
    return [v for v in found if low <= v <= high]


def _tied_rows(op: Op, form: Format, rng: random.Random, arity: int) -> list[Row]:
    """Pairs whose sum, product, remainder, power or hypotenuse lies half-way between two numbers."""
    p = form.precision
    found: list[Row] = []
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
